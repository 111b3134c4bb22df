import { type Fault, faultOf } from '../../kit/errors.ts';
import type { ChainDefinition } from '../model/chain.ts';
import { maxPrompts, type TestRequest } from '../model/test.ts';
import type { Timeline, TimelineRequest } from '../model/timeline.ts';
import { canFailWith, isOfStream } from './conditions.ts';
import { shapeFaults, shapesOf } from './shapes.ts';
import type { FinishedPrompt } from './statistics.ts';
import { listed } from './wording.ts';

/** A time in milliseconds from the start of a timeline, up to an exclusive end. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** A time in which a cool-down leaves out a provider, by index. */
export interface OutSpan extends Span {
  readonly provider: number;
}

/** The number of prompts of a timeline: every one that begins before its end. */
export const promptsOf = ({ rate_per_minute, seconds }: TimelineRequest): number => Math.ceil((rate_per_minute * seconds) / 60);

/** When a prompt of a timeline begins, in milliseconds. */
export const startOf = ({ rate_per_minute }: Pick<TimelineRequest, 'rate_per_minute'>, index: number): number =>
  (index * 60_000) / rate_per_minute;

/** The faults of a request's timeline. */
export function timelineFaults({ providers }: ChainDefinition, request: TestRequest): Fault[] {
  const { timeline, mode } = request;
  if (!timeline) return [];
  const found: Fault[] = [];
  const fault = (field: string, rest: string) => found.push(faultOf(field, rest));
  if (mode === 'drill' || mode === 'live')
    fault('timeline', 'is only for the modes simulate, where time is virtual, and rehearsal, where no call costs money.');
  for (const field of ['faults', 'preset', 'prompt_count'] as const)
    if (request[field] !== undefined && request[field] !== null)
      fault(field, 'cannot be given together with timeline, which has its own plan and number of prompts.');
  const hasWhole = mode === 'rehearsal' && shapeFaults(request).length === 0 && shapesOf(request).some(({ stream }) => !stream);
  const prompts = promptsOf(timeline);
  if (prompts > maxPrompts)
    fault(
      'timeline.rate_per_minute',
      `makes ${prompts} prompts in ${timeline.seconds} s, and a test can have at most ${maxPrompts}; for this time it can be at most ${Math.floor((maxPrompts * 60) / timeline.seconds)}.`,
    );
  for (const [index, { provider, from_s, to_s, condition }] of timeline.outages.entries()) {
    const at = `timeline.outages.${index}`;
    const named = providers.find(({ name }) => name === provider);
    if (named === undefined)
      fault(`${at}.provider`, `names no provider of this chain; its providers are ${listed(providers.map(({ name }) => name))}.`);
    else if (!canFailWith(named, condition)) fault(`${at}.condition`, `can't be ${condition} at ${provider}, which has no first_token_ms.`);
    else if (hasWhole && isOfStream(condition))
      fault(`${at}.condition`, `is ${condition}, which only a streamed answer can have; let all prompts stream (stream: true).`);
    if (to_s <= from_s) fault(`${at}.to_s`, 'must be greater than from_s, since the outage ends before it.');
    if (from_s >= timeline.seconds) fault(`${at}.from_s`, `must be less than seconds, which is ${timeline.seconds}.`);
  }
  return found;
}

/** The prompts of a timeline in order, the times in which providers were left out, and when prompts began if that was not as planned. */
interface PlayedTimeline {
  readonly prompts: readonly FinishedPrompt[];
  readonly outs: readonly OutSpan[];
  readonly begins?: (index: number) => number;
}

/** What a timeline did, from its prompts in order and the times in which providers were left out. Pure. */
export function timelineOf(
  { providers }: ChainDefinition,
  request: TimelineRequest,
  { prompts, outs, begins = (index) => startOf(request, index) }: PlayedTimeline,
): Timeline {
  const nameOf = (provider: number) => providers[provider]!.name;
  const rows = new Map<number, Timeline['seconds'][number]>();
  const rowAt = (ms: number) => {
    const second = Math.floor(ms / 1000);
    const row = rows.get(second) ?? { second, calls: [], out: [], failed: 0, slow: 0 };
    rows.set(second, row);
    return row;
  };
  for (let second = 0; second < request.seconds; second += 1) rowAt(second * 1000);
  const first = nameOf(0);
  let [cost, failedAt, backAt]: [number | null, number | null, number | null] = [0, null, null];
  const ofFirst: { at: number; failed: boolean }[] = [];
  for (const { result } of prompts) {
    const start = begins(result.index);
    const row = rowAt(start);
    if (!result.success) row.failed += 1;
    else if (result.attempts.length > 1) row.slow += 1;
    for (const { provider, condition, start_ms, cost_usd } of result.attempts) {
      rowAt(start + start_ms).calls.push({ provider, condition });
      cost = cost === null || cost_usd === null ? null : cost + cost_usd;
      if (provider === first) ofFirst.push({ at: start + start_ms, failed: condition !== null });
    }
  }
  for (const { at, failed } of ofFirst.sort((one, other) => one.at - other.at)) {
    if (failed) [failedAt, backAt] = [at, null];
    else if (failedAt !== null) backAt ??= at;
  }
  for (const row of rows.values())
    row.out = outs
      .filter(({ from, to }) => from < (row.second + 1) * 1000 && to > row.second * 1000)
      .map(({ provider, to }) => ({ provider: nameOf(provider), until_s: inSeconds(to) }));
  const last = providers.length - 1;
  const away = providers
    .slice(0, last)
    .map(({ name }, provider) =>
      joined([
        ...outs.filter((out) => out.provider === provider),
        ...request.outages
          .filter((outage) => outage.provider === name)
          .map(({ from_s, to_s }) => ({ from: from_s * 1000, to: to_s * 1000 })),
      ]),
    );
  const end = request.seconds * 1000;
  const alone = away.length === 0 ? [] : away.reduce(common, [{ from: 0, to: end }]);
  return {
    rate_per_minute: request.rate_per_minute,
    outages: request.outages,
    seconds: [...rows.values()].sort((one, other) => one.second - other.second),
    only_last: alone.map(({ from, to }) => ({ from_s: inSeconds(from), to_s: inSeconds(to) })),
    first_back_s: backAt === null ? null : inSeconds(backAt),
    cost: cost === null ? null : Math.round(cost * 1e9) / 1e9,
  };
}

/** Milliseconds in seconds, to the millisecond. */
const inSeconds = (ms: number) => Math.round(ms) / 1000;

/** The spans in order, without overlaps. */
function joined(spans: readonly Span[]): Span[] {
  const found: Span[] = [];
  for (const { from, to } of spans.toSorted((one, other) => one.from - other.from)) {
    const before = found.at(-1);
    if (before !== undefined && from <= before.to) found[found.length - 1] = { from: before.from, to: Math.max(before.to, to) };
    else found.push({ from, to });
  }
  return found;
}

/** What two lists of spans have in common. */
const common = (some: readonly Span[], others: readonly Span[]): Span[] =>
  some.flatMap((one) =>
    others.map((other) => ({ from: Math.max(one.from, other.from), to: Math.min(one.to, other.to) })).filter(({ from, to }) => from < to),
  );
