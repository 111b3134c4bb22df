import { type Kysely, sql } from 'kysely';

import type { Clock } from '../clock.ts';
import type { Database } from './dialect.ts';

/** One step of a schema, never edited once released. `up` returns the statements for a database. */
export interface Migration {
  /** Four digits and a name, for example `0001-first`. */
  readonly name: string;
  readonly up: (database: Database<unknown>['name']) => readonly string[];
}

/** The key of the advisory lock that makes instances migrate one at a time: any number unused elsewhere in the database. */
const migrationLock = 7_269_001;

interface MigrationTables {
  migrations: { name: string; applied_at: string };
}

/** Where migrations are applied, and where they are recorded. */
interface Target {
  readonly migrations: readonly Migration[];
  readonly clock: Clock;
  /** Services that share a database have one table each. */
  readonly table: string;
}

/**
 * Applies the missing migrations and records them in a table. Instances that start together migrate one after another; the later
 * ones find nothing left to do. A database of any earlier version is migrated.
 * @throws Error when the database was migrated by a newer version of the program, or its encoding is not UTF8
 */
export async function migrate<Tables>(
  database: Database<Tables>,
  migrations: readonly Migration[],
  clock: Clock,
  table = 'migrations',
): Promise<void> {
  await database.transaction(async (tx) => {
    if (database.name === 'postgres') await lockForMigration(tx as unknown as Kysely<unknown>);
    await migrateWithin(tx as unknown as Kysely<unknown>, database, { migrations, clock, table });
  });
}

/** Waits until no other instance migrates, and keeps others waiting until the transaction ends. */
export async function lockForMigration(tx: Kysely<unknown>): Promise<void> {
  await requireUtf8(tx);
  await sql`select pg_advisory_xact_lock(${sql.lit(migrationLock)})`.execute(tx);
}

/** Like `migrate`, in a transaction that holds the lock. */
export async function migrateWithin(
  transaction: Kysely<unknown>,
  database: Pick<Database<unknown>, 'name'>,
  { migrations, clock, table }: Target,
): Promise<void> {
  const tx = transaction as Kysely<MigrationTables>;
  // Every such table has the columns of `migrations`.
  const migrationsTable = table as 'migrations';
  await sql`create table if not exists ${sql.table(migrationsTable)} (name text primary key, applied_at text not null)`.execute(tx);

  const applied = new Set((await tx.selectFrom(migrationsTable).select('name').execute()).map(({ name }) => name));
  const unknown = [...applied].filter((name) => !migrations.some((migration) => migration.name === name));
  if (unknown.length > 0) {
    throw new Error(
      `The database was written by another version, probably a newer one (it has ${unknown.join(', ')}); start that version, or restore a backup.`,
    );
  }
  for (const migration of migrations) {
    if (applied.has(migration.name)) continue;
    for (const statement of migration.up(database.name)) await sql.raw(statement).execute(tx);
    await tx.insertInto(migrationsTable).values({ name: migration.name, applied_at: clock().toISOString() }).execute();
  }
}

/** Another encoding can't store every text, and its byte lengths would differ from ours. */
async function requireUtf8(tx: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ encoding: string }>`select current_setting('server_encoding') as encoding`.execute(tx);
  const encoding = rows[0]?.encoding;
  if (encoding !== 'UTF8') throw new Error(`The database must have the encoding UTF8, not ${encoding}; create it with "encoding 'UTF8'".`);
}
