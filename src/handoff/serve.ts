import { runService } from '../kit/serve.ts';
import { holdFile } from '../kit/sql/file-lock.ts';
import { createHandoff, makeAdminKey } from './main.ts';
import { readHandoffSettings } from './settings.ts';

/** What the command line may say. */
export interface ServeFlags {
  host?: string;
  port?: string;
  config?: string;
}

/** Runs the handoff service until it is told to stop. An admin key that was made is shown behind the address. */
export async function serveHandoff({ config, ...flags }: ServeFlags, environment: NodeJS.ProcessEnv): Promise<void> {
  await runService('handoff', async () => {
    const settings = readHandoffSettings({ flags, environment, file: config ?? environment.SERVICE_CONFIG });
    // Until this process ends: a second one on the same file would not see what this one knows.
    await holdFile(settings.databaseUrl);
    const service = await createHandoff(settings);
    const { adminKey, logger, start, stop, warnings } = service;
    return { logger, start, stop, warnings, notices: adminKey === undefined ? [] : [`admin key (shown only now): ${adminKey}`] };
  });
}

/** Makes an admin key at the database itself and prints it; a fault ends the program with 1 and a line for each problem. */
export async function printAdminKey({ config }: Pick<ServeFlags, 'config'>, environment: NodeJS.ProcessEnv): Promise<void> {
  try {
    const key = await makeAdminKey(readHandoffSettings({ environment, file: config ?? environment.SERVICE_CONFIG }));
    console.log(`handoff admin key (shown only now): ${key}`);
  } catch (error) {
    for (const line of (error as Error).message.split('\n')) console.error(`handoff: ${line}`);
    process.exitCode = 1;
  }
}
