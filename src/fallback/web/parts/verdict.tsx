import { Badge, type Tone } from '../../../kit/web/components/feedback.tsx';

/** The meaning of each verdict. */
export const verdictMeanings: Record<string, string> = {
  pass: 'Every prompt was served and every check holds.',
  partial: 'Every prompt was served, but an advisory check fails.',
  safe: 'Prompts were lost, but only as the rules ask for and within the worst case.',
  fail: 'The chain does not do what it should.',
};

const tones: Record<string, Tone> = { pass: 'good', partial: 'warn', safe: 'warn', fail: 'bad', running: 'info' };

/** A verdict, or the status of a test without one. */
export function Verdict({ verdict, status }: { verdict: string | null; status: string }) {
  const word = verdict ?? status;
  return <Badge tone={tones[word] ?? 'neutral'}>{word}</Badge>;
}
