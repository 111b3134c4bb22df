/** The most concurrent attempts at a receiver that is slow, failing or new. */
const fewAttempts = 4;

/** The most concurrent attempts at a receiver that answers quickly and successfully. */
export const manyAttempts = 32;

/** The response time above which a receiver counts as slow, in milliseconds. */
const slowMs = 1000;

/** How many deliveries are leased per allowed attempt, for a receiver that answers well. */
const leasedPerAttempt = 4;

/** A running attempt and its start time, in milliseconds since 1970. */
export interface Attempt {
  readonly begunAt: number;
}

/**
 * The state of one receiver, identified by its origin (scheme, host and port): it adapts the number of concurrent
 * attempts. Times are in milliseconds since 1970.
 */
export class Receiver<Item> {
  readonly waiting: Item[] = [];
  /** Whether more deliveries are due for it than are leased. */
  hasMore = false;
  /** The running attempts, oldest first. */
  readonly #running = new Set<Attempt>();
  #allowed = fewAttempts;

  /** How many more deliveries may be leased for it now: more than can run at once if it answers well, else only as many. */
  leasable(now: number): number {
    const limit = this.#limit(now);
    const taken = this.#running.size + this.waiting.length;
    return Math.max(0, (limit > fewAttempts ? limit * leasedPerAttempt : limit) - taken);
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

  /** Removes an attempt that has ended. */
  end(attempt: Attempt): void {
    this.#running.delete(attempt);
  }

  /** Adapts the limit after an attempt: a quick success raises it by one, anything else resets it. */
  answered({ begunAt }: Attempt, isWell: boolean, now: number): void {
    this.#allowed = isWell && now - begunAt <= slowMs ? Math.min(manyAttempts, this.#allowed + 1) : fewAttempts;
  }

  /** The most concurrent attempts now. A receiver with an unanswered attempt counts as slow even before that attempt fails. */
  #limit(now: number): number {
    const [oldest] = this.#running;
    return oldest !== undefined && now - oldest.begunAt > slowMs ? fewAttempts : this.#allowed;
  }
}
