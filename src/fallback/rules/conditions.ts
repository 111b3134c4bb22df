import { type Condition, conditions, type Provider } from '../model/chain.ts';
import { statusesSeen, wordsSeen } from './provider-errors.ts';

/** A kind of failure: a condition and its HTTP status, which is null without a response. */
export interface FailureKind {
  readonly condition: Condition;
  readonly status_code: number | null;
}

/** The failure of an attempt, as seen by the rules. */
export interface Failure extends FailureKind {
  /** The value of Retry-After; null without one. */
  readonly retry_after_ms: number | null;
}

/** The HTTP statuses, from one to another, and what the error says of a condition that shares them with others. */
export interface Sign {
  readonly from: number;
  readonly to: number;
  /** Found in the codes and the message of the error; null for any error. */
  readonly says: RegExp | null;
}

/** What the service knows of a condition. */
interface Traits {
  /**
   * The possible HTTP statuses, the usual one first; null is a failure without a status. A failure has exactly one
   * condition; a status may belong to several conditions if the error decides.
   */
  readonly statuses: readonly (number | null)[];
  /** How it is recognized in an answer other than 2xx. */
  readonly signs: readonly Sign[];
  /** How it is recognized in a 2xx: by its finish reason. */
  readonly finishReasons: readonly string[];
  /** The action if no rule matches. */
  readonly byDefault: 'failover' | 'fail';
  /** Whether every chain encounters it. Targets with a single number of retries retry these. */
  readonly common: boolean;
  /** Whether the same call may succeed when it is repeated. */
  readonly retryHelps: boolean;
  /** Whether it counts for a cool-down that names no conditions: not if it is about the request, or ends an answer that had begun. */
  readonly countsForCooldown: boolean;
}

const sign = (from: number, to = from, says: RegExp | null = null): Sign => ({ from, to, says });

const range = (from: number, to: number, except: readonly number[] = []) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index).filter((status) => !except.includes(status));

const failsOver = { finishReasons: [], byDefault: 'failover' } as const;
const fails = { finishReasons: [], byDefault: 'fail' } as const;

/** The traits of each condition without what is known of providers' errors. */
const ownTraits: Readonly<Record<Condition, Traits>> = {
  rate_limit: { ...failsOver, statuses: [429], signs: [sign(429)], common: true, retryHelps: true, countsForCooldown: true },
  timeout: {
    ...failsOver,
    statuses: [null, 408, 504],
    signs: [sign(408), sign(504)],
    common: true,
    retryHelps: true,
    countsForCooldown: true,
  },
  first_token_timeout: { ...failsOver, statuses: [null], signs: [], common: false, retryHelps: true, countsForCooldown: true },
  server_error: {
    ...failsOver,
    statuses: range(500, 599, [504]),
    signs: [sign(500, 999)],
    common: true,
    retryHelps: true,
    countsForCooldown: true,
  },
  connection_error: { ...failsOver, statuses: [null], signs: [], common: true, retryHelps: true, countsForCooldown: true },
  interrupted: { ...fails, statuses: [200], signs: [], common: false, retryHelps: true, countsForCooldown: false },
  auth_error: {
    ...failsOver,
    statuses: [401, 403],
    signs: [sign(401), sign(403)],
    common: false,
    retryHelps: false,
    countsForCooldown: true,
  },
  quota_exceeded: {
    ...failsOver,
    statuses: [402, 429],
    signs: [sign(402)],
    common: false,
    retryHelps: false,
    countsForCooldown: true,
  },
  model_not_found: { ...failsOver, statuses: [404], signs: [], common: false, retryHelps: false, countsForCooldown: true },
  context_length: {
    ...failsOver,
    statuses: [413, 400],
    signs: [sign(413)],
    common: false,
    retryHelps: false,
    countsForCooldown: false,
  },
  content_filter: {
    ...fails,
    statuses: [400, 200],
    signs: [],
    finishReasons: ['content_filter', 'content-filter', 'safety', 'refusal', 'prohibited_content', 'blocklist', 'spii', 'recitation'],
    common: false,
    retryHelps: false,
    countsForCooldown: false,
  },
  unsupported_request: { ...failsOver, statuses: [400, 422], signs: [], common: false, retryHelps: false, countsForCooldown: false },
  invalid_request: {
    ...fails,
    statuses: range(400, 499, [401, 402, 403, 408, 413, 429]),
    signs: [sign(400, 499)],
    common: false,
    retryHelps: false,
    countsForCooldown: false,
  },
  invalid_response: {
    ...failsOver,
    statuses: range(200, 399),
    signs: [sign(0, 399)],
    common: false,
    retryHelps: true,
    countsForCooldown: true,
  },
};

/** A condition's traits with the statuses and the words of errors that providers were seen to send. */
const withErrorsSeen = (condition: Condition): Traits => {
  const { statuses, signs, ...traits } = ownTraits[condition];
  const words = wordsSeen(condition);
  return {
    ...traits,
    statuses: [...new Set([...statuses, ...statusesSeen(condition)])],
    signs: [...signs, ...(words?.statuses.map((status) => sign(status, status, words.says)) ?? [])],
  };
};

/** Every condition with its statuses, its signs, its default and its nature. */
export const traitsOf = Object.fromEntries(conditions.map((condition) => [condition, withErrorsSeen(condition)])) as Readonly<
  Record<Condition, Traits>
>;

/** The conditions of calls without a response, and of a 2xx without a usable answer. */
export const ofNoAnswer = { late: 'timeout', broken: 'connection_error', unusable: 'invalid_response' } as const satisfies Record<
  string,
  Condition
>;

/** The conditions that only a streamed answer can have: no content in time, and an end before the final event. */
export const ofStream = { late: 'first_token_timeout', broken: 'interrupted' } as const satisfies Record<string, Condition>;

/** The answer of a gateway that no provider served, by the failure of its last call. */
export const unservedAnswer = (last: Condition | null | undefined): string =>
  last === ofStream.broken ? 'a broken answer' : last === ofStream.late ? 'a late answer' : 'an answer of its own';

/** Whether only a streamed answer can fail in this way. */
export const isOfStream = (condition: Condition): boolean => condition === ofStream.late || condition === ofStream.broken;

/** Whether a provider can fail in this way: its first content is only late if it has a limit for that. */
export const canFailWith = ({ first_token_ms }: Pick<Provider, 'first_token_ms'>, condition: Condition): boolean =>
  condition !== ofStream.late || first_token_ms !== null;

/** The usual status of a condition; null if it has none. */
export const usualStatus = (condition: Condition): number | null => traitsOf[condition].statuses[0]!;

/** The condition that stands for failures of which nothing else is said. */
export const usualCondition = 'server_error' satisfies Condition;

/** Whether a failure with this condition can have this status. */
export const isStatusOf = (condition: Condition, status: number | null): boolean => traitsOf[condition].statuses.includes(status);

/** The signs of all conditions in the order in which they are tried: those that need words first, then the narrowest. */
export const orderedSigns: readonly (Sign & { readonly condition: Condition })[] = conditions
  .flatMap((condition) => traitsOf[condition].signs.map((one) => ({ condition, ...one })))
  .sort((one, other) => Number(one.says === null) - Number(other.says === null) || one.to - one.from - (other.to - other.from));

/**
 * The condition of an HTTP status other than 2xx, together with the codes and the message of its error. A 404 that names the model
 * of the call is about the model; any other may be about the path.
 */
export function conditionOf(status: number, words = '', model = ''): Condition {
  const named = model.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  if (status === 404 && named !== '' && new RegExp(`(?<![\\w.-])${named}(?![\\w-])`).test(words)) return 'model_not_found';
  return orderedSigns.find(({ from, to, says }) => status >= from && status <= to && (says === null || says.test(words)))!.condition;
}

/** The condition that a target takes a status for if it sees nothing else: a 404 of a path that once worked is about the model. */
export const conditionOfStatus = (status: number): Condition => (status === 404 ? 'model_not_found' : conditionOf(status));

/** Finish reasons of answers that the provider withheld, by condition. */
export const withheldReasons: ReadonlyMap<string, Condition> = new Map(
  conditions.flatMap((condition) => traitsOf[condition].finishReasons.map((reason) => [reason, condition] as const)),
);

/** The condition of a complete 2xx, by its text and finish reason. Null for a usable answer. */
export function conditionOfAnswer(text: string, finishReason: string | null): Condition | null {
  const withheld = withheldReasons.get(finishReason?.toLowerCase() ?? '');
  return withheld ?? (text.trim() === '' ? ofNoAnswer.unusable : null);
}

/** The HTTP statuses that exports list for targets that decide by status. */
export const knownStatuses: readonly number[] = [
  400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 413, 415, 422, 424, 429, 500, 501, 502, 503, 504, 505, 520, 521, 522, 523, 524, 529,
];

/** The failures that count for a cool-down that names none. */
export const countedByDefault: readonly Condition[] = conditions.filter((condition) => traitsOf[condition].countsForCooldown);
