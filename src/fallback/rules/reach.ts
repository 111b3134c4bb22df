import { type Condition, conditions } from '../model/chain.ts';
import { statusesOf } from './conditions.ts';
import { defaultAction, type Engine, longestWait, matchingRule } from './engine.ts';

/** A way to fail: a condition, and the HTTP status it comes with. */
export interface Failing {
  readonly condition: Condition;
  readonly status_code: number | null;
}

/** A way for a provider to fail, and the rule that then decides: its place, or -1 for the default. */
export interface Case extends Failing {
  readonly rule: number;
}

/**
 * Every way to fail that rules can tell apart: for each condition its usual status, the statuses that a rule names, and
 * one that stands for all others.
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

/** Every way for a provider to fail, with the rule that decides. */
export function casesOf(engine: Engine, provider: number, ways = waysToFail(engine)): Case[] {
  return ways.map(({ condition, status_code }) => ({
    condition,
    status_code,
    rule: matchingRule(engine, provider, condition, status_code),
  }));
}

/** What a case ends in once its retries are used up. */
export function endOf(engine: Engine, { condition, rule }: Pick<Case, 'condition' | 'rule'>): 'failover' | 'fail' {
  if (rule === -1) return defaultAction(condition);
  const { action, then } = engine.chain.fallback_rules[rule]!;
  return action === 'retry' ? then! : action;
}

/** The retries of a case before its end. */
export function retriesOf(engine: Engine, { rule }: Pick<Case, 'rule'>): number {
  const found = rule === -1 ? undefined : engine.chain.fallback_rules[rule]!;
  return found?.action === 'retry' ? found.max_retries! : 0;
}

/** What a provider can cost one prompt at most, and whether the chain can go on behind it. */
export interface ProviderBound {
  readonly attempts: number;
  readonly latency_ms: number;
  readonly leads_on: boolean;
}

/** The bound of one provider: each rule that can decide a failure there has all its retries used, with the longest waits. */
export function boundOf(engine: Engine, provider: number, cases = casesOf(engine, provider)): ProviderBound {
  const { timeout_ms } = engine.chain.providers[provider]!;
  let retries = 0;
  let waits = 0;
  for (const place of new Set(cases.map(({ rule }) => rule))) {
    const count = retriesOf(engine, { rule: place });
    if (count === 0) continue;
    const rule = engine.chain.fallback_rules[place]!;
    // Without an answer there is no Retry-After that could raise the wait.
    const raised =
      rule.respect_retry_after === true && cases.some(({ rule: other, status_code }) => other === place && status_code !== null);
    retries += count;
    for (let retry = 1; retry <= count; retry += 1) waits += raised ? rule.max_wait_ms! : longestWait(rule, retry);
  }
  const attempts = 1 + retries;
  return { attempts, latency_ms: attempts * timeout_ms + waits, leads_on: cases.some((found) => endOf(engine, found) === 'failover') };
}

/** The most attempts and the longest time that one prompt can take. Providers that can't be reached cost nothing. */
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

/** The providers that no prompt can reach, by their places: everything behind one that never fails over. */
export function unreachable(engine: Engine): number[] {
  const ways = waysToFail(engine);
  const places = [...engine.chain.providers.keys()];
  const last = places.find((provider) => !casesOf(engine, provider, ways).some((found) => endOf(engine, found) === 'failover'));
  return last === undefined ? [] : places.slice(last + 1);
}
