import { systemClock } from '../kit/clock.ts';
import { backUp } from '../kit/sql/backup.ts';
import type { Database } from '../kit/sql/dialect.ts';
import { exportTo, type Moved, type OnProgress } from '../kit/sql/export.ts';
import { importFrom } from '../kit/sql/import.ts';
import { readHandoffSettings } from './settings.ts';
import { migrations } from './store/migrations/index.ts';
import { indexAll, queueAll } from './store/search/rebuild.ts';
import type { Tables } from './store/tables.ts';

/** Where the settings come from that name the database: variables, and a TOML file. */
interface SettingsSource {
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

/** Writes everything in the database of the settings into a new file, even while a service uses it. */
export const exportData = async (source: SettingsSource, file: string, onProgress: OnProgress): Promise<{ rows: number; bytes: number }> =>
  exportTo(file, { databaseUrl: databaseUrlOf(source), moved, onProgress });

/** Reads a file of `exportData` into the empty database of the settings, and makes its search index. */
export const importData = async (source: SettingsSource, file: string, onProgress: OnProgress): Promise<{ rows: number }> =>
  importFrom(file, {
    databaseUrl: databaseUrlOf(source),
    moved,
    clock: systemClock,
    onProgress,
    complete: queueAll,
    afterwards: (database) =>
      indexAll(database as Database<Tables>, (done, total) => onProgress(done, total, 'indexing packets for search')),
  });
