import { type ExpressionBuilder, sql } from 'kysely';

import { bound, type Database } from '../../kit/sql/dialect.ts';
import type { Tables } from './tables.ts';

/** An entry of the trail as it is stored; `details` is JSON text. */
export interface EventRow {
  id: string;
  packet_id: string | null;
  event_type: string;
  actor: string;
  resource: string;
  details: string;
  timestamp: string;
}

/** Which entries of a tenant's audit log are meant. */
export interface AuditFilter {
  readonly actor?: string;
  readonly action?: string;
  readonly packet_id?: string;
  readonly created_after?: Date;
  readonly created_before?: Date;
}

const columns = ['id', 'packet_id', 'event_type', 'actor', 'resource', 'details', 'timestamp'] as const;

/** The most events of one packet that its history shows: the latest. */
const maxHistory = 10_000;

/** Reading the trail: what happened to a packet, and the tenant's audit log, which is the same rows. */
export function createEventReads(database: Database<Tables>) {
  const ofPacket = database.query<{ tenant_id: string; packet_id: string; limit: number }, EventRow>(
    (db, { tenant_id, packet_id, limit }) =>
      db
        .selectFrom('events')
        .select(columns)
        .where('tenant_id', '=', tenant_id)
        .where('packet_id', '=', packet_id)
        .orderBy('seq', 'desc')
        .limit(bound(limit)),
  );
  const count = database.query<{ tenant_id: string }, { value: number }>((db, { tenant_id }) =>
    db.selectFrom('counters').select('value').where('tenant_id', '=', tenant_id).where('name', '=', 'events'),
  );

  async function total(tenantId: string, filter: AuditFilter): Promise<number> {
    if (Object.keys(filter).length === 0) return (await count.first({ tenant_id: tenantId }))?.value ?? 0;
    const row = await database.longReads
      .selectFrom('events')
      .select(sql<number>`count(*)`.as('count'))
      .where(matches(tenantId, filter))
      .executeTakeFirstOrThrow();
    return Number(row.count);
  }

  return {
    /** What happened to a packet, oldest first. */
    async history(tenantId: string, packetId: string): Promise<EventRow[]> {
      return (await ofPacket.all({ tenant_id: tenantId, packet_id: packetId, limit: maxHistory })).reverse();
    },
    /** A page of the audit log, newest first, and how many entries there are. */
    async audit(
      tenantId: string,
      filter: AuditFilter,
      { limit, offset }: { limit: number; offset: number },
    ): Promise<{ rows: EventRow[]; total: number }> {
      const page = database.longReads
        .selectFrom('events')
        .select(columns)
        .where(matches(tenantId, filter))
        .orderBy('seq', 'desc')
        .limit(limit)
        .offset(offset)
        .execute();
      const [rows, all] = await Promise.all([page, total(tenantId, filter)]);
      return { rows, total: all };
    },
  };
}

function matches(tenantId: string, { actor, action, packet_id, created_after, created_before }: AuditFilter) {
  return (eb: ExpressionBuilder<Tables, 'events'>) => {
    const conditions = [eb('tenant_id', '=', tenantId)];
    if (actor !== undefined) conditions.push(eb('actor', '=', actor));
    if (action !== undefined) conditions.push(eb('event_type', '=', action));
    if (packet_id !== undefined) conditions.push(eb('packet_id', '=', packet_id));
    if (created_after !== undefined) conditions.push(eb('timestamp', '>=', created_after.toISOString()));
    if (created_before !== undefined) conditions.push(eb('timestamp', '<=', created_before.toISOString()));
    return eb.and(conditions);
  };
}
