import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';

import { type Awaitable, andThen, nextTurn } from '../../kit/awaitable.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { readDuePage } from './due-pages.ts';
import type { InLane } from './in-lane.ts';
import { type PacketFilter, walksOf } from './packet-filter.ts';
import { ofPacket, shortText, wholeText } from './packet-texts.ts';
import { maxPageBytes, type Page, pageTooLarge } from './page-size.ts';
import type { Tables } from './tables.ts';
import { createTotals, oneRange, sumOf } from './totals.ts';

/** A request for a page of a list. */
export interface PacketPage extends Page {
  readonly filter: PacketFilter;
  /** The id of the last packet of the previous page. */
  readonly after?: string | undefined;
  /** Whole packets instead of summaries. */
  readonly full: boolean;
  /** Oldest first. */
  readonly ascending?: boolean;
  /** The nearest `due_at` first; then `after` is a place in this order (`placeText`). */
  readonly byDue?: boolean;
}

/** Consecutive packets of a list, read in one query. */
interface Part {
  /** Their JSON texts, joined by commas; null when there are none. Large packets are left out of a part with many packets. */
  text: string | null;
  /** How many packets the part has, and how many of them are in the text. */
  count: number;
  included: number;
  /** The id of the last packet; null when there is none. */
  last: string | null;
  /** The length of the text in UTF-8. */
  octets: number | null;
  /** Whether the list continues after the last packet: 0 or 1. */
  more: number;
  /** The sum of the requested counters. */
  total: number | null;
}

/** The packets of a page. */
interface PagePackets {
  /** The packets as JSON, joined by commas; bytes where another thread has read them. */
  readonly text: string | Uint8Array;
  /** Its length in UTF-8. */
  readonly octets: number;
  /** The id of the last packet; undefined when there is none. */
  readonly last: string | undefined;
  readonly more: boolean;
}

/** A page of packets, with the number of packets in the whole list. */
export interface PacketTexts extends PagePackets {
  readonly total: number;
}

/** The packets of a page, or the number of packets that would fit. */
export type LargePage = PagePackets | { readonly fitting: number };

/** Pages beyond this offset are long reads, because every skipped row costs time. */
const shallowOffset = 1000;

/** The most packets in one query. */
const partLimit = 50;

/** Where a list's long reads run. */
interface LongReads {
  readonly inLane: InLane;
  /** Reads a large page with a reader; undefined in the reader itself. */
  readonly readLarge: ((page: PacketPage) => Promise<LargePage>) | undefined;
}

/** Pages of more bytes are read and encoded by a reader. */
const largePageBytes = 1024 * 1024;

/** Larger packets are read a few at a time: fifty packets of the largest size would not fit into one text. */
const largeBytes = 65_536;
const few = 4;

/** Filters that have an index, and their columns. */
const indexed = {
  status: 'status',
  source_agent: 'source_agent',
  target_agent: 'target_agent',
  priority: 'priority',
  claimed_by: 'claimed_by',
  parent_packet_id: 'parent',
} as const;
type IndexedColumn = (typeof indexed)[keyof typeof indexed];
type Query = SelectQueryBuilder<Tables, 'packets', unknown>;

type PageParams = { tenant: number; value: string; after: string; limit: number; offset: number; from: string; to: string };

/** The query's packets as id and JSON text, whole or as summaries. */
function textsOf(query: Query, { full, fewer }: { full: boolean; fewer: boolean }) {
  const text = full ? wholeText : shortText;
  const bytes = full
    ? sql`octet_length(packets.state) + octet_length(contents.content)`
    : sql`octet_length(packets.state) + octet_length(packets.digest)`;
  const included = fewer ? text : sql<string | null>`case when ${bytes} <= ${sql.lit(largeBytes)} then ${text} end`;
  if (!full) return query.select(['packets.id', included.as('text')]);
  return query.innerJoin('contents', ofPacket).select(['packets.id', included.as('text')]);
}

/** The packets of all walks, of which each gives as many as a page needs. */
function inOrder(db: Kysely<Tables>, tenant: number, walks: readonly Query[], { order, count }: { order: Order; count: number }): Query {
  if (walks.length === 1) return walks[0]!;
  const parts = walks.map((walk) =>
    db.selectFrom(walk.select('packets.id').orderBy('packets.id', order).limit(count).as('walk')).select('walk.id'),
  );
  const ids = parts.reduce((all, part) => all.union(part));
  return db.selectFrom('packets').where('packets.tenant', '=', tenant).where('packets.id', 'in', ids);
}

/** A range without counters: the total is counted otherwise. */
const noCounters = { from: '~', to: '' };

/** The comparison for the packets after a given one, in each order. */
const directions = { desc: '<', asc: '>' } as const;
type Order = keyof typeof directions;

/** Reads pages of lists, newest first by default: the order of ids in every index. */
export function createPageReads(database: Database<Tables>) {
  const totalOf = createTotals(database);

  /** A part as a single row: one text for all packets is much cheaper to transfer than a row for each. Packets keep the query's order. */
  function partOf(
    db: Kysely<Tables>,
    rows: ReturnType<typeof textsOf>,
    behind: readonly Query[],
    params: Pick<PageParams, 'tenant' | 'limit' | 'from' | 'to'>,
    order: Order,
  ) {
    const joined = db
      .selectFrom(rows.as('rows'))
      .select([
        sql<string | null>`string_agg(text, ',')`.as('text'),
        sql<number>`count(*)`.as('count'),
        sql<number>`count(text)`.as('included'),
        (order === 'desc' ? sql<string | null>`min(id)` : sql<string | null>`max(id)`).as('last'),
      ]);
    const next = behind.map((query) => query.select(sql`1`.as('one')).where('packets.id', directions[order], sql.ref<string>('part.last')));
    return db
      .selectFrom(joined.as('part'))
      .selectAll('part')
      .select(sql<number>`octet_length(part.text)`.as('octets'))
      .select((eb) => [
        // A part with fewer packets than its limit is the last one. Searching for more could scan far with a rare filter.
        eb
          .case()
          .when('part.count', '<', params.limit)
          .then(sql.lit(0))
          .when(eb.or(next.map((query) => eb.exists(query))))
          .then(sql.lit(1))
          .else(sql.lit(0))
          .end()
          .as('more'),
        sumOf(db, params.tenant, params.from, params.to).as('total'),
      ]);
  }

  // The most frequent pages are served by a range of one index, so their queries are compiled once.
  const shortPages = new Map<string, ReturnType<typeof shortPage>>();
  function shortPage(column: IndexedColumn | undefined, paged: boolean, order: Order, shape: { full: boolean; fewer: boolean }) {
    return database.query<PageParams, Part>((db, params) => {
      const listed = () => {
        const query: Query = db.selectFrom('packets').where('packets.tenant', '=', params.tenant);
        return column === undefined ? query : query.where(`packets.${column}`, '=', params.value);
      };
      const rest = paged ? listed().where('packets.id', directions[order], params.after) : listed();
      const rows = rest.orderBy('packets.id', order).limit(params.limit).offset(params.offset);
      return partOf(db, textsOf(rows, shape), [listed()], params, order);
    });
  }

  function part(tenant: number, { filter, limit, offset, after, full, ascending }: PacketPage, inLane: InLane): Awaitable<Part> {
    const order: Order = ascending ? 'asc' : 'desc';
    const short = shortFilter(filter);
    const shape = { full, fewer: limit <= few };
    const counters = { tenant, ...(oneRange(filter) ?? noCounters) };
    if (short !== undefined && offset <= shallowOffset) {
      const key = `${short.column} ${after !== undefined} ${order} ${full} ${shape.fewer}`;
      const query = shortPages.get(key) ?? shortPage(short.column, after !== undefined, order, shape);
      shortPages.set(key, query);
      return query.first({ ...counters, value: short.value ?? '', after: after ?? '', limit, offset }) as Awaitable<Part>;
    }
    return inLane((db) => {
      const listed = walksOf(db, tenant, filter);
      const rest = after === undefined ? listed : listed.map((walk) => walk.where('packets.id', directions[order], after));
      const rows = inOrder(db, tenant, rest, { order, count: limit + offset })
        .orderBy('packets.id', order)
        .limit(limit)
        .offset(offset);
      return partOf(db, textsOf(rows, shape), listed, { ...counters, limit }, order).executeTakeFirstOrThrow();
    });
  }

  /** Reads the rest of a page after its first part, part by part, until it is complete or too large; hands a large page to `readLarge`. */
  async function readRest(
    tenant: number,
    page: PacketPage,
    { first, limit: firstLimit, inLane, readLarge }: { first: Part; limit: number } & LongReads,
  ): Promise<LargePage> {
    const texts: string[] = [];
    let size = 0;
    let octets = -1;
    const answer = (more: boolean) => ({ text: texts.join(','), octets: Math.max(octets, 0), last: rest.after, more });
    let left = page.limit;
    let rest = page;
    let found = first;
    let limit = firstLimit;
    for (;;) {
      const bytes = Number(found.octets ?? 0);
      const hasLargePackets = Number(found.included) < Number(found.count);
      if (readLarge !== undefined && (hasLargePackets || size + bytes > largePageBytes)) return readLarge(page);
      const tooLarge = size + bytes > maxPageBytes;
      if (limit > 1 && (tooLarge || hasLargePackets)) {
        limit = limit > few ? few : 1;
      } else if (tooLarge && texts.length > 0) {
        // A caller that pages by offset would skip the packets that did not fit.
        if (page.offset > 0) return { fitting: page.limit - left };
        return answer(true);
      } else {
        if (found.text !== null) {
          texts.push(found.text);
          octets += Number(found.octets) + ','.length;
        }
        size += bytes;
        left -= Number(found.count);
        rest = { ...page, offset: 0, after: found.last ?? rest.after };
        limit = Math.min(limit, left);
        if (limit === 0 || found.more === 0) return answer(found.more === 1);
      }
      // On SQLite a part blocks this thread for up to some milliseconds; other work runs in between.
      await nextTurn();
      found = await part(tenant, { ...rest, limit }, inLane);
    }
  }

  /**
   * A page. When its packets together are too large, it ends early with `more` set, unless it begins at an offset.
   * @throws ServiceError 413 when the packets of a page at an offset are too large
   */
  function page(tenant: number, page: PacketPage, { inLane, readLarge }: LongReads): Awaitable<PacketTexts> {
    if (page.byDue === true) return readDuePage(tenant, page, inLane);
    const limit = Math.min(partLimit, page.limit);
    const counted = oneRange(page.filter) !== undefined;
    const finish = (first: Part): Awaitable<PacketTexts> => {
      const { text, octets, count, included, last, more, total } = first;
      const whole = Number(included) === Number(count) && Number(octets ?? 0) <= maxPageBytes && (limit === page.limit || more === 0);
      // Most pages are one part and need no further query.
      if (whole && counted)
        return { text: text ?? '', octets: Number(octets), last: last ?? page.after, more: more === 1, total: Number(total) };
      return Promise.all([
        readRest(tenant, page, { first, limit, inLane, readLarge }),
        counted ? Number(total) : totalOf(tenant, page.filter, inLane),
      ]).then(([read, total]) => {
        if ('fitting' in read) throw pageTooLarge(read.fitting);
        return { ...read, total };
      });
    };
    return andThen(part(tenant, { ...page, limit }, inLane), finish);
  }

  /** The packets of a page, read part by part and encoded. */
  async function largePage(tenant: number, page: PacketPage, inLane: InLane): Promise<LargePage> {
    const limit = Math.min(partLimit, page.limit);
    const first = await part(tenant, { ...page, limit }, inLane);
    const read = await readRest(tenant, page, { first, limit, inLane, readLarge: undefined });
    return 'fitting' in read ? read : { ...read, text: Buffer.from(read.text) };
  }

  return { page, largePage };
}

/** The single indexed column of a filter, or none; undefined when the filter is more complex. */
function shortFilter(filter: PacketFilter): { column?: IndexedColumn; value?: string } | undefined {
  const { statuses, ...others } = filter;
  const named = [...(statuses === undefined ? [] : ['status']), ...Object.keys(others)];
  if (named.length === 0) return {};
  const [name] = named;
  if (named.length > 1 || name === undefined || !(name in indexed)) return undefined;
  if (name === 'status') return statuses?.length === 1 ? { column: 'status', value: statuses[0]! } : undefined;
  return { column: indexed[name as keyof typeof indexed], value: filter[name as 'source_agent'] ?? '' };
}
