import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { StoredDelivery } from './deliveries.ts';
import { DeliveryFloors, type LookStart } from './delivery-floors.ts';
import { inSession } from './engine/in-session.ts';
import type { Take } from './engine/session.ts';
import type { ReadDependencies } from './noun.ts';
import type { Tables } from './tables.ts';
import type { StoredWebhook } from './webhooks.ts';

/** The columns of a webhook or channel that an attempt needs. */
export const destinationColumns = [
  ...(['kind', 'url', 'secret', 'old_secret', 'old_secret_until', 'failing_since'] as const),
  ...(['authentication', 'responder', 'sign_in', 'key_id', 'key_origin', 'origin', 'name', 'subscription', 'expires_at'] as const),
] as const;
/** What an attempt needs of a webhook or channel. */
export type Destination = Pick<StoredWebhook, (typeof destinationColumns)[number]>;

/** The pending deliveries of one webhook or channel, with what is needed to send them. */
export interface DeliveryQueue extends Destination {
  /** The number of the webhook or channel, its id, and its tenant's number. */
  webhook: number;
  webhook_id: string;
  tenant: number;
  /** Whether deliveries may be sent: 0 or 1. */
  active: number;
  /** Whether it or its tenant is deleted, so that its pending deliveries must be cancelled: 0 or 1. */
  gone: number;
  /** When the first pending delivery is due. */
  due_at: string;
}

const claimedColumns = ['seq', 'id', 'webhook', 'packet_id', 'event_id', 'event_type', 'attempts', 'created_at'] as const;

/** A delivery that this instance has leased for an attempt. */
export type ClaimedDelivery = Pick<StoredDelivery, (typeof claimedColumns)[number]>;

/** A leased delivery, and until when it is leased. */
export interface Leased {
  readonly delivery: ClaimedDelivery;
  readonly queue: Pick<DeliveryQueue, 'tenant'>;
  readonly until: Date;
}

/** How many deliveries to lease of a webhook or channel, by its `seq`, and when its first pending one is due. */
export type DeliveryTake = Take;

/** Each member as JSON text. */
type JsonOf<T> = { [Key in keyof T]: string };

/** Finds the webhooks and channels with pending deliveries, and leases these. */
export function createDeliveryQueues({ database }: Pick<ReadDependencies, 'database'>) {
  const isPostgres = database.name === 'postgres';
  const queued = database.query<JsonOf<LookStart>, DeliveryQueue>((db, start) => queuesOf(db, isPostgres ? firstFrom(start) : firstOfEach));
  const floors = new DeliveryFloors();

  return {
    /** Every webhook and channel with pending deliveries, due or not. */
    async queues(now: Date): Promise<DeliveryQueue[]> {
      const start = floors.start(now);
      const found = await queued.all({ floors: JSON.stringify(start.floors), gaps: JSON.stringify(start.gaps) });
      floors.looked(now, found);
      return found;
    },

    /** Leases due deliveries until `until`: of each webhook or channel the earliest, up to its quota. */
    async claim(takes: readonly DeliveryTake[], now: Date, until: Date): Promise<ClaimedDelivery[]> {
      const claim = { owner: 'webhook', due: 'due_at', now: now.toISOString(), until: until.toISOString(), takes };
      // A lease lost in a power failure causes one duplicate delivery at worst.
      const rows = await inSession(database, async (session) => session.claim('deliveries', claimedColumns, claim), { asyncCommit: true });
      const claimed = rows.map(
        (values) => Object.fromEntries(claimedColumns.map((column, index) => [column, values[index]])) as unknown as ClaimedDelivery,
      );
      if (isPostgres) for (const { webhook } of claimed) floors.leased(webhook, 1);
      return claimed;
    },

    /** Releases leased deliveries: they are due at once. */
    async release(inHand: readonly Leased[], now: Date): Promise<void> {
      for (const items of Map.groupBy(inHand, ({ queue, until }) => `${queue.tenant} ${until.toISOString()}`).values()) {
        const { tenant } = items[0]!.queue;
        const until = items[0]!.until.toISOString();
        const seqs = items.map(({ delivery }) => delivery.seq);
        await database.transaction((tx) =>
          tx
            .updateTable('deliveries')
            .set({ due_at: now.toISOString() })
            .where('tenant', '=', tenant)
            .where('seq', 'in', seqs)
            .where('due_at', '=', until)
            .execute(),
        );
      }
    },
  };
}

/** The webhooks and channels with pending deliveries; `first`: a table with the number, tenant and first due time of each. */
function queuesOf(db: Kysely<Tables>, first: RawBuilder<unknown>) {
  const query = sql<DeliveryQueue>`
    with recursive ${first}
    select ${queueColumns}, first.due_at, case when webhooks.removed_at is null and tenants.deleted_at is null then 0 else 1 end as gone
    from first join webhooks on webhooks.tenant = first.tenant and webhooks.seq = first.webhook
    join tenants on tenants.number = webhooks.tenant`;
  return { compile: () => query.compile(db), execute: async () => (await query.execute(db)).rows };
}

/** Skips through the index from one webhook with pending deliveries to the next, so the cost does not depend on how many each has. */
const firstOfEach = sql`
  queued (webhook) as (
    select min(webhook) from deliveries where due_at is not null
    union all
    select (select min(webhook) from deliveries where due_at is not null and webhook > queued.webhook)
    from queued where queued.webhook is not null),
  first (webhook, tenant, due_at) as (
    select webhook, (select tenant from deliveries where due_at is not null and webhook = queued.webhook limit 1),
      (select min(due_at) from deliveries where due_at is not null and webhook = queued.webhook)
    from queued where webhook is not null)`;

/** As above in the gaps; the webhooks with floors are looked up one by one. */
const firstFrom = ({ floors, gaps }: JsonOf<LookStart>) => sql`
  queued (webhook, before) as (
    select (select min(webhook) from deliveries where due_at is not null and webhook > gap.after and webhook < gap.before), gap.before
    from json_to_recordset(${gaps}::json) as gap (after bigint, before bigint)
    union all
    select (select min(webhook) from deliveries where due_at is not null and webhook > queued.webhook and webhook < queued.before),
      queued.before
    from queued where queued.webhook is not null),
  begun (webhook, "from") as (
    select webhook, '' from queued where webhook is not null
    union all select webhook, "from" from json_to_recordset(${floors}::json) as floor (webhook bigint, "from" text)),
  first as (
    select begun.webhook, earliest.tenant, earliest.due_at from begun cross join lateral (
      select tenant, due_at from deliveries
      where webhook = begun.webhook and due_at is not null and due_at >= begun."from" collate "C" order by due_at limit 1) earliest)`;

const queueColumns = sql`webhooks.seq as webhook, webhooks.id as webhook_id, webhooks.tenant, active, ${sql.join(
  destinationColumns.map((column) => sql.ref(`webhooks.${column}`)),
)}`;
