import type { Hitl } from './hitl.ts';

/** What approvers may let stand for later. */
type Limits = NonNullable<Hitl['remember']>;

const times: readonly (readonly [seconds: number, label: string])[] = [
  [3600, '1 hour'],
  [86_400, '1 day'],
  [604_800, '7 days'],
  [2_592_000, '30 days'],
];

/** The scopes that pages offer for an approval that stands, with their labels. */
export const scopeChoices = ({ scope }: Limits, tool: string): readonly (readonly ['call' | 'tool', string])[] => [
  ['call', 'This call, with the same arguments'],
  ...(scope === 'tool' ? [['tool', `Any call of ${tool}`] as const] : []),
];

/** The times that pages offer for an approval that stands, in seconds, with their labels; the longest that is allowed is the last. */
export function timeChoices({ max_seconds }: Limits): readonly (readonly [number, string])[] {
  const shorter = times.filter(([seconds]) => seconds < max_seconds);
  const longest = times.find(([seconds]) => seconds === max_seconds)?.[1] ?? inWords(max_seconds);
  return [...shorter, [max_seconds, longest]];
}

function inWords(seconds: number): string {
  for (const [unit, name] of [
    [86_400, 'days'],
    [3600, 'hours'],
    [60, 'minutes'],
  ] as const)
    if (seconds % unit === 0) return `${seconds / unit} ${name}`;
  return `${seconds} seconds`;
}
