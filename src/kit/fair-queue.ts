import { abandoned, tookTooLong, tooManyPending } from './errors.ts';

interface FairQueueParts {
  /** How many tasks run at once. */
  concurrency: number;
  /** How many of them may be one owner's. */
  perOwner: number;
  /** How many tasks of one owner may wait; any further one is refused with 503. */
  maxWaiting?: number;
  /** The longest wait in milliseconds; after it the task is refused with 503 and not started. */
  maxWaitMs?: number;
}

/**
 * Runs tasks round-robin between their owners, however many one owner has waiting. Each owner's tasks start in order. A task
 * whose caller's connection has closed is not started.
 */
export class FairQueue {
  readonly #parts: Required<FairQueueParts>;
  /** What starts the waiting tasks, by owner; the owner whose turn is next comes first. */
  readonly #waiting = new Map<unknown, (() => void)[]>();
  readonly #running = new Map<unknown, number>();
  #active = 0;

  constructor(parts: FairQueueParts) {
    this.#parts = { maxWaiting: 1000, maxWaitMs: 10_000, ...parts };
  }

  /**
   * Runs the work when it is the owner's turn. `signal`: aborted when the caller's connection closes.
   * @throws ServiceError 503 when the owner has too many tasks waiting, or this one waited too long
   */
  run<T>(owner: unknown, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(abandoned());
      // Work that throws before it returns a promise must release its place too.
      const call = async () => work();
      const start = () => {
        this.#active += 1;
        this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1);
        call()
          .then(resolve, reject)
          .finally(() => this.#end(owner));
      };
      if (this.#hasRoom(owner)) return start();
      const queue = this.#waiting.get(owner) ?? [];
      if (queue.length >= this.#parts.maxWaiting) return reject(tooManyPending('searches and long lists'));
      this.#waiting.set(owner, queue);
      const leave = (error: unknown) => {
        const index = queue.indexOf(enter);
        if (index !== -1) queue.splice(index, 1);
        if (queue.length === 0 && this.#waiting.get(owner) === queue) this.#waiting.delete(owner);
        settle();
        reject(error);
      };
      const abandon = () => leave(abandoned());
      const timeout = setTimeout(() => leave(tookTooLong()), this.#parts.maxWaitMs);
      const settle = () => {
        clearTimeout(timeout);
        signal?.removeEventListener('abort', abandon);
      };
      const enter = () => {
        settle();
        start();
      };
      signal?.addEventListener('abort', abandon);
      queue.push(enter);
    });
  }

  #hasRoom(owner: unknown): boolean {
    return this.#active < this.#parts.concurrency && (this.#running.get(owner) ?? 0) < this.#parts.perOwner;
  }

  #end(owner: unknown): void {
    this.#active -= 1;
    const running = this.#running.get(owner)! - 1;
    if (running === 0) this.#running.delete(owner);
    else this.#running.set(owner, running);
    for (const [next, queue] of this.#waiting) {
      if (!this.#hasRoom(next)) continue;
      // An owner with more tasks goes to the end of the line.
      this.#waiting.delete(next);
      const enter = queue.shift()!;
      if (queue.length > 0) this.#waiting.set(next, queue);
      enter();
      return;
    }
  }
}
