import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { keepRunning, type Run } from './keep-running.ts';
import { readStartFlags, type StartFlags } from './start-flags.ts';
import { unknownVariables } from './variables.ts';

// `npm start`: runs each service of this package in its own process, by default on embedded storage. The end of a service does
// not end the other, unless it can't be restarted, and long work of one does not delay requests to the other.

type ServiceName = 'handoff' | 'fallback';

const flags = readStartFlags(process.argv.slice(2), process.env);
const warning = unknownVariables(process.env);
if (warning !== undefined) console.error(`warning: ${warning}`);
process.exitCode = await runAll(flags);

/** Starts the services and forwards signals to them; resolves with the exit code when all have ended. */
async function runAll({
  host,
  handoffPort,
  fallbackPort,
  fallbackStorage = 'sqlite://./data/fallback.db',
  allowOpen,
  allowLive,
}: StartFlags): Promise<number> {
  const running = new Map<ServiceName, ChildProcess>();
  // The running services, and those still to be started or restarted.
  const wanted = new Set<ServiceName>(['handoff', 'fallback']);
  const stopping = new AbortController();
  const stop = (signal: NodeJS.Signals) => {
    stopping.abort();
    for (const child of running.values()) child.kill(signal);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);

  /** Runs a service once; `onReady` is called when it serves or has ended. */
  async function run(name: ServiceName, serveFlags: Record<string, string | undefined>, onReady: () => void): Promise<Run> {
    const child = fork(
      fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './start-service.ts' : './start-service.js', import.meta.url)),
      [name, JSON.stringify(serveFlags)],
      // With its default number of arenas, glibc keeps several hundred megabytes of freed memory after a peak.
      { env: { MALLOC_ARENA_MAX: '2', ...process.env } },
    );
    running.set(name, child);
    let hasServed = false;
    child.on('message', (message) => {
      hasServed ||= message === 'listening';
      if (hasServed) onReady();
    });
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    running.delete(name);
    onReady();
    const wasStopped = stopping.signal.aborted;
    if (!wasStopped) console.error(`The ${name} service has ended (${code === null ? `signal ${signal}` : `exit code ${code}`}).`);
    return { code: code ?? (wasStopped ? 0 : 1), wasStopped, hasServed };
  }

  function start(name: ServiceName, serveFlags: Record<string, string | undefined>): { ready: Promise<void>; ended: Promise<number> } {
    const { promise: ready, resolve: onReady } = Promise.withResolvers<void>();
    const keeping = keepRunning({
      run: () => run(name, serveFlags, onReady),
      now: () => performance.now(),
      pause: (ms) => sleep(ms, false, { signal: stopping.signal }).catch(() => true),
      onRestart: (ms) => console.error(`The ${name} service starts again in ${ms / 1000} s.`),
    });
    const ended = keeping.then(({ code, gaveUp }) => {
      wanted.delete(name);
      if (gaveUp) {
        console.error(`The ${name} service has ended five times within a minute and is not started again. Both services end.`);
        stop('SIGTERM');
      } else if (!stopping.signal.aborted && wanted.size > 0) console.error(`The ${[...wanted].join(' and ')} service continues.`);
      return code;
    });
    return { ready, ended };
  }

  const handoff = start('handoff', { host, port: handoffPort });
  // One after the other, so that their first lines always have the same order.
  await handoff.ready;
  if (stopping.signal.aborted) return handoff.ended;
  const fallback = start('fallback', {
    host,
    port: fallbackPort,
    storage: fallbackStorage,
    allowOpen: allowOpen && 'true',
    allowLive: allowLive && 'true',
  });
  return Math.max(await handoff.ended, await fallback.ended);
}
