import { type Kysely, sql } from 'kysely';

import { countOf } from '../../kit/sql/count.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { priorities, statuses } from '../model/constants.ts';
import type { InLane } from './in-lane.ts';
import { type PacketFilter, walksOf } from './packet-filter.ts';
import type { Tables } from './tables.ts';

/** The sum of a tenant's counters whose names are in a range, both ends included. */
export function sumOf(db: Kysely<Tables>, tenant: number, from: string, to: string) {
  return db
    .selectFrom('counters')
    .select(sql<number>`coalesce(sum(value), 0)`.as('sum'))
    .where('tenant', '=', tenant)
    .where('name', '>=', from)
    .where('name', '<=', to);
}

/** The single range of counters whose sum is the filter's total; undefined when it takes several, or has no counters. */
export function oneRange(filter: PacketFilter): { from: string; to: string } | undefined {
  const kept = countedBy(filter);
  return kept?.length === 1 ? { from: kept[0]!.from, to: kept[0]!.to } : undefined;
}

/** The counters that the totals of lists are made of. */
const totalNames = [
  ...statuses.map((status) => `packets:${status}`),
  ...priorities.map((priority) => `priority:${priority}`),
  'hitl:required',
];

/** The number of packets of all walks, each counted once. */
function countOfAll(db: Kysely<Tables>, walks: ReturnType<typeof walksOf>): Promise<number> {
  if (walks.length === 1) return countOf(walks[0]!);
  const ids = walks.map((walk) => walk.select('packets.id')).reduce((all, walk) => all.union(walk));
  return countOf(db.selectFrom(ids.as('seen')));
}

/**
 * Returns the function that counts a tenant's packets. The total is exact: from the counters that every change updates where
 * they suffice, otherwise by counting.
 */
export function createTotals(database: Database<Tables>) {
  const all = database.query<{ tenant: number }, { name: string; value: number }>((db, { tenant }) =>
    db
      .selectFrom('counters')
      .select(['name', 'value'])
      .where('tenant', '=', tenant)
      .where('name', 'in', totalNames.map((name) => sql.lit(name)) as never),
  );

  return async (tenant: number, filter: PacketFilter, inLane: InLane): Promise<number> => {
    const kept = countedBy(filter);
    if (kept === undefined) return inLane((db) => countOfAll(db, walksOf(db, tenant, filter)));
    // Read in one query: between two, a packet could move from one counter to another.
    const counters = await all.all({ tenant });
    let total = 0;
    for (const { from, to, sign } of kept)
      for (const { name, value } of counters) if (name >= from && name <= to) total += sign * Number(value);
    return total;
  };
}

/** A range of counter names, both ends included, to be added or subtracted. */
interface CounterRange {
  from: string;
  to: string;
  sign: 1 | -1;
}

const counter = (name: string): CounterRange => ({ from: name, to: name, sign: 1 });
const allPackets: CounterRange = { from: 'packets:', to: 'packets:~', sign: 1 };

/** The counters that make up the total of a filter; undefined when counters can't. */
function countedBy({ statuses, priority, hitl_required, ...others }: PacketFilter): CounterRange[] | undefined {
  const named = [statuses, priority, hitl_required].filter((value) => value !== undefined).length;
  if (named > 1 || Object.keys(others).length > 0) return undefined;
  if (statuses !== undefined) return statuses.map((status) => counter(`packets:${status}`));
  if (priority !== undefined) return [counter(`priority:${priority}`)];
  if (hitl_required === true) return [counter('hitl:required')];
  if (hitl_required === false) return [allPackets, { ...counter('hitl:required'), sign: -1 }];
  return [allPackets];
}
