import type { Clock } from '../../kit/clock.ts';
import { conflict, invalid, notFound } from '../../kit/errors.ts';
import { isId, type NewId } from '../../kit/id.ts';
import {
  type Delivery,
  type DeliveryStatus,
  type Retried,
  type RetryRequest,
  type Webhook,
  type WebhookPatch,
  type WebhookRequest,
  webhookEvents,
} from '../model/webhook.ts';
import { isRetriable, restarted } from '../rules/delivery.ts';
import type { DeliveryPage, StoredDelivery } from '../store/deliveries.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { Store } from '../store/store.ts';
import { type StoredWebhook, shownWebhook } from '../store/webhooks.ts';
import type { Caller } from './authentication.ts';
import { noteOf } from './trail.ts';

interface WebhookServiceParts {
  store: Store;
  clock: Clock;
  newId: NewId;
  /** Returns a sentence that says why deliveries of a tenant can't be sent to a URL; undefined when they can. */
  urlProblem(url: string, tenant: number): Promise<string | undefined>;
  /** How long deliveries are also signed with the previous secret, in seconds. */
  overlapSeconds: number;
}

/** The most webhooks of a tenant: every event writes a delivery for each of them. */
const maxWebhooks = 100;

/** How many deliveries one call of retry-all takes. */
const maxRetried = 1000;

/** The operations on webhooks and their deliveries. */
export function createWebhookService({ store, clock, newId, urlProblem, overlapSeconds }: WebhookServiceParts) {
  async function requireUrl(url: string, { tenant_number }: Caller): Promise<void> {
    const problem = await urlProblem(url, tenant_number);
    if (problem !== undefined) throw invalid('url', problem);
  }

  /** Changes one webhook while it is locked. `decide` returns its new state, or undefined when nothing changes. */
  async function change(
    caller: Caller,
    id: string,
    action: 'updated' | 'deleted',
    decide: (webhook: StoredWebhook, now: Date) => { webhook: StoredWebhook; details: Record<string, unknown> } | undefined,
  ): Promise<Webhook> {
    if (!isId(id)) throw notFound('webhook');
    const now = clock();
    return store.of(caller.tenant_number).commit({
      webhooks: [id],
      work({ webhooks, trail }) {
        const before = webhooks.get(id);
        if (before === undefined) throw notFound('webhook');
        const decided = decide(before, now);
        if (decided === undefined) return shownWebhook(before);
        const changed = { ...decided.webhook, updated_at: now.toISOString() };
        if (changed.removed_at === null) webhooks.save(id, changed);
        else webhooks.remove(id, changed);
        const details = { webhook_id: id, ...decided.details };
        trail.note(noteOf(caller, 'webhook', action, details), { now, keyId: caller.key_id });
        return shownWebhook(decided.webhook);
      },
    });
  }

  /** The store's number of a webhook. @throws ServiceError 404 */
  async function numberOf(caller: Caller, id: string): Promise<number> {
    const number = isId(id) ? await store.of(caller.tenant_number).webhooks.number(id) : undefined;
    if (number === undefined) throw notFound('webhook');
    return number;
  }

  return {
    /** Registers a webhook, or repeats the answer stored under the same idempotency key. */
    async create(
      caller: Caller,
      { url, events: types = [...webhookEvents], secret }: WebhookRequest,
      idempotency?: Idempotency,
    ): Promise<{ webhook: Webhook; replayed: boolean }> {
      await requireUrl(url, caller);
      const now = clock();
      const at = now.toISOString();
      const times = { created_at: at, updated_at: at, removed_at: null };
      const wanted = [...new Set(types)];
      const unused = { old_secret: null, old_secret_until: null, active: true, disabled_reason: null, failing_since: null };
      const fresh: StoredWebhook = { seq: 0, id: newId(now), url, events: wanted, secret, ...unused, ...times };
      return store.of(caller.tenant_number).commit({
        allWebhooks: true,
        idempotencyKey: idempotency?.key,
        work({ webhooks, idempotency: answers, trail }) {
          const again = answers.repeated(idempotency);
          if (again !== undefined) return { webhook: JSON.parse(again.body) as Webhook, replayed: true };
          if (webhooks.count() >= maxWebhooks) throw conflict(`The tenant has ${maxWebhooks} webhooks, the maximum; remove one first.`);
          webhooks.insert(fresh);
          const webhook = shownWebhook(fresh);
          const details = { webhook_id: fresh.id, events: wanted };
          trail.note(noteOf(caller, 'webhook', 'created', details), { now, keyId: caller.key_id });
          if (idempotency !== undefined) answers.remember(idempotency, { status: 201, body: JSON.stringify(webhook), etag: null }, now);
          return { webhook, replayed: false };
        },
      });
    },

    list: (caller: Caller) => store.of(caller.tenant_number).webhooks.list(),

    async change(caller: Caller, id: string, patch: WebhookPatch): Promise<Webhook> {
      if (patch.url !== undefined) await requireUrl(patch.url, caller);
      return change(caller, id, 'updated', (webhook, now) => {
        const fields = Object.keys(patch);
        return fields.length === 0 ? undefined : { webhook: patched(webhook, patch, now, overlapSeconds), details: { fields } };
      });
    },

    /** Removes a webhook: it is hidden, and the deliverer cancels its pending deliveries. */
    async remove(caller: Caller, id: string): Promise<void> {
      await change(caller, id, 'deleted', (webhook, now) => ({
        webhook: { ...webhook, active: false, removed_at: now.toISOString() },
        details: {},
      }));
    },

    /** Queues a test delivery. */
    async ping(caller: Caller, id: string): Promise<Delivery> {
      if (!isId(id)) throw notFound('webhook');
      const now = clock();
      return store.of(caller.tenant_number).commit({
        webhooks: [id],
        work({ webhooks, deliveries }) {
          const webhook = webhooks.get(id);
          if (webhook === undefined) throw notFound('webhook');
          requireActive(webhook);
          const timestamp = now.toISOString();
          const body = () => JSON.stringify({ type: 'ping', packet_id: null, data: { webhook_id: id }, timestamp });
          return deliveries.send({ id: newId(now), type: 'ping', packet_id: null, timestamp, body }, [webhook])[0]!;
        },
      });
    },

    async deliveries(caller: Caller, id: string, status: DeliveryStatus | undefined, page: DeliveryPage, signal: AbortSignal) {
      const found = isId(id) ? await store.of(caller.tenant_number, signal).deliveries.ofWebhook(id, status, page) : undefined;
      if (found === undefined) throw notFound('webhook');
      return found;
    },

    async deadLetters(caller: Caller, webhookId: string | undefined, page: DeliveryPage, signal: AbortSignal) {
      const webhook = webhookId === undefined ? undefined : await numberOf(caller, webhookId.toLowerCase());
      return store.of(caller.tenant_number, signal).deliveries.deadLetters(webhook, page);
    },

    /** Queues a dead letter again. */
    async replay(caller: Caller, id: string): Promise<Delivery> {
      if (!isId(id)) throw notFound('delivery');
      const now = clock();
      return store.of(caller.tenant_number).commit({
        deliveryIds: [id],
        allWebhooks: true,
        work({ webhooks, deliveries }) {
          const delivery = deliveries.byId(id);
          if (delivery === undefined) throw notFound('delivery');
          if (delivery.status !== 'dead_letter') throw conflict(`The delivery is ${delivery.status}; only a dead letter can be replayed.`);
          const webhook = webhooks.all().find(({ seq }) => seq === delivery.webhook);
          if (webhook === undefined) throw conflict('The webhook was removed.');
          requireActive(webhook);
          return shownDelivery(deliveries.update(delivery, restarted(now), now), webhook.id);
        },
      });
    },

    /** Queues failed deliveries and dead letters again, oldest first. */
    async retryAll(caller: Caller, { webhook_id, force = false, since, until }: MomentsOf<RetryRequest>): Promise<Retried> {
      const now = clock();
      const tenant = store.of(caller.tenant_number);
      const webhook = webhook_id === undefined ? undefined : await numberOf(caller, webhook_id.toLowerCase());
      const filter = { due: force ? undefined : now, webhook, since, until };
      const { seqs, active, inactive } = await tenant.deliveries.failed(filter, maxRetried);
      const retried = await tenant.commit({
        deliveries: seqs,
        work({ deliveries }) {
          // Skip deliveries that were delivered, leased or removed since they were read.
          const failed = seqs.flatMap((seq) => deliveries.get(seq) ?? []).filter(isRetriable);
          for (const delivery of failed) deliveries.update(delivery, restarted(now), now);
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
    ...(url === undefined ? {} : { url }),
    ...(events === undefined ? {} : { events: [...new Set(events)] }),
    ...(secret === undefined || secret === webhook.secret ? {} : { ...overlap, secret }),
    // Setting `active` starts over: the service's reason for disabling it and its record of failures no longer apply.
    ...(active === undefined ? {} : { active, disabled_reason: null, failing_since: null }),
  };
}

function requireActive(webhook: StoredWebhook): void {
  if (!webhook.active) throw conflict('The webhook is inactive; activate it first.');
}

/** A delivery as the API shows it. */
function shownDelivery({ seq: _, webhook: __, event_id: ___, due_at: ____, ...delivery }: StoredDelivery, webhook_id: string): Delivery {
  const { id, ...rest } = delivery;
  return { id, webhook_id, ...rest };
}
