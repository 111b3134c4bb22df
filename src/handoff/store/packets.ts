import { sql } from 'kysely';

import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import { invalid } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Row, Values } from '../../kit/sql/dialect.ts';
import { priorities, type Status, statuses } from '../model/common.ts';
import type { Packet } from '../model/packet.ts';
import { type KeyFamily, withSource } from '../rules/exclusion.ts';
import type { KeptOfQuestions } from '../rules/kept.ts';
import type { StoredLease } from '../rules/lease.ts';
import type { AnyPacket } from '../rules/packet.ts';
import { agentsOf, isSeen, type Viewer } from '../rules/sight.ts';
import { hourlyAmounts } from '../rules/stats.ts';
import { packetText, partsOf, stateOf, summaryText } from '../rules/text.ts';
import { rowsOfAll } from './all-tenants.ts';
import { type CounterBuffer, counters, inHourOf } from './counters.ts';
import { createDuePackets } from './due-packets.ts';
import { type Group, noTenant, type Writes } from './engine/group.ts';
import type { Journal } from './engine/journal.ts';
import type { Session } from './engine/session.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import { matches, seenOf } from './packet-filter.ts';
import {
  type Change,
  flushRows,
  flushSubjects,
  flushTags,
  foundColumns,
  type StoredPacket,
  storedOf,
  subjectRows,
  tagRows,
} from './packet-rows.ts';
import { ofPacket, wholeText } from './packet-texts.ts';
import { pageTooLarge } from './page-size.ts';
import { createPageReads, type PacketPage } from './pages.ts';
import { indexKey } from './search/index-key.ts';
import type { Indexing } from './search/indexing.ts';
import type { EncodedPage, Search } from './search/search.ts';

/** The packets that a unit needs. */
export interface PacketNeeds {
  /** Packets to lock. */
  readonly packets?: readonly string[];
  /** About how many packets it creates. */
  readonly creates?: number;
}

const statusCounters = Object.fromEntries(statuses.map((status) => [status, `packets:${status}`])) as Record<Status, string>;
const priorityCounters = Object.fromEntries(priorities.map((priority) => [priority, `priority:${priority}`])) as Record<
  (typeof priorities)[number],
  string
>;

/** A tenant's packets: the current state of those that units named, and the changes to write. */
export class PacketBuffer {
  readonly found = new Map<string, StoredPacket>();
  readonly inserted = new Map<string, StoredPacket>();
  readonly changed = new Map<string, Change>();
  readonly removed: StoredPacket[] = [];
  /** Those whose content is erased, as they were stored. */
  readonly erased: StoredPacket[] = [];
  /** Reserved `seq` numbers for new packets of all tenants, staged for every tenant. */
  readonly numbers: number[] = [];
  readonly #journal: Journal;
  readonly #counters: CounterBuffer;
  readonly #group: Pick<Group<unknown>, 'sight'>;

  constructor(group: Pick<Group<unknown>, 'journal' | 'sight'>, counters: CounterBuffer) {
    this.#journal = group.journal;
    this.#group = group;
    this.#counters = counters;
  }

  /**
   * A packet that the unit names; undefined when it is unknown, another tenant's, or not seen by the caller. A summary, unless a
   * whole packet was saved.
   */
  get(id: string): AnyPacket | undefined {
    return this.#seen(id)?.packet;
  }

  /** Like `get`, with the content. */
  whole(id: string): Packet | undefined {
    const stored = this.#seen(id);
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

  /** The numbers of the webhooks that are for this packet alone. */
  followers(id: string): number[] {
    return storedList(this.#stored(id).followers);
  }

  /** The id of the root of a packet's chain: its own if it is the root. */
  root(id: string): string {
    return this.#stored(id).root ?? id;
  }

  /** The keys that are sources of the packet's question, as `withSource` adds them. */
  sources(id: string): string[] {
    return storedList(this.#stored(id).sources);
  }

  /** What the service keeps of a packet's questions beside the packet. */
  kept(id: string): KeptOfQuestions {
    const { kept } = this.#stored(id);
    return kept === null ? {} : (readJson(kept) as KeptOfQuestions);
  }

  /** Inserts a packet, into the chain of `parent`. `source`: the key that is a source of its question. */
  insert(
    packet: Packet,
    { parent, source = null, kept = {} }: { parent?: string; source?: KeyFamily | null; kept?: KeptOfQuestions | undefined } = {},
  ): void {
    const chain = parent === undefined ? { depth: 1, root: null } : { depth: this.depth(parent) + 1, root: this.root(parent) };
    const sources = source === null ? null : sourcesWith(null, source);
    this.#journal.set(this.inserted, packet.id, {
      packet,
      parts: partsOf(packet),
      seq: 0,
      lease: null,
      ...chain,
      followers: null,
      sources,
      kept: Object.keys(kept).length === 0 ? null : JSON.stringify(kept),
    });
    this.#count(packet, 1);
    this.#countInHour(undefined, packet, packet.created_at);
  }

  /**
   * Saves a packet that was found; a summary keeps the stored content. `lease`: the new lease state; undefined: unchanged.
   * `source`: a key that now is a source of its question.
   */
  save(packet: AnyPacket, { searchable, lease, source = null, kept }: Saved): void {
    const { id } = packet;
    const stored = requireNumbered(this.#stored(id));
    const earlier = this.changed.get(id);
    const parts = 'counts' in packet ? { ...stored.parts, state: stateOf(packet) } : partsOf(packet);
    const sources = source === null ? stored.sources : sourcesWith(stored.sources, source);
    const after = {
      ...stored,
      ...{ packet, parts, sources },
      lease: lease === undefined ? stored.lease : lease,
      kept: kept === undefined ? stored.kept : Object.keys(kept).length === 0 ? null : JSON.stringify(kept),
    };
    const change = { before: earlier?.before ?? stored, after, searchable: searchable || (earlier?.searchable ?? false) };
    this.#journal.set(this.changed, id, change);
    this.#journal.set(this.found, id, after);
    this.#count(stored.packet, -1);
    this.#count(packet, 1);
    this.#countInHour(stored.packet, packet, packet.updated_at);
  }

  /** Deletes a packet that was found, permanently. */
  remove(id: string, now: Date): void {
    const stored = requireNumbered(this.#stored(id));
    // The stored version: earlier changes by this group are neither written nor announced.
    this.#journal.push(this.removed, this.changed.get(id)?.before ?? stored);
    this.#journal.delete(this.changed, id);
    this.#journal.delete(this.found, id);
    this.#count(stored.packet, -1);
    this.#countInHour(stored.packet, undefined, now.toISOString());
  }

  /** Replaces a packet that was found by what is left of it once its content is erased. */
  erase(packet: Packet): void {
    const before = requireNumbered(this.#stored(packet.id));
    this.save(packet, { searchable: false, lease: null, kept: {} });
    const { changed, found } = this;
    const { after, ...change } = changed.get(packet.id)!;
    const rest = { ...after, followers: null, sources: null };
    this.#journal.set(changed, packet.id, { ...change, after: rest, searchable: false });
    this.#journal.set(found, packet.id, rest);
    this.#journal.push(this.erased, change.before ?? before);
  }

  #seen(id: string): StoredPacket | undefined {
    const stored = this.found.get(id);
    const { sight } = this.#group;
    return stored === undefined || sight === undefined || isSeen(sight, agentsOf(stored.packet)) ? stored : undefined;
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

  /** Adds a change of a packet to the counters of its hour. */
  #countInHour(before: AnyPacket | undefined, after: AnyPacket | undefined, at: string): void {
    for (const { name, by } of hourlyAmounts(before, after)) this.#counters.add(inHourOf(at, name), by);
  }
}

/** What changes with a packet beside its text. */
interface Saved {
  readonly searchable: boolean;
  readonly lease?: StoredLease | null | undefined;
  readonly source?: KeyFamily | null | undefined;
  readonly kept?: KeptOfQuestions | undefined;
}

/** A list that is stored as a JSON array, or as null when it is empty. */
const storedList = <T>(stored: string | null): T[] => (stored === null ? [] : readJson(stored));

/** The stored list of sources with those of another key. */
function sourcesWith(stored: string | null, source: KeyFamily): string {
  const before = storedList<string>(stored);
  const after = withSource(before, source);
  return after === before && stored !== null ? stored : JSON.stringify(after);
}

/** Requires a packet that was found: one inserted by the same unit has no `seq` yet, which its rows are updated by. */
function requireNumbered(stored: StoredPacket): StoredPacket {
  if (stored.seq === 0) throw new Error('A unit changes a packet that it inserts.');
  return stored;
}

const writes: Writes<PacketNeeds, PacketBuffer> = {
  needs: { packets: true, creates: true },
  stage: (tenant, group) => new PacketBuffer(group, group.of(counters.writes, tenant)),

  async find(session, group) {
    const creates = group.units.reduce((sum, { unit }) => sum + (unit.creates ?? 0), 0);
    const named = group.wanted('id', (unit) => unit.packets);
    const [numbers] = await Promise.all([session.reserve('packets', 'seq', creates), findPackets(session, group, named)]);
    group.of(writes, noTenant).numbers.push(...numbers);
  },

  async erase(session, group) {
    const removed = group.each(writes, (own, tenant) => own.removed.map((stored) => ({ tenant, stored })));
    const emptied = group.each(writes, (own, tenant) => own.erased.map((stored) => ({ tenant, stored })));
    const all = [...removed, ...emptied];
    // The queue first, in the indexer's lock order: after a wait for the indexer, the statements below see what it wrote.
    session.remove(
      'search_queue',
      all.map(({ tenant, stored }) => ({ tenant, packet: stored.seq })),
    );
    session.remove(
      'search_index',
      all.map(({ tenant, stored }) => indexKey(session, tenant, stored.seq)),
    );
    session.remove(
      'packet_tags',
      removed.flatMap(({ tenant, stored }) => tagRows(tenant, stored)),
    );
    session.remove(
      'packet_subjects',
      removed.flatMap(({ tenant, stored }) => subjectRows(tenant, stored)),
    );
    session.remove(
      'contents',
      removed.map(({ tenant, stored }) => ({ tenant, packet: stored.seq })),
    );
    session.remove(
      'packets',
      removed.map(({ tenant, stored }) => ({ tenant, id: stored.packet.id })),
    );
    session.update(
      'packets',
      ['tenant', 'id'],
      emptied.map(({ tenant, stored }) => ({ tenant, id: stored.packet.id, followers: null })),
    );
  },

  flush(session, group) {
    const fresh = group.each(writes, ({ inserted }, tenant) => [...inserted.values()].map((stored) => ({ tenant, stored })));
    const { numbers } = group.of(writes, noTenant);
    const missing = fresh.length - numbers.length;
    return andThen(missing > 0 ? session.reserve('packets', 'seq', missing) : [], (more) => {
      const seqs = [...numbers, ...more];
      const inserted = fresh.map(({ tenant, stored }, index) => ({ tenant, after: { ...stored, seq: seqs[index]! } }));
      const changed = group.each(writes, (own, tenant) => [...own.changed.values()].map((change) => ({ tenant, ...change })));
      flushRows(session, inserted, changed);
      flushTags(session, inserted, changed);
      flushSubjects(session, inserted, changed);
      const queued = [...inserted, ...changed.filter(({ searchable }) => searchable)];
      session.put(
        'search_queue',
        ['tenant', 'packet'],
        queued.map(({ tenant, after: { packet, seq } }) => ({ tenant, packet: seq, revision: packet.revision })),
      );
    });
  },
};

/** A packet's values of `foundColumns`, locked, and the number of its tenant. */
interface FoundRow {
  readonly tenant: number;
  readonly row: Values;
}

/** Reads packets by their ids and locks them. */
function findPackets(session: Session, group: Group<unknown>, keys: readonly Row[]): Awaitable<void> {
  const columns = ['tenant', ...foundColumns];
  const contents = { table: 'contents', column: 'content', by: 'packet' };
  return andThen(keys.length === 0 ? [] : session.findWith('packets', columns, contents, keys), (rows) => {
    for (const [tenant, ...row] of rows) {
      const content = row.pop() as string;
      group.of(writes, tenant as number).found.set(row[0] as string, storedOf(row, content));
    }
  });
}

/** Reads the contents of packets that are locked already. */
export async function findContents(session: Session, group: Group<unknown>, found: readonly FoundRow[]): Promise<void> {
  const keys = found.map(({ tenant, row: [, seq] }) => ({ tenant, packet: seq! }));
  const contentOf = new Map((await session.read('contents', ['packet', 'content'], keys)) as [number, string][]);
  for (const { tenant, row } of found) {
    const content = contentOf.get(row[1] as number);
    if (content === undefined) throw new Error('A packet has no content.');
    group.of(writes, tenant).found.set(row[0] as string, storedOf(row, content));
  }
}

/** What a packet is compared by. */
export interface PacketStamp {
  readonly revision: number;
  readonly status: string;
  /** When time next changes it, such as the end of its lease, which a renewal moves without a new revision; null: never. */
  readonly due_at: string | null;
  /** The id of the root of its chain; its own if it is the root. */
  readonly root: string;
}

/** A packet's JSON text and its revision. */
export interface PacketText {
  packet: string;
  revision: number;
}

/** Reads packets. Ids begin with the creation time, so newest first is the descending order of ids in every index. */
function reads({ database, indexing, walks }: ReadDependencies) {
  const pages = createPageReads(database);
  const byId = database.query<{ tenant: number; id: string }, PacketText>((db, { tenant, id }) =>
    db
      .selectFrom('packets')
      .innerJoin('contents', ofPacket)
      .select([wholeText.as('packet'), 'packets.revision'])
      .where('packets.tenant', '=', tenant)
      .where('packets.id', '=', id),
  );
  const stampById = database.query<{ tenant: number; id: string }, PacketStamp>((db, { tenant, id }) =>
    db
      .selectFrom('packets')
      .select(['revision', 'status', 'due_at', sql<string>`coalesce(root, id)`.as('root')])
      .where('tenant', '=', tenant)
      .where('id', '=', id),
  );
  const ofTenant = (scope: ReadScope) => ({
    /** What of a packet tells whether it is as somebody waits for it, without its text. */
    stamp: (id: string) => scope.ofPacket(id, (tenant) => stampById.first({ tenant, id }), undefined),
    /** The root of each packet's chain, by the id of the packet; unknown packets are left out. */
    roots: (ids: readonly string[]) => rootsOf(database, scope.viewer, ids),
    find: (id: string) =>
      scope.viewer.sight === undefined ? byId.first({ tenant: scope.tenant, id }) : findSeen(database, scope.viewer, id),
    /** A page and the total number of packets. */
    page(wanted: PacketPage) {
      const { tenant_number: tenant, sight } = scope.viewer;
      const page = { ...wanted, filter: seenOf(wanted.filter, sight) };
      const readLarge = (large: PacketPage) => scope.run((reader) => reader.largePage(tenant, large));
      return pages.page(tenant, page, { inLane: scope.inLane, readLarge });
    },
    /** Finds everything that was committed before the call. */
    search: (wanted: Omit<Search, 'tenant'>) => search(scope, indexing, wanted),
  });
  const ofAll = {
    ...createDuePackets({ database, indexing, walks }),
    /** The number of packets of all tenants, by status. */
    async countByStatus(): Promise<Record<Status, number>> {
      const rows = await rowsOfAll(database.longReads, 'counters')
        .select(['counters.name', sql<number>`sum(value)`.as('count')])
        .where('counters.name', '>=', 'packets:')
        .where('counters.name', '<', 'packets;')
        .groupBy('counters.name')
        .execute();
      const counts = new Map(rows.map(({ name, count }) => [name, Number(count)]));
      return Object.fromEntries(statuses.map((status) => [status, counts.get(`packets:${status}`) ?? 0])) as Record<Status, number>;
    },
  };
  return { ofTenant, ofAll };
}

type Reads = ReadDependencies['database'];

async function rootsOf(
  { reads: db }: Reads,
  { tenant_number, sight }: Viewer,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const query = db.selectFrom('packets').select(['id', sql<string>`coalesce(root, id)`.as('root')]);
  const rows = await query
    .where(matches(tenant_number, seenOf({}, sight)))
    .where('id', 'in', [...ids])
    .execute();
  return new Map(rows.map(({ id, root }) => [id, root]));
}

/** A packet that a caller sees who does not see all. One statement: between two, it could become another's. */
const findSeen = ({ reads: db }: Reads, { tenant_number, sight }: Viewer, id: string): Promise<PacketText | undefined> =>
  db
    .selectFrom('packets')
    .innerJoin('contents', ofPacket)
    .select([wholeText.as('packet'), 'packets.revision'])
    .where(matches(tenant_number, seenOf({}, sight)) as never)
    .where('packets.id', '=', id)
    .executeTakeFirst();

/** Packets, their content and tags, and the queue of the search index. */
export const packets = { writes, reads };

/** @throws ServiceError 400 when the cursor can't be continued, 413 when a page at an offset is too large */
async function search(scope: ReadScope, indexing: Indexing, wanted: Omit<Search, 'tenant'>): Promise<EncodedPage> {
  const { tenant_number: tenant, sight } = scope.viewer;
  await indexing.all(tenant);
  const whole = { ...wanted, filter: seenOf(wanted.filter, sight), tenant };
  const run = (options?: { long: boolean }) => scope.run((reader) => reader.search(whole, scope.signal), options);
  let result = await run();
  if ('overBudget' in result) result = await run({ long: true });
  if ('overBudget' in result) throw new Error('A search exceeded an unlimited budget.');
  if ('outgrown' in result) throw invalid('cursor', 'Too many packets match now to be ranked; search again without the cursor.');
  if ('fitting' in result) throw pageTooLarge(result.fitting);
  return result;
}
