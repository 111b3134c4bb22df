import type { Kysely, QueryResult } from 'kysely';

import type { Awaitable } from '../awaitable.ts';

/** A row as it is written: column to value. */
export type Row = Record<string, string | number | null>;

/** A row that a session read: the values of the requested columns, in their order. */
export type Values = (string | number | null)[];

/** How rows are numbered: the row of `counters` with the key (`owner`, name) has the last assigned number in `value`. */
interface Numbering {
  /** The column for the number. */
  readonly column: string;
  /** The column of the owner, in the rows and in `counters`. */
  readonly owner: string;
  readonly counters: string;
  readonly name: string;
}

/** How many rows of an owner of a tenant to claim. */
export interface Take {
  readonly tenant: number;
  readonly owner: number;
  readonly quota: number;
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
 * The conditions of a search for free rows as SQL, except for its ranked column, and their parameters in order; `place`
 * returns the placeholder of the n-th parameter, from 1. `column` is the column that `among` compares.
 */
export function freeSearchSql(
  column: string,
  { condition, where, among }: FreeSearch,
  place: (number: number) => string,
): { conditions: string; values: (string | number)[] } {
  const values: (string | number)[] = [];
  const equal = (row: Row) =>
    Object.entries(row).map(([name, value]) => {
      values.push(value!);
      return `${name} = ${place(values.length)}`;
    });
  const conditions = [condition, ...equal(where)];
  for (const other of among)
    conditions.push(`${column} in (select ${other.column} from ${other.table} where ${equal(other.where).join(' and ')})`);
  return { conditions: conditions.join(' and '), values };
}

/**
 * An open write transaction with operations on sets of rows. A group of units of work writes through these calls; each of
 * them is one round trip on PostgreSQL, and a loop over one prepared statement on SQLite.
 * The commit waits for every write, whether or not its caller awaits it. When the work throws, its transaction is rolled
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
   * The first matching rows, in the order of the ranked values and then of the first of `columns`, locked until the
   * transaction ends. Rows locked by another transaction are skipped, so this never waits.
   */
  findFree(table: string, columns: readonly string[], search: FreeSearch, limit: number): Awaitable<Values[]>;
  /**
   * The number of rows with each of these keys that meet a constant condition, in the order of the keys, without a lock.
   * The condition is spelled exactly as in the partial index that serves the count.
   */
  count(table: string, keys: readonly Row[], condition: string): Awaitable<number[]>;
  /** Reserves `count` numbers that the table's generated column never had, in ascending order. */
  reserve(table: string, column: string, count: number): Awaitable<number[]>;
  insert(table: string, rows: readonly Row[]): Awaitable<void>;
  /**
   * Claims the earliest due rows of each owner, up to its quota, and makes them due again at `until`: the claim is a lease
   * until then. Rows locked by another transaction are skipped without waiting. The table must have a row number `seq`.
   */
  claim(table: string, columns: readonly string[], claim: Claim): Awaitable<Values[]>;
  /**
   * Inserts rows numbered from the last number of their owner, in their order, and raises that number in the same
   * statement. The number stays locked until the transaction ends, so for each owner numbers are in commit order.
   * Before the commit, each owner's last number is in `last`.
   */
  insertNumbered(table: string, rows: readonly Row[], numbering: Numbering, last: Map<number, number>): Awaitable<void>;
  /** Inserts rows, skipping those that already exist. The only write that may be sent before the transaction has begun. */
  insertMissing(table: string, rows: readonly Row[]): Awaitable<void>;
  /** Inserts rows, overwriting rows with the same key. */
  put(table: string, key: readonly string[], rows: readonly Row[]): Awaitable<void>;
  /** Updates the other columns of the rows with these keys. */
  update(table: string, key: readonly string[], rows: readonly Row[]): Awaitable<void>;
  /** Adds to one column of the rows with these keys; inserts missing rows. */
  add(table: string, key: readonly string[], column: string, rows: readonly Row[]): Awaitable<void>;
  remove(table: string, keys: readonly Row[]): Awaitable<void>;
}

/** How many characters a session or a group reads and writes before the event loop runs other work. */
export const defaultCharactersPerTurn = 2_000_000;

/** How the transaction of a session begins and ends. */
export interface SessionOptions {
  readonly asyncCommit?: boolean;
  readonly pipelined?: boolean;
}

/** How a database is opened. */
export interface DatabaseOptions {
  /** Replaces `defaultCharactersPerTurn`. */
  readonly charactersPerTurn?: number | undefined;
  /** Runs SQLite's long reads on another thread. */
  readonly executeElsewhere?: Execute | undefined;
  /** Whether PostgreSQL's statements may take as long as they need, for a program that nobody waits for. */
  readonly withoutTimeout?: boolean;
  /** The statement timeout of long reads on PostgreSQL, in milliseconds (5,000). */
  readonly longTimeoutMs?: number;
  /** Whether PostgreSQL avoids sequential scans in long reads: its word statistics cover all tenants, so it may prefer a scan wrongly. */
  readonly byIndex?: boolean;
}

/** Runs one statement, on a connection of this thread or on another thread. */
export type Execute = (sql: string, parameters: readonly unknown[]) => Promise<QueryResult<Row>>;

/** A query that is compiled once and run with named parameters. */
export interface Query<Params extends Row, Result> {
  all(params: Params): Awaitable<Result[]>;
  first(params: Params): Awaitable<Result | undefined>;
}

/** A Kysely query. */
interface Compilable<Result> {
  compile(): { sql: string; parameters: readonly unknown[] };
  execute(): Promise<Result[]>;
}

/** Placeholders for the parameters while a query is built. */
export type Parameters<Params extends Row> = { readonly [Name in keyof Params]: Params[Name] };

/** Builds a query with placeholders for its parameters. */
export type Build<Tables, Params extends Row, Result> = (db: Kysely<Tables>, params: Parameters<Params>) => Compilable<Result>;

/**
 * A database as a store sees it. Everything that SQLite and PostgreSQL spell differently is in the `sqlite*.ts` files and
 * in `postgres.ts` beside this file.
 */
export interface Database<Tables> {
  readonly name: 'sqlite' | 'postgres';
  /** How many characters a session or a group reads and writes before the event loop runs other work. */
  readonly charactersPerTurn: number;
  /** Short reads. On SQLite they run on this thread. */
  readonly reads: Kysely<Tables>;
  /** Reads that may take long (ranking, counting, deep offsets). On SQLite they run on another thread. */
  readonly longReads: Kysely<Tables>;
  /**
   * A query compiled once. On PostgreSQL a `long` query uses a connection pool of its own, and a `quick` one fails after
   * three seconds.
   */
  query<Params extends Row, Result>(
    build: Build<Tables, Params, Result>,
    options?: { long?: boolean; quick?: boolean },
  ): Query<Params, Result>;
  /**
   * Opens a view: a snapshot that the reads of this turn of the event loop share, on SQLite. It ends with the turn and before
   * each commit of this process, so that a client reads its own acknowledged writes. A commit of another process to the
   * same file is visible one turn later at most.
   */
  beginView(): void;
  /**
   * Returns the result of `read`, or the result that an earlier call with the same name got in the open view. Identical
   * requests that arrive together so cost one read. The result is shared and must not be modified.
   */
  inView<T>(name: string, read: () => T): T;
  /** Reads that all see the same moment, for as long as they take. They delay no writer, unless the database is in memory. */
  snapshot<T>(work: (tx: Kysely<Tables>) => Promise<T>): Promise<T>;
  /**
   * A transaction of single statements, for work that is not on the hot path. Only SQL may be awaited in it. On PostgreSQL
   * it runs again after a deadlock or a serialization failure, so `work` must have no other effects.
   */
  transaction<T>(work: (tx: Kysely<Tables>) => Promise<T>): Promise<T>;
  /**
   * A transaction that a group of units of work shares; each process runs one at a time. With `asyncCommit` the commit does
   * not wait for the disk, and a power failure may undo the whole transaction: for work that is then simply repeated.
   * With `pipelined`, PostgreSQL gets the first reads of the work together with `begin`, which saves a round trip. It runs
   * the work again after a deadlock or a serialization failure, so `work` must have no other effects.
   */
  session<T>(work: (session: Session) => Promise<T>, options?: SessionOptions): Promise<T>;
  /** Runs the work of another writer, the search thread. On SQLite no transaction of this thread is open meanwhile. */
  betweenTransactions<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when the database responds. */
  ping(): Promise<void>;
  /** The number of writes that are pending or in progress. */
  waiting(): number;
  /** Whether an insert failed because the row already exists. */
  isDuplicate(error: unknown): boolean;
  /** Whether a concurrent transaction of another instance made this one fail, so that an immediate retry may succeed. */
  isConflict(error: unknown): boolean;
  /** Whether the database cancelled a read at the statement timeout. */
  isTimeout(error: unknown): boolean;
  /** Whether the database is unavailable, so that the same request may succeed later. */
  isUnavailable(error: unknown): boolean;
  close(): Promise<void>;
}

const placeholder = Symbol('parameter');

/** The placeholder of a parameter while a query is built. Its value is bound by name at each run. */
class Placeholder {
  readonly [placeholder]: string;
  constructor(name: string) {
    this[placeholder] = name;
  }
}

/** Compiles a query once: its SQL, and `bind`, which returns the values for its placeholders in order. */
export function compileOnce<Tables, Params extends Row, Result>(
  db: Kysely<Tables>,
  build: Build<Tables, Params, Result>,
): { sql: string; bind(params: Params): (string | number | null)[] } {
  const params = new Proxy({}, { get: (_, name) => new Placeholder(String(name)) }) as Parameters<Params>;
  const compiled = build(db, params).compile();
  const order = compiled.parameters.map((value) =>
    value instanceof Placeholder ? { name: value[placeholder] } : { constant: value as string | number | null },
  );
  return {
    sql: compiled.sql,
    bind: (values) => order.map((slot) => ('name' in slot ? (values[slot.name] ?? null) : slot.constant)),
  };
}

/** Runs asynchronous work one piece at a time, in the order of the calls. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();
  #open = 0;

  /** The number of pieces that are pending or in progress. */
  get waiting(): number {
    return this.#open;
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    this.#open += 1;
    const mine = this.#last.then(work);
    const done = mine.then(
      () => undefined,
      () => undefined,
    );
    this.#last = done;
    void done.then(() => {
      this.#open -= 1;
    });
    return mine;
  }

  /** Resolves when no work is pending or in progress. */
  async idle(): Promise<void> {
    while (this.#open > 0) await this.#last;
  }
}
