import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { readStartFlags, type StartFlags } from './start-flags.ts';
import { unknownVariables } from './variables.ts';

// What `npm start` runs: every service of this package, on embedded storage unless the settings say otherwise, each in a
// process of its own. One that fails or stops ends no other, and long work of one holds up no request of another.

type ServiceName = 'handoff' | 'fallback';

const flags = readStartFlags(process.argv.slice(2), process.env);
const warning = unknownVariables(process.env);
if (warning !== undefined) console.error(`warning: ${warning}`);
process.exitCode = await runAll(flags);

/** Starts the services, passes signals on to them, and gives the exit code once all have ended. */
async function runAll({
  host,
  handoffPort,
  fallbackPort,
  fallbackStorage = 'sqlite://./data/fallback.db',
  allowOpen,
  allowLive,
}: StartFlags): Promise<number> {
  const running = new Map<ServiceName, ChildProcess>();
  // Those that run, and those whose turn to start comes.
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
        if (!stopping) tellOfEnd(name, code === null ? `signal ${signal}` : `exit code ${code}`, [...wanted]);
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
  // One after the other, so that their first lines stand in the same order at every start.
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

function tellOfEnd(name: ServiceName, how: string, others: readonly ServiceName[]): void {
  const rest = others.length === 0 ? '' : ` The ${others.join(' and ')} service goes on.`;
  console.error(`The ${name} service has ended (${how}).${rest}`);
}
