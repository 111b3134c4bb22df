/** Whether a text is a day of the calendar as ISO 8601 writes it, such as `2026-03-01`. Date.parse takes 31 February as a day of March. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

/** Whether a text is a date-time of RFC 3339, section 5.6, on a day of the calendar. */
export const isDateTime = (text: string): boolean =>
  /^.{10}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i.test(text) && isDate(text.slice(0, 10)) && !Number.isNaN(Date.parse(text));
