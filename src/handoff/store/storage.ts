import { type Kysely, sql } from 'kysely';

import type { Database } from '../../kit/sql/dialect.ts';
import type { TableShape } from '../../kit/sql/shape.ts';

/** What a table holds. */
export interface TableStorage {
  readonly table: string;
  readonly rows: number;
  /** With its indexes, and the space within its pages that is free. */
  readonly bytes: number;
}

/** The rows and bytes of tables, the largest first. Counts every row, so it takes as long as reading the indexes. */
export async function storageOf({ name, reads }: Database<unknown>, tables: readonly Pick<TableShape, 'name'>[]): Promise<TableStorage[]> {
  const bytes = await (name === 'sqlite' ? bytesInSqlite(reads) : bytesInPostgres(reads));
  const found: TableStorage[] = [];
  for (const { name: table } of tables) {
    const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(table)}`.execute(reads);
    found.push({ table, rows: Number(rows[0]!.count), bytes: bytes.get(table) ?? 0 });
  }
  return found.toSorted((one, other) => other.bytes - one.bytes);
}

async function bytesInSqlite(reads: Kysely<unknown>): Promise<Map<string, number>> {
  const { rows } = await sql<{ table: string; bytes: number }>`
    select tbl_name as "table", sum(pgsize) as bytes from dbstat join sqlite_schema using (name) group by tbl_name`.execute(reads);
  const bytes = new Map<string, number>();
  // A virtual table has its data in tables whose names begin with its own.
  for (const { table, bytes: size } of rows) {
    const name = /^search_index_\w+$/.test(table) ? 'search_index' : table;
    bytes.set(name, (bytes.get(name) ?? 0) + size);
  }
  return bytes;
}

async function bytesInPostgres(reads: Kysely<unknown>): Promise<Map<string, number>> {
  const { rows } = await sql<{ table: string; bytes: number }>`
    select relname as "table", pg_total_relation_size(oid) as bytes from pg_class
    where relkind = 'r' and relnamespace = current_schema()::regnamespace`.execute(reads);
  return new Map(rows.map(({ table, bytes }) => [table, Number(bytes)]));
}
