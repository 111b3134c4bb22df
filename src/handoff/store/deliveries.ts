import { type ExpressionBuilder, type Generated, type JoinBuilder, type Kysely, sql } from 'kysely';

import { countOf } from '../../kit/sql/count.ts';
import { traceparentOf } from '../../kit/trace-context.ts';
import type { ChannelEvent } from '../model/channel.ts';
import type { Delivery, DeliveryDetail, DeliveryError, DeliveryStatus } from '../model/webhook.ts';
import { cancelled, type DeliveryState, restarted } from '../rules/delivery.ts';
import { createDeliveryQueues, type DeliveryQueue, type Destination, destinationColumns } from './delivery-queues.ts';
import type { Group, Writes } from './engine/group.ts';
import { Table, TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { Page } from './page-size.ts';
import type { Tables } from './tables.ts';
import { type DestinationKind, numberOf, type StoredWebhook, type WebhookBuffer, webhooks } from './webhooks.ts';

declare module './tables.ts' {
  interface Tables {
    deliveries: {
      seq: Generated<number>;
      id: string;
      tenant: number;
      /** The `seq` of its webhook or channel. */
      webhook: number;
      packet_id: string | null;
      event_id: string;
      event_type: string;
      status: DeliveryStatus;
      attempts: number;
      last_error: DeliveryError | null;
      last_status_code: number | null;
      next_retry_at: string | null;
      delivered_at: string | null;
      created_at: string;
      updated_at: string;
      /** When the next attempt may start, or the end of the current lease; null: no attempt is scheduled. */
      due_at: string | null;
      /** The position of its event in the trail, for subscriptions to events of MCP; null for others. */
      position: number | null;
    };
    /** The bodies of deliveries, one per event. */
    messages: { tenant: number; event_id: string; body: string; traceparent: string | null };
  }
}

/** The deliveries that a unit needs. */
export interface DeliveryNeeds {
  /** Deliveries to lock, by `seq` or by id. */
  readonly deliveries?: readonly number[];
  readonly deliveryIds?: readonly string[];
}

/** A stored delivery. */
export type StoredDelivery = Omit<Delivery, 'webhook_id'> &
  DeliveryState & {
    readonly seq: number;
    /** The `seq` of its webhook or channel. */
    readonly webhook: number;
    /** The event that it delivers; the body is stored under this id. */
    readonly event_id: string;
    readonly position: number | null;
  };

/** An event to be sent to webhooks, and perhaps told to channels. */
interface Notification {
  readonly id: string;
  readonly type: string;
  readonly packet_id: string | null;
  readonly timestamp: string;
  /** The exact body to send to webhooks. */
  body(): string;
  /** What it is for channels, and who is asked. A message to a channel is made when it is sent. */
  readonly notifies?: ChannelEvent | undefined;
  readonly people?: readonly string[];
  /** The numbers of the webhooks that are for this packet alone. What they get is made when it is sent. */
  readonly followers?: readonly number[];
  /** Where it stands in the trail, for subscriptions to events of MCP. */
  readonly position?: number | null;
}

/** What the deliveries of an event have in common. */
export interface Message {
  readonly body: string;
  /** The trace of the request that caused the event. */
  readonly traceparent: string | null;
}

/** How the attempts of a delivery went. */
const outcomeColumns = ['status', 'attempts', 'last_error', 'last_status_code', 'next_retry_at', 'delivered_at'] as const;

const table = new Table<StoredDelivery>({
  name: 'deliveries',
  columns: [
    'seq',
    'id',
    'webhook',
    'packet_id',
    'event_id',
    'event_type',
    ...outcomeColumns,
    'created_at',
    'updated_at',
    'due_at',
    'position',
  ],
  key: 'seq',
  ofTenants: true,
  updated: [...outcomeColumns, 'updated_at', 'due_at'],
  decode: (row) => row as unknown as StoredDelivery,
  encode: (delivery) => ({ ...delivery }),
});

/** A tenant's deliveries, by `seq`, and the bodies of new ones. */
export class DeliveryBuffer extends TableBuffer<number, StoredDelivery> {
  messages: (Message & { readonly event_id: string; readonly packet_id: string | null })[] = [];
  readonly #group: Group<unknown>;
  readonly #webhooks: WebhookBuffer;

  constructor(group: Group<unknown>, webhooks: WebhookBuffer) {
    super(group.journal);
    this.#group = group;
    this.#webhooks = webhooks;
  }

  /** Like `get`, by the delivery's id. */
  byId(id: string): StoredDelivery | undefined {
    return this.all().find((delivery) => delivery.id === id);
  }

  /** Adds a delivery for every active webhook that subscribes to the event's type, and every channel that sends it. */
  notify(event: Notification): void {
    const subscribed = this.#webhooks.subscribedTo(event.type);
    if (subscribed.length > 0) this.send(event, subscribed);
    const { notifies, followers = [], people = [] } = event;
    for (const seq of followers) this.add(event, { seq, id: '' });
    if (notifies === undefined) return;
    for (const channel of this.#webhooks.notifiedOf(notifies, people)) this.add({ ...event, type: notifies }, channel);
  }

  /** Adds a delivery for each of the webhooks; returns the deliveries as callers see them. */
  send(event: Notification, webhooks: readonly StoredWebhook[]): Delivery[] {
    const { trace } = this.#group;
    const traceparent = trace === undefined ? null : traceparentOf(trace);
    this.journal.push(this.messages, { event_id: event.id, packet_id: event.packet_id, body: event.body(), traceparent });
    return webhooks.map((webhook) => this.add(event, webhook));
  }

  /** Adds a delivery without a body. */
  add(
    { id: event_id, type: event_type, packet_id, timestamp, position = null }: Omit<Notification, 'body'>,
    to: Pick<StoredWebhook, 'seq' | 'id'>,
  ): Delivery {
    const id = this.#group.newId(new Date(timestamp));
    const { due_at, ...state } = restarted(new Date(timestamp));
    const rest = { packet_id, event_type, ...state, created_at: timestamp, updated_at: timestamp };
    this.insert({ seq: 0, id, webhook: to.seq, event_id, due_at, position, ...rest });
    return { id, webhook_id: to.id, ...rest };
  }

  /** Saves the new state of a delivery; returns the updated delivery. */
  update(delivery: StoredDelivery, state: DeliveryState, now: Date): StoredDelivery {
    const saved = { ...delivery, ...state, updated_at: now.toISOString() };
    this.save(delivery.seq, saved);
    return saved;
  }
}

const writes: Writes<DeliveryNeeds, DeliveryBuffer> = {
  needs: { deliveries: true, deliveryIds: true },
  stage: (tenant, group) => new DeliveryBuffer(group, group.of(webhooks.writes, tenant)),

  async find(session, group) {
    const bySeq = group.wanted('seq', (unit) => unit.deliveries);
    const byId = group.wanted('id', (unit) => unit.deliveryIds);
    const found = await Promise.all([bySeq, byId].map((keys) => table.find(session, keys, ['tenant'])));
    for (const { stored, more } of found.flat()) group.of(writes, more[0] as number).found.set(stored.seq, stored);
  },

  async erase(session, group, erased) {
    const kept = await session.find('deliveries', ['tenant', 'event_id'], erased);
    session.remove('messages', [
      ...new Map((kept as [number, string][]).map(([tenant, event_id]) => [event_id, { tenant, event_id }])).values(),
    ]);
    session.remove('deliveries', erased);
    for (const { tenant, packet_id } of erased) {
      const own = group.of(writes, tenant);
      const isKept = (item: { packet_id: string | null; event_id: string }) =>
        item.packet_id !== packet_id || group.ofErasures.has(item.event_id);
      own.inserted = own.inserted.filter(isKept);
      own.messages = own.messages.filter(isKept);
    }
  },

  flush(session, group) {
    session.insert(
      'messages',
      group.each(writes, ({ messages }, tenant) =>
        messages.map(({ event_id, body, traceparent }) => ({ tenant, event_id, body, traceparent })),
      ),
    );
    table.flush(session, group, writes);
  },
};

/** Which failed deliveries to retry. */
export interface RetryFilter {
  /** Only those whose `next_retry_at` is at or before this time; undefined: all. */
  readonly due: Date | undefined;
  readonly webhook?: number | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
}

const deliveryColumns = ['deliveries.id', 'webhooks.id as webhook_id', 'packet_id', 'event_type', ...outcomeColumns] as const;
const shown = [...deliveryColumns, 'deliveries.created_at', 'deliveries.updated_at'] as const;

/** How many deliveries of a deleted webhook are cancelled in one transaction. */
const cancelSize = 1000;

/** Finds and leases pending deliveries, and reads the outcome of past ones. */
function reads(parts: ReadDependencies) {
  const { database } = parts;
  const message = database.query<{ tenant: number; event_id: string }, Message>((db, { tenant, event_id }) =>
    db.selectFrom('messages').select(['body', 'traceparent']).where('tenant', '=', tenant).where('event_id', '=', event_id),
  );

  const destination = database.query<{ tenant: number; webhook: number }, Destination & { active: number }>((db, { tenant, webhook }) =>
    db
      .selectFrom('webhooks')
      .select([...destinationColumns, 'active'])
      .where('tenant', '=', tenant)
      .where('seq', '=', webhook)
      .where('removed_at', 'is', null),
  );
  const ofAll = {
    ...createDeliveryQueues(parts),
    /** A webhook or channel as it is now; undefined once it is removed. */
    destination({ tenant, webhook }: Pick<DeliveryQueue, 'tenant' | 'webhook'>) {
      // Attempts that begin in one turn share its locks, with the reads of their messages.
      database.beginTurnReads();
      return destination.first({ tenant, webhook });
    },

    /** The position up to which all events of a subscription were delivered or given up; undefined when none is pending. */
    settledUpTo: async (tenant: number, webhook: number): Promise<number | undefined> => {
      const pending = database.reads
        .selectFrom('deliveries')
        .select('position')
        .where('tenant', '=', tenant)
        .where('webhook', '=', webhook)
        .where('position', 'is not', null)
        .where('due_at', 'is not', null)
        .orderBy('position')
        .limit(1);
      const first = await pending.executeTakeFirst();
      return first && first.position! - 1;
    },

    /** What to send for an event; undefined when its packet was deleted permanently. */
    message: async (tenant: number, eventId: string): Promise<Message | undefined> => message.first({ tenant, event_id: eventId }),

    /** Cancels some pending deliveries of a deleted webhook or channel; returns whether there may be more. */
    async cancel(tenant: number, webhook: number, now: Date): Promise<boolean> {
      const waiting = (db: Kysely<Tables>) =>
        db
          .selectFrom('deliveries')
          .select('seq')
          .where('tenant', '=', tenant)
          .where('webhook', '=', webhook)
          .where('due_at', 'is not', null)
          .limit(cancelSize);
      const { numUpdatedRows } = await database.transaction((tx) =>
        tx
          .updateTable('deliveries')
          .set({ ...cancelled(), updated_at: now.toISOString() })
          .where('tenant', '=', tenant)
          .where('seq', 'in', waiting(tx))
          .executeTakeFirst(),
      );
      return Number(numUpdatedRows) >= cancelSize;
    },

    /**
     * Deletes deliveries that were delivered or cancelled before `before`, or that became dead letters then, earliest first and up
     * to `limit`, and bodies that no delivery needs any more; returns how many deliveries it deleted.
     */
    forget: (kind: 'ended' | 'dead', before: Date, limit: number) => database.transaction((tx) => forgetOld(tx, kind, before, limit)),

    /** The number of pending deliveries, counted up to `most`. */
    async waiting(most: number): Promise<number> {
      const { longReads: db } = database;
      return countOf(db.selectFrom(db.selectFrom('deliveries').select('seq').where('due_at', 'is not', null).limit(most).as('some')));
    },
  };

  const ofTenant = ({ tenant, inLane }: ReadScope) => ({
    /** The deliveries of a webhook or channel, removed or not, newest first, and how many there are; undefined when it is unknown. */
    of: (destination: DestinationKind, id: string, status: DeliveryStatus | undefined, page: Page) =>
      inLane(async (db) => {
        const webhook = await numberOf(db, tenant, id, destination);
        if (webhook === undefined) return undefined;
        return list(db, page, (eb) => [
          eb('deliveries.tenant', '=', tenant),
          eb('deliveries.webhook', '=', webhook),
          ...(status === undefined ? [] : [eb('status', '=', status)]),
        ]);
      }),

    /** A page of dead letters of webhooks, newest first, and their total. */
    deadLetters: (webhook: number | undefined, page: Page) =>
      inLane((db) =>
        list(db, page, (eb) => [
          eb('deliveries.tenant', '=', tenant),
          eb('kind', 'in', ['webhook', 'push', 'event']),
          eb('status', '=', 'dead_letter'),
          eb('next_retry_at', 'is not', null),
          ...(webhook === undefined ? [] : [eb('deliveries.webhook', '=', webhook)]),
        ]),
      ),

    /** Failed deliveries to webhooks to retry, oldest first, and their totals for active and inactive webhooks. */
    failed: (filter: RetryFilter, limit: number) => inLane((db) => failed(db, tenant, filter, limit)),

    /** The id of the webhook or channel of a delivery. */
    destination: async (id: string): Promise<string | undefined> => {
      const found = database.reads
        .selectFrom('deliveries')
        .innerJoin('webhooks', ofDelivery)
        .select('webhooks.id')
        .where('deliveries.tenant', '=', tenant)
        .where('deliveries.id', '=', id);
      return (await found.executeTakeFirst())?.id;
    },

    /** A delivery to a webhook, and what it sends. */
    detail: (webhook: number, id: string): Promise<DeliveryDetail | undefined> =>
      database.reads
        .selectFrom('deliveries')
        .innerJoin('webhooks', ofDelivery)
        .leftJoin('messages', (join) =>
          join.onRef('messages.tenant', '=', 'deliveries.tenant').onRef('messages.event_id', '=', 'deliveries.event_id'),
        )
        .select([...shown, 'deliveries.event_id', 'messages.body'])
        .where('deliveries.tenant', '=', tenant)
        .where('deliveries.webhook', '=', webhook)
        .where('deliveries.id', '=', id)
        .executeTakeFirst(),
  });
  return { ofTenant, ofAll };
}

/** Deliveries to webhooks and channels, and the bodies of those to webhooks. */
export const deliveries = { writes, reads };

async function failed(db: Kysely<Tables>, tenant: number, filter: RetryFilter, limit: number) {
  const matching = db.selectFrom('deliveries').innerJoin('webhooks', ofDelivery).where(retriable(tenant, filter));
  const first = matching.select('deliveries.seq').where('active', '=', 1).orderBy('deliveries.seq').limit(limit);
  const byActive = matching.select(['active', sql<number>`count(*)`.as('count')]).groupBy('active');
  const rows = await first.execute();
  const counts = await byActive.execute();
  const countOf = (active: number) => Number(counts.find((row) => row.active === active)?.count ?? 0);
  return { seqs: rows.map(({ seq }) => seq), active: countOf(1), inactive: countOf(0) };
}

/** Literals, so that the partial indexes of these deliveries match. */
const forgettable = {
  ended: (eb: ExpressionBuilder<Tables, 'deliveries'>) =>
    eb('status', 'in', [sql.lit('delivered' as const), sql.lit('cancelled' as const)]),
  dead: (eb: ExpressionBuilder<Tables, 'deliveries'>) => eb('status', '=', sql.lit('dead_letter' as const)),
};

async function forgetOld(tx: Kysely<Tables>, kind: keyof typeof forgettable, before: Date, limit: number): Promise<number> {
  const isOld = forgettable[kind];
  const old = await tx
    .selectFrom('deliveries')
    .select(['seq', 'tenant', 'packet_id', 'event_id'])
    .where(isOld)
    .where('updated_at', '<', before.toISOString())
    .orderBy('updated_at')
    .limit(limit)
    .execute();
  if (old.length === 0) return 0;
  for (const [tenant, own] of Map.groupBy(old, (delivery) => delivery.tenant)) {
    const seqs = own.map(({ seq }) => seq);
    await tx.deleteFrom('deliveries').where('tenant', '=', tenant).where('seq', 'in', seqs).where(isOld).execute();
    // All webhooks share the body of an event.
    const events = [...new Set(own.map(({ event_id }) => event_id))];
    const packets = [...new Set(own.flatMap(({ packet_id }) => packet_id ?? []))];
    const ofPackets = tx.selectFrom('deliveries').select('event_id').where('tenant', '=', tenant).where('packet_id', 'in', packets);
    const needed = packets.length === 0 ? [] : await ofPackets.where('event_id', 'in', events).execute();
    const isNeeded = new Set(needed.map(({ event_id }) => event_id));
    const unneeded = events.filter((id) => !isNeeded.has(id));
    if (unneeded.length > 0) await tx.deleteFrom('messages').where('tenant', '=', tenant).where('event_id', 'in', unneeded).execute();
  }
  return old.length;
}

type Joined = ExpressionBuilder<Tables, 'deliveries' | 'webhooks'>;

/** Joins deliveries with their webhook or channel. */
const ofDelivery = (join: JoinBuilder<Tables, 'deliveries' | 'webhooks'>) =>
  join.onRef('webhooks.tenant', '=', 'deliveries.tenant').onRef('webhooks.seq', '=', 'deliveries.webhook');

async function list(
  db: Kysely<Tables>,
  { limit, offset }: Page,
  conditions: (eb: Joined) => Parameters<Joined['and']>[0] & readonly unknown[],
): Promise<{ deliveries: Delivery[]; total: number }> {
  const matching = db
    .selectFrom('deliveries')
    .innerJoin('webhooks', ofDelivery)
    .where((eb) => eb.and(conditions(eb)));
  const deliveries = await matching.select(shown).orderBy('deliveries.seq', 'desc').limit(limit).offset(offset).execute();
  return { deliveries, total: await countOf(matching) };
}

/** Failed deliveries that are not leased: the `due_at` of a leased one is the end of its lease. */
function retriable(tenant: number, { due, webhook, since, until }: RetryFilter) {
  return (eb: Joined) => {
    const conditions = [
      eb('deliveries.tenant', '=', tenant),
      eb('kind', 'in', ['webhook', 'push', 'event']),
      eb('status', 'in', ['failed', 'dead_letter']),
      eb('next_retry_at', 'is not', null),
      eb.or([eb('due_at', 'is', null), eb('due_at', '=', eb.ref('next_retry_at'))]),
    ];
    if (due !== undefined) conditions.push(eb('next_retry_at', '<=', due.toISOString()));
    if (webhook !== undefined) conditions.push(eb('deliveries.webhook', '=', webhook));
    if (since !== undefined) conditions.push(eb('deliveries.created_at', '>=', since.toISOString()));
    if (until !== undefined) conditions.push(eb('deliveries.created_at', '<=', until.toISOString()));
    return eb.and(conditions);
  };
}
