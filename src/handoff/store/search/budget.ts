import { nextTurn } from '../../../kit/awaitable.ts';

/** A read that takes longer than this sends its tenant to the slow lane, in milliseconds: CPU time on SQLite, elapsed time on PostgreSQL. */
export const longMs = { sqlite: 50, postgres: 200 };

/** What a search may use in its lane. */
interface SearchBudget {
  /** Its own time in milliseconds. */
  readonly ms: number;
  /** The estimated steps of one statement, which can't be interrupted. A step is one row of the search index: about 50 ns. */
  readonly steps: number;
}

/** The budget of a search on SQLite in the fast lane. */
export const fastLane: SearchBudget = { ms: longMs.sqlite, steps: 1_000_000 };

export const unlimited: SearchBudget = { ms: Number.POSITIVE_INFINITY, steps: Number.POSITIVE_INFINITY };

/** The search exceeds its budget. */
export class OverBudget extends Error {}

/** What a search has used of its budget. `now` returns milliseconds. */
export class Budget {
  /** The most steps of one statement. */
  readonly steps: number;
  readonly #ms: number;
  readonly #now: () => number;
  #usedMs = 0;
  #since: number;

  constructor({ ms, steps }: SearchBudget = unlimited, now: () => number = () => 0) {
    this.steps = steps;
    this.#ms = ms;
    this.#now = now;
    this.#since = now();
  }

  /** The search's own time so far, without that of the reads during its pauses. */
  get usedMs(): number {
    return this.#usedMs + this.#now() - this.#since;
  }

  /** Lets other reads of the thread run between two statements. @throws OverBudget when the search has used its time */
  async pause(): Promise<void> {
    this.#usedMs = this.usedMs;
    this.#since = this.#now();
    if (this.#usedMs > this.#ms) throw new OverBudget();
    await nextTurn();
    this.#since = this.#now();
  }

  /** @throws OverBudget when a statement with this many steps is not allowed */
  allow(steps: number): void {
    if (steps > this.steps) throw new OverBudget();
  }
}
