/** The milliseconds of an hour. */
export const hourMs = 3_600_000;

/** The milliseconds of a day of 24 hours. */
export const dayMs = 24 * hourMs;

/** Whether a text is a day of the calendar as ISO 8601 writes it, such as `2026-03-01`. Date.parse takes 31 February as a day of March. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** Whether a text is a date-time of RFC 3339, section 5.6, on a day of the calendar. */
export const isDateTime = (text: string): boolean =>
  /^.{10}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i.test(text) && isDate(text.slice(0, 10)) && !Number.isNaN(Date.parse(text));

/** Times are compared as text, and outside these years their ISO text has another length. */
const earliest = Date.parse('0000-01-01T00:00:00.000Z');
const latest = Date.parse('9999-12-31T23:59:59.999Z');

/** Parses a timestamp, if there is one. Without an offset it is in UTC, whatever the time zone of the service. */
export function momentOf(text: string): Date;
export function momentOf(text: string | undefined): Date | undefined;
export function momentOf(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const isWhole = text.length === 'YYYY-MM-DD'.length || /(Z|[+-]\d{2}:?\d{2})$/.test(text);
  const moment = Date.parse(isWhole ? text : `${text}Z`);
  return new Date(Math.min(Math.max(moment, earliest), latest));
}
