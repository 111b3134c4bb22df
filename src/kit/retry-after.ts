/** The longest accepted Retry-After: a day. */
const longestRetryAfterMs = 86_400_000;

/** The two forms of Retry-After: seconds, or a date that begins with the day of the week (RFC 9110, 10.2.3). */
export const retryAfterForms = { seconds: /^\d+$/, date: /^[A-Za-z]{3}, / } as const;

/** The milliseconds from `now` of a Retry-After header, at most a day; null for anything else. */
export function retryAfterMs(header: string | undefined, now: Date): number | null {
  const text = header?.trim() ?? '';
  if (retryAfterForms.seconds.test(text)) return Math.min(Number(text) * 1000, longestRetryAfterMs);
  if (!retryAfterForms.date.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.min(Math.max(at - now.getTime(), 0), longestRetryAfterMs);
}
