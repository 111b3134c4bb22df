// Without the schema library, which the console should not load.
import type { Action } from './action.ts';

type DecisionWord = NonNullable<Action['decisions']>[number];

/** The decisions that an action offers. */
export function offeredBy({ decisions = ['approve', 'edit', 'reject'] }: Pick<Action, 'decisions'>): readonly DecisionWord[] {
  return [...new Set<DecisionWord>([...decisions, 'reject'])];
}
