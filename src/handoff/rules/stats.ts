import type { AnyPacket } from './packet.ts';
import { askedStatus, claimableStatus, openStatuses, workingStatuses } from './packet-life.ts';
import { isAwaited, questionAtChange } from './question-state.ts';

/** What open packets are counted as: without a holder, held by an agent, or with a question to a person. */
export const levels = ['waiting', 'held', 'asked'] as const;
type Level = (typeof levels)[number];

/** An amount that a change of a packet adds to a count of its hour. */
export interface HourlyAmount {
  /** A level, an end, `removed` for open packets that were deleted permanently, or `answered:NN` with the step of the time to the answer. */
  readonly name: string;
  readonly by: 1 | -1;
}

/** The statuses of packets that are not finished, by what they are counted as. */
const statusesOf: Readonly<Record<Level, readonly string[]>> = { waiting: [claimableStatus], held: workingStatuses, asked: [askedStatus] };

/** What packets of a status are counted as; undefined for those that are finished. */
export const levelOfStatus = (status: string): Level | undefined => levels.find((level) => statusesOf[level].includes(status));

const levelOf = (status: string | undefined) => (status === undefined ? undefined : levelOfStatus(status));

const isOpen = (status: string): boolean => (openStatuses as readonly string[]).includes(status);

/**
 * What a change of a packet adds to the counts of its hour: nothing, unless its status changed. A packet that is created has no
 * `before`, one that is deleted permanently no `after`. A packet ends once: a completed one that is deleted still counts as completed.
 */
export function hourlyAmounts(before: AnyPacket | undefined, after: AnyPacket | undefined): HourlyAmount[] {
  if (before?.status === after?.status) return [];
  const answer = before === undefined || after === undefined ? undefined : answerTime(before, after);
  return [...amountsOfMove(before?.status, after?.status), ...(answer === undefined ? [] : [{ name: answeredIn(answer), by: 1 as const }])];
}

/** What a change between two statuses adds to the counts of its hour; undefined: before the packet was created, and after it was deleted permanently. */
export function amountsOfMove(before: string | undefined, after: string | undefined): HourlyAmount[] {
  if (before === after) return [];
  const [left, entered] = [levelOf(before), levelOf(after)];
  const moved: HourlyAmount[] =
    left === entered
      ? []
      : [
          ...(left === undefined ? [] : [{ name: left, by: -1 as const }]),
          ...(entered === undefined ? [] : [{ name: entered, by: 1 as const }]),
        ];
  if (before === undefined || !isOpen(before)) return moved;
  if (after === undefined) return [...moved, { name: 'removed', by: 1 }];
  return isOpen(after) ? moved : [...moved, { name: after, by: 1 }];
}

/** The count of answers that took as long, in seconds. */
export const answeredIn = (seconds: number): string => `answered:${stepOf(seconds)}`;

/** How long an answer took, in seconds, if the change is an answer. */
function answerTime(before: AnyPacket, after: AnyPacket): number | undefined {
  const latest = questionAtChange(after);
  if (!isAwaited(before) || latest.state !== 'answered' || questionAtChange(before).state === 'answered') return undefined;
  return (Date.parse(latest.answer.responded_at) - Date.parse(latest.asked.requested_at)) / 1000;
}

/** Times to answers are counted in steps: four for each doubling, from a second to most of a year. */
const stepsPerDoubling = 4;
const lastStep = 99;

/** The step of a time in seconds, with two digits. */
const stepOf = (seconds: number): string =>
  String(Math.min(lastStep, Math.round(stepsPerDoubling * Math.log2(Math.max(1, seconds))))).padStart(2, '0');

/** The median of times that were counted in steps, in seconds, at most ten percent off; null without any. */
export function medianSeconds(counts: ReadonlyMap<string, number>): number | null {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (const [step, count] of [...counts].toSorted(([one], [other]) => (one < other ? -1 : 1))) {
    seen += count;
    if (seen * 2 >= total && count > 0) return Math.round(2 ** (Number(step) / stepsPerDoubling));
  }
  return null;
}
