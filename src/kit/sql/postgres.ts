import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';

import {
  compileOnce,
  type Database,
  type DatabaseOptions,
  defaultCharactersPerTurn,
  type PostgresTransaction,
  SerialQueue,
  type Values,
  type WriteOptions,
} from './dialect.ts';
import { beginWith, isBehindPgbouncer, openPool, type Pool, withSettings } from './postgres-pool.ts';

/** Connections of one instance for reads and for transactions of single statements. One further connection writes groups. */
const poolSize = 10;

/** Separate connections for long reads, so that short reads never wait behind them. Most are never opened. */
const longPoolSize = 8;

/** Longer than any statement of ours takes; a hanging database must not block its callers forever. */
const statementTimeoutMs = 30_000;

/** The timeout of the queries that every request makes, so that a hanging database is detected early. */
const quickTimeoutMs = 3_000;

/** Parses `bigint` as a number: none of our values exceeds 2^53. */
const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => (oid === 20 ? Number : pg.types.getTypeParser(oid, format as 'text')),
} as pg.CustomTypesConfig;

/** A PostgreSQL database: a pool, and one pipelined connection for the groups of units of work. */
export function openPostgres<Tables>(url: string, options: DatabaseOptions = {}): Database<Tables> {
  const { longTimeoutMs = 5_000, byIndex = false, charactersPerTurn = defaultCharactersPerTurn, withoutTimeout = false } = options;
  const behindPgbouncer = isBehindPgbouncer(url);
  const config: pg.PoolConfig = {
    connectionString: url,
    types,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    ...(withoutTimeout || behindPgbouncer ? {} : { statement_timeout: statementTimeoutMs }),
    ...(withoutTimeout ? {} : { query_timeout: statementTimeoutMs + 5_000 }),
    application_name: 'baton',
  };
  const pool = openPool(config, poolSize);
  const longPool = openLongPool(config, { longTimeoutMs, byIndex, behindPgbouncer });
  const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  const longReads = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: longPool }) });
  const writer = new Writer(config, statementNames(behindPgbouncer));
  const nameOf = statementNames(behindPgbouncer);

  return {
    name: 'postgres',
    charactersPerTurn,
    reads: kysely,
    longReads,
    query(build, { quick = false } = {}) {
      const { sql, bind } = compileOnce(kysely, build);
      const name = nameOf(sql);
      const timeout = quick ? { query_timeout: quickTimeoutMs } : {};
      const run = async (values: unknown[]) => (await pool.query({ name, text: sql, values, ...timeout })).rows as never[];
      return {
        all: (params) => run(bind(params)),
        first: async (params) => (await run(bind(params)))[0],
      };
    },
    // Nothing to begin: each statement sees everything committed before it, without a lock.
    beginTurnReads: () => undefined,
    shareInTurn: (_name, read) => read(),
    snapshot: (work) => kysely.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(work),
    transaction: (work) => retrying(() => kysely.transaction().execute(work)),
    write: (work, options) => writer.write(work, options),
    betweenTransactions: (work) => work(),
    async ping() {
      await pool.query({ text: 'select 1', query_timeout: quickTimeoutMs } as pg.QueryConfig);
    },
    waiting: () => writer.waiting,
    isDuplicate: (error) => sqlState(error) === '23505',
    // A duplicate that our read did not see yet, or a conflict that remained after the attempts of the transaction.
    isConflict: (error) => ['23505', ...retried].includes(sqlState(error)),
    isTimeout: (error) => sqlState(error) === '57014',
    isUnavailable,
    isFull: (error) => sqlState(error) === '53100',
    tryWrite: async () => undefined,
    async close() {
      await writer.close();
      await Promise.all([kysely.destroy(), longReads.destroy()]);
    },
  };
}

interface LongPoolOptions extends Required<Pick<DatabaseOptions, 'longTimeoutMs' | 'byIndex'>> {
  readonly behindPgbouncer: boolean;
}

/** The connections of long reads. */
function openLongPool(config: pg.PoolConfig, { longTimeoutMs, byIndex, behindPgbouncer }: LongPoolOptions): Pool {
  if (behindPgbouncer)
    return withSettings(
      openPool(config, longPoolSize),
      beginWith([`statement_timeout = ${longTimeoutMs}`, ...(byIndex ? ['enable_seqscan = off'] : [])]),
    );
  return openPool({ ...config, statement_timeout: longTimeoutMs, ...(byIndex ? { options: '-c enable_seqscan=off' } : {}) }, longPoolSize);
}

/** A serialization failure, a deadlock: PostgreSQL has rolled the transaction back, and the same one may succeed now. */
const retried = ['40001', '40P01'];

/** The most attempts of a transaction. */
const maxAttempts = 5;

/** Runs a transaction, and again when it conflicted with another one. Every transaction runs in here. */
async function retrying<T>(transaction: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      if (attempt === maxAttempts || !retried.includes(sqlState(error))) throw error;
    }
  }
}

/** The short name of a prepared statement by its SQL text, if it has one; every connection prepares its own. */
type NameOf = (sql: string) => string | undefined;

/** The longest statement that is prepared by name. */
const maxNamedLength = 4_000;

function statementNames(areUnnamed: boolean): NameOf {
  const names = new Map<string, string>();
  return (sql) => {
    // Lists of values have a text for each number of rows.
    if (areUnnamed || sql.length > maxNamedLength) return undefined;
    let name = names.get(sql);
    if (name === undefined) {
      name = `baton_${names.size}`;
      names.set(sql, name);
    }
    return name;
  };
}

function sqlState(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

function isUnavailable(error: unknown): boolean {
  const code = sqlState(error);
  // Class 08 connection, 28 login, 53 resources, 55 not in a state to answer (such as a database that accepts no connections),
  // 57P server shutting down, 58 system error, 25006 read-only standby, 25P03, 25P04 and 57014 timeouts, 3D000 no such
  // database, 42501 no privilege to connect or to use a table; then every error of the system, a socket or TLS, since any of
  // them may hide whether a commit happened; and errors of pg itself, which have no code. The severity is localized.
  if (/^(08|28|53|55|57P|58)/.test(code) || ['25006', '25P03', '25P04', '3D000', '42501', '57014'].includes(code)) return true;
  if (/^(E(?!RR_)[A-Z][A-Z_]{2,}|ERR_(SOCKET|SSL|STREAM|TLS)_\w+)$/.test(code)) return true;
  return (
    error instanceof Error &&
    /connection (terminated|ended)|timeout exceeded|not queryable|query read timeout|client has encountered/i.test(error.message)
  );
}

/**
 * The connection that writes groups, one transaction at a time. It is pipelined: statements of a group that do not depend
 * on each other's results are sent together. A failed connection is replaced at the next group.
 */
class Writer {
  readonly #config: pg.ClientConfig;
  readonly #nameOf: NameOf;
  readonly #queue = new SerialQueue();
  #client: pg.Client | undefined;

  constructor(config: pg.ClientConfig, nameOf: NameOf) {
    this.#config = config;
    this.#nameOf = nameOf;
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  write<T>(work: (tx: PostgresTransaction) => Promise<T>, options?: WriteOptions): Promise<T> {
    return this.#queue.run(() => retrying(() => this.#transaction(work, options)));
  }

  async close(): Promise<void> {
    await this.#queue.idle();
    await this.#client?.end();
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const client = new pg.Client({ ...this.#config, pipeline: true } as pg.ClientConfig);
    client.on('error', () => this.#forget(client));
    await client.connect();
    this.#client = client;
    return client;
  }

  #forget(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
  }

  async #transaction<T>(
    work: (tx: PostgresTransaction) => Promise<T>,
    { asyncCommit = false, pipelined = false }: WriteOptions = {},
  ): Promise<T> {
    const client = await this.#connected();
    const tx = new PipelinedTransaction(client, this.#nameOf, asyncCommit);
    try {
      if (!pipelined) await tx.begun;
      const result = await work(tx);
      await tx.begun;
      await Promise.all([...tx.tracked, client.query('commit')]);
      return result;
    } catch (error) {
      tx.end();
      const reason = await reasonOf(error, tx.issued);
      await client.query('rollback').catch(() => undefined);
      if (isUnavailable(reason)) {
        this.#forget(client);
        // Nothing waits for a connection that is given up, which may take long to close.
        client.end().catch(() => undefined);
      }
      throw reason;
    } finally {
      tx.end();
    }
  }
}

/**
 * Why a transaction failed: the first statement that did. The work may learn of a later one earlier, which only reports that the
 * transaction is aborted.
 */
async function reasonOf(error: unknown, issued: readonly Promise<unknown>[]): Promise<unknown> {
  if (sqlState(error) !== '25P02') return error;
  for (const outcome of await Promise.allSettled(issued)) if (outcome.status === 'rejected') return outcome.reason;
  return error;
}

/** A transaction whose statements are sent at once. */
class PipelinedTransaction implements PostgresTransaction {
  readonly name = 'postgres';
  readonly begun: Promise<unknown>;
  /** The statements that nobody awaits. */
  readonly tracked: Promise<unknown>[] = [];
  /** All statements in order. */
  readonly issued: Promise<unknown>[];
  readonly #client: pg.Client;
  readonly #nameOf: NameOf;
  #state: 'beginning' | 'open' | 'ended' = 'beginning';

  constructor(client: pg.Client, nameOf: NameOf, asyncCommit: boolean) {
    this.#client = client;
    this.#nameOf = nameOf;
    this.begun = client.query(beginWith(asyncCommit ? ['synchronous_commit = off'] : [])).then(() => {
      if (this.#state === 'beginning') this.#state = 'open';
    });
    // The writer awaits it, but perhaps only after a read of the work has failed as well.
    this.begun.catch(() => undefined);
    this.issued = [this.begun];
  }

  /** Refuses further statements. */
  end(): void {
    this.#state = 'ended';
  }

  requireBegun(): void {
    if (this.#state === 'beginning') throw new Error('A session writes before its transaction has begun.');
  }

  run(text: string, values: readonly unknown[] = []): Promise<Values[]> {
    if (this.#state === 'ended') throw new Error('The session has ended.');
    // Settings have no parameters and are not prepared.
    const query = values.length === 0 ? { text } : { name: this.#nameOf(text), text, values: [...values] };
    const running = this.#client.query<Values>({ ...query, rowMode: 'array' });
    this.issued.push(running);
    return running.then(({ rows }) => rows);
  }

  track(running: Promise<unknown>): void {
    running.catch(() => undefined);
    this.tracked.push(running);
  }
}
