import { eachAtOnce } from '../../kit/awaitable.ts';
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
    let isLong = false;
    const more = await store.webhooks.following(clock(), roundSize, (following) => {
      isLong = following.some(({ position, last }) => last - position > readAtOnce);
      return eachAtOnce([...Map.groupBy(following, ({ tenant }) => tenant)], ([tenant, own]) => subscriptions.follow(tenant, own));
    });
    return more || isLong ? 0 : everyMs;
  };
}
