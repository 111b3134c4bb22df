import { DatabaseSync } from 'node:sqlite';

import type { Migration } from './migrate.ts';

/** A table of a schema, as both databases have it. */
export interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
  /** The columns that hold text. */
  readonly texts: readonly string[];
  /** The columns of its primary key, in its order. */
  readonly key: readonly string[];
  /** The column whose values the database assigns in ascending order and never again; undefined: none. */
  readonly numbered: string | undefined;
}

/**
 * The tables that migrations make, in the order of their creation, so that a row comes after those it refers to. Virtual tables
 * of SQLite and what belongs to them are left out: they are indexes.
 * @throws Error when a table has no primary key
 */
export function tablesOf(migrations: readonly Migration[]): TableShape[] {
  const database = new DatabaseSync(':memory:');
  try {
    for (const { up } of migrations) for (const statement of up('sqlite')) database.exec(statement);
    const tables = database
      .prepare(
        `select sqlite_schema.name, sqlite_schema.sql from sqlite_schema join pragma_table_list listed on listed.name = sqlite_schema.name
          where listed.schema = 'main' and listed.type = 'table' and sqlite_schema.name not like 'sqlite\\_%' escape '\\' order by sqlite_schema.rowid`,
      )
      .all() as { name: string; sql: string }[];
    const columnsOf = database.prepare('select name, type, pk from pragma_table_info(?) order by cid');
    return tables.map(({ name, sql }) => shapeOf(name, sql, columnsOf.all(name) as unknown as Column[]));
  } finally {
    database.close();
  }
}

interface Column {
  readonly name: string;
  readonly type: string;
  /** Its number in the primary key from 1; 0: it is not in it. */
  readonly pk: number;
}

function shapeOf(name: string, sql: string, columns: readonly Column[]): TableShape {
  const key = columns
    .filter(({ pk }) => pk > 0)
    .toSorted((one, other) => one.pk - other.pk)
    .map((column) => column.name);
  if (key.length === 0) throw new Error(`The table ${name} has no primary key.`);
  const texts = columns.filter(({ type }) => type.toLowerCase() === 'text').map((column) => column.name);
  const numbered = /\bautoincrement\b/i.test(sql) ? key[0] : undefined;
  return { name, columns: columns.map((column) => column.name), texts, key, numbered };
}
