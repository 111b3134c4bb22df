import { runService } from '../kit/serve.ts';
import { holdFile } from '../kit/sql/file-lock.ts';
import { createFallback } from './main.ts';
import { databaseUrlOf, readFallbackSettings } from './settings.ts';

/** What the command line may say, by the names of the settings; a flag without a value is `true`. */
export interface ServeFlags {
  host?: string;
  port?: string;
  storage?: string;
  rateLimit?: string;
  allowLive?: string;
  allowOpen?: string;
  config?: string;
}

/**
 * Runs the fallback service until it is told to stop.
 * @param portFlag the flag that chooses another port, where the port is in use
 */
export async function serveFallback({ config, ...flags }: ServeFlags, environment: NodeJS.ProcessEnv, portFlag?: string): Promise<void> {
  await runService(
    'fallback',
    async () => {
      const settings = readFallbackSettings({ flags, environment, file: config });
      // Until this process ends: a second one on the same file would not see what this one knows.
      await holdFile(databaseUrlOf(settings));
      return createFallback(settings, { environment });
    },
    portFlag,
  );
}
