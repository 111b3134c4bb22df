import type { Condition } from '../model/chain.ts';

/** A kind of failure: a condition and its HTTP status, which is null without a response. */
export interface Failing {
  readonly condition: Condition;
  readonly status_code: number | null;
}

/** The failure of an attempt, as seen by the rules. */
export interface Failure extends Failing {
  /** The value of Retry-After; null without one. */
  readonly retry_after_ms: number | null;
}

/** What the service knows of a condition. */
interface Traits {
  /**
   * The possible HTTP statuses, the usual one first; null is a failure without a status. A failure has exactly one
   * condition; a status may belong to several conditions if the body decides.
   */
  readonly statuses: readonly (number | null)[];
  /** The action if no rule matches. */
  readonly byDefault: 'failover' | 'fail';
  /** Whether every chain encounters it. Targets with a single number of retries retry these. */
  readonly common: boolean;
  /** Whether the same call may succeed when it is repeated. */
  readonly retryHelps: boolean;
}

const range = (from: number, to: number, except: readonly number[] = []) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index).filter((status) => !except.includes(status));

/** Every condition with its statuses, its default and its nature. */
export const traitsOf: Readonly<Record<Condition, Traits>> = {
  rate_limit: { statuses: [429], byDefault: 'failover', common: true, retryHelps: true },
  timeout: { statuses: [null, 408, 504], byDefault: 'failover', common: true, retryHelps: true },
  server_error: { statuses: range(500, 599, [504]), byDefault: 'failover', common: true, retryHelps: true },
  connection_error: { statuses: [null], byDefault: 'failover', common: true, retryHelps: true },
  auth_error: { statuses: [401, 403], byDefault: 'failover', common: false, retryHelps: false },
  quota_exceeded: { statuses: [402, 429], byDefault: 'failover', common: false, retryHelps: false },
  context_length: { statuses: [413, 400], byDefault: 'failover', common: false, retryHelps: false },
  content_filter: { statuses: [400, 200], byDefault: 'fail', common: false, retryHelps: false },
  invalid_request: { statuses: range(400, 499, [401, 402, 403, 408, 413, 429]), byDefault: 'fail', common: false, retryHelps: false },
  invalid_response: { statuses: range(200, 399), byDefault: 'failover', common: false, retryHelps: true },
};

/** The usual status of a condition; null if it has none. */
export const usualStatus = (condition: Condition): number | null => traitsOf[condition].statuses[0]!;

/** Whether a failure with this condition can have this status. */
export const isStatusOf = (condition: Condition, status: number | null): boolean => traitsOf[condition].statuses.includes(status);

/** Error codes for a used-up account, as opposed to a rate limit. */
export const quotaCodes = new Set([
  'insufficient_quota',
  'quota_exceeded',
  'billing_hard_limit_reached',
  'billing_not_active',
  'insufficient_balance',
  'insufficient_credits',
  'credit_balance_too_low',
  'billing_error',
]);
export const contextCodes = new Set([
  'context_length_exceeded',
  'string_above_max_length',
  'model_max_prompt_tokens_exceeded',
  'request_too_large',
]);
export const filterCodes = new Set(['content_filter', 'content_policy_violation', 'responsibleaipolicyviolation', 'moderation_blocked']);

/** Anthropic has a single code for invalid requests; only the message has the details. */
export const tooLong = /prompt is too long|maximum context length|context window/i;

/** The codes and the message of an error body. */
export interface ErrorWords {
  readonly codes: readonly string[];
  readonly message: string;
}

/** The condition of an HTTP status other than 2xx, together with its error body. */
export function conditionOf(status: number, { codes, message }: ErrorWords = { codes: [], message: '' }): Condition {
  const has = (known: ReadonlySet<string>) => codes.some((code) => known.has(code.toLowerCase()));
  if (status === 429) return has(quotaCodes) ? 'quota_exceeded' : 'rate_limit';
  if (status === 408 || status === 504) return 'timeout';
  if (status >= 500) return 'server_error';
  if (status === 401 || status === 403) return 'auth_error';
  if (status === 402) return 'quota_exceeded';
  if (status === 413) return 'context_length';
  if (status < 400) return 'invalid_response';
  if (status === 400) {
    if (has(filterCodes)) return 'content_filter';
    if (has(contextCodes) || tooLong.test(message)) return 'context_length';
  }
  return 'invalid_request';
}

/** Finish reasons of answers that the provider withheld. */
const filtered = new Set(['content_filter', 'safety', 'refusal']);

/** The condition of a complete 2xx, by its text and finish reason. Null for a usable answer. */
export function conditionOfAnswer(text: string, finishReason: string | null): Condition | null {
  if (finishReason !== null && filtered.has(finishReason.toLowerCase())) return 'content_filter';
  return text.trim() === '' ? 'invalid_response' : null;
}

/** The longest accepted Retry-After: a day. */
const longestRetryAfter = 86_400_000;

/** The milliseconds from `now` of a Retry-After header: seconds or a date (RFC 9110, 10.2.3); null for anything else. */
export function retryAfterMs(header: string | undefined, now: Date): number | null {
  if (header === undefined) return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, longestRetryAfter);
  if (!/^[A-Za-z]{3}, /.test(text)) return null;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.min(Math.max(at - now.getTime(), 0), longestRetryAfter);
}

/** The HTTP statuses that exports list for targets that decide by status. */
export const knownStatuses: readonly number[] = [
  400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 413, 415, 422, 424, 429, 500, 501, 502, 503, 504, 505, 520, 521, 522, 523, 524, 529,
];
