import { type Condition, conditions } from '../model/chain.ts';
import { type Failing, traitsOf } from './conditions.ts';
import { type Case, type Engine, longestWait, matchingRule } from './engine.ts';

/**
 * All failures of every provider that rules can distinguish, by provider index, each with the rule that decides: for each
 * condition its usual status, the statuses that a rule names, and one that represents all others.
 */
export function casesOf(engine: Engine): readonly (readonly Case[])[] {
  const named = new Set(engine.chain.fallback_rules.flatMap(({ status_codes }) => status_codes ?? []));
  const failures = conditions.flatMap((condition): Failing[] => {
    const { statuses } = traitsOf[condition];
    const other = statuses.find((status) => status === null || !named.has(status));
    return statuses
      .filter((status, index) => index === 0 || status === other || (status !== null && named.has(status)))
      .map((status_code) => ({ condition, status_code }));
  });
  return engine.chain.providers.map((_, provider) =>
    failures.map((failure) => ({ ...failure, rule: matchingRule(engine, provider, failure) })),
  );
}

/** The action of a case when its retries are used up. */
export function endOf(engine: Engine, { condition, rule }: Pick<Case, 'condition' | 'rule'>): 'failover' | 'fail' {
  if (rule === null) return traitsOf[condition].byDefault;
  const { action, then } = engine.chain.fallback_rules[rule]!;
  return action === 'retry' ? then! : action;
}

/** The number of retries of a rule; 0 for a default. */
export function retriesOf(engine: Engine, rule: number | null): number {
  const found = rule === null ? null : engine.chain.fallback_rules[rule]!;
  return found?.action === 'retry' ? found.max_retries! : 0;
}

/** The cases of the providers that prompts can reach: up to the first one that never fails over. */
export function reachable(engine: Engine): readonly (readonly Case[])[] {
  const cases = casesOf(engine);
  const last = cases.findIndex((own) => !own.some((found) => endOf(engine, found) === 'failover'));
  return last === -1 ? cases : cases.slice(0, last + 1);
}

/**
 * The most attempts and the longest duration of a prompt: at every provider that it can reach, each rule that can decide a
 * failure there uses all its retries, with the longest waits.
 */
export function worstCase(engine: Engine): { attempts: number; latency_ms: number } {
  let attempts = 0;
  let latency_ms = 0;
  for (const [provider, cases] of reachable(engine).entries()) {
    let own = 1;
    for (const index of new Set(cases.map(({ rule }) => rule))) {
      const retries = retriesOf(engine, index);
      if (index === null || retries === 0) continue;
      const rule = engine.chain.fallback_rules[index]!;
      // Without a response there is no Retry-After that could extend the wait.
      const raised = rule.respect_retry_after === true && cases.some((found) => found.rule === index && found.status_code !== null);
      own += retries;
      for (let retry = 1; retry <= retries; retry += 1) latency_ms += raised ? rule.max_wait_ms! : longestWait(rule, retry);
    }
    attempts += own;
    latency_ms += own * engine.chain.providers[provider]!.timeout_ms;
  }
  return { attempts, latency_ms };
}

/** The conditions that a default decides for some provider and status. */
export function defaulted(engine: Engine): Condition[] {
  const found = new Set(casesOf(engine).flatMap((cases) => cases.filter(({ rule }) => rule === null).map(({ condition }) => condition)));
  return conditions.filter((condition) => found.has(condition));
}
