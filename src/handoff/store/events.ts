import { type ExpressionBuilder, type Kysely, sql } from 'kysely';

import { bound, type Database } from '../../kit/sql/dialect.ts';
import type { InTurn } from './in-turn.ts';
import type { Tables } from './tables.ts';
import { positionCounter, removedCounter, type StreamEvent } from './units/events.ts';

/** An entry of the trail as it is stored; `details` is JSON text. */
export interface EventRow {
  id: string;
  packet_id: string | null;
  event_type: string;
  actor: string;
  key_id: string | null;
  resource: string;
  details: string;
  timestamp: string;
}

/** An event of the trail, with what streams tell of it: null where they tell nothing, or nothing any more. */
export type TrailRow = Omit<StreamEvent, 'type' | 'packet_id' | 'source_agent' | 'target_agent' | 'payload'> & {
  readonly type: string | null;
  readonly packet_id: string | null;
  readonly source_agent: string | null;
  readonly target_agent: string | null;
  readonly payload: string | null;
};

/** Which entries of a tenant's audit log are meant. */
export interface AuditFilter {
  readonly actor?: string;
  readonly action?: string;
  readonly packet_id?: string;
  readonly created_after?: Date;
  readonly created_before?: Date;
}

const columns = ['id', 'packet_id', 'event_type', 'actor', 'key_id', 'resource', 'details', 'timestamp'] as const;

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

  const afterPosition = database.query<{ tenant: number; position: number; limit: number }, TrailRow>((db, { tenant, position, limit }) =>
    db
      .selectFrom('events')
      .select(['id', 'position', 'type', 'packet_id', 'status', 'source_agent', 'target_agent', 'claimant', 'payload', 'timestamp'])
      .where('tenant', '=', tenant)
      .where('position', '>', position)
      .orderBy('position')
      .limit(bound(limit)),
  );
  const named = database.name === 'sqlite' ? 'select value from json_each' : 'select value::bigint from json_array_elements_text';
  const positionsOf = database.query<{ tenants: string }, { tenant: number; position: number }>((db, { tenants }) =>
    db
      .selectFrom('counters')
      .select(['tenant', 'value as position'])
      .where('name', '=', sql.lit(positionCounter))
      .where(sql<boolean>`tenant in (${sql.raw(named)}(${tenants}))`),
  );
  const bounds = database.query<{ tenant: number }, { name: string; value: number }>((db, { tenant }) =>
    db
      .selectFrom('counters')
      .select(['name', 'value'])
      .where('tenant', '=', tenant)
      .where('name', 'in', [sql.lit(positionCounter), sql.lit(removedCounter)]),
  );

  async function boundsOf(tenant: number): Promise<{ last: number; removed: number }> {
    const values = new Map((await bounds.all({ tenant })).map(({ name, value }) => [name, value]));
    return { last: values.get(positionCounter) ?? 0, removed: values.get(removedCounter) ?? 0 };
  }

  async function total(tenant: number, filter: AuditFilter, inTurn: InTurn): Promise<number> {
    if (Object.keys(filter).length === 0) return (await count.first({ tenant }))?.value ?? 0;
    const row = await inTurn((db) =>
      db.selectFrom('events').select(sql<number>`count(*)`.as('count')).where(matches(tenant, filter)).executeTakeFirstOrThrow(),
    );
    return Number(row.count);
  }

  return {
    /** What was appended to a tenant's trail after a position, in order; of some of it streams tell nothing, or nothing any more. */
    after: (tenant: number, position: number, limit: number) => afterPosition.all({ tenant, position, limit }),
    /** The last position of each of these tenants; one that has no events is not among them. */
    positions: (tenants: readonly number[]) => positionsOf.all({ tenants: JSON.stringify(tenants) }),
    /** A tenant's last position, and the highest of those whose stream event was too old and is removed; 0 where there is none. */
    bounds: boundsOf,
    /**
     * Removes stream events that are older than the moment, tenant by tenant in the order of positions; the audit log keeps
     * its entries. At most `limit` of each tenant; gives how many.
     */
    async forgetPayloads(before: Date, limit: number): Promise<number> {
      const tenants = await database.longReads.selectFrom('counters').select('tenant').where('name', '=', positionCounter).execute();
      let removed = 0;
      for (const { tenant: number } of tenants) {
        // Mostly nothing is old enough, and then nothing is locked.
        const { removed: last } = await boundsOf(number);
        if ((await oldPayloads(database.longReads, number, last, before, 1)).length > 0)
          removed += await forgetPayloadsOf(database, number, before, limit);
      }
      return removed;
    },
    /** What happened to a packet, oldest first. */
    async history(tenant: number, packetId: string): Promise<EventRow[]> {
      return (await ofPacket.all({ tenant, packet_id: packetId, limit: maxHistory })).reverse();
    },
    /** A page of the audit log, newest first, and how many entries there are. */
    async audit(
      tenant: number,
      filter: AuditFilter,
      { limit, offset }: { limit: number; offset: number },
      inTurn: InTurn,
    ): Promise<{ rows: EventRow[]; total: number }> {
      const page = inTurn((db) =>
        db
          .selectFrom('events')
          .select(columns)
          .where(matches(tenant, filter))
          .orderBy('position', 'desc')
          .limit(limit)
          .offset(offset)
          .execute(),
      );
      const [rows, all] = await Promise.all([page, total(tenant, filter, inTurn)]);
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

/** A tenant's stream events after a position, up to the first that is not older than the moment. */
async function oldPayloads(db: Kysely<Tables>, tenant: number, position: number, before: Date, limit: number) {
  const oldest = await db
    .selectFrom('events')
    .select(['seq', 'position', 'timestamp'])
    .where('tenant', '=', tenant)
    .where('position', '>', position)
    .where('type', 'is not', null)
    .orderBy('position')
    .limit(limit)
    .execute();
  const kept = oldest.findIndex(({ timestamp }) => timestamp >= before.toISOString());
  return kept === -1 ? oldest : oldest.slice(0, kept);
}

/** Removes a tenant's oldest stream events, up to the first that is not old enough. */
function forgetPayloadsOf(database: Database<Tables>, tenant: number, before: Date, limit: number): Promise<number> {
  return database.transaction(async (tx) => {
    const counter = { tenant, name: removedCounter, value: 0 };
    await tx
      .insertInto('counters')
      .values(counter)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    // Locked where instances share the database: the counter never falls.
    const locking = tx.selectFrom('counters').select('value').where('tenant', '=', tenant).where('name', '=', removedCounter);
    const { value } = await (database.name === 'postgres' ? locking.forUpdate() : locking).executeTakeFirstOrThrow();
    const old = await oldPayloads(tx, tenant, value, before, limit);
    if (old.length === 0) return 0;
    const seqs = old.map(({ seq }) => seq);
    await tx.updateTable('events').set({ payload: null }).where('seq', 'in', seqs).execute();
    const last = { value: old.at(-1)!.position };
    await tx.updateTable('counters').set(last).where('tenant', '=', tenant).where('name', '=', removedCounter).execute();
    return old.length;
  });
}
