import { systemClock } from '../kit/clock.ts';
import { maintenance } from '../kit/sql/maintenance.ts';
import type { ServeFlags } from './serve.ts';
import { databaseUrlOf, readFallbackSettings } from './settings.ts';
import { schema } from './store/migrations/index.ts';

/** Works on the database of the settings and prints what it did. On an error it prints a line for each problem and sets exit code 1. */
export async function maintain(
  operation: keyof typeof maintenance,
  file: string,
  { config, storage }: Pick<ServeFlags, 'config' | 'storage'>,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  try {
    // Who may connect does not matter here.
    const flags = { allowOpen: 'true', ...(storage === undefined ? {} : { storage }) };
    const databaseUrl = databaseUrlOf(readFallbackSettings({ flags, environment, file: config }));
    console.log(await maintenance[operation](file, { databaseUrl, moved: schema, clock: systemClock, onProgress: () => undefined }));
  } catch (error) {
    for (const line of (error as Error).message.split('\n')) console.error(`fallback: ${line}`);
    process.exitCode = 1;
  }
}
