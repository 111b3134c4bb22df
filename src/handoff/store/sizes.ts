import { type Kysely, sql } from 'kysely';

import type { Database } from '../../kit/sql/dialect.ts';
import { sumOverServers } from '../../kit/sql/distribution.ts';
import { tablesOf } from '../../kit/sql/shape.ts';
import { migrations } from './migrations/index.ts';
import type { Tables } from './tables.ts';

/** How large a database is. */
export interface Sizes {
  /** The number of rows, by table: counted on SQLite, as its statistics say on PostgreSQL; on a cluster those of all servers. */
  readonly rows: Readonly<Record<string, number>>;
  /** The size of the whole database in bytes, with its indexes and the space that it keeps for new rows. */
  readonly bytes: number;
}

/** SQLite would read the texts of all packets to count these rows, of which each packet has one. */
const uncounted = ['contents'];

/** Measures the database with long reads, which take seconds on a large one. */
export async function measure({ name, isDistributed, longReads }: Database<Tables>): Promise<Sizes> {
  const tables = tablesOf(migrations)
    .map((table) => table.name)
    .filter((table) => !uncounted.includes(table));
  if (isDistributed) return measureCluster(longReads as unknown as Kysely<unknown>, tables);
  return name === 'sqlite' ? measureSqlite(longReads, tables) : measurePostgres(longReads, tables);
}

async function measureCluster(db: Kysely<unknown>, tables: readonly string[]): Promise<Sizes> {
  const rows = await sumOverServers(db, 'pg_stat_user_tables where schemaname = current_schema()', 'relname', 'n_live_tup');
  const bytes = await sumOverServers(db, 'pg_database where datname = current_database()', `''`, 'pg_database_size(oid)');
  return { rows: Object.fromEntries(tables.map((table) => [table, rows.get(table) ?? 0])), bytes: bytes.get('') ?? 0 };
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
