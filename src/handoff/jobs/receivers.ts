/** The most attempts at once on a receiver that is slow, fails or is new. */
const fewAttempts = 4;

/** The most attempts at once on one that answers well. */
export const manyAttempts = 32;

/** A receiver that takes longer than this is slow, in milliseconds. */
const slowMs = 1000;

/** How many deliveries are taken in hand for each attempt that may run, from a receiver that answers well. */
const ahead = 4;

/** How one receiver is doing: it is told apart by its origin (scheme, host and port). */
export class Receiver<Item> {
  readonly waiting: Item[] = [];
  running = 0;
  /** Whether more waits for it than was taken in hand. */
  hasMore = false;
  #limit = fewAttempts;

  /** How many deliveries may be taken in hand for it now. Ahead of its turn only where the turn comes soon. */
  room(): number {
    const taken = this.running + this.waiting.length;
    const most = this.#limit > fewAttempts ? this.#limit * ahead : this.#limit;
    return Math.max(0, most - taken);
  }

  isIdle(): boolean {
    return this.running + this.waiting.length === 0;
  }

  canStart(): boolean {
    return this.running < this.#limit && this.waiting.length > 0;
  }

  /** An attempt ended: who answers well gets more of them at once, who does not falls back to a few. */
  ended({ answered, tookMs }: { answered: boolean; tookMs: number }): void {
    this.#limit = answered && tookMs <= slowMs ? Math.min(manyAttempts, this.#limit + 1) : fewAttempts;
  }
}
