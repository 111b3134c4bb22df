import type { Clock } from '../../kit/clock.ts';
import { ServiceError } from '../../kit/errors.ts';
import type { TestResult } from '../model/test.ts';
import type { Store } from '../store/store.ts';
import { endedText } from './record.ts';

/**
 * How long a running test is taken to be alive after the instance that runs it last said so, and how often it says so, in
 * milliseconds. The clocks of instances may differ by what lies between.
 */
const leaseMs = 30_000;
const renewEveryMs = 2_000;

/** How often results are looked for that are older than they are kept, in milliseconds. */
const pruneEveryMs = 3_600_000;

/** Why a test was cancelled. */
export const cancelled = { byCaller: 'A caller cancelled the test.', byStop: 'The service stopped while the test was running.' } as const;

/** Which results are kept. */
export interface Retention {
  /** How many results of a chain, the newest; 0: all. */
  perChain: number;
  /** For how long, in seconds; 0: for ever. */
  seconds: number;
}

/** A test that this instance runs. */
interface RunInHand {
  cancel(why: string): void;
  /** Keeps the prompts that are done and not kept yet. */
  keep(): Promise<void>;
}

export interface LeaseParts {
  store: Store;
  clock: Clock;
  retention: Retention;
  /** The tests that this instance runs. */
  inHand: ReadonlyMap<string, RunInHand>;
}

export type Leases = ReturnType<typeof createLeases>;

/**
 * The leases of running tests, where several instances share a database: each renews those of its own, obeys who asks to
 * cancel one, and ends those whose instance is gone.
 */
export function createLeases({ store, clock, retention, inHand }: LeaseParts) {
  let round = newRound();
  let pruneAt = 0;

  const until = (): Date => new Date(clock().getTime() + leaseMs);

  async function renew(): Promise<void> {
    const ids = [...inHand.keys()];
    if (ids.length === 0) return;
    const held = new Map((await store.results.renew(ids, until())).map(({ id, cancel }) => [id, cancel]));
    // One that is not held any more has been ended by an instance that took this one to be gone.
    for (const id of ids) {
      if (held.get(id) !== false) inHand.get(id)?.cancel(held.has(id) ? cancelled.byCaller : cancelled.byStop);
      else await inHand.get(id)?.keep();
    }
  }

  /** Ends the running tests that no instance runs any more: `cancelled`, with the prompts that were done; gives how many. */
  async function endOrphans(now: Date | undefined): Promise<number> {
    let ended = 0;
    for (const kept of await store.results.orphans(now)) {
      if (inHand.has(kept.id)) continue;
      const completed_at = clock().toISOString();
      const result = { ...(JSON.parse(endedText(kept)) as TestResult), status: 'cancelled', error: cancelled.byStop, completed_at };
      const { id, chain_id: chainId } = kept;
      const end = { id, chainId, status: result.status, text: JSON.stringify(result), keep: retention.perChain, unlessLeasedAt: now };
      if (await store.results.end(end)) ended += 1;
    }
    return ended;
  }

  async function prune(): Promise<void> {
    const now = clock().getTime();
    if (retention.seconds === 0 || now < pruneAt) return;
    while (await store.results.prune(new Date(now - retention.seconds * 1000)));
    pruneAt = now + pruneEveryMs;
  }

  return {
    /** Until when a lease lasts that is given now. */
    until,

    /** Ends what was running when the program last ended. A SQLite file is for one process, so that there nobody's lease lasts. */
    recover: () => endOrphans(store.isExclusive ? undefined : clock()),

    /** Does what is due; gives the milliseconds until the next round. */
    async runOnce(): Promise<number> {
      await renew();
      await endOrphans(clock());
      await prune();
      round.resolve();
      round = newRound();
      return renewEveryMs;
    },

    /** Resolves after the next round, when what other instances keep may have changed; 503 where the service stops before. */
    nextRound: (): Promise<void> => round.promise,

    stop(): void {
      round.reject(new ServiceError('SERVICE_UNAVAILABLE', 'The service is stopping; the test runs on another instance.'));
    },
  };
}

function newRound(): PromiseWithResolvers<void> {
  const round = Promise.withResolvers<void>();
  // Mostly nobody waits for it.
  round.promise.catch(() => undefined);
  return round;
}
