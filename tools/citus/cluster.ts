import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';

import { freePort } from '../../src/kit/free-port.ts';
import { debianPostgres } from '../../test/support/programs.ts';

/** One server of a cluster. */
interface ClusterServer {
  /** `127.0.0.1:5432`. */
  readonly address: string;
  /** Kills it, as `kill -9` does. */
  readonly kill: () => Promise<void>;
  /** Starts it again, with its data. */
  start(): Promise<void>;
}

/** A Citus cluster on this machine: a coordinator and workers, which trust every local connection of the user `baton`. */
interface Cluster {
  /** The coordinator first. */
  readonly servers: readonly ClusterServer[];
  stop(): Promise<void>;
}

/** Why there can be no cluster on this machine, or undefined. */
const whyNoCluster: string | undefined =
  debianPostgres === undefined || !existsSync(join(debianPostgres, '../lib/citus.so'))
    ? "The extension citus is not installed for Debian's PostgreSQL (postgresql-15 and Citus 13)."
    : undefined;

const settings = [
  "shared_preload_libraries = 'citus'",
  "listen_addresses = '127.0.0.1'",
  "unix_socket_directories = ''",
  'max_connections = 300',
  // Rows of moved shards are copied by logical replication.
  "wal_level = 'logical'",
  'max_prepared_transactions = 600',
  'citus.shard_count = 8',
  // Nothing is reported to anybody.
  'citus.enable_statistics_collection = off',
  'citus.node_connection_timeout = 5000',
  "citus.node_conninfo = 'sslmode=disable'",
  // Servers are killed, not machines, whose loss of power alone would lose what is not yet on the disk.
  'fsync = off',
  'autovacuum_naptime = 600',
];

/** Starts a coordinator and workers. Root runs them as the user `postgres`, since PostgreSQL refuses root. */
export async function startCluster(workers = 2): Promise<Cluster> {
  if (whyNoCluster !== undefined) throw new Error(whyNoCluster);
  const folder = await mkdtemp(join(tmpdir(), 'baton-citus-'));
  const user = process.getuid?.() === 0 ? { uid: idOf('-u'), gid: idOf('-g') } : {};
  if (user.uid !== undefined) await chown(folder, user.uid, user.gid);
  await chmod(folder, 0o700);
  const servers = await Promise.all(Array.from({ length: workers + 1 }, (_, index) => startServer(join(folder, `server-${index}`), user)));
  return {
    servers,
    async stop() {
      await Promise.all(servers.map(({ kill }) => kill()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const idOf = (flag: '-u' | '-g') => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));

interface User {
  readonly uid?: number;
  readonly gid?: number;
}

async function startServer(data: string, user: User): Promise<ClusterServer> {
  const port = await freePort();
  const options = { ...user, cwd: tmpdir(), env: { PATH: process.env.PATH, LC_ALL: 'C', HOME: tmpdir() } };
  const initdb = ['-D', data, '-U', 'baton', '--auth=trust', '--encoding=UTF8', '--locale=C', '--no-sync'];
  await promisify(execFile)(join(debianPostgres!, 'initdb'), initdb, options);
  await appendFile(join(data, 'postgresql.conf'), `${[...settings, `port = ${port}`].join('\n')}\n`);
  let child: ChildProcess | undefined;
  /** Resolves with whether it accepts connections; otherwise it has ended. */
  async function isStarted(): Promise<boolean> {
    const started = spawn(join(debianPostgres!, 'postgres'), ['-D', data], { ...options, stdio: ['ignore', 'ignore', 'pipe'] });
    child = started;
    const ready = new Promise<boolean>((resolve) => {
      started.stderr.setEncoding('utf8').on('data', (text: string) => {
        if (text.includes('database system is ready to accept connections')) resolve(true);
      });
    });
    return await Promise.race([ready, once(started, 'exit').then(() => false)]);
  }
  async function start(): Promise<void> {
    // The processes of connections of a killed server end on their own, and until then it can't start.
    for (let attempt = 1; !(await isStarted()); attempt += 1) {
      if (attempt === 100) throw new Error('PostgreSQL does not start.');
      await sleep(100);
    }
  }
  await start();
  return {
    address: `127.0.0.1:${port}`,
    start,
    async kill() {
      const ended = once(child!, 'exit');
      child!.kill('SIGKILL');
      await ended;
    },
  };
}

/** Runs statements on a server's database, one after the other; returns the rows of the last. */
export async function onServer(address: string, database: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(`postgres://baton@${address}/${database}`);
  await client.connect();
  try {
    let rows: Record<string, unknown>[] = [];
    for (const statement of statements) ({ rows } = await client.query(statement));
    return rows;
  } finally {
    await client.end();
  }
}
