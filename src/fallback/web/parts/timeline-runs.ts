import { counted, words } from '../../../kit/web/format.ts';
import type { Timeline } from '../../model/timeline.ts';

type Second = Timeline['seconds'][number];

/** Seconds in a row, both of them included. */
export interface SecondRun {
  readonly from: number;
  readonly to: number;
}

/** The runs of seconds for which `isIn` holds. */
export function runsWhere(seconds: readonly Second[], isIn: (second: Second) => boolean): SecondRun[] {
  const runs: { from: number; to: number }[] = [];
  for (const row of seconds) {
    if (!isIn(row)) continue;
    const last = runs.at(-1);
    if (last !== undefined && last.to === row.second - 1) last.to = row.second;
    else runs.push({ from: row.second, to: row.second });
  }
  return runs;
}

/** A second as words: the calls, who is left out, and the prompts that were lost or slow. */
export interface SecondWords {
  readonly calls: string;
  readonly out: string;
  readonly prompts: string;
}

/** What happened in a second, as words. */
function wordsOf({ calls, out, failed, slow }: Second): SecondWords {
  const counts = new Map<string, number>();
  for (const { provider, condition } of calls) {
    const text = condition === null ? `${provider} answers` : `${provider} fails: ${words(condition)}`;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const prompts = [
    ...(failed === 0 ? [] : [`${counted(failed, 'prompt')} lost`]),
    ...(slow === 0 ? [] : [`${counted(slow, 'prompt')} served after a failed call`]),
  ];
  return {
    calls: [...counts].map(([text, count]) => (count === 1 ? text : `${text} (${count} times)`)).join(', ') || 'no calls',
    out: out.map(({ provider, until_s }) => `${provider} until ${until_s} s`).join(', '),
    prompts: prompts.join(', '),
  };
}

/** A second as one sentence. */
export function sentenceOf(second: Second | undefined): string {
  if (second === undefined) return 'no calls';
  const { calls, out, prompts } = wordsOf(second);
  return [calls, ...(out === '' ? [] : [`left out: ${out}`]), ...(prompts === '' ? [] : [prompts])].join('; ');
}

/** The seconds of a timeline, those in a row in which the same happened together. */
export function tableRows({ seconds }: Timeline): (SecondRun & SecondWords)[] {
  const rows: (SecondWords & { from: number; to: number })[] = [];
  for (const row of seconds) {
    const said = wordsOf(row);
    const last = rows.at(-1);
    if (last !== undefined && last.calls === said.calls && last.out === said.out && last.prompts === said.prompts) last.to = row.second;
    else rows.push({ from: row.second, to: row.second, ...said });
  }
  return rows;
}
