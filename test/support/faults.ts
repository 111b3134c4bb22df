import { DatabaseSync, StatementSync } from 'node:sqlite';
import pg from 'pg';

/** Faults of a database, injected below the service: in the drivers of SQLite and PostgreSQL. */
export interface Fault {
  /** How many statements were executed or made to fail since the fault was injected. */
  readonly statements: () => number;
  /** Lets all statements through from now on. */
  remove(): void;
}

/** An error as SQLite reports it. */
const sqliteError = () => Object.assign(new Error('an injected fault'), { code: 'ERR_SQLITE_ERROR', errcode: 1 });

/** Statements of the test harness and of opening a connection are neither counted nor made to fail. */
const isExempt = (sql: string) => /^\s*(pragma|rollback)/i.test(sql);

const originals = {
  prepare: DatabaseSync.prototype.prepare,
  exec: DatabaseSync.prototype.exec,
  run: StatementSync.prototype.run,
  get: StatementSync.prototype.get,
  all: StatementSync.prototype.all,
  query: pg.Client.prototype.query,
};

/**
 * Makes the `nth` statement of this process fail, counted from 1; with `Number.POSITIVE_INFINITY` it only counts. On
 * PostgreSQL the server refuses it, so that its transaction is aborted as by a real failure. `matching`: which statements count.
 */
export function injectFault(nth: number, matching: (sql: string) => boolean = () => true): Fault {
  let count = 0;
  const isDue = (sql: string) => {
    if (isExempt(sql) || !matching(sql)) return false;
    count += 1;
    return count === nth;
  };
  for (const name of ['run', 'get', 'all'] as const) {
    const original = originals[name] as (this: StatementSync, ...values: unknown[]) => unknown;
    StatementSync.prototype[name] = function (this: StatementSync, ...values: unknown[]) {
      if (isDue(this.sourceSQL)) throw sqliteError();
      return original.apply(this, values);
    } as never;
  }
  DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
    if (isDue(sql)) throw sqliteError();
    originals.exec.call(this, sql);
  };
  pg.Client.prototype.query = function (this: pg.Client, ...given: [pg.QueryConfig | string, ...unknown[]]) {
    const [config, ...more] = given;
    const text = typeof config === 'string' ? config : config.text;
    return (originals.query as (...given: unknown[]) => unknown).call(this, ...(isDue(text) ? ['select 1/0', ...failing(more)] : given));
  } as never;
  return {
    statements: () => count,
    remove() {
      Object.assign(StatementSync.prototype, { run: originals.run, get: originals.get, all: originals.all });
      DatabaseSync.prototype.exec = originals.exec;
      pg.Client.prototype.query = originals.query;
    },
  };
}

/** The callback among the arguments of a query; its values do not fit the failing statement. */
const failing = (given: unknown[]) => given.filter((value) => typeof value === 'function');
