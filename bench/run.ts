import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pg from 'pg';

import { freePort } from '../src/kit/free-port.ts';
import { startPostgres } from '../test/support/postgres.ts';
import type { CeilingTasks } from './ceiling.ts';
import type { Burst, Load, LoadRequest, LoadTasks } from './load.ts';
import type { Place } from './machine.ts';
import { type Program, startProgram } from './programs.ts';
import type { Figure } from './report.ts';
import type { SeedTasks } from './seed.ts';
import type { ServiceTasks } from './service.ts';
import type { LoadResult } from './times.ts';

/** The options of a run. */
export interface Options {
  /** Shorter rounds, fewer of them, and smaller sets of packets. */
  quick: boolean;
  /** How many packets the large list has. */
  packets: number;
  /** The folder where seeded databases are kept for the next run. */
  data: string | undefined;
  /** The folder for CPU profiles of the service. */
  profile: string | undefined;
}

/** The admin key of every measured service. */
const key = 'bench-admin-key-0123456789';

/** Headers of every request to the service. */
export const headers = { 'x-api-key': key };
export const jsonHeaders = { ...headers, 'content-type': 'application/json' };

/** The connections of the load. */
export const connections = 50;

/** A measured service. */
export interface MeasuredService {
  readonly url: string;
  readonly program: Program<ServiceTasks>;
  stop(): Promise<void>;
}

/** The context of a case: the processes of a run, and where figures are reported. */
export interface Run {
  readonly options: Options;
  readonly rounds: number;
  readonly seconds: number;
  /** A folder that is deleted after the run. */
  readonly folder: string;
  readonly ceiling: Program<CeilingTasks>;
  readonly ceilingUrl: string;
  load(load: Load): Promise<LoadResult>;
  burst(burst: Burst): Promise<LoadResult>;
  /** Sends requests in a loop for the length of a round. */
  again(url: string, requests: readonly LoadRequest[], connections?: number): Promise<LoadResult>;
  startService(databaseUrl: string, place?: Place, settings?: Record<string, string>): Promise<MeasuredService>;
  /** Fills a database; returns the ids of the packets. */
  fill(databaseUrl: string, packets: number): Promise<string[]>;
  /** A SQLite file with the given number of packets and their search index: created once per run, or once for all runs where files are kept. */
  seeded(packets: number): Promise<string>;
  report(figure: Figure): void;
  say(line: string): void;
  stop(): Promise<void>;
}

/** The settings of the measured service: defaults, except that its limits are off. */
function settingsFor(databaseUrl: string, port: number): Record<string, string> {
  return {
    SERVICE_DATABASE_URL: databaseUrl,
    SERVICE_ADMIN_KEY: key,
    SERVICE_HOST: '127.0.0.1',
    SERVICE_PORT: String(port),
    SERVICE_RATE_LIMIT_PER_MINUTE: '0',
    SERVICE_HOURLY_QUOTA_BUSINESS: '0',
  };
}

interface ServiceDependencies {
  place: Place;
  profile: string | undefined;
  settings: Record<string, string>;
}

async function startService(databaseUrl: string, { place, profile, settings }: ServiceDependencies): Promise<MeasuredService> {
  const port = await freePort();
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  const program = startProgram<ServiceTasks>('./service.ts', {
    place,
    // As `npm start`, the units and the image set it.
    env: { MALLOC_ARENA_MAX: '2', ...settingsFor(databaseUrl, port), ...settings },
    node: ['--expose-gc', ...profiling],
  });
  await program.call('start', null);
  return { url: `http://127.0.0.1:${port}`, program, stop: () => program.stop() };
}

async function fill(databaseUrl: string, packets: number, ids: boolean): Promise<{ ids: string[]; seconds: number }> {
  const seeder = startProgram<SeedTasks>('./seed.ts', { place: 'anywhere' });
  const made = await seeder.call('seed', { env: settingsFor(databaseUrl, 0), packets, ids });
  await seeder.stop();
  return made;
}

/** Starts the processes that every case needs. */
export async function startRun(options: Options, out: Pick<Run, 'report' | 'say'>): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'baton-bench-'));
  const ceiling = startProgram<CeilingTasks>('./ceiling.ts', { place: 'server' });
  const loader = startProgram<LoadTasks>('./load.ts', { place: 'load' });
  const ceilingUrl = await ceiling.call('start', null);
  const seconds = options.quick ? 1.5 : 4;
  const load = (what: Load) => loader.call('run', what);

  async function seeded(packets: number): Promise<string> {
    const kept = options.data === undefined ? folder : resolve(options.data);
    const path = join(kept, `seeded-${packets}.db`);
    if (existsSync(path)) return path;
    mkdirSync(kept, { recursive: true });
    const unfinished = `${path}.unfinished`;
    for (const end of ['', '-wal', '-shm']) rmSync(`${unfinished}${end}`, { force: true });
    const made = await fill(`sqlite://${unfinished}`, packets, false);
    renameSync(unfinished, path);
    out.say(
      `Seeded ${packets.toLocaleString('en-US')} packets with their search index in ${Math.round(made.seconds)} s (${Math.round(packets / made.seconds).toLocaleString('en-US')} a second).`,
    );
    return path;
  }

  return {
    options,
    rounds: options.quick ? 3 : 5,
    seconds,
    folder,
    ceiling,
    ceilingUrl,
    load,
    burst: (what) => loader.call('burst', what),
    again: (url, requests, open = connections) => load({ url, connections: open, requests, seconds }),
    startService: (databaseUrl, place = 'server', settings = {}) =>
      startService(databaseUrl, { place, profile: options.profile, settings }),
    fill: async (databaseUrl, packets) => (await fill(databaseUrl, packets, true)).ids,
    seeded,
    ...out,
    async stop() {
      await Promise.all([ceiling.stop(), loader.stop()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts a PostgreSQL with databases of these names, runs work with its address, and removes it afterwards. */
export async function withDatabases(names: readonly string[], work: (server: string) => Promise<void>): Promise<void> {
  const server = await startPostgres();
  try {
    for (const name of names) await query(`${server.url}/postgres`, `create database ${name}`);
    await work(server.url);
  } finally {
    await server.stop();
  }
}

/** The rows that a query on a database returns. */
export async function query(databaseUrl: string, text: string): Promise<Record<string, string>[]> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** Runs work on a filled PostgreSQL database, and removes the database afterwards. */
export function withPostgres(run: Run, packets: number, work: (url: string) => Promise<void>): Promise<void> {
  return withDatabases(['bench'], async (server) => {
    const url = `${server}/bench`;
    await run.fill(url, packets);
    // PostgreSQL's autovacuum would do this within a minute.
    await query(url, 'vacuum analyze');
    await work(url);
  });
}
