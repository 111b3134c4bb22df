import { sql } from 'kysely';

import { type Awaitable, andThen, eachInTurn } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import { countOf } from '../../kit/sql/count.ts';
import type { Row, Values } from '../../kit/sql/dialect.ts';
import { canonicalJson } from '../rules/canonical-json.ts';
import { type ChainedEntry, detailsDigest, entryDigest, noDigest } from '../rules/chain.ts';
import type { AnyPacket, EventType, PacketEvent } from '../rules/packet.ts';
import { type AuditFilter, matches } from './audit-filter.ts';
import { type CounterBuffer, counters } from './counters.ts';
import { type DeliveryBuffer, deliveries } from './deliveries.ts';
import type { Group, Writes } from './engine/group.ts';
import type { Session } from './engine/session.ts';
import { storable } from './engine/storable.ts';
import type { CommittedEvents, StreamEvent } from './event-rows.ts';
import type { InLane } from './in-lane.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import { type PacketBuffer, packets } from './packets.ts';
import type { Page } from './page-size.ts';
import { forgetPayloadsOf, removedCounter, tenantsWithOld } from './payloads.ts';
import type { Provenance } from './provenance.ts';
import type { RowOf } from './tables.ts';
import { entryReads } from './trail-entries.ts';
import { behind, Walk } from './walk.ts';

/** An entry of the audit log that is not about a packet. */
export interface AuditRecord {
  readonly event_type: string;
  /** The noun, such as `api_key`. */
  readonly resource: string;
  readonly actor: string;
  readonly details: Record<string, unknown>;
}

/** An event without its place in the chain of digests. */
type Draft = Omit<RowOf<'events'>, 'position' | 'digest'>;

/** The last entry of a tenant's trail. */
type Head = Omit<RowOf<'heads'>, 'tenant'>;

/** The counter that holds the position of the last head that was written to the log and to webhooks. */
export const anchoredCounter = 'anchored';

/** A tenant's trail, as units append to it. */
export class TrailBuffer {
  readonly tenant: number;
  appended: Draft[] = [];
  readonly #group: Group<unknown>;
  readonly #packets: PacketBuffer;
  readonly #counters: CounterBuffer;
  readonly #deliveries: DeliveryBuffer;

  constructor(tenant: number, group: Group<unknown>) {
    this.tenant = tenant;
    this.#group = group;
    this.#packets = group.of(packets.writes, tenant);
    this.#counters = group.of(counters.writes, tenant);
    this.#deliveries = group.of(deliveries.writes, tenant);
  }

  /** Appends the events of a packet that has already been saved, inserted or removed. */
  append(packet: AnyPacket, events: readonly PacketEvent[], at: Provenance): void {
    for (const { event_type, type, actor, details, notifies, tells } of events) {
      const entry = this.#entry({ event_type, resource: 'packet', actor, details }, at);
      if (event_type === 'erased') this.#group.ofErasures.add(entry.id);
      this.#push({ ...entry, packet_id: packet.id, ...this.#streamColumns(packet, type, entry.timestamp) });
      if (type !== null && type !== 'packet.deleted') this.#notify(packet, type, { ...entry, notifies, tells });
    }
  }

  /** Appends an entry that is not about a packet. */
  audit(record: AuditRecord, at: Provenance): void {
    this.#push({ ...this.#entry(record, at), packet_id: null, ...noStreamEvent });
  }

  /** Adds deliveries to webhooks, with the whole packet, and to channels. */
  #notify(
    { id: packet_id, hitl }: AnyPacket,
    type: EventType,
    entry: { id: string; timestamp: string } & Pick<PacketEvent, 'notifies' | 'tells'>,
  ): void {
    const { id, timestamp, notifies, tells = hitl?.step?.from ?? [] } = entry;
    const people = hitl?.responder === undefined ? tells : [hitl.responder, ...tells];
    const body = () => envelope(type, packet_id, this.#packets.text(packet_id), timestamp);
    this.#deliveries.notify({ id, type, packet_id, timestamp, body, notifies, people, followers: this.#packets.followers(packet_id) });
  }

  #push(draft: Draft): void {
    this.#group.journal.push(this.appended, draft);
    this.#counters.add('events', 1);
  }

  #entry({ event_type, resource, actor, details }: AuditRecord, { now, keyId, person, actor: by = actor }: Provenance) {
    return {
      id: this.#group.newId(now),
      tenant: this.tenant,
      event_type,
      actor: storable(by),
      key_id: keyId,
      resource,
      ...this.#chained(canonicalJson(person === undefined ? details : { ...details, person, verified: true })),
      timestamp: now.toISOString(),
      person: person === undefined ? null : canonicalJson(person),
    };
  }

  /** The columns of the details, which are stored as they are digested. */
  #chained(details: string) {
    const salt = this.#group.newSalt();
    return { details, salt, details_digest: detailsDigest(salt, details) };
  }

  /** The stream event's columns for an event of this type. */
  #streamColumns(packet: AnyPacket, type: EventType | null, timestamp: string) {
    if (type === null) return noStreamEvent;
    const { id, status, metadata, claimed_by } = packet;
    const isRemoved = type === 'packet.deleted';
    const data = isRemoved ? 'null' : this.#packets.summary(id);
    return {
      type,
      status: isRemoved ? null : status,
      source_agent: storable(metadata.source_agent.id),
      target_agent: storable(metadata.target_agent.id),
      claimant: claimed_by === null ? null : storable(claimed_by.agent_id),
      payload: envelope(type, id, data, timestamp),
    };
  }
}

/** The envelope of an event, with its data as JSON text. */
function envelope(type: EventType, packetId: string, data: string, timestamp: string): string {
  return `{"type":"${type}","packet_id":"${packetId}","data":${data},"timestamp":"${timestamp}"}`;
}

/** The stream event's columns for an event that streams don't send. */
const noStreamEvent = { type: null, status: null, source_agent: null, target_agent: null, claimant: null, payload: null };

/** What an entry has no more once its packet is erased. */
const withoutDetails = { details: null, salt: null, ...noStreamEvent };

const writes: Writes<unknown, TrailBuffer> = {
  needs: {},
  stage: (tenant, group) => new TrailBuffer(tenant, group),

  /** The entries stay in the chain without their details. */
  erase(session, group, erased) {
    for (const { tenant, packet_id } of erased) {
      const own = group.of(writes, tenant);
      own.appended = own.appended.map((draft) =>
        draft.packet_id === packet_id && !group.ofErasures.has(draft.id) ? { ...draft, ...withoutDetails } : draft,
      );
    }
    session.update(
      'events',
      ['tenant', 'packet_id'],
      erased.map((key) => ({ ...key, ...withoutDetails })),
    );
  },

  flush(session, group) {
    const appended = group.each(writes, ({ appended }, tenant) => (appended.length === 0 ? [] : [{ tenant, appended }]));
    return andThen(
      lockHeads(
        session,
        appended.map(({ tenant }) => ({ tenant })),
      ),
      (heads) => {
        const rows: Row[] = [];
        const moved: Row[] = [];
        for (const { tenant, appended: drafts } of appended) {
          let { position, digest } = heads.get(tenant)!;
          for (const draft of drafts) {
            const place = { position: position + 1, previous: digest };
            digest = entryDigest(entryOf(draft), place);
            position = place.position;
            rows.push({ ...draft, position, digest });
          }
          moved.push({ tenant, position, digest, at: drafts.at(-1)!.timestamp });
          group.lastPositions.set(tenant, position);
        }
        session.insert('events', rows);
        session.update('heads', ['tenant'], moved);
      },
    );
  },
};

/** A stored entry in the form that its digest covers. */
const entryOf = ({ id, event_type, resource, packet_id, actor, key_id, person, timestamp, details_digest }: Draft): ChainedEntry => ({
  event_id: id,
  type: event_type,
  resource,
  packet_id,
  actor,
  key_id,
  person: person === null ? null : readJson<object>(person),
  timestamp,
  details_digest,
});

/** The heads of these tenants, locked, so that positions and digests of a tenant are in commit order on all instances. */
function lockHeads(session: Session, tenants: readonly { tenant: number }[]): Awaitable<Map<number, Omit<Head, 'at'>>> {
  const find = (keys: readonly { tenant: number }[]) => session.find('heads', ['tenant', 'position', 'digest'], keys);
  const headsOf = (rows: readonly Values[]) =>
    new Map((rows as [number, number, string][]).map(([tenant, position, digest]) => [tenant, { position, digest }]));
  return andThen(find(tenants), (rows) => {
    const heads = headsOf(rows);
    const missing = tenants.filter(({ tenant }) => !heads.has(tenant));
    if (missing.length === 0) return heads;
    // A missing row can't be locked, so it is inserted first. Another instance may have inserted it meanwhile.
    session.insertMissing(
      'heads',
      missing.map(({ tenant }) => ({ tenant, position: 0, digest: noDigest, at: '' })),
    );
    return andThen(find(missing), (added) => new Map([...heads, ...headsOf(added)]));
  });
}

/** The events that the group appended, with their positions. Call it after the commit. */
export function committedEvents(group: Group<unknown>): CommittedEvents[] {
  return group.each(writes, ({ appended }, tenant) => {
    if (appended.length === 0) return [];
    const last = group.lastPositions.get(tenant)!;
    const first = last - appended.length + 1;
    const streamed = appended.flatMap((draft, index) => (draft.type === null ? [] : [streamEvent(draft, first + index)]));
    return [{ tenant, first, last, events: streamed }];
  });
}

function streamEvent(draft: Draft, position: number): StreamEvent {
  const { id, type, packet_id, status, source_agent, target_agent, claimant, payload, timestamp } = draft;
  return { id, position, type, packet_id, status, source_agent, target_agent, claimant, payload, timestamp } as StreamEvent;
}

/** A stored entry of the trail; `details` is JSON text. */
export type EventRow = Pick<RowOf<'events'>, (typeof columns)[number]>;

/** An entry with its place in the chain of digests. */
export type ChainRow = Pick<RowOf<'events'>, (typeof chainColumns)[number]>;

/** An event of the trail with its stream event: null where it has none, or where the payload has been removed. */
type TrailRow = Pick<RowOf<'events'>, (typeof streamColumns)[number]>;

const columns = ['id', 'packet_id', 'event_type', 'actor', 'key_id', 'resource', 'details', 'timestamp'] as const;
/** The columns of what digests cover, and the digests. */
export const chainColumns = [...columns, 'position', 'person', 'salt', 'details_digest', 'digest'] as const;
const streamedPacket = ['type', 'packet_id', 'status', 'source_agent', 'target_agent', 'claimant'] as const;
const streamColumns = ['id', 'position', ...streamedPacket, 'payload', 'timestamp'] as const;

/** The most events in a packet's history; older ones are left out. */
const maxHistory = 10_000;

/** The most bytes of details in a packet's history. */
const maxHistoryBytes = 16 * 1024 * 1024;

/** The last entry of a tenant's trail, with the tenant. */
export interface MovedHead extends Head {
  readonly tenant: number;
  readonly tenant_id: string;
}

/** The place of an entry in the audit log, whose order is that of times. */
export interface AuditPlace {
  readonly timestamp: string;
  readonly position: number;
}

/** Entries of the audit log that a filter selects are counted up to this number. */
const maxCounted = 10_000;

/** The number of entries of the audit log, and whether there may be more. */
interface AuditTotal {
  readonly total: number;
  readonly total_is: 'exact' | 'at_least';
}

/** Reads the trail: the history of a packet and the tenant's audit log are views of the same rows. */
function reads({ database }: ReadDependencies) {
  const walk = new Walk<MovedHead>();
  const ofPacket = database.query<{ tenant: number; packet_id: string; limit: number }, EventRow & { length: number }>(
    (db, { tenant, packet_id, limit }) =>
      db
        .selectFrom((inner) =>
          inner
            .selectFrom('events')
            .select([...columns, 'position'])
            .select(sql<number>`sum(octet_length(details)) over (order by position desc)`.as('length'))
            .where('tenant', '=', tenant)
            .where('packet_id', '=', packet_id)
            .orderBy('position', 'desc')
            .limit(limit)
            .as('latest'),
        )
        .select([...columns, 'length'])
        .where('length', '<=', sql.lit(maxHistoryBytes))
        .orderBy('position', 'desc'),
  );
  const count = database.query<{ tenant: number }, { value: number }>((db, { tenant }) =>
    db.selectFrom('counters').select('value').where('tenant', '=', tenant).where('name', '=', 'events'),
  );

  const sizesAfter = database.query<{ tenant: number; position: number; limit: number }, { position: number; bytes: number }>(
    (db, { tenant, position, limit }) =>
      db
        .selectFrom('events')
        // Neither database reads the payload for its length.
        .select(['position', sql<number>`coalesce(octet_length(payload), 0)`.as('bytes')])
        .where('tenant', '=', tenant)
        .where('position', '>', position)
        .orderBy('position')
        .limit(limit),
  );
  const between = database.query<{ tenant: number; after: number; upTo: number }, TrailRow>((db, { tenant, after, upTo }) =>
    db
      .selectFrom('events')
      .select(streamColumns)
      .where('tenant', '=', tenant)
      .where('position', '>', after)
      .where('position', '<=', upTo)
      .orderBy('position'),
  );
  const named = database.name === 'sqlite' ? 'select value from json_each' : 'select value::bigint from json_array_elements_text';
  const positionsOf = database.query<{ tenants: string }, { tenant: number; position: number }>((db, { tenants }) =>
    db
      .selectFrom('heads')
      .select(['tenant', 'position'])
      .where(sql<boolean>`tenant in (${sql.raw(named)}(${tenants}))`),
  );
  const head = database.query<{ tenant: number }, Head>((db, { tenant }) =>
    db.selectFrom('heads').select(['position', 'digest', 'at']).where('tenant', '=', tenant),
  );
  const removed = database.query<{ tenant: number }, { value: number }>((db, { tenant }) =>
    db.selectFrom('counters').select('value').where('tenant', '=', tenant).where('name', '=', sql.lit(removedCounter)),
  );

  const chained = database.query<{ tenant: number; from: number; to: number; limit: number }, ChainRow>((db, { tenant, from, to, limit }) =>
    db
      .selectFrom('events')
      .select(chainColumns)
      .where('tenant', '=', tenant)
      .where('position', '>=', from)
      .where('position', '<=', to)
      .orderBy('position')
      .limit(limit),
  );

  const matching = (tenant: number, filter: AuditFilter) => matches(database, tenant, filter);
  async function total(tenant: number, filter: AuditFilter, inLane: InLane): Promise<AuditTotal> {
    if (Object.keys(filter).length === 0) return { total: (await count.first({ tenant }))?.value ?? 0, total_is: 'exact' };
    const some = await inLane((db) => {
      const entries = db.selectFrom('events').select(sql`1`.as('one')).where(matching(tenant, filter));
      return countOf(db.selectFrom(entries.limit(maxCounted + 1).as('some')));
    });
    return { total: Math.min(some, maxCounted), total_is: some > maxCounted ? 'at_least' : 'exact' };
  }

  const entries = entryReads({ database });
  const ofTenant = (scope: ReadScope) => ({
    ...entries(scope),
    /** The positions after a position of the trail, in order, with the bytes of their payloads. */
    sizesAfter: (position: number, limit: number) => sizesAfter.all({ tenant: scope.tenant, position, limit }),
    /** The events after a position, up to and including another, in order, with or without a stream event. */
    between: (after: number, upTo: number) => between.all({ tenant: scope.tenant, after, upTo }),
    /** The last position, and the highest position whose stream event was removed by retention; 0 where there is none. */
    async range(): Promise<{ last: number; removed: number }> {
      const [last, gone] = await Promise.all([head.first({ tenant: scope.tenant }), removed.first({ tenant: scope.tenant })]);
      return { last: last?.position ?? 0, removed: gone?.value ?? 0 };
    },
    /** The last entry of the trail; undefined before the first. */
    head: async (): Promise<Head | undefined> => head.first({ tenant: scope.tenant }),
    /** Entries of a range of positions, both inclusive, in order, with what their digests cover. */
    chain: async (from: number, to: number, limit: number) => chained.all({ tenant: scope.tenant, from, to, limit }),
    /** The history of a packet, oldest first. */
    history: async (packet_id: string): Promise<EventRow[]> =>
      (await scope.ofPacket(packet_id, (tenant) => ofPacket.all({ tenant, packet_id, limit: maxHistory }), [])).toReversed(),
    /** Which of these packets hold data of a person. */
    async about(subject_digest: string, packetIds: readonly string[]): Promise<ReadonlySet<string>> {
      if (packetIds.length === 0) return new Set();
      const found = database.reads.selectFrom('packet_subjects').select('packet_id').where('tenant', '=', scope.tenant);
      const rows = await found
        .where('subject_digest', '=', subject_digest)
        .where('packet_id', 'in', [...packetIds])
        .execute();
      return new Set(rows.map(({ packet_id }) => packet_id));
    },
    /** A page of the audit log, newest first, after a place if there is one, whether there are more entries, and their number. */
    async audit(filter: AuditFilter, { limit, offset, after }: Page & { readonly after?: AuditPlace | undefined }) {
      const { tenant } = scope;
      const isAfter = after && sql<boolean>`(timestamp, position) < (${after.timestamp}, cast(${after.position} as bigint))`;
      const page = scope.inLane((db) =>
        db
          .selectFrom('events')
          .select([...columns, 'position'])
          .where(matching(tenant, filter))
          .where(isAfter ?? sql<boolean>`1 = 1`)
          .orderBy('timestamp', 'desc')
          .orderBy('position', 'desc')
          // One more than the page has, for a total that never ends before a further page.
          .limit(limit + 1)
          .offset(offset)
          .execute(),
      );
      const [rows, counted] = await Promise.all([page, total(tenant, filter, scope.inLane)]);
      const least = rows.length === 0 || counted.total_is === 'exact' ? 0 : offset + rows.length;
      return { rows: rows.slice(0, limit), hasMore: rows.length > limit, ...counted, total: Math.max(counted.total, least) };
    },
  });
  const ofAll = {
    /** The last position of each of these tenants; tenants without events are left out. */
    positions: (tenants: readonly number[]) => positionsOf.all({ tenants: JSON.stringify(tenants) }),
    /** Works on up to `limit` heads that have moved since they were last anchored; returns whether there may be more. */
    async moved(limit: number, work: (found: readonly MovedHead[]) => Promise<unknown>): Promise<boolean> {
      const heads = await database.longReads
        .selectFrom('heads')
        .innerJoin('tenants', 'tenants.number', 'heads.tenant')
        .leftJoin('counters', (join) =>
          join.onRef('counters.tenant', '=', 'heads.tenant').on('counters.name', '=', sql.lit(anchoredCounter)),
        )
        .select(['heads.tenant', 'tenants.id as tenant_id', 'heads.position', 'heads.digest', 'heads.at'])
        .where(sql<boolean>`heads.position > coalesce(counters.value, 0)`)
        .where(behind(walk.last && { 'heads.tenant': walk.last.tenant }))
        .orderBy('heads.tenant')
        .limit(limit)
        .execute();
      const more = walk.found(heads, heads.length === limit);
      await work(heads);
      return more;
    },
    /**
     * Removes stream events older than `before`, tenant by tenant in the order of positions; the audit log keeps its
     * entries. Removes up to `limit` of each tenant; returns how many it removed.
     */
    async forgetPayloads(before: Date, limit: number): Promise<number> {
      const removed = await eachInTurn(await tenantsWithOld(database, before), (tenant) =>
        forgetPayloadsOf(database, tenant, before, limit),
      );
      return removed.reduce((sum, count) => sum + count, 0);
    },
  };
  return { ofTenant, ofAll };
}

/** The trail: the history of packets, the audit log and the stream events are the same rows. */
export const trail = { writes, reads };
