import type { Clock } from '../../kit/clock.ts';
import type { Store } from '../store/store.ts';

/** How long the job pauses when the queue is empty, in milliseconds. */
const idleMs = 100;

/** The longest pause between rounds. */
const mostMs = 10_000;

/**
 * The shortest pause between steps, in milliseconds. Indexing many packets in one step costs less than in several, and a
 * search indexes what is queued before it runs.
 */
const gatherMs = 50;

/**
 * The fraction of time that indexing may take while the queue is short, so that requests have priority. A look at an empty queue
 * counts too: it visits the rows that PostgreSQL keeps while another session holds an older snapshot.
 */
const share = 0.2;

/** A queue longer than this is indexed without pauses, so that a search never has much left to index. */
const longQueue = 20_000;

/** How many consecutive steps must leave packets in the queue before it is counted, since counting is expensive. */
const countAfter = 10;

/** Makes the job that indexes new and changed packets. A round is one step and returns the milliseconds until the next. */
export function createIndexingJob(store: Store, clock: Clock): () => Promise<number> {
  let fullSteps = 0;
  let isLong = false;
  return async () => {
    const begun = clock().getTime();
    const { taken, more, refused } = await store.index.step();
    fullSteps = more ? fullSteps + 1 : 0;
    if (fullSteps % countAfter === 0) isLong = more && (await store.index.isQueued(longQueue));
    if (refused.length > 0) throw new Error(`The search index refused packets, so a search can't find them: ${refused.join(', ')}`);
    if (isLong) return 0;
    const spent = clock().getTime() - begun;
    // A clock that was set ahead during the step does not end indexing.
    return Math.min(mostMs, Math.max(taken === 0 ? idleMs : gatherMs, Math.ceil(spent / share - spent) + 1));
  };
}
