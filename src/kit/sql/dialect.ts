import type { StatementSync } from 'node:sqlite';
import type { Kysely, QueryResult } from 'kysely';

import type { Awaitable } from '../awaitable.ts';

/** A row as it is written: column to value. */
export type Row = Record<string, string | number | null>;

/** A row that a session read: the values of the requested columns, in their order. */
export type Values = (string | number | null)[];

/** An open write transaction: what a program runs its own statements on. */
type WriteTransaction = SqliteTransaction | PostgresTransaction;

/** On SQLite, statements run at once. */
export interface SqliteTransaction {
  readonly name: 'sqlite';
  /** A statement, prepared once. */
  statement(sql: string): StatementSync;
  /** A statement that returns each row as an array. */
  valuesStatement(sql: string): StatementSync;
}

/** On PostgreSQL, statements are pipelined: those that do not depend on each other's results are sent together. */
export interface PostgresTransaction {
  readonly name: 'postgres';
  /** Settles when the transaction has begun. Only work that is `pipelined` starts earlier; it awaits this before it writes. */
  readonly begun: Promise<unknown>;
  /** @throws Error when the transaction has not begun */
  requireBegun(): void;
  /** Runs a statement, which is prepared once. @throws Error when the transaction has ended */
  run(text: string, values?: readonly unknown[]): Promise<Values[]>;
  /** Lets the commit wait for a statement that nobody awaits. */
  track(running: Promise<unknown>): void;
}

/** How many characters a transaction reads and writes before the event loop runs other work. */
export const defaultCharactersPerTurn = 2_000_000;

/** How a write transaction begins and ends. */
export interface WriteOptions {
  readonly asyncCommit?: boolean;
  readonly pipelined?: boolean;
}

/** How a database is opened. */
export interface DatabaseOptions {
  /** Replaces `defaultCharactersPerTurn`. */
  readonly charactersPerTurn?: number | undefined;
  /** Whether a SQLite file is only read, and stays as it is: it may be of another program. */
  readonly readOnly?: boolean;
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
type Parameters<Params extends Row> = { readonly [Name in keyof Params]: Params[Name] };

/** Builds a query with placeholders for its parameters. */
export type Build<Tables, Params extends Row, Result> = (db: Kysely<Tables>, params: Parameters<Params>) => Compilable<Result>;

/**
 * A database as a store sees it. Everything that SQLite and PostgreSQL spell differently is in the `sqlite*.ts` files and
 * in `postgres.ts` beside this file.
 */
export interface Database<Tables> {
  readonly name: 'sqlite' | 'postgres';
  /** How many characters a transaction reads and writes before the event loop runs other work. */
  readonly charactersPerTurn: number;
  /** Short reads. On SQLite they run on this thread. */
  readonly reads: Kysely<Tables>;
  /** Reads that may take long (ranking, counting, deep offsets). On SQLite they run on another thread. */
  readonly longReads: Kysely<Tables>;
  /**
   * A query compiled once. On PostgreSQL a `quick` one fails after three seconds.
   */
  query<Params extends Row, Result>(build: Build<Tables, Params, Result>, options?: { quick?: boolean }): Query<Params, Result>;
  /**
   * Begins a read transaction that the reads of this turn of the event loop share, on SQLite. It ends with the turn and before
   * each commit of this process, so that a client reads its own acknowledged writes. A commit of another process to the
   * same file is visible one turn later at most.
   */
  beginTurnReads(): void;
  /**
   * Returns the result of `read`, or the result that an earlier call with the same name got in this turn. Identical
   * requests that arrive together so cost one read. The result is shared and must not be modified.
   */
  readonly shareInTurn: <T>(name: string, read: () => T) => T;
  /** Reads that all see the same moment, for as long as they take. They delay no writer, unless the database is in memory. */
  snapshot<T>(work: (tx: Kysely<Tables>) => Promise<T>): Promise<T>;
  /**
   * A transaction of single statements, for work that is not on the hot path. Only SQL may be awaited in it. On PostgreSQL
   * it runs again after a deadlock or a serialization failure, so `work` must have no other effects.
   */
  transaction<T>(work: (tx: Kysely<Tables>) => Promise<T>): Promise<T>;
  /**
   * A write transaction; the process runs one at a time. With `asyncCommit` the commit does
   * not wait for the disk, and a power failure may undo the whole transaction: for work that is then simply repeated.
   * With `pipelined`, PostgreSQL gets the first reads of the work together with `begin`, which saves a round trip. It runs
   * the work again after a deadlock or a serialization failure, so `work` must have no other effects.
   */
  write<T>(work: (tx: WriteTransaction) => Promise<T>, options?: WriteOptions): Promise<T>;
  /** Runs the work of another writer, the search thread. On SQLite no transaction of this thread is open meanwhile. */
  betweenTransactions<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when the database responds. */
  ping(): Promise<void>;
  /** The number of writes that are pending or in progress. */
  waiting(): number;
  /** Whether an insert failed because the row already exists. */
  readonly isDuplicate: (error: unknown) => boolean;
  /** Whether a concurrent transaction of another instance made this one fail, so that an immediate retry may succeed. */
  isConflict(error: unknown): boolean;
  /** Whether the database cancelled a read at the statement timeout. */
  readonly isTimeout: (error: unknown) => boolean;
  /** Whether the database is unavailable, so that the same request may succeed later. */
  readonly isUnavailable: (error: unknown) => boolean;
  /** Whether a write found no space on the disk. */
  readonly isFull: (error: unknown) => boolean;
  /** Writes without a change, to see whether the disk has space. PostgreSQL is not asked, since it stops when there is none for its log. */
  readonly tryWrite: () => Promise<void>;
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
): { sql: string; bind: (params: Params) => (string | number | null)[] } {
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
    const result = this.#last.then(work);
    const done = () => {
      this.#open -= 1;
    };
    this.#last = result.then(done, done);
    return result;
  }

  /** Resolves when no work is pending or in progress. */
  async idle(): Promise<void> {
    while (this.#open > 0) await this.#last;
  }
}
