import { abandoned, tookTooLong, tooManyPending } from './errors.ts';

interface FairQueueOptions {
  /** How many tasks run at once. */
  concurrency: number;
  /** How many of them may be one owner's. */
  perOwner: number;
  /** What the tasks are, in the plural, as a refusal names them. */
  what?: string;
  /** How many tasks may wait, of all owners and of one; any further one is refused with 503. */
  maxWaiting?: number;
  maxWaitingPerOwner?: number;
  /** The longest wait in milliseconds, after which the task is refused with 503 and not started; Infinity: none. */
  maxWaitMs?: number;
}

/** A task's place in a queue. */
export interface Place {
  /** Resolves when the task may start, undefined when it may at once; rejects if it will not start. */
  readonly turn: Promise<void> | undefined;
  /** Leaves the queue, before or after the task has run. */
  readonly leave: () => void;
}

/**
 * Lets tasks run round-robin between their owners, however many one owner has waiting. Each owner's tasks start in order. A task
 * whose caller's connection has closed is not started.
 */
export class FairQueue {
  readonly #parts: Required<FairQueueOptions>;
  /** What starts the waiting tasks, by owner; the owner whose turn is next comes first. */
  readonly #waiting = new Map<unknown, Set<() => void>>();
  readonly #running = new Map<unknown, number>();
  #runningCount = 0;
  #waitingCount = 0;

  constructor(parts: FairQueueOptions) {
    this.#parts = {
      what: 'searches and long lists',
      maxWaiting: Number.POSITIVE_INFINITY,
      maxWaitingPerOwner: 1000,
      maxWaitMs: 10_000,
      ...parts,
    };
  }

  /** The numbers of running and waiting tasks. */
  get counts(): { running: number; waiting: number } {
    return { running: this.#runningCount, waiting: this.#waitingCount };
  }

  /**
   * Runs the work when it is the owner's turn. `signal`: aborted when the caller's connection closes.
   * @throws ServiceError 503 when too many tasks wait, or this one waited too long
   */
  async run<T>(owner: unknown, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { turn, leave } = this.enter(owner, signal);
    try {
      if (turn !== undefined) await turn;
      return await work();
    } finally {
      leave();
    }
  }

  /** Takes a place for a task, which must leave it. @throws ServiceError 503 when too many tasks wait */
  enter(owner: unknown, signal?: AbortSignal): Place {
    if (signal?.aborted) throw abandoned();
    let isRunning = this.#mayRun(owner);
    let hasLeft = false;
    let stopWaiting: () => void = () => undefined;
    const leave = () => {
      if (hasLeft) return;
      hasLeft = true;
      if (isRunning) this.#end(owner);
      else stopWaiting();
    };
    if (isRunning) {
      this.#start(owner);
      return { turn: undefined, leave };
    }
    const { what, maxWaiting, maxWaitingPerOwner, maxWaitMs } = this.#parts;
    const queue = this.#waiting.get(owner) ?? new Set();
    if (this.#waitingCount >= maxWaiting || queue.size >= maxWaitingPerOwner) throw tooManyPending(what);
    const { promise: turn, resolve, reject } = Promise.withResolvers<void>();
    // A task that has left may not wait for its turn.
    turn.catch(() => undefined);
    const refuse = (error: unknown) => {
      leave();
      reject(error);
    };
    const abandon = () => refuse(abandoned());
    const timeout = maxWaitMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(() => refuse(tookTooLong()), maxWaitMs);
    stopWaiting = () => {
      clearTimeout(timeout);
      signal?.removeEventListener('abort', abandon);
      this.#waitingCount -= 1;
      queue.delete(start);
      if (queue.size === 0 && this.#waiting.get(owner) === queue) this.#waiting.delete(owner);
    };
    const start = () => {
      stopWaiting();
      isRunning = true;
      this.#start(owner);
      resolve();
    };
    this.#waiting.set(owner, queue.add(start));
    this.#waitingCount += 1;
    signal?.addEventListener('abort', abandon);
    return { turn, leave };
  }

  #mayRun(owner: unknown): boolean {
    return this.#runningCount < this.#parts.concurrency && (this.#running.get(owner) ?? 0) < this.#parts.perOwner;
  }

  #start(owner: unknown): void {
    this.#runningCount += 1;
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1);
  }

  #end(owner: unknown): void {
    this.#runningCount -= 1;
    const running = this.#running.get(owner)! - 1;
    if (running === 0) this.#running.delete(owner);
    else this.#running.set(owner, running);
    for (const [next, queue] of this.#waiting) {
      if (!this.#mayRun(next)) continue;
      const [start] = queue;
      start!();
      // An owner with more tasks goes to the end of the line.
      if (queue.size > 0) {
        this.#waiting.delete(next);
        this.#waiting.set(next, queue);
      }
      return;
    }
  }
}
