import type { Clock } from '../../kit/clock.ts';
import type { FairQueue } from '../../kit/fair-queue.ts';

/** A queue of work and what its work runs with. */
export interface Lane<Runner> {
  readonly queue: FairQueue;
  readonly runner: Runner;
}

/** The result of work, and how many milliseconds it took: measured where it ran, without waiting for it to start. */
export interface Timed<T> {
  readonly value: T;
  readonly tookMs: number;
}

/** Times work. `now` returns milliseconds. */
export async function timed<T>(now: () => number, work: () => Promise<T>): Promise<Timed<T>> {
  const start = now();
  const value = await work();
  return { value, tookMs: now() - start };
}

interface LanesDependencies<Runner> {
  readonly fast: Lane<Runner>;
  readonly slow: Lane<Runner>;
  /** Work that takes longer sends its owner to the slow lane. */
  readonly longMs: number;
  /** How long the owner stays there after its last long work, in milliseconds. */
  readonly stayMs: number;
  readonly clock: Clock;
}

/** How one piece of work is run. */
interface LaneOptions {
  /** Aborted when the caller's connection closes: pending work is then not started. */
  readonly signal?: AbortSignal | undefined;
  /** The work is known to be long: it runs in the slow lane. */
  readonly long?: boolean;
}

/**
 * Two queues that keep short work from waiting behind long work. The cost of work can't be known in advance, so it is
 * predicted from its owner's recent work: an owner whose work took long uses the slow lane for a while.
 */
export class Lanes<Runner> {
  readonly #parts: LanesDependencies<Runner>;
  /** When the last long work of each owner ended; the owner whose long work is longest ago comes first. */
  readonly #lastLong = new Map<unknown, number>();

  constructor(parts: LanesDependencies<Runner>) {
    this.#parts = parts;
  }

  /** Runs the work when it is its owner's turn. @throws ServiceError 503 when the owner has too much pending, or it waited too long */
  run<T>(owner: unknown, work: (runner: Runner) => Promise<Timed<T>>, { signal, long = false }: LaneOptions = {}): Promise<T> {
    this.#forget();
    const { queue, runner } = long || this.#lastLong.has(owner) ? this.#parts.slow : this.#parts.fast;
    const measured = async () => {
      const start = this.#now();
      try {
        const { value, tookMs } = await work(runner);
        this.#keepTime(owner, tookMs);
        return value;
      } catch (error) {
        this.#keepTime(owner, this.#now() - start);
        throw error;
      }
    };
    return queue.run(owner, measured, signal);
  }

  #forget(): void {
    for (const [owner, endedAt] of this.#lastLong) {
      const ago = this.#now() - endedAt;
      // A clock that was set back keeps no owner in the slow lane for longer.
      if (ago >= 0 && ago < this.#parts.stayMs) return;
      this.#lastLong.delete(owner);
    }
  }

  #keepTime(owner: unknown, tookMs: number): void {
    if (tookMs <= this.#parts.longMs) return;
    this.#lastLong.delete(owner);
    this.#lastLong.set(owner, this.#now());
  }

  #now(): number {
    return this.#parts.clock().getTime();
  }
}
