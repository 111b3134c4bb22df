import { freePort } from '../../src/kit/free-port.ts';
import { type Program, startProgram } from './program.ts';
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
  let server: Program | undefined;
  return {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      server = startProgram([
        findProgram('redis-server')!,
        ...['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
      ]);
      await server.printed(/Ready to accept connections/);
    },
    async stop() {
      server?.child.kill('SIGKILL');
      await server?.ended;
    },
    freeze: () => void server?.child.kill('SIGSTOP'),
    thaw: () => void server?.child.kill('SIGCONT'),
  };
}
