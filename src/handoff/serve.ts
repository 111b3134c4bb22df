import { stopOnSignals } from '../kit/lifecycle.ts';
import { SettingsError } from '../kit/settings.ts';
import { createHandoff, type Handoff } from './main.ts';
import { readHandoffSettings, type Settings } from './settings.ts';

/** What the command line may say. */
export interface ServeFlags {
  host?: string;
  port?: string;
  config?: string;
}

/**
 * Runs the handoff service until it is told to stop. The first line on standard output is its address; an admin key
 * that was made and the log follow. Settings that can't be used end the program with a line each.
 */
export async function serveHandoff({ config, ...flags }: ServeFlags, environment: NodeJS.ProcessEnv): Promise<void> {
  let service: Handoff | undefined;
  let address: string;
  try {
    const settings: Settings = readHandoffSettings({ flags, environment, file: config ?? environment.SERVICE_CONFIG });
    service = await createHandoff(settings);
    address = await service.start();
  } catch (error) {
    for (const line of startProblem(error).split('\n')) console.error(`handoff: ${line}`);
    // The key is stored by now, and no later start can show it.
    if (service?.adminKey !== undefined) console.error(adminKeyLine(service.adminKey));
    process.exit(1);
  }
  // Before the address is told: who starts this program may end it as soon as it has read that.
  const { adminKey, stop } = service;
  stopOnSignals(stop);
  console.log(`handoff listening on ${address}`);
  if (adminKey !== undefined) console.log(adminKeyLine(adminKey));
}

function adminKeyLine(key: string): string {
  return `handoff admin key (shown only now): ${key}`;
}

function startProblem(error: unknown): string {
  if (error instanceof SettingsError) return error.message;
  const { message, code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `The port is in use by another program; choose one with --port. (${message})`;
  return `The service could not start: ${message}`;
}
