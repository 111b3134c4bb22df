const periods = { second: 1, minute: 60, hour: 3_600, day: 86_400 } as const;

/** A rate limit: at most `count` requests in any period. */
export interface RateLimit {
  readonly count: number;
  readonly period: keyof typeof periods;
  readonly periodMs: number;
}

/**
 * Parses a rate limit such as `100/minute`.
 * @throws Error whose message completes "--rate-limit must be ..."
 */
export function parseRateLimit(text: string): RateLimit {
  const [, digits = '', word = ''] = /^\s*(\d{1,9})\s*\/\s*([a-z]+)\s*$/i.exec(text) ?? [];
  const period = Object.keys(periods).find((name) => name === word.toLowerCase()) as keyof typeof periods | undefined;
  const count = Number(digits);
  if (period === undefined || count < 1)
    throw new Error(`a count of 1 or more and a period (second, minute, hour or day), such as 100/minute, not ${JSON.stringify(text)}`);
  return { count, period, periodMs: periods[period] * 1000 };
}
