import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

import { freePort } from '../../src/kit/free-port.ts';
import { startPostgres, type TestPostgres } from '../../test/support/postgres.ts';
import { type Program, startProgram } from '../../test/support/program.ts';
import { createRedis, skipWithoutRedis, type TestRedis } from '../../test/support/redis.ts';

export const adminKey = 'soak-admin-key-0123456789';

/** A service that is killed and started again at the same address. */
export class Instance {
  readonly name: string;
  readonly url: string;
  readonly #command: readonly string[];
  readonly #env: Record<string, string>;
  #program: Program | undefined;
  /** How often it was killed or stopped. */
  ends = 0;

  constructor(name: string, port: number, command: readonly string[], env: Record<string, string>) {
    this.name = name;
    this.url = `http://127.0.0.1:${port}`;
    this.#command = command;
    this.#env = env;
  }

  /** Resolves when it listens. */
  async start(): Promise<void> {
    this.#program = startProgram([process.execPath, ...this.#command], { env: { ...process.env, ...this.#env } });
    await this.#program.printed(/listening on/);
  }

  /** Kills it, as `kill -9` does. */
  async kill(): Promise<void> {
    this.ends += 1;
    this.#program?.child.kill('SIGKILL');
    await this.#program?.ended;
  }

  /** Stops it with SIGTERM; resolves with its exit code. */
  async stop(): Promise<number | null> {
    this.ends += 1;
    this.#program?.child.kill('SIGTERM');
    return (await this.#program?.ended) ?? null;
  }

  /** The lines of its log, all of them errors. */
  errors(): string[] {
    return (this.#program?.lines ?? []).filter((line) => line.startsWith('{'));
  }

  /** What it said last of a problem. */
  lastProblem(): string | undefined {
    return this.#program?.errors.at(-1) ?? this.errors().at(-1);
  }

  /** Its resident memory in MiB; undefined while it does not run, and on systems without `/proc`. */
  rss(): number | undefined {
    try {
      const pages = Number(readFileSync(`/proc/${this.#program!.child.pid}/statm`, 'utf8').split(' ')[1]);
      return (pages * 4096) / 1024 / 1024;
    } catch {
      return undefined;
    }
  }
}

/** The services of a soak, and what they depend on. */
export interface Places {
  readonly description: string;
  readonly handoff: readonly Instance[];
  readonly fallback: Instance;
  /** Undefined on SQLite. */
  readonly redis: TestRedis | undefined;
  /** Undefined on SQLite. */
  readonly postgres: TestPostgres | undefined;
  stop(): Promise<void>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Starts two handoff instances on PostgreSQL and Redis, or one on SQLite if asked to or where there is no Redis, and a fallback service. */
export async function startPlaces({ onSqlite }: { onSqlite: boolean }): Promise<Places> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-soak-'));
  const redis = onSqlite || skipWithoutRedis ? undefined : await createRedis();
  const server = redis === undefined ? undefined : await startPostgres();
  if (server !== undefined) {
    const client = new pg.Client(`${server.url}/postgres`);
    await client.connect();
    await client.query('create database soak');
    await client.end();
    await redis!.start();
  }
  const env = {
    SERVICE_DATABASE_URL: server === undefined ? `sqlite://${join(folder, 'handoff.db')}` : `${server.url}/soak`,
    ...(redis === undefined ? {} : { SERVICE_REDIS_URL: redis.url }),
    SERVICE_ADMIN_KEY: adminKey,
    SERVICE_HOST: '127.0.0.1',
    SERVICE_LOG_LEVEL: 'error',
    SERVICE_LOG_FORMAT: 'json',
    // High enough to refuse nothing; with 0 Redis would not be asked.
    SERVICE_RATE_LIMIT_PER_MINUTE: '10000000',
    SERVICE_HOURLY_QUOTA_BUSINESS: '1000000000',
    SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
    SERVICE_WEBHOOK_RETRY_SECONDS: '1,2,5,10,20,30,60',
  };
  const make = async (name: string) => {
    const port = await freePort();
    return new Instance(name, port, [join(root, 'bin/service-cli.js'), 'serve'], { ...env, SERVICE_PORT: String(port) });
  };
  const handoff = [await make('handoff A'), ...(server === undefined ? [] : [await make('handoff B')])];
  const port = await freePort();
  const storage = `sqlite://${join(folder, 'fallback.db')}`;
  const fallback = new Instance(
    'fallback',
    port,
    [join(root, 'bin/fallback-service.js'), 'serve', '--port', String(port), '--storage', storage],
    { SERVICE_LOG_LEVEL: 'error', SERVICE_LOG_FORMAT: 'json' },
  );
  for (const instance of [...handoff, fallback]) await instance.start();
  return {
    description: server === undefined ? 'one instance on SQLite' : 'two instances on PostgreSQL, with Redis',
    handoff,
    fallback,
    redis,
    postgres: server,
    async stop() {
      for (const instance of [...handoff, fallback]) await instance.kill();
      redis?.thaw();
      await redis?.stop();
      await server?.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
