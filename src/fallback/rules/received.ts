import { readJson } from '../../kit/json.ts';
import { plural } from '../../kit/wording.ts';
import type { Expected } from '../model/rehearsal.ts';
import type { Received, SentShape } from '../model/request.ts';
import { ofStream } from './conditions.ts';
import type { Shape } from './shapes.ts';
import { shownParts } from './stream-faults.ts';

/** An answer as it has arrived. */
interface Arrived {
  readonly text: string;
  readonly chunks: number;
  readonly toolCalls: readonly { readonly name: string | null; readonly arguments: string }[];
  readonly finishReason: string | null;
  readonly model: string | null;
}

/** The shape of a prompt's request, as results show it. */
export const sentShape = ({ endpoint, stream, index }: Shape): SentShape => ({ endpoint, stream, shape: index });

/** What the caller got: its answer, and which of the parts of fake providers are in it, and how often. */
export function receivedOf(
  arrived: Arrived | undefined,
  { status, error, time_to_first_token_ms }: Pick<Received, 'status' | 'error' | 'time_to_first_token_ms'>,
): Received {
  const { text = '', chunks = 0, toolCalls = [], finishReason = null, model = null } = arrived ?? {};
  // The first part names its provider.
  const counts = shownParts('').map((part) => text.split(part).length - 1);
  const isText = toolCalls.length === 0 && text !== '';
  return {
    status,
    text_chunks: chunks,
    duplicated: counts.reduce((sum, count) => sum + Math.max(count - 1, 0), 0),
    lost: isText ? counts.filter((count) => count === 0).length : 0,
    tool_calls: toolCalls.map((call) => ({ name: call.name, valid: isJson(call.arguments) })),
    finish_reason: finishReason,
    error,
    model,
    time_to_first_token_ms,
  };
}

function isJson(text: string): boolean {
  try {
    readJson(text);
    return true;
  } catch {
    return false;
  }
}

/** Failures that an answer shows only after its status was sent. */
const insideAnswers: ReadonlySet<string | null> = new Set([ofStream.broken, 'content_filter', 'invalid_response']);

/** What is wrong with what the caller got, where the calls and the end are those of the chain, as the end of a sentence; null if nothing is. */
export function faultOfReceived(
  expected: Expected,
  success: boolean,
  received: Received,
  shape: Pick<Shape, 'stream' | 'tools'>,
): string | null {
  const { duplicated, lost, tool_calls: calls, status } = received;
  if (duplicated > 0) return `the caller got ${plural(duplicated, 'part')} of the text more than once`;
  if (!success) {
    const isInside = shape.stream && status === 200 && !insideAnswers.has(expected.attempts.at(-1)!.condition);
    return isInside ? 'the caller got the error inside a stream with status 200, before which nothing had been sent' : null;
  }
  if (calls.some(({ valid }) => !valid)) return 'the caller got a broken call of a tool as a success';
  if (lost > 0) return `the caller did not get ${plural(lost, 'part')} of the text`;
  if (shape.tools.length > 0 && calls.length === 0) return 'the caller got no call of a tool, since the gateway did not pass the tools on';
  return null;
}
