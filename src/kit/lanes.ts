import type { FairQueue } from './fair-queue.ts';

/** A queue of work and the place where its work runs. */
export interface Lane<Place> {
  readonly queue: FairQueue;
  readonly place: Place;
  /** A clock in milliseconds that advances while the place works. */
  spentMs(): number;
}

interface LaneParts<Place> {
  readonly fast: Lane<Place>;
  readonly slow: Lane<Place>;
  /** Work that takes longer sends its owner to the slow lane. */
  readonly longMs: number;
  /** How long the owner stays there after its last long work, in milliseconds. */
  readonly stayMs: number;
  /** A monotonic clock in milliseconds. */
  now(): number;
}

/** How one piece of work is run. */
interface LaneOptions {
  /** Aborted when the caller's connection closes: pending work is then not started. */
  readonly signal?: AbortSignal | undefined;
  /** The work is known to be long: it runs in the slow lane. */
  readonly long?: boolean;
}

/**
 * Two queues that keep short work from waiting behind long work. How long work takes is known only afterwards, so it is
 * expected of its owner: an owner whose work took long uses the slow lane for a while.
 */
export function createLanes<Place>({ fast, slow, longMs, stayMs, now }: LaneParts<Place>) {
  /** Until when each owner uses the slow lane; the owner whose long work is longest ago comes first. */
  const slowUntil = new Map<unknown, number>();

  function forget(): void {
    for (const [owner, until] of slowUntil) {
      if (until > now()) return;
      slowUntil.delete(owner);
    }
  }

  return {
    /** Runs the work when it is its owner's turn. @throws ServiceError 503 when the owner has too much pending, or it waited too long */
    run<T>(owner: unknown, work: (place: Place) => Promise<T>, { signal, long = false }: LaneOptions = {}): Promise<T> {
      forget();
      const { queue, place, spentMs } = long || slowUntil.has(owner) ? slow : fast;
      const measured = async () => {
        const before = spentMs();
        try {
          return await work(place);
        } finally {
          if (spentMs() - before > longMs) {
            slowUntil.delete(owner);
            slowUntil.set(owner, now() + stayMs);
          }
        }
      };
      return queue.run(owner, measured, signal);
    },
  };
}

/** Two queues for work that is short or long. */
export type Lanes<Place> = ReturnType<typeof createLanes<Place>>;
