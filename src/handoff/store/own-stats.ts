import { type Kysely, sql } from 'kysely';

import { createdAt } from '../../kit/id.ts';
import { maxCounted } from '../model/stats.ts';
import { claimableStatus } from '../rules/packet-life.ts';
import type { Sight } from '../rules/sight.ts';
import { amountsOfMove, answeredIn } from '../rules/stats.ts';
import type { InLane } from './in-lane.ts';
import { matches } from './packet-filter.ts';
import type { OldestOpen, StatsCounters } from './stats.ts';
import type { Tables } from './tables.ts';

/** Whose packets are counted. */
interface Own {
  readonly tenant: number;
  readonly sight: Sight;
}

type Hours = StatsCounters['hours'][number][];

/** The first characters of a timestamp, up to its hour. */
const hourOf = (timestamp: string): string => timestamp.slice(0, 'YYYY-MM-DDTHH'.length);

/**
 * The counts of a caller that sees its own. There are counters of a tenant only, so these are made from the packets that the caller
 * sees now and from their events.
 */
export function ownStats(own: Own, inLane: InLane) {
  return {
    counters: (hour: string): Promise<StatsCounters> =>
      inLane(async (db) => ({
        packets: await byStatus(db, own),
        hours: summed([...(await moves(db, own, hour)), ...(await answers(db, own, hour))]),
      })),
    oldest: () => inLane((db) => oldest(db, own)),
    /** It sees no webhook and no channel. */
    deliveries: async () => ({ waiting: 0, failing: 0, dead_letters: 0 }),
  };
}

/** One amount for each name of an hour. */
function summed(amounts: Hours): Hours {
  const byName = Map.groupBy(amounts, ({ hour, name }) => `${hour} ${name}`);
  return [...byName.values()].map((some) => ({ ...some[0]!, value: some.reduce((sum, { value }) => sum + value, 0) }));
}

const seen = (db: Kysely<Tables>, { tenant, sight }: Own) => db.selectFrom('packets').where(matches(tenant, { seen_by: sight }));

async function byStatus(db: Kysely<Tables>, own: Own): Promise<Map<string, number>> {
  const count = sql<number>`count(*)`.as('count');
  const rows = await seen(db, own).select(['packets.status', count]).groupBy('packets.status').execute();
  return new Map(rows.map((row) => [row.status, Number(row.count)]));
}

/** The events of packets that have changed since the hour. */
const eventsSince = (db: Kysely<Tables>, own: Own, hour: string) =>
  seen(db, own)
    .where('packets.updated_at', '>=', hour)
    .innerJoin('events', (join) =>
      join.onRef('events.tenant', '=', 'packets.tenant').onRef('events.packet_id', '=', 'packets.id').on('events.tenant', '=', own.tenant),
    );

/** What changes of status add to the counts of each hour. */
async function moves(db: Kysely<Tables>, own: Own, from: string): Promise<Hours> {
  const before = sql<string | null>`lag(events.status) over (partition by events.packet_id order by events.position)`.as('before');
  const steps = eventsSince(db, own, from)
    .where('events.status', 'is not', null)
    .select(['events.status as after', 'events.timestamp as at', before]);
  const hour = sql<string>`substr(at, 1, 13)`;
  const rows = await db
    .selectFrom(steps.as('steps'))
    .select([hour.as('hour'), 'before', 'after', sql<number>`count(*)`.as('count')])
    .where('at', '>=', from)
    .where((eb) => eb.or([eb('before', 'is', null), eb('before', '<>', eb.ref('after'))]))
    .groupBy([hour, 'before', 'after'])
    .execute();
  return rows.flatMap(({ hour, before, after, count }) =>
    amountsOfMove(before ?? undefined, after!).map(({ name, by }) => ({ hour, name, value: by * Number(count) })),
  );
}

/** The answers of each hour, by how long they took; the latest 10,000. */
async function answers(db: Kysely<Tables>, own: Own, from: string): Promise<Hours> {
  const over = sql`over (partition by events.packet_id order by events.position)`;
  const asked = sql<string | null>`lag(events.timestamp) ${over}`.as('asked');
  const previous = sql<string | null>`lag(events.event_type) ${over}`.as('previous');
  const rows = await db
    .selectFrom(
      eventsSince(db, own, from)
        .where('events.event_type', 'in', ['awaiting_human', 'hitl_responded'])
        .select(['events.event_type', 'events.timestamp as at', asked, previous])
        .as('steps'),
    )
    .select(['at', 'asked'])
    .where('at', '>=', from)
    .where('event_type', '=', 'hitl_responded')
    .where('previous', '=', 'awaiting_human')
    .orderBy('at', 'desc')
    .limit(maxCounted)
    .execute();
  return rows.map(({ at, asked }) => ({ hour: hourOf(at), name: answeredIn((Date.parse(at) - Date.parse(asked!)) / 1000), value: 1 }));
}

async function oldest(db: Kysely<Tables>, own: Own): Promise<OldestOpen> {
  const waiting = seen(db, own).where('packets.status', '=', claimableStatus).where('packets.scheduled_at', 'is', null);
  const first = await waiting
    .select('packets.id')
    .where('packets.available_at', 'is', null)
    .orderBy('packets.id')
    .limit(1)
    .executeTakeFirst();
  const later = await seen(db, own)
    .select('packets.available_at')
    .where('packets.available_at', 'is not', null)
    .orderBy('packets.available_at')
    .limit(1)
    .executeTakeFirst();
  const question = await seen(db, own)
    .select('packets.asked_at')
    .where('packets.asked_at', 'is not', null)
    .orderBy('packets.asked_at')
    .limit(1)
    .executeTakeFirst();
  return { waiting: earlier(first?.id, later?.available_at ?? undefined), asked: question?.asked_at ?? undefined };
}

/** Since when the oldest packet waits: the earlier of the oldest packet without `not_before` (`id`) and the oldest with one (`available`). */
export function earlier(id: string | undefined, available: string | undefined): Date | undefined {
  const since = [id === undefined ? [] : createdAt(id), available === undefined ? [] : new Date(available)].flat();
  return since.toSorted((one, other) => one.getTime() - other.getTime())[0];
}
