import pg from 'pg';

import { openStore } from '../../src/handoff/store/store.ts';
import { systemClock } from '../../src/kit/clock.ts';
import type { TestDatabase } from './store.ts';

/** The servers of a Citus cluster, the coordinator first: `host:port,host:port`. Their user `baton` needs no password. */
const servers = process.env.BATON_TEST_CITUS?.split(',') ?? [];

/** Whether the contract suites run on a Citus cluster. */
export const isOnCluster = servers.length > 0;

/** Databases with the schema of the handoff service that a test of this process has left, without rows. */
const spare: string[] = [];

/** The newest table, and the number of tables, of the schema that a test got, by the name of the database. */
const shapes = new Map<string, string>();

const shapeOf = (name: string) =>
  onServer(servers[0]!, name, [
    "select count(*) || '/' || max(oid::bigint) as shape from pg_class where relnamespace = 'public'::regnamespace",
  ]);

let created = 0;

const addressOf = (server: string, name: string) => `postgres://baton@${server}/${name}`;

/** Runs statements on a server, one after the other; returns the shape that the last one reads. */
async function onServer(server: string, name: string, statements: readonly string[]): Promise<string> {
  const client = new pg.Client(addressOf(server, name));
  await client.connect();
  try {
    let rows: { shape?: string }[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows[0]?.shape ?? '';
  } finally {
    await client.end();
  }
}

/** Opens a database on the cluster, distributed by tenant. */
export async function openClusterDatabase(schema?: 'handoff'): Promise<TestDatabase> {
  const name = (schema === undefined ? undefined : spare.pop()) ?? (await create(schema));
  const url = `${addressOf(servers[0]!, name)}?citus=true`;
  return { url, drop: () => (schema === undefined ? dropEverywhere(name) : empty(name)) };
}

/** Opens a database on the coordinator that is not distributed, without a schema. */
export async function openSingleDatabase(): Promise<TestDatabase> {
  created += 1;
  const name = `baton_single_${process.pid}_${created}`;
  await onServer(servers[0]!, 'postgres', [`create database ${name}`]);
  const drop = async () => void (await onServer(servers[0]!, 'postgres', [`drop database ${name} with (force)`]));
  return { url: addressOf(servers[0]!, name), drop };
}

/** Creates a database on the servers of a cluster, whose rows are on these workers; returns its address. */
export async function createClusterDatabase(name: string, all: readonly string[], workers = all.slice(1)): Promise<string> {
  for (const server of all) {
    await onServer(server, 'postgres', [`create database ${name}`]);
    await onServer(server, name, ['create extension citus']);
  }
  await onServer(all[0]!, name, [`select citus_set_coordinator_host(${placeOf(all[0]!)})`]);
  await addWorkers(name, all[0]!, workers);
  return `${addressOf(all[0]!, name)}?citus=true`;
}

/** Adds workers to a cluster. */
export async function addWorkers(name: string, coordinator: string, workers: readonly string[]): Promise<void> {
  await onServer(
    coordinator,
    name,
    workers.map((worker) => `select citus_add_node(${placeOf(worker)})`),
  );
}

const placeOf = (server: string) => `'${server.replace(':', "', ")}`;

/** The addresses of a database on the workers of the cluster. */
export const workersOf = (url: string): string[] => servers.slice(1).map((server) => addressOf(server, new URL(url).pathname.slice(1)));

async function create(schema: 'handoff' | undefined): Promise<string> {
  created += 1;
  const name = `baton_${process.pid}_${created}`;
  await createClusterDatabase(name, servers);
  if (schema === undefined) return name;
  const store = await openStore({
    databaseUrl: `${addressOf(servers[0]!, name)}?citus=true`,
    clock: systemClock,
    newId: () => {
      throw new Error('A new database has no rows with ids.');
    },
  });
  await store.close();
  shapes.set(name, await shapeOf(name));
  return name;
}

/** Deletes all rows that a test added, and numbers rows from 1 again. */
const emptying = `do $$
  begin
    execute 'truncate ' || (select string_agg(format('public.%I', tablename), ', ') from pg_tables
      where schemaname = 'public' and tablename not in ('migrations', 'versions'));
    update versions set value = 1;
    perform setval(format('public.%I', sequencename)::regclass, start_value, false) from pg_sequences where schemaname = 'public';
  end $$`;

async function empty(name: string): Promise<void> {
  // A test has changed the schema.
  if ((await shapeOf(name)) !== shapes.get(name)) return dropEverywhere(name);
  await onServer(servers[0]!, name, [
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity
      where datname = current_database() and application_name = 'baton' and pid <> pg_backend_pid()`,
    emptying,
  ]);
  spare.push(name);
}

async function dropEverywhere(name: string): Promise<void> {
  for (const server of servers) await onServer(server, 'postgres', [`drop database ${name} with (force)`]);
}
