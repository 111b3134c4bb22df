import type { Clock } from '../../kit/clock.ts';
import { dayOf } from '../rules/tiers.ts';
import type { Store } from '../store/store.ts';

/** How long an answer is kept for its idempotency key. */
export const idempotencyMs = 24 * 3_600_000;

/** How long a delivered or cancelled delivery and its body are kept. */
const deliveriesMs = 30 * 24 * 3_600_000;

/** How long an agent is listed after a request last named it, unless it holds a packet. */
const agentsMs = 30 * 24 * 3_600_000;

/** How long an answer link is kept after it has expired. */
const answerLinksMs = 30 * 24 * 3_600_000;

const everyMs = 60_000;
const roundSize = 500;

interface PrunerParts {
  store: Store;
  clock: Clock;
  /** How far back a stream can resume, in seconds. */
  streamRetentionSeconds: number;
}

/**
 * Makes the job that deletes old data: idempotency records after 24 hours, day counters after their day, stream events
 * after their retention, delivered or cancelled deliveries, unseen agents and expired answer links after 30 days. A round
 * returns the milliseconds until the next one.
 */
export function createPruner({ store, clock, streamRetentionSeconds }: PrunerParts): () => Promise<number> {
  return async () => {
    const now = clock().getTime();
    const yesterday = new Date(now - idempotencyMs);
    const removed = [
      await store.prune(yesterday, dayOf(yesterday), roundSize),
      await store.forgetPayloads(new Date(now - streamRetentionSeconds * 1000), roundSize),
      await store.deliveries.forget(new Date(now - deliveriesMs), roundSize),
      await store.forgetAgents(new Date(now - agentsMs), roundSize),
      await store.answerLinks.forget(new Date(now - answerLinksMs), roundSize),
    ];
    return removed.some((count) => count >= roundSize) ? 100 : everyMs;
  };
}
