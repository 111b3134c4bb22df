import type { Expression, Kysely, SelectQueryBuilder, SqlBool } from 'kysely';
import { sql } from 'kysely';

import { lowestIdAt } from '../../kit/id.ts';
import { bound, type Database } from '../../kit/sql/dialect.ts';
import type { Status } from '../model/common.ts';
import type { Tables } from './tables.ts';

/** Which of a tenant's packets are meant. */
export interface PacketFilter {
  readonly statuses?: readonly string[];
  readonly source_agent?: string;
  readonly target_agent?: string;
  readonly tags?: readonly string[];
  readonly priority?: string;
  readonly hitl_required?: boolean;
  readonly created_after?: Date;
  readonly created_before?: Date;
}

export interface PacketPage {
  readonly filter: PacketFilter;
  readonly limit: number;
  readonly offset: number;
  /** The id of the last packet of the page before. */
  readonly after?: string;
  /** Whole packets instead of summaries. */
  readonly full: boolean;
}

/** A packet as text, and what an answer needs beside it. */
export interface PacketText {
  packet: string;
  revision: number;
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

/** The JSON text of a packet as lists show it, put together where it is read. */
export const shortText = sql<string>`'{' || packets.state || ',' || packets.digest || '}'`;
const wholeText = sql<string>`'{' || packets.state || ',' || contents.content || '}'`;

/** The packets that the query leads to, whole or in short: id and JSON text. */
function textsOf(query: Query, whole: boolean) {
  if (!whole) return query.select(['packets.id', shortText.as('text')]);
  return query
    .innerJoin('contents', (join) =>
      join.onRef('contents.tenant_id', '=', 'packets.tenant_id').onRef('contents.packet_id', '=', 'packets.id'),
    )
    .select(['packets.id', wholeText.as('text')]);
}

type PageParams = { tenant_id: string; value: string; after: string; limit: number; offset: number };

/** Reading packets. Ids begin with the time, so newest first is the order of ids, downwards, in every index. */
export function createPacketReads(database: Database<Tables>) {
  const byId = database.query<{ tenant_id: string; id: string }, PacketText>((db, { tenant_id, id }) =>
    textsOf(db.selectFrom('packets').where('packets.tenant_id', '=', tenant_id).where('packets.id', '=', id), true)
      .clearSelect()
      .select([wholeText.as('packet'), 'packets.revision']),
  );
  const sum = database.query<{ tenant_id: string; from: string; to: string }, { sum: number }>((db, { tenant_id, from, to }) =>
    db
      .selectFrom('counters')
      .select(sql<number>`coalesce(sum(value), 0)`.as('sum'))
      .where('tenant_id', '=', tenant_id)
      .where('name', '>=', from)
      .where('name', '<=', to),
  );

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

  /** A page, read in parts until there are enough packets or they are too large together. */
  async function boundedPage(tenantId: string, page: PacketPage): Promise<PacketTexts> {
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

  /** Exact: from the counters kept with every change where they know, else counted. */
  async function total(tenantId: string, filter: PacketFilter): Promise<number> {
    const kept = countedBy(filter);
    if (kept === undefined) return counted(tenantId, filter);
    let all = 0;
    for (const { from, to, sign } of kept) all += sign * Number((await sum.first({ tenant_id: tenantId, from, to }))!.sum);
    return all;
  }

  async function counted(tenantId: string, filter: PacketFilter): Promise<number> {
    const { count } = await database.longReads
      .selectFrom('packets')
      .select(sql<number>`count(*)`.as('count'))
      .where(matches(tenantId, filter))
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  return {
    find: (tenantId: string, id: string) => byId.first({ tenant_id: tenantId, id }),
    /** A page, and how many packets there are. A page of very large packets ends early: `more` leads to the rest. */
    async page(tenantId: string, page: PacketPage): Promise<PacketTexts & { total: number }> {
      const [found, count] = await Promise.all([boundedPage(tenantId, page), total(tenantId, page.filter)]);
      return { ...found, total: count };
    },
    /** Packets of any tenant that a sweeper must look at, earliest first. */
    due: (now: Date, limit: number) =>
      database.reads
        .selectFrom('packets')
        .select(['tenant_id', 'id'])
        .where('due_at', 'is not', null)
        .where('due_at', '<=', now.toISOString())
        .orderBy('due_at')
        .limit(limit)
        .execute(),
    /** Packets of any tenant that are still `created` and were made before the moment, oldest first in each tenant. */
    unclaimed: (before: Date, limit: number) =>
      database.longReads
        .selectFrom('tenants')
        // Crossed, so that SQLite goes tenant by tenant through the index and does not scan all of it.
        .crossJoin('packets')
        .select(['packets.tenant_id', 'packets.id'])
        .whereRef('packets.tenant_id', '=', 'tenants.id')
        .where('packets.status', '=', 'created')
        .where('packets.id', '<', lowestIdAt(before))
        .limit(limit)
        .execute(),
    /** How many packets of all tenants are in these statuses. */
    async countInStatuses(statuses: readonly Status[]): Promise<number> {
      const names = statuses.map((status) => `packets:${status}`);
      const row = await database.reads
        .selectFrom('counters')
        .select(sql<number>`coalesce(sum(value), 0)`.as('count'))
        .where('name', 'in', names)
        .executeTakeFirstOrThrow();
      return Number(row.count);
    },
  };
}

/** Counters whose names lie between two names, both included, to be added or taken off. */
interface Counters {
  from: string;
  to: string;
  sign: 1 | -1;
}

const counter = (name: string): Counters => ({ from: name, to: name, sign: 1 });
const allPackets: Counters = { from: 'packets:', to: 'packets:~', sign: 1 };

/** The counters that give the total of a filter; undefined when they don't. */
function countedBy({ statuses, priority, hitl_required, ...others }: PacketFilter): Counters[] | undefined {
  const named = [statuses, priority, hitl_required].filter((value) => value !== undefined).length;
  if (named > 1 || Object.keys(others).length > 0) return undefined;
  if (statuses !== undefined) return statuses.map((status) => counter(`packets:${status}`));
  if (priority !== undefined) return [counter(`priority:${priority}`)];
  if (hitl_required === true) return [counter('hitl:required')];
  if (hitl_required === false) return [allPackets, { ...counter('hitl:required'), sign: -1 }];
  return [allPackets];
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

/** The condition of a filter, the tenant's first. */
export function matches(tenantId: string, filter: PacketFilter) {
  return (eb: import('kysely').ExpressionBuilder<Tables, 'packets'>): Expression<SqlBool> => {
    const { statuses, source_agent, target_agent, tags = [], priority, hitl_required, created_after, created_before } = filter;
    const conditions = [eb('packets.tenant_id', '=', tenantId)];
    if (statuses !== undefined) conditions.push(eb('packets.status', 'in', [...statuses]));
    if (source_agent !== undefined) conditions.push(eb('packets.source_agent', '=', source_agent));
    if (target_agent !== undefined) conditions.push(eb('packets.target_agent', '=', target_agent));
    if (priority !== undefined) conditions.push(eb('packets.priority', '=', priority));
    if (hitl_required !== undefined) conditions.push(eb('packets.hitl_required', '=', sql.lit(hitl_required ? 1 : 0)));
    if (created_after !== undefined) conditions.push(eb('packets.id', '>=', lowestIdAt(created_after)));
    // At or before: everything below the next millisecond.
    if (created_before !== undefined) conditions.push(eb('packets.id', '<', lowestIdAt(new Date(created_before.getTime() + 1))));
    for (const tag of tags) {
      const tagged = eb
        .selectFrom('packet_tags')
        .select('packet_id')
        .where('packet_tags.tenant_id', '=', tenantId)
        .where('packet_tags.tag', '=', tag);
      conditions.push(eb('packets.id', 'in', tagged));
    }
    return eb.and(conditions);
  };
}
