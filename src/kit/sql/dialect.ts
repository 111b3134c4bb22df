import { type Kysely, type QueryResult, sql } from 'kysely';

import type { Awaitable } from '../awaitable.ts';

/** A row as it is written: column to value. */
export type Row = Record<string, string | number | null>;

/** A row as a session finds it: the values of the columns asked for, in their order. */
export type Values = (string | number | null)[];

/** How rows are numbered: the row of `counters` with the key (`owner`, name) has in `value` the last number that was given. */
export interface Numbering {
  /** The column that takes the number. */
  readonly column: string;
  /** The column, of the rows and of `counters`, that says whose they are. */
  readonly owner: string;
  readonly counters: string;
  readonly name: string;
}

/** Which rows are claimed. Moments are ISO 8601 texts. */
export interface Claim {
  /** The column that says whose a row is. */
  readonly owner: string;
  /** The column with the moment from which the row is due; null: not at all. */
  readonly due: string;
  readonly now: string;
  readonly until: string;
  readonly takes: readonly { readonly owner: number; readonly quota: number }[];
}

/** Which rows `findFree` looks for. */
export interface FreeSearch {
  /** A condition of the program's own, spelled as the partial index spells it that answers the search. */
  readonly condition: string;
  /** Columns and the values they have. */
  readonly where: Row;
  /** Other tables, each of which has a row with the column's value and these of its own. */
  readonly among: readonly { readonly table: string; readonly column: string; readonly where: Row }[];
}

/** A search for free rows as SQL, and its parameters in order; `place` writes the n-th parameter, from 1. */
export function freeSearchSql(
  table: string,
  column: string,
  { condition, where, among }: FreeSearch,
  place: (number: number) => string,
): { sql: string; values: (string | number)[] } {
  const values: (string | number)[] = [];
  const equal = (row: Row) =>
    Object.entries(row).map(([name, value]) => {
      values.push(value!);
      return `${name} = ${place(values.length)}`;
    });
  const conditions = [condition, ...equal(where)];
  for (const other of among)
    conditions.push(`${column} in (select ${other.column} from ${other.table} where ${equal(other.where).join(' and ')})`);
  return { sql: `select ${column} from ${table} where ${conditions.join(' and ')} order by ${column}`, values };
}

/**
 * One open write transaction, as whole rows of whole tables: what a group of units of work writes goes through these
 * calls, each of them one round trip on PostgreSQL and a loop over one prepared statement on SQLite.
 * Table and column names are the program's own, never a caller's text.
 */
export interface Session {
  /** The rows of the table that have these keys. They are locked until the transaction ends. */
  find(table: string, columns: readonly string[], keys: readonly Row[]): Awaitable<Values[]>;
  /**
   * The rows of the table that belong to rows of another, which have these keys: `by` holds that one's `seq`. They get no
   * lock of their own, so this is for what changes only while its owner, which was found, is locked.
   */
  belonging(table: string, columns: readonly string[], by: string, owner: string, keys: readonly Row[]): Awaitable<Values[]>;
  /** The rows of the table that have these keys, without a lock: as committed when it is asked. A key of null matches null. */
  read(table: string, columns: readonly string[], keys: readonly Row[]): Awaitable<Values[]>;
  /**
   * The values of `column` of the first rows that match, in its order, locked until the transaction ends. Rows that another
   * transaction has locked are passed over, so this never waits.
   */
  findFree(table: string, column: string, search: FreeSearch, limit: number): Awaitable<string[]>;
  /** How many rows of the table have these values, without a lock. */
  count(table: string, key: Row): Awaitable<number>;
  /** So many numbers that no row of the table ever had in its generated column, in rising order. */
  reserve(table: string, column: string, count: number): Awaitable<number[]>;
  insert(table: string, rows: readonly Row[]): Awaitable<void>;
  /**
   * Takes rows that are due, of each owner the earliest, at most as many as its quota, and makes them due again at `until`:
   * until then they are the taker's. Rows that another transaction has locked are passed over, never waited for. The table
   * has its row's number in `seq`.
   */
  claim(table: string, columns: readonly string[], claim: Claim): Awaitable<Values[]>;
  /**
   * Inserts rows numbered on from the last number of their owner, in their order, and raises that number in the same
   * statement. It stays locked until the transaction ends, so the order of numbers is the order of commits for each owner.
   * Gives each owner's last number.
   */
  insertNumbered(table: string, rows: readonly Row[], numbering: Numbering): Awaitable<ReadonlyMap<number, number>>;
  /** Inserts, passing over rows that are there already. */
  insertMissing(table: string, rows: readonly Row[]): Awaitable<void>;
  /** Inserts, or overwrites the row with the same key. */
  put(table: string, key: readonly string[], rows: readonly Row[]): Awaitable<void>;
  /** Overwrites the columns of the rows with these keys. */
  update(table: string, key: readonly string[], rows: readonly Row[]): Awaitable<void>;
  /** Adds to one column of the rows with these keys, which are made when missing. */
  add(table: string, key: readonly string[], column: string, rows: readonly Row[]): Awaitable<void>;
  remove(table: string, keys: readonly Row[]): Awaitable<void>;
}

/** How a database is opened. */
export interface DatabaseOptions {
  /** Runs SQLite's long reads elsewhere: on another thread. */
  readonly executeElsewhere?: Execute | undefined;
  /** How long a long read may take on PostgreSQL, in milliseconds (5,000). */
  readonly longTimeoutMs?: number;
  /** Whether PostgreSQL reads no whole table for a long read while an index could lead it: what it knows of words is of all tenants. */
  readonly byIndex?: boolean;
}

/** Runs one statement somewhere: on a connection of this thread, or on another thread. */
export type Execute = (sql: string, parameters: readonly unknown[]) => Promise<QueryResult<Row>>;

/** A query built once and run with parameters by name. */
export interface Query<Params extends Row, Result> {
  all(params: Params): Awaitable<Result[]>;
  first(params: Params): Awaitable<Result | undefined>;
}

/** A Kysely query or any piece of it that compiles. */
interface Compilable<Result> {
  compile(): { sql: string; parameters: readonly unknown[] };
  execute(): Promise<Result[]>;
}

/** Stands for a parameter while a query is built. */
export type Parameters<Params extends Row> = { readonly [Name in keyof Params]: Params[Name] };

/** Builds a query, with stand-ins where its parameters go. */
export type Build<Tables, Params extends Row, Result> = (db: Kysely<Tables>, params: Parameters<Params>) => Compilable<Result>;

/**
 * A database as the store sees it. SQLite and PostgreSQL each give one; all that they spell differently stands in
 * `sqlite.ts` and `postgres.ts` beside this file.
 */
export interface Database<Tables> {
  readonly name: 'sqlite' | 'postgres';
  /** Reads on this thread: short ones. */
  readonly reads: Kysely<Tables>;
  /** Reads that may take long (ranking, counting, deep offsets): off this thread on SQLite. */
  readonly longReads: Kysely<Tables>;
  /**
   * A query compiled once. On PostgreSQL a `long` one takes none of the connections of short ones, and a `quick` one fails
   * after three seconds.
   */
  query<Params extends Row, Result>(
    build: Build<Tables, Params, Result>,
    options?: { long?: boolean; quick?: boolean },
  ): Query<Params, Result>;
  /**
   * Begins a view that the reads of this turn of the event loop share, where that saves something. It ends with the
   * turn and before each commit of this program, so that who was answered finds what was answered. What another
   * program commits to the same file is seen a turn later at the most.
   */
  beginView(): void;
  /**
   * What `read` gives; or, where it was asked under the same name in the view that is open, what it gave then. So
   * requests that come together and ask the same cost one read. What is given is shared, and must not be changed.
   */
  inView<T>(name: string, read: () => T): T;
  /** A transaction of single statements, for what is not on the hot path. Only SQL is awaited in it. */
  transaction<T>(work: (tx: Kysely<Tables>) => Promise<T>): Promise<T>;
  /**
   * The transaction that a group of units of work shares; one at a time for each program. One that is `remakeable` does
   * not wait for the disk, and a power cut may take it back, whole: for what is made again then.
   */
  session<T>(work: (session: Session) => Promise<T>, options?: { remakeable?: boolean }): Promise<T>;
  /** A turn at writing for somebody else (the search thread); nothing of this program writes meanwhile. */
  turn<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when the database answers. */
  ping(): Promise<void>;
  /** How many writes wait for their turn. */
  waiting(): number;
  /** Whether an insert failed because the row is there already. */
  isDuplicate(error: unknown): boolean;
  /** Whether another program's transaction got in between, so that the same work may succeed at once. */
  isOvertaken(error: unknown): boolean;
  /** Whether the database ended a read since it took too long. */
  isTooLong(error: unknown): boolean;
  /** Whether the database is out of reach, so that the same request may succeed later. */
  isUnavailable(error: unknown): boolean;
  close(): Promise<void>;
}

/** A parameter as a LIMIT or OFFSET. SQLite reads a bare one when it plans, and so would plan again at each run. */
export const bound = (count: number) => sql<number>`cast(${count} as integer)`;

const placeholder = Symbol('parameter');

/** A parameter's stand-in while a query is built: it remembers its name and is swapped for the value at each run. */
class Placeholder {
  readonly [placeholder]: string;
  constructor(name: string) {
    this[placeholder] = name;
  }
}

/** Compiles a query once: its SQL and, in order, what each parameter is: a name, or a constant. */
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

/** Runs what it is given one after the other, in order. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();
  #open = 0;

  get waiting(): number {
    return this.#open;
  }

  take<T>(work: () => Promise<T>): Promise<T> {
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

  /** Resolves when nothing is in hand. */
  async idle(): Promise<void> {
    while (this.#open > 0) await this.#last;
  }
}
