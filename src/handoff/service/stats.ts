import type { Clock } from '../../kit/clock.ts';
import { dayMs, hourMs } from '../../kit/dates.ts';
import { invalid } from '../../kit/errors.ts';
import { statuses } from '../model/common.ts';
import { type Stats, type StatsHour, statsDays } from '../model/stats.ts';
import { levelOfStatus, levels, medianSeconds } from '../rules/stats.ts';
import type { StatsCounters } from '../store/stats.ts';
import type { Store } from '../store/store.ts';
import type { Caller } from './authentication.ts';

/** An hour as counters name it: `2026-03-01T09`. */
const nameOf = (hour: number): string => new Date(hour).toISOString().slice(0, 'YYYY-MM-DDTHH'.length);

export type StatsService = ReturnType<typeof createStatsService>;

/** Reads the statistics of tenants. */
export function createStatsService(store: Store, clock: Clock) {
  return {
    /** The statistics since a moment, by default of the last day. The read is cancelled by `signal`. @throws ServiceError 400 */
    async read(caller: Caller, given: Date | undefined, signal: AbortSignal): Promise<Stats> {
      const now = clock().getTime();
      const since = given?.getTime() ?? now - dayMs;
      if (since > now) throw invalid('since', 'since must not be in the future.');
      if (since < now - statsDays * dayMs) throw invalid('since', `since must not be more than ${statsDays} days ago.`);
      const first = Math.floor(since / hourMs) * hourMs;
      const tenant = store.of(caller, signal).stats;
      const [counters, oldest, deliveries] = await Promise.all([tenant.counters(nameOf(first)), tenant.oldest(), tenant.deliveries()]);
      const { hours, answered, median } = hoursOf(counters, first, now);
      const last = hours.at(-1)!;
      const sum = (name: Exclude<keyof StatsHour, 'hour'>) => hours.reduce((total, hour) => total + hour[name], 0);
      return {
        since: new Date(first).toISOString(),
        until: new Date(now).toISOString(),
        questions: { open: last.asked, oldest_asked_at: oldest.asked ?? null, answered, median_answer_seconds: median },
        work: {
          ...{ waiting: last.waiting, held: last.held, oldest_waiting_at: oldest.waiting?.toISOString() ?? null },
          ...{ created: sum('created'), completed: sum('completed'), failed: sum('failed'), expired: sum('expired') },
        },
        deliveries,
        hours,
      };
    },
  };
}

/**
 * The hours from the first to the current one, from what each hour added. The levels of an hour are the present ones without
 * what later hours added.
 */
function hoursOf({ packets, hours: counted }: StatsCounters, first: number, now: number) {
  const added = Map.groupBy(counted, ({ hour }) => hour);
  const level = { waiting: 0, held: 0, asked: 0 };
  for (const status of statuses) {
    const name = levelOfStatus(status);
    if (name !== undefined) level[name] += packets.get(status) ?? 0;
  }
  const steps = new Map<string, number>();
  const hours: StatsHour[] = [];
  // A clock that was set back leaves counts in hours to come.
  const ahead = counted.filter(({ hour }) => hour > nameOf(now));
  for (const { name, value } of ahead) if (isLevel(name)) level[name] -= value;
  for (let hour = Math.floor(now / hourMs) * hourMs; hour >= first; hour -= hourMs) {
    const amounts = new Map((added.get(nameOf(hour)) ?? []).map(({ name, value }) => [name, value]));
    const of = (name: string) => amounts.get(name) ?? 0;
    const done = { completed: of('completed'), failed: of('failed'), expired: of('expired') };
    const left = Object.values(done).reduce((sum, count) => sum + count, of('removed'));
    const created = levels.reduce((sum, name) => sum + of(name), left);
    let answered = 0;
    for (const [name, value] of amounts) {
      const [kind, step] = name.split(':');
      if (kind !== 'answered' || step === undefined) continue;
      answered += value;
      steps.set(step, (steps.get(step) ?? 0) + value);
    }
    hours.push({ hour: new Date(hour).toISOString(), created, ...done, answered, ...level });
    for (const name of levels) level[name] -= of(name);
  }
  const answered = hours.reduce((sum, hour) => sum + hour.answered, 0);
  return { hours: hours.toReversed(), answered, median: medianSeconds(steps) };
}

const isLevel = (name: string): name is (typeof levels)[number] => (levels as readonly string[]).includes(name);
