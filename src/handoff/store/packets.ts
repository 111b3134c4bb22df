import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely';

import { lowestIdAt } from '../../kit/id.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import type { Status } from '../model/common.ts';
import { statuses } from '../model/words.ts';
import type { Tables } from './tables.ts';

/** A filter for a tenant's packets. */
export interface PacketFilter {
  readonly statuses?: readonly string[];
  readonly source_agent?: string;
  readonly target_agent?: string;
  readonly tags?: readonly string[];
  readonly priority?: string;
  readonly hitl_required?: boolean;
  readonly created_after?: Date;
  readonly created_before?: Date;
  /** The agent that holds it or held it last. */
  readonly claimed_by?: string;
  readonly parent_packet_id?: string;
  readonly updated_after?: Date;
  readonly updated_before?: Date;
}

/** A packet's JSON text and its revision. */
export interface PacketText {
  packet: string;
  revision: number;
}

/** SQL for the JSON text of a packet's summary, as lists show it. */
export const shortText = sql<string>`packets.state || packets.digest`;
/** SQL for the JSON text of a whole packet. */
export const wholeText = sql<string>`packets.state || contents.content`;

/** SQL for the time a packet's question was asked. `state` is the beginning of a JSON object and ends with a comma. */
const askedAt = (database: Database<Tables>) =>
  database.name === 'sqlite'
    ? sql<string | null>`json_extract(rtrim(packets.state, ',') || '}', '$.hitl.requested_at')`
    : sql<string | null>`(rtrim(packets.state, ',') || '}')::json #>> '{hitl,requested_at}'`;

/** Reads packets. Ids begin with the creation time, so newest first is the descending order of ids in every index. */
export function createPacketReads(database: Database<Tables>) {
  const byId = database.query<{ tenant: number; id: string }, PacketText>((db, { tenant, id }) =>
    db
      .selectFrom('packets')
      .innerJoin('contents', 'contents.packet', 'packets.seq')
      .select([wholeText.as('packet'), 'packets.revision'])
      .where('packets.tenant', '=', tenant)
      .where('packets.id', '=', id),
  );
  return {
    find: (tenant: number, id: string) => byId.first({ tenant, id }),
    /** Packets of all tenants whose `due_at` has passed, earliest first. */
    due: (now: Date, limit: number) =>
      database.reads
        .selectFrom('packets')
        .select(['tenant', 'id'])
        .where('due_at', 'is not', null)
        .where('due_at', '<=', now.toISOString())
        .orderBy('due_at')
        .limit(limit)
        .execute(),
    /** Packets of all tenants that are still `created` and were created before `before`, oldest first in each tenant. */
    unclaimed: (before: Date, limit: number) =>
      database.longReads
        .selectFrom('tenants')
        // Crossed, so that SQLite goes tenant by tenant through the index and does not scan all of it.
        .crossJoin('packets')
        .select(['packets.tenant', 'packets.id'])
        .whereRef('packets.tenant', '=', 'tenants.number')
        .where('packets.status', '=', 'created')
        .where('packets.id', '<', lowestIdAt(before))
        .limit(limit)
        .execute(),
    /** The number of packets of all tenants, by status. */
    async countByStatus(): Promise<Record<Status, number>> {
      const rows = await database.longReads
        .selectFrom('tenants')
        // Crossed, so that SQLite goes tenant by tenant through the key and does not scan all counters.
        .crossJoin('counters')
        .select(['counters.name', sql<number>`sum(value)`.as('count')])
        .whereRef('counters.tenant', '=', 'tenants.number')
        .where('counters.name', '>=', 'packets:')
        .where('counters.name', '<', 'packets;')
        .groupBy('counters.name')
        .execute();
      const counts = new Map(rows.map(({ name, count }) => [name, Number(count)]));
      return Object.fromEntries(statuses.map((status) => [status, counts.get(`packets:${status}`) ?? 0])) as Record<Status, number>;
    },
    /** When the oldest unanswered question of all tenants was asked; undefined when there is none. */
    async oldestQuestion(): Promise<string | undefined> {
      const row = await database.longReads
        .selectFrom('tenants')
        // Crossed, so that SQLite goes tenant by tenant through the index and does not scan all of it.
        .crossJoin('packets')
        .select(sql<string | null>`min(${askedAt(database)})`.as('asked'))
        .whereRef('packets.tenant', '=', 'tenants.number')
        .where('packets.status', '=', 'awaiting_human')
        .executeTakeFirst();
      return row?.asked ?? undefined;
    },
  };
}

/**
 * The condition of a filter, beginning with the tenant.
 * @param tagsPerPacket whether tags are checked packet by packet, for queries that start from another table
 */
export function matches(tenant: number, filter: PacketFilter, { tagsPerPacket = false } = {}) {
  return (eb: ExpressionBuilder<Tables, 'packets'>): Expression<SqlBool> => {
    const { statuses, source_agent, target_agent, tags = [], priority, hitl_required, created_after, created_before } = filter;
    const { claimed_by, parent_packet_id, updated_after, updated_before } = filter;
    const conditions = [eb('packets.tenant', '=', tenant)];
    if (statuses !== undefined) conditions.push(eb('packets.status', 'in', [...statuses]));
    if (source_agent !== undefined) conditions.push(eb('packets.source_agent', '=', source_agent));
    if (target_agent !== undefined) conditions.push(eb('packets.target_agent', '=', target_agent));
    if (priority !== undefined) conditions.push(eb('packets.priority', '=', priority));
    if (hitl_required !== undefined) conditions.push(eb('packets.hitl_required', '=', sql.lit(hitl_required ? 1 : 0)));
    if (created_after !== undefined) conditions.push(eb('packets.id', '>=', lowestIdAt(created_after)));
    // `created_before` is inclusive: everything below the next millisecond.
    if (created_before !== undefined) conditions.push(eb('packets.id', '<', lowestIdAt(new Date(created_before.getTime() + 1))));
    if (claimed_by !== undefined) conditions.push(eb('packets.claimed_by', '=', claimed_by));
    if (parent_packet_id !== undefined) conditions.push(eb('packets.parent', '=', parent_packet_id));
    if (updated_after !== undefined) conditions.push(eb('packets.updated_at', '>=', updated_after.toISOString()));
    if (updated_before !== undefined) {
      conditions.push(eb('packets.updated_at', '<=', updated_before.toISOString()));
      // A packet last updated by then was also created by then, and an index covers the creation time.
      conditions.push(eb('packets.id', '<', lowestIdAt(new Date(updated_before.getTime() + 1))));
    }
    for (const tag of tags) {
      const tagged = eb
        .selectFrom('packet_tags')
        .select('packet_id')
        .where('packet_tags.tenant', '=', tenant)
        .where('packet_tags.tag', '=', tag);
      conditions.push(
        tagsPerPacket ? eb.exists(tagged.whereRef('packet_tags.packet_id', '=', 'packets.id')) : eb('packets.id', 'in', tagged),
      );
    }
    return eb.and(conditions);
  };
}
