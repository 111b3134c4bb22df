import type { Socket } from 'node:net';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import pg from 'pg';

/** A fault of a database, injected below the service: in the drivers of SQLite and PostgreSQL. */
interface Fault {
  /** How many statements were executed or made to fail since the fault was injected. */
  statements(): number;
  /** Lets all statements through from now on. */
  remove: () => void;
}

/** How a statement fails: by an error of its own, since the database has become unavailable (SQLite: disk full), or since its connection breaks. */
export type FaultKind = 'error' | 'unavailable' | 'broken';

const errorNumbers: Record<FaultKind, number> = { error: 1, unavailable: 13, broken: 10 };

/** Statements that PostgreSQL refuses, so that their transaction is aborted as by a real failure. */
const refused: Record<Exclude<FaultKind, 'broken'>, string> = {
  error: 'select 1/0',
  unavailable: "do $$ begin raise exception 'an injected fault' using errcode = '53100'; end $$",
};

/** Settings of connections, and rollbacks, whose failure changes nothing. */
const isExempt = (sql: string) => /^\s*(pragma|rollback)/i.test(sql);

const originals = {
  exec: DatabaseSync.prototype.exec,
  run: StatementSync.prototype.run,
  get: StatementSync.prototype.get,
  all: StatementSync.prototype.all,
  query: pg.Client.prototype.query,
};

let inMemory: DatabaseSync | undefined;
DatabaseSync.prototype.exec = recordingExec;

function recordingExec(this: DatabaseSync, sql: string): void {
  if (this.location() === null) inMemory = this;
  originals.exec.call(this, sql);
}

/** The connection to the database in memory that was used last. */
export function databaseInMemory(): DatabaseSync {
  if (inMemory === undefined) throw new Error('No database in memory was opened.');
  return inMemory;
}

interface FaultOptions {
  /** Which statements count; all by default. */
  readonly matching?: (sql: string) => boolean;
  readonly kind?: FaultKind;
}

/** Makes the `nth` statement of this process fail, counted from 1; with `Number.POSITIVE_INFINITY` it only counts. */
export function injectFault(nth: number, { matching = () => true, kind = 'error' }: FaultOptions = {}): Fault {
  let count = 0;
  const isDue = (sql: string) => {
    if (isExempt(sql) || !matching(sql)) return false;
    count += 1;
    return count === nth;
  };
  const throwIfDue = (sql: string) => {
    if (isDue(sql)) throw Object.assign(new Error('an injected fault'), { code: 'ERR_SQLITE_ERROR', errcode: errorNumbers[kind] });
  };
  for (const name of ['run', 'get', 'all'] as const) {
    const original = originals[name] as (this: StatementSync, ...values: unknown[]) => unknown;
    StatementSync.prototype[name] = function (this: StatementSync, ...values: unknown[]) {
      throwIfDue(this.sourceSQL);
      return original.apply(this, values);
    } as never;
  }
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
    throwIfDue(sql);
    recordingExec.call(this, sql);
  };
  pg.Client.prototype.query = function (this: pg.Client, ...given: [pg.QueryConfig | string, ...unknown[]]) {
    const text = typeof given[0] === 'string' ? given[0] : given[0].text;
    let sent: unknown[] = given;
    if (isDue(text)) {
      if (kind === 'broken') (this as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
      // Of the arguments, only the callback fits the refused statement.
      else sent = [refused[kind], ...given.filter((value) => typeof value === 'function')];
    }
    return (originals.query as (...sent: unknown[]) => unknown).apply(this, sent);
  } as never;
  return {
    statements: () => count,
    remove() {
      Object.assign(StatementSync.prototype, { run: originals.run, get: originals.get, all: originals.all });
      DatabaseSync.prototype.exec = recordingExec;
      pg.Client.prototype.query = originals.query;
    },
  };
}
