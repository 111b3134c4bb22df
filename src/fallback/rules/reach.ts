import { type Condition, conditions } from '../model/chain.ts';
import type { WorstCase } from '../model/routing.ts';
import { canFailWith, type FailureKind, isOfStream, traitsOf } from './conditions.ts';
import {
  type Engine,
  initialPosition,
  longestWait,
  matchingRule,
  type Position,
  positionAfterFailover,
  type Ruling,
  toOf,
} from './engine.ts';

/**
 * All failures of every provider that rules can distinguish, by provider index, each with the rule that decides: for each
 * condition that it can have, the usual status, the statuses that a rule names, and one status that represents all others.
 */
export function rulingsOf(engine: Engine): readonly (readonly Ruling[])[] {
  const named = new Set(engine.chain.fallback_rules.flatMap(({ status_codes }) => status_codes ?? []));
  const failures = conditions.flatMap((condition): FailureKind[] => {
    const { statuses } = traitsOf[condition];
    const other = statuses.find((status) => status === null || !named.has(status));
    return statuses
      .filter((status, index) => index === 0 || status === other || (status !== null && named.has(status)))
      .map((status_code) => ({ condition, status_code }));
  });
  return engine.chain.providers.map((called, provider) =>
    failures
      .filter(({ condition }) => canFailWith(called, condition))
      .map((failure) => ({ ...failure, rule: matchingRule(engine, provider, failure) })),
  );
}

/** The action of a case when its retries are used up. */
export function endOf(engine: Engine, { condition, rule }: Pick<Ruling, 'condition' | 'rule'>): 'failover' | 'fail' {
  if (rule === null) return traitsOf[condition].byDefault;
  const { action, then } = engine.chain.fallback_rules[rule]!;
  return action === 'retry' ? then! : action;
}

/** The number of retries of a rule; 0 for a default. */
export function retriesOf(engine: Engine, rule: number | null): number {
  const found = rule === null ? null : engine.chain.fallback_rules[rule]!;
  return found?.action === 'retry' ? found.max_retries! : 0;
}

/** How a prompt gets to a provider: the state when it is called, and the failures that lead there. */
export interface PathTo {
  readonly position: Position;
  readonly failures: readonly (Ruling & { readonly provider: number })[];
}

/**
 * For each provider the easiest path to it, undefined if prompts never reach it: along the chain's own order rather than by
 * the `to` of a rule, and with few retries.
 */
export function pathsTo(engine: Engine, rulings = rulingsOf(engine)): readonly (PathTo | undefined)[] {
  const paths: (PathTo | undefined)[] = engine.order.map(() => undefined);
  const seen = new Set<string>();
  let level: PathTo[] = [{ position: initialPosition(engine), failures: [] }];
  // Each level uses one `to` more than the one before.
  while (level.length > 0) {
    const deeper: PathTo[] = [];
    for (const path of level) {
      const { provider, queue } = path.position;
      const key = `${provider} of ${engine.to.indexOf(queue)}`;
      if (seen.has(key)) continue;
      seen.add(key);
      paths[provider] ??= path;
      for (const found of exitsOf(engine, rulings[provider]!)) {
        const position = positionAfterFailover(engine, path.position, found.rule);
        if (position === undefined) continue;
        const next = { position, failures: [...path.failures, { ...found, provider }] };
        if (toOf(engine, found.rule) === null) level.push(next);
        else deeper.push(next);
      }
    }
    level = deeper;
  }
  return paths;
}

/** The failovers of a provider that lead to different providers. Of several failovers that lead to the same providers, it has the one with the fewest retries. */
function exitsOf(engine: Engine, rulings: readonly Ruling[]): Ruling[] {
  const leading = rulings.filter((found) => endOf(engine, found) === 'failover');
  // Whole answers have no failure of streams, so that one leads only where no other does. Among equals, a connection error is
  // preferred, because it does not depend on the request.
  const order = ({ rule, condition }: Ruling) =>
    (isOfStream(condition) ? 1_000 : 0) + retriesOf(engine, rule) * 2 + Number(condition !== 'connection_error');
  const byTo = Map.groupBy(
    leading.toSorted((one, other) => order(one) - order(other)),
    ({ rule }) => String(toOf(engine, rule)),
  );
  return [...byTo.values()].map(([first]) => first!);
}

/** The rulings of each provider, by its index; none for a provider that prompts never reach. */
export function reachable(engine: Engine): readonly (readonly Ruling[])[] {
  const rulings = rulingsOf(engine);
  const paths = pathsTo(engine, rulings);
  return rulings.map((own, provider) => (paths[provider] === undefined ? [] : own));
}

type Bound = { -readonly [Field in keyof WorstCase]: number };

const nothing: Bound = { attempts: 0, latency_ms: 0, first_token_ms: 0 };

/** How many states are followed to find the worst case. If there are more, the worst case is a prompt that calls every provider. */
const maxStates = 2_000;

/**
 * The most attempts of a prompt, its longest duration and, of a streamed one, its longest time to the first content: at every provider that it can reach on one path, each rule that can
 * decide a failure there uses all its retries, with the longest waits.
 */
export function worstCase(engine: Engine): Bound {
  const rulings = reachable(engine);
  const own = rulings.map((_, provider) => worstAt(engine, provider, rulings[provider]!));
  const exits = rulings.map((found) => exitsOf(engine, found));
  let states = 0;
  function from(position: Position): Bound {
    states += 1;
    const { provider } = position;
    const rest = { ...nothing };
    for (const { rule } of exits[provider]!) {
      const next = states > maxStates ? undefined : positionAfterFailover(engine, position, rule);
      if (next === undefined) continue;
      const { attempts, latency_ms, first_token_ms } = from(next);
      rest.attempts = Math.max(rest.attempts, attempts);
      rest.latency_ms = Math.max(rest.latency_ms, latency_ms);
      rest.first_token_ms = Math.max(rest.first_token_ms, first_token_ms);
    }
    return sumOf([own[provider]!, rest]);
  }
  const worst = from(initialPosition(engine));
  return states > maxStates ? sumOf(own) : worst;
}

const sumOf = (bounds: readonly Bound[]): Bound => ({
  attempts: bounds.reduce((sum, { attempts }) => sum + attempts, 0),
  latency_ms: bounds.reduce((sum, { latency_ms }) => sum + latency_ms, 0),
  first_token_ms: bounds.reduce((sum, { first_token_ms }) => sum + first_token_ms, 0),
});

/** The worst case at one provider; nothing if it is never called. */
function worstAt(engine: Engine, provider: number, rulings: readonly Ruling[]): Bound {
  if (rulings.length === 0) return nothing;
  let attempts = 1;
  let waits = 0;
  for (const index of new Set(rulings.map(({ rule }) => rule))) {
    const retries = retriesOf(engine, index);
    if (index === null || retries === 0) continue;
    const rule = engine.chain.fallback_rules[index]!;
    const raised = rule.respect_retry_after === true && rulings.some(({ condition }) => mayAnswer(engine, provider, condition, index));
    attempts += retries;
    for (let retry = 1; retry <= retries; retry += 1) waits += raised ? rule.max_wait_ms! : longestWait(rule, retry);
  }
  const { timeout_ms, first_token_ms } = engine.chain.providers[provider]!;
  const untilContent = Math.min(first_token_ms ?? timeout_ms, timeout_ms);
  return { attempts, latency_ms: waits + attempts * timeout_ms, first_token_ms: waits + attempts * untilContent };
}

/** Whether a rule decides a failure with a response; without one there is no Retry-After that could extend the wait. */
const mayAnswer = (engine: Engine, provider: number, condition: Condition, rule: number): boolean =>
  traitsOf[condition].statuses.some(
    (status_code) => status_code !== null && matchingRule(engine, provider, { condition, status_code }) === rule,
  );

/** The conditions that a default decides for some provider and status. */
export function defaulted(engine: Engine): Condition[] {
  const found = new Set(
    rulingsOf(engine).flatMap((rulings) => rulings.filter(({ rule }) => rule === null).map(({ condition }) => condition)),
  );
  return conditions.filter((condition) => found.has(condition));
}
