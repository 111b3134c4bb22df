import type { Awaitable } from '../../../kit/awaitable.ts';
import type { Row, Values } from '../../../kit/sql/dialect.ts';
import type { Beginnings } from './beginnings.ts';
import type { FreeSearch } from './free-search.ts';

/** How many rows of an owner of a tenant to claim. Only rows that are due at `from` or later are claimed. */
export interface Take {
  readonly tenant: number;
  readonly owner: number;
  readonly quota: number;
  readonly from: string;
}

/** Another table, whose column `by` is the `seq` of a row of the same tenant, and the column to read from it. */
export interface Belonging {
  readonly table: string;
  readonly column: string;
  readonly by: string;
}

/** Which rows to claim. Times are ISO 8601 texts. */
export interface Claim {
  /** The column of a row's owner. */
  readonly owner: string;
  /** The column with the time from which the row is due; null: never. */
  readonly due: string;
  readonly now: string;
  readonly until: string;
  readonly takes: readonly Take[];
}

/**
 * An open write transaction with operations on sets of rows. A group of units of work writes through these calls; each of
 * them is one round trip on PostgreSQL, and a loop over one prepared statement on SQLite.
 * Calls run in their order, and the commit waits for all of them and fails if one fails, so nothing waits for a write. When the work throws, its transaction is rolled
 * back, and calls that come later are refused.
 * Table and column names are constants of the program, never a caller's text.
 */
export interface Session {
  readonly name: 'sqlite' | 'postgres';
  /** Settles when the transaction has begun. Only work that is `pipelined` starts earlier; it awaits this before it writes. */
  readonly begun: Awaitable<unknown>;
  /** The rows of the table with these keys, locked until the transaction ends. */
  find(table: string, columns: readonly string[], keys: readonly Row[]): Awaitable<Values[]>;
  /**
   * Like `find`, each row followed by a value of the row of another table that belongs to it. That row is not locked, so it
   * must change only while its owner is locked. `columns` includes `seq`.
   */
  findWith(table: string, columns: readonly string[], more: Belonging, keys: readonly Row[]): Awaitable<Values[]>;
  /** The rows of the table with these keys, as committed at the time of the call and without a lock. Null in a key matches null. */
  read(table: string, columns: readonly string[], keys: readonly Row[]): Awaitable<Values[]>;
  /**
   * The first matching rows, in the order of the ranked values and then of their id, locked until the
   * transaction ends. Rows locked by another transaction are skipped, so this never waits. `beginnings`: where each search begins.
   */
  findFree(table: string, columns: readonly string[], search: FreeSearch, limit: number, beginnings: Beginnings): Awaitable<Values[]>;
  /** The number of rows with each of these keys, in the order of the keys, without a lock. */
  count(table: string, keys: readonly Row[]): Awaitable<number[]>;
  /** Reserves `count` numbers that the table's generated column never had, in ascending order. */
  reserve(table: string, column: string, count: number): Awaitable<number[]>;
  insert(table: string, rows: readonly Row[]): void;
  /**
   * Claims the earliest due rows of each owner, up to its quota, and makes them due again at `until`: the claim is a lease
   * until then. Rows locked by another transaction are skipped without waiting. The table must have a row number `seq`.
   */
  claim(table: string, columns: readonly string[], claim: Claim): Awaitable<Values[]>;
  /** Inserts rows, skipping those that already exist. The only write that may be sent before the transaction has begun. */
  insertMissing(table: string, rows: readonly Row[]): void;
  /** Inserts rows, overwriting rows with the same key. */
  put(table: string, key: readonly string[], rows: readonly Row[]): void;
  /** Updates the other columns of the rows with these keys. */
  update(table: string, key: readonly string[], rows: readonly Row[]): void;
  /** Adds to one column of the rows with these keys; inserts missing rows. */
  add(table: string, key: readonly string[], column: string, rows: readonly Row[]): void;
  remove(table: string, keys: readonly Row[]): void;
}
