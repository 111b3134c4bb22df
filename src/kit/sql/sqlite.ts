import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';

import { type Awaitable, nextTurn, pauseFor } from '../awaitable.ts';
import {
  compileOnce,
  type Database,
  type DatabaseOptions,
  type Execute,
  freeSearchSql,
  type Row,
  type Session,
  Turns,
  type Values,
} from './dialect.ts';

/** SQLite's code for a file that another connection is writing to. */
const busy = 5;

/** SQLite's code for a file that may not be written. */
const readOnlyCode = 8;

/** How many answers a view keeps for those who ask the same. */
const maxKnown = 100;

/** How many compiled statements a connection keeps. */
const maxStatements = 500;

/** A connection with its statements compiled once, by their text. */
export class SqliteConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #valuesStatements = new Map<string, StatementSync>();

  constructor(path: string, { readOnly = false } = {}) {
    this.#database = new DatabaseSync(path, { readOnly, timeout: 5000 });
    // Of pages of 8 KiB fewer are written for a packet than of the usual 4. They last from the file's beginning on.
    if (!readOnly) this.exec('pragma page_size = 8192');
    // WAL lets readers and the writer go on beside one another; FULL makes a commit outlive a power cut; a small
    // checkpoint (4 MiB) keeps the WAL short, and with it the longest pause of a commit.
    if (!readOnly) this.exec('pragma journal_mode = wal');
    this.exec('pragma synchronous = full');
    this.exec('pragma wal_autocheckpoint = 500');
    this.exec('pragma journal_size_limit = 67108864');
    this.exec('pragma foreign_keys = on');
    this.exec('pragma temp_store = memory');
    // Not larger: a commit that has split a page looks through the whole table of cached pages.
    this.exec('pragma cache_size = -16384');
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  statement(sql: string): StatementSync {
    return this.#statements.get(sql) ?? this.#prepare(this.#statements, sql);
  }

  /** The statement, giving each row as an array: an object that SQLite's binding makes is much dearer to make and to read. */
  valuesStatement(sql: string): StatementSync {
    const known = this.#valuesStatements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#prepare(this.#valuesStatements, sql);
    statement.setReturnArrays(true);
    return statement;
  }

  #prepare(statements: Map<string, StatementSync>, sql: string): StatementSync {
    // Lists with optional filters have many texts; dropping the oldest keeps the map bounded.
    if (statements.size >= maxStatements) statements.delete(statements.keys().next().value!);
    const statement = this.#database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }

  all(sql: string, parameters: readonly unknown[]): Row[] {
    return this.statement(sql).all(...(parameters as SQLInputValue[])) as Row[];
  }

  run(sql: string, parameters: readonly unknown[]): { changes: number } {
    const { changes } = this.statement(sql).run(...(parameters as SQLInputValue[]));
    return { changes: Number(changes) };
  }

  close(): void {
    this.#statements.clear();
    this.#valuesStatements.clear();
    this.#database.close();
  }
}

/** Runs a statement on the connection, whatever it is. */
export function executeOn(connection: SqliteConnection): Execute {
  return async (sql, parameters) => {
    const statement = connection.statement(sql);
    if (statement.columns().length > 0) return { rows: connection.all(sql, parameters) };
    const { changes } = connection.run(sql, parameters);
    return { rows: [], numAffectedRows: BigInt(changes) };
  };
}

/** Kysely over an `Execute`. Transactions are not Kysely's here: `session` and `transaction` below open them. */
export function kyselyOver<Tables>(execute: Execute): Kysely<Tables> {
  const connection: DatabaseConnection = {
    executeQuery: <R>({ sql, parameters }: CompiledQuery) => execute(sql, parameters) as Promise<QueryResult<R>>,
    streamQuery() {
      throw new Error('Rows are not streamed.');
    },
  };
  const refuse = async () => {
    throw new Error('Transactions are opened by the database, not by Kysely.');
  };
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => connection,
    releaseConnection: async () => undefined,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    destroy: async () => undefined,
  };
  const dialect: Dialect = {
    createDriver: () => driver,
    createAdapter: () => new SqliteAdapter(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
  return new Kysely<Tables>({ dialect });
}

/** The file an address names: what follows `sqlite://`, or `:memory:`. */
export function sqlitePath(url: string): string {
  return url === 'sqlite::memory:' ? ':memory:' : url.slice('sqlite://'.length);
}

/**
 * A SQLite database. A file has a connection that writes and one that reads, so that a read never sees a transaction
 * in hand; in memory there is one connection, and reads wait for the transaction in hand to end.
 */
export function openSqlite<Tables>(url: string, { executeElsewhere }: DatabaseOptions = {}): Database<Tables> {
  const path = sqlitePath(url);
  const inMemory = path === ':memory:';
  const { writer, reader } = openConnections(path, inMemory);
  // From here on whoever waits for another program's write does so in `begin`, and not in the event loop's time.
  writer.exec('pragma busy_timeout = 0');
  const turns = new Turns();

  // In memory, reads and writes share a connection: a read waits until no transaction is in hand.
  const whenSettled = <T>(read: () => T): Awaitable<T> => (inMemory && turns.waiting > 0 ? turns.idle().then(read) : read());
  const executeReader = executeOn(reader);
  const view = createView(reader);
  const reads = kyselyOver<Tables>(async (sql, parameters) => whenSettled(() => executeReader(sql, parameters)));
  const writes = kyselyOver<Tables>(executeOn(writer));

  function inTransaction<T>(work: () => Promise<T>, remakeable = false): Promise<T> {
    return turns.take(async () => {
      if (remakeable) writer.exec('pragma synchronous = normal');
      try {
        await begin(writer);
        const result = await work();
        // An open view would keep the checkpoint from emptying the WAL, and this commit from those who read next.
        if (!inMemory) view.close();
        writer.exec('commit');
        return result;
      } catch (error) {
        rollBack(writer);
        throw error;
      } finally {
        if (remakeable) writer.exec('pragma synchronous = full');
      }
    });
  }

  return {
    name: 'sqlite',
    reads,
    longReads: executeElsewhere === undefined ? reads : kyselyOver<Tables>(executeElsewhere),
    query(build) {
      const { sql, bind } = compileOnce(reads, build);
      let names: string[] | undefined;
      const namesOf = (statement: StatementSync) => {
        names ??= statement.columns().map(({ name }) => name);
        return names;
      };
      return {
        all: (params) =>
          whenSettled(() => {
            const statement = reader.valuesStatement(sql);
            const all = statement.all(...bind(params)) as unknown as Values[];
            return all.map((values) => rowOf(namesOf(statement), values)) as never;
          }),
        first: (params) =>
          whenSettled(() => {
            const statement = reader.valuesStatement(sql);
            const values = statement.get(...bind(params)) as unknown as Values | undefined;
            return (values && rowOf(namesOf(statement), values)) as never;
          }),
      };
    },
    beginView: inMemory ? () => undefined : view.begin,
    inView: view.share,
    transaction: (work) => inTransaction(() => work(writes)),
    session: (work, { remakeable } = {}) => inTransaction(() => work(sqliteSession(writer)), remakeable),
    turn: (work) => turns.take(work),
    async ping() {
      if (inMemory) return;
      // What is in the caches tells nothing of the file, so it is opened anew.
      const fresh = new SqliteConnection(path, { readOnly: true });
      try {
        fresh.all('select count(*) from sqlite_schema', []);
      } finally {
        fresh.close();
      }
    },
    waiting: () => turns.waiting,
    // Whoever writes holds the whole database from the beginning of its transaction.
    isOvertaken: () => false,
    isDuplicate: (error) => [1555, 2067].includes(errorNumber(error)),
    // Nothing ends a read here; those that take long are bounded in what they read.
    isTooLong: () => false,
    // Busy, locked, read-only, I/O error, full disk, cannot open: the low byte of SQLite's extended codes.
    isUnavailable: (error) => [5, 6, 8, 10, 13, 14].includes(errorNumber(error) & 0xff),
    async close() {
      await turns.idle();
      view.close();
      if (reader !== writer) reader.close();
      writer.close();
    },
  };
}

/**
 * The connection that writes and the one that reads. A relative path's folder is made when missing.
 * @throws Error that names the file, when it can't be opened, can't be written or is no database
 */
function openConnections(path: string, inMemory: boolean): { writer: SqliteConnection; reader: SqliteConnection } {
  let writer: SqliteConnection | undefined;
  try {
    if (!inMemory) mkdirSync(dirname(path), { recursive: true });
    writer = new SqliteConnection(path);
    return { writer, reader: inMemory ? writer : new SqliteConnection(path, { readOnly: true }) };
  } catch (error) {
    writer?.close();
    const { errcode, message } = error as { errcode?: number; message: string };
    if ((errcode ?? 0) % 256 === readOnlyCode)
      throw new Error(`The database file ${path} can't be written: this user may only read it, or its file system is read-only.`, {
        cause: error,
      });
    throw new Error(`The database file ${path} can't be used: ${message}.`, { cause: error });
  }
}

/**
 * A read transaction that the reads of one turn of the event loop share, since taking and giving back the WAL's locks
 * costs more than reading a row. It ends with the turn, and before each commit of this program.
 */
function createView(connection: SqliteConnection): { begin(): void; share<T>(name: string, read: () => T): T; close(): void } {
  let open = false;
  const known = new Map<string, unknown>();
  function close(): void {
    // SQLite may have ended the transaction by itself, after a failed read.
    if (open && connection.isInTransaction) {
      try {
        connection.run('commit', []);
      } catch {
        // Nothing was written. What a damaged page does to a read, its reader is told; others go on.
        rollBack(connection);
      }
    }
    open = false;
    known.clear();
  }
  return {
    begin() {
      if (open) return;
      connection.run('begin', []);
      open = true;
      setImmediate(close);
    },
    share<T>(name: string, read: () => T): T {
      if (known.has(name)) return known.get(name) as T;
      const value = read();
      // What has to be waited for may be read in more views than this one.
      if (open && known.size < maxKnown && !(value instanceof Promise)) known.set(name, value);
      return value;
    },
    close,
  };
}

/** How many characters are written before others get their turn. */
const maxLength = 2_000_000;

/** How long another program's write is waited for, try by try, in milliseconds: five seconds in all. */
const pauses = [1, 2, 5, 10, 15, 20, 25, 25, 25, ...Array<number>(98).fill(50)];

/** Begins a transaction that writes. */
async function begin(connection: SqliteConnection): Promise<void> {
  for (const pause of pauses) {
    try {
      connection.exec('begin immediate');
      return;
    } catch (error) {
      if ((errorNumber(error) & 0xff) !== busy) throw error;
    }
    await pauseFor(pause);
  }
  connection.exec('begin immediate');
}

function rowOf(names: readonly string[], values: Values): Row {
  const row: Row = {};
  for (let index = 0; index < names.length; index += 1) row[names[index]!] = values[index]!;
  return row;
}

function rollBack(connection: SqliteConnection): void {
  try {
    connection.exec('rollback');
  } catch {
    // SQLite has rolled back by itself (a full disk, say); the first error is the one that tells why.
  }
}

function errorNumber(error: unknown): number {
  return typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0;
}

/** The session of a group: each call is a loop over one prepared statement. */
function sqliteSession(connection: SqliteConnection): Session {
  const each = (sql: string, rows: readonly Row[], columns: readonly string[], first = 0): Awaitable<void> => {
    const statement = connection.statement(sql);
    const values: SQLInputValue[] = [];
    let length = 0;
    for (let at = first; at < rows.length; at += 1) {
      if (length > maxLength) return nextTurn().then(() => each(sql, rows, columns, at));
      const row = rows[at]!;
      for (let index = 0; index < columns.length; index += 1) {
        const value = row[columns[index]!] ?? null;
        if (typeof value === 'string') length += value.length;
        values[index] = value;
      }
      statement.run(...values);
    }
  };
  const insertInto = (table: string, columns: readonly string[], verb = 'insert') =>
    `${verb} into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`;

  const find: Session['find'] = (table, columns, keys) => {
    if (keys.length === 0) return [];
    const key = Object.keys(keys[0]!);
    const statement = connection.valuesStatement(`select ${columns.join(', ')} from ${table} where ${equals(key)}`);
    const found: Values[] = [];
    for (const row of keys) for (const one of statement.all(...key.map((column) => row[column]!))) found.push(one as unknown as Values);
    return found;
  };

  return {
    find,
    belonging(table, columns, by, owner, keys) {
      if (keys.length === 0) return [];
      const key = Object.keys(keys[0]!);
      const wanted = columns.map((column) => `${table}.${column}`).join(', ');
      const own = key.map((column) => `${owner}.${column} = ?`).join(' and ');
      const statement = connection.valuesStatement(
        `select ${wanted} from ${owner} join ${table} on ${table}.${by} = ${owner}.seq where ${own}`,
      );
      return keys.flatMap((row) => statement.all(...key.map((column) => row[column]!)) as unknown as Values[]);
    },
    read(table, columns, keys) {
      if (keys.length === 0) return [];
      const key = Object.entries(keys[0]!);
      const where = key.map(([column, value]) => (value === null ? `${column} is null` : `${column} = ?`)).join(' and ');
      const given = key.filter(([, value]) => value !== null).map(([column]) => column);
      const statement = connection.valuesStatement(`select ${columns.join(', ')} from ${table} where ${where}`);
      return keys.flatMap((row) => statement.all(...given.map((column) => row[column]!)) as unknown as Values[]);
    },
    findFree(table, column, search, limit) {
      // One transaction writes at a time: nothing is locked by another.
      const { sql: text, values } = freeSearchSql(table, column, search, () => '?');
      const statement = connection.valuesStatement(`${text} limit cast(? as integer)`);
      return (statement.all(...values, limit) as unknown as [string][]).map(([value]) => value);
    },
    count(table, key) {
      const statement = connection.valuesStatement(`select count(*) from ${table} where ${equals(Object.keys(key))}`);
      return (statement.get(...Object.values(key)) as unknown as [number])[0];
    },
    reserve(table, _column, count) {
      if (count === 0) return [];
      // Where SQLite itself keeps the highest number that an `autoincrement` ever had.
      const found = connection.valuesStatement('select seq from sqlite_sequence where name = ?').get(table) as unknown as
        | [number]
        | undefined;
      const last = found?.[0] ?? 0;
      if (found === undefined) connection.run('insert into sqlite_sequence (name, seq) values (?, ?)', [table, count]);
      else connection.run('update sqlite_sequence set seq = ? where name = ?', [last + count, table]);
      return Array.from({ length: count }, (_, index) => last + 1 + index);
    },
    insert(table, rows) {
      if (rows.length === 0) return;
      const columns = Object.keys(rows[0]!);
      return each(insertInto(table, columns), rows, columns);
    },
    claim(table, columns, { owner, due, now, until, takes }) {
      const found = connection.valuesStatement(
        `select seq, ${columns.join(', ')} from ${table} where ${owner} = ? and ${due} is not null and ${due} <= ? order by ${due} limit ?`,
      );
      const rows = takes.flatMap((take) => found.all(take.owner, now, take.quota) as unknown as Values[]);
      for (const [seq] of rows) connection.run(`update ${table} set ${due} = ? where seq = ?`, [until, seq]);
      return rows.map(([, ...values]) => values);
    },
    insertNumbered(table, rows, { column, owner, counters, name }) {
      const last = new Map<number, number>();
      if (rows.length === 0) return last;
      const found = connection.valuesStatement(`select value from ${counters} where ${owner} = ? and name = ?`);
      const numbered = rows.map((row) => {
        const of = row[owner] as number;
        const before = last.get(of) ?? (found.get(of, name) as unknown as [number] | undefined)?.[0] ?? 0;
        last.set(of, before + 1);
        return { ...row, [column]: before + 1 };
      });
      const raised = [...last].map(([of, value]) => ({ [owner]: of, name, value }));
      const columns = Object.keys(numbered[0]!);
      const inserted = each(insertInto(table, columns), numbered, columns);
      const raise = () => {
        const sql = `${insertInto(counters, [owner, 'name', 'value'])} on conflict (${owner}, name) do update set value = excluded.value`;
        for (const row of raised) connection.run(sql, [row[owner], row.name, row.value]);
        return last;
      };
      return inserted instanceof Promise ? inserted.then(raise) : raise();
    },
    insertMissing(table, rows) {
      if (rows.length === 0) return;
      const columns = Object.keys(rows[0]!);
      return each(insertInto(table, columns, 'insert or ignore'), rows, columns);
    },
    put(table, key, rows) {
      if (rows.length === 0) return;
      const columns = Object.keys(rows[0]!);
      const others = columns.filter((column) => !key.includes(column));
      const set = others.map((column) => `${column} = excluded.${column}`).join(', ');
      return each(`${insertInto(table, columns)} on conflict (${key.join(', ')}) do update set ${set}`, rows, columns);
    },
    update(table, key, rows) {
      if (rows.length === 0) return;
      const others = Object.keys(rows[0]!).filter((column) => !key.includes(column));
      const set = others.map((column) => `${column} = ?`).join(', ');
      return each(`update ${table} set ${set} where ${equals(key)}`, rows, [...others, ...key]);
    },
    add(table, key, column, rows) {
      if (rows.length === 0) return;
      const sql = `${insertInto(table, [...key, column])} on conflict (${key.join(', ')}) do update set ${column} = ${column} + excluded.${column}`;
      return each(sql, rows, [...key, column]);
    },
    remove(table, keys) {
      if (keys.length === 0) return;
      const key = Object.keys(keys[0]!);
      return each(`delete from ${table} where ${equals(key)}`, keys, key);
    },
  };
}

function equals(columns: readonly string[]): string {
  return columns.map((column) => `${column} = ?`).join(' and ');
}
