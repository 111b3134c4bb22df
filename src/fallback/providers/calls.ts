import { createParser } from 'eventsource-parser';

import type { Clock } from '../../kit/clock.ts';
import { OutgoingError, type OutgoingFailure } from '../../kit/outgoing/failures.ts';
import type { Outgoing, OutgoingAnswer } from '../../kit/outgoing/outgoing.ts';
import { retryAfterMs } from '../../kit/retry-after.ts';
import { conditionOf, conditionOfAnswer, ofNoAnswer } from '../rules/conditions.ts';
import { callAddress, type Protocol, protocolOf } from '../rules/kinds.ts';
import { anthropic } from './anthropic.ts';
import { openai } from './openai.ts';
import { type Answer, arrayOf, type ChatProtocol, objectOf, textOf } from './protocol.ts';
import { type Call, type CallResult, failed } from './transport.ts';

/** The size limits of answers and of error bodies, in bytes. */
const maxAnswerBytes = 8 * 1024 * 1024;

const protocols: Readonly<Record<Protocol, ChatProtocol>> = { openai, anthropic };

/** The dependencies of real calls. */
export interface CallDependencies {
  outgoing: Outgoing;
  clock: Clock;
}

interface RealCall extends Pick<Call, 'provider' | 'prompt' | 'timeoutMs'> {
  /** The key to send; undefined for none. */
  readonly key: string | undefined;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly stream: boolean;
  readonly signal: AbortSignal;
}

/** Calls a provider once. The result contains no text of the provider except an error code. */
export async function callProvider({ outgoing, clock }: CallDependencies, call: RealCall): Promise<CallResult> {
  const { provider, prompt, key, headers: further, stream, timeoutMs, signal } = call;
  const protocol = protocols[protocolOf(provider)];
  const { headers, body } = protocol.request(provider, prompt, stream);
  const request = {
    url: callAddress(provider)!,
    headers: {
      'content-type': 'application/json',
      accept: stream ? 'text/event-stream' : 'application/json',
      ...headers,
      ...(key === undefined ? {} : protocol.keyHeaders(key)),
      ...further,
    },
    body,
    timeoutMs,
    maxBytes: maxAnswerBytes,
    signal,
  };
  let answer: OutgoingAnswer;
  try {
    answer = await outgoing.open(request);
  } catch (error) {
    return unanswered(failureOf(error));
  }
  return answer.status >= 200 && answer.status < 300 ? read(answer, protocol) : refused(answer, key, clock);
}

function failureOf(error: unknown): OutgoingFailure {
  if (error instanceof OutgoingError) return error.failure;
  throw error;
}

/** The result of a call without a response. */
function unanswered(failure: OutgoingFailure): CallResult {
  if (failure === 'timeout') return { ...failed, condition: ofNoAnswer.late, status_code: null, error: 'no answer in time' };
  return { ...failed, condition: ofNoAnswer.broken, status_code: null, error: failure };
}

/** The result of a response other than 2xx. Its body is only read for the error code. */
async function refused(answer: OutgoingAnswer, key: string | undefined, clock: Clock): Promise<CallResult> {
  const { status, headers } = answer;
  let said: ErrorText = { codes: [], message: '' };
  try {
    said = errorText(await answer.text());
  } catch (error) {
    // An incomplete body does not matter: the status already determines a condition.
    failureOf(error);
  }
  const code = said.codes.find((one) => /^[\w.-]{1,64}$/.test(one) && (key === undefined || !one.includes(key)));
  const isRedirect = status >= 300 && status < 400;
  return {
    ...failed,
    condition: conditionOf(status, [...said.codes, said.message].join(' ')),
    status_code: status,
    retry_after_ms: retryAfterMs(headers['retry-after'], clock()),
    error: isRedirect ? 'redirect_refused' : `HTTP ${status}${code === undefined ? '' : ` ${code}`}`,
  };
}

/** The codes and the message of an error body. */
interface ErrorText {
  readonly codes: readonly string[];
  readonly message: string;
}

/** The codes and the message of an error body, in the places of the usual APIs. */
function errorText(text: string): ErrorText {
  let body: Record<string, unknown>;
  try {
    const parsed: unknown = JSON.parse(text);
    // Gemini's answer is a list of one error.
    body = objectOf(Array.isArray(parsed) ? parsed[0] : parsed);
  } catch {
    return { codes: [], message: '' };
  }
  const error = objectOf(body.error);
  const inner = objectOf(error.innererror);
  const reasons = arrayOf(error.details).map((detail) => objectOf(detail).reason);
  const codes = [error.code, inner.code, error.type, error.status, body.code, body.type, ...reasons]
    .map(textOf)
    .filter((code) => code !== null);
  return { codes, message: textOf(error.message) ?? textOf(body.error) ?? textOf(body.message) ?? '' };
}

/** The result of a 2xx, which is read completely. */
async function read(answer: OutgoingAnswer, protocol: ChatProtocol): Promise<CallResult> {
  const { status } = answer;
  let found: Answer | undefined;
  try {
    const isStream = /^text\/event-stream\b/i.test(answer.headers['content-type'] ?? '');
    found = isStream ? await readStream(answer, protocol) : protocol.answerOf(JSON.parse(await answer.text()));
  } catch (error) {
    if (!(error instanceof OutgoingError)) return unusable(status, 'the answer is malformed');
    if (error.failure === 'timeout') return unanswered('timeout');
    return unusable(status, error.failure === 'too_large' ? 'too_large' : 'the answer was cut');
  }
  if (found === undefined) return unusable(status, 'the answer has no content');
  const { text, finishReason, usage } = found;
  const condition = conditionOfAnswer(text, finishReason);
  const error = condition === null ? null : condition === ofNoAnswer.unusable ? 'the answer is empty' : 'blocked by a content filter';
  return { condition, status_code: status, retry_after_ms: null, injected: false, error, charged: true, usage };
}

/** The result of an unusable 2xx. It is unknown whether it is charged. */
const unusable = (status_code: number, error: string): CallResult => ({
  ...failed,
  condition: ofNoAnswer.unusable,
  status_code,
  error,
  charged: true,
});

/** The answer of a stream. @throws OutgoingError if it ended early */
async function readStream(answer: OutgoingAnswer, protocol: ChatProtocol): Promise<Answer> {
  const reader = protocol.readStream();
  let isWhole = false;
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (reader.take(event ?? '', data)) isWhole = true;
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (isWhole) return reader.answer();
  }
  throw new OutgoingError('connection_reset');
}
