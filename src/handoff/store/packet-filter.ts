import { type Expression, type ExpressionBuilder, type Kysely, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';

import { lowestIdAt } from '../../kit/id.ts';
import { type Sight, seenTargets } from '../rules/sight.ts';
import type { Tables } from './tables.ts';

/** A filter for a tenant's packets. */
export interface PacketFilter {
  readonly statuses?: readonly string[];
  readonly source_agent?: string;
  readonly target_agent?: string;
  readonly tags?: readonly string[];
  readonly priority?: string;
  /** The digest of the id of a person whose data it holds (`subjectDigest`). */
  readonly subject_digest?: string;
  readonly hitl_required?: boolean;
  readonly created_after?: Date;
  readonly created_before?: Date;
  /** The agent that holds it or held it last. */
  readonly claimed_by?: string;
  readonly parent_packet_id?: string;
  readonly updated_after?: Date;
  readonly updated_before?: Date;
  /** Whether its `not_before` is still to come. */
  readonly scheduled?: boolean;
  /** Whether it is open and overdue. */
  readonly overdue?: boolean;
  readonly due_before?: Date;
  /** What the caller sees. */
  readonly seen_by?: Sight;
}

/** A filter that also leaves out what a caller does not see. */
export const seenOf = (filter: PacketFilter, sight: Sight | undefined): PacketFilter =>
  sight === undefined ? filter : { ...filter, seen_by: sight };

/**
 * The condition of a filter, beginning with the tenant.
 * @param tagsPerPacket whether tags and subjects are checked packet by packet, for queries that start from another table
 */
export function matches(tenant: number, filter: PacketFilter, { tagsPerPacket = false } = {}) {
  return (eb: ExpressionBuilder<Tables, 'packets'>): Expression<SqlBool> => {
    const { statuses, source_agent, target_agent, tags = [], priority, hitl_required, created_after, created_before } = filter;
    const { claimed_by, parent_packet_id, updated_after, updated_before, scheduled, overdue, due_before } = filter;
    const conditions = [eb('packets.tenant', '=', tenant)];
    if (scheduled !== undefined) conditions.push(eb('packets.scheduled_at', scheduled ? 'is not' : 'is', null));
    if (overdue !== undefined) conditions.push(overdue ? eb('packets.overdue', '=', sql.lit(1)) : eb('packets.overdue', 'is', null));
    if (due_before !== undefined) conditions.push(eb('packets.deadline', '<=', due_before.toISOString()));
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
    if (filter.seen_by !== undefined) {
      const { agents } = filter.seen_by;
      // As `isSeen` decides.
      conditions.push(
        eb.or([
          eb('packets.source_agent', 'in', [...agents]),
          eb('packets.target_agent', 'in', [...seenTargets(filter.seen_by)]),
          eb('packets.claimed_by', 'in', [...agents]),
        ]),
      );
    }
    if (filter.subject_digest !== undefined) {
      const about = eb
        .selectFrom('packet_subjects')
        .select('packet_id')
        .where('packet_subjects.tenant', '=', tenant)
        .where('packet_subjects.subject_digest', '=', filter.subject_digest);
      conditions.push(
        tagsPerPacket ? eb.exists(about.whereRef('packet_subjects.packet_id', '=', 'packets.id')) : eb('packets.id', 'in', about),
      );
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

/** The most walks of indexes of which a list is made. */
const maxWalks = 12;

/**
 * The packets of a filter, as queries each of which follows one index in the order of ids. What a caller sees is a union of them, in
 * which a packet may occur several times: with a condition that names three columns, SQLite and PostgreSQL would read all packets of
 * the tenant for a caller who sees few.
 */
export function walksOf(db: Kysely<Tables>, tenant: number, filter: PacketFilter): SelectQueryBuilder<Tables, 'packets', unknown>[] {
  const { seen_by, ...others } = filter;
  const walk = (one: PacketFilter) => db.selectFrom('packets').where(matches(tenant, one));
  if (seen_by === undefined) return [walk(filter)];
  const targets = seenTargets(seen_by);
  if (2 * seen_by.agents.length + targets.length > maxWalks) return [walk(filter)];
  return [
    ...seen_by.agents.map((agent) => walk(others).where('packets.source_agent', '=', agent)),
    ...targets.map((agent) => walk(others).where('packets.target_agent', '=', agent)),
    ...seen_by.agents.map((agent) => walk(others).where('packets.claimed_by', '=', agent)),
  ];
}
