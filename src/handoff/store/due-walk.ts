/** How often a walk looks at all rows again, and how long before its beginning a row may have become due unseen, in milliseconds. */
const wholeMs = 60_000;
const slackMs = 10_000;

/** A row that is due. */
interface DueRow {
  readonly due_at: string;
  readonly id: string;
}

/**
 * The way of a job over the rows that are due, from one round to the next. A round continues behind the rows of the one before, so
 * that rows whose work fails keep no other from theirs. With `skips`, a walk begins behind the rows that were done long ago, whose
 * index entries PostgreSQL keeps while another session holds an older snapshot.
 */
export class DueWalk {
  readonly #skips: boolean;
  #floor = '';
  #last: DueRow | undefined;
  #oldest: string | undefined;
  #begunAt = 0;
  #wholeAt = Number.NEGATIVE_INFINITY;

  constructor(skips: boolean) {
    this.#skips = skips;
  }

  /** Behind which row the next round begins. */
  next(now: Date): DueRow {
    if (this.#last !== undefined) return this.#last;
    this.#oldest = undefined;
    this.#begunAt = now.getTime();
    // A clock that was set back begins anew too.
    if (!this.#skips || Math.abs(this.#begunAt - this.#wholeAt) >= wholeMs) {
      this.#wholeAt = this.#begunAt;
      this.#floor = '';
    }
    return { due_at: this.#floor, id: '' };
  }

  /** Notes what a round found; `isFull`: there may be more behind. Returns whether another round may find some now. */
  found(rows: readonly DueRow[], isFull: boolean): boolean {
    const isFirst = this.#last === undefined;
    this.#oldest ??= rows[0]?.due_at;
    this.#last = isFull ? rows.at(-1) : undefined;
    if (isFull) return true;
    const slack = new Date(this.#begunAt - slackMs).toISOString();
    this.#floor = this.#oldest !== undefined && this.#oldest < slack ? this.#oldest : slack;
    // Others may have become due before the row where this round began.
    return !isFirst;
  }

  /** Notes that a row was written which is due at a time, perhaps one that has passed long ago. */
  written(due_at: string): void {
    if (due_at < this.#floor) this.#floor = due_at;
  }
}
