import { sql } from 'kysely';
import { noContent, type Writes } from './engine/group.ts';
import { inSession } from './engine/in-session.ts';
import type { Journal } from './engine/journal.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';

declare module './tables.ts' {
  interface Tables {
    counters: { tenant: number; name: string; value: number };
  }
}

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
const writes: Writes<CounterNeeds, CounterBuffer> = {
  needs: { counters: true },
  stage: (_tenant, { journal }) => new CounterBuffer(journal),
  erase: noContent,

  async find(session, group) {
    const keys = group.wanted('name', (unit) => unit.counters);
    // A missing row can't be locked, so it is inserted first.
    session.insertMissing(
      'counters',
      keys.map((key) => ({ ...key, value: 0 })),
    );
    const rows = (await session.find('counters', ['tenant', 'name', 'value'], keys)) as [number, string, number][];
    for (const [tenant, name, value] of rows) group.of(writes, tenant).found.set(name, value);
  },

  flush(session, group) {
    const changed = group.each(writes, ({ added }, tenant) => [...added].map(([name, value]) => ({ tenant, name, value })));
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

/** The beginning of the names of counters by hour, which go on with the hour and what they count: `hour:2026-03-01T09:waiting`. */
export const hourPrefix = 'hour:';

/** A name that sorts after the names of all counters by hour. */
export const hourEnd = 'hour;';

/** The name of a counter of the hour of a timestamp. */
export const inHourOf = (timestamp: string, name: string) => `${hourPrefix}${timestamp.slice(0, 'YYYY-MM-DDTHH'.length)}:${name}`;

function reads({ database }: ReadDependencies) {
  return {
    ofTenant: ({ viewer: { tenant_number: tenant } }: ReadScope) => ({
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
      /** The values of counters, by name; those that were never added to are left out. */
      async values(names: readonly string[]): Promise<ReadonlyMap<string, number>> {
        if (names.length === 0) return new Map();
        const rows = await database.reads
          .selectFrom('counters')
          .select(['name', 'value'])
          .where('tenant', '=', tenant)
          .where('name', 'in', names)
          .execute();
        return new Map(rows.map(({ name, value }) => [name, Number(value)]));
      },
    }),
    ofAll: {
      /** Deletes the counters of days before `day`, up to `limit`; returns how many. */
      forget: (day: string, limit: number): Promise<number> => forget('created:', createdOn(day), limit),
      /** Deletes the counters of hours before that of `time`, up to `limit`; returns how many. */
      forgetHours: (time: Date, limit: number): Promise<number> => forget(hourPrefix, inHourOf(time.toISOString(), ''), limit),
    },
  };

  /** Deletes counters whose names begin with a prefix and are before a name. */
  async function forget(prefix: string, before: string, limit: number): Promise<number> {
    const old = await database.reads
      .selectFrom('counters')
      .select(['tenant', 'name'])
      // Literals, so that the partial index of these counters matches.
      .where('name', '>=', sql.lit(prefix))
      .where('name', '<', sql.lit(prefix.replace(':', ';')))
      .where('name', '<', before)
      .limit(limit)
      .execute();
    if (old.length > 0) await inSession(database, async (session) => session.remove('counters', old));
    return old.length;
  }
}

/** Counts for list totals, quotas and positions. */
export const counters = { writes, reads };
