import { invalid } from '../../kit/errors.ts';
import { type ChainDefinition, type Condition, conditions } from '../model/chain.ts';
import { concerns, type Finding } from '../model/finding.ts';
import type { Decision, Question, Routing, RoutingQuery, Step } from '../model/routing.ts';
import { isStatusOf, traitsOf, usualStatus } from './conditions.ts';
import { cooldownOf } from './cooldown.ts';
import { createEngine, decide, type Engine, initialPosition, matchingRule, type Position, positionAfterFailover } from './engine.ts';
import { endOf, pathsTo, retriesOf, worstCase } from './reach.ts';
import { warningsOf } from './warnings.ts';

/** The chain's decisions for all failures. */
export function routingOf(chain: ChainDefinition, engine: Engine = createEngine(chain)): Routing {
  const positions = positionsOf(engine);
  return {
    order: chain.providers.map(({ name }) => name),
    providers: chain.providers.map((one, provider) => ({
      name: one.name,
      cooldown: cooldownOf(chain, one),
      decisions: conditions.map((condition) => ({
        ...decisionOf(engine, positions[provider]!, condition),
        findings: [],
      })),
    })),
    worst_case: worstCase(engine),
    warnings: warningsOf(chain, engine),
    question: null,
    path: null,
  };
}

/** The decisions of a chain with the findings that concern them, and the answer to the query's question. @throws ServiceError 400 for an incomplete one */
export function answeredRouting(engine: Engine, routing: Routing, query: RoutingQuery, findings: readonly Finding[]): Routing {
  const asked = questionOf(engine, query);
  const providers = routing.providers.map(({ name, cooldown, decisions }) => ({
    name,
    cooldown,
    decisions: decisions.map((decision) => ({
      ...decision,
      findings: findings.filter((finding) => concerns(finding, { provider: name, condition: decision.condition })),
    })),
  }));
  return { ...routing, providers, question: asked?.question ?? null, path: asked?.path ?? null };
}

/** The decision for a condition at a provider, with the statuses for which another rule decides. */
function decisionOf(engine: Engine, position: Position, condition: Condition): Omit<Decision, 'findings'> {
  const { provider } = position;
  const usual = usualStatus(condition);
  const rule = matchingRule(engine, provider, { condition, status_code: usual });
  const exceptions = traitsOf[condition].statuses.flatMap((status_code) => {
    if (status_code === null || status_code === usual) return [];
    const other = matchingRule(engine, provider, { condition, status_code });
    return other === rule ? [] : [{ status_code, ...decided(engine, position, condition, other) }];
  });
  return { condition, ...decided(engine, position, condition, rule), exceptions };
}

/** The name of the provider that a failover leads to; null if none is left. */
function nameAfter(engine: Engine, position: Position, rule: number | null): string | null {
  const next = positionAfterFailover(engine, position, rule);
  return next === undefined ? null : engine.chain.providers[next.provider]!.name;
}

function decided(engine: Engine, position: Position, condition: Condition, rule: number | null) {
  const { fallback_rules } = engine.chain;
  return {
    action: rule === null ? traitsOf[condition].byDefault : fallback_rules[rule]!.action,
    max_retries: retriesOf(engine, rule),
    next_provider: endOf(engine, { condition, rule }) === 'failover' ? nameAfter(engine, position, rule) : null,
    source: rule === null ? ('default' as const) : ('rule' as const),
    rule,
  };
}

/** The states in which prompts usually get to the providers. */
const positionsOf = (engine: Engine) => pathsTo(engine).map((way, provider) => way?.position ?? initialPosition(engine, provider));

function questionOf(engine: Engine, { provider: name, condition, status_code: status }: RoutingQuery) {
  if (name === undefined && condition === undefined && status === undefined) return undefined;
  if (name === undefined) throw invalid('provider', 'provider is required with condition.');
  if (condition === undefined) throw invalid('condition', 'condition is required with provider.');
  const names = engine.chain.providers.map((one) => one.name);
  const provider = names.indexOf(name);
  if (provider === -1) throw invalid('provider', `provider is not a provider of this chain; its providers are ${names.join(', ')}.`);
  if (status !== undefined && !isStatusOf(condition, status))
    throw invalid('status_code', `status_code ${status} is not a status of ${condition}.`);
  return askedPath(engine, provider, condition, status ?? usualStatus(condition));
}

/** The path of a prompt from a provider that always fails in one way, up to the answer of the next one or the end. */
export function askedPath(
  engine: Engine,
  provider: number,
  condition: Condition,
  status_code: number | null,
): { question: Question; path: Step[] } {
  const { providers } = engine.chain;
  const position = { ...positionsOf(engine)[provider]!, used: new Map<number, number>() };
  const path: Step[] = [];
  while (position.provider === provider) {
    // The maximum of the jitter gives the longest wait.
    const step = decide(engine, position, { condition, status_code, retry_after_ms: null }, longestWaits);
    path.push({
      provider: providers[provider]!.name,
      attempt: path.length + 1,
      condition,
      action: step.action,
      wait_ms: step.wait_ms,
      source: step.rule === null ? 'default' : 'rule',
      rule: step.rule,
    });
    if (step.action === 'fail') break;
  }
  const server = position.provider === provider ? null : providers[position.provider]!.name;
  if (server !== null) path.push({ provider: server, attempt: 1, condition: null, action: 'serve', wait_ms: 0, source: null, rule: null });
  return { question: { provider: providers[provider]!.name, condition, status_code, served_by: server }, path };
}

const longestWaits = { random: () => 1, elapsed_ms: 0, deadline_ms: null };
