import type { Kysely } from 'kysely';

import type { Database } from '../../kit/sql/dialect.ts';
import type { Tables } from './tables.ts';

/** The counter that holds the highest position whose stream event was removed by retention. */
export const removedCounter = 'removed';

/** The tenants whose oldest stream event is older than `before`. Usually there are none, and then no lock is needed. */
export async function tenantsWithOld({ longReads: db }: Database<Tables>, before: Date): Promise<number[]> {
  const rows = await db
    .selectFrom('tenants')
    .select('tenants.number')
    .where(
      (eb) =>
        eb
          .selectFrom('events')
          .select('events.timestamp')
          .whereRef('events.tenant', '=', 'tenants.number')
          .where('events.position', '>', (inner) =>
            inner.fn.coalesce(
              inner
                .selectFrom('counters')
                .select('counters.value')
                .whereRef('counters.tenant', '=', 'tenants.number')
                .where('counters.name', '=', removedCounter),
              inner.lit(0),
            ),
          )
          .where('events.type', 'is not', null)
          .orderBy('events.position')
          .limit(1),
      '<',
      before.toISOString(),
    )
    .execute();
  return rows.map(({ number }) => number);
}

/** A tenant's stream events after a position, up to the first that is not older than `before`. */
async function oldPayloads(db: Kysely<Tables>, tenant: number, position: number, before: Date, limit: number) {
  const oldest = await db
    .selectFrom('events')
    .select(['position', 'timestamp'])
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
export function forgetPayloadsOf(database: Database<Tables>, tenant: number, before: Date, limit: number): Promise<number> {
  return database.transaction(async (tx) => {
    const counter = { tenant, name: removedCounter, value: 0 };
    await tx
      .insertInto('counters')
      .values(counter)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
    // Instances share a PostgreSQL database; the lock keeps the counter from falling.
    const locking = tx.selectFrom('counters').select('value').where('tenant', '=', tenant).where('name', '=', removedCounter);
    const { value } = await (database.name === 'postgres' ? locking.forUpdate() : locking).executeTakeFirstOrThrow();
    const old = await oldPayloads(tx, tenant, value, before, limit);
    if (old.length === 0) return 0;
    const positions = old.map(({ position }) => position);
    await tx.updateTable('events').set({ payload: null }).where('tenant', '=', tenant).where('position', 'in', positions).execute();
    const last = { value: old.at(-1)!.position };
    await tx.updateTable('counters').set(last).where('tenant', '=', tenant).where('name', '=', removedCounter).execute();
    return old.length;
  });
}
