import { systemClock } from '../kit/clock.ts';
import type { Database } from '../kit/sql/dialect.ts';
import type { Moved, OnProgress } from '../kit/sql/export.ts';
import { maintenance } from '../kit/sql/maintenance.ts';
import { readHandoffSettings } from './settings.ts';
import { migrations } from './store/migrations/index.ts';
import { indexAll, queueAll } from './store/search/rebuild.ts';
import type { Tables } from './store/tables.ts';

/** Where the settings come from that name the database: variables, and a TOML file. */
interface SettingsSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly config: string | undefined;
}

/** What an export has and an import reads: every table but the search index, which is made anew. */
const moved: Moved = { service: 'handoff', migrations, migrationsTable: 'migrations' };

/**
 * Works on the database of the settings, even while a service uses it; only an import needs an empty one, and makes its search index.
 * @returns what was done, as a sentence
 */
export function maintain(
  operation: keyof typeof maintenance,
  file: string,
  { environment, config }: SettingsSource,
  onProgress: OnProgress,
): Promise<string> {
  return maintenance[operation](file, {
    databaseUrl: readHandoffSettings({ environment, file: config ?? environment.SERVICE_CONFIG }).databaseUrl,
    moved,
    clock: systemClock,
    onProgress,
    complete: queueAll,
    afterwards: (database) =>
      indexAll(database as Database<Tables>, (done, total) => onProgress(done, total, 'indexing packets for search')),
  });
}
