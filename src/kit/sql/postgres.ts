import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';

import {
  compileOnce,
  type Database,
  type DatabaseOptions,
  defaultCharactersPerTurn,
  freeSearchSql,
  type Row,
  SerialQueue,
  type Session,
  type SessionOptions,
  type Values,
} from './dialect.ts';
import { isBehindPgbouncer, openPool, withSettings } from './postgres-pool.ts';

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
  const longPool = behindPgbouncer
    ? withSettings(openPool(config, longPoolSize), [`statement_timeout = ${longTimeoutMs}`, ...(byIndex ? ['enable_seqscan = off'] : [])])
    : openPool({ ...config, statement_timeout: longTimeoutMs, ...(byIndex ? { options: '-c enable_seqscan=off' } : {}) }, longPoolSize);
  const kysely = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
  const longReads = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: longPool }) });
  const writer = createWriter(config, statementNames(behindPgbouncer));
  const nameOf = statementNames(behindPgbouncer);

  return {
    name: 'postgres',
    charactersPerTurn,
    reads: kysely,
    longReads,
    query(build, { long = false, quick = false } = {}) {
      const { sql, bind } = compileOnce(kysely, build);
      const name = nameOf(sql);
      const timeout = quick ? { query_timeout: quickTimeoutMs } : {};
      const run = async (values: unknown[]) =>
        (await (long ? longPool : pool).query({ name, text: sql, values, ...timeout })).rows as never[];
      return {
        all: (params) => run(bind(params)),
        first: async (params) => (await run(bind(params)))[0],
      };
    },
    // No view is needed: each statement sees everything committed before it, without a lock.
    beginView: () => undefined,
    inView: (_name, read) => read(),
    snapshot: (work) => kysely.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(work),
    transaction: (work) => retrying(() => kysely.transaction().execute(work)),
    session: writer.session,
    betweenTransactions: (work) => work(),
    async ping() {
      await pool.query({ text: 'select 1', query_timeout: quickTimeoutMs } as pg.QueryConfig);
    },
    waiting: () => writer.waiting(),
    isDuplicate: (error) => sqlState(error) === '23505',
    // A duplicate that our read did not see yet, or a conflict that remained after the attempts of the transaction.
    isConflict: (error) => ['23505', ...retried].includes(sqlState(error)),
    isTimeout: (error) => sqlState(error) === '57014',
    isUnavailable,
    async close() {
      await writer.close();
      await Promise.all([kysely.destroy(), longReads.destroy()]);
    },
  };
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

function statementNames(areUnnamed: boolean): NameOf {
  const names = new Map<string, string>();
  return (sql) => {
    if (areUnnamed) return undefined;
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
function createWriter(config: pg.ClientConfig, nameOf: NameOf) {
  const queue = new SerialQueue();
  let client: pg.Client | undefined;

  async function connected(): Promise<pg.Client> {
    if (client !== undefined) return client;
    const fresh = new pg.Client({ ...config, pipeline: true } as pg.ClientConfig);
    fresh.on('error', () => {
      if (client === fresh) client = undefined;
    });
    await fresh.connect();
    client = fresh;
    return fresh;
  }

  async function transaction<T>(
    work: (session: Session) => Promise<T>,
    { asyncCommit = false, pipelined = false }: SessionOptions = {},
  ): Promise<T> {
    const connection = await connected();
    const session = postgresSession(connection, nameOf, asyncCommit);
    try {
      if (!pipelined) await session.begun;
      const result = await work(session);
      await session.begun;
      await Promise.all([...session.sent, connection.query('commit')]);
      return result;
    } catch (error) {
      session.end();
      const reason = await reasonOf(error, session.issued);
      await connection.query('rollback').catch(() => undefined);
      if (isUnavailable(reason)) {
        if (client === connection) client = undefined;
        void connection.end().catch(() => undefined);
      }
      throw reason;
    } finally {
      session.end();
    }
  }

  return {
    session: <T>(work: (session: Session) => Promise<T>, options?: SessionOptions) =>
      queue.run(() => retrying(() => transaction(work, options))),
    waiting: () => queue.waiting,
    async close() {
      await queue.idle();
      await client?.end();
    },
  };
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

/** A session in which each call is one statement over all its rows, and how its transaction waits for it. */
interface PostgresSession extends Session {
  /** The writes, which are sent at once and awaited with the commit. */
  readonly sent: readonly Promise<unknown>[];
  /** All statements in order, reads too. */
  readonly issued: readonly Promise<unknown>[];
  /** Refuses further calls. */
  end(): void;
}

/** Begins a transaction, and returns its session. Rows are sent as one JSON parameter. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one function for each call of a session, each of them a statement.
function postgresSession(client: pg.Client, nameOf: NameOf, asyncCommit: boolean): PostgresSession {
  const sent: Promise<unknown>[] = [];
  const issued: Promise<unknown>[] = [];
  let state: 'beginning' | 'open' | 'ended' = 'beginning';
  const begun = client.query(asyncCommit ? 'begin; set local synchronous_commit = off' : 'begin').then(() => {
    if (state === 'beginning') state = 'open';
  });
  begun.catch(() => undefined);
  issued.push(begun);

  const run = <R extends unknown[]>(text: string, values: unknown[]) => {
    if (state === 'ended') throw new Error('The session has ended.');
    const running = client.query<R>({ name: nameOf(text), text, values, rowMode: 'array' });
    issued.push(running);
    return running;
  };
  const query = (text: string, rows: readonly Row[]) => run<Values>(text, [JSON.stringify(rows)]);
  const requireBegun = () => {
    if (state === 'beginning') throw new Error('A session writes before its transaction has begun.');
  };
  const track = (running: Promise<unknown>): void => {
    running.catch(() => undefined);
    sent.push(running);
  };
  const write = (rows: readonly Row[], textOf: (columns: readonly string[]) => string): void => {
    if (rows.length === 0) return;
    requireBegun();
    track(query(textOf(Object.keys(rows[0]!)), rows));
  };
  const select = async (keys: readonly Row[], textOf: (key: readonly string[]) => string): Promise<Values[]> =>
    keys.length === 0 ? [] : (await query(textOf(Object.keys(keys[0]!)), keys)).rows;
  const given = (table: string) => `json_populate_recordset(null::${table}, $1::json)`;
  const matches = (table: string, key: readonly string[]) => key.map((column) => `${table}.${column} = given.${column}`).join(' and ');
  const insertInto = (table: string, columns: readonly string[], order = '') =>
    `insert into ${table} (${columns.join(', ')}) select ${columns.join(', ')} from ${given(table)}${order}`;
  const upsertInto = (table: string, columns: readonly string[], key: readonly string[]) =>
    `${insertInto(table, columns, ` order by ${key.join(', ')}`)} on conflict (${key.join(', ')}) do update set`;
  const namesIn = (table: string, columns: readonly string[]) => columns.map((column) => `${table}.${column}`).join(', ');
  // All instances lock rows in the same order, so that two groups can't deadlock.
  const find: Session['find'] = (table, columns, keys) =>
    select(
      keys,
      (key) =>
        `select ${namesIn(table, columns)} from ${table} join ${given(table)} given on ${matches(table, key)} order by ${namesIn(table, key)} for update of ${table}`,
    );

  return {
    name: 'postgres',
    begun,
    sent,
    issued,
    end() {
      state = 'ended';
    },
    find,
    async findWith(table, columns, more, keys) {
      // Sent together, as two statements: the second sees what was written by the transaction for whose lock the first waited.
      const [rows, others] = await Promise.all([
        find(table, columns, keys),
        select(
          keys,
          (key) =>
            `select ${more.table}.${more.by}, ${more.table}.${more.column} from ${more.table} join ${table} on ${table}.tenant = ${more.table}.tenant and ${table}.seq = ${more.table}.${more.by} join ${given(table)} given on ${matches(table, key)}`,
        ),
      ]);
      const values = new Map(others.map(([seq, value]) => [seq, value]));
      const place = columns.indexOf('seq');
      return rows.map((row) => [...row, values.get(row[place]!)!]);
    },
    read(table, columns, keys) {
      const equal = (column: string) => (keys[0]![column] === null ? `${table}.${column} is null` : `${table}.${column} = given.${column}`);
      return select(
        keys,
        (key) => `select ${namesIn(table, columns)} from ${table} join ${given(table)} given on ${key.map(equal).join(' and ')}`,
      );
    },
    async findFree(table, columns, search, limit) {
      const [first] = columns as [string];
      const { conditions, values } = freeSearchSql(first, search, (number) => `$${number}`);
      const { column, values: wanted } = search.ranked;
      const [ranked, most] = [`$${values.length + 1}`, `$${values.length + 2}`];
      // The join reads the wanted values in their order and stops at the limit, so that only the rows returned are locked.
      const text = `select ${columns.map((name) => `free.${name}`).join(', ')} from unnest(${ranked}::text[]) wanted (value)
        cross join lateral (select ${columns.join(', ')} from ${table} where ${conditions} and ${column} = wanted.value
          order by ${first}${search.nullsFirst ? ' nulls first' : ''} limit ${most} for update skip locked) free
        limit ${most}`;
      // A plan that sorts reads every matching row, also dead ones. PostgreSQL prefers it when it estimates one row.
      track(client.query('set local enable_sort = off'));
      const found = run<Values>(text, [...values, wanted, limit]);
      track(client.query('set local enable_sort = on'));
      return (await found).rows;
    },
    async count(table, keys, condition) {
      const textOf = (key: readonly string[]) => `select (select count(*) from ${table} where ${matches(table, key)} and ${condition})
        from ${given(table)} with ordinality given order by given.ordinality`;
      return (await select(keys, textOf)).map(([count]) => count as number);
    },
    async reserve(table, column, count) {
      if (count === 0) return [];
      const text = 'select nextval(pg_get_serial_sequence($1, $2)) from generate_series(1, $3)';
      const { rows } = await run<[number]>(text, [table, column, count]);
      return rows.map(([number]) => number);
    },
    insert: (table, rows) => write(rows, (columns) => insertInto(table, columns)),
    async claim(table, columns, { owner, due, now, until, takes }) {
      if (takes.length === 0) return [];
      requireBegun();
      const text = `with picked as materialized (
          select take.tenant, due_rows.seq from json_to_recordset($1::json) as take (tenant bigint, owner bigint, quota integer)
          cross join lateral (select seq from ${table} where tenant = take.tenant and ${owner} = take.owner and ${due} is not null and ${due} <= $2
            order by ${due} limit take.quota for update skip locked) due_rows)
        update ${table} set ${due} = $3 from picked where ${table}.tenant = picked.tenant and ${table}.seq = picked.seq returning ${namesIn(table, columns)}`;
      const values = [JSON.stringify(takes), now, until];
      return (await run<Values>(text, values)).rows;
    },
    insertNumbered(table, rows, { column, owner, counters, name }, last) {
      if (rows.length === 0) return;
      requireBegun();
      const columns = Object.keys(rows[0]!).filter((each) => each !== column);
      // Each row carries its number relative to the owner's last one, which the statement determines.
      const behind = new Map<number, number>();
      const numbered = rows.toReversed().map((row) => {
        const of = row[owner] as number;
        behind.set(of, (behind.get(of) ?? 0) + 1);
        return { ...row, [column]: 1 - behind.get(of)! };
      });
      const text = `with given as (select ${[...columns, column].join(', ')} from ${given(table)}),
        raised as (insert into ${counters} (${owner}, name, value)
          select ${owner}, $2::text, count(*) from given group by ${owner} order by ${owner}
          on conflict (${owner}, name) do update set value = ${counters}.value + excluded.value returning ${owner}, value),
        inserted as (insert into ${table} (${[...columns, column].join(', ')})
          select ${[...columns.map((each) => `given.${each}`), `raised.value + given.${column}`].join(', ')}
          from given join raised on raised.${owner} = given.${owner} order by given.${owner}, given.${column})
        select ${owner}, value from raised`;
      const values = [JSON.stringify(numbered), name];
      track(
        run<[number, number]>(text, values).then(({ rows: raised }) => {
          for (const [of, value] of raised) last.set(of, value);
        }),
      );
    },
    insertMissing(table, rows) {
      if (rows.length === 0) return;
      const columns = Object.keys(rows[0]!);
      track(query(`${insertInto(table, columns, ` order by ${columns.join(', ')}`)} on conflict do nothing`, rows));
    },
    put: (table, key, rows) =>
      write(rows, (columns) => {
        const set = columns.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
        return `${upsertInto(table, columns, key)} ${set.join(', ')}`;
      }),
    update: (table, key, rows) =>
      write(rows, (columns) => {
        const set = columns.filter((column) => !key.includes(column)).map((column) => `${column} = given.${column}`);
        return `update ${table} set ${set.join(', ')} from ${given(table)} given where ${matches(table, key)}`;
      }),
    add: (table, key, column, rows) =>
      write(rows, (columns) => `${upsertInto(table, columns, key)} ${column} = ${table}.${column} + excluded.${column}`),
    remove: (table, keys) => write(keys, (key) => `delete from ${table} using ${given(table)} given where ${matches(table, key)}`),
  };
}
