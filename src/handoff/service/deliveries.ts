import type { Clock } from '../../kit/clock.ts';
import type { DisabledReason } from '../model/webhook.ts';
import { type AttemptOutcome, afterAttempt, hasFailedTooLong, isGone } from '../rules/delivery.ts';
import type { Store } from '../store/store.ts';
import type { Transaction } from '../store/units/transaction.ts';

interface DeliveryServiceParts {
  store: Store;
  clock: Clock;
  /** The delay after each failure, in seconds. */
  retrySeconds: readonly number[];
  /** For how long a webhook's deliveries may only fail before it is switched off; 0: for ever. */
  disableAfterSeconds: number;
  /** A number from 0 to 1, by chance. */
  chance(): number;
}

/** The webhook of a delivery, as the deliverer knows it. */
interface Destination {
  readonly tenant: number;
  readonly webhook_id: string;
  readonly failing_since: string | null;
}

/** What becomes of deliveries. */
export function createDeliveryService({ store, clock, retrySeconds, disableAfterSeconds, chance }: DeliveryServiceParts) {
  /** Notes since when the webhook fails, and switches it off where that is long, or its receiver is gone. */
  function judge({ webhooks, events }: Transaction, id: string, outcome: AttemptOutcome, now: Date): void {
    const webhook = webhooks.get(id);
    if (webhook === undefined || !webhook.active) return;
    if (outcome.error === undefined) {
      if (webhook.failing_since !== null) webhooks.save({ ...webhook, failing_since: null });
      return;
    }
    const failing_since = webhook.failing_since ?? now.toISOString();
    const tooLong = hasFailedTooLong(failing_since, disableAfterSeconds, now);
    const reason: DisabledReason | null = isGone(outcome) ? 'gone' : tooLong ? 'failing' : null;
    if (reason === null) {
      if (webhook.failing_since === null) webhooks.save({ ...webhook, failing_since });
      return;
    }
    webhooks.save({ ...webhook, failing_since, active: false, disabled_reason: reason, updated_at: now.toISOString() });
    const details = { webhook_id: id, reason };
    events.note({ event_type: 'disabled', resource: 'webhook', actor: 'system:deliverer', details }, { now, keyId: null });
  }

  return {
    /** Records how an attempt ended, on a delivery that was in hand until a moment. */
    async record(
      { tenant, webhook_id, failing_since }: Destination,
      { seq, until }: { readonly seq: number; readonly until: Date },
      outcome: AttemptOutcome,
    ): Promise<void> {
      const now = clock();
      const random = chance();
      // A webhook that does well is not locked for each of its deliveries.
      const judged = outcome.error !== undefined || failing_since !== null;
      await store.of(tenant).commit({
        deliveries: [seq],
        ...(judged ? { webhooks: [webhook_id] } : {}),
        work(transaction) {
          const { deliveries } = transaction;
          const delivery = deliveries.get(seq);
          // It went with its packet; or another attempt, begun when this one's lease was over, has delivered it.
          if (delivery === undefined || delivery.status === 'delivered') return;
          // The lease was over and it is in other hands: a failure of this attempt decides nothing any more.
          const isOurs = delivery.due_at === until.toISOString() || delivery.status === 'cancelled';
          if (outcome.error !== undefined && !isOurs) return;
          deliveries.save(delivery, afterAttempt(delivery, outcome, { now, retrySeconds, random }), now);
          if (judged) judge(transaction, webhook_id, outcome, now);
        },
      });
    },
  };
}

export type DeliveryService = ReturnType<typeof createDeliveryService>;
