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

/** A packet in a group: its summary or the whole packet, and the texts that are stored. */
export interface StoredPacket {
  readonly packet: AnyPacket;
  readonly parts: PacketParts;
  /** Its `seq`; 0 before it is inserted. */
  readonly seq: number;
  /** Its lease state. */
  readonly lease: StoredLease | null;
  /** Its depth in its chain: 1 for the root. */
  readonly depth: number;
}

/** A stored packet before and after a group; `searchable`: it must be indexed again. */
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

/** A tenant's packets: the current state of those that units named, and the changes to write. */
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

  /** A packet that the unit names; undefined when it is unknown or another tenant's. A summary, unless a whole packet was saved. */
  get(id: string): AnyPacket | undefined {
    return this.found.get(id)?.packet;
  }

  /** Like `get`, with the content. */
  whole(id: string): Packet | undefined {
    const stored = this.found.get(id);
    if (stored === undefined) return undefined;
    return 'counts' in stored.packet ? (readJson(packetText(stored.parts)) as Packet) : stored.packet;
  }

  /** The current JSON text of an existing packet. */
  text(id: string): string {
    return packetText(this.#stored(id).parts);
  }

  /** The current JSON text of an existing packet's summary, as lists show it. */
  summary(id: string): string {
    return summaryText(this.#stored(id).parts);
  }

  /** A packet's lease state; null when it was never leased. */
  lease(id: string): StoredLease | null {
    return this.#stored(id).lease;
  }

  /** A packet's depth in its chain: 1 for the root. */
  depth(id: string): number {
    return this.#stored(id).depth;
  }

  insert(packet: Packet, depth = 1): void {
    this.#journal.set(this.inserted, packet.id, { packet, parts: partsOf(packet), seq: 0, lease: null, depth });
    this.#count(packet, 1);
  }

  /** Saves a packet that was found; a summary keeps the stored content. `lease`: the new lease state; undefined: unchanged. */
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

  /** Deletes a packet that was found, permanently. */
  remove(id: string): void {
    const stored = requireNumbered(this.#stored(id));
    // The stored version: earlier changes by this group are neither written nor announced.
    this.#journal.push(this.removed, this.changed.get(id)?.before ?? stored);
    this.#journal.delete(this.changed, id);
    this.#journal.delete(this.found, id);
    this.#count(stored.packet, -1);
  }

  #stored(id: string): StoredPacket {
    return (this.found.get(id) ?? this.inserted.get(id))!;
  }

  /** Adds or subtracts the packet in the counters for list totals. */
  #count({ status, metadata, hitl }: AnyPacket, by: 1 | -1): void {
    this.#counters.add(statusCounters[status], by);
    this.#counters.add(priorityCounters[metadata.priority], by);
    if (hitl?.required === true) this.#counters.add('hitl:required', by);
  }
}

/** Requires a packet that was found: one inserted by the same unit has no `seq` yet, which its rows are updated by. */
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
    // The queue first, in the indexer's lock order: after a wait for the indexer, the statements below see what it wrote.
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

/** The columns that a packet is read from, beside its content. */
export const foundColumns = ['id', 'seq', 'state', 'digest', 'lease', 'depth'] as const;

/** A packet's values of `foundColumns`, locked, and the number of its tenant. */
interface FoundRow {
  readonly tenant: number;
  readonly row: Values;
}

/** Reads packets by their ids and locks them. */
async function findPackets(session: Session, group: Group, ids: readonly [tenant: number, id: string][]): Promise<void> {
  if (ids.length === 0) return;
  const keys = ids.map(([tenant, id]) => ({ tenant, id }));
  // Sent together; the contents are read after the packets are locked.
  const [rows, contents] = await Promise.all([
    session.find('packets', ['tenant', ...foundColumns], keys),
    session.belonging('contents', ['packet', 'content'], 'packet', 'packets', keys),
  ]);
  const found = rows.map(([tenant, ...row]) => ({ tenant: tenant as number, row }));
  keepFound(group, found, contents);
}

/** Reads the contents of packets that are locked already. */
export async function findContents(session: Session, group: Group, found: readonly FoundRow[]): Promise<void> {
  const keys = found.map(({ row: [, seq] }) => ({ packet: seq! }));
  keepFound(group, found, await session.read('contents', ['packet', 'content'], keys));
}

function keepFound(group: Group, found: readonly FoundRow[], contents: readonly Values[]): void {
  const contentOf = new Map(contents as [number, string][]);
  for (const { tenant, row } of found) group.of(tenant).packets.found.set(row[0] as string, storedOf(row, contentOf));
}

/** The packets that a group deletes permanently. */
export function removedPackets(group: Group): RemovedPacket[] {
  return group.each(({ tenant, packets: { removed } }) => removed.map((stored) => ({ tenant, stored })));
}

/** A stored packet, parsed as its summary. */
function storedOf([, seq, state, digest, lease, depth]: Values, contents: ReadonlyMap<number, string>): StoredPacket {
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
  // SQLite rewrites the index entries of every column in an update, changed or not.
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

/** The columns that every change of a packet updates. */
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

/** Whether the filter columns, except for the status, are unchanged. */
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
