import { lastTimes, nextTime, type Recurrence } from './cron.ts';

/** What happens to times that were missed. */
export type Missed = 'skip' | 'latest' | 'all';

/** From how late on a time was missed, in milliseconds: the service was down. */
const missedMs = 60_000;

/** The most missed times that make a packet each. */
const maxMissed = 100;

/** What a schedule does at a time that has come. */
export interface ScheduledRun {
  /** The time for which it makes a packet; null: for none. */
  readonly at: Date | null;
  /** Its next time, which may have come too. */
  readonly next: Date;
  /** Whether times are left out that were missed. */
  readonly skips: boolean;
}

/** What a schedule does whose next time `due` has come. */
export function runOf(recurrence: Recurrence & { readonly missed: Missed }, due: Date, now: Date): ScheduledRun {
  const run = (at: Date): ScheduledRun => ({ at, next: nextTime(recurrence, at), skips: at > due });
  if (now.getTime() - due.getTime() <= missedMs) return run(due);
  if (recurrence.missed === 'skip') return { at: null, next: nextTime(recurrence, new Date(now.getTime() - missedMs - 1)), skips: true };
  const [first = due] = lastTimes(recurrence, now, recurrence.missed === 'all' ? maxMissed : 1);
  return run(first > due ? first : due);
}
