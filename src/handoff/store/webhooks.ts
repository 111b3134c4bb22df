import { type Generated, type Kysely, sql } from 'kysely';
import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import type { ChannelEvent, ChannelKind } from '../model/channel.ts';
import { isSamePerson } from '../model/people.ts';
import type { DisabledReason, Webhook, WebhookEvent } from '../model/webhook.ts';
import { rowsOfAll } from './all-tenants.ts';
import type { Writes } from './engine/group.ts';
import type { Session } from './engine/session.ts';
import { Table, TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf, Tables } from './tables.ts';
import { behind, Walk } from './walk.ts';

declare module './tables.ts' {
  interface Tables {
    /** Webhooks and channels: what deliveries are sent to. */
    webhooks: {
      seq: Generated<number>;
      /** `push`: for one packet, a push notification configuration of A2A. `event`: a subscription to events of MCP. */
      kind: 'webhook' | 'push' | 'event' | ChannelKind;
      id: string;
      tenant: number;
      /** The URL, or the mail address. */
      url: string;
      /** A JSON array of the event types that it subscribes to. */
      events: string;
      secret: string;
      /** The previous secret, and until when deliveries are also signed with it. */
      old_secret: string | null;
      old_secret_until: string | null;
      active: number;
      disabled_reason: DisabledReason | null;
      /** Since when all of its deliveries have failed; null: the last one succeeded, or there was none. */
      failing_since: string | null;
      created_at: string;
      updated_at: string;
      removed_at: string | null;
      /** The packet that a push notification configuration is for, `events` for a subscription; and what the former sends as JSON. */
      for_packet: string | null;
      authentication: string | null;
      /** What a subscription is to, as JSON; up to which position of the trail its deliveries are queued; and when it ends. */
      subscription: string | null;
      position: number | null;
      expires_at: string | null;
      /** The name of a channel, the id that the client gave a push notification configuration, or that of a subscription. The rest belongs to channels. */
      name: string | null;
      /** The person whose questions it gets; null: all questions. */
      responder: string | null;
      /** Whether those who answer by its links have to sign in, 1 or 0. */
      sign_in: number;
      /** The key that set the target, and the first key of its chain of rotations: the maker of the channel's answer links. */
      key_id: string | null;
      key_origin: string | null;
      /** The origin of that request, with which answer links begin. */
      origin: string | null;
    };
  }
}

/** The webhooks and channels that a unit needs. */
export interface WebhookNeeds {
  /** The ids of webhooks or channels to lock. */
  readonly webhooks?: readonly string[];
  /** Whether it needs all webhooks and channels of the tenant. */
  readonly allWebhooks?: boolean;
  /** A packet of which it needs all push notification configurations; it names the tenant as well, whose lock orders such units. */
  readonly pushesOf?: string;
  /** Whether it appends events of packets, which are sent to the tenant's webhooks and channels. */
  readonly notifies?: boolean;
}

/** A stored webhook or channel. Its `seq` is 0 before it is inserted. */
export type StoredWebhook = Omit<RowOf<'webhooks'>, 'tenant' | 'events' | 'active'> & {
  readonly events: readonly (WebhookEvent | ChannelEvent)[];
  readonly active: boolean;
};

/**
 * What subscriptions to events have as their packet: units that change packets need not read them, and their names are unique.
 */
export const packetOfSubscriptions = 'events';

/** The columns that only push notification configurations and channels have, of a webhook. */
export const noChannel = {
  for_packet: null,
  authentication: null,
  subscription: null,
  position: null,
  expires_at: null,
  name: null,
  responder: null,
  sign_in: 0,
  key_id: null,
  key_origin: null,
  origin: null,
} satisfies Partial<StoredWebhook>;

/** What deliveries are sent to: a webhook, or a channel. */
export type DestinationKind = 'webhook' | 'channel';

export const destinationOf = ({ kind }: Pick<StoredWebhook, 'kind'>): DestinationKind =>
  kind === 'webhook' || kind === 'push' || kind === 'event' ? 'webhook' : 'channel';

/** A webhook as callers see it, without its secret. */
export function shownWebhook({ id, url, events, active, disabled_reason, created_at }: ListedRow): Webhook {
  return { id, url, events: events as WebhookEvent[], active, disabled_reason, created_at };
}

const listedColumns = [
  'id',
  'kind',
  'url',
  'name',
  'events',
  'responder',
  'sign_in',
  'active',
  'disabled_reason',
  'key_origin',
  'origin',
  'created_at',
] as const;
const secretColumns = ['secret', 'old_secret', 'old_secret_until'] as const;
const channelColumns = ['for_packet', 'authentication', 'key_id', 'subscription', 'position', 'expires_at'] as const;

const table = new Table<StoredWebhook>({
  name: 'webhooks',
  columns: [...listedColumns, 'seq', ...secretColumns, 'failing_since', 'updated_at', 'removed_at', ...channelColumns],
  key: 'seq',
  ofTenants: true,
  decode: (row) =>
    ({
      ...row,
      events: readJson(row.events as string),
      active: row.active === 1,
      position: row.position === null ? null : Number(row.position),
    }) as unknown as StoredWebhook,
  encode: (webhook) => ({ ...webhook, events: JSON.stringify(webhook.events), active: webhook.active ? 1 : 0 }),
});

/** A tenant's webhooks and channels that are not removed, by id. */
export class WebhookBuffer extends TableBuffer<string, StoredWebhook> {
  /** Whether all of the tenant were read. */
  isComplete = false;

  /** The webhook, or the channel, with the id. */
  named(destination: DestinationKind, id: string): StoredWebhook | undefined {
    const found = this.get(id);
    return found !== undefined && destinationOf(found) === destination ? found : undefined;
  }

  /** The push notification configurations of a packet, including new ones. */
  ofPacket(packetId: string): StoredWebhook[] {
    return [...this.all(), ...this.inserted].filter(({ for_packet }) => for_packet === packetId);
  }

  /** The number of webhooks, or of channels, including new ones. */
  count(destination: DestinationKind): number {
    return [...this.all(), ...this.inserted].filter((stored) => destinationOf(stored) === destination && stored.for_packet === null).length;
  }

  /** The webhooks that subscribe to an event type. */
  subscribedTo(type: string): StoredWebhook[] {
    return this.#active('webhook', type);
  }

  /** The channels that notify the person who is asked of an event. */
  notifiedOf(event: ChannelEvent, people: readonly string[]): StoredWebhook[] {
    return this.#active('channel', event).filter(
      ({ responder }) => responder === null || people.some((person) => isSamePerson(person, responder)),
    );
  }

  #active(destination: DestinationKind, event: string): StoredWebhook[] {
    if (!this.isComplete) throw new Error('A unit appends events without `notifies`.');
    return this.all().filter(
      (stored) => stored.active && destinationOf(stored) === destination && (stored.events as readonly string[]).includes(event),
    );
  }
}

/** Units that notify read all of them without a lock but in the same transaction, so that a new one counts at once. */
const writes: Writes<WebhookNeeds, WebhookBuffer> = {
  needs: { webhooks: true, allWebhooks: true, pushesOf: true, notifies: true },
  stage: (_tenant, { journal }) => new WebhookBuffer(journal),

  async find(session, group) {
    const locked = group.wanted('id', (unit) => unit.webhooks);
    const tenants = new Set(group.units.filter(({ unit }) => unit.notifies || unit.allWebhooks).map(({ tenant }) => tenant));
    const complete = [...tenants].map((tenant) => ({ tenant, removed_at: null, for_packet: null }));
    const packets = group.wanted('for_packet', ({ pushesOf }) => (pushesOf === undefined ? undefined : [pushesOf]));
    const [named, all, pushes] = await Promise.all([
      table.find(session, locked, ['tenant']),
      table.read(session, complete, ['tenant']),
      table.read(
        session,
        packets.map((key) => ({ ...key, removed_at: null })),
        ['tenant'],
      ),
    ]);
    for (const tenant of tenants) group.of(writes, tenant).isComplete = true;
    // Locked rows last, because they are the current versions.
    for (const { stored, more } of [...all, ...named, ...pushes]) {
      const { found } = group.of(writes, more[0] as number);
      if (stored.removed_at === null) found.set(stored.id, stored);
      else found.delete(stored.id);
    }
  },

  async erase(session, group, erased) {
    for (const { tenant, packet_id } of erased) group.of(writes, tenant).drop(({ for_packet }) => for_packet === packet_id);
    session.remove(
      'webhooks',
      erased.map(({ tenant, packet_id }) => ({ tenant, for_packet: packet_id })),
    );
  },

  async flush(session, group) {
    table.flush(session, group, writes);
    const packets = group.each(writes, ({ inserted, changed }, tenant) =>
      [...inserted, ...changed.values()].flatMap(({ for_packet }) =>
        for_packet === null || for_packet === packetOfSubscriptions ? [] : [{ tenant, for_packet }],
      ),
    );
    if (packets.length > 0) await follow(session, packets);
  },
};

/** Writes to packets which webhooks are for them alone, so that a change of a packet need not look for them. */
async function follow(session: Session, packets: readonly { tenant: number; for_packet: string }[]): Promise<void> {
  const keys = [...new Map(packets.map((key) => [`${key.tenant} ${key.for_packet}`, key])).values()];
  const found = await session.read(
    'webhooks',
    ['tenant', 'for_packet', 'seq'],
    keys.map((key) => ({ ...key, removed_at: null })),
  );
  const rows = keys.map(({ tenant, for_packet }) => {
    const seqs = found.flatMap(([of, id, seq]) => (of === tenant && id === for_packet ? [seq as number] : []));
    return { tenant, id: for_packet, followers: seqs.length === 0 ? null : JSON.stringify(seqs.toSorted((a, b) => a - b)) };
  });
  session.update('packets', ['tenant', 'id'], rows);
}

/** A webhook or channel as lists need it. */
export type ListedRow = Pick<StoredWebhook, (typeof listedColumns)[number]>;

/** A subscription whose events are to be queued, and the last position of its tenant's trail. */
export type FollowingRow = Pick<RowOf<'webhooks'>, 'tenant' | 'seq' | 'id' | 'expires_at'> & {
  readonly subscription: string;
  readonly position: number;
  readonly last: number;
};

/** A subscription, as a request about it needs it. */
export type SubscriptionRow = Pick<RowOf<'webhooks'>, 'seq' | 'name' | 'url' | 'key_origin' | 'expires_at'> & { readonly position: number };

/** A push notification configuration. */
export type PushRow = Pick<StoredWebhook, 'id' | 'name' | 'url' | 'secret' | 'authentication' | 'key_origin'>;

async function scrub(database: ReadDependencies['database'], limit: number): Promise<number> {
  const gone = await rowsOfAll(database.reads, 'webhooks')
    .select(['webhooks.tenant', 'webhooks.seq'])
    .where('webhooks.removed_at', 'is not', null)
    // A literal, so that the partial index matches.
    .where('webhooks.url', '<>', sql.lit(''))
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('deliveries')
            .select('deliveries.seq')
            .whereRef('deliveries.tenant', '=', 'webhooks.tenant')
            .whereRef('deliveries.webhook', '=', 'webhooks.seq')
            .where('due_at', 'is not', null),
        ),
      ),
    )
    .limit(limit)
    .execute();
  if (gone.length === 0) return 0;
  await database.transaction(async (tx) => {
    for (const { tenant, seq } of gone)
      await tx
        .updateTable('webhooks')
        .set({ url: '', secret: '', old_secret: null, old_secret_until: null, authentication: null, origin: null })
        .where('tenant', '=', tenant)
        .where('seq', '=', seq)
        .execute();
  });
  return gone.length;
}

function reads({ database }: ReadDependencies) {
  const { reads: db } = database;
  const walk = new Walk<FollowingRow>();
  const notifying = database.query<{ tenant: number }, { seq: number }>((db, { tenant }) =>
    db
      .selectFrom('webhooks')
      .select('seq')
      .where('tenant', '=', tenant)
      .where('for_packet', 'is', null)
      .where('kind', '<>', sql.lit('webhook' as const))
      .where('removed_at', 'is', null)
      .where('active', '=', sql.lit(1))
      .where('events', 'like', sql.lit('%"asked"%'))
      .limit(sql.lit(1)),
  );
  /** The webhooks, or everything else that is for no single packet. */
  async function listed(tenant: number, isWebhook: '=' | '<>'): Promise<ListedRow[]> {
    const rows = await db
      .selectFrom('webhooks')
      .select(listedColumns)
      .where('tenant', '=', tenant)
      .where('for_packet', 'is', null)
      .where('kind', isWebhook, 'webhook')
      .where('removed_at', 'is', null)
      .orderBy('seq')
      .execute();
    return rows.map(({ events, active, ...rest }) => ({ ...rest, events: readJson(events), active: active === 1 }));
  }
  const ofTenant = (scope: ReadScope) => ({
    /** The webhooks that are not removed, oldest first. */
    list: async (): Promise<Webhook[]> => (await listed(scope.tenant, '=')).map(shownWebhook),
    /** The channels that are not removed, oldest first. */
    channels: async (): Promise<ListedRow[]> => listed(scope.tenant, '<>'),
    /** The push notification configurations of a packet that are not removed, oldest first. */
    ofPacket: (packetId: string): Awaitable<PushRow[]> =>
      scope.ofPacket(
        packetId,
        (tenant) =>
          db
            .selectFrom('webhooks')
            .select(['id', 'name', 'url', 'secret', 'authentication', 'key_origin'])
            .where('tenant', '=', tenant)
            .where('for_packet', '=', packetId)
            .where('removed_at', 'is', null)
            .orderBy('seq')
            .execute(),
        [],
      ),
    /** The subscriptions to events of the tenant. */
    subscriptions: (): Promise<SubscriptionRow[]> =>
      db
        .selectFrom('webhooks')
        .select(['seq', 'name', 'url', 'key_origin', 'expires_at', 'position'])
        .where('tenant', '=', scope.tenant)
        .where('for_packet', '=', packetOfSubscriptions)
        .where('removed_at', 'is', null)
        .$castTo<SubscriptionRow>()
        .execute(),
    /** Whether a channel of the tenant sends new questions, of any packet. */
    notifiesPerson: (): Awaitable<boolean> => andThen(notifying.first({ tenant: scope.viewer.tenant_number }), (row) => row !== undefined),
    /** The `seq` of a webhook or channel, removed or not; undefined when it is unknown. */
    number: async (id: string, destination: DestinationKind) => numberOf(db, scope.tenant, id, destination),
  });
  const ofAll = {
    /** Erases the secrets and addresses of what was removed and has no pending delivery; returns how many, up to `limit`. */
    scrub: (limit: number) => scrub(database, limit),

    /** Works on up to `limit` subscriptions of all tenants that are behind their trail or over; returns whether there may be more. */
    async following(now: Date, limit: number, work: (found: readonly FollowingRow[]) => Promise<unknown>): Promise<boolean> {
      const { last } = walk;
      const rows = await db
        .selectFrom('webhooks')
        .innerJoin('heads', 'heads.tenant', 'webhooks.tenant')
        .select(['webhooks.tenant', 'webhooks.seq', 'webhooks.id', 'webhooks.expires_at', 'webhooks.subscription', 'webhooks.position'])
        .select('heads.position as last')
        .where('webhooks.subscription', 'is not', null)
        .where('webhooks.removed_at', 'is', null)
        .where((eb) => eb.or([eb('webhooks.position', '<', eb.ref('heads.position')), eb('webhooks.expires_at', '<=', now.toISOString())]))
        // All have an end, by which the index of subscriptions is read.
        .where('webhooks.expires_at', '>', sql.lit(''))
        .where(behind(last && { 'webhooks.expires_at': last.expires_at!, 'webhooks.seq': last.seq }))
        .orderBy('webhooks.expires_at')
        .orderBy('webhooks.seq')
        .limit(limit)
        .$castTo<FollowingRow>()
        .execute();
      const more = walk.found(rows, rows.length === limit);
      await work(rows);
      return more;
    },

    /** Whether any tenant has a channel whose links begin with the origin of a request. */
    async hasOrigins(): Promise<boolean> {
      const found = await rowsOfAll(database.reads, 'webhooks')
        .select('webhooks.id')
        .where('webhooks.for_packet', 'is', null)
        .where('webhooks.removed_at', 'is', null)
        .where('webhooks.origin', 'is not', null)
        .limit(1)
        .executeTakeFirst();
      return found !== undefined;
    },
  };
  return { ofTenant, ofAll };
}

/** The `seq` of a webhook or channel, removed or not; undefined when it is unknown. */
export async function numberOf(db: Kysely<Tables>, tenant: number, id: string, destination: DestinationKind): Promise<number | undefined> {
  const found = await db
    .selectFrom('webhooks')
    .select(['seq', 'kind'])
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .executeTakeFirst();
  return found !== undefined && destinationOf(found) === destination ? found.seq : undefined;
}

/** Webhooks and channels. */
export const webhooks = { writes, reads };
