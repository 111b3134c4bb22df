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

const indexed = { status: 'status', source_agent: 'source_agent', target_agent: 'target_agent' } as const;
type IndexedColumn = keyof typeof indexed;
type PageParams = { tenant_id: string; value: string; after: string; limit: number; offset: number };

/** Reading packets. Ids begin with the time, so newest first is the order of ids, downwards, in every index. */
export function createPacketReads(database: Database<Tables>) {
  const byId = database.query<{ tenant_id: string; id: string }, PacketText>((db, { tenant_id, id }) =>
    db.selectFrom('packets').select(['packet', 'revision']).where('tenant_id', '=', tenant_id).where('id', '=', id),
  );
  const counts = database.query<{ tenant_id: string }, { name: string; value: number }>((db, { tenant_id }) =>
    db
      .selectFrom('counters')
      .select(['name', 'value'])
      .where('tenant_id', '=', tenant_id)
      .where('name', '>=', 'packets:')
      .where('name', '<', 'packets;'),
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

  /** Exact: from the counters kept with every change where they know, else counted. */
  async function total(tenantId: string, filter: PacketFilter): Promise<number> {
    const { statuses, ...others } = filter;
    if (Object.keys(others).length === 0) {
      const all = await counts.all({ tenant_id: tenantId });
      const wanted = statuses === undefined ? all : all.filter(({ name }) => statuses.includes(name.slice('packets:'.length) as Status));
      return wanted.reduce((sum, { value }) => sum + value, 0);
    }
    const { count } = await database.longReads
      .selectFrom('packets')
      .select(sql<number>`count(*)`.as('count'))
      .where(matches(tenantId, filter))
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  return {
    find: (tenantId: string, id: string) => byId.first({ tenant_id: tenantId, id }),
    async page(tenantId: string, page: PacketPage): Promise<{ texts: string[]; last: string | undefined; more: boolean; total: number }> {
      const [found, count] = await Promise.all([rows(tenantId, page), total(tenantId, page.filter)]);
      const shown = found.slice(0, page.limit);
      return { texts: shown.map(({ text }) => text), last: shown.at(-1)?.id, more: found.length > page.limit, total: count };
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
        .innerJoin('packets', 'packets.tenant_id', 'tenants.id')
        .select(['packets.tenant_id', 'packets.id'])
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
    if (hitl_required !== undefined) conditions.push(eb('packets.hitl_required', '=', hitl_required ? 1 : 0));
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
