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
  /** Null when there are none. */
  text: string | null;
  count: number;
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

/** The most characters of one page, unless its first packet alone has more. */
const maxPageLength = 16 * 1024 * 1024;

const indexed = { status: 'status', source_agent: 'source_agent', target_agent: 'target_agent', priority: 'priority' } as const;
type IndexedColumn = keyof typeof indexed;
type Query = SelectQueryBuilder<Tables, 'packets', unknown>;

type PageParams = { tenant_id: string; value: string; after: string; limit: number; offset: number };

/** The packets that the query leads to, whole or in short: id and JSON text. */
function textsOf(query: Query, whole: boolean) {
  if (!whole) return query.select(['packets.id', shortText.as('text')]);
  return query
    .innerJoin('contents', (join) =>
      join.onRef('contents.tenant_id', '=', 'packets.tenant_id').onRef('contents.packet_id', '=', 'packets.id'),
    )
    .select(['packets.id', wholeText.as('text')]);
}

/** Reading lists, newest first: the order of ids, downwards, in every index. */
export function createPageReads(database: Database<Tables>) {
  // One text for all is much cheaper to hand over than a row each. The rows come in the order of the inner query.
  const joined = (db: Kysely<Tables>, rows: ReturnType<typeof textsOf>) =>
    db
      .selectFrom(rows.as('rows'))
      .select([sql<string | null>`string_agg(text, ',')`.as('text'), sql<number>`count(*)`.as('count'), sql<string>`min(id)`.as('last')]);

  // The pages people mostly ask for: one index answers them, from the right place, so they are compiled once.
  const shortPages = new Map<string, ReturnType<typeof shortPage>>();
  const ofColumn = (db: Kysely<Tables>, params: PageParams, column: IndexedColumn | undefined): Query => {
    const query = db.selectFrom('packets').where('packets.tenant_id', '=', params.tenant_id);
    return column === undefined ? query : query.where(`packets.${column}`, '=', params.value);
  };
  function shortPage(column: IndexedColumn | undefined, paged: boolean, full: boolean) {
    return database.query<PageParams, Part>((db, params) => {
      let query = ofColumn(db, params, column);
      if (paged) query = query.where('packets.id', '<', params.after);
      return joined(db, textsOf(query.orderBy('packets.id', 'desc').limit(bound(params.limit)).offset(bound(params.offset)), full));
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
    if (short === undefined) return (await part(tenantId, { ...page, limit: 1, offset: 0, after, full: false })).text !== null;
    const query = nextOnes.get(`${short.column}`) ?? nextOne(short.column);
    nextOnes.set(`${short.column}`, query);
    return (await query.first({ tenant_id: tenantId, value: short.value ?? '', after, limit: 1, offset: 0 })) !== undefined;
  }

  async function part(tenantId: string, { filter, limit, offset, after, full }: PacketPage): Promise<Part> {
    const short = shortFilter(filter);
    if (short !== undefined && offset <= shallowOffset) {
      const key = `${short.column} ${after !== undefined} ${full}`;
      const query = shortPages.get(key) ?? shortPage(short.column, after !== undefined, full);
      shortPages.set(key, query);
      return (await query.first({ tenant_id: tenantId, value: short.value ?? '', after: after ?? '', limit, offset }))!;
    }
    const { longReads } = database;
    let query: Query = longReads.selectFrom('packets').where(matches(tenantId, filter));
    if (after !== undefined) query = query.where('packets.id', '<', after);
    return joined(longReads, textsOf(query.orderBy('packets.id', 'desc').limit(limit).offset(offset), full)).executeTakeFirstOrThrow();
  }

  /** A page, read in parts until there are enough packets or they are too large together: then `more` leads to the rest. */
  async function page(tenantId: string, page: PacketPage): Promise<PacketTexts> {
    const texts: string[] = [];
    let size = 0;
    let left = page.limit;
    let rest: PacketPage = page;
    for (let limit = Math.min(partLimit, left); left > 0; limit = Math.min(limit, left)) {
      const { text, count, last } = await part(tenantId, { ...rest, limit });
      if (text === null) return { text: texts.join(','), last: rest.after, more: false };
      if (size + text.length > maxPageLength && (limit > 1 || texts.length > 0)) {
        if (limit === 1) return { text: texts.join(','), last: rest.after, more: true };
        limit = limit >> 1;
        continue;
      }
      texts.push(text);
      size += text.length;
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
