import { type ChainDefinition, type Condition, conditions, type Rule, type RuleCondition } from '../model/chain.ts';
import type { ChainSummary } from '../model/summary.ts';
import { createEngine, defaultAction } from './engine.ts';
import { worstCase } from './reach.ts';
import { defaulted } from './warnings.ts';

/** A chain in a few sentences and the facts behind them; what is known elsewhere is handed in. */
export function summaryOf(
  chain: ChainDefinition,
  { last_test, lossless_formats }: Pick<ChainSummary, 'last_test' | 'lossless_formats'>,
): ChainSummary {
  const engine = createEngine(chain);
  const { providers, fallback_rules } = chain;
  const by_default = defaulted(chain, engine);
  const with_rule: RuleCondition[] = conditions.filter((condition) => !by_default.includes(condition));
  const worst_case = worstCase(engine);
  return {
    text: [
      orderSentence(chain),
      ...fallback_rules.slice(0, maxSentences).map(ruleSentence),
      ...(fallback_rules.length > maxSentences ? [`${fallback_rules.length - maxSentences} more rules follow.`] : []),
      defaultSentence(by_default),
      `One prompt costs at most ${plural(worst_case.attempts, 'attempt')} and ${duration(worst_case.latency_ms)}.`,
    ].join(' '),
    provider_count: providers.length,
    rule_count: fallback_rules.length,
    primary: providers[0]!.name,
    last_resort: providers.at(-1)!.name,
    conditions: { with_rule, by_default },
    worst_case,
    last_test,
    lossless_formats,
  };
}

/** The most rules that the text tells one by one. */
const maxSentences = 6;

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
const listed = (names: readonly string[]) => (names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`);

/** A duration for people: milliseconds below a second, else seconds, else minutes. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120_000) return `${Math.round(ms / 100) / 10} s`;
  return `${Math.round(ms / 6000) / 10} min`;
}

function orderSentence({ name, providers }: ChainDefinition): string {
  const [first, ...rest] = providers.map((provider) => provider.name);
  if (rest.length === 0) return `${name} asks ${first} and has no backup.`;
  const shown = rest.length > 5 ? [...rest.slice(0, 4), plural(rest.length - 4, 'other provider')] : rest;
  return `${name} asks ${first} first and falls back to ${shown.join(', then ')}.`;
}

function ruleSentence({ condition, action, max_retries, providers, status_codes, then }: Rule): string {
  const what = condition === 'any' ? (status_codes === null ? 'any other failure' : 'a failure') : condition;
  const codes = status_codes === null ? '' : ` with status ${status_codes.join(' or ')}`;
  const where = providers === null ? '' : ` of ${listed(providers)}`;
  const does: Record<typeof action, string> = {
    retry: `retries ${max_retries === 1 ? 'once' : `${max_retries} times`}, then ${then === 'fail' ? 'fails' : 'fails over'}`,
    failover: 'fails over at once',
    fail: 'fails',
  };
  return `On ${what}${codes}${where} it ${does[action]}.`;
}

function defaultSentence(byDefault: readonly Condition[]): string {
  if (byDefault.length === 0) return 'Rules decide every failure.';
  const failing = byDefault.filter((condition) => defaultAction(condition) === 'fail');
  const going = byDefault.filter((condition) => defaultAction(condition) === 'failover');
  const parts = [
    ...(going.length > 0 ? [`fails over on ${listed(going)}`] : []),
    ...(failing.length > 0 ? [`fails on ${listed(failing)}`] : []),
  ];
  return `Without a rule it ${parts.join(' and ')}.`;
}
