import type { Clock } from '../../kit/clock.ts';
import { readAtOnce } from '../service/occurrences.ts';
import type { SubscriptionService } from '../service/subscriptions.ts';
import type { Store } from '../store/store.ts';

/** The most subscriptions that one round looks at. */
const roundSize = 500;

/** How often to look for events of subscriptions, in milliseconds. */
const everyMs = 1000;

interface FollowerDependencies {
  store: Store;
  subscriptions: Pick<SubscriptionService, 'follow'>;
  clock: Clock;
}

/** Makes the job that reads the trail for subscriptions to events and queues their deliveries. A round returns the milliseconds until the next one. */
export function createFollower({ store, subscriptions, clock }: FollowerDependencies): () => Promise<number> {
  return async () => {
    const behind = await store.webhooks.following(clock(), roundSize);
    const ends = await Promise.allSettled(
      [...Map.groupBy(behind, ({ tenant }) => tenant)].map(([tenant, following]) => subscriptions.follow(tenant, following)),
    );
    // A tenant that fails does not stop the others; its error is reported after all of them.
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const isLong = behind.length === roundSize || behind.some(({ position, last }) => last - position > readAtOnce);
    return isLong ? 0 : everyMs;
  };
}
