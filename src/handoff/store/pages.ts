import { type Kysely, type SelectQueryBuilder, sql } from 'kysely';

import { bound, type Database } from '../../kit/sql/dialect.ts';
import { matches, type PacketFilter, shortText, wholeText } from './packets.ts';
import type { Tables } from './tables.ts';

/** A page of a list that is asked for. */
export interface PacketPage {
  readonly filter: PacketFilter;
  readonly limit: number;
  readonly offset: number;
  /** The id of the last packet of the page before. */
  readonly after?: string;
  /** Whole packets instead of summaries. */
  readonly full: boolean;
}

/** A run of packets in a list's order: their JSON texts, joined by commas. */
interface Part {
  /** Null when there is nothing to tell. Large packets are left out where many are read. */
  text: string | null;
  /** How many packets there are, and how many of them are in the text. */
  count: number;
  told: number;
  /** The id of the last. */
  last: string;
}

/** A page of packets. */
export interface PacketTexts {
  /** The packets' JSON texts, joined by commas. */
  readonly text: string;
  /** The id of the last packet; undefined when there is none. */
  readonly last: string | undefined;
  readonly more: boolean;
}

/** Pages that begin deeper than this are read off this thread: every row passed over costs. */
const shallowOffset = 1000;

/** How many packets are read at once. */
const partLimit = 50;

/** Packets of more bytes than this are read a few at once: a text of fifty of the largest could not be held. */
const largeBytes = 65_536;
const few = 4;

/** The most characters of one page, unless its first packet alone has more. */
const maxPageLength = 16 * 1024 * 1024;

const indexed = { status: 'status', source_agent: 'source_agent', target_agent: 'target_agent', priority: 'priority' } as const;
type IndexedColumn = keyof typeof indexed;
type Query = SelectQueryBuilder<Tables, 'packets', unknown>;

type PageParams = { tenant_id: string; value: string; after: string; limit: number; offset: number };

/** The packets that the query leads to, whole or in short: id and JSON text. */
function textsOf(query: Query, { full, fewer }: { full: boolean; fewer: boolean }) {
  const text = full ? wholeText : shortText;
  const bytes = full
    ? sql`octet_length(packets.state) + octet_length(contents.content)`
    : sql`octet_length(packets.state) + octet_length(packets.digest)`;
  const told = fewer ? text : sql<string | null>`case when ${bytes} <= ${sql.lit(largeBytes)} then ${text} end`;
  if (!full) return query.select(['packets.id', told.as('text')]);
  return query
    .innerJoin('contents', (join) =>
      join.onRef('contents.tenant_id', '=', 'packets.tenant_id').onRef('contents.packet_id', '=', 'packets.id'),
    )
    .select(['packets.id', told.as('text')]);
}

/** Reading lists, newest first: the order of ids, downwards, in every index. */
export function createPageReads(database: Database<Tables>) {
  // One text for all is much cheaper to hand over than a row each. The rows come in the order of the inner query.
  const joined = (db: Kysely<Tables>, rows: ReturnType<typeof textsOf>) =>
    db
      .selectFrom(rows.as('rows'))
      .select([
        sql<string | null>`string_agg(text, ',')`.as('text'),
        sql<number>`count(*)`.as('count'),
        sql<number>`count(text)`.as('told'),
        sql<string>`min(id)`.as('last'),
      ]);

  // The pages people mostly ask for: one index answers them, from the right place, so they are compiled once.
  const shortPages = new Map<string, ReturnType<typeof shortPage>>();
  const ofColumn = (db: Kysely<Tables>, params: PageParams, column: IndexedColumn | undefined): Query => {
    const query = db.selectFrom('packets').where('packets.tenant_id', '=', params.tenant_id);
    return column === undefined ? query : query.where(`packets.${column}`, '=', params.value);
  };
  function shortPage(column: IndexedColumn | undefined, paged: boolean, shape: { full: boolean; fewer: boolean }) {
    return database.query<PageParams, Part>((db, params) => {
      let query = ofColumn(db, params, column);
      if (paged) query = query.where('packets.id', '<', params.after);
      return joined(db, textsOf(query.orderBy('packets.id', 'desc').limit(bound(params.limit)).offset(bound(params.offset)), shape));
    });
  }

  const nextOnes = new Map<string, ReturnType<typeof nextOne>>();
  function nextOne(column: IndexedColumn | undefined) {
    return database.query<PageParams, { id: string }>((db, params) =>
      ofColumn(db, params, column)
        .where('packets.id', '<', params.after)
        .select('packets.id')
        .orderBy('packets.id', 'desc')
        .limit(sql.lit(1)),
    );
  }

  /** Whether the page goes on behind a packet. */
  async function goesOn(tenantId: string, page: PacketPage, after: string): Promise<boolean> {
    const short = shortFilter(page.filter);
    if (short === undefined) return Number((await part(tenantId, { ...page, limit: 1, offset: 0, after, full: false })).count) > 0;
    const query = nextOnes.get(`${short.column}`) ?? nextOne(short.column);
    nextOnes.set(`${short.column}`, query);
    return (await query.first({ tenant_id: tenantId, value: short.value ?? '', after, limit: 1, offset: 0 })) !== undefined;
  }

  async function part(tenantId: string, { filter, limit, offset, after, full }: PacketPage): Promise<Part> {
    const short = shortFilter(filter);
    const shape = { full, fewer: limit <= few };
    if (short !== undefined && offset <= shallowOffset) {
      const key = `${short.column} ${after !== undefined} ${full} ${shape.fewer}`;
      const query = shortPages.get(key) ?? shortPage(short.column, after !== undefined, shape);
      shortPages.set(key, query);
      return (await query.first({ tenant_id: tenantId, value: short.value ?? '', after: after ?? '', limit, offset }))!;
    }
    const { longReads } = database;
    let query: Query = longReads.selectFrom('packets').where(matches(tenantId, filter));
    if (after !== undefined) query = query.where('packets.id', '<', after);
    return joined(longReads, textsOf(query.orderBy('packets.id', 'desc').limit(limit).offset(offset), shape)).executeTakeFirstOrThrow();
  }

  /** A page, read in parts until there are enough packets or they are too large together: then `more` leads to the rest. */
  async function page(tenantId: string, page: PacketPage): Promise<PacketTexts> {
    const texts: string[] = [];
    let size = 0;
    let left = page.limit;
    let rest: PacketPage = page;
    for (let limit = Math.min(partLimit, left); left > 0; limit = Math.min(limit, left)) {
      const { text, count, told, last } = await part(tenantId, { ...rest, limit });
      if (Number(count) === 0) return { text: texts.join(','), last: rest.after, more: false };
      const length = text?.length ?? 0;
      const tooLarge = size + length > maxPageLength;
      if (limit > 1 && (tooLarge || Number(told) < Number(count))) {
        limit = limit > few ? few : 1;
        continue;
      }
      if (tooLarge && texts.length > 0) return { text: texts.join(','), last: rest.after, more: true };
      texts.push(text!);
      size += length;
      left -= Number(count);
      rest = { ...page, offset: 0, after: last };
      if (Number(count) < limit) return { text: texts.join(','), last, more: false };
    }
    const last = rest.after!;
    return { text: texts.join(','), last, more: await goesOn(tenantId, page, last) };
  }

  return { page };
}

/** The one indexed column a filter names, or none; undefined when the filter asks for more. */
function shortFilter(filter: PacketFilter): { column?: IndexedColumn; value?: string } | undefined {
  const { statuses, ...others } = filter;
  const named = [...(statuses === undefined ? [] : ['status']), ...Object.keys(others)];
  if (named.length === 0) return {};
  const [column] = named;
  if (named.length > 1 || column === undefined || !(column in indexed)) return undefined;
  if (column === 'status') return statuses?.length === 1 ? { column, value: statuses[0]! } : undefined;
  return { column: column as IndexedColumn, value: filter[column as 'source_agent'] ?? '' };
}
