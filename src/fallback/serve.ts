import { isWildcard } from '../kit/loopback.ts';
import { runService } from '../kit/serve.ts';
import { isShared, startError } from '../kit/sql/database.ts';
import { fileWarnings } from '../kit/sql/file-access.ts';
import { holdFile } from '../kit/sql/file-lock.ts';
import { createFallback } from './main.ts';
import { databaseUrlOf, readFallbackSettings } from './settings.ts';
import { schema } from './store/migrations/index.ts';

/** Flags of the command line, by the names of the settings; a flag without a value is `true`. */
export type ServeFlags = Partial<Record<'host' | 'port' | 'storage' | 'rateLimit' | 'allowLive' | 'allowOpen' | 'config', string>>;

/**
 * Runs the fallback service until the process is told to stop.
 * @param portFlag the flag to name when the port is in use
 */
export async function serveFallback({ config, ...flags }: ServeFlags, environment: NodeJS.ProcessEnv, portFlag?: string): Promise<void> {
  await runService(
    'fallback',
    async () => {
      const settings = readFallbackSettings({ flags, environment, file: config });
      const databaseUrl = databaseUrlOf(settings);
      // Held until this process ends: a second process on the same file would not see this one's state.
      await holdFile(databaseUrl, schema);
      const service = await createFallback(settings, { environment }).catch((error: unknown) => {
        throw startError(databaseUrl, error);
      });
      const isForgotten = !isShared(databaseUrl) && flags.storage === undefined;
      const forgotten = isForgotten ? ['Chains and results are kept in memory and end with this process. Set --storage to keep them.'] : [];
      return {
        ...service,
        drain: () => service.app.drain(),
        drainSeconds: settings.drainSeconds,
        isEverywhere: isWildcard(settings.host),
        warnings: [...service.warnings, ...forgotten, ...fileWarnings(databaseUrl)],
      };
    },
    portFlag,
  );
}
