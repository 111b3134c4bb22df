import { beginningOf, duration as durationOf, durationParts } from '../wording.ts';

const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** A duration and its unit; a dash if it is unknown. */
export const duration = (milliseconds: number | null | undefined): { value: string; unit: string } =>
  milliseconds === null || milliseconds === undefined ? { value: '–', unit: '' } : durationParts(milliseconds);

/** A duration as one text. */
export const durationText = (milliseconds: number | null | undefined): string =>
  milliseconds === null || milliseconds === undefined ? '–' : durationOf(milliseconds);

/** A rate from 0 to 1 as a percentage. Only exactly 1 is shown as 100 % and only exactly 0 as 0 %. */
export function percent(rate: number | null | undefined): string {
  if (rate === null || rate === undefined) return '–';
  if (rate > 0.999 && rate < 1) return '99.9 %';
  if (rate < 0.001 && rate > 0) return '0.1 %';
  return `${plain.format(rate * 100)} %`;
}

/** The difference of two rates from 0 to 1, in percentage points. */
export const percentagePoints = (difference: number): string => `${plain.format(difference * 100)} points`;

/** US dollars; a dash if the price is unknown. */
export function dollars(amount: number | null | undefined): string {
  if (amount === null || amount === undefined) return '–';
  if (amount === 0) return '$0';
  return amount < 0.01 ? `$${amount.toPrecision(2)}` : `$${amount.toFixed(2)}`;
}

/** A count. */
export const count = (value: number | null | undefined): string => (value === null || value === undefined ? '–' : whole.format(value));

/** `1 item`, `2 items`. */
export const counted = (value: number, one: string, many = `${one}s`): string => `${whole.format(value)} ${value === 1 ? one : many}`;

const moments = new Intl.DateTimeFormat('en-GB', {
  ...{ day: '2-digit', month: 'short', year: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit' },
});

/** A date and time in the user's time zone, with seconds, since several things happen within a minute. */
export const moment = (timestamp: string | null | undefined): string =>
  timestamp === null || timestamp === undefined ? '–' : moments.format(new Date(timestamp));

/** A text of at most so many characters, which ends with a whole word and three dots if it is longer. */
export const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${beginningOf(text, length).replace(/\s+\S*$/, '')} …`;

/** `rate_limit` as words. */
export const words = (name: string): string => name.replaceAll('_', ' ');
