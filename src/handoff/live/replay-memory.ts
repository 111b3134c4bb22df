import type { Clock } from '../../kit/clock.ts';
import { MemoryBudget } from '../../kit/memory-budget.ts';

/** What all replays together may hold, in bytes; those of one tenant may hold a quarter of it. */
const maxReplayBytes = 64 * 1024 * 1024;

/** How long a replay may hold memory while others wait for it, in milliseconds. */
const mostHeldMs = 30_000;

/** A replay that holds memory or waits for it. */
export interface Replay {
  isOpen(): boolean;
  /** Ends it, because its client reads too slowly while others wait. */
  endSlow(): void;
}

interface Held {
  readonly replay: Replay;
  readonly owner: string;
  readonly bytes: number;
  /** When it was granted, or when it began to wait; milliseconds since 1970. */
  since: number;
}

interface Waiting extends Held {
  resolve(release: () => void): void;
}

/**
 * The memory for pages of the trail that replays have read and their clients have not yet taken. A replay beyond it waits.
 * What is released goes to the waiting owner that holds the least, and to its longest waiting replay.
 */
export class ReplayMemory {
  readonly #clock: Clock;
  readonly #budget: MemoryBudget;
  readonly #held = new Set<Held>();
  readonly #waiting = new Map<string, Set<Waiting>>();

  constructor(clock: Clock, bytes = maxReplayBytes) {
    this.#clock = clock;
    this.#budget = new MemoryBudget(bytes);
  }

  /** The bytes held. */
  get bytes(): number {
    return [...this.#held].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The number of replays that wait. */
  get waiting(): number {
    return [...this.#waiting.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Reserves bytes; resolves with the function that releases them. A page larger than an owner's share takes all of the share. */
  acquire(owner: string, replay: Replay, bytes: number): Promise<() => void> | (() => void) {
    const wanted = { replay, owner, bytes: Math.min(bytes, this.#budget.share), since: this.#now() };
    const queue = this.#waiting.get(owner);
    const release = queue === undefined ? this.#grant(wanted) : undefined;
    if (release !== undefined) return release;
    return new Promise((resolve) => {
      const waiting = { ...wanted, resolve };
      if (queue === undefined) this.#waiting.set(owner, new Set([waiting]));
      else queue.add(waiting);
    });
  }

  /** Lets a replay that has ended go on without memory, so that it stops waiting. */
  leave(owner: string, replay: Replay): void {
    for (const waiting of this.#waiting.get(owner) ?? []) {
      if (waiting.replay !== replay) continue;
      this.#remove(waiting);
      waiting.resolve(() => undefined);
    }
  }

  /** Ends the replays that have held memory for too long while others wait for it. */
  reclaim(): void {
    const now = this.#now();
    // After the clock was set back, the time begins again.
    for (const queue of [this.#held, ...this.#waiting.values()]) for (const held of queue) held.since = Math.min(held.since, now);
    for (const [owner, queue] of [...this.#waiting]) {
      const [first] = queue;
      if (first === undefined || now - first.since < mostHeldMs) continue;
      // An owner at its share waits for its own replays, another one for any.
      const isAtShare = this.#budget.heldBy(owner) + first.bytes > this.#budget.share;
      for (const held of [...this.#held]) if (now - held.since >= mostHeldMs && (!isAtShare || held.owner === owner)) held.replay.endSlow();
    }
  }

  #now(): number {
    return this.#clock().getTime();
  }

  #grant(wanted: Held): (() => void) | undefined {
    const { owner, bytes } = wanted;
    if (!this.#budget.acquire(owner, bytes)) return undefined;
    this.#held.add(wanted);
    return () => {
      if (!this.#held.delete(wanted)) return;
      this.#budget.release(owner, bytes);
      this.#grantWaiting();
    };
  }

  #grantWaiting(): void {
    const owners = [...this.#waiting.keys()].sort((a, b) => this.#budget.heldBy(a) - this.#budget.heldBy(b));
    for (const owner of owners) {
      for (const waiting of this.#waiting.get(owner) ?? []) {
        const granted: Held = { ...waiting, since: this.#now() };
        const release = this.#grant(granted);
        if (release === undefined) break;
        this.#remove(waiting);
        waiting.resolve(release);
      }
    }
  }

  #remove(waiting: Waiting): void {
    const queue = this.#waiting.get(waiting.owner);
    queue?.delete(waiting);
    if (queue?.size === 0) this.#waiting.delete(waiting.owner);
  }
}
