import { type ChildProcess, spawn } from 'node:child_process';
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

import { type Place, placed } from './machine.ts';

/** The tasks of a benchmark process by name, each with one argument and one result, both JSON. */
export type Tasks = Record<string, (argument: never) => unknown>;

interface Call {
  id: number;
  task: string;
  argument: unknown;
}

type Reply = { id: number; result: unknown } | { id: number; error: string };

/** A child process that runs tasks. */
export interface Program<T extends Tasks> {
  call<Name extends keyof T & string>(task: Name, argument: Parameters<T[Name]>[0]): Promise<Awaited<ReturnType<T[Name]>>>;
  /** The CPU time it has used, in microseconds. */
  cpu(): Promise<number>;
  /** The durations of the minor garbage collections of its main thread since the last call, in milliseconds. */
  collections(): Promise<number[]>;
  stop(): Promise<void>;
}

/** How a process is started. */
interface ProgramParts {
  place: Place;
  env?: Record<string, string>;
  /** Options for Node itself. */
  node?: readonly string[];
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a module of this folder, which calls `serveTasks`, as a process. Its standard output, and so its log, is discarded. */
export function startProgram<T extends Tasks>(module: string, { place, env = {}, node = [] }: ProgramParts): Program<T> {
  const entry = fileURLToPath(new URL(module, import.meta.url));
  const [command, parameters] = placed(place, process.execPath, [...node, entry]);
  const child = spawn(command, parameters, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: { ...process.env, ...env } });
  running.add(child);

  const open = new Map<number, { resolve(value: unknown): void; reject: (error: Error) => void }>();
  let lastId = 0;
  child.on('message', (reply: Reply) => {
    const waiting = open.get(reply.id);
    open.delete(reply.id);
    if ('error' in reply) waiting?.reject(new Error(`${module}: ${reply.error}`));
    else waiting?.resolve(reply.result);
  });
  const ended = new Promise<void>((resolve) => {
    child.on('exit', (code, signal) => {
      running.delete(child);
      for (const { reject } of open.values()) reject(new Error(`${module} ended (${code ?? signal}).`));
      resolve();
    });
  });

  const send = (task: string, argument: unknown): Promise<unknown> =>
    new Promise((resolve, reject) => {
      lastId += 1;
      open.set(lastId, { resolve, reject });
      child.send({ id: lastId, task, argument } satisfies Call);
    });

  return {
    call: (task, argument) => send(task, argument) as never,
    cpu: () => send('cpu', null) as Promise<number>,
    collections: () => send('collections', null) as Promise<number[]>,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

let collections: number[] = [];

/** The tasks of every process: see `Program`. */
const ownTasks = {
  cpu(_: null): number {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  collections(_: null): number[] {
    const since = collections;
    collections = [];
    return since;
  },
};

/** Serves the calls of the parent process. */
export function serveTasks(tasks: Tasks): void {
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { kind } = (entry as PerformanceEntry & { detail: { kind: number } }).detail;
      if (kind === constants.NODE_PERFORMANCE_GC_MINOR) collections.push(entry.duration);
    }
  }).observe({ entryTypes: ['gc'] });
  const all: Tasks = { ...ownTasks, ...tasks };
  process.on('message', async ({ id, task, argument }: Call) => {
    try {
      process.send!({ id, result: (await all[task]!(argument as never)) ?? null } satisfies Reply);
    } catch (error) {
      process.send!({ id, error: (error as Error).stack ?? String(error) } satisfies Reply);
    }
  });
  process.on('disconnect', () => process.exit(1));
}
