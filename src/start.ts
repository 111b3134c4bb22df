import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { readStartFlags, type StartFlags } from './start-flags.ts';
import { unknownVariables } from './variables.ts';

// `npm start`: runs each service of this package in its own process, by default on embedded storage. A service that fails or
// stops does not end the other, and long work of one does not delay requests to the other.

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
  // The running services, and those still to be started.
  const wanted = new Set<ServiceName>(['handoff', 'fallback']);
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      stopping = true;
      for (const child of running.values()) child.kill(signal);
    });
  }

  function start(name: ServiceName, serveFlags: Record<string, string | undefined>): { ready: Promise<void>; ended: Promise<number> } {
    const child = fork(
      fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './start-service.ts' : './start-service.js', import.meta.url)),
      [name, JSON.stringify(serveFlags)],
    );
    running.set(name, child);
    const ended = new Promise<number>((resolve) => {
      child.once('exit', (code, signal) => {
        running.delete(name);
        wanted.delete(name);
        if (!stopping) reportEnd(name, code === null ? `signal ${signal}` : `exit code ${code}`, [...wanted]);
        resolve(code ?? (stopping ? 0 : 1));
      });
    });
    const ready = new Promise<void>((resolve) => {
      child.on('message', (message) => {
        if (message === 'listening') resolve();
      });
      void ended.then(() => resolve());
    });
    return { ready, ended };
  }

  const handoff = start('handoff', { host, port: handoffPort });
  // One after the other, so that their first lines always have the same order.
  await handoff.ready;
  if (stopping) return handoff.ended;
  const fallback = start('fallback', {
    host,
    port: fallbackPort,
    storage: fallbackStorage,
    allowOpen: allowOpen && 'true',
    allowLive: allowLive && 'true',
  });
  return Math.max(await handoff.ended, await fallback.ended);
}

function reportEnd(name: ServiceName, how: string, others: readonly ServiceName[]): void {
  const rest = others.length === 0 ? '' : ` The ${others.join(' and ')} service continues.`;
  console.error(`The ${name} service has ended (${how}).${rest}`);
}
