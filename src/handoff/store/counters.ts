import { sql } from 'kysely';
import type { Kind } from './engine/group.ts';
import { inSession } from './engine/in-session.ts';
import type { Journal } from './engine/journal.ts';
import type { ReadParts, Scope } from './noun.ts';

/** The counters that a unit needs. */
export interface CounterNeeds {
  /** Counters to read and lock. */
  readonly counters?: readonly string[];
}

/** A tenant's counters: the values that units named, and the amounts that units add. */
export class CounterBuffer {
  readonly found = new Map<string, number>();
  readonly added = new Map<string, number>();
  readonly #journal: Journal;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** The value of a counter that the unit named, including additions of this group. */
  value(name: string): number {
    return (this.found.get(name) ?? 0) + (this.added.get(name) ?? 0);
  }

  add(name: string, by: number): void {
    this.#journal.set(this.added, name, (this.added.get(name) ?? 0) + by);
  }
}

/** Counts for list totals and quotas, updated in the transaction that changes what they count. */
const kind: Kind<CounterNeeds, CounterBuffer> = {
  stage: (_tenant, { journal }) => new CounterBuffer(journal),

  async find(session, group) {
    const keys = group.wanted('name', (unit) => unit.counters);
    if (keys.length === 0) return;
    // A missing row can't be locked, so it is inserted first.
    await session.insertMissing(
      'counters',
      keys.map((key) => ({ ...key, value: 0 })),
    );
    const rows = (await session.find('counters', ['tenant', 'name', 'value'], keys)) as [number, string, number][];
    for (const [tenant, name, value] of rows) group.of(counters, tenant).found.set(name, value);
  },

  flush(session, group) {
    const changed = group.each(counters, ({ added }, tenant) => [...added].map(([name, value]) => ({ tenant, name, value })));
    return session.add(
      'counters',
      ['tenant', 'name'],
      'value',
      changed.filter(({ value }) => value !== 0),
    );
  },
};

/** The name of the counter of packets created on a day. */
export const createdOn = (day: string) => `created:${day}`;

function reads({ database }: ReadParts) {
  return {
    of: ({ tenant }: Scope) => ({
      /** The number of packets created on the day. */
      async usedOn(day: string): Promise<number> {
        const row = await database.reads
          .selectFrom('counters')
          .select('value')
          .where('tenant', '=', tenant)
          .where('name', '=', createdOn(day))
          .executeTakeFirst();
        return row?.value ?? 0;
      },
    }),
    all: {
      /** Deletes the counters of days before `day`, up to `limit`; returns how many. */
      async forget(day: string, limit: number): Promise<number> {
        const days = await database.reads
          .selectFrom('counters')
          .select(['tenant', 'name'])
          // Literals, so that the partial index of these counters matches.
          .where('name', '>=', sql.lit('created:'))
          .where('name', '<', sql.lit('created;'))
          .where('name', '<', createdOn(day))
          .limit(limit)
          .execute();
        if (days.length > 0) await inSession(database, async (session) => session.remove('counters', days));
        return days.length;
      },
    },
  };
}

/** Counts for list totals, quotas and positions. */
export const counters = { kind, reads };
