import { type Condition, conditions } from '../model/chain.ts';
import { statusesOf } from './conditions.ts';
import { defaultAction, type Engine, longestWait, matchingRule } from './engine.ts';

/** A kind of failure: a condition and its HTTP status. */
export interface Failing {
  readonly condition: Condition;
  readonly status_code: number | null;
}

/** A failure of a provider and the index of the rule that decides; -1 for the default. */
export interface Case extends Failing {
  readonly rule: number;
}

/**
 * All failures that rules can distinguish: for each condition its usual status, the statuses that a rule names, and one
 * that represents all others.
 */
export function waysToFail(engine: Engine): readonly Failing[] {
  const named = new Set(engine.chain.fallback_rules.flatMap(({ status_codes }) => status_codes ?? []));
  return conditions.flatMap((condition) => {
    const statuses = statusesOf[condition];
    const other = statuses.find((status) => status === null || !named.has(status));
    return statuses
      .filter((status, index) => index === 0 || status === other || (status !== null && named.has(status)))
      .map((status_code) => ({ condition, status_code }));
  });
}

/** All failures of a provider, each with the rule that decides. */
export function casesOf(engine: Engine, provider: number, ways = waysToFail(engine)): Case[] {
  return ways.map(({ condition, status_code }) => ({
    condition,
    status_code,
    rule: matchingRule(engine, provider, condition, status_code),
  }));
}

/** The action of a case when its retries are used up. */
export function endOf(engine: Engine, { condition, rule }: Pick<Case, 'condition' | 'rule'>): 'failover' | 'fail' {
  if (rule === -1) return defaultAction(condition);
  const { action, then } = engine.chain.fallback_rules[rule]!;
  return action === 'retry' ? then! : action;
}

/** The number of retries of a case. */
export function retriesOf(engine: Engine, { rule }: Pick<Case, 'rule'>): number {
  const found = rule === -1 ? undefined : engine.chain.fallback_rules[rule]!;
  return found?.action === 'retry' ? found.max_retries! : 0;
}

/** The upper bounds of a prompt at a provider, and whether the chain can continue after it. */
export interface ProviderBound {
  readonly attempts: number;
  readonly latency_ms: number;
  readonly leads_on: boolean;
}

/** The bounds of a provider: every rule that can decide a failure there uses all its retries, with the longest waits. */
export function boundOf(engine: Engine, provider: number, cases = casesOf(engine, provider)): ProviderBound {
  const { timeout_ms } = engine.chain.providers[provider]!;
  let retries = 0;
  let waits = 0;
  for (const place of new Set(cases.map(({ rule }) => rule))) {
    const count = retriesOf(engine, { rule: place });
    if (count === 0) continue;
    const rule = engine.chain.fallback_rules[place]!;
    // Without a response there is no Retry-After that could extend the wait.
    const raised =
      rule.respect_retry_after === true && cases.some(({ rule: other, status_code }) => other === place && status_code !== null);
    retries += count;
    for (let retry = 1; retry <= count; retry += 1) waits += raised ? rule.max_wait_ms! : longestWait(rule, retry);
  }
  const attempts = 1 + retries;
  return { attempts, latency_ms: attempts * timeout_ms + waits, leads_on: cases.some((found) => endOf(engine, found) === 'failover') };
}

/** The most attempts and the longest duration of a prompt. Unreachable providers do not count. */
export function worstCase(engine: Engine): { attempts: number; latency_ms: number } {
  const ways = waysToFail(engine);
  let attempts = 0;
  let latency_ms = 0;
  for (const provider of engine.chain.providers.keys()) {
    const bound = boundOf(engine, provider, casesOf(engine, provider, ways));
    attempts += bound.attempts;
    latency_ms += bound.latency_ms;
    if (!bound.leads_on) break;
  }
  return { attempts, latency_ms };
}

/** The indexes of providers that no prompt can reach: all after one that never fails over. */
export function unreachable(engine: Engine): number[] {
  const ways = waysToFail(engine);
  const places = [...engine.chain.providers.keys()];
  const last = places.find((provider) => !casesOf(engine, provider, ways).some((found) => endOf(engine, found) === 'failover'));
  return last === undefined ? [] : places.slice(last + 1);
}
