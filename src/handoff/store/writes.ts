import type { Row, Session } from '../../kit/sql/dialect.ts';
import { type AnyPacket, dueAt } from '../rules/packet.ts';
import type { PacketParts } from '../rules/text.ts';
import type { Remembered } from './units.ts';

/** A packet as a group holds it: in short or whole, and in the parts that are written. */
export interface Held {
  readonly packet: AnyPacket;
  readonly parts: PacketParts;
  /** Its row's number; 0 while it has none. */
  readonly seq: number;
}

/** A stored packet before and after a group; `searchable`: its search entry must follow. */
interface Change {
  readonly before: Held;
  readonly after: Held;
  readonly searchable: boolean;
}

/** Everything a group writes, table by table. */
export interface Writes {
  inserted: Map<string, Held>;
  saved: Map<string, Change>;
  removed: Held[];
  events: Row[];
  counts: Map<string, number>;
  remembered: Map<string, Remembered & Row>;
  /** Which packets are in remembered answers. */
  answered: Row[];
}

/** Nothing to write. */
export const noWrites = (): Writes => ({
  inserted: new Map(),
  saved: new Map(),
  removed: [],
  events: [],
  counts: new Map(),
  remembered: new Map(),
  answered: [],
});

/** A row of the trail. */
export function eventRow(
  id: string,
  tenant: number,
  entry: {
    packet_id: string | null;
    event_type: string;
    actor: string;
    resource: string;
    details: Record<string, unknown>;
    timestamp: string;
  },
): Row {
  return { id, tenant, ...entry, actor: column(entry.actor), details: JSON.stringify(entry.details) };
}

/** A text as a column keeps it: well-formed, since half a surrogate pair has no UTF-8. */
function column(text: string): string {
  return text.toWellFormed();
}

function packetRow(tenant: number, { packet, parts }: Held): Row {
  const { id, status, revision, metadata, hitl } = packet;
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
  };
}

/** What of the row changes with every change of a packet. */
function movedRow(tenant: number, { packet, parts }: Held): Row {
  const { id, status, revision } = packet;
  return { tenant, id, status, revision, due_at: dueAt(packet), state: parts.state, digest: parts.digest };
}

function contentRow({ parts, seq }: Held): Row {
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

function tagRows(tenant: number, { packet: { id, metadata } }: Held): Row[] {
  return [...new Set(metadata.tags.map(column))].map((tag) => ({ tenant, tag, packet_id: id }));
}

const sameTags = ({ before, after }: Change) => before.packet.metadata.tags.join('\u0000') === after.packet.metadata.tags.join('\u0000');

type Each = <T>(rows: (tenant: number, own: Writes) => readonly T[]) => T[];

/**
 * Writes all that a group's units want written, each table once.
 * @param writes by tenant number
 */
export async function flush(session: Session, writes: ReadonlyMap<number, Writes>): Promise<void> {
  const each: Each = (rows) => [...writes].flatMap(([tenant, own]) => rows(tenant, own));
  await flushPackets(session, each);
  await flushRemoved(session, writes, each);
  await session.insert(
    'events',
    each((_, own) => own.events),
  );
  await session.insert(
    'idempotency',
    each((_, own) => [...own.remembered.values()]),
  );
  await session.insert(
    'idempotency_packets',
    each((_, own) => own.answered),
  );
  const changed = each((tenant, own) => [...own.counts].map(([name, value]) => ({ tenant, name, value })));
  await session.add(
    'counters',
    ['tenant', 'name'],
    'value',
    changed.filter(({ value }) => value !== 0),
  );
}

/** Packets that are new or changed, their tags, and the queue of the search index. */
async function flushPackets(session: Session, each: Each): Promise<void> {
  const fresh = each((tenant, own) => [...own.inserted.values()].map((held) => ({ tenant, held })));
  const numbers = await session.reserve('packets', fresh.length);
  const inserted = fresh.map(({ tenant, held }, index) => ({ tenant, after: { ...held, seq: numbers[index]! } }));
  const saved = each((tenant, own) => [...own.saved.values()].map((change) => ({ tenant, ...change })));
  const retagged = saved.filter((change) => !sameTags(change));
  const tagged = [...inserted, ...retagged].flatMap(({ tenant, after }) => tagRows(tenant, after));
  const untagged = retagged.flatMap(({ tenant, before }) => tagRows(tenant, before));
  const queued = [...inserted, ...saved.filter(({ searchable }) => searchable)];
  const [sorted, moved] = [saved.filter((change) => !sameFilters(change)), saved.filter(sameFilters)];
  const queue = queued.map(({ tenant, after: { packet, seq } }) => ({ tenant, packet: seq, revision: packet.revision }));
  const rewritten = saved.filter(({ before, after }) => before.parts.content !== after.parts.content);

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
  await session.remove('packet_tags', untagged);
  await session.insert('packet_tags', tagged);
  await session.put('search_queue', ['tenant', 'packet'], queue);
}

/** Packets that are gone for good: their content goes from wherever it stands. */
async function flushRemoved(session: Session, writes: ReadonlyMap<number, Writes>, each: Each): Promise<void> {
  const removed = each((tenant, own) => own.removed.map((held) => ({ tenant, held })));
  if (removed.length === 0) return;
  const keys = removed.map(({ tenant, held }) => ({ tenant, packet_id: held.packet.id }));

  for (const [tenant] of await session.find('events', ['tenant'], keys)) {
    const counts = writes.get(tenant as number)!.counts;
    counts.set('events', (counts.get('events') ?? 0) - 1);
  }
  const answers = await session.find('idempotency_packets', ['tenant', 'key'], keys);
  await session.update(
    'idempotency',
    ['tenant', 'key'],
    answers.map(([tenant, key]) => ({ tenant: tenant!, key: key!, body: null })),
  );
  await session.remove('idempotency_packets', keys);
  // The queue first, in the indexer's own order: who waits for it here finds below what it has written meanwhile.
  await session.remove(
    'search_queue',
    removed.map(({ tenant, held }) => ({ tenant, packet: held.seq })),
  );
  await session.remove(
    'search_index',
    removed.map(({ held }) => ({ rowid: held.seq })),
  );
  await session.remove(
    'packet_tags',
    removed.flatMap(({ tenant, held }) => tagRows(tenant, held)),
  );
  await session.remove('events', keys);
  await session.remove(
    'contents',
    removed.map(({ held }) => ({ packet: held.seq })),
  );
  await session.remove(
    'packets',
    removed.map(({ tenant, held }) => ({ tenant, id: held.packet.id })),
  );
}
