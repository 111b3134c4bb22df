import { beginningOf, plural } from '../../kit/wording.ts';
import { runsOf } from '../model/rehearsal.ts';
import type { PromptResult, TestResult } from '../model/test.ts';
import type { Timeline } from '../model/timeline.ts';
import { unservedAnswer } from '../rules/conditions.ts';
import { startOf } from '../rules/timeline.ts';
import { listed } from '../rules/wording.ts';
import type { Rehearsed, RehearsedProgram } from './rehearse.ts';

/** The longest name of a scene in the table; it is cut beyond. */
const longestScene = 60;

/**
 * The exit code of a rehearsal: 0 if all tested scenes agree, 1 for a difference that nothing explains and if none of the scenes
 * with a failure was tested, or no call met an outage, 3 if findings explain every difference.
 */
export function exitCodeOf({ result, differences }: Rehearsed): 0 | 1 | 3 {
  if (result.timeline && result.agreement!.not_tested > 0) return 1;
  const failing = result.results.filter(({ expected }) => expected?.attempts.some(({ condition }) => condition !== null));
  const isUntested = failing.length === 0 ? Boolean(result.timeline) : failing.every(({ tested }) => tested === false);
  if (result.verdict !== 'differs' && result.status === 'completed') return isUntested ? 1 : 0;
  const isExplained = result.error === null && differences.length > 0 && differences.every(({ because }) => because.length > 0);
  return isExplained ? 3 : 1;
}

/** The report of a rehearsal for people. */
export function reportOf({ result, program, differences, notes }: Rehearsed): string {
  const { agreement, assumptions, chain, results, error, timeline } = result;
  const isMixed = new Set(results.map(({ request }) => request?.stream)).size > 1;
  const rows = timeline
    ? secondsOf(results, timeline)
    : withTwins(results.map(rowOf)).map(({ answer, cells: [same, ...cells] }) => [same!, ...(isMixed ? [answer] : []), ...cells]);
  const titles = timeline ? ['second'] : [...(isMixed ? ['answer'] : []), 'scene'];
  const what = timeline ? 'prompt' : 'scene';
  const { prompts, agreeing, differing, not_tested, sent_again, stray_calls } = agreement!;
  const whole = prompts === 1 ? `The ${what} agrees.` : `All ${prompts} ${what}s agree.`;
  const parts = `${agreeing} of ${plural(prompts, what)} ${agreeing === 1 ? 'agrees' : 'agree'}, ${differing} ${differing === 1 ? 'differs' : 'differ'}${not_tested === 0 ? '.' : `, ${not_tested} ${not_tested === 1 ? 'was' : 'were'} not tested, because no call failed.`}`;
  const total = differing === 0 && not_tested === 0 ? whole : parts;
  return [
    `${chain.name}: ${chain.providers.map(({ name }) => name).join(', ')}`,
    '',
    ...tableOf([['', ...titles, 'the chain says', 'the gateway did'], ...rows]),
    '',
    ...(timeline ? timelineSentences(result) : []),
    ...(error === null ? [] : [error]),
    ...differences.flatMap(({ difference: { sentence, prompts: count }, because }) => [
      `- ${sentence}${count > 1 ? ` (${plural(count, what)})` : ''}`,
      ...because.map((detail) => `    explained: ${detail}`),
    ]),
    ...(stray_calls > 0 ? [`${plural(stray_calls, 'call')} of the fake providers belonged to no ${what}.`] : []),
    ...(sent_again > 0 ? [`${plural(sent_again, what)} agreed only when sent again.`] : []),
    // What an export leaves out is a note of it as well.
    ...new Set([...notes, ...assumptions]),
    ...measurement(program),
    total,
  ].join('\n');
}

/** The version of the gateway, and those that the findings are about. */
function measurement({ label, version, measured }: RehearsedProgram): string[] {
  if (measured.length === 0) return version === null ? [] : [`The gateway is ${label} ${version}.`];
  const words = `the findings were measured with ${listed(measured)}.`;
  return [version === null ? `Of ${label}, ${words}` : `The gateway is ${label} ${version}; ${words}`];
}

/** The prompts of a timeline in order, those with the same calls one after the other together; each with the seconds in which they began. */
function secondsOf(results: readonly PromptResult[], timeline: Timeline): string[][] {
  const rows: { from: number; to: number; cells: string[] }[] = [];
  for (const result of results) {
    const { cells } = rowOf(result);
    const second = Math.floor(startOf(timeline, result.index) / 1000);
    const shown = [cells[0]!, ...cells.slice(2)];
    const last = rows.at(-1);
    if (last !== undefined && String(last.cells) === String(shown)) last.to = second;
    else rows.push({ from: second, to: second, cells: shown });
  }
  return rows.map(({ from, to, cells: [same, ...cells] }) => [same!, from === to ? String(from) : `${from}-${to}`, ...cells]);
}

/** What a timeline says besides its calls, of the gateway and of the chain alone. */
function timelineSentences({ chain, timeline, expected_timeline: expected }: TestResult): string[] {
  const first = chain.providers[0]!.name;
  const back = (seconds: number | null) => (seconds === null ? 'not seen back' : `back at ${seconds} s`);
  const lost = ({ seconds }: Timeline) => seconds.reduce((sum, { failed }) => sum + failed, 0);
  if (!timeline || !expected) return [];
  return [
    `By the chain alone, ${first} is ${back(expected.first_back_s)} and ${plural(lost(expected), 'prompt')} fail; with the gateway it was ${back(timeline.first_back_s)}, and ${plural(lost(timeline), 'prompt')} failed.`,
  ];
}

interface Row {
  readonly answer: 'stream' | 'whole' | 'both';
  readonly cells: readonly string[];
}

function rowOf({ scenario, request, agrees, tested, expected, attempts, served_by, success }: PromptResult): Row {
  return {
    answer: request?.stream ? 'stream' : 'whole',
    cells: [
      tested === false ? 'not tested' : agrees === true ? 'same' : 'DIFFERS',
      scenario.length > longestScene ? `${beginningOf(scenario, longestScene - 3)}...` : scenario,
      callsText(expected!.attempts, expected!.served_by !== null, expected!.served_by),
      callsText(attempts, success, served_by),
    ],
  };
}

/** The rows. A scene that was played with streamed and with whole answers has one row if both say the same. */
function withTwins(rows: readonly Row[]): Row[] {
  return rows.flatMap((row, index) => {
    const isTwin = (other: Row | undefined) =>
      other !== undefined && other.answer !== row.answer && String(other.cells) === String(row.cells);
    if (row.answer === 'whole' && isTwin(rows[index - 1])) return [];
    return row.answer === 'stream' && isTwin(rows[index + 1]) ? [{ ...row, answer: 'both' as const }] : [row];
  });
}

/** The calls in order, as `gpt-4o x3, claude` or with how it ended if nobody answered. */
function callsText(
  attempts: readonly Pick<PromptResult['attempts'][number], 'provider' | 'condition'>[],
  success: boolean,
  served: string | null,
): string {
  const calls = runsOf(attempts).map(({ provider, calls: count }) => (count === 1 ? provider : `${provider} x${count}`));
  const end = !success ? ['error'] : served === null ? [unservedAnswer(attempts.at(-1)?.condition)] : [];
  return [...calls, ...end].join(', ');
}

/** Aligned columns. */
function tableOf(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd(),
  );
}
