import { Badge, type Tone } from '../../../kit/web/components/feedback.tsx';
import { words } from '../../../kit/web/format.ts';
import type { TestResult, Verdict as VerdictName } from '../../model/test.ts';

/** The meaning of each verdict. */
export const verdictMeanings: Record<VerdictName, string> = {
  pass: 'Every prompt was served and every check holds.',
  partial: 'Every prompt was served, but an advisory check fails.',
  lost_as_ruled: 'Prompts were lost, as the rules say and within the worst case.',
  fail: 'The chain does not do what it should.',
  differs: 'The gateway does not do what the chain says.',
};

const tones: Record<VerdictName | TestResult['status'], Tone> = {
  pass: 'good',
  partial: 'warn',
  lost_as_ruled: 'warn',
  fail: 'bad',
  differs: 'bad',
  running: 'info',
  completed: 'neutral',
  failed: 'neutral',
  cancelled: 'neutral',
};

/** A verdict, or the status of a test without one. */
export function Verdict({ verdict, status }: Pick<TestResult, 'verdict' | 'status'>) {
  const word = verdict ?? status;
  return <Badge tone={tones[word]}>{words(word)}</Badge>;
}
