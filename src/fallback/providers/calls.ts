import { createParser } from 'eventsource-parser';

import type { Clock } from '../../kit/clock.ts';
import { OutgoingError, type OutgoingFailure } from '../../kit/outgoing/failures.ts';
import type { Outgoing, OutgoingAnswer } from '../../kit/outgoing/outgoing.ts';
import type { Provider } from '../model/chain.ts';
import { conditionOf, conditionOfAnswer, type ErrorWords, retryAfterMs } from '../rules/conditions.ts';
import { callAddress, type Protocol, protocolOf } from '../rules/kinds.ts';
import { anthropic } from './anthropic.ts';
import { openai } from './openai.ts';
import { type Answer, type ChatProtocol, objectOf, textOf } from './protocol.ts';
import type { CallResult } from './transport.ts';

/** The most bytes of an answer, and of an error's body, of which only a code is read. */
const maxAnswerBytes = 8 * 1024 * 1024;

const protocols: Readonly<Record<Protocol, ChatProtocol>> = { openai, anthropic };

/** What a real call needs. */
export interface CallParts {
  outgoing: Outgoing;
  clock: Clock;
}

/** A real call to be made. */
export interface RealCall {
  readonly provider: Provider;
  readonly prompt: string;
  /** The key that goes with it; undefined for none. */
  readonly key: string | undefined;
  readonly stream: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Calls a provider once and says what came of it. Nothing that the provider wrote is kept but the code of an error. */
export async function callProvider({ outgoing, clock }: CallParts, call: RealCall): Promise<CallResult> {
  const { provider, prompt, key, stream, timeoutMs, signal } = call;
  const protocol = protocols[protocolOf(provider)];
  const { headers, body } = protocol.request(provider, prompt, stream);
  const request = {
    url: callAddress(provider)!,
    headers: {
      'content-type': 'application/json',
      accept: stream ? 'text/event-stream' : 'application/json',
      ...headers,
      ...(key === undefined ? {} : protocol.keyHeaders(key)),
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

const failed = { retry_after_ms: null, injected: false, charged: false, usage: null };

function failureOf(error: unknown): OutgoingFailure {
  if (error instanceof OutgoingError) return error.failure;
  throw error;
}

/** A call of which no answer arrived. */
function unanswered(failure: OutgoingFailure): CallResult {
  if (failure === 'timeout') return { ...failed, condition: 'timeout', status_code: null, error: 'no answer in time' };
  return { ...failed, condition: 'connection_error', status_code: null, error: failure };
}

/** An answer with another status than 2xx; its body is read for the code of the error alone. */
async function refused(answer: OutgoingAnswer, key: string | undefined, clock: Clock): Promise<CallResult> {
  const { status, headers } = answer;
  let words: ErrorWords = { codes: [], message: '' };
  try {
    words = errorWords(await answer.text());
  } catch (error) {
    // The status has decided already; a body that is cut or late can only say less.
    failureOf(error);
  }
  const code = words.codes.find((one) => /^[\w.-]{1,64}$/.test(one) && (key === undefined || !one.includes(key)));
  const isRedirect = status >= 300 && status < 400;
  return {
    ...failed,
    condition: conditionOf(status, words),
    status_code: status,
    retry_after_ms: retryAfterMs(headers['retry-after'], clock()),
    error: isRedirect ? 'redirect_refused' : `HTTP ${status}${code === undefined ? '' : ` ${code}`}`,
  };
}

/** The codes and the sentence of an error's body, wherever the usual APIs put them. */
function errorWords(text: string): ErrorWords {
  let body: Record<string, unknown>;
  try {
    body = objectOf(JSON.parse(text));
  } catch {
    return { codes: [], message: '' };
  }
  const error = objectOf(body.error);
  const inner = objectOf(error.innererror);
  const codes = [error.code, inner.code, error.type, error.status, body.code, body.type].map(textOf).filter((code) => code !== null);
  return { codes, message: textOf(error.message) ?? textOf(body.error) ?? textOf(body.message) ?? '' };
}

/** A 2xx, read to its end. */
async function read(answer: OutgoingAnswer, protocol: ChatProtocol): Promise<CallResult> {
  const { status } = answer;
  let found: Answer | undefined;
  try {
    const isStream = /^text\/event-stream\b/i.test(answer.headers['content-type'] ?? '');
    found = isStream ? await readStream(answer, protocol) : protocol.answerOf(JSON.parse(await answer.text()));
  } catch (error) {
    if (!(error instanceof OutgoingError)) return unusable(status, 'the answer is not of the form its API has');
    if (error.failure === 'timeout') return unanswered('timeout');
    return unusable(status, error.failure === 'too_large' ? 'too_large' : 'the answer was cut');
  }
  if (found === undefined) return unusable(status, 'there is no answer in it');
  const { text, finishReason, usage } = found;
  const condition = conditionOfAnswer(text, finishReason);
  const error = condition === null ? null : condition === 'content_filter' ? 'the answer was held back' : 'the answer is empty';
  return { condition, status_code: status, retry_after_ms: null, injected: false, error, charged: true, usage };
}

/** A 2xx that is of no use. Whether and for what it is charged is not known. */
const unusable = (status_code: number, error: string): CallResult => ({
  ...failed,
  condition: 'invalid_response',
  status_code,
  error,
  charged: true,
});

/** The answer of a stream; undefined where it ended before it said that it was whole. */
async function readStream(answer: OutgoingAnswer, protocol: ChatProtocol): Promise<Answer | undefined> {
  const reader = protocol.readStream();
  const parser = createParser({ onEvent: ({ event, data }) => reader.take(event ?? '', data) });
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (reader.answer !== undefined) break;
  }
  if (reader.answer === undefined) throw new OutgoingError('connection_reset');
  return reader.answer;
}
