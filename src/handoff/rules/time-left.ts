import { plural } from '../../kit/wording.ts';

/** The units of a rough duration: each with its length and with the shortest duration for which it is used, in seconds. */
const units = [
  ['day', 86_400, 48 * 3600],
  ['hour', 3600, 90 * 60],
  ['minute', 60, 90],
  ['second', 1, 0],
] as const;

/** A duration rounded to one unit. */
export interface RoughTime {
  readonly count: number;
  readonly unit: (typeof units)[number][0];
}

/**
 * A duration in seconds, rounded to its largest unit that is not too coarse: 100 minutes are 2 hours, 80 are 80 minutes. Mails, pages
 * and the console use it, so that all of them show the same.
 */
export function roughTime(seconds: number): RoughTime {
  const [unit, length] = units.find(([, , from]) => seconds >= from) ?? (['second', 1] as const);
  return { count: Math.max(0, Math.round(seconds / length)), unit };
}

/** A duration in seconds in words: `2 hours`. */
export function roughWords(seconds: number): string {
  const { count, unit } = roughTime(seconds);
  return plural(count, unit);
}
