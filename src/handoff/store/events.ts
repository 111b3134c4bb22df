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

/** The most bytes of details that it shows. */
const maxHistoryBytes = 16 * 1024 * 1024;

/** Reading the trail: what happened to a packet, and the tenant's audit log, which is the same rows. */
export function createEventReads(database: Database<Tables>) {
  const ofPacket = database.query<{ tenant: number; packet_id: string; limit: number }, EventRow & { length: number }>(
    (db, { tenant, packet_id, limit }) =>
      db
        .selectFrom((inner) =>
          inner
            .selectFrom('events')
            .select([...columns, 'seq'])
            .select(sql<number>`sum(octet_length(details)) over (order by seq desc)`.as('length'))
            .where('tenant', '=', tenant)
            .where('packet_id', '=', packet_id)
            .orderBy('seq', 'desc')
            .limit(bound(limit))
            .as('latest'),
        )
        .select([...columns, 'length'])
        .where('length', '<=', sql.lit(maxHistoryBytes))
        .orderBy('seq', 'desc'),
  );
  const count = database.query<{ tenant: number }, { value: number }>((db, { tenant }) =>
    db.selectFrom('counters').select('value').where('tenant', '=', tenant).where('name', '=', 'events'),
  );

  async function total(tenant: number, filter: AuditFilter): Promise<number> {
    if (Object.keys(filter).length === 0) return (await count.first({ tenant }))?.value ?? 0;
    const row = await database.longReads
      .selectFrom('events')
      .select(sql<number>`count(*)`.as('count'))
      .where(matches(tenant, filter))
      .executeTakeFirstOrThrow();
    return Number(row.count);
  }

  return {
    /** What happened to a packet, oldest first. */
    async history(tenant: number, packetId: string): Promise<EventRow[]> {
      return (await ofPacket.all({ tenant, packet_id: packetId, limit: maxHistory })).reverse();
    },
    /** A page of the audit log, newest first, and how many entries there are. */
    async audit(
      tenant: number,
      filter: AuditFilter,
      { limit, offset }: { limit: number; offset: number },
    ): Promise<{ rows: EventRow[]; total: number }> {
      const page = database.longReads
        .selectFrom('events')
        .select(columns)
        .where(matches(tenant, filter))
        .orderBy('seq', 'desc')
        .limit(limit)
        .offset(offset)
        .execute();
      const [rows, all] = await Promise.all([page, total(tenant, filter)]);
      return { rows, total: all };
    },
  };
}

function matches(tenant: number, { actor, action, packet_id, created_after, created_before }: AuditFilter) {
  return (eb: ExpressionBuilder<Tables, 'events'>) => {
    const conditions = [eb('tenant', '=', tenant)];
    if (actor !== undefined) conditions.push(eb('actor', '=', actor));
    if (action !== undefined) conditions.push(eb('event_type', '=', action));
    if (packet_id !== undefined) conditions.push(eb('packet_id', '=', packet_id));
    if (created_after !== undefined) conditions.push(eb('timestamp', '>=', created_after.toISOString()));
    if (created_before !== undefined) conditions.push(eb('timestamp', '<=', created_before.toISOString()));
    return eb.and(conditions);
  };
}
