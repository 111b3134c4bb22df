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
 * Brings the schema up to date, and notes what it applied in a table. Services that share a database have a table each.
 * Instances that start together do it one after the other, and the later ones find it done.
 * @throws Error when the database was migrated by another version of the program, or can't keep every text
 */
export async function migrate<Tables>(
  database: Database<Tables>,
  migrations: readonly Migration[],
  clock: Clock,
  table = 'migrations',
): Promise<void> {
  // Whatever its name, it has this form.
  const notes = table as 'migrations';
  await database.transaction(async (transaction) => {
    const tx = transaction as unknown as Kysely<MigrationTables>;
    if (database.name === 'postgres') {
      await requireUtf8(tx);
      await sql`select pg_advisory_xact_lock(${sql.lit(migrationLock)})`.execute(tx);
    }
    await sql`create table if not exists ${sql.table(notes)} (name text primary key, applied_at text not null)`.execute(tx);

    const applied = new Set((await tx.selectFrom(notes).select('name').execute()).map(({ name }) => name));
    const unknown = [...applied].filter((name) => !migrations.some((migration) => migration.name === name));
    if (unknown.length > 0) {
      throw new Error(
        `The database was written by another version, probably a newer one (it has ${unknown.join(', ')}); start that version, or restore a backup.`,
      );
    }
    for (const migration of migrations) {
      if (applied.has(migration.name)) continue;
      for (const statement of migration.up(database.name)) await sql.raw(statement).execute(tx);
      await tx.insertInto(notes).values({ name: migration.name, applied_at: clock().toISOString() }).execute();
    }
  });
}

/** A database with another encoding could not keep most texts, and would count their bytes otherwise than we do. */
async function requireUtf8(tx: Kysely<MigrationTables>): Promise<void> {
  const { rows } = await sql<{ encoding: string }>`select current_setting('server_encoding') as encoding`.execute(tx);
  const encoding = rows[0]?.encoding;
  if (encoding !== 'UTF8') throw new Error(`The database must have the encoding UTF8, not ${encoding}; create it with "encoding 'UTF8'".`);
}
