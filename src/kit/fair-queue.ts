import { abandoned, tookTooLong, tooMuchInHand } from './errors.ts';

interface FairQueueParts {
  /** How much work is in hand at once. */
  concurrency: number;
  /** How much of it may be one owner's. */
  perOwner: number;
  /** How much work of one owner may wait; what comes beyond it is 503. */
  maxWaiting?: number;
  /** How long work waits at most, in milliseconds; then it is 503 and is not begun. */
  maxWaitMs?: number;
}

interface Waiting {
  begin(): void;
  refuse(error: unknown): void;
}

/**
 * Runs work in turns between its owners: however much one of them asks for, the next in turn is another's. What an owner
 * asks for is begun in its order. Work is not begun for who has gone.
 */
export class FairQueue {
  readonly #parts: Required<FairQueueParts>;
  /** Who waits, in the order of their turns. */
  readonly #waiting = new Map<unknown, Waiting[]>();
  readonly #running = new Map<unknown, number>();
  #open = 0;

  constructor(parts: FairQueueParts) {
    this.#parts = { maxWaiting: 1000, maxWaitMs: 10_000, ...parts };
  }

  /** Runs the work when it is the owner's turn. `signal`: the one who asked has gone. */
  run<T>(owner: unknown, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(abandoned());
      // Work that throws before it gives a promise gives its place back too.
      const started = async () => work();
      const begin = () => {
        this.#open += 1;
        this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1);
        started()
          .then(resolve, reject)
          .finally(() => this.#end(owner));
      };
      if (this.#hasRoom(owner)) return begin();
      const queue = this.#waiting.get(owner) ?? [];
      if (queue.length >= this.#parts.maxWaiting) return reject(tooMuchInHand('searches and long lists'));
      this.#waiting.set(owner, queue);
      const leave = (error: unknown) => {
        const place = queue.indexOf(entry);
        if (place !== -1) queue.splice(place, 1);
        if (queue.length === 0 && this.#waiting.get(owner) === queue) this.#waiting.delete(owner);
        entry.refuse(error);
      };
      const gone = () => leave(abandoned());
      const late = setTimeout(() => leave(tookTooLong()), this.#parts.maxWaitMs);
      const settle = () => {
        clearTimeout(late);
        signal?.removeEventListener('abort', gone);
      };
      const entry: Waiting = {
        begin: () => {
          settle();
          begin();
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
      };
      signal?.addEventListener('abort', gone);
      queue.push(entry);
    });
  }

  #hasRoom(owner: unknown): boolean {
    return this.#open < this.#parts.concurrency && (this.#running.get(owner) ?? 0) < this.#parts.perOwner;
  }

  #end(owner: unknown): void {
    this.#open -= 1;
    const running = this.#running.get(owner)! - 1;
    if (running === 0) this.#running.delete(owner);
    else this.#running.set(owner, running);
    for (const [next, queue] of this.#waiting) {
      if (!this.#hasRoom(next)) continue;
      // Behind all who wait, if there is more.
      this.#waiting.delete(next);
      const entry = queue.shift()!;
      if (queue.length > 0) this.#waiting.set(next, queue);
      entry.begin();
      return;
    }
  }
}
