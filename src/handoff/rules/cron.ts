import { Cron } from 'croner';
import { LRUCache } from 'lru-cache';
import { dayMs } from '../../kit/dates.ts';

/** When something runs again and again: a cron expression, and the IANA time zone in which it is read. */
export interface Recurrence {
  readonly cron: string;
  readonly timezone: string;
}

const nicknames: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
]);

/** The five fields of an expression; undefined: it has not five, and is no nickname. */
function fieldsOf(cron: string): readonly string[] | undefined {
  const fields = (nicknames.get(cron.trim().toLowerCase()) ?? cron).trim().split(/\s+/);
  return fields.length === 5 ? fields : undefined;
}

const parsed = (fields: readonly string[], timezone: string) => new Cron(fields.join(' '), { timezone, mode: '5-part' });

/** What is wrong with an expression, as a sentence; undefined: nothing. */
export function cronProblem(cron: string): string | undefined {
  const fields = fieldsOf(cron);
  if (fields === undefined) return `cron must have five fields, such as 0 9 * * 1, or be one of ${[...nicknames.keys()].join(', ')}.`;
  try {
    // Whether there is a time at all does not depend on the zone.
    if (parsed(fields, 'UTC').nextRun(new Date(0)) !== null) return undefined;
    return 'cron names no day that exists.';
  } catch (error) {
    return `cron can't be read: ${(error as Error).message.replace(/^CronPattern: /, '')}`;
  }
}

/** Whether a text is the name of a time zone. An offset is none: it has no daylight saving. */
export function isTimeZone(timezone: string): boolean {
  if (!/^[a-z]/i.test(timezone)) return false;
  try {
    return clockOf(timezone) !== undefined;
  } catch {
    return false;
  }
}

/** The first time after a moment. @throws Error for a recurrence that is not valid */
export function nextTime({ cron, timezone }: Recurrence, after: Date): Date {
  const fields = fieldsOf(cron)!;
  if (isByRealTime(fields)) return required(parsed(fields, timezone).nextRun(after));
  const pattern = parsed(fields, 'UTC');
  // An earlier wall-clock time has passed already; one that the clock shows twice may have too.
  let wall = required(pattern.nextRun(wallOf(after, timezone)));
  while (momentOfWall(wall, timezone) <= after) wall = required(pattern.nextRun(wall));
  return momentOfWall(wall, timezone);
}

/** The last times up to a moment, earliest first, at most `count`. */
export function lastTimes({ cron, timezone }: Recurrence, upTo: Date, count: number): Date[] {
  const fields = fieldsOf(cron)!;
  const end = new Date(upTo.getTime() + 1);
  if (isByRealTime(fields)) return parsed(fields, timezone).previousRuns(count, end).toReversed();
  const pattern = parsed(fields, 'UTC');
  const times: Date[] = [];
  // The clock may have been set back since it showed a later time.
  const setBack = Math.max(0, offsetAt(upTo.getTime() - dayMs, timezone) - offsetAt(upTo.getTime(), timezone));
  let wall = pattern.previousRuns(1, new Date(wallOf(end, timezone).getTime() + setBack))[0];
  while (wall !== undefined && times.length < count) {
    const time = momentOfWall(wall, timezone);
    // All times that do not exist run at the end of the gap, once.
    if (time <= upTo && time.getTime() !== times[0]?.getTime()) times.unshift(time);
    wall = pattern.previousRuns(1, wall)[0];
  }
  return times;
}

/** Whether hours follow one another in real time, also where the clock is changed: without an hour, or every so many. */
const isByRealTime = ([, hour]: readonly string[]): boolean => /^\*(\/\d+)?$/.test(hour!);

function required(time: Date | null): Date {
  if (time === null) throw new Error('A schedule has no next time.');
  return time;
}

/** The clocks of time zones. There are about 600 names, and few are used. */
const clocks = new LRUCache<string, Intl.DateTimeFormat>({ max: 100 });

function clockOf(timezone: string): Intl.DateTimeFormat {
  const known = clocks.get(timezone);
  if (known !== undefined) return known;
  const fields = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' } as const;
  const clock = new Intl.DateTimeFormat('en-US', { timeZone: timezone, calendar: 'iso8601', hourCycle: 'h23', ...fields });
  clocks.set(timezone, clock);
  return clock;
}

/** What the clock of a zone shows, as if it were UTC. */
function wallOf(moment: Date, timezone: string): Date {
  const parts = Object.fromEntries(
    clockOf(timezone)
      .formatToParts(moment)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year, month, day, hour, minute, second } = parts as Record<'year' | 'month' | 'day' | 'hour' | 'minute' | 'second', number>;
  return new Date(Date.UTC(year, month - 1, day, hour, minute, second, moment.getUTCMilliseconds()));
}

/** How far the clock of a zone is ahead of UTC, in milliseconds. */
const offsetAt = (time: number, timezone: string): number => wallOf(new Date(time), timezone).getTime() - time;

/** The first moment at which the clock of a zone shows this time or a later one. */
function momentOfWall(wall: Date, timezone: string): Date {
  const time = wall.getTime();
  const offsets = [offsetAt(time - dayMs, timezone), offsetAt(time + dayMs, timezone)];
  const shown = offsets.map((offset) => time - offset).filter((moment) => moment + offsetAt(moment, timezone) === time);
  if (shown.length > 0) return new Date(Math.min(...shown));
  // The clock leaves this time out: the change is between the two days.
  let [before, after] = [time - 2 * dayMs, time + 2 * dayMs];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (middle + offsetAt(middle, timezone) >= time) after = middle;
    else before = middle;
  }
  return new Date(after);
}
