import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cron } from 'croner';

import { cronProblem, isTimeZone, lastTimes, nextTime } from '../../../src/handoff/rules/cron.ts';
import { runOf } from '../../../src/handoff/rules/schedule.ts';
import { walksAll } from '../../support/runs.ts';

const year = { from: Date.parse('2026-01-01T00:00:00Z'), to: Date.parse('2027-01-01T00:00:00Z') };
const dayMs = 86_400_000;

/** Zones with daylight saving of an hour and of half an hour, in both hemispheres and the other way round, and one without. */
const allZones = ['Europe/Berlin', 'Australia/Lord_Howe', 'America/New_York', 'Africa/Casablanca', 'Asia/Kathmandu'] as const;
const zones = walksAll ? allZones : allZones.slice(0, 2);

const timesBetween = (next: (after: Date) => Date, from: number, to: number): number[] => {
  const times: number[] = [];
  for (let time = next(new Date(from - 1)); time.getTime() < to; time = next(time)) times.push(time.getTime());
  return times;
};

const iso = (times: readonly number[]) => times.map((time) => new Date(time).toISOString());

/** What the clock of a zone shows, read with another tool than the code. */
function clockOf(timeZone: string): (time: number) => number {
  const clock = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  const known = new Map<number, number>();
  return (time) => {
    const shown = known.get(time) ?? Date.parse(`${clock.format(time).replace(' ', 'T')}Z`);
    known.set(time, shown);
    return shown;
  };
}

for (const timezone of zones) {
  test(`a year of times in ${timezone} is what the library says, and on days when the clock changes what the clock shows [H740]`, () => {
    const wallOf = clockOf(timezone);
    const days = Array.from({ length: 365 }, (_, day) => year.from + day * dayMs);
    const changes = days.filter((day) => wallOf(day + dayMs) - wallOf(day) !== dayMs);
    assert.equal(changes.length > 0, timezone !== 'Asia/Kathmandu');
    const isNear = (time: number) => changes.some((day) => time >= day - dayMs && time < day + 2 * dayMs);
    for (const cron of ['30 2 * * *', '*/30 1-2 * * *', '0 9 * * 1', '15 */6 * * *', '0 0 31 * *']) {
      const times = timesBetween((after) => nextTime({ cron, timezone }, after), year.from, year.to);
      const library = new Cron(cron, { timezone, mode: '5-part' });
      const expected = timesBetween((after) => library.nextRun(after)!, year.from, year.to);
      const apart = (all: readonly number[]) => iso(all.filter((time) => !isNear(time)));
      assert.deepEqual(apart(times), apart(expected), cron);
      for (const change of changes) {
        const [from, to] = [change - dayMs, change + 2 * dayMs];
        assert.deepEqual(iso(times.filter((time) => time >= from && time < to)), iso(shownBetween(cron, wallOf, from, to)), cron);
      }
    }
  });
}

/** The minutes at which the clock shows a time of the expression; of fixed hours, or leaves one out, each time once. */
function shownBetween(cron: string, wallOf: (time: number) => number, from: number, to: number): number[] {
  const pattern = new Cron(cron, { timezone: 'UTC', mode: '5-part' });
  const isByRealTime = cron.split(' ')[1]!.startsWith('*');
  const times: number[] = [];
  let latest = wallOf(from - 60_000);
  for (let time = from; time < to; time += 60_000) {
    const wall = wallOf(time);
    const passed = isByRealTime ? [wall] : minutesBetween(latest, wall);
    if (passed.some((minute) => pattern.match(new Date(minute)))) times.push(time);
    latest = Math.max(latest, wall);
  }
  return times;
}

const minutesBetween = (after: number, upTo: number): number[] =>
  Array.from({ length: Math.max(0, (upTo - after) / 60_000) }, (_, index) => after + (index + 1) * 60_000);

test('a time that the clock leaves out runs at the end of the gap, one that it shows twice the first time [H740]', () => {
  const timezone = 'Europe/Berlin';
  const next = (cron: string, after: string) => nextTime({ cron, timezone }, new Date(after)).toISOString();
  assert.equal(next('30 2 * * *', '2026-03-28T12:00:00Z'), '2026-03-29T01:00:00.000Z');
  assert.equal(next('*/15 2 * * *', '2026-03-28T12:00:00Z'), '2026-03-29T01:00:00.000Z');
  assert.equal(next('*/15 2 * * *', '2026-03-29T01:00:00Z'), '2026-03-30T00:00:00.000Z');
  assert.equal(next('30 2 * * *', '2026-10-24T12:00:00Z'), '2026-10-25T00:30:00.000Z');
  assert.equal(next('30 2 * * *', '2026-10-25T00:30:00Z'), '2026-10-26T01:30:00.000Z');
  assert.equal(next('*/30 2 * * *', '2026-10-25T00:30:00Z'), '2026-10-26T01:00:00.000Z');
  assert.equal(next('30 * * * *', '2026-10-25T00:30:00Z'), '2026-10-25T01:30:00.000Z');
});

test('the last times up to a moment are the same as going forward, also while the clock was set back', () => {
  for (const timezone of ['Europe/Berlin', 'Australia/Lord_Howe']) {
    for (const cron of ['*/10 1-2 * * *', '0 9 * * 1', '30 * * * *']) {
      for (const change of ['2026-03-29', '2026-10-25', '2026-04-05', '2026-10-04']) {
        const from = Date.parse(`${change}T00:00:00Z`) - 2 * dayMs;
        const all = timesBetween((after) => nextTime({ cron, timezone }, after), from - 30 * dayMs, from + 4 * dayMs);
        for (let time = from; time < from + 4 * dayMs; time += walksAll ? 10_000_000 : 30_000_000) {
          const expected = all.filter((one) => one <= time).slice(-3);
          const last = lastTimes({ cron, timezone }, new Date(time), 3).map((one) => one.getTime());
          assert.deepEqual(iso(last), iso(expected), `${cron} ${timezone} up to ${new Date(time).toISOString()}`);
        }
      }
    }
  }
});

test('an expression that names no time, or is none, is refused in a sentence [H741]', () => {
  for (const cron of ['0 9 * * 1', '@weekly', ' @Daily ', '*/5 9-17 * * mon-fri', '0 0 29 2 *', '0 0 L * *'])
    assert.equal(cronProblem(cron), undefined, cron);
  assert.equal(cronProblem('0 0 31 2 *'), 'cron names no day that exists.');
  assert.match(cronProblem('60 * * * *')!, /^cron can't be read: Invalid value for minute: 60/);
  for (const cron of ['* * * *', '* * * * * *', '2026-05-01T00:00:00', '@reboot', '', '5 minutes'])
    assert.match(cronProblem(cron)!, /^cron must have five fields/, cron);
});

test('a time zone is a name of IANA, not an offset', () => {
  for (const zone of ['UTC', 'Europe/Berlin', 'america/new_york', 'Etc/GMT+5']) assert.ok(isTimeZone(zone), zone);
  for (const zone of ['+02:00', 'Mars/Olympus', '', ' UTC']) assert.equal(isTimeZone(zone), false, zone);
});

test('missed times make no packet, one for the latest, or one each of the latest 100 [H742]', () => {
  const recurrence = { cron: '*/10 * * * *', timezone: 'UTC' };
  const due = new Date('2026-03-01T00:00:00Z');
  const shown = (missed: 'skip' | 'latest' | 'all', now: string) => {
    const { at, next, skips } = runOf({ ...recurrence, missed }, due, new Date(now));
    return [at?.toISOString() ?? null, next.toISOString(), skips];
  };
  for (const missed of ['skip', 'latest', 'all'] as const)
    assert.deepEqual(
      shown(missed, '2026-03-01T00:01:00Z'),
      [due.toISOString(), '2026-03-01T00:10:00.000Z', false],
      'a minute late is in time',
    );
  assert.deepEqual(shown('skip', '2026-03-01T00:35:00Z'), [null, '2026-03-01T00:40:00.000Z', true]);
  assert.deepEqual(shown('skip', '2026-03-01T00:30:30Z'), [null, '2026-03-01T00:30:00.000Z', true], 'one of these is in time');
  assert.deepEqual(shown('latest', '2026-03-01T00:35:00Z'), ['2026-03-01T00:30:00.000Z', '2026-03-01T00:40:00.000Z', true]);
  assert.deepEqual(shown('latest', '2026-03-01T00:05:00Z'), [due.toISOString(), '2026-03-01T00:10:00.000Z', false]);
  assert.deepEqual(shown('all', '2026-03-01T00:35:00Z'), [due.toISOString(), '2026-03-01T00:10:00.000Z', false]);
  assert.deepEqual(shown('all', '2026-03-02T00:00:00Z'), ['2026-03-01T07:30:00.000Z', '2026-03-01T07:40:00.000Z', true]);
});
