import type { AnyPacket } from './packet.ts';
import { askedStatus, claimableStatus, openStatuses, workingStatuses } from './packet-life.ts';

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

const levelOf = (packet: AnyPacket | undefined) => packet && levelOfStatus(packet.status);

const isOpen = ({ status }: AnyPacket): boolean => openStatuses.includes(status);

/**
 * What a change of a packet adds to the counts of its hour: nothing, unless its status changed. A packet that is created has no
 * `before`, one that is deleted permanently no `after`. A packet ends once: a completed one that is deleted still counts as completed.
 */
export function hourlyAmounts(before: AnyPacket | undefined, after: AnyPacket | undefined): HourlyAmount[] {
  if (before?.status === after?.status) return [];
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
  const answer = answerTime(before, after);
  return [
    ...moved,
    ...(isOpen(after) ? [] : [{ name: after.status, by: 1 as const }]),
    ...(answer === undefined ? [] : [{ name: `answered:${stepOf(answer)}`, by: 1 as const }]),
  ];
}

/** How long an answer took, in seconds, if the change is an answer. */
function answerTime(before: AnyPacket, { hitl }: AnyPacket): number | undefined {
  if (before.status !== askedStatus || !hitl?.responded_at || hitl.responded_at === before.hitl?.responded_at) return undefined;
  return (Date.parse(hitl.responded_at) - Date.parse(hitl.requested_at ?? hitl.responded_at)) / 1000;
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
