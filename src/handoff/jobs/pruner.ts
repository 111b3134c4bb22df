import { eachInTurn } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import { dayMs } from '../../kit/dates.ts';
import { statsDays } from '../model/stats.ts';
import { dayOf } from '../rules/tiers.ts';
import type { Store } from '../store/store.ts';

/** How long the counters of an hour are kept: a day longer than statistics reach back. */
const hoursMs = (statsDays + 1) * dayMs;

/** How long an agent is listed after a request last named it, unless it holds a packet. */
const agentsMs = 30 * dayMs;

/** How long an answer link is kept after it has expired. */
const answerLinksMs = 30 * dayMs;

const everyMs = 60_000;
const roundSize = 500;

/** How long data is kept, in seconds. */
interface Retention {
  /** Answers to requests with an idempotency key. */
  readonly idempotencyRetentionSeconds: number;
  /** The texts of events, with which streams resume. */
  readonly streamRetentionSeconds: number;
  /** Delivered and cancelled deliveries; 0: forever. */
  readonly deliveryRetentionSeconds: number;
  /** Dead letters; 0: forever. */
  readonly deadLetterRetentionSeconds: number;
}

interface PrunerDependencies {
  store: Store;
  clock: Clock;
  retention: Retention;
}

/**
 * Makes the job that deletes old data in small batches: what has a retention after that, counters of days and hours when nobody reads them any more, unseen
 * agents and expired answer links after 30 days, sessions that have expired, secrets of removed webhooks after their last delivery. A round returns the milliseconds until the next one.
 */
export function createPruner({ store, clock, retention }: PrunerDependencies): () => Promise<number> {
  const { idempotencyRetentionSeconds, streamRetentionSeconds, deliveryRetentionSeconds, deadLetterRetentionSeconds } = retention;
  return async () => {
    const now = clock().getTime();
    const ago = (seconds: number) => new Date(now - seconds * 1000);
    const forget = async (kind: 'ended' | 'dead', seconds: number) =>
      seconds === 0 ? 0 : store.deliveries.forget(kind, ago(seconds), roundSize);
    const removals: (() => Promise<number>)[] = [
      () => store.idempotency.forget(ago(idempotencyRetentionSeconds), roundSize),
      () => store.counters.forget(dayOf(new Date(now - dayMs)), roundSize),
      () => store.counters.forgetHours(new Date(now - hoursMs), roundSize),
      () => store.trail.forgetPayloads(ago(streamRetentionSeconds), roundSize),
      () => forget('ended', deliveryRetentionSeconds),
      () => forget('dead', deadLetterRetentionSeconds),
      () => store.agents.forget(new Date(now - agentsMs), roundSize),
      () => store.webhooks.scrub(roundSize),
      () => store.answerLinks.forget(new Date(now - answerLinksMs), roundSize),
      () => store.sessions.forget(new Date(now), roundSize),
    ];
    const removed = await eachInTurn(removals, (remove) => remove());
    return removed.some((count) => count >= roundSize) ? 100 : everyMs;
  };
}
