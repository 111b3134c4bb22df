// Without the schema library, which the console should not load.
import type { Action } from './action.ts';
import type { Hitl } from './hitl.ts';

type DecisionWord = NonNullable<Action['decisions']>[number];

/** The decisions that an action offers. */
export function offeredBy({ decisions = ['approve', 'edit', 'reject'] }: Pick<Action, 'decisions'>): readonly DecisionWord[] {
  return [...new Set<DecisionWord>([...decisions, 'reject'])];
}

/** Whether only a verified name counts as an answer: the question needs one, or a policy asks. */
export const takesOnlyVerified = ({ require_verified, verified_only }: Pick<Hitl, 'require_verified' | 'verified_only'>): boolean =>
  require_verified === true || verified_only === true;

/** The same as a sentence for people. */
export const onlyVerified =
  'Only a verified name counts: that of a person who has signed in, of a key for that person, or of a link made for that person.';
