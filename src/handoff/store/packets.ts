import type { Expression, SqlBool } from 'kysely';
import { sql } from 'kysely';

import { lowestIdAt } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
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

/** A row of a page: its id, and the JSON text that goes out. */
interface PageRow {
  id: string;
  text: string;
}

/** Pages that begin deeper than this are read off this thread: every row passed over costs. */
const shallowOffset = 1000;

/** How many rows are read at once. */
const partLimit = 50;

/** The most characters of one page, unless its first packet alone has more. */
const maxPageLength = 16 * 1024 * 1024;

const indexed = { status: 'status', source_agent: 'source_agent', target_agent: 'target_agent', priority: 'priority' } as const;
type IndexedColumn = keyof typeof indexed;
interface Counter {
  name: string;
  value: number;
}

type PageParams = { tenant_id: string; value: string; after: string; limit: number; offset: number };

/** Reading packets. Ids begin with the time, so newest first is the order of ids, downwards, in every index. */
export function createPacketReads(database: Database<Tables>) {
  const byId = database.query<{ tenant_id: string; id: string }, PacketText>((db, { tenant_id, id }) =>
    db.selectFrom('packets').select(['packet', 'revision']).where('tenant_id', '=', tenant_id).where('id', '=', id),
  );
  const counts = database.query<{ tenant_id: string }, Counter>((db, { tenant_id }) =>
    db
      .selectFrom('counters')
      .select(['name', 'value'])
      .where('tenant_id', '=', tenant_id)
      .where('name', '>=', 'hitl:')
      .where('name', '<', 'priority;'),
  );

  // The pages people mostly ask for: one index answers them, from the right place, so they are compiled once.
  const shortPages = new Map<string, ReturnType<typeof shortPage>>();
  function shortPage(column: IndexedColumn | undefined, paged: boolean, full: boolean) {
    return database.query<PageParams, PageRow>((db, params) => {
      let query = db
        .selectFrom('packets')
        .select(['id', full ? 'packet as text' : 'summary as text'])
        .where('tenant_id', '=', params.tenant_id);
      if (column !== undefined) query = query.where(column, '=', params.value);
      if (paged) query = query.where('id', '<', params.after);
      return query.orderBy('id', 'desc').limit(params.limit).offset(params.offset);
    });
  }

  async function rows(tenantId: string, { filter, limit, offset, after, full }: PacketPage): Promise<PageRow[]> {
    const short = shortFilter(filter);
    // One row more than asked for tells whether there is a next page.
    if (short !== undefined && offset <= shallowOffset) {
      const key = `${short.column} ${after !== undefined} ${full}`;
      const query = shortPages.get(key) ?? shortPage(short.column, after !== undefined, full);
      shortPages.set(key, query);
      return query.all({ tenant_id: tenantId, value: short.value ?? '', after: after ?? '', limit: limit + 1, offset });
    }
    let query = database.longReads
      .selectFrom('packets')
      .select(['id', full ? 'packet as text' : 'summary as text'])
      .where(matches(tenantId, filter));
    if (after !== undefined) query = query.where('id', '<', after);
    return query
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .offset(offset)
      .execute();
  }

  /** The rows of a page, read in parts, until there are enough or they are too large together. */
  async function boundedRows(tenantId: string, page: PacketPage): Promise<{ rows: PageRow[]; more: boolean }> {
    const found: PageRow[] = [];
    let size = 0;
    let part = page;
    for (;;) {
      const limit = Math.min(partLimit, page.limit - found.length);
      const next = await rows(tenantId, { ...part, limit });
      for (const row of next.slice(0, limit)) {
        if (found.length > 0 && size + row.text.length > maxPageLength) return { rows: found, more: true };
        found.push(row);
        size += row.text.length;
      }
      const more = next.length > limit;
      if (!more || found.length === page.limit) return { rows: found, more };
      part = { ...page, offset: 0, after: found.at(-1)!.id };
    }
  }

  /** Exact: from the counters kept with every change where they know, else counted. */
  async function total(tenantId: string, filter: PacketFilter): Promise<number> {
    const kept = countedBy(filter);
    if (kept !== undefined) return kept(await counts.all({ tenant_id: tenantId }));
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
    async page(tenantId: string, page: PacketPage): Promise<{ texts: string[]; last: string | undefined; more: boolean; total: number }> {
      const [found, count] = await Promise.all([boundedRows(tenantId, page), total(tenantId, page.filter)]);
      return { texts: found.rows.map(({ text }) => text), last: found.rows.at(-1)?.id, more: found.more, total: count };
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

/** How the counters give the total of a filter; undefined when they don't. */
function countedBy({ statuses, priority, hitl_required, ...others }: PacketFilter): ((counters: readonly Counter[]) => number) | undefined {
  const named = [statuses, priority, hitl_required].filter((value) => value !== undefined).length;
  if (named > 1 || Object.keys(others).length > 0) return undefined;
  const sum = (counters: readonly Counter[], wanted: (name: string) => boolean) =>
    counters.reduce((total, { name, value }) => (wanted(name) ? total + value : total), 0);
  const isPacket = (name: string) => name.startsWith('packets:');
  const isRequired = (name: string) => name === 'hitl:required';
  if (statuses !== undefined)
    return (counters) => sum(counters, (name) => isPacket(name) && statuses.includes(name.slice('packets:'.length)));
  if (priority !== undefined) return (counters) => sum(counters, (name) => name === `priority:${priority}`);
  if (hitl_required === true) return (counters) => sum(counters, isRequired);
  if (hitl_required === false) return (counters) => sum(counters, isPacket) - sum(counters, isRequired);
  return (counters) => sum(counters, isPacket);
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
