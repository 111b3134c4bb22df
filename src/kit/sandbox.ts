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
  /** The most processor time of a task, in milliseconds. */
  readonly deadlineMs: number;
  /** The most pending tasks, including the running one; of all owners and of one. */
  readonly maxPending: number;
  readonly maxPendingPerOwner: number;
  /** The heap limit of the thread, in MiB. */
  readonly heapMib: number;
}

/** The tasks of a sandbox's thread. `ready` is `usedMs`: the time that the thread needs to start counts towards no task. */
export type SandboxTasks = Tasks & { ready(argument: Record<string, never>): Promise<number> };

/**
 * How many times its processor time a task may take by the clock. A busy machine must not refuse what a quiet one takes, and a task
 * that waits for something uses no processor time.
 */
const longestByClock = 10;

/** How many times its processor time a task may leave the question unanswered what it has used. */
const silentByClock = 2;

/** The longest wait of a task in the queue, in milliseconds. */
const maxWaitMs = 30_000;

/**
 * Runs tasks on untrusted input in a thread with limits of processor time and heap. The thread starts with the first task, and again after one
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
    const end = () => this.#thread.interrupt(new TaskEnded('time'));
    const timers: NodeJS.Timeout[] = [];
    let isOver = false;
    try {
      const before = (await this.#thread.call('ready', {} as Parameters<T['ready']>[0])) as number;
      const judge = (used: number) => {
        if (isOver) return;
        if (used >= this.#deadlineMs) end();
        else timers[0] = setTimeout(look, this.#deadlineMs - used);
      };
      const look = () => {
        // A thread that is in one long step does not say what it has used: it is busy, and others wait for it.
        timers[0] = setTimeout(end, silentByClock * this.#deadlineMs);
        const answered = (used: number) => {
          clearTimeout(timers[0]);
          judge(used);
        };
        this.#thread.usedMs().then(
          (total) => answered(total - before),
          () => answered(0),
        );
      };
      timers.push(setTimeout(look, this.#deadlineMs), setTimeout(end, longestByClock * this.#deadlineMs));
      return await this.#thread.call(task, argument);
    } catch (error) {
      throw (error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY' ? new TaskEnded('memory') : error;
    } finally {
      isOver = true;
      for (const timer of timers) clearTimeout(timer);
    }
  }
}
