import { type Kysely, sql } from 'kysely';

import type { Database } from '../../kit/sql/dialect.ts';
import { tablesOf } from '../../kit/sql/shape.ts';
import { migrations } from './migrations/index.ts';
import type { Tables } from './tables.ts';

/** How large a database is. */
export interface Sizes {
  /** The number of rows, by table: counted on SQLite, as its statistics say on PostgreSQL. */
  readonly rows: Readonly<Record<string, number>>;
  /** The size of the whole database in bytes, with its indexes and the space that it keeps for new rows. */
  readonly bytes: number;
}

/** SQLite would read the texts of all packets to count these rows, of which each packet has one. */
const uncounted = ['contents'];

/** Measures the database with long reads, which take seconds on a large one. */
export async function measure({ name, longReads }: Database<Tables>): Promise<Sizes> {
  const tables = tablesOf(migrations)
    .map((table) => table.name)
    .filter((table) => !uncounted.includes(table));
  return name === 'sqlite' ? measureSqlite(longReads, tables) : measurePostgres(longReads, tables);
}

async function measureSqlite(db: Kysely<Tables>, tables: readonly string[]): Promise<Sizes> {
  const rows: Record<string, number> = {};
  for (const table of tables) {
    const counted = await sql<{ count: number }>`select count(*) as count from ${sql.table(table)}`.execute(db);
    rows[table] = counted.rows[0]!.count;
  }
  const size = sql<{ bytes: number }>`select page_count * page_size as bytes from pragma_page_count, pragma_page_size`;
  return { rows, bytes: (await size.execute(db)).rows[0]!.bytes };
}

async function measurePostgres(db: Kysely<Tables>, tables: readonly string[]): Promise<Sizes> {
  const { rows: found } = await sql<{ name: string; count: number }>`
    select relname as name, n_live_tup as count from pg_stat_user_tables
    where schemaname = current_schema() and relname in (${sql.join(tables)})`.execute(db);
  const { rows: whole } = await sql<{ bytes: number }>`select pg_database_size(current_database()) as bytes`.execute(db);
  return { rows: Object.fromEntries(found.map(({ name, count }) => [name, Number(count)])), bytes: Number(whole[0]!.bytes) };
}
