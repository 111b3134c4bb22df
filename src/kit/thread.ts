import { constants, setPriority } from 'node:os';
import { parentPort, Worker, workerData } from 'node:worker_threads';

import { abandoned } from './errors.ts';

/** Work that another thread does: by name, with one argument and one result that can be copied between threads. */
export type Tasks = Record<string, (argument: never, signal: AbortSignal) => Promise<unknown>>;

/** `task` is missing where the call with this number is abandoned. */
type Message = Call | { id: number; task?: undefined };

interface Call {
  id: number;
  task: string;
  argument: unknown;
}

/** A copy of an error keeps its message and stack alone, so the codes by which it is known travel beside it. */
type Reply = { id: number; result: unknown } | { id: number; error: unknown; codes: { code?: unknown; errcode?: unknown } };

/** Another thread that carries out tasks, begun in the order they were asked for. One that waits gives the others their turn. */
export interface Thread<T extends Tasks> {
  /** `signal`: nobody waits for the result any more; the task is told, and the call rejects. */
  call<Name extends keyof T & string>(task: Name, argument: Parameters<T[Name]>[0], signal?: AbortSignal): ReturnType<T[Name]>;
  /** Ends the thread in the middle of its work, with `reason` for every open call; the next call starts a new one. */
  interrupt(reason: Error): void;
  stop(): Promise<void>;
}

/** How a thread runs. */
export interface ThreadOptions {
  /** Leaves the processor to the others of the process, where the system can do that by thread (Linux). */
  patient?: boolean;
  /** The most its heap may take, in MiB. A thread that needs more ends, and its calls fail with `ERR_WORKER_OUT_OF_MEMORY`. */
  heapMib?: number;
}

/**
 * A thread on a module of ours that calls `serveTasks`; `data` is what `threadData` gives there. It starts at the first
 * call and, should it fail, again at the next. It keeps the process alive only while a call is open.
 */
export function startThread<T extends Tasks>(entry: URL, data: unknown, { patient = false, heapMib }: ThreadOptions = {}): Thread<T> {
  const open = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  let worker: Worker | undefined;
  let lastId = 0;
  let stopped = false;

  function running(): Worker {
    if (worker !== undefined) return worker;
    const started = new Worker(entry, {
      workerData: { data, patient } satisfies Start,
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
    const failAll = (error: Error) => {
      if (worker !== started) return;
      worker = undefined;
      for (const { reject } of open.values()) reject(error);
      open.clear();
    };
    started.on('error', failAll);
    started.on('exit', () => failAll(new Error('The thread has stopped.')));
    // Only an open call keeps the process alive.
    started.unref();
    worker = started;
    return started;
  }

  return {
    call(task, argument, signal) {
      const answered = new Promise((resolve, reject) => {
        if (stopped) return reject(new Error('The thread has stopped.'));
        if (signal?.aborted) return reject(abandoned());
        const thread = running();
        lastId += 1;
        const id = lastId;
        // An argument that can't be copied throws here, before the call is open.
        thread.postMessage({ id, task, argument } satisfies Message);
        const abandon = () => {
          thread.postMessage({ id } satisfies Message);
          reject(abandoned());
        };
        const settled = () => signal?.removeEventListener('abort', abandon);
        open.set(id, {
          resolve(value) {
            settled();
            resolve(value);
          },
          reject(error) {
            settled();
            reject(error);
          },
        });
        thread.ref();
        signal?.addEventListener('abort', abandon, { once: true });
      });
      return answered as ReturnType<T[typeof task]>;
    },
    interrupt(reason) {
      const ended = worker;
      worker = undefined;
      for (const { reject } of open.values()) reject(reason);
      open.clear();
      void ended?.terminate();
    },
    async stop() {
      stopped = true;
      await worker?.terminate();
    },
  };
}

/** Defined, not assigned: the error of an aborted signal has a `code` of its own that can't be set. */
function withCodes(error: object, codes: object): object {
  for (const [name, value] of Object.entries(codes)) {
    if (value !== undefined) Object.defineProperty(error, name, { value, configurable: true, enumerable: true, writable: true });
  }
  return error;
}

/** What the starter hands to a thread. */
interface Start {
  data: unknown;
  patient: boolean;
}

/** What the starter handed to this thread. */
export function threadData<T>(): T {
  return (workerData as Start).data as T;
}

/** Answers the calls of the thread that started this one. An error's own `errcode` and `code` travel with it. */
export function serveTasks(tasks: Tasks): void {
  if ((workerData as Start).patient && process.platform === 'linux') setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  const inHand = new Map<number, AbortController>();
  parentPort!.on('message', async (message: Message) => {
    const { id } = message;
    if (message.task === undefined) return inHand.get(id)?.abort(abandoned());
    const { task, argument } = message;
    const controller = new AbortController();
    inHand.set(id, controller);
    try {
      const result = await tasks[task]!(argument as never, controller.signal);
      parentPort!.postMessage({ id, result } satisfies Reply);
    } catch (error) {
      const { code, errcode } = error as { code?: unknown; errcode?: unknown };
      parentPort!.postMessage({ id, error, codes: { code, errcode } } satisfies Reply);
    } finally {
      inHand.delete(id);
    }
  });
}
