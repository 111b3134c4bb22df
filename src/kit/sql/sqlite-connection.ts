import { statSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { LRUCache } from 'lru-cache';

import type { Execute, Row } from './dialect.ts';

/** The most prepared statements that a connection keeps, since lists with optional filters have many variants. */
const maxStatements = 500;

/** A connection that prepares each statement once. */
export class SqliteConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new LRUCache<string, StatementSync>({ max: maxStatements });
  readonly #valuesStatements = new LRUCache<string, StatementSync>({ max: maxStatements });

  /** @throws Error when the file has several names */
  constructor(path: string, { readOnly = false } = {}) {
    requireOneName(path);
    this.#database = new DatabaseSync(path, { readOnly, timeout: 5000 });
    // Writing a row of some kilobytes touches fewer pages of 8 KiB than of the default 4 KiB. The size is fixed when the file is created.
    if (!readOnly) this.exec('pragma page_size = 8192');
    // WAL lets reads run during a write; FULL makes a commit survive a power failure; a small checkpoint (4 MiB) keeps
    // the WAL short, and with it the longest pause of a commit.
    if (!readOnly) this.exec('pragma journal_mode = wal');
    this.exec('pragma synchronous = full');
    // Deleted rows are overwritten: they may have held a secret.
    this.exec('pragma secure_delete = on');
    this.exec('pragma wal_autocheckpoint = 500');
    this.exec('pragma journal_size_limit = 67108864');
    this.exec('pragma foreign_keys = on');
    this.exec('pragma temp_store = memory');
    // Not larger: a commit that split a page scans the whole table of cached pages.
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

  /** The statement with each row as an array: the objects that node:sqlite makes are much slower to create and to read. */
  valuesStatement(sql: string): StatementSync {
    const known = this.#valuesStatements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#prepare(this.#valuesStatements, sql);
    statement.setReturnArrays(true);
    return statement;
  }

  #prepare(statements: LRUCache<string, StatementSync>, sql: string): StatementSync {
    const statement = this.#database.prepare(sql);
    // A statement without rows reports the row that was inserted last, whose id in a full-text index may be beyond a double's integers.
    if (statement.columns().length === 0) statement.setReadBigInts(true);
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

/**
 * Requires that the file has no hard link: SQLite names the WAL and its locks after the path, so that rows that were written by
 * one name are missing by another, and lost when both write.
 */
function requireOneName(path: string): void {
  if (path === inMemory) return;
  const found = statSync(path, { throwIfNoEntry: false });
  // A folder has a link for each folder in it.
  const links = found?.isFile() ? found.nlink : 1;
  if (links > 1)
    throw new Error(
      `The database file ${path} has ${links} names (hard links), so that two programs could write to it unnoticed. Remove the others, or copy it with \`backup\`.`,
    );
}

/** Runs any statement on the connection; returns its rows or the number of affected rows. */
export function executeOn(connection: SqliteConnection): Execute {
  return async (sql, parameters) => {
    const statement = connection.statement(sql);
    if (statement.columns().length > 0) return { rows: connection.all(sql, parameters) };
    const { changes } = connection.run(sql, parameters);
    return { rows: [], numAffectedRows: BigInt(changes) };
  };
}

/** SQLite's name of a database in memory. */
export const inMemory = ':memory:';

/** The file path in a database URL: what follows `sqlite://`, or `:memory:`. */
export function sqlitePath(url: string): string {
  return url === 'sqlite::memory:' ? inMemory : url.slice('sqlite://'.length);
}

/** Rolls the transaction back, if SQLite has not done so already. */
export function rollBack(connection: SqliteConnection): void {
  try {
    connection.exec('rollback');
  } catch {
    // SQLite has already rolled back (on a full disk, for example); the first error has the reason.
  }
}

/** SQLITE_FULL. */
export const fullCode = 13;

/** Also SQLITE_IOERR_WRITE, such as at a quota, and SQLITE_IOERR_SHMSIZE: no space for the index of the WAL. */
const fullCodes = [fullCode, 778, 4874];

/** Whether SQLite found no space on the disk. */
export const isDiskFull = (error: unknown): boolean => fullCodes.includes(errorNumber(error));

/** Whether another connection holds the write lock: SQLITE_BUSY, the low byte of the extended codes. */
export const isBusy = (error: unknown): boolean => (errorNumber(error) & 0xff) === 5;

/** SQLite's extended result code of an error; 0 for any other error. */
export function errorNumber(error: unknown): number {
  return typeof error === 'object' && error !== null && 'errcode' in error ? Number(error.errcode) : 0;
}
