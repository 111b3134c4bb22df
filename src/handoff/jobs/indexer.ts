import type { Clock } from '../../kit/clock.ts';
import type { Store } from '../store/store.ts';

/** How long the index rests when there is nothing to do, in milliseconds. */
const idleMs = 100;

/**
 * How long it rests at least while callers come, in milliseconds: many packets in one step cost less than in many, and
 * a search takes in by itself what waits.
 */
const gatherMs = 50;

/** Of its time, the part that indexing takes while the queue is short: callers come first. */
const share = 0.2;

/** A queue longer than this is worked off without resting, so that a search never has much to catch up on. */
const longQueue = 20_000;

/** How many steps in a row must leave something behind before the queue is counted, which costs more than a look. */
const countAfter = 10;

/** One step of indexing what was created or changed. Gives the milliseconds until the next. */
export function createIndexingJob(store: Store, clock: Clock): () => Promise<number> {
  let fullSteps = 0;
  let long = false;
  return async () => {
    const begun = clock().getTime();
    const { taken, more, refused } = await store.index.step();
    fullSteps = more ? fullSteps + 1 : 0;
    if (fullSteps % countAfter === 0) long = more && (await store.index.isQueued(longQueue));
    if (refused.length > 0) throw new Error(`The search index refused packets, which can't be found by search: ${refused.join(', ')}`);
    if (taken === 0) return idleMs;
    if (long) return 0;
    const spent = clock().getTime() - begun;
    return Math.max(gatherMs, Math.ceil(spent / share - spent) + 1);
  };
}
