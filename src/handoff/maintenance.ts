import { systemClock } from '../kit/clock.ts';
import { backUp, requireData } from '../kit/sql/backup.ts';
import { openDatabase, startError } from '../kit/sql/database.ts';
import type { Database } from '../kit/sql/dialect.ts';
import { exportTo, type Moved, type OnProgress } from '../kit/sql/export.ts';
import { holdFile } from '../kit/sql/file-lock.ts';
import { importFrom } from '../kit/sql/import.ts';
import { readHandoffSettings } from './settings.ts';
import { migrations } from './store/migrations/index.ts';
import { indexAll, queueAll } from './store/search/rebuild.ts';
import type { Tables } from './store/tables.ts';

/** Where the settings come from that name the database: variables, and a TOML file. */
export interface SettingsSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly config: string | undefined;
}

function databaseUrlOf({ environment, config }: SettingsSource): string {
  return readHandoffSettings({ environment, file: config ?? environment.SERVICE_CONFIG }).databaseUrl;
}

/** Copies the SQLite database of the settings into a new file; returns the size of the copy in bytes. */
export const backUpData = async (source: SettingsSource, file: string): Promise<number> => backUp(databaseUrlOf(source), file);

/** What `exportData` and `importData` move: every table but the search index, which is made anew. */
const moved: Moved = { service: 'handoff', migrations, migrationsTable: 'migrations' };

/** Opens a database for one piece of work. */
async function withDatabase<T>(databaseUrl: string, work: (database: Database<Tables>) => Promise<T>): Promise<T> {
  const database = openDatabase<Tables>(databaseUrl, { withoutTimeout: true });
  try {
    return await work(database);
  } catch (error) {
    throw startError(databaseUrl, error);
  } finally {
    await database.close();
  }
}

/** Writes everything in the database of the settings into a new file, even while a service uses it. */
export async function exportData(source: SettingsSource, file: string, onProgress: OnProgress): Promise<{ rows: number; bytes: number }> {
  const databaseUrl = databaseUrlOf(source);
  requireData(databaseUrl);
  return withDatabase(databaseUrl, (database) => exportTo(file, { database: database as Database<unknown>, moved, onProgress }));
}

/** Reads a file of `exportData` into the empty database of the settings, and makes its search index. */
export async function importData(source: SettingsSource, file: string, onProgress: OnProgress): Promise<{ rows: number }> {
  const databaseUrl = databaseUrlOf(source);
  if (databaseUrl === 'sqlite::memory:') requireData(databaseUrl);
  const release = await holdFile(databaseUrl, { waitMs: 0 });
  try {
    return await withDatabase(databaseUrl, async (database) => {
      const parts = { database: database as Database<unknown>, moved, clock: systemClock, onProgress, complete: queueAll };
      const imported = await importFrom(file, parts);
      await indexAll(database, (done, total) => onProgress(done, total, 'indexing packets for search'));
      return imported;
    });
  } finally {
    release();
  }
}
