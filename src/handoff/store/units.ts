import { conflict } from '../../kit/errors.ts';
import type { NewId } from '../../kit/id.ts';
import { readJson } from '../../kit/json.ts';
import type { Database, Row, Session } from '../../kit/sql/dialect.ts';
import { createGroups, type Outcome } from '../../kit/sql/groups.ts';
import type { Packet, PacketSummary } from '../model/packet.ts';
import type { Known, PacketEvent } from '../rules/packet.ts';
import { packetText, partsOf, stateOf, summaryText } from '../rules/text.ts';
import type { Tables } from './tables.ts';
import { at, eventRow, flush, type Held, noWrites, type Writes } from './writes.ts';

/** A request's idempotency key, and what tells the request from another. */
export interface Idempotency {
  readonly key: string;
  readonly fingerprint: string;
}

/** The answer that a request with an idempotency key got. */
export interface Remembered {
  /** Method, path and body of that request. */
  readonly fingerprint: string;
  readonly status: number;
  /** Null where the answer must not be repeated (a key in clear). */
  readonly body: string | null;
  readonly etag: string | null;
}

/**
 * A unit of work on packets: what it must find locked, and what it does with that. Units that wait together share a
 * transaction; `work` is pure but for its desk, writes nothing until it returns, and may be run again.
 */
export interface Unit<T> {
  /** Packets to lock. */
  readonly packets?: readonly string[];
  /** Whether the packets are wanted with their content. Without it they come in short, which is cheaper to read. */
  readonly whole?: boolean;
  /** The UTC day whose count of packets is capped, and so locked. */
  readonly cappedDay?: string;
  readonly idempotencyKey?: string | undefined;
  work(desk: Desk): T;
}

/** A tenant's packets as one unit of work sees them, and what it wants written. */
export interface Desk {
  /** The packet, or undefined: unknown, or another tenant's. Only ids that the unit names. */
  packet(id: string): Known | undefined;
  /** The JSON text of a packet that is there, as it stands. */
  text(id: string): string;
  insert(packet: Packet): void;
  /** Saves a packet that was found; one in short keeps its content. */
  save(packet: Known, options: { searchable: boolean }): void;
  /** Removes the packet with its content and its trail. */
  remove(packet: Known): void;
  append(packetId: string, events: readonly PacketEvent[], now: Date): void;
  /** How many packets were created on the capped day, this unit's own included. */
  usedToday(): number;
  /** Counts packets created on the day. */
  use(day: string, count: number): void;
  /** What was answered under the unit's idempotency key. */
  remembered(): Remembered | undefined;
  remember(answer: Remembered, now: Date): void;
}

interface TenantUnit {
  readonly tenantId: string;
  readonly unit: Unit<unknown>;
}

/** Carries out units of work in groups. */
export function createUnits(database: Database<Tables>, newId: NewId) {
  const groups = createGroups<Tables, TenantUnit>(database, async (session, units) => {
    const found = await find(session, units);
    const outcomes = units.map((unit) => carryOut(unit, found, newId));
    await flush(session, found.writes, found.seqs);
    return outcomes;
  });
  return {
    async commit<T>(tenantId: string, unit: Unit<T>): Promise<T> {
      return (await groups.submit({ tenantId, unit: unit as Unit<unknown> })) as T;
    },
    waiting: groups.waiting,
  };
}

/** What a group found, as it stands after each of its units; and what each tenant is to have written. */
interface Found {
  packets: Map<string, Held>;
  /** `seq` of the packets found, for the search index. */
  seqs: Map<string, number>;
  counts: Map<string, number>;
  remembered: Map<string, Remembered>;
  writes: Map<string, Writes>;
}

/** The counters that a packet is in: lists take their totals from them. */
const countersOf = ({ status, metadata, hitl }: Known): string[] => [
  `packets:${status}`,
  `priority:${metadata.priority}`,
  ...(hitl?.required === true ? ['hitl:required'] : []),
];
const dayCounter = (day: string) => `created:${day}`;

async function find(session: Session, units: readonly TenantUnit[]): Promise<Found> {
  const packetKeys = unique(units, ({ tenantId, unit }) => (unit.packets ?? []).map((id) => ({ tenant_id: tenantId, id })));
  const dayKeys = unique(units, ({ tenantId, unit }) =>
    unit.cappedDay === undefined ? [] : [{ tenant_id: tenantId, name: dayCounter(unit.cappedDay) }],
  );
  const rememberedKeys = unique(units, ({ tenantId, unit }) =>
    unit.idempotencyKey === undefined ? [] : [{ tenant_id: tenantId, key: unit.idempotencyKey }],
  );

  const contentKeys = packetKeys.map(({ tenant_id, id }) => ({ tenant_id: tenant_id!, packet_id: id! }));
  // Sent together: the contents are read once the packets are locked.
  const [packets, contents] = await Promise.all([
    session.find('packets', ['tenant_id', 'id', 'seq', 'state', 'digest'], packetKeys),
    session.read('contents', ['tenant_id', 'packet_id', 'content'], contentKeys),
  ]);
  const contentOf = new Map(contents.map((row) => [at(`${row.tenant_id}`, `${row.packet_id}`), row.content as string]));
  // A row that is not there can't be locked; made first, it can.
  await session.insertMissing(
    'counters',
    dayKeys.map((key) => ({ ...key, value: 0 })),
  );
  const counts = await session.find('counters', ['tenant_id', 'name', 'value'], dayKeys);
  const remembered = await session.find('idempotency', ['tenant_id', 'key', 'fingerprint', 'status', 'body', 'etag'], rememberedKeys);

  return {
    packets: new Map(packets.map((row) => [at(`${row.tenant_id}`, `${row.id}`), heldOf(row, contentOf)])),
    seqs: new Map(packets.map((row) => [at(`${row.tenant_id}`, `${row.id}`), row.seq as number])),
    counts: new Map(counts.map((row) => [at(`${row.tenant_id}`, `${row.name}`), row.value as number])),
    remembered: new Map(remembered.map((row) => [at(`${row.tenant_id}`, `${row.key}`), row as unknown as Remembered])),
    writes: new Map(),
  };
}

/** A stored packet, read in short. */
function heldOf({ tenant_id, id, state, digest }: Row, contents: ReadonlyMap<string, string>): Held {
  const content = contents.get(at(`${tenant_id}`, `${id}`));
  if (content === undefined) throw new Error('A packet has no content.');
  const parts = { state: state as string, digest: digest as string, content };
  return { packet: readJson(summaryText(parts)) as PacketSummary, parts };
}

/** The packet with its content. */
function wholeOf({ packet, parts }: Held): Packet {
  return 'counts' in packet ? (readJson(packetText(parts)) as Packet) : packet;
}

/** A packet that a unit saves, in parts: one in short keeps the content it had. */
function changedParts(packet: Known, before: Held): Held {
  return { packet, parts: 'counts' in packet ? { ...before.parts, state: stateOf(packet) } : partsOf(packet) };
}

function unique(units: readonly TenantUnit[], keysOf: (unit: TenantUnit) => Row[]): Row[] {
  const keys = new Map<string, Row>();
  for (const unit of units) for (const key of keysOf(unit)) keys.set(Object.values(key).join(' '), key);
  return [...keys.values()];
}

/** Runs one unit. What it wrote counts for the units behind it only when it returns: a unit that throws leaves nothing. */
function carryOut({ tenantId, unit }: TenantUnit, found: Found, newId: NewId): Outcome<unknown> {
  const own = noWrites();
  const key = (id: string) => at(tenantId, id);
  const count = (name: string, by: number) => void own.counts.set(name, (own.counts.get(name) ?? 0) + by);
  const append = (packetId: string | null, events: readonly PacketEvent[], now: Date) => {
    for (const { event_type, actor, details } of events) {
      own.events.push(
        eventRow(newId(now), tenantId, {
          packet_id: packetId,
          event_type,
          actor,
          resource: 'packet',
          details,
          timestamp: now.toISOString(),
        }),
      );
    }
    count('events', events.length);
  };

  const held = (id: string) => own.saved.get(id)?.after ?? own.inserted.get(id) ?? found.packets.get(key(id));

  const desk: Desk = {
    packet(id) {
      const one = held(id);
      return one === undefined || !unit.whole ? one?.packet : wholeOf(one);
    },
    text: (id) => packetText(held(id)!.parts),
    insert(packet) {
      own.inserted.set(packet.id, { packet, parts: partsOf(packet) });
      for (const name of countersOf(packet)) count(name, 1);
    },
    save(packet, { searchable }) {
      const before = held(packet.id)!;
      const first = own.saved.get(packet.id);
      own.saved.set(packet.id, {
        before: first?.before ?? before,
        after: changedParts(packet, before),
        searchable: searchable || (first?.searchable ?? false),
      });
      for (const name of countersOf(before.packet)) count(name, -1);
      for (const name of countersOf(packet)) count(name, 1);
    },
    remove(packet) {
      own.removed.push(held(packet.id)!);
      for (const name of countersOf(packet)) count(name, -1);
    },
    append,
    usedToday: () =>
      unit.cappedDay === undefined
        ? 0
        : (found.counts.get(key(dayCounter(unit.cappedDay))) ?? 0) + (own.counts.get(dayCounter(unit.cappedDay)) ?? 0),
    use: (day, by) => count(dayCounter(day), by),
    remembered: () => (unit.idempotencyKey === undefined ? undefined : found.remembered.get(key(unit.idempotencyKey))),
    remember({ fingerprint, status, body, etag }, now) {
      own.remembered.push({
        tenant_id: tenantId,
        key: unit.idempotencyKey!,
        fingerprint,
        status,
        body,
        etag,
        created_at: now.toISOString(),
      });
      own.answered.push(...[...own.inserted.keys()].map((id) => ({ tenant_id: tenantId, packet_id: id, key: unit.idempotencyKey! })));
    },
  };

  try {
    const result = unit.work(desk);
    keep(tenantId, own, found);
    return { result };
  } catch (error) {
    return { error };
  }
}

/** Adds what a unit wrote to what its group writes, and to what the units behind it find. */
function keep(tenantId: string, own: Writes, found: Found): void {
  const writes = found.writes.get(tenantId) ?? noWrites();
  found.writes.set(tenantId, writes);
  for (const [id, held] of own.inserted) writes.inserted.set(id, held);
  for (const [id, { before, after, searchable }] of own.saved) {
    const earlier = writes.saved.get(id);
    writes.saved.set(id, { before: earlier?.before ?? before, after, searchable: searchable || (earlier?.searchable ?? false) });
    found.packets.set(at(tenantId, id), after);
  }
  for (const held of own.removed) {
    const { id } = held.packet;
    // As it is stored: what units of this group did to it before is not written, and not told of either.
    writes.removed.push(writes.saved.get(id)?.before ?? held);
    writes.saved.delete(id);
    const kept = writes.events.filter(({ packet_id }) => packet_id !== id);
    writes.counts.set('events', (writes.counts.get('events') ?? 0) + kept.length - writes.events.length);
    writes.events = kept;
    found.packets.delete(at(tenantId, id));
  }
  writes.events.push(...own.events);
  writes.answered.push(...own.answered);
  for (const [name, by] of own.counts) {
    writes.counts.set(name, (writes.counts.get(name) ?? 0) + by);
    const key = at(tenantId, name);
    found.counts.set(key, (found.counts.get(key) ?? 0) + by);
  }
  for (const row of own.remembered) {
    writes.remembered.push(row);
    found.remembered.set(at(tenantId, row.key as string), row as unknown as Remembered);
  }
}

/**
 * The answer to a request whose idempotency key was used before: the first answer, or 409 when it was another request
 * or its answer may not be shown twice.
 */
export function repeated(remembered: Remembered | undefined, fingerprint: string): (Remembered & { body: string }) | undefined {
  if (remembered === undefined) return undefined;
  if (remembered.fingerprint !== fingerprint) throw conflict('This Idempotency-Key was used for another request; use a new key.');
  const { body } = remembered;
  if (body === null) throw conflict('This request was carried out already, and its answer is not kept.');
  return { ...remembered, body };
}
