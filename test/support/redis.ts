import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import { freePort } from './ports.ts';
import { findProgram } from './programs.ts';

/** A real Redis that a test can stop, freeze and restart. */
export interface TestRedis {
  readonly url: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Suspends it: it does not answer, but its connections stay open. */
  freeze(): void;
  thaw(): void;
}

/** Why the Redis suites are skipped on this machine, or false. */
export const skipWithoutRedis = findProgram('redis-server') === undefined && 'no redis-server on this machine';

/** Starts a Redis on a free port without persistence. */
export async function createRedis(): Promise<TestRedis> {
  const port = await freePort();
  let server: ChildProcess | undefined;
  return {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      const started = spawn(findProgram('redis-server')!, [
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--save',
        '',
        '--appendonly',
        'no',
      ]);
      server = started;
      for await (const chunk of started.stdout) if (String(chunk).includes('Ready to accept connections')) return;
    },
    async stop() {
      if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
      server.kill('SIGKILL');
      await once(server, 'exit');
    },
    freeze: () => void server?.kill('SIGSTOP'),
    thaw: () => void server?.kill('SIGCONT'),
  };
}
