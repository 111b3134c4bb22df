import { accessSync, constants } from 'node:fs';
import type { StatementSync } from 'node:sqlite';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type LimitNode,
  type OffsetNode,
  type OperationNode,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';

import { type Awaitable, pauseFor } from '../awaitable.ts';
import {
  compileOnce,
  type Database,
  type DatabaseOptions,
  defaultCharactersPerTurn,
  type Execute,
  type Row,
  SerialQueue,
  type SqliteTransaction,
  type Values,
} from './dialect.ts';
import { createPrivately } from './file-access.ts';
import { openWithReserve, requireSpace } from './reserve.ts';
import { errorNumber, executeOn, isBusy, isDiskFull, rollBack, SqliteConnection, sqlitePath } from './sqlite-connection.ts';

/** The codes of the system for a file that may not be written. */
const notWritable = ['EACCES', 'EROFS'];

/** SQLITE_READONLY. */
const readOnlyCode = 8;

/** The most results that identical reads of a turn share. */
const maxResults = 100;

/**
 * Hides the values of parameters from SQLite's planner. It compares them with the conditions of partial indexes, and looks
 * at those of LIMIT and OFFSET; it then plans the statement anew at each run, which can take longer than the run.
 */
class PlannedOnce extends SqliteQueryCompiler {
  protected override getCurrentParameterPlaceholder(): string {
    return '+?';
  }

  protected override visitLimit(node: LimitNode): void {
    this.#appendCount('limit', node.limit);
  }

  protected override visitOffset(node: OffsetNode): void {
    this.#appendCount('offset', node.offset);
  }

  #appendCount(clause: string, count: OperationNode): void {
    this.append(`${clause} cast(`);
    this.visitNode(count);
    this.append(' as integer)');
  }
}

/** Kysely over an `Execute`. Transactions are opened by `write` and `transaction` of the database, not through Kysely. */
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
    createQueryCompiler: () => new PlannedOnce(),
  };
  return new Kysely<Tables>({ dialect });
}

/**
 * A SQLite database. A file has one connection that writes and one that reads, so that a read never sees an open
 * transaction. In memory there is one connection, and reads wait for open transactions to end.
 */
export function openSqlite<Tables>(url: string, options: DatabaseOptions = {}): Database<Tables> {
  const { executeElsewhere, charactersPerTurn = defaultCharactersPerTurn } = options;
  const path = sqlitePath(url);
  const inMemory = path === ':memory:';
  const { writer, reader } = openConnections(path, inMemory, options.readOnly);
  // From here on, `begin` below waits for the write lock without blocking the event loop.
  writer.exec('pragma busy_timeout = 0');
  const queue = new SerialQueue();

  // In memory, reads and writes share a connection: a read waits until no transaction is open.
  const whenSettled = <T>(read: () => T): Awaitable<T> => (inMemory && queue.waiting > 0 ? queue.idle().then(read) : read());
  const executeReader = executeOn(reader);
  const turnReads = new TurnReads(reader);
  const reads = kyselyOver<Tables>(async (sql, parameters) => whenSettled(() => executeReader(sql, parameters)));
  const writes = kyselyOver<Tables>(executeOn(writer));

  const tx: SqliteTransaction = {
    name: 'sqlite',
    statement: (text) => writer.statement(text),
    valuesStatement: (text) => writer.valuesStatement(text),
  };

  function inTransaction<T>(work: () => Promise<T>, asyncCommit = false): Promise<T> {
    return queue.run(async () => {
      if (asyncCommit) writer.exec('pragma synchronous = normal');
      try {
        await begin(writer);
        const result = await work();
        // Open reads of the turn would keep the checkpoint from resetting the WAL, and would hide this commit from the next reads.
        if (!inMemory) turnReads.end();
        writer.exec('commit');
        return result;
      } catch (error) {
        rollBack(writer);
        throw error;
      } finally {
        if (asyncCommit) writer.exec('pragma synchronous = full');
      }
    });
  }

  return {
    name: 'sqlite',
    charactersPerTurn,
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
    beginTurnReads: inMemory ? () => undefined : () => turnReads.begin(),
    shareInTurn: (name, read) => turnReads.share(name, read),
    async snapshot(work) {
      if (inMemory) return inTransaction(() => work(writes));
      const own = new SqliteConnection(path, { readOnly: true });
      try {
        own.exec('begin');
        return await work(kyselyOver<Tables>(executeOn(own)));
      } finally {
        own.close();
      }
    },
    transaction: (work) => inTransaction(() => work(writes)),
    write: (work, { asyncCommit } = {}) => inTransaction(() => work(tx), asyncCommit),
    betweenTransactions: (work) => queue.run(work),
    async ping() {
      if (inMemory) return;
      // Cached pages would hide an unreadable file, so this opens a new connection.
      openReadable(path).close();
    },
    waiting: () => queue.waiting,
    // `begin immediate` takes the write lock of the whole database, so transactions never conflict.
    isConflict: () => false,
    isDuplicate: (error) => [1555, 2067].includes(errorNumber(error)),
    // SQLite reads have no timeout; long ones are bounded by how much they read.
    isTimeout: () => false,
    // Busy, locked, read-only, I/O error, disk full, cannot open: the low byte of SQLite's extended codes.
    isUnavailable: (error) => [5, 6, 8, 10, 13, 14].includes(errorNumber(error) & 0xff),
    isFull: isDiskFull,
    async tryWrite() {
      if (!inMemory) requireSpace(path);
      await inTransaction(async () => writer.exec('pragma user_version = 0'));
    },
    async close() {
      await queue.idle();
      turnReads.end();
      if (reader !== writer) reader.close();
      writer.close();
    },
  };
}

/**
 * The connection that writes and the one that reads; with `readOnly` one that only reads. Creates missing folders of a relative path.
 * @throws Error that names the file, when it can't be opened, can't be written or is not a database
 */
function openConnections(path: string, inMemory: boolean, readOnly = false): { writer: SqliteConnection; reader: SqliteConnection } {
  let writer: SqliteConnection | undefined;
  try {
    if (readOnly) {
      writer = openWithReserve(path, () => openReadable(path));
      return { writer, reader: writer };
    }
    if (!inMemory) createPrivately(path);
    // SQLite opens a file that it can't write, and refuses the first write without naming it.
    if (!inMemory) accessSync(path, constants.W_OK);
    writer = openWithReserve(path, () => new SqliteConnection(path));
    return { writer, reader: inMemory ? writer : new SqliteConnection(path, { readOnly: true }) };
  } catch (error) {
    writer?.close();
    const { code, message } = error as { code?: string; message: string };
    if ((errorNumber(error) & 0xff) === readOnlyCode || notWritable.includes(code ?? ''))
      throw new Error(`The database file ${path} can't be written: this user may only read it, or its file system is read-only.`, {
        cause: error,
      });
    if (isDiskFull(error))
      throw new Error(`The database file ${path} can't be opened: its disk is full. Make some room, and start again.`, { cause: error });
    throw new Error(`The database file ${path} can't be used: ${message}.`, { cause: error });
  }
}

/** A connection that only reads. @throws Error of SQLite when the file can't be read, which it says at the first read */
function openReadable(path: string): SqliteConnection {
  const connection = new SqliteConnection(path, { readOnly: true });
  try {
    connection.all('select count(*) from sqlite_schema', []);
    return connection;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/**
 * A read transaction shared by the reads of one turn of the event loop, because acquiring and releasing the WAL's locks
 * costs more than reading a row. It ends with the turn, and before each commit of this process.
 */
class TurnReads {
  readonly #connection: SqliteConnection;
  #isOpen = false;
  /** Replaced and never cleared: V8 links the table of a cleared map to its next one, so that one old table keeps all later ones alive. */
  #results = new Map<string, unknown>();

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
  }

  begin(): void {
    if (this.#isOpen) return;
    this.#connection.run('begin', []);
    this.#isOpen = true;
    setImmediate(() => this.end());
  }

  /** See `Database.shareInTurn`. */
  share<T>(name: string, read: () => T): T {
    if (this.#results.has(name)) return this.#results.get(name) as T;
    const result = read();
    // An asynchronous read may run after the transaction has ended, so its result is not shared.
    if (this.#isOpen && this.#results.size < maxResults && !(result instanceof Promise)) this.#results.set(name, result);
    return result;
  }

  end(): void {
    // SQLite may have ended the transaction itself after a failed read.
    if (this.#isOpen && this.#connection.isInTransaction) {
      try {
        this.#connection.run('commit', []);
      } catch {
        // Nothing was written. A read of a damaged page fails for its own caller; other reads must continue.
        rollBack(this.#connection);
      }
    }
    this.#isOpen = false;
    if (this.#results.size > 0) this.#results = new Map();
  }
}

/** Pauses between attempts to take the write lock, in milliseconds: five seconds in total. */
const pauses = [1, 2, 5, 10, 15, 20, 25, 25, 25, ...Array<number>(98).fill(50)];

/** Begins a write transaction; waits for another process's write to end. */
async function begin(connection: SqliteConnection): Promise<void> {
  for (const pause of pauses) {
    try {
      connection.exec('begin immediate');
      return;
    } catch (error) {
      if (!isBusy(error)) throw error;
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
