import { SettingsError } from '../kit/settings.ts';
import { stopOnSignals } from '../kit/lifecycle.ts';
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
  let service: Handoff;
  let address: string;
  try {
    const settings: Settings = readHandoffSettings({ flags, environment, file: config ?? environment.SERVICE_CONFIG });
    service = await createHandoff(settings);
    address = await service.start();
  } catch (error) {
    for (const line of startProblem(error).split('\n')) console.error(`handoff: ${line}`);
    process.exit(1);
  }
  console.log(`handoff listening on ${address}`);
  if (service.adminKey !== undefined) console.log(`handoff admin key (shown only now): ${service.adminKey}`);
  stopOnSignals(() => service.stop());
}

function startProblem(error: unknown): string {
  if (error instanceof SettingsError) return error.message;
  const { message, code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `The port is in use by another program; choose one with --port. (${message})`;
  return `The service could not start: ${message}`;
}
