import { duration, plural } from '../../kit/wording.ts';
import { type ChainDefinition, type Condition, conditions, type Rule, type RuleCondition } from '../model/chain.ts';
import type { ChainSummary } from '../model/summary.ts';
import { canFailWith, traitsOf } from './conditions.ts';
import { cooldownOf, cooldownSentence } from './cooldown.ts';
import type { Engine } from './engine.ts';
import { defaulted, worstCase } from './reach.ts';
import { listed, shortened, times } from './wording.ts';

/** Describes a chain in a few sentences, with the underlying facts, but without its latest test. */
export function summaryOf(engine: Engine, lossless_formats: ChainSummary['lossless_formats']): Omit<ChainSummary, 'last_test'> {
  const { chain } = engine;
  const { providers, fallback_rules } = chain;
  const by_default = defaulted(engine);
  const with_rule: RuleCondition[] = conditions.filter(
    (condition) => !by_default.includes(condition) && providers.some((one) => canFailWith(one, condition)),
  );
  const worst_case = worstCase(engine);
  const hasBackup = providers.length > 1;
  return {
    text: [
      orderSentence(chain),
      ...fallback_rules.slice(0, maxSentences).map((rule) => ruleSentence(rule, hasBackup)),
      ...(fallback_rules.length > maxSentences ? [`${plural(fallback_rules.length - maxSentences, 'further rule')} not listed here.`] : []),
      defaultSentence(by_default, hasBackup),
      ...cooldownSentences(chain),
      longestSentence(worst_case),
    ].join(' '),
    provider_count: providers.length,
    rule_count: fallback_rules.length,
    primary: providers[0]!.name,
    last_resort: providers.at(-1)!.name,
    conditions: { with_rule, by_default },
    worst_case,
    lossless_formats,
  };
}

/** The most rules that the text describes. */
const maxSentences = 6;

function orderSentence({ name, providers }: ChainDefinition): string {
  const [first, ...rest] = providers.map((provider) => provider.name);
  if (rest.length === 0) return `${name} asks ${first} and has no backup.`;
  return `${name} asks ${first} first and falls back to ${shortened(rest, 5, 'other provider').join(', then ')}.`;
}

function ruleSentence({ condition, action, max_retries, providers, status_codes, then, to }: Rule, hasBackup: boolean): string {
  const what = condition === 'any' ? (status_codes === null ? 'any other failure' : 'a failure') : condition;
  const codes = status_codes === null ? '' : ` with status ${status_codes.join(' or ')}`;
  const where = providers === null ? '' : ` of ${listed(providers)}`;
  const onward = to === null ? '' : ` to ${shortened(to, 5, 'other provider').join(', then ')}`;
  const does: Record<typeof action, string> = {
    retry: `retries ${times(max_retries ?? 0)}, then ${then === 'failover' && hasBackup ? `fails over${onward}` : 'fails'}`,
    failover: hasBackup ? `fails over${onward} at once` : 'fails',
    fail: 'fails',
  };
  return `On ${what}${codes}${where} it ${does[action]}.`;
}

/** The worst case; the time to the first content of a stream only where a limit makes it shorter. */
function longestSentence({ attempts, latency_ms, first_token_ms }: ChainSummary['worst_case']): string {
  const streamed = first_token_ms < latency_ms ? `, ${duration(first_token_ms)} until the first content of a stream` : '';
  return `One prompt takes at most ${plural(attempts, 'attempt')} and ${duration(latency_ms)}${streamed}.`;
}

/** The cool-downs, with one sentence for all providers that have the same. */
function cooldownSentences(chain: ChainDefinition): string[] {
  const cooled = chain.providers.flatMap((provider) => {
    const cooldown = cooldownOf(chain, provider);
    return cooldown === null ? [] : [{ name: provider.name, cooldown }];
  });
  return [...Map.groupBy(cooled, ({ cooldown }) => JSON.stringify(cooldown)).values()].map((sharing) =>
    cooldownSentence(
      sharing[0]!.cooldown,
      sharing.length === chain.providers.length
        ? 'a provider'
        : shortened(
            sharing.map(({ name }) => name),
            5,
            'other provider',
          ).join(' or '),
    ),
  );
}

function defaultSentence(byDefault: readonly Condition[], hasBackup: boolean): string {
  if (byDefault.length === 0) return 'Rules decide every failure.';
  const goesOn = (condition: Condition) => hasBackup && traitsOf[condition].byDefault === 'failover';
  const failing = byDefault.filter((condition) => !goesOn(condition));
  const going = byDefault.filter(goesOn);
  const parts = [
    ...(going.length > 0 ? [`fails over on ${listed(going)}`] : []),
    ...(failing.length > 0 ? [`fails on ${listed(failing)}`] : []),
  ];
  return `Without a rule it ${parts.join(' and ')}.`;
}
