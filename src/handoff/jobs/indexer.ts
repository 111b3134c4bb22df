import type { Clock } from '../../kit/clock.ts';
import type { Store } from '../store/store.ts';

/** How long the index rests when there is nothing to do, in milliseconds. */
const idleMs = 100;

/** Of its time, the part that indexing takes while the queue is short: callers come first. */
const share = 0.2;

/** A queue longer than this is worked off without resting, so that a search never has much to catch up on. */
const longQueue = 20_000;

/** One step of indexing what was created or changed. Gives the milliseconds until the next. */
export function createIndexingJob(store: Store, clock: Clock): () => Promise<number> {
  return async () => {
    const begun = clock().getTime();
    const { taken, refused } = await store.index.step();
    if (refused.length > 0) throw new Error(`The search index refused packets, which can't be found by search: ${refused.join(', ')}`);
    if (taken === 0) return idleMs;
    if ((await store.index.queued(longQueue)) === longQueue) return 0;
    const spent = clock().getTime() - begun;
    return Math.ceil(spent / share - spent) + 1;
  };
}
