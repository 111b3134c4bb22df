import { FairQueue } from './fair-queue.ts';
import { type Tasks, Thread } from './thread.ts';

/** Thrown for a task that was ended, since it needed more time or memory than it may have. */
export class TaskEnded extends Error {
  readonly limit: 'time' | 'memory';

  constructor(limit: 'time' | 'memory') {
    super(`The task needs too much ${limit}.`);
    this.limit = limit;
  }
}

/** The limits of a sandbox. */
export interface SandboxLimits {
  /** The timeout of a task, in milliseconds. */
  readonly deadlineMs: number;
  /** The most pending tasks, including the running one; of all owners and of one. */
  readonly maxPending: number;
  readonly maxPendingPerOwner: number;
  /** The heap limit of the thread, in MiB. */
  readonly heapMib: number;
}

/** The tasks of a sandbox's thread. `ready` does nothing: the time that the thread needs to start counts towards no task. */
export type SandboxTasks = Tasks & { ready(argument: Record<string, never>): Promise<unknown> };

/** The longest wait of a task in the queue, in milliseconds. */
const maxWaitMs = 30_000;

/**
 * Runs tasks on untrusted input in a thread with a timeout and a heap limit. The thread starts with the first task, and again after one
 * that was ended. Tasks run one at a time, in turns between owners.
 */
export class Sandbox<T extends SandboxTasks> {
  readonly #thread: Thread<T>;
  readonly #queue: FairQueue;
  readonly #deadlineMs: number;

  /** @param what what the tasks are about, in the plural, as a refusal names it */
  constructor(entry: URL, what: string, { deadlineMs, maxPending, maxPendingPerOwner, heapMib }: SandboxLimits) {
    this.#thread = new Thread<T>(entry, {}, { heapMib });
    this.#deadlineMs = deadlineMs;
    this.#queue = new FairQueue({
      ...{ concurrency: 1, perOwner: 1, maxWaitMs, what },
      maxWaiting: maxPending - 1,
      maxWaitingPerOwner: maxPendingPerOwner - 1,
    });
  }

  /** The result of a task. @throws TaskEnded; ServiceError 503 when too many tasks wait, or this one waited too long */
  run<Name extends keyof T & string>(owner: unknown, task: Name, argument: Parameters<T[Name]>[0]): ReturnType<T[Name]> {
    return this.#queue.run(owner, () => this.#withDeadline(task, argument)) as ReturnType<T[Name]>;
  }

  stop(): Promise<void> {
    return this.#thread.stop();
  }

  async #withDeadline<Name extends keyof T & string>(task: Name, argument: Parameters<T[Name]>[0]): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined;
    try {
      await this.#thread.call('ready', {} as Parameters<T['ready']>[0]);
      timer = setTimeout(() => this.#thread.interrupt(new TaskEnded('time')), this.#deadlineMs);
      return await this.#thread.call(task, argument);
    } catch (error) {
      throw (error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY' ? new TaskEnded('memory') : error;
    } finally {
      clearTimeout(timer);
    }
  }
}
