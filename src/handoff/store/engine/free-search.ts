import type { Row } from '../../../kit/sql/dialect.ts';

/** Which rows `findFree` looks for. */
export interface FreeSearch {
  /** The column by which rows are ordered. */
  readonly id: string;
  /** A column that orders rows before their id. All rows have a value there, in which a space comes before every other character. */
  readonly by?: string;
  /** A constant condition, spelled exactly as in the partial index that serves the search. */
  readonly condition: string;
  /** Columns and their values. */
  readonly where: Row;
  /** A column and the values that it may have, in the order in which rows are wanted. */
  readonly ranked: { readonly column: string; readonly values: readonly string[] };
  /** Other tables that must each have a row with the column's value and with these values. */
  readonly among: readonly { readonly table: string; readonly column: string; readonly where: Row }[];
  /**
   * Whether the index that serves the search has nulls first in its last column, as no other index of the table has, so that
   * PostgreSQL can use only that one. It may otherwise read and filter any index with the wanted order from its beginning.
   */
  readonly nullsFirst: boolean;
  /** The trail that tells which rows have become free, or have changed and are free. */
  readonly since: {
    readonly table: string;
    /** The columns with the id of the row, and with the position, which rises with each commit of the tenant. */
    readonly id: string;
    readonly position: string;
    readonly tenant: number;
    /** A constant condition. */
    readonly condition: string;
  };
}

/**
 * The conditions of a search for free rows as SQL, except for its ranked column and for the beginning of the search. `parameter` adds a
 * parameter and returns its placeholder.
 */
export function freeSearchSql({ id, condition, where, among }: FreeSearch, parameter: (value: string | number) => string): string {
  const equal = (row: Row) => Object.entries(row).map(([name, value]) => `${name} = ${parameter(value!)}`);
  const conditions = [condition, ...equal(where)];
  for (const other of among)
    conditions.push(`${id} in (select ${other.column} from ${other.table} where ${equal(other.where).join(' and ')})`);
  return conditions.join(' and ');
}

/** The order of the rows of a search, as in the index that serves it. */
export const orderOf = ({ id, by }: FreeSearch): string => (by === undefined ? id : `${by}, ${id}`);

/** The place of a row in that order as one text, which compares as the order does. */
export const placeSql = ({ id, by }: FreeSearch): string => (by === undefined ? id : `${by} || ' ' || ${id}`);

/** The id of a row whose place is given. */
export const idAt = (place: string): string => place.slice(place.indexOf(' ') + 1);

/** The value of `by` of a row whose place is given; empty if the place is empty. */
export const byAt = (place: string): string => place.slice(0, Math.max(0, place.indexOf(' ')));
