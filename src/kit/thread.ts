import { constants, setPriority } from 'node:os';
import { parentPort, Worker, workerData } from 'node:worker_threads';

import { rethrow } from './awaitable.ts';
import { abandoned } from './errors.ts';

/** Tasks of another thread by name, each with one argument and one result, both of which can be cloned between threads. */
export type Tasks = Record<string, (argument: never, signal: AbortSignal) => Promise<unknown>>;

/** Without `task`, the caller abandons the call with this id. */
type Message = Call | { id: number; task?: undefined };

interface Call {
  id: number;
  task: string;
  argument: unknown;
}

/** A cloned error keeps only its message and stack, so its codes are sent beside it. */
type Reply = { id: number; result: unknown } | { id: number; error: unknown; codes: { code?: unknown; errcode?: unknown } };

/** A worker thread that starts tasks in the order of the calls. While one task waits, others run. */
export type Thread<T extends Tasks> = ReturnType<typeof startThread<T>>;

/** Priority and memory limit of a thread. */
export interface ThreadOptions {
  /** Gives the thread a lower CPU priority than the rest of the process, where the system has priorities by thread (Linux). */
  lowPriority?: boolean;
  /** The heap limit in MiB. A thread that exceeds it exits, and its calls fail with `ERR_WORKER_OUT_OF_MEMORY`. */
  heapMib?: number;
}

/**
 * A thread that runs a module that calls `serveTasks`; `threadData` returns `data` there. It starts at the first call and,
 * after a failure, again at the next. It keeps the process alive only while a call is open.
 */
export function startThread<T extends Tasks>(entry: URL, data: unknown, { lowPriority = false, heapMib }: ThreadOptions = {}) {
  const open = new Map<number, { resolve(value: unknown): void; reject: (error: unknown) => void }>();
  let worker: Worker | undefined;
  let lastId = 0;
  let stopped = false;
  let ending: Promise<unknown> | undefined;

  function running(): Worker {
    if (worker !== undefined) return worker;
    const started = new Worker(entry, {
      workerData: { data, lowPriority } satisfies Start,
      ...(heapMib === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapMib } }),
    });
    started.on('message', (reply: Reply) => {
      if (worker !== started) return;
      const waiting = open.get(reply.id);
      open.delete(reply.id);
      if (open.size === 0) started.unref();
      if ('error' in reply) waiting?.reject(withCodes(reply.error as object, reply.codes));
      else waiting?.resolve(reply.result);
    });
    const failed = (error: Error) => {
      if (worker === started) drop(error);
    };
    started.on('error', failed);
    started.on('exit', () => failed(new Error('The thread has stopped.')));
    // Only an open call keeps the process alive.
    started.unref();
    worker = started;
    return started;
  }

  /** Rejects the open calls; the next call starts a new thread. */
  function drop(reason: Error): void {
    worker = undefined;
    for (const { reject } of open.values()) reject(reason);
    open.clear();
  }

  return {
    /** `signal`: aborted when the caller no longer waits; the task's own signal is aborted too, and the call rejects once the task has ended. */
    call<Name extends keyof T & string>(task: Name, argument: Parameters<T[Name]>[0], signal?: AbortSignal): ReturnType<T[Name]> {
      const answered = new Promise((resolve, reject) => {
        if (stopped) return reject(new Error('The thread has stopped.'));
        if (signal?.aborted) return reject(abandoned());
        const thread = running();
        lastId += 1;
        const id = lastId;
        // An argument that can't be cloned throws here, before the call is open.
        thread.postMessage({ id, task, argument } satisfies Message);
        const abandon = () => thread.postMessage({ id } satisfies Message);
        const settled = () => signal?.removeEventListener('abort', abandon);
        open.set(id, {
          resolve(value) {
            settled();
            resolve(value);
          },
          reject(error) {
            settled();
            reject(signal?.aborted ? abandoned() : error);
          },
        });
        thread.ref();
        signal?.addEventListener('abort', abandon, { once: true });
      });
      return answered as ReturnType<T[Name]>;
    },
    /** Terminates the thread at once; open calls reject with `reason`. The next call starts a new thread. */
    interrupt(reason: Error): void {
      ending = worker?.terminate();
      drop(reason);
    },
    async stop(): Promise<void> {
      stopped = true;
      await Promise.all([ending, worker?.terminate()]);
    },
  };
}

/** Defines the codes instead of assigning them: the error of an aborted signal has a read-only `code`. */
function withCodes(error: object, codes: object): object {
  for (const [name, value] of Object.entries(codes)) {
    if (value !== undefined) Object.defineProperty(error, name, { value, configurable: true, enumerable: true, writable: true });
  }
  return error;
}

/** What the parent passes to a thread. */
interface Start {
  data: unknown;
  lowPriority: boolean;
}

/** The `data` that the parent passed to this thread. */
export function threadData<T>(): T {
  return (workerData as Start).data as T;
}

/** Serves the calls of the parent thread. An error is sent with its `errcode` and `code`. */
export function serveTasks(tasks: Tasks): void {
  if ((workerData as Start).lowPriority && process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const running = new Map<number, AbortController>();
  async function run({ id, task, argument }: Call): Promise<void> {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      const result = await tasks[task]!(argument as never, controller.signal);
      parentPort!.postMessage({ id, result } satisfies Reply);
    } catch (error) {
      const { code, errcode } = error as { code?: unknown; errcode?: unknown };
      parentPort!.postMessage({ id, error, codes: { code, errcode } } satisfies Reply);
    } finally {
      running.delete(id);
    }
  }
  parentPort!.on('message', (message: Message) => {
    if (message.task === undefined) running.get(message.id)?.abort(abandoned());
    else run(message).catch(rethrow);
  });
}
