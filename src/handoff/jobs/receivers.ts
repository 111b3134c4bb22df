/** The most attempts at once on a receiver that is slow, fails or is new. */
const fewAttempts = 4;

/** The most attempts at once on one that answers well. */
export const manyAttempts = 32;

/** A receiver that takes longer than this is slow, in milliseconds. */
const slowMs = 1000;

/** How many deliveries are taken in hand for each attempt that may run, from a receiver that answers well. */
const ahead = 4;

/** An attempt that runs, and when it began, in milliseconds. */
export interface Attempt {
  readonly begunAt: number;
}

/** How one receiver is doing: it is told apart by its origin (scheme, host and port). Moments are in milliseconds. */
export class Receiver<Item> {
  readonly waiting: Item[] = [];
  /** Whether more waits for it than was taken in hand. */
  hasMore = false;
  /** The attempts that run, the oldest first. */
  readonly #running = new Set<Attempt>();
  #earned = fewAttempts;

  /** How many deliveries may be taken in hand for it now. Ahead of its turn only where the turn comes soon. */
  room(now: number): number {
    const limit = this.#limit(now);
    const taken = this.#running.size + this.waiting.length;
    return Math.max(0, (limit > fewAttempts ? limit * ahead : limit) - taken);
  }

  isIdle(): boolean {
    return this.#running.size + this.waiting.length === 0;
  }

  canStart(now: number): boolean {
    return this.#running.size < this.#limit(now) && this.waiting.length > 0;
  }

  begin(begunAt: number): Attempt {
    const attempt = { begunAt };
    this.#running.add(attempt);
    return attempt;
  }

  /** An attempt ended without a word of the receiver. */
  end(attempt: Attempt): void {
    this.#running.delete(attempt);
  }

  /** The receiver answered an attempt, or failed to: who answers well gets more of them at once, who does not falls back to a few. */
  answered({ begunAt }: Attempt, isWell: boolean, now: number): void {
    this.#earned = isWell && now - begunAt <= slowMs ? Math.min(manyAttempts, this.#earned + 1) : fewAttempts;
  }

  /** One that was quick and leaves an attempt unanswered now gets no more than a slow one, before that attempt has failed. */
  #limit(now: number): number {
    const [oldest] = this.#running;
    return oldest !== undefined && now - oldest.begunAt > slowMs ? fewAttempts : this.#earned;
  }
}
