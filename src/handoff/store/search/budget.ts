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

export type Budget = ReturnType<typeof createBudget>;

/** What a search has used of its budget. `now` returns milliseconds. */
export function createBudget(budget: SearchBudget = unlimited, now: () => number = () => 0) {
  let usedMs = 0;
  let since = now();
  const usedSoFar = () => usedMs + now() - since;
  return {
    /** The most steps of one statement. */
    steps: budget.steps,
    /** Lets other reads of the thread run between two statements. @throws OverBudget when the search has used its time */
    async pause(): Promise<void> {
      usedMs = usedSoFar();
      since = now();
      if (usedMs > budget.ms) throw new OverBudget();
      await nextTurn();
      since = now();
    },
    /** @throws OverBudget when a statement with this many steps is not allowed */
    allow(steps: number): void {
      if (steps > budget.steps) throw new OverBudget();
    },
    /** The search's own time so far, without that of the reads during its pauses. */
    usedMs: usedSoFar,
  };
}
