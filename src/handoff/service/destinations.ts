import { conflict, notFound } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import { isId } from '../../kit/uuid.ts';
import type { Delivery, DeliveryStatus } from '../model/webhook.ts';
import { isDeadLetter, restarted } from '../rules/delivery.ts';
import type { StoredDelivery } from '../store/deliveries.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { Page } from '../store/page-size.ts';
import type { DestinationKind, StoredWebhook } from '../store/webhooks.ts';
import { type Caller, provenanceOf } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { auditRecord } from './trail.ts';

interface DestinationDependencies<Shown> extends ServiceDependencies {
  /** Whether these are webhooks or channels. */
  destination: DestinationKind;
  /** The most of them that a tenant may have. */
  most: number;
  /** One of them as callers see it. */
  show: (stored: StoredWebhook) => Shown;
}

/** What is left of a new one: the service sets the rest. */
type New = Omit<StoredWebhook, 'seq' | 'id' | 'old_secret' | 'old_secret_until' | 'active' | 'disabled_reason' | 'failing_since' | Times>;
type Times = 'created_at' | 'updated_at' | 'removed_at';

const fresh = { seq: 0, old_secret: null, old_secret_until: null, active: true, disabled_reason: null, failing_since: null };

/** The operations that webhooks and channels share: deliveries are sent to either. */
export function createDestinations<Shown>({ store, clock, newId, destination, most, show }: DestinationDependencies<Shown>) {
  const idOf = (stored: { id: string }) => ({ [`${destination}_id`]: stored.id });

  /** Changes one while it is locked. `decide` returns its new state, or undefined when nothing changes. */
  async function change(
    caller: Caller,
    id: string,
    action: 'updated' | 'deleted',
    decide: (stored: StoredWebhook, now: Date) => { stored: StoredWebhook; details: Record<string, unknown> } | undefined,
  ): Promise<Shown> {
    if (!isId(id)) throw notFound(destination);
    const now = clock();
    return store.of(caller).commit({
      webhooks: [id],
      work({ webhooks, trail }) {
        const before = webhooks.named(destination, id);
        if (before === undefined) throw notFound(destination);
        const decided = decide(before, now);
        if (decided === undefined) return show(before);
        const changed = { ...decided.stored, updated_at: now.toISOString() };
        if (changed.removed_at === null) webhooks.save(id, changed);
        else webhooks.remove(id, changed);
        trail.audit(auditRecord(caller, destination, action, { ...idOf(before), ...decided.details }), provenanceOf(caller, now));
        return show(changed);
      },
    });
  }

  return {
    change,

    /** Adds one, or repeats the answer stored under the same idempotency key. */
    add: async (caller: Caller, given: New, details: Record<string, unknown>, idempotency?: Idempotency) => {
      const now = clock();
      const at = now.toISOString();
      const stored: StoredWebhook = { ...fresh, ...given, id: newId(now), created_at: at, updated_at: at, removed_at: null };
      return store.of(caller).commit({
        // Locks the tenant, so that instances count one after the other.
        tenantId: caller.tenant_id,
        allWebhooks: true,
        idempotencyKey: idempotency?.key,
        work({ webhooks, idempotency: answers, trail }) {
          const again = answers.repeated(idempotency);
          if (again !== undefined) return { added: readJson(again.body) as Shown, replayed: true };
          if (webhooks.count(destination) >= most) throw conflict(`The tenant has ${most} ${destination}s, the maximum; remove one first.`);
          webhooks.insert(stored);
          const added = show(stored);
          trail.audit(auditRecord(caller, destination, 'created', { ...idOf(stored), ...details }), provenanceOf(caller, now));
          if (idempotency !== undefined) answers.remember(idempotency, { status: 201, body: JSON.stringify(added), etag: null }, now);
          return { added, replayed: false };
        },
      });
    },

    /** Removes one: it is hidden, and the deliverer cancels its pending deliveries. */
    remove: async (caller: Caller, id: string): Promise<void> => {
      await change(caller, id, 'deleted', (stored, now) => ({
        stored: { ...stored, active: false, removed_at: now.toISOString() },
        details: {},
      }));
    },

    /** Queues a test delivery of this type, with a body if it has one. */
    test: async (caller: Caller, id: string, type: string, body?: (timestamp: string) => string): Promise<Delivery> => {
      if (!isId(id)) throw notFound(destination);
      const now = clock();
      return store.of(caller).commit({
        webhooks: [id],
        work({ webhooks, deliveries }) {
          const stored = webhooks.named(destination, id);
          if (stored === undefined) throw notFound(destination);
          requireActive(stored, destination);
          const timestamp = now.toISOString();
          const event = { id: newId(now), type, packet_id: null, timestamp };
          if (body === undefined) return deliveries.add(event, stored);
          return deliveries.send({ ...event, body: () => body(timestamp) }, [stored])[0]!;
        },
      });
    },

    deliveries: async (caller: Caller, id: string, status: DeliveryStatus | undefined, page: Page, signal: AbortSignal) => {
      const found = isId(id) ? await store.of(caller, signal).deliveries.of(destination, id, status, page) : undefined;
      if (found === undefined) throw notFound(destination);
      return found;
    },

    /** Queues a dead letter again; of one of them, if its id is given. */
    replay: async (caller: Caller, deliveryId: string, id?: string): Promise<Delivery> => {
      if (!isId(deliveryId)) throw notFound('delivery');
      const now = clock();
      const tenant = store.of(caller);
      const toId = await tenant.deliveries.destination(deliveryId);
      if (toId === undefined) throw notFound('delivery');
      return tenant.commit({
        deliveryIds: [deliveryId],
        webhooks: [toId],
        work({ webhooks, deliveries }) {
          const delivery = deliveries.byId(deliveryId);
          const to = webhooks.get(toId);
          const isOwn =
            to === undefined ? id === undefined : webhooks.named(destination, to.id) !== undefined && (id === undefined || to.id === id);
          if (delivery === undefined || !isOwn) throw notFound('delivery');
          if (!isDeadLetter(delivery)) throw conflict(`The delivery is ${delivery.status}; only a dead letter can be replayed.`);
          if (to === undefined) throw conflict(`The ${destination} was removed.`);
          requireActive(to, destination);
          return shownDelivery(deliveries.update(delivery, restarted(now), now), to.id);
        },
      });
    },
  };
}

function requireActive({ active }: StoredWebhook, destination: DestinationKind): void {
  if (!active) throw conflict(`The ${destination} is inactive; activate it first.`);
}

/** A delivery as the API shows it. */
function shownDelivery({ seq: _, webhook: __, event_id: ___, due_at: ____, ...delivery }: StoredDelivery, webhook_id: string): Delivery {
  const { id, ...rest } = delivery;
  return { id, webhook_id, ...rest };
}
