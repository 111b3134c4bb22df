import type { Clock } from '../../kit/clock.ts';
import type { DisabledReason } from '../model/webhook.ts';
import { type AttemptOutcome, afterAttempt, cancelled, hasFailedTooLong, isGone, isRecorded } from '../rules/delivery.ts';
import type { DeliveryQueue } from '../store/delivery-queues.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/transaction.ts';
import { destinationOf } from '../store/webhooks.ts';

interface DeliveryServiceDependencies {
  store: Store;
  clock: Clock;
  /** The delay after each failure, in seconds. */
  retrySeconds: readonly number[];
  /** How long all deliveries of a webhook may fail before it is disabled; 0: never disabled. */
  disableAfterSeconds: number;
  /** Returns a random number from 0 to 1. */
  chance: () => number;
}

/** The webhook or channel of a delivery, as the deliverer read it. */
type Destination = Pick<DeliveryQueue, 'tenant' | 'webhook_id' | 'failing_since'>;

/** Records the outcomes of delivery attempts. */
export function createDeliveryService({ store, clock, retrySeconds, disableAfterSeconds, chance }: DeliveryServiceDependencies) {
  /** Updates `failing_since`, and disables the webhook when it has failed too long or its receiver is gone. */
  function updateWebhook({ webhooks, trail }: Transaction, id: string, outcome: AttemptOutcome, now: Date): void {
    const webhook = webhooks.get(id);
    if (webhook === undefined || !webhook.active) return;
    if (outcome.error === undefined) {
      if (webhook.failing_since !== null) webhooks.save(id, { ...webhook, failing_since: null });
      return;
    }
    const failing_since = webhook.failing_since ?? now.toISOString();
    const tooLong = hasFailedTooLong(failing_since, disableAfterSeconds, now);
    // A client answers 410 to an event that it does not want; its subscription goes on.
    const reason: DisabledReason | null = isGone(outcome) && webhook.kind !== 'event' ? 'gone' : tooLong ? 'failing' : null;
    if (reason === null) {
      if (webhook.failing_since === null) webhooks.save(id, { ...webhook, failing_since });
      return;
    }
    webhooks.save(id, { ...webhook, failing_since, active: false, disabled_reason: reason, updated_at: now.toISOString() });
    const destination = destinationOf(webhook);
    const details = { [`${destination}_id`]: id, reason };
    trail.audit({ event_type: 'disabled', resource: destination, actor: 'system:deliverer', details }, { now, keyId: null });
  }

  return {
    /** Cancels a delivery that was leased until `until`: there is nothing to say any more. */
    async drop({ tenant }: Destination, { seq, until }: { readonly seq: number; readonly until: Date }): Promise<void> {
      const now = clock();
      await store.whole(tenant).commit({
        deliveries: [seq],
        work({ deliveries }) {
          const delivery = deliveries.get(seq);
          if (delivery?.due_at === until.toISOString()) deliveries.update(delivery, { ...delivery, ...cancelled() }, now);
        },
      });
    },

    /** Records the outcome of an attempt on a delivery that was leased until `until`. */
    async record(
      { tenant, webhook_id, failing_since }: Destination,
      { seq, until }: { readonly seq: number; readonly until: Date },
      outcome: AttemptOutcome,
    ): Promise<void> {
      const now = clock();
      const random = chance();
      // A successful attempt on a healthy webhook changes nothing of it, so the webhook is not locked.
      const locksWebhook = outcome.error !== undefined || failing_since !== null;
      await store.whole(tenant).commit({
        deliveries: [seq],
        ...(locksWebhook ? { webhooks: [webhook_id] } : {}),
        work(transaction) {
          const { deliveries } = transaction;
          const delivery = deliveries.get(seq);
          // Undefined: the delivery was removed with its packet.
          if (delivery === undefined || !isRecorded(delivery, outcome, until)) return;
          deliveries.update(delivery, afterAttempt(delivery, outcome, { now, retrySeconds, random }), now);
          if (locksWebhook) updateWebhook(transaction, webhook_id, outcome, now);
        },
      });
    },
  };
}

export type DeliveryService = ReturnType<typeof createDeliveryService>;
