import { type Fault, faultOf } from '../../kit/errors.ts';
import type { Condition, Provider } from '../model/chain.ts';
import type { InjectedFaultRequest } from '../model/test.ts';
import { withoutNulls } from './chain.ts';
import { ofStream } from './conditions.ts';

/** How a stream goes wrong behind some parts of its content. Which failure that is, the limits of the provider decide: a silence may be any of three, or none. */
export interface StreamFault {
  /** The connection breaks; the stream ends without its final event, or with an error; a part is no JSON; it is silent for a while. */
  readonly way: 'cut' | 'unfinished' | 'error' | 'malformed' | 'stall';
  readonly afterChunks: number;
  /** How long the silence lasts, in milliseconds; null for any other way. */
  readonly stallMs: number | null;
}

/** The parts of text in the answer of a fake provider, by which repeated and lost ones are seen. */
export const shownParts = (provider: string): string[] => [`${provider} answers.`, ' One,', ' two,', ' three.'];

type Limits = Pick<Provider, 'first_token_ms' | 'idle_ms' | 'timeout_ms'>;

const ways = { error_event: 'error', malformed_chunk: 'malformed', cut_tool_call: 'unfinished', no_final_event: 'unfinished' } as const;
const wayNames = Object.keys(ways) as (keyof typeof ways)[];

/** How a fault of a request lets a stream go wrong; undefined if it has no field for that. */
export function streamFaultOf(request: InjectedFaultRequest): StreamFault | undefined {
  const { after_chunks, stall_ms, condition } = withoutNulls(request);
  const named = wayNames.find((name) => request[name] === true);
  if (named === undefined && stall_ms === undefined && (after_chunks === undefined || condition === 'content_filter')) return undefined;
  const afterChunks = after_chunks ?? (condition === ofStream.late || condition === 'invalid_response' ? 0 : 1);
  const way = named !== undefined ? ways[named] : stall_ms !== undefined ? 'stall' : 'cut';
  return { way, afterChunks, stallMs: way === 'stall' ? stall_ms! : null };
}

/** The failure by which a provider's stream goes wrong, by its limits; null if it only takes longer. */
export function conditionOfStream(
  { way, afterChunks, stallMs }: StreamFault,
  { first_token_ms, idle_ms, timeout_ms }: Limits,
): Condition | null {
  if (way !== 'stall') return afterChunks === 0 ? 'invalid_response' : ofStream.broken;
  const [limit, condition] = afterChunks === 0 ? [first_token_ms, ofStream.late] : [idle_ms, ofStream.broken];
  if (limit !== null && stallMs! > limit) return condition;
  return stallMs! > timeout_ms ? 'timeout' : null;
}

/** What is wrong with the fields for streams of a fault. */
export function streamFaults(request: InjectedFaultRequest, at: string, provider: Limits | undefined): Fault[] {
  const found: Fault[] = [];
  const given = withoutNulls(request);
  const named = [...wayNames.filter((name) => request[name] === true), ...(given.stall_ms === undefined ? [] : ['stall_ms'])];
  if (named.length > 1)
    found.push(faultOf(`${at}.${named[1]!}`, `cannot be given together with ${named[0]!}; a stream goes wrong in one way.`));
  const fault = streamFaultOf(request);
  if (fault === undefined || provider === undefined || given.condition === undefined) return found;
  const condition = conditionOfStream(fault, provider);
  if (condition !== given.condition)
    found.push(
      faultOf(
        `${at}.condition`,
        condition === null
          ? `is ${given.condition}, but a silence of ${fault.stallMs} ms is within the limits of the provider.`
          : `is ${given.condition}, but a stream that goes wrong like this is ${condition}.`,
      ),
    );
  return found;
}

/** How long a generated silence lasts beyond a limit: so long that a gateway which ignores the limit gets the rest of the answer. */
const beyondMs = 1500;

/** A fault whose silence before content has an end, so that the calls show whether a gateway waited for it. */
export function withEnd<F extends { readonly condition: Condition | null; readonly inStream?: StreamFault }>(
  fault: F,
  { first_token_ms: first }: Pick<Limits, 'first_token_ms'>,
): F {
  if (fault.condition !== ofStream.late || fault.inStream !== undefined || first === null) return fault;
  return { ...fault, inStream: { way: 'stall', afterChunks: 0, stallMs: first + beyondMs } };
}

/** The ways in which a provider's stream can go wrong, each with its name for a scene and the failure that it is at this provider. */
export function streamWaysOf(provider: Limits, hasTools: boolean): { name: string; fault: StreamFault; condition: Condition }[] {
  const fault = (way: StreamFault['way'], afterChunks: number, stallMs: number | null = null): StreamFault => ({
    way,
    afterChunks,
    stallMs,
  });
  const { first_token_ms: first, idle_ms: idle } = provider;
  const all: [string, StreamFault][] = [
    ...(first === null ? [] : [['silent before its content', fault('stall', 0, first + beyondMs)] as [string, StreamFault]]),
    ['an error event before its content', fault('error', 0)],
    ['a malformed part before its content', fault('malformed', 0)],
    ['cut behind content', fault('cut', 1)],
    ['without its final event', fault('unfinished', 2)],
    ['an error event behind content', fault('error', 1)],
    ['a malformed part behind content', fault('malformed', 1)],
    ...(idle === null ? [] : [['silent behind content', fault('stall', 1, idle + beyondMs)] as [string, StreamFault]]),
    ...(hasTools ? [['cut within a tool call', fault('unfinished', 2)] as [string, StreamFault]] : []),
  ];
  return all.flatMap(([name, one]) => {
    const condition = conditionOfStream(one, provider);
    return condition === null ? [] : [{ name, fault: one, condition }];
  });
}
