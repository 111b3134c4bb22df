import type { Row } from '../../../kit/sql/dialect.ts';

/** Which rows `findFree` looks for. */
export interface FreeSearch {
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
}

/**
 * The conditions of a search for free rows as SQL, except for its ranked column, and their parameters in order; `placeholder`
 * returns the placeholder of the n-th parameter, from 1. `column` is the column that `among` compares.
 */
export function freeSearchSql(
  column: string,
  { condition, where, among }: FreeSearch,
  placeholder: (number: number) => string,
): { conditions: string; values: (string | number)[] } {
  const values: (string | number)[] = [];
  const equal = (row: Row) =>
    Object.entries(row).map(([name, value]) => {
      values.push(value!);
      return `${name} = ${placeholder(values.length)}`;
    });
  const conditions = [condition, ...equal(where)];
  for (const other of among)
    conditions.push(`${column} in (select ${other.column} from ${other.table} where ${equal(other.where).join(' and ')})`);
  return { conditions: conditions.join(' and '), values };
}
