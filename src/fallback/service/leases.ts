import type { Clock } from '../../kit/clock.ts';
import { ServiceError } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Store } from '../store/store.ts';
import type { ResultHead } from './record.ts';
import type { RunningTest } from './running-test.ts';

/**
 * The duration of a running test's lease and the interval of its renewals, in milliseconds. The clocks of instances may
 * differ by up to the difference.
 */
const leaseMs = 30_000;
const renewEveryMs = 2_000;

/** The interval at which expired results are deleted, in milliseconds. */
const pruneEveryMs = 3_600_000;

/** Why a test was cancelled. */
export const cancelled = { byCaller: 'A caller cancelled the test.', byStop: 'The service stopped while the test was running.' } as const;

/** How long results are kept. */
export interface Retention {
  /** How many of each chain's newest results; 0: all. */
  perChain: number;
  /** The time in seconds; 0: forever. */
  seconds: number;
}

interface LeaseDependencies {
  store: Store;
  clock: Clock;
  retention: Retention;
  runningTests: ReadonlyMap<string, RunningTest>;
}

/**
 * The leases of running tests in a database that several instances may share. Each instance renews the leases of its
 * tests, carries out requested cancellations, and ends tests whose instance has died.
 */
export class Leases {
  readonly #parts: LeaseDependencies;
  #round = newRound();
  /** When expired results were deleted last. */
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(parts: LeaseDependencies) {
    this.#parts = parts;
  }

  /** When a lease that begins now ends. */
  until(): Date {
    return new Date(this.#parts.clock().getTime() + leaseMs);
  }

  /** Ends tests that were running when the process last ended. With SQLite no other process can hold a lease. */
  recover(): Promise<number> {
    return this.#endOrphans(this.#parts.store.isExclusive ? undefined : this.#parts.clock());
  }

  /** Does the due work; returns the milliseconds until the next round. */
  async runOnce(): Promise<number> {
    const { store, clock, retention } = this.#parts;
    await this.#renew();
    await this.#endOrphans(clock());
    const now = clock().getTime();
    // A clock that was set back past the last time must not make it wait.
    if (retention.seconds > 0 && (now < this.#prunedAt || now >= this.#prunedAt + pruneEveryMs)) {
      const before = new Date(now - retention.seconds * 1000);
      while (await store.results.prune(before));
      this.#prunedAt = now;
    }
    this.#round.resolve();
    this.#round = newRound();
    return renewEveryMs;
  }

  /** Resolves after the next round, when stored results of other instances may have changed. @throws ServiceError 503 if the service stops first */
  nextRound(): Promise<void> {
    return this.#round.promise;
  }

  stop(): void {
    this.#round.reject(new ServiceError('SERVICE_UNAVAILABLE', 'The service is stopping; the test runs on another instance.'));
  }

  async #renew(): Promise<void> {
    const { store, runningTests } = this.#parts;
    const ids = [...runningTests.keys()];
    if (ids.length === 0) return;
    const held = new Map((await store.results.renew(ids, this.until())).map(({ id, cancel }) => [id, cancel]));
    // A lease that is no longer held: another instance has ended the test, because this one seemed dead.
    for (const id of ids) {
      if (held.get(id) !== false) runningTests.get(id)?.cancel(held.has(id) ? cancelled.byCaller : cancelled.byStop);
      else await runningTests.get(id)?.store();
    }
  }

  /** Ends tests whose instance has died as `cancelled`, with the finished prompts; returns their number. */
  async #endOrphans(now: Date | undefined): Promise<number> {
    const { store, clock, retention, runningTests } = this.#parts;
    let ended = 0;
    for (const orphan of await store.results.orphans(now)) {
      if (runningTests.has(orphan.id)) continue;
      const completed_at = clock().toISOString();
      const head = { ...(readJson(orphan.text) as ResultHead), status: 'cancelled', error: cancelled.byStop, completed_at };
      const { id, chain_id: chainId, prompts } = orphan;
      const texts = { text: JSON.stringify(head), prompts };
      const end = { id, chainId, status: head.status, ...texts, keep: retention.perChain, unlessLeasedAt: now };
      if (await store.results.end(end)) ended += 1;
    }
    return ended;
  }
}

function newRound(): PromiseWithResolvers<void> {
  const round = Promise.withResolvers<void>();
  // Usually nobody waits for it.
  round.promise.catch(() => undefined);
  return round;
}
