import { nextTurn } from '../../../kit/awaitable.ts';
import { TooWide } from './matches.ts';

/** A read that takes longer than this sends its tenant to the slow lane, in milliseconds: CPU time on SQLite, elapsed time on PostgreSQL. */
export const longMs = { sqlite: 50, postgres: 200 };

/**
 * Lets other reads of the thread run between two steps of a search. `share`: how often the time used so far fits into what
 * the search will have used after its next step.
 * @throws TooWide when that is more than the search may use
 */
export type Pause = (share?: number) => Promise<void>;

/**
 * The pauses of one search, which add up its own time without that of the reads in between. `now` returns milliseconds, and
 * `mostMs` is the time the search may use.
 */
export function createPauses(now: () => number, mostMs: number) {
  let usedMs = 0;
  let since = now();
  const usedSoFar = () => usedMs + now() - since;
  const pause: Pause = async (share = 1) => {
    usedMs = usedSoFar();
    if (usedMs * share > mostMs) {
      since = now();
      throw new TooWide();
    }
    await nextTurn();
    since = now();
  };
  return { pause, usedMs: usedSoFar };
}
