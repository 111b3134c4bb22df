import { nextTurn } from '../../kit/awaitable.ts';
import { conflict } from '../../kit/errors.ts';
import type { NewId } from '../../kit/id.ts';
import { readJson } from '../../kit/json.ts';
import type { Database, Session, Values } from '../../kit/sql/dialect.ts';
import { createGroups, type Outcome } from '../../kit/sql/groups.ts';
import { priorities, type Status, statuses } from '../model/common.ts';
import type { Packet, PacketSummary } from '../model/packet.ts';
import type { AnyPacket, PacketEvent } from '../rules/packet.ts';
import { packetText, partsOf, stateOf, summaryText } from '../rules/text.ts';
import type { Tables } from './tables.ts';
import { eventRow, flush, type Held, noWrites, type Writes } from './writes.ts';

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
  /** Whether the packets are wanted with their content. Else they come in short, and their content is not parsed. */
  readonly whole?: boolean;
  /** About how many characters it brings, where they may be many. */
  readonly size?: number;
  /** The UTC day whose count of packets is capped, and so locked. */
  readonly cappedDay?: string;
  readonly idempotencyKey?: string | undefined;
  work(desk: Desk): T;
}

/** A tenant's packets as one unit of work sees them, and what it wants written. */
export interface Desk {
  /** The packet, or undefined: unknown, or another tenant's. Only ids that the unit names. */
  packet(id: string): AnyPacket | undefined;
  /** The JSON text of a packet that is there, as it stands. */
  text(id: string): string;
  insert(packet: Packet): void;
  /** Saves a packet that was found; one in short keeps its content. */
  save(packet: AnyPacket, options: { searchable: boolean }): void;
  /** Removes the packet with its content and its trail. */
  remove(packet: AnyPacket): void;
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
  /** The tenant's number. */
  readonly tenant: number;
  readonly unit: Unit<unknown>;
}

/** Carries out units of work in groups. */
export function createUnits(database: Database<Tables>, newId: NewId) {
  const groups = createGroups<Tables, TenantUnit>(database, async (session, units) => {
    const found = await find(session, units);
    const outcomes: Outcome<unknown>[] = [];
    let length = 0;
    for (const unit of units) {
      if (length > maxLength) {
        await nextTurn();
        length = 0;
      }
      length += lengthOf(unit, found.get(unit.tenant)!);
      outcomes.push(carryOut(unit, found.get(unit.tenant)!, newId));
    }
    await flush(session, new Map([...found].map(([tenant, { writes }]) => [tenant, writes])));
    return outcomes;
  });
  return {
    async commit<T>(tenant: number, unit: Unit<T>): Promise<T> {
      return (await groups.submit({ tenant, unit: unit as Unit<unknown> })) as T;
    },
    waiting: groups.waiting,
  };
}

const none: readonly string[] = [];

/** How many characters are read and written before others get their turn. */
const maxLength = 2_000_000;

/** About how many characters a unit reads and writes: what it brings, and the content of the packets that it parses. */
function lengthOf({ unit: { size = 0, whole, packets = none } }: TenantUnit, found: Found): number {
  if (!whole) return size;
  return packets.reduce((sum, id) => sum + (found.packets.get(id)?.parts.content.length ?? 0), size);
}

/** What a group found of a tenant, as it stands after each of its units; and what the tenant is to have written. */
interface Found {
  packets: Map<string, Held>;
  counts: Map<string, number>;
  remembered: Map<string, Remembered>;
  writes: Writes;
}

const statusCounters = Object.fromEntries(statuses.map((status) => [status, `packets:${status}`])) as Record<Status, string>;
const priorityCounters = Object.fromEntries(priorities.map((priority) => [priority, `priority:${priority}`])) as Record<
  (typeof priorities)[number],
  string
>;

/** The counters that a packet is in: lists take their totals from them. */
function countersOf({ status, metadata, hitl }: AnyPacket): string[] {
  const names = [statusCounters[status], priorityCounters[metadata.priority]];
  if (hitl?.required === true) names.push('hitl:required');
  return names;
}

const dayCounter = (day: string) => `created:${day}`;

/** Each tenant's names, once each, as pairs. */
function wanted(units: readonly TenantUnit[], namesOf: (unit: Unit<unknown>) => readonly string[]): [number, string][] {
  const names = new Map<number, Set<string>>();
  for (const { tenant, unit } of units) {
    for (const name of namesOf(unit)) {
      const own = names.get(tenant);
      if (own === undefined) names.set(tenant, new Set([name]));
      else own.add(name);
    }
  }
  return [...names].flatMap(([tenant, own]) => [...own].map((name): [number, string] => [tenant, name]));
}

async function find(session: Session, units: readonly TenantUnit[]): Promise<Map<number, Found>> {
  const ids = wanted(units, ({ packets = none }) => packets);
  const days = wanted(units, ({ cappedDay }) => (cappedDay === undefined ? none : [dayCounter(cappedDay)]));
  const keys = wanted(units, ({ idempotencyKey }) => (idempotencyKey === undefined ? none : [idempotencyKey]));
  const found = new Map<number, Found>();
  for (const { tenant } of units)
    if (!found.has(tenant)) found.set(tenant, { packets: new Map(), counts: new Map(), remembered: new Map(), writes: noWrites() });

  // Sent together: the contents are read once the packets are locked.
  const packetKeys = ids.map(([tenant, id]) => ({ tenant, id }));
  const [packets, contents] = await Promise.all([
    session.find('packets', ['tenant', 'id', 'seq', 'state', 'digest'], packetKeys),
    session.belonging('contents', ['packet', 'content'], 'packet', 'packets', packetKeys),
  ]);
  const contentOf = new Map(contents as [number, string][]);
  for (const row of packets) found.get(row[0] as number)!.packets.set(row[1] as string, heldOf(row, contentOf));

  const dayKeys = days.map(([tenant, name]) => ({ tenant, name }));
  // A row that is not there can't be locked; made first, it can.
  await session.insertMissing(
    'counters',
    dayKeys.map((key) => ({ ...key, value: 0 })),
  );
  for (const [tenant, name, value] of (await session.find('counters', ['tenant', 'name', 'value'], dayKeys)) as [number, string, number][])
    found.get(tenant)!.counts.set(name, value);

  const rows = await session.find(
    'idempotency',
    ['tenant', 'key', 'fingerprint', 'status', 'body', 'etag'],
    keys.map(([tenant, key]) => ({ tenant, key })),
  );
  for (const [tenant, key, fingerprint, status, body, etag] of rows as [number, string, string, number, string | null, string | null][])
    found.get(tenant)!.remembered.set(key, { fingerprint, status, body, etag });
  return found;
}

/** A stored packet, read in short. */
function heldOf([, , seq, state, digest]: Values, contents: ReadonlyMap<number, string>): Held {
  const content = contents.get(seq as number);
  if (content === undefined) throw new Error('A packet has no content.');
  const parts = { state: state as string, digest: digest as string, content };
  return { packet: readJson(summaryText(parts)) as PacketSummary, parts, seq: seq as number };
}

/** The packet with its content. */
function wholeOf({ packet, parts }: Held): Packet {
  return 'counts' in packet ? (readJson(packetText(parts)) as Packet) : packet;
}

/** A packet that a unit saves, in parts: one in short keeps the content it had. */
function changed(packet: AnyPacket, { parts, seq }: Held): Held {
  return { packet, parts: 'counts' in packet ? { ...parts, state: stateOf(packet) } : partsOf(packet), seq };
}

/** The desk of one unit: what was found, and what the unit itself has done to it. */
class UnitDesk implements Desk {
  readonly own = noWrites();
  readonly #tenant: number;
  readonly #unit: Unit<unknown>;
  readonly #found: Found;
  readonly #newId: NewId;

  constructor({ tenant, unit }: TenantUnit, found: Found, newId: NewId) {
    this.#tenant = tenant;
    this.#unit = unit;
    this.#found = found;
    this.#newId = newId;
  }

  #held(id: string): Held | undefined {
    return this.own.saved.get(id)?.after ?? this.own.inserted.get(id) ?? this.#found.packets.get(id);
  }

  #count(names: readonly string[], by: number): void {
    const { counts } = this.own;
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + by);
  }

  packet(id: string): AnyPacket | undefined {
    const held = this.#held(id);
    return held !== undefined && this.#unit.whole ? wholeOf(held) : held?.packet;
  }

  text(id: string): string {
    return packetText(this.#held(id)!.parts);
  }

  insert(packet: Packet): void {
    this.own.inserted.set(packet.id, { packet, parts: partsOf(packet), seq: 0 });
    this.#count(countersOf(packet), 1);
  }

  save(packet: AnyPacket, { searchable }: { searchable: boolean }): void {
    const before = requireStored(this.#held(packet.id)!);
    const first = this.own.saved.get(packet.id);
    this.own.saved.set(packet.id, {
      before: first?.before ?? before,
      after: changed(packet, before),
      searchable: searchable || (first?.searchable ?? false),
    });
    this.#count(countersOf(before.packet), -1);
    this.#count(countersOf(packet), 1);
  }

  remove(packet: AnyPacket): void {
    this.own.removed.push(requireStored(this.#held(packet.id)!));
    this.#count(countersOf(packet), -1);
  }

  append(packet_id: string, events: readonly PacketEvent[], now: Date): void {
    const timestamp = now.toISOString();
    for (const { event_type, actor, details } of events)
      this.own.events.push(
        eventRow(this.#newId(now), this.#tenant, { packet_id, event_type, actor, resource: 'packet', details, timestamp }),
      );
    this.#count(['events'], events.length);
  }

  usedToday(): number {
    if (this.#unit.cappedDay === undefined) return 0;
    const name = dayCounter(this.#unit.cappedDay);
    return (this.#found.counts.get(name) ?? 0) + (this.own.counts.get(name) ?? 0);
  }

  use(day: string, count: number): void {
    this.#count([dayCounter(day)], count);
  }

  remembered(): Remembered | undefined {
    return this.#unit.idempotencyKey === undefined ? undefined : this.#found.remembered.get(this.#unit.idempotencyKey);
  }

  remember({ fingerprint, status, body, etag }: Remembered, now: Date): void {
    const [tenant, key] = [this.#tenant, this.#unit.idempotencyKey!];
    this.own.remembered.set(key, { tenant, key, fingerprint, status, body, etag, created_at: now.toISOString() });
    for (const packet_id of this.own.inserted.keys()) this.own.answered.push({ tenant, packet_id, key });
  }
}

/** A packet that was found. One that the same unit inserts has no number yet by which its rows could be changed. */
function requireStored(held: Held): Held {
  if (held.seq === 0) throw new Error('A unit changes a packet that it inserts.');
  return held;
}

/** Runs one unit. What it wrote counts for the units behind it only when it returns: a unit that throws leaves nothing. */
function carryOut(unit: TenantUnit, found: Found, newId: NewId): Outcome<unknown> {
  const desk = new UnitDesk(unit, found, newId);
  try {
    const result = unit.unit.work(desk);
    keep(desk.own, found);
    return { result };
  } catch (error) {
    return { error };
  }
}

/** Adds what a unit wrote to what its group writes, and to what the units behind it find. */
function keep(own: Writes, { packets, counts, remembered, writes }: Found): void {
  for (const [id, held] of own.inserted) writes.inserted.set(id, held);
  for (const [id, { before, after, searchable }] of own.saved) {
    const earlier = writes.saved.get(id);
    writes.saved.set(id, { before: earlier?.before ?? before, after, searchable: searchable || (earlier?.searchable ?? false) });
    packets.set(id, after);
  }
  for (const held of own.removed) {
    const { id } = held.packet;
    // As it is stored: what units of this group did to it before is not written, and not told of either.
    writes.removed.push(writes.saved.get(id)?.before ?? held);
    writes.saved.delete(id);
    const kept = writes.events.filter(({ packet_id }) => packet_id !== id);
    writes.counts.set('events', (writes.counts.get('events') ?? 0) + kept.length - writes.events.length);
    writes.events = kept;
    packets.delete(id);
  }
  for (const row of own.events) writes.events.push(row);
  for (const row of own.answered) writes.answered.push(row);
  for (const [name, by] of own.counts) {
    writes.counts.set(name, (writes.counts.get(name) ?? 0) + by);
    counts.set(name, (counts.get(name) ?? 0) + by);
  }
  for (const [key, row] of own.remembered) {
    writes.remembered.set(key, row);
    remembered.set(key, row);
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
