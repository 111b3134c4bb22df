import { systemClock } from '../kit/clock.ts';
import { backUp } from '../kit/sql/backup.ts';
import { exportTo, type Moved } from '../kit/sql/export.ts';
import { importFrom } from '../kit/sql/import.ts';
import type { ServeFlags } from './serve.ts';
import { databaseUrlOf, readFallbackSettings } from './settings.ts';
import { migrations, migrationsTable } from './store/migrations/index.ts';

/** What an export has and an import reads: every table. */
const moved: Moved = { service: 'fallback', migrations, migrationsTable };
const onProgress = () => undefined;

/** What operators do with a database and a file, by the names of the commands; each returns what it did, as a sentence. */
const operations = {
  backup: async (databaseUrl: string, file: string) => `Copied the database to ${file}: ${await backUp(databaseUrl, file)} bytes.`,
  export: async (databaseUrl: string, file: string) => {
    const { rows, bytes } = await exportTo(file, { databaseUrl, moved, onProgress });
    return `Exported ${rows} rows to ${file}: ${bytes} bytes.`;
  },
  import: async (databaseUrl: string, file: string) => {
    const { rows } = await importFrom(file, { databaseUrl, moved, clock: systemClock, onProgress });
    return `Imported ${rows} rows from ${file}.`;
  },
};

/** Works on the database of the settings and prints what it did. On an error it prints a line for each problem and sets exit code 1. */
export async function maintain(
  operation: keyof typeof operations,
  file: string,
  { config, storage }: Pick<ServeFlags, 'config' | 'storage'>,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  try {
    // Who may connect does not matter here.
    const flags = { allowOpen: 'true', ...(storage === undefined ? {} : { storage }) };
    console.log(await operations[operation](databaseUrlOf(readFallbackSettings({ flags, environment, file: config })), file));
  } catch (error) {
    for (const line of (error as Error).message.split('\n')) console.error(`fallback: ${line}`);
    process.exitCode = 1;
  }
}
