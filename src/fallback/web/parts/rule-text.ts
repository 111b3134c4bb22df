import { counted, durationText, words } from '../../../kit/web/format.ts';

/** A rule being edited or stored; missing and null fields mean their default. */
export interface RuleLike {
  condition: string;
  action: string;
  max_retries?: number | null;
  providers?: readonly string[] | null;
  status_codes?: readonly number[] | null;
  wait_ms?: number | null;
  backoff?: string | null;
  max_wait_ms?: number | null;
  respect_retry_after?: boolean | null;
  then?: string | null;
}

const list = (items: readonly (string | number)[], joint: string): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} ${joint} ${items.at(-1)}`;

/** A description of a rule. */
export function ruleText(rule: RuleLike): string {
  const { condition, action, providers, status_codes } = rule;
  const what = condition === 'any' ? 'fails in any way' : `fails with ${words(condition)}`;
  const codes = status_codes?.length ? ` (status ${list(status_codes, 'or')})` : '';
  const who = providers?.length ? list(providers, 'or') : 'a provider';
  return `When ${who} ${what}${codes}, ${whatHappens(rule, action)}.`;
}

function whatHappens(rule: RuleLike, action: string): string {
  if (action === 'failover') return 'go to the next provider at once';
  if (action === 'fail') return 'stop and return the error';
  const { max_retries, wait_ms, backoff, max_wait_ms, respect_retry_after, then } = rule;
  const retries = max_retries ?? 1;
  const wait = wait_ms ?? 500;
  const longest = max_wait_ms ?? 10_000;
  const times = `try the same provider again, ${counted(retries, 'more time')} at most`;
  const grows = (backoff ?? 'exponential') === 'exponential' && retries > 1;
  const waits = `${grows ? 'first ' : ''}after ${durationText(Math.min(wait, longest))}${grows ? `, then longer, up to ${durationText(longest)}` : ''}`;
  const told = (respect_retry_after ?? true) ? `; Retry-After can raise a wait to ${durationText(longest)}` : '';
  return `${times}, ${waits}${told}; then ${(then ?? 'failover') === 'fail' ? 'stop and return the error' : 'go to the next provider'}`;
}
