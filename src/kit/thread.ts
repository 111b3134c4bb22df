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

/** Priority and memory limit of a thread. */
export interface ThreadOptions {
  /** Gives the thread a lower CPU priority than the rest of the process, where the system has priorities by thread (Linux). */
  lowPriority?: boolean;
  /** The heap limit in MiB. A thread that exceeds it exits, and its calls fail with `ERR_WORKER_OUT_OF_MEMORY`. */
  heapMib?: number;
}

/**
 * A worker thread that runs a module that calls `serveTasks`; `threadData` returns `data` there. It starts at the first call and,
 * after a failure, again at the next. It starts tasks in the order of the calls; while one waits, others run. It keeps the process
 * alive only while a call is open.
 */
export class Thread<T extends Tasks> {
  readonly #entry: URL;
  readonly #start: Start;
  readonly #heapMib: number | undefined;
  readonly #open = new Map<number, { resolve(value: unknown): void; reject: (error: unknown) => void }>();
  #worker: Worker | undefined;
  #lastId = 0;
  #isStopped = false;
  #ending: Promise<unknown> | undefined;

  constructor(entry: URL, data: unknown, { lowPriority = false, heapMib }: ThreadOptions = {}) {
    this.#entry = entry;
    this.#start = { data, lowPriority };
    this.#heapMib = heapMib;
  }

  /** `signal`: aborted when the caller no longer waits; the task's own signal is aborted too, and the call rejects once the task has ended. */
  call<Name extends keyof T & string>(task: Name, argument: Parameters<T[Name]>[0], signal?: AbortSignal): ReturnType<T[Name]> {
    const answered = new Promise((resolve, reject) => {
      if (this.#isStopped) return reject(new Error('The thread has stopped.'));
      if (signal?.aborted) return reject(abandoned());
      const worker = this.#running();
      this.#lastId += 1;
      const id = this.#lastId;
      // An argument that can't be cloned throws here, before the call is open.
      worker.postMessage({ id, task, argument } satisfies Message);
      const abandon = () => worker.postMessage({ id } satisfies Message);
      const settled = () => signal?.removeEventListener('abort', abandon);
      this.#open.set(id, {
        resolve(value) {
          settled();
          resolve(value);
        },
        reject(error) {
          settled();
          reject(signal?.aborted ? abandoned() : error);
        },
      });
      worker.ref();
      signal?.addEventListener('abort', abandon, { once: true });
    });
    return answered as ReturnType<T[Name]>;
  }

  /** The processor time that the thread has used, in milliseconds. It answers when the thread can be interrupted. */
  async usedMs(): Promise<number> {
    const used = await this.#worker?.cpuUsage();
    return used === undefined ? 0 : inMs(used);
  }

  /** Terminates the thread at once; open calls reject with `reason`. The next call starts a new thread. */
  interrupt(reason: Error): void {
    this.#ending = this.#worker?.terminate();
    this.#drop(reason);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([this.#ending, this.#worker?.terminate()]);
  }

  #running(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(this.#entry, {
      workerData: this.#start,
      ...(this.#heapMib === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: this.#heapMib } }),
    });
    worker.on('message', (reply: Reply) => {
      if (this.#worker !== worker) return;
      const waiting = this.#open.get(reply.id);
      this.#open.delete(reply.id);
      if (this.#open.size === 0) worker.unref();
      if ('error' in reply) waiting?.reject(withCodes(reply.error as object, reply.codes));
      else waiting?.resolve(reply.result);
    });
    const failed = (error: Error) => {
      if (this.#worker === worker) this.#drop(error);
    };
    worker.on('error', failed);
    worker.on('exit', () => failed(new Error('The thread has stopped.')));
    // Only an open call keeps the process alive.
    worker.unref();
    this.#worker = worker;
    return worker;
  }

  /** Rejects the open calls; the next call starts a new thread. */
  #drop(reason: Error): void {
    this.#worker = undefined;
    for (const { reject } of this.#open.values()) reject(reason);
    this.#open.clear();
  }
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

/** The module of a thread, by its name without its extension, beside the module with this URL: the package has it as JavaScript. */
export const threadModule = (name: string, url: string): URL => new URL(`./${name}${url.endsWith('.ts') ? '.ts' : '.js'}`, url);

const inMs = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

/** The processor time that this thread has used, in milliseconds. */
export const usedMs = async (): Promise<number> => inMs(process.threadCpuUsage());

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
