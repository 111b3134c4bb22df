import { hash } from 'node:crypto';

import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import { type LimitState, limitHeaders, tooMany } from '../../kit/http/limits.ts';
import { Windows } from '../../kit/window.ts';
import type { Tier } from '../model/common.ts';
import type { TierLimits } from '../rules/tiers.ts';
import type { Caller } from '../service/authentication.ts';
import { minuteMs, type RequestCounters, type Taken } from './request-counters.ts';

/** The most requests per minute of a key whose tier is not business, unless the settings have a limit for all keys. */
const requestsAMinute = 60;

/** The most requests per minute for an answer link, and for answer links from one address. */
const answersAMinute = 60;

/** The most requests per minute for the pages of sign-in from one address, which many people may share. */
const signInsAMinute = 300;

/** The most wrong keys per minute from one address before further guesses get 429. */
const wrongKeysAMinute = 30;

/** Rate limits in sliding windows: requests per key and minute, per tenant and hour, and wrong keys per address and minute. */
export class Limits {
  readonly #perMinute: number | undefined;
  readonly #tiers: Record<Tier, TierLimits>;
  readonly #counters: RequestCounters;
  readonly #wrongKeys = new Windows(minuteMs);
  readonly #answerAddresses = new Windows(minuteMs);
  readonly #answerLinks = new Windows(minuteMs);
  readonly #signIns = new Windows(minuteMs);

  /** @param perMinute for all keys; undefined: 60, and no limit for keys of tier business; 0: no limit */
  constructor(perMinute: number | undefined, tiers: Record<Tier, TierLimits>, counters: RequestCounters) {
    this.#perMinute = perMinute;
    this.#tiers = tiers;
    this.#counters = counters;
  }

  /** Counts the request unless a limit refuses it; a refused request is not counted. */
  count({ origin, tier, tenant_id, tenant_tier, requests_per_hour }: Caller, now: number): Awaitable<LimitState> {
    // The tenant may have moved to a lower tier than its key.
    const isBusiness = tier === 'business' && tenant_tier === 'business';
    const perMinute = this.#perMinute ?? (isBusiness ? 0 : requestsAMinute);
    const perHour = requests_per_hour ?? this.#tiers[tenant_tier].hourlyQuota;
    const taken = this.#counters.count({ keyId: origin, tenantId: tenant_id, perMinute, perHour, now });
    return andThen(taken, (found) => stateOf(found, tier, perMinute, perHour));
  }

  /** Requires that few wrong keys came from an address. @throws LimitReached */
  requireFewWrongKeys(address: string, now: number): void {
    const window = this.#wrongKeys.of(address, now);
    const state = window.peek(now, wrongKeysAMinute);
    if (!state.allowed)
      throw tooMany('Too many wrong API keys came from this address.', { name: 'wrong_keys', max: wrongKeysAMinute }, state.retryAfterMs);
  }

  /** Counts a wrong key from an address. @throws LimitReached when there were too many */
  wrongKey(address: string, now: number): void {
    this.requireFewWrongKeys(address, now);
    this.#wrongKeys.of(address, now).add(now, wrongKeysAMinute);
  }

  /** Counts a request for a page of sign-in from an address. @throws LimitReached when there were too many */
  signIn(address: string, now: number): void {
    const window = this.#signIns.of(address, now);
    const state = window.peek(now, signInsAMinute);
    if (!state.allowed)
      throw tooMany('Too many requests for a sign-in came from this address.', { name: 'minute', max: signInsAMinute }, state.retryAfterMs);
    window.add(now, signInsAMinute);
  }

  /** Counts a request for the page of an answer link from an address. @throws LimitReached when there were too many */
  answerLink(address: string, token: string, now: number): void {
    const windows = [this.#answerAddresses.of(address, now), this.#answerLinks.of(hash('sha256', token), now)];
    for (const window of windows) {
      const state = window.peek(now, answersAMinute);
      if (!state.allowed)
        throw tooMany('Too many requests came for answer links.', { name: 'minute', max: answersAMinute }, state.retryAfterMs);
    }
    for (const window of windows) window.add(now, answersAMinute);
  }
}

function stateOf({ minute, hour, refused, uncount }: Taken, tier: Tier, perMinute: number, perHour: number): LimitState {
  const headers: Record<string, string> =
    minute !== undefined ? limitHeaders(perMinute, minute) : hour !== undefined ? limitHeaders(perHour, hour) : {};
  headers['x-ratelimit-tier'] = tier;
  if (!refused) return { headers, refusal: undefined, uncount };
  const [minuteWait, hourWait] = [minute?.retryAfterMs ?? 0, hour?.retryAfterMs ?? 0];
  const refusal =
    hourWait > minuteWait
      ? tooMany(`The tenant's limit of ${perHour} requests an hour is used up.`, { name: 'hour', max: perHour }, hourWait)
      : tooMany(`The key's limit of ${perMinute} requests a minute is used up.`, { name: 'minute', max: perMinute }, minuteWait);
  return { headers, refusal, uncount };
}
