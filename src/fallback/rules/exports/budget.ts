import { conditions } from '../../model/chain.ts';
import { traitsOf } from '../conditions.ts';
import type { WarningList } from '../warning-list.ts';
import { times } from '../wording.ts';
import { reactionTo, type Source } from './target.ts';

/** The failures that a target with a single number of retries either all retries or not. */
const budgeted = conditions.filter((condition) => traitsOf[condition].common);

/**
 * The number of retries for a target that has a single number for all failures. If the chain retries some failures and
 * fails over on others, it is zero, since retrying a silent provider multiplies the wait; with `prefer=retry` it is the
 * largest number.
 */
export function oneBudget(source: Source, target: string, warnings: WarningList): number {
  const counts = source.chain.providers.flatMap((_, index) => budgeted.map((condition) => reactionTo(source, index, condition).retries));
  const most = Math.max(...counts);
  for (const { condition, max_retries } of source.routing.providers.flatMap(({ decisions }) => decisions)) {
    if (max_retries > 0 && !budgeted.includes(condition)) warnings.loss('retries', null, `${target} does not retry on ${condition}.`);
  }
  if (most === 0) return 0;
  if (counts.every((count) => count === most)) {
    warnOfWaits(target, warnings);
    return most;
  }
  if (source.prefer === 'retry') {
    warnings.loss(
      'one_budget',
      'fallback_rules',
      `${target} has one number of retries for all failures: rate limits, timeouts, server errors and failed connections are all retried ${times(most)}.`,
    );
    warnOfWaits(target, warnings);
    return most;
  }
  warnings.loss(
    'one_budget',
    'fallback_rules',
    `${target} has one number of retries for all failures, so nothing is retried and the next provider is tried at once; export with prefer=retry to retry everything instead.`,
  );
  return 0;
}

function warnOfWaits(target: string, warnings: WarningList): void {
  warnings.loss('waits', 'fallback_rules', `${target} chooses the waits between retries itself and ignores Retry-After.`);
}
