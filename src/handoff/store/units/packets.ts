import { readJson } from '../../../kit/json.ts';
import type { Row, Session, Values } from '../../../kit/sql/dialect.ts';
import { priorities, type Status, statuses } from '../../model/common.ts';
import type { Packet, PacketSummary } from '../../model/packet.ts';
import type { StoredLease } from '../../rules/lease.ts';
import { type AnyPacket, dueAt } from '../../rules/packet.ts';
import { type PacketParts, packetText, partsOf, stateOf, summaryText } from '../../rules/text.ts';
import { column } from './column.ts';
import type { CounterTransaction } from './counters.ts';
import type { Journal } from './journal.ts';
import type { Group, Kind, RemovedPacket } from './transaction.ts';

/** A packet as a group holds it: in short or whole, and in the parts that are written. */
export interface StoredPacket {
  readonly packet: AnyPacket;
  readonly parts: PacketParts;
  /** Its row's number; 0 while it has none. */
  readonly seq: number;
  /** What is stored of its leases. */
  readonly lease: StoredLease | null;
  /** How many packets there are from the root of its chain to it, itself included. */
  readonly depth: number;
}

/** A stored packet before and after a group; `searchable`: its search entry must follow. */
interface Change {
  readonly before: StoredPacket;
  readonly after: StoredPacket;
  readonly searchable: boolean;
}

const statusCounters = Object.fromEntries(statuses.map((status) => [status, `packets:${status}`])) as Record<Status, string>;
const priorityCounters = Object.fromEntries(priorities.map((priority) => [priority, `priority:${priority}`])) as Record<
  (typeof priorities)[number],
  string
>;

/** A tenant's packets: those that units named, as they stand, and what units do to them. */
export class PacketTransaction {
  readonly tenant: number;
  readonly found = new Map<string, StoredPacket>();
  readonly inserted = new Map<string, StoredPacket>();
  readonly changed = new Map<string, Change>();
  readonly removed: StoredPacket[] = [];
  readonly #journal: Journal;
  readonly #counters: CounterTransaction;

  constructor(tenant: number, journal: Journal, counters: CounterTransaction) {
    this.tenant = tenant;
    this.#journal = journal;
    this.#counters = counters;
  }

  /** The packet, or undefined: unknown, or another tenant's. Only ids that the unit names. In short, unless it was changed whole. */
  get(id: string): AnyPacket | undefined {
    return this.found.get(id)?.packet;
  }

  /** The same with its content. */
  whole(id: string): Packet | undefined {
    const stored = this.found.get(id);
    if (stored === undefined) return undefined;
    return 'counts' in stored.packet ? (readJson(packetText(stored.parts)) as Packet) : stored.packet;
  }

  /** The JSON text of a packet that is there, as it stands. */
  text(id: string): string {
    return packetText(this.#stored(id).parts);
  }

  /** The JSON text of a packet that is there as lists show it, as it stands. */
  summary(id: string): string {
    return summaryText(this.#stored(id).parts);
  }

  /** What is stored of a packet's leases; null where it was never leased. */
  lease(id: string): StoredLease | null {
    return this.#stored(id).lease;
  }

  /** How many packets there are from the root of a packet's chain to it, itself included. */
  depth(id: string): number {
    return this.#stored(id).depth;
  }

  insert(packet: Packet, depth = 1): void {
    this.#journal.set(this.inserted, packet.id, { packet, parts: partsOf(packet), seq: 0, lease: null, depth });
    this.#count(packet, 1);
  }

  /** Saves a packet that was found; one in short keeps its content. `lease`: what is stored of its leases from now on. */
  save(packet: AnyPacket, { searchable, lease }: { searchable: boolean; lease?: StoredLease | null | undefined }): void {
    const { id } = packet;
    const stored = requireNumbered(this.#stored(id));
    const earlier = this.changed.get(id);
    const parts = 'counts' in packet ? { ...stored.parts, state: stateOf(packet) } : partsOf(packet);
    const after = { ...stored, packet, parts, lease: lease === undefined ? stored.lease : lease };
    const change = { before: earlier?.before ?? stored, after, searchable: searchable || (earlier?.searchable ?? false) };
    this.#journal.set(this.changed, id, change);
    this.#journal.set(this.found, id, after);
    this.#count(stored.packet, -1);
    this.#count(packet, 1);
  }

  /** Removes a packet that was found, for good. */
  remove(id: string): void {
    const stored = requireNumbered(this.#stored(id));
    // As it is stored: what units of this group did to it before is not written, and not told of either.
    this.#journal.push(this.removed, this.changed.get(id)?.before ?? stored);
    this.#journal.delete(this.changed, id);
    this.#journal.delete(this.found, id);
    this.#count(stored.packet, -1);
  }

  #stored(id: string): StoredPacket {
    return (this.found.get(id) ?? this.inserted.get(id))!;
  }

  /** Counts the packet in or out where lists take their totals from. */
  #count({ status, metadata, hitl }: AnyPacket, by: 1 | -1): void {
    this.#counters.add(statusCounters[status], by);
    this.#counters.add(priorityCounters[metadata.priority], by);
    if (hitl?.required === true) this.#counters.add('hitl:required', by);
  }
}

/** A packet that was found. One that the same unit inserts has no number yet by which its rows could be changed. */
function requireNumbered(stored: StoredPacket): StoredPacket {
  if (stored.seq === 0) throw new Error('A unit changes a packet that it inserts.');
  return stored;
}

/** Packets, their content and tags, and the queue of the search index. */
export const packets: Kind = {
  async find(session, group) {
    const creates = group.units.reduce((sum, { unit }) => sum + (unit.creates ?? 0), 0);
    const named = group.wanted((unit) => unit.packets);
    const [numbers] = await Promise.all([session.reserve('packets', 'seq', creates), findPackets(session, group, named)]);
    group.packetNumbers = numbers;
  },

  async erase(session, _group, removed) {
    // The queue first, in the indexer's own order: who waits for it here finds below what it has written meanwhile.
    await session.remove(
      'search_queue',
      removed.map(({ tenant, stored }) => ({ tenant, packet: stored.seq })),
    );
    await session.remove(
      'search_index',
      removed.map(({ stored }) => ({ rowid: stored.seq })),
    );
    await session.remove(
      'packet_tags',
      removed.flatMap(({ tenant, stored }) => tagRows(tenant, stored)),
    );
    await session.remove(
      'contents',
      removed.map(({ stored }) => ({ packet: stored.seq })),
    );
    await session.remove(
      'packets',
      removed.map(({ tenant, stored }) => ({ tenant, id: stored.packet.id })),
    );
  },

  async flush(session, group) {
    const fresh = group.each(({ tenant, packets: { inserted } }) => [...inserted.values()].map((stored) => ({ tenant, stored })));
    const missing = Math.max(0, fresh.length - group.packetNumbers.length);
    const numbers = missing === 0 ? group.packetNumbers : [...group.packetNumbers, ...(await session.reserve('packets', 'seq', missing))];
    const inserted = fresh.map(({ tenant, stored }, index) => ({ tenant, after: { ...stored, seq: numbers[index]! } }));
    const changed = group.each(({ tenant, packets: own }) => [...own.changed.values()].map((change) => ({ tenant, ...change })));
    await flushRows(session, inserted, changed);
    await flushTags(session, inserted, changed);
    const queued = [...inserted, ...changed.filter(({ searchable }) => searchable)];
    await session.put(
      'search_queue',
      ['tenant', 'packet'],
      queued.map(({ tenant, after: { packet, seq } }) => ({ tenant, packet: seq, revision: packet.revision })),
    );
  },
};

/** Finds packets of tenants by their ids, locked. */
export async function findPackets(session: Session, group: Group, ids: readonly [tenant: number, id: string][]): Promise<void> {
  if (ids.length === 0) return;
  const keys = ids.map(([tenant, id]) => ({ tenant, id }));
  // Sent together: the contents are read once the packets are locked.
  const [rows, contents] = await Promise.all([
    session.find('packets', ['tenant', 'id', 'seq', 'state', 'digest', 'lease', 'depth'], keys),
    session.belonging('contents', ['packet', 'content'], 'packet', 'packets', keys),
  ]);
  const contentOf = new Map(contents as [number, string][]);
  for (const row of rows) group.of(row[0] as number).packets.found.set(row[1] as string, storedOf(row, contentOf));
}

/** The packets that a group removes for good. */
export function removedPackets(group: Group): RemovedPacket[] {
  return group.each(({ tenant, packets: { removed } }) => removed.map((stored) => ({ tenant, stored })));
}

/** A stored packet, read in short. */
function storedOf([, , seq, state, digest, lease, depth]: Values, contents: ReadonlyMap<number, string>): StoredPacket {
  const content = contents.get(seq as number);
  if (content === undefined) throw new Error('A packet has no content.');
  const parts = { state: state as string, digest: digest as string, content };
  return {
    packet: readJson(summaryText(parts)) as PacketSummary,
    parts,
    seq: seq as number,
    lease: lease === null ? null : (JSON.parse(lease as string) as StoredLease),
    depth: depth as number,
  };
}

interface Inserted {
  readonly tenant: number;
  readonly after: StoredPacket;
}
type Changed = Inserted & Change;

async function flushRows(session: Session, inserted: readonly Inserted[], changed: readonly Changed[]): Promise<void> {
  const sorted = changed.filter((change) => !sameFilters(change));
  const alike = changed.filter(sameFilters);
  const [held, moved] = [alike.filter((change) => !sameHolder(change)), alike.filter(sameHolder)];
  const rewritten = changed.filter(({ before, after }) => before.parts.content !== after.parts.content);
  await session.insert(
    'packets',
    inserted.map(({ tenant, after }) => ({ seq: after.seq, ...packetRow(tenant, after) })),
  );
  // SQLite rewrites the index entries of every column it is given, changed or not.
  await session.update(
    'packets',
    ['tenant', 'id'],
    sorted.map(({ tenant, after }) => packetRow(tenant, after)),
  );
  await session.update(
    'packets',
    ['tenant', 'id'],
    held.map(({ tenant, after }) => ({ ...movedRow(tenant, after), claimed_by: holderOf(after) })),
  );
  await session.update(
    'packets',
    ['tenant', 'id'],
    moved.map(({ tenant, after }) => movedRow(tenant, after)),
  );
  await session.insert(
    'contents',
    inserted.map(({ after }) => contentRow(after)),
  );
  await session.update(
    'contents',
    ['packet'],
    rewritten.map(({ after }) => contentRow(after)),
  );
}

async function flushTags(session: Session, inserted: readonly Inserted[], changed: readonly Changed[]): Promise<void> {
  const retagged = changed.filter((change) => !sameTags(change));
  await session.remove(
    'packet_tags',
    retagged.flatMap(({ tenant, before }) => tagRows(tenant, before)),
  );
  await session.insert(
    'packet_tags',
    [...inserted, ...retagged].flatMap(({ tenant, after }) => tagRows(tenant, after)),
  );
}

function packetRow(tenant: number, stored: StoredPacket): Row {
  const { packet, parts, lease, depth } = stored;
  const { id, status, revision, parent_packet_id, metadata, hitl, updated_at } = packet;
  return {
    tenant,
    id,
    status,
    revision,
    source_agent: column(metadata.source_agent.id),
    target_agent: column(metadata.target_agent.id),
    priority: metadata.priority,
    hitl_required: hitl?.required === true ? 1 : 0,
    due_at: dueAt(packet),
    state: parts.state,
    digest: parts.digest,
    parent: parent_packet_id,
    depth,
    claimed_by: holderOf(stored),
    updated_at,
    lease: lease === null ? null : JSON.stringify(lease),
  };
}

/** What of the row changes with every change of a packet. */
function movedRow(tenant: number, { packet, parts, lease }: StoredPacket): Row {
  const { id, status, revision, updated_at } = packet;
  return {
    tenant,
    id,
    status,
    revision,
    due_at: dueAt(packet),
    state: parts.state,
    digest: parts.digest,
    updated_at,
    lease: lease === null ? null : JSON.stringify(lease),
  };
}

function contentRow({ parts, seq }: StoredPacket): Row {
  return { packet: seq, content: parts.content };
}

/** Whether the columns that lists are filtered by, the status aside, stay as they are. */
function sameFilters({ before: { packet: before }, after: { packet: after } }: Change): boolean {
  return (
    before.metadata.target_agent.id === after.metadata.target_agent.id &&
    before.metadata.priority === after.metadata.priority &&
    (before.hitl?.required === true) === (after.hitl?.required === true)
  );
}

/** The id of the agent that holds the packet. */
function holderOf({ packet: { claimed_by } }: StoredPacket): string | null {
  return claimed_by === null ? null : column(claimed_by.agent_id);
}

const sameHolder = ({ before, after }: Change) => holderOf(before) === holderOf(after);

function tagRows(tenant: number, { packet: { id, metadata } }: StoredPacket): Row[] {
  return [...new Set(metadata.tags.map(column))].map((tag) => ({ tenant, tag, packet_id: id }));
}

const sameTags = ({ before, after }: Change) => before.packet.metadata.tags.join('\u0000') === after.packet.metadata.tags.join('\u0000');
