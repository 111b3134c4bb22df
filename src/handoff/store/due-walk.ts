import type { DuePacket } from './due-packets.ts';
import type { DueSchedule } from './schedules.ts';
import { Walk } from './walk.ts';

/** How often a walk looks at all rows again, and how long before its beginning a row may have become due unseen, in milliseconds. */
const wholeMs = 60_000;
const slackMs = 10_000;

/**
 * A walk over the rows that are due. With `skips`, it begins behind the rows that were done long ago: PostgreSQL keeps their index
 * entries while another session holds an older snapshot, and reading these entries takes long. Another instance may write a row whose
 * time has passed long ago; the walk finds it when it looks at all rows again, once in `wholeMs`.
 */
export class DueWalk<Row extends { readonly due_at: string }> extends Walk<Row> {
  readonly #skips: boolean;
  #floor = '';
  /** The earliest row that this walk found, or that was written since it began. */
  #earliest = '';
  #begunAt = 0;
  #wholeAt = Number.NEGATIVE_INFINITY;

  constructor(skips: boolean) {
    super();
    this.#skips = skips;
  }

  /** From which time on the next round looks at rows that are due at `now`, behind `last`. */
  from(now: Date): string {
    if (this.last !== undefined) return this.#floor;
    this.#begunAt = now.getTime();
    this.#earliest = new Date(this.#begunAt - slackMs).toISOString();
    // A clock that was set back begins anew too.
    if (!this.#skips || Math.abs(this.#begunAt - this.#wholeAt) >= wholeMs) {
      this.#wholeAt = this.#begunAt;
      this.#floor = '';
    }
    return this.#floor;
  }

  override found(rows: readonly Row[], isFull: boolean): boolean {
    for (const { due_at } of rows) this.#note(due_at);
    if (!isFull) this.#floor = this.#earliest;
    return super.found(rows, isFull);
  }

  /** Notes that a row was written which is due at a time, perhaps one that has passed long ago. */
  written(due_at: string): void {
    this.#note(due_at);
    if (due_at < this.#floor) this.#floor = due_at;
  }

  #note(due_at: string): void {
    if (due_at < this.#earliest) this.#earliest = due_at;
  }
}

/** The ways of jobs over rows that are due, about which commits tell them. */
export interface DueWalks {
  /** Packets whose `due_at` has passed. */
  readonly due: DueWalk<DuePacket>;
  /** Packets that wait to be claimed, by their creation and by their `not_before`. */
  readonly created: DueWalk<DuePacket>;
  readonly available: DueWalk<DuePacket>;
  readonly schedules: DueWalk<DueSchedule>;
}

/** Walks at their beginning. */
export const createDueWalks = (skips: boolean): DueWalks => ({
  due: new DueWalk(skips),
  created: new DueWalk(skips),
  available: new DueWalk(skips),
  schedules: new DueWalk(skips),
});
