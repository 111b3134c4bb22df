import { ServiceError, tooManyPending } from '../../kit/errors.ts';
import { MemoryBudget } from '../../kit/memory-budget.ts';
import { plural } from '../rules/wording.ts';

interface QueuedRun {
  readonly owner: string;
  /** What the run holds in memory until it leaves. */
  readonly bytes: number;
  /** Aborts when the run is cancelled. */
  readonly signal: AbortSignal;
}

interface QueueLimits {
  /** The most concurrent and the most waiting runs. */
  readonly atOnce: number;
  readonly mostWaiting: number;
  /** The most bytes of all runs; one owner may hold a quarter. */
  readonly maxBytes: number;
}

/** A run's entry in the queue. */
export interface QueueEntry {
  /** Resolves when the run may start; rejects with the signal's reason if it aborts first. */
  readonly turn: Promise<void>;
  /** Leaves the queue, before or after the run. */
  leave(): void;
}

interface Entry {
  readonly owner: string;
  begin(): void;
}

/**
 * Creates a queue of runs. An owner may have all concurrent runs but one, and a quarter of the waiting ones. The owner with
 * the fewest concurrent runs is next.
 */
export function createRunQueue({ atOnce, mostWaiting, maxBytes }: QueueLimits) {
  const memory = new MemoryBudget(maxBytes);
  const waiting = new Set<Entry>();
  const running = new Set<Entry>();
  const perOwner = Math.max(atOnce - 1, 1);
  const waitingPerOwner = Math.max(Math.floor(mostWaiting / 4), 1);

  const mayRun = (owner: string) => running.size < atOnce && countOf(owner, running) < perOwner;

  function admit(): void {
    let next: Entry | undefined;
    for (const entry of running.size < atOnce ? waiting : [])
      if (mayRun(entry.owner) && (next === undefined || countOf(entry.owner, running) < countOf(next.owner, running))) next = entry;
    if (next === undefined) return;
    waiting.delete(next);
    running.add(next);
    next.begin();
    admit();
  }

  function requireRoom(owner: string): void {
    if (mayRun(owner)) return;
    if (waiting.size >= mostWaiting) throw tooMany(`${mostWaiting} tests`);
    const own = countOf(owner, waiting);
    if (own >= waitingPerOwner) throw tooMany(`${plural(own, 'test')} of this caller`);
  }

  return {
    /** @throws ServiceError 503 if too many runs are waiting, or too many bytes are held, in total or by this owner */
    enter({ owner, bytes, signal }: QueuedRun): QueueEntry {
      requireRoom(owner);
      if (!memory.acquire(owner, bytes)) throw tooManyPending('large tests');
      const { promise: turn, resolve: begin, reject } = Promise.withResolvers<void>();
      // After leaving, nobody may be waiting for the turn.
      turn.catch(() => undefined);
      const entry: Entry = { owner, begin };
      const cancel = () => {
        if (waiting.delete(entry)) reject(signal.reason);
      };
      let hasLeft = false;
      waiting.add(entry);
      signal.addEventListener('abort', cancel, { once: true });
      if (signal.aborted) cancel();
      admit();
      return {
        turn,
        leave() {
          if (hasLeft) return;
          hasLeft = true;
          memory.release(owner, bytes);
          signal.removeEventListener('abort', cancel);
          waiting.delete(entry);
          if (running.delete(entry)) admit();
        },
      };
    },
    /** The numbers of running and waiting runs. */
    counts: () => ({ running: running.size, waiting: waiting.size }),
  };
}

const countOf = (owner: string, entries: ReadonlySet<Entry>) => [...entries].filter((entry) => entry.owner === owner).length;

const tooMany = (what: string) =>
  new ServiceError('SERVICE_UNAVAILABLE', `${what} are already waiting for their turn; try again later.`, {
    headers: { 'Retry-After': '5' },
  });
