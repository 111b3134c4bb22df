import { conditions } from '../../model/chain.ts';
import { traitsOf } from '../conditions.ts';
import { times } from '../wording.ts';
import type { Source } from './target.ts';

/** The failures that a target with a single number of retries either all retries or not. */
const budgeted = conditions.filter((condition) => traitsOf[condition].common);

/**
 * The number of retries for a target that has a single number for all failures. If the chain retries some failures and
 * fails over on others, it is zero, since retrying a silent provider multiplies the wait; with `prefer=retry` it is the
 * largest number.
 */
export function oneRetryCount({ providers, routing, prefer, warnings }: Source, target: string): number {
  const counts = providers.flatMap((provider) => budgeted.map((condition) => provider.reactionTo(condition).retries));
  const most = Math.max(...counts);
  for (const { condition, max_retries } of routing.providers.flatMap(({ decisions }) => decisions)) {
    if (max_retries > 0 && !budgeted.includes(condition)) warnings.loss('retries', null, `${target} does not retry on ${condition}.`);
  }
  if (most === 0) return 0;
  if (counts.some((count) => count !== most)) {
    const effect =
      prefer === 'retry'
        ? `: rate limits, timeouts, server errors and failed connections are all retried ${times(most)}.`
        : ', so nothing is retried and the next provider is tried at once; export with prefer=retry to retry everything instead.';
    warnings.loss('one_budget', 'fallback_rules', `${target} has one number of retries for all failures${effect}`);
    if (prefer !== 'retry') return 0;
  }
  warnings.loss('waits', 'fallback_rules', `${target} chooses the waits between retries itself and ignores Retry-After.`);
  return most;
}
