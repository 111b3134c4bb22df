import type { NewId } from '../../../kit/id.ts';
import type { Row, Values } from '../../../kit/sql/dialect.ts';
import type { Delivery } from '../../model/webhook.ts';
import type { DeliveryState } from '../../rules/delivery.ts';
import type { Journal } from './journal.ts';
import type { Kind } from './transaction.ts';
import type { StoredWebhook, WebhookTransaction } from './webhooks.ts';

/** A stored delivery. */
export type StoredDelivery = Omit<Delivery, 'webhook_id'> &
  DeliveryState & {
    readonly seq: number;
    /** The `seq` of its webhook. */
    readonly webhook: number;
    /** The event that it delivers; the body is stored under this id. */
    readonly event_id: string;
  };

/** An event to be sent to webhooks. */
export interface Announcement {
  readonly id: string;
  readonly type: string;
  readonly packet_id: string | null;
  readonly timestamp: string;
  /** The exact body to send. */
  body(): string;
}

const columns = [
  'seq',
  'id',
  'webhook',
  'packet_id',
  'event_id',
  'event_type',
  'status',
  'attempts',
  'last_error',
  'last_status_code',
  'next_retry_at',
  'delivered_at',
  'created_at',
  'updated_at',
  'due_at',
] as const;

/** A tenant's deliveries: those that units named, and what units add and change. */
export class DeliveryTransaction {
  readonly tenant: number;
  readonly found = new Map<number, StoredDelivery>();
  fresh: { readonly row: Row; readonly webhook: StoredWebhook }[] = [];
  messages: { readonly event_id: string; readonly packet_id: string | null; readonly body: string }[] = [];
  readonly changed = new Map<number, StoredDelivery>();
  readonly #journal: Journal;
  readonly #newId: NewId;
  readonly #webhooks: WebhookTransaction;

  constructor(tenant: number, journal: Journal, newId: NewId, webhooks: WebhookTransaction) {
    this.tenant = tenant;
    this.#journal = journal;
    this.#newId = newId;
    this.#webhooks = webhooks;
  }

  /** The delivery that the unit names; undefined when it is unknown or was deleted with its packet. */
  get(seq: number): StoredDelivery | undefined {
    return this.found.get(seq);
  }

  /** Like `get`, by the delivery's id. */
  byId(id: string): StoredDelivery | undefined {
    for (const delivery of this.found.values()) if (delivery.id === id) return delivery;
    return undefined;
  }

  /** Adds a delivery for every active webhook that subscribes to the event's type. */
  announce(event: Announcement): void {
    const wanting = this.#webhooks.all().filter(({ active, events }) => active && (events as readonly string[]).includes(event.type));
    if (wanting.length > 0) this.send(event, wanting);
  }

  /** Adds a delivery for each of the webhooks; returns the deliveries as callers see them. */
  send(event: Announcement, webhooks: readonly StoredWebhook[]): Delivery[] {
    const { id: event_id, type: event_type, packet_id, timestamp } = event;
    this.#journal.push(this.messages, { event_id, packet_id, body: event.body() });
    return webhooks.map((webhook) => {
      const delivery: Delivery = {
        id: this.#newId(new Date(timestamp)),
        webhook_id: webhook.id,
        packet_id,
        event_type,
        status: 'pending',
        attempts: 0,
        last_error: null,
        last_status_code: null,
        next_retry_at: null,
        delivered_at: null,
        created_at: timestamp,
        updated_at: timestamp,
      };
      const { webhook_id: _, ...shown } = delivery;
      this.#journal.push(this.fresh, {
        webhook,
        row: { tenant: this.tenant, ...shown, webhook: webhook.seq, event_id, due_at: timestamp },
      });
      return delivery;
    });
  }

  /** Saves the new state of a delivery; returns the updated delivery. */
  save(delivery: StoredDelivery, state: DeliveryState, now: Date): StoredDelivery {
    const saved = { ...delivery, ...state, updated_at: now.toISOString() };
    this.#journal.set(this.changed, delivery.seq, saved);
    this.#journal.set(this.found, delivery.seq, saved);
    return saved;
  }
}

/** Deliveries to webhooks, and their bodies. */
export const deliveries: Kind = {
  async find(session, group) {
    const wanted = ['tenant', ...columns];
    const [bySeq, byId] = await Promise.all([
      session.find(
        'deliveries',
        wanted,
        group.units.flatMap(({ tenant, unit }) => (unit.deliveries ?? []).map((seq) => ({ tenant, seq }))),
      ),
      session.find(
        'deliveries',
        wanted,
        group.wanted((unit) => unit.deliveryIds).map(([tenant, id]) => ({ tenant, id })),
      ),
    ]);
    for (const [tenant, ...values] of [...bySeq, ...byId]) {
      const delivery = storedDelivery(values);
      group.of(tenant as number).deliveries.found.set(delivery.seq, delivery);
    }
  },

  async erase(session, group, removed) {
    const keys = removed.map(({ tenant, stored }) => ({ tenant, packet_id: stored.packet.id }));
    const kept = await session.find('deliveries', ['event_id'], keys);
    await session.remove(
      'messages',
      [...new Set(kept.map(([event_id]) => event_id as string))].map((event_id) => ({ event_id })),
    );
    await session.remove('deliveries', keys);
    for (const { tenant, stored } of removed) {
      const own = group.of(tenant).deliveries;
      own.fresh = own.fresh.filter(({ row }) => row.packet_id !== stored.packet.id);
      own.messages = own.messages.filter(({ packet_id }) => packet_id !== stored.packet.id);
    }
  },

  async flush(session, group) {
    await session.insert(
      'messages',
      group.each(({ deliveries: { messages } }) => messages.map(({ event_id, body }) => ({ event_id, body }))),
    );
    await session.insert(
      'deliveries',
      group.each(({ deliveries: { fresh } }) => fresh.map(({ row }) => row)),
    );
    await session.update(
      'deliveries',
      ['seq'],
      group.each(({ deliveries: { changed } }) => [...changed.values()].map(changedRow)),
    );
  },
};

/** The columns that an attempt changes. */
function changedRow(delivery: StoredDelivery): Row {
  const { seq, status, attempts, last_error, last_status_code, next_retry_at, delivered_at, updated_at, due_at } = delivery;
  return { seq, status, attempts, last_error, last_status_code, next_retry_at, delivered_at, updated_at, due_at };
}

function storedDelivery(values: Values): StoredDelivery {
  return Object.fromEntries(columns.map((column, index) => [column, values[index]])) as unknown as StoredDelivery;
}
