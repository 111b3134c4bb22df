import { type Kysely, sql } from 'kysely';

import type { Clock } from '../clock.ts';
import type { Database } from './dialect.ts';

/** One step of a schema: never edited once released. `up` gives the statements for a database. */
export interface Migration {
  /** Four digits and a name, for example `0001-packets`. */
  readonly name: string;
  up(database: Database<unknown>['name']): readonly string[];
}

/** Any number that no other program of ours uses: the advisory lock that makes instances migrate one at a time. */
const migrationLock = 7_269_001;

interface MigrationTables {
  migrations: { name: string; applied_at: string };
}

/**
 * Brings the schema up to date; instances that start together do it one after the other, and the later ones find it done.
 * @throws Error when the database was migrated by a newer program
 */
export async function migrate<Tables>(database: Database<Tables>, migrations: readonly Migration[], clock: Clock): Promise<void> {
  await database.transaction(async (transaction) => {
    const tx = transaction as unknown as Kysely<MigrationTables>;
    if (database.name === 'postgres') await sql`select pg_advisory_xact_lock(${sql.lit(migrationLock)})`.execute(tx);
    await sql`create table if not exists migrations (name text primary key, applied_at text not null)`.execute(tx);

    const applied = new Set((await tx.selectFrom('migrations').select('name').execute()).map(({ name }) => name));
    const newer = [...applied].filter((name) => !migrations.some((migration) => migration.name === name));
    if (newer.length > 0) {
      throw new Error(`The database was written by a newer version (it has ${newer.join(', ')}); start that version, or restore a backup.`);
    }
    for (const migration of migrations) {
      if (applied.has(migration.name)) continue;
      for (const statement of migration.up(database.name)) await sql.raw(statement).execute(tx);
      await tx.insertInto('migrations').values({ name: migration.name, applied_at: clock().toISOString() }).execute();
    }
  });
}
