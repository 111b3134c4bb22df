import { sql } from 'kysely';

import type { Clock } from '../../kit/clock.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { DueWalk } from './due-walk.ts';
import type { Tables } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    /** Which tenants will have work for a job, and when, on a cluster (`DueTenants`). Only PostgreSQL has it. */
    due: { job: 'sweep' | 'expire' | 'deliver' | 'index' | 'schedule'; due_at: string; tenant_number: number };
  }
}

/** The jobs that look for work of all tenants again and again. */
export type DueJob = Tables['due']['job'];

/** How often a job reads what other instances have recorded, and how often it asks all servers for work that nobody has recorded, in milliseconds. */
const lookMs = 1000;
const scanMs = 30_000;

const secondMs = 1000;

/** The most entries of a job in memory; what is more is left to the next scan. */
const maxEntries = 10_000;

/** For how many tenants a job works at once. */
const atOnce = 8;

/** How a job finds and does its work. */
interface DueWork {
  /** The tenants that have work now, read from all servers. */
  scan: () => Promise<readonly number[]>;
  /** Does work of a tenant, or of all if it is undefined; returns whether there may be more. */
  work: (tenant: number | undefined) => Promise<boolean>;
}

/** The tenants of the rows that a query finds. */
export const tenantsOf = async (found: { distinct(): { execute(): Promise<{ tenant: number }[]> } }): Promise<number[]> =>
  (await found.distinct().execute()).map(({ tenant }) => tenant);

/** What one job knows. */
class DueEntries {
  /** The tenants that have work now. */
  ready = new Set<number>();
  /** The tenants that will have work, by the second in which it is due, in milliseconds since 1970: many times of a tenant are one entry. */
  readonly later = new Map<number, Set<number>>();
  /** Entries that other instances have not got, by the second. */
  readonly unwritten = new Map<number, Set<number>>();
  size = 0;
  lookedAt = Number.NEGATIVE_INFINITY;
  scannedAt = Number.NEGATIVE_INFINITY;

  /** Adds a tenant to a second, unless it is there or there are too many; returns whether it did. */
  add(second: number, tenant: number): boolean {
    if (this.size >= maxEntries || this.later.get(second)?.has(tenant)) return false;
    this.size += 1;
    addTo(this.later, second, tenant);
    return true;
  }

  /** The tenants that have work by now. Entries of a second are kept until it is over, since they do not say when in it. */
  take(now: number): number[] {
    const taken = this.ready;
    this.ready = new Set();
    for (const [second, tenants] of this.later) {
      if (second > now) continue;
      for (const tenant of tenants) taken.add(tenant);
      if (second + secondMs > now) continue;
      this.later.delete(second);
      this.size -= tenants.size;
    }
    return [...taken];
  }
}

function addTo(tenants: Map<number, Set<number>>, second: number, tenant: number): void {
  const own = tenants.get(second);
  if (own === undefined) tenants.set(second, new Set([tenant]));
  else own.add(tenant);
}

/** The result of a round of a job. */
export interface DueRound {
  /** Whether there may be more work now. */
  readonly more: boolean;
  /** The first error of the work; undefined: none. Errors for one tenant do not stop the work for others. */
  readonly failure: unknown;
}

/**
 * Which tenants may have work for a job. A single server finds the work of all tenants by one index, so there this does nothing. On
 * a cluster that would ask every server every second, so each commit adds the tenants that it leaves work of in memory. What is due
 * later is also written to the table `due` on the coordinator, for other instances: the first one that takes an entry deletes it.
 * An entry may get lost with an instance; then the next scan finds the work.
 */
export class DueTenants {
  readonly #database: Database<Tables>;
  readonly #clock: Clock;
  readonly #jobs = new Map<DueJob, DueEntries>();
  /** The way of the sweeper over all packets that are due. */
  readonly packets: DueWalk;
  /** How long a packet may stay unclaimed, in seconds; 0: for ever. */
  readonly unclaimedTtlSeconds: number;

  constructor(database: Database<Tables>, clock: Clock, unclaimedTtlSeconds = 0) {
    this.#database = database;
    this.#clock = clock;
    this.packets = new DueWalk(database.name === 'postgres');
    this.unclaimedTtlSeconds = unclaimedTtlSeconds;
  }

  /** Whether entries are kept. */
  get isUsed(): boolean {
    return this.#database.isDistributed;
  }

  /** Adds that a tenant has work for a job from a time on. */
  add(job: DueJob, tenant: number, at: Date | string): void {
    if (!this.isUsed) return;
    const entries = this.#of(job);
    const time = new Date(at).getTime();
    if (time <= this.#clock().getTime()) {
      entries.ready.add(tenant);
      return;
    }
    const second = Math.floor(time / secondMs) * secondMs;
    if (entries.add(second, tenant)) addTo(entries.unwritten, second, tenant);
  }

  /** Does the work of all tenants at once, or on a cluster that of each tenant that has some. */
  async each(job: DueJob, { scan, work }: DueWork): Promise<DueRound> {
    if (!this.isUsed) {
      return await work(undefined).then(
        (more) => ({ more, failure: undefined }),
        (failure: unknown) => ({ more: false, failure }),
      );
    }
    const entries = this.#of(job);
    const now = this.#clock().getTime();
    // A clock that was set back ends neither.
    if (Math.abs(now - entries.lookedAt) >= lookMs) {
      await this.#look(job, entries, now);
      entries.lookedAt = now;
    }
    if (Math.abs(now - entries.scannedAt) >= scanMs) {
      for (const tenant of await scan()) this.add(job, tenant, new Date(now));
      entries.scannedAt = now;
    }
    const tenants = entries.take(now);
    let failure: unknown;
    let more = false;
    for (let from = 0; from < tenants.length; from += atOnce) {
      const some = tenants.slice(from, from + atOnce);
      for (const [index, end] of (await Promise.allSettled(some.map(work))).entries()) {
        if (end.status === 'rejected') failure ??= end.reason;
        if (end.status === 'fulfilled' && !end.value) continue;
        more ||= end.status === 'fulfilled';
        this.add(job, some[index]!, new Date(now));
      }
    }
    return { more, failure };
  }

  /** Writes what other instances have not got, so that they continue. */
  async close(): Promise<void> {
    if (!this.isUsed) return;
    for (const [job, entries] of this.#jobs) {
      for (const [second, tenants] of entries.later) for (const tenant of tenants) addTo(entries.unwritten, second, tenant);
      for (const tenant of entries.ready) addTo(entries.unwritten, this.#clock().getTime(), tenant);
      await this.#write(job, entries);
    }
  }

  #of(job: DueJob): DueEntries {
    const known = this.#jobs.get(job);
    if (known !== undefined) return known;
    const fresh = new DueEntries();
    this.#jobs.set(job, fresh);
    return fresh;
  }

  /** Writes what is due later, and takes what is due now. */
  async #look(job: DueJob, entries: DueEntries, now: number): Promise<void> {
    await this.#write(job, entries);
    // Deleted before the work is read: what is committed from now on is added again.
    const { rows } = await sql<{ due_at: string; tenant_number: number }>`
      delete from due where job = ${job} and due_at <= ${new Date(now).toISOString()} returning due_at, tenant_number`.execute(
      this.#database.reads,
    );
    for (const { due_at, tenant_number } of rows) entries.add(Date.parse(due_at), tenant_number);
  }

  async #write(job: DueJob, { unwritten }: DueEntries): Promise<void> {
    const rows = [...unwritten].flatMap(([second, tenants]) =>
      [...tenants].map((tenant_number) => ({ job, due_at: new Date(second).toISOString(), tenant_number })),
    );
    // Given back if they can't be written, with those that were added meanwhile.
    unwritten.clear();
    if (rows.length === 0) return;
    try {
      // All instances lock rows in the same order.
      await sql`insert into due (job, due_at, tenant_number)
        select job, due_at, tenant_number from json_populate_recordset(null::due, ${JSON.stringify(rows)}::json)
        order by job, due_at, tenant_number on conflict do nothing`.execute(this.#database.reads);
    } catch (error) {
      for (const { due_at, tenant_number } of rows) addTo(unwritten, Date.parse(due_at), tenant_number);
      throw error;
    }
  }
}
