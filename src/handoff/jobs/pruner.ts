import type { Clock } from '../../kit/clock.ts';
import { dayOf } from '../rules/tiers.ts';
import type { Store } from '../store/store.ts';

/** How long an answer is repeated under its idempotency key. */
export const idempotencyMs = 24 * 3_600_000;

const everyMs = 60_000;
const roundSize = 500;

/** One round of forgetting: idempotency records after 24 hours, day counters after their day. Gives the milliseconds until the next. */
export function createPruner(store: Store, clock: Clock): () => Promise<number> {
  return async () => {
    const before = new Date(clock().getTime() - idempotencyMs);
    const removed = await store.prune(before, dayOf(before), roundSize);
    return removed >= roundSize ? 100 : everyMs;
  };
}
