import { counted, durationText, words } from '../../../kit/web/format.ts';
import { conditions, type RuleRequest, retryDefaults } from '../../model/chain.ts';
import { traitsOf } from '../../rules/conditions.ts';
import { listed } from '../../rules/wording.ts';

const ended = conditions.filter((condition) => traitsOf[condition].byDefault === 'fail').map(words);

/** What happens without rules. */
export const withoutRules = `Without rules, every failure goes to the next provider, except ${listed(ended)}, which are returned to the caller.`;

/** A description of a rule, being edited or stored. */
export function ruleText(rule: RuleRequest): string {
  const { condition, providers, status_codes } = rule;
  const what = condition === 'any' ? 'fails in any way' : `fails with ${words(condition)}`;
  const codes = status_codes?.length ? ` (status ${listed(status_codes, 'or')})` : '';
  const who = providers?.length ? listed(providers, 'or') : 'a provider';
  return `When ${who} ${what}${codes}, ${whatHappens(rule)}.`;
}

function whatHappens(rule: RuleRequest): string {
  const next = rule.to?.length ? rule.to.join(', then ') : 'the next provider';
  if (rule.action === 'failover') return `go to ${next} at once`;
  if (rule.action === 'fail') return 'stop and return the error';
  const retries = rule.max_retries ?? retryDefaults.max_retries;
  const wait = rule.wait_ms ?? retryDefaults.wait_ms;
  const longest = rule.max_wait_ms ?? retryDefaults.max_wait_ms;
  const times = `try the same provider again, ${counted(retries, 'more time')} at most`;
  const grows = rule.backoff !== 'constant' && retries > 1;
  const waits = `${grows ? 'first ' : ''}after ${durationText(Math.min(wait, longest))}${grows ? `, then longer, up to ${durationText(longest)}` : ''}`;
  const extended = rule.respect_retry_after !== false ? `; Retry-After can raise a wait to ${durationText(longest)}` : '';
  return `${times}, ${waits}${extended}; then ${rule.then === 'fail' ? 'stop and return the error' : `go to ${next}`}`;
}
