import { isWildcard } from '../kit/loopback.ts';
import { runService } from '../kit/serve.ts';
import { databaseName, startError } from '../kit/sql/database.ts';
import { fileWarnings } from '../kit/sql/file-access.ts';
import { holdFile } from '../kit/sql/file-lock.ts';
import { signInNotices } from './identity-settings.ts';
import { createHandoff } from './main.ts';
import { readHandoffSettings } from './settings.ts';
import { schema } from './store/migrations/index.ts';

/** The flags of the command line. */
export interface ServeFlags {
  host?: string;
  port?: string;
  config?: string;
}

/** Runs the handoff service until it is told to stop. A new admin key is printed after the address. */
export async function serveHandoff({ config, ...flags }: ServeFlags, environment: NodeJS.ProcessEnv): Promise<void> {
  await runService('handoff', async () => {
    const settings = readHandoffSettings({ flags, environment, file: config ?? environment.SERVICE_CONFIG });
    // Held until this process ends: a second process on the same file would not see this one's caches and wake-ups.
    await holdFile(settings.databaseUrl, schema);
    const service = await createHandoff(settings).catch((error: unknown) => {
      throw startError(settings.databaseUrl, error);
    });
    const { adminKey, app, logger, start, stop } = service;
    const warnings = [...service.warnings, ...fileWarnings(settings.databaseUrl)];
    return {
      logger,
      start,
      stop,
      drain: () => app.drain(),
      drainSeconds: settings.drainSeconds,
      isEverywhere: isWildcard(settings.host),
      warnings,
      notices: [...(adminKey === undefined ? [] : [`admin key (shown only once): ${adminKey}`]), ...signInNotices(settings)],
    };
  });
}

/** Creates an admin key directly in the database and prints both, with `quiet` the key alone. On an error it prints a line for each problem and sets exit code 1. */
export async function printAdminKey(
  { config, quiet = false }: Pick<ServeFlags, 'config'> & { quiet?: boolean },
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  try {
    const settings = readHandoffSettings({ environment, file: config ?? environment.SERVICE_CONFIG });
    const { makeAdminKey } = await import('./maintenance.ts');
    const key = await makeAdminKey(settings).catch((error: unknown) => {
      throw startError(settings.databaseUrl, error);
    });
    console.log(quiet ? key : `handoff admin key (shown only once) of ${databaseName(settings.databaseUrl)}: ${key}`);
  } catch (error) {
    for (const line of (error as Error).message.split('\n')) console.error(`handoff: ${line}`);
    process.exitCode = 1;
  }
}
