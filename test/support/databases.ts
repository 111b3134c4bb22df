import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import pg from 'pg';

import type { TestDatabase } from './store.ts';

/**
 * Databases on the test server. Creating a database, filling the caches of a new backend and
 * dropping it takes longer than most tests, so a used database is emptied and kept for another test.
 */

/** The template of the databases of the handoff service. */
const template = 'baton_template_handoff';

/** Procedures that empty a database, part of the template and so of every copy. They keep a copy of the rows that a new database has. */
const emptyProcedures = `
  create schema testing;
  create table testing.shape (shape text);

  create function testing.shape_now() returns text language sql as $$
    select concat_ws(' ',
      (select count(*) || '/' || max(c.oid) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'public'),
      (select count(*) || '/' || max(oid) from pg_constraint),
      (select count(*) || '/' || max(oid) from pg_trigger),
      (select count(*) from pg_attribute where not attisdropped))
  $$;

  create procedure testing.empty() language plpgsql as $$
  declare
    named text;
    has_rows boolean;
    filled text[] := '{}';
  begin
    for named in select tablename from pg_tables where schemaname = 'public' loop
      execute format('select exists (select from public.%I)', named) into has_rows;
      if has_rows then filled := filled || format('public.%I', named); end if;
    end loop;
    execute 'truncate ' || array_to_string(filled, ', ') || ' cascade';
    -- Truncating a table keeps its statistics.
    delete from pg_statistic where starelid in (select oid from pg_class where relnamespace = 'public'::regnamespace);
    perform setval(format('public.%I', sequencename)::regclass, start_value, false) from pg_sequences where schemaname = 'public';
    for named in select tablename from pg_tables where schemaname = 'testing' and tablename <> 'shape' loop
      execute format('insert into public.%I table testing.%I', named, named);
    end loop;
  end $$;

  do $$
  declare
    named text;
    has_rows boolean;
  begin
    for named in select tablename from pg_tables where schemaname = 'public' loop
      execute format('select exists (select from public.%I)', named) into has_rows;
      if has_rows then execute format('create table testing.%I as table public.%I', named, named); end if;
    end loop;
  end $$;

  insert into testing.shape select testing.shape_now();`;

/** Prepares a server for the tests. `migrate` creates the schema of the handoff service in the empty database at a URL. */
export async function prepareServer(server: string, migrate: (url: string) => Promise<void>): Promise<void> {
  await within(server, 'postgres', async (client) => {
    await client.query('create table spare (name text primary key, kind text not null)');
    await client.query(`create database ${template}`);
  });
  await migrate(`${server}/${template}`);
  await within(server, template, (client) => client.query(emptyProcedures));
}

let created = 0;

/** A database name that was not used before. */
function newName(): string {
  created += 1;
  return `baton_${process.pid}_${created}`;
}

/** Creates a database without a schema, with options of `create database`. */
export async function createTestDatabase(options: string): Promise<TestDatabase> {
  const server = testServer();
  const name = newName();
  await managing((client) => client.query(`create database ${name} ${options}`));
  return { url: `${server}/${name}`, drop: () => managing((client) => dropDatabase(client, name)) };
}

/** Opens a database without a schema. */
export const openEmptyDatabase = (): Promise<TestDatabase> => open('empty');

/** Opens a database with the schema of the handoff service and the rows of a new one. */
export const openHandoffDatabase = (): Promise<TestDatabase> => open('handoff');

type Kind = 'empty' | 'handoff';

async function open(kind: Kind): Promise<TestDatabase> {
  const server = testServer();
  const name = await managing(async (client) => (await takeSpare(client, kind)) ?? (await create(client, kind)));
  return { url: `${server}/${name}`, drop: () => recycle(server, name, kind) };
}

async function takeSpare(client: pg.Client, kind: Kind): Promise<string | undefined> {
  const { rows } = await client.query(
    'delete from spare where name = (select name from spare where kind = $1 limit 1 for update skip locked) returning name',
    [kind],
  );
  return rows[0]?.name;
}

async function create(client: pg.Client, kind: Kind): Promise<string> {
  const name = newName();
  await client.query(`create database ${name} ${kind === 'handoff' ? `template ${template}` : ''}`);
  return name;
}

/** Empties a database and keeps it for other tests under a new name, which late connections don't know. */
async function recycle(server: string, name: string, kind: Kind): Promise<void> {
  const kept = newName();
  await managing(async (client) => {
    await client.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', [name]);
    await client.query(`alter database ${name} rename to ${kept}`);
    const isEmpty = await within(server, kept, kind === 'handoff' ? emptyTables : dropTables);
    if (isEmpty) await client.query('insert into spare (name, kind) values ($1, $2)', [kept, kind]);
    else await dropDatabase(client, kept);
  }).catch(async (error: unknown) => {
    // A client that reconnects at once can prevent the renaming; then the database is dropped.
    if ((error as { code?: string }).code !== '55006') throw error;
    await managing((client) => dropDatabase(client, name));
  });
}

/** Deletes all rows that a test added. Returns false, and changes nothing, if the test has changed the schema. */
async function emptyTables(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('select shape = testing.shape_now() as same from testing.shape');
  if (rows[0].same) await client.query('call testing.empty()');
  return rows[0].same;
}

async function dropTables(client: pg.Client): Promise<boolean> {
  await client.query('set client_min_messages = warning; drop schema public cascade; create schema public');
  return true;
}

const dropDatabase = async (client: pg.Client, name: string): Promise<void> =>
  void (await client.query(`drop database ${name} with (force)`));

/** A connection to a database that ends with the test. The database may be dropped before. */
export async function connectTo(t: Pick<TestContext, 'after'>, url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  await client.connect();
  client.on('error', () => undefined);
  t.after(() => client.end().catch(() => undefined));
  return client;
}

function testServer(): string {
  const server = process.env.BATON_TEST_POSTGRES;
  if (server === undefined) throw new Error('No PostgreSQL: run the tests with `npm test`, which starts one.');
  return server;
}

let connecting: Promise<pg.Client> | undefined;
let working = 0;

/**
 * Runs some work on the connection on which this process creates and drops databases: a new one for each would cost as much as
 * their work. It keeps the process alive only meanwhile.
 */
async function managing<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  connecting ??= (async () => {
    const client = new pg.Client(`${testServer()}/postgres`);
    client.on('error', () => undefined);
    await client.connect();
    return client;
  })();
  const client = await connecting;
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  working += 1;
  stream.ref();
  try {
    return await work(client);
  } finally {
    working -= 1;
    if (working === 0) stream.unref();
  }
}

/** Runs some work on a connection to one of the server's databases. */
async function within<T>(server: string, database: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(`${server}/${database}`);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
