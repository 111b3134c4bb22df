import { defined } from '../../kit/defined.ts';
import { invalid, notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/uuid.ts';
import {
  type Delivery,
  type DeliveryDetail,
  defaultWebhookEvents,
  type Retried,
  type RetryRequest,
  type Webhook,
  type WebhookPatch,
  type WebhookRequest,
} from '../model/webhook.ts';
import { isRetriable, restarted } from '../rules/delivery.ts';
import { requireSecret } from '../rules/signature.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { Page } from '../store/page-size.ts';
import { noChannel, type StoredWebhook, shownWebhook } from '../store/webhooks.ts';
import type { Caller } from './authentication.ts';
import type { SendingDependencies } from './dependencies.ts';
import { createDestinations } from './destinations.ts';

interface WebhookServiceDependencies extends SendingDependencies {
  /** How long deliveries are also signed with the previous secret, in seconds. */
  overlapSeconds: number;
}

/** The most webhooks of a tenant: every event writes a delivery for each of them. */
const maxWebhooks = 100;

/** How many deliveries one call of retry-all takes. */
const maxRetried = 1000;

/** The operations on webhooks and their deliveries. */
export function createWebhookService({ store, clock, newId, urlProblem, overlapSeconds }: WebhookServiceDependencies) {
  const { change, add, remove, test, deliveries, replay } = createDestinations({
    ...{ store, clock, newId },
    destination: 'webhook',
    most: maxWebhooks,
    show: shownWebhook,
  });

  async function requireUrl(url: string, { tenant_number }: Caller): Promise<void> {
    const problem = await urlProblem(url, tenant_number);
    if (problem !== undefined) throw invalid('url', problem);
  }

  /** The store's number of a webhook. @throws ServiceError 404 */
  async function numberOf(caller: Caller, id: string): Promise<number> {
    const number = isId(id) ? await store.of(caller).webhooks.number(id, 'webhook') : undefined;
    if (number === undefined) throw notFound('webhook');
    return number;
  }

  return {
    remove,
    deliveries,
    replay,

    /** Registers a webhook, or repeats the answer stored under the same idempotency key. */
    async create(caller: Caller, { url, events = [...defaultWebhookEvents], secret }: WebhookRequest, idempotency?: Idempotency) {
      requireSecret(secret);
      await requireUrl(url, caller);
      const wanted = [...new Set(events)];
      return add(caller, { kind: 'webhook', url, events: wanted, secret, ...noChannel }, { events: wanted }, idempotency);
    },

    list: (caller: Caller) => store.of(caller).webhooks.list(),

    async change(caller: Caller, id: string, patch: WebhookPatch): Promise<Webhook> {
      if (patch.secret !== undefined) requireSecret(patch.secret);
      if (patch.url !== undefined) await requireUrl(patch.url, caller);
      return change(caller, id, 'updated', (webhook, now) => {
        const fields = Object.keys(patch);
        return fields.length === 0 ? undefined : { stored: patched(webhook, patch, now, overlapSeconds), details: { fields } };
      });
    },

    /** Queues a test delivery. */
    ping: (caller: Caller, id: string): Promise<Delivery> =>
      test(caller, id, 'ping', (timestamp) => JSON.stringify({ type: 'ping', packet_id: null, data: { webhook_id: id }, timestamp })),

    /** A delivery, of a removed webhook too, and what it sends. */
    async delivery(caller: Caller, id: string, deliveryId: string): Promise<DeliveryDetail> {
      const webhook = await numberOf(caller, id.toLowerCase());
      const found = isId(deliveryId) ? await store.of(caller).deliveries.detail(webhook, deliveryId) : undefined;
      if (found === undefined) throw notFound('delivery');
      return found;
    },

    async deadLetters(caller: Caller, webhookId: string | undefined, page: Page, signal: AbortSignal) {
      const webhook = webhookId === undefined ? undefined : await numberOf(caller, webhookId.toLowerCase());
      return store.of(caller, signal).deliveries.deadLetters(webhook, page);
    },

    /** Queues failed deliveries and dead letters again, oldest first. */
    async retryAll(caller: Caller, { webhook_id, force = false, since, until }: MomentsOf<RetryRequest>): Promise<Retried> {
      const now = clock();
      const tenant = store.of(caller);
      const webhook = webhook_id === undefined ? undefined : await numberOf(caller, webhook_id.toLowerCase());
      const filter = { due: force ? undefined : now, webhook, since, until };
      const { seqs, active, inactive } = await tenant.deliveries.failed(filter, maxRetried);
      const retried = await tenant.commit({
        deliveries: seqs,
        work({ deliveries: stored }) {
          // Skip deliveries that were delivered, leased or removed since they were read.
          const failed = seqs.flatMap((seq) => stored.get(seq) ?? []).filter(isRetriable);
          for (const delivery of failed) stored.update(delivery, restarted(now), now);
          return failed.length;
        },
      });
      return { retried, skipped: inactive, remaining: active - seqs.length };
    },
  };
}

export type WebhookService = ReturnType<typeof createWebhookService>;

type MomentsOf<T> = Omit<T, 'since' | 'until'> & { since?: Date | undefined; until?: Date | undefined };

/** The webhook with the patch applied. */
function patched(webhook: StoredWebhook, { url, events, active, secret }: WebhookPatch, now: Date, overlapSeconds: number): StoredWebhook {
  const overlap = {
    old_secret: webhook.secret,
    old_secret_until: new Date(now.getTime() + overlapSeconds * 1000).toISOString(),
  };
  return {
    ...webhook,
    ...defined({ url, events: events && [...new Set(events)] }),
    ...(secret === undefined || secret === webhook.secret ? {} : { ...overlap, secret }),
    // Setting `active` starts over: the service's reason for disabling it and its record of failures no longer apply.
    ...(active === undefined ? {} : { active, disabled_reason: null, failing_since: null }),
  };
}
