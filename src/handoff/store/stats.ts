import type { Kysely } from 'kysely';

import { countOf } from '../../kit/sql/count.ts';
import { maxCounted } from '../model/stats.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import { hourEnd, hourPrefix } from './counters.ts';
import type { InLane } from './in-lane.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import { earlier, ownStats } from './own-stats.ts';
import type { Tables } from './tables.ts';

/** A tenant's counters of packets by status and, from an hour on, by hour. */
export interface StatsCounters {
  /** By status. */
  readonly packets: ReadonlyMap<string, number>;
  readonly hours: readonly { readonly hour: string; readonly name: string; readonly value: number }[];
}

/** Since when a packet waits to be claimed, and when the oldest open question was asked. */
export interface OldestOpen {
  readonly waiting: Date | undefined;
  readonly asked: string | undefined;
}

function reads({ database }: ReadDependencies) {
  // One statement: between two, a packet could move from one counter to another.
  const counted = database.query<{ tenant: number; from: string }, { name: string; value: number }>((db, { tenant, from }) =>
    db
      .selectFrom('counters')
      .select(['name', 'value'])
      .where('tenant', '=', tenant)
      .where('name', '>=', 'packets:')
      .where('name', '<', 'packets;')
      .unionAll(
        db
          .selectFrom('counters')
          .select(['name', 'value'])
          .where('tenant', '=', tenant)
          .where('name', '>=', from)
          .where('name', '<', hourEnd),
      ),
  );
  const oldestWaiting = database.query<{ tenant: number }, { id: string }>((db, { tenant }) =>
    db
      .selectFrom('packets')
      .select('id')
      .where('tenant', '=', tenant)
      // A range, for which PostgreSQL takes no index on a condition, whose rows it would sort.
      .where('status', '>=', claimableStatus)
      .where('status', '<=', claimableStatus)
      .where('scheduled_at', 'is', null)
      .where('available_at', 'is', null)
      .orderBy('status')
      .orderBy('id')
      .limit(1),
  );
  const oldestAvailable = database.query<{ tenant: number }, { available_at: string | null }>((db, { tenant }) =>
    db
      .selectFrom('packets')
      .select('available_at')
      .where('tenant', '=', tenant)
      .where('available_at', 'is not', null)
      .orderBy('available_at')
      .limit(1),
  );
  const oldestAsked = database.query<{ tenant: number }, { asked_at: string | null }>((db, { tenant }) =>
    db.selectFrom('packets').select('asked_at').where('tenant', '=', tenant).where('asked_at', 'is not', null).orderBy('asked_at').limit(1),
  );
  const ofWhole = (tenant: number, inLane: InLane) => ({
    /** The counters by status, and by hour from this one on. `hour`: `2026-03-01T09`. */
    async counters(hour: string): Promise<StatsCounters> {
      const rows = await counted.all({ tenant, from: `${hourPrefix}${hour}` });
      const packets = new Map<string, number>();
      const hours = rows.flatMap(({ name, value }) => {
        const [kind, first = '', ...rest] = name.split(':');
        if (`${kind}:` === hourPrefix) return [{ hour: first, name: rest.join(':'), value: Number(value) }];
        packets.set(first, Number(value));
        return [];
      });
      return { packets, hours };
    },
    /** Since when a packet waits to be claimed, and when the oldest open question was asked. */
    async oldest(): Promise<OldestOpen> {
      const id = (await oldestWaiting.first({ tenant }))?.id;
      const available = (await oldestAvailable.first({ tenant }))?.available_at ?? undefined;
      const asked = (await oldestAsked.first({ tenant }))?.asked_at ?? undefined;
      return { waiting: earlier(id, available), asked };
    },
    /** The numbers of waiting deliveries, of failing webhooks and channels, and of dead letters. Removed webhooks and channels don't count, except for dead letters. */
    deliveries: () => inLane((db) => deliveriesOf(db, tenant)),
  });
  const ofTenant = (scope: ReadScope) => {
    const { tenant_number: tenant, sight } = scope.viewer;
    return sight === undefined ? ofWhole(tenant, scope.inLane) : ownStats({ tenant, sight }, scope.inLane);
  };
  return { ofTenant };
}

/** The counts of a tenant, which are read without reading packets. */
export const stats = { reads };

async function deliveriesOf(db: Kysely<Tables>, tenant: number) {
  const destinations = db
    .selectFrom('webhooks')
    .where('webhooks.tenant', '=', tenant)
    .where('webhooks.removed_at', 'is', null)
    .where('for_packet', 'is', null);
  const pending = destinations
    // SQLite keeps the order of a cross join; of another it would read all deliveries of the tenant.
    .crossJoin('deliveries')
    .whereRef('deliveries.tenant', '=', 'webhooks.tenant')
    .whereRef('deliveries.webhook', '=', 'webhooks.seq')
    .select('deliveries.seq')
    .where('due_at', 'is not', null)
    .limit(maxCounted);
  const dead = db
    .selectFrom('deliveries')
    .select('seq')
    .where('tenant', '=', tenant)
    .where('status', '=', 'dead_letter')
    .where('next_retry_at', 'is not', null)
    .limit(maxCounted);
  return {
    waiting: await countOf(db.selectFrom(pending.as('some'))),
    failing: await countOf(destinations.where('failing_since', 'is not', null)),
    dead_letters: await countOf(db.selectFrom(dead.as('some'))),
  };
}
