import { createParser } from 'eventsource-parser';
import type { Clock } from '../../kit/clock.ts';
import { readJson } from '../../kit/json.ts';
import { OutgoingError, type OutgoingFailure } from '../../kit/outgoing/failures.ts';
import type { Outgoing, OutgoingAnswer } from '../../kit/outgoing/outgoing.ts';
import { retryAfterMs } from '../../kit/retry-after.ts';
import { type Endpoint, noAnswer } from '../model/request.ts';
import { conditionOf, conditionOfAnswer, ofNoAnswer, ofStream } from '../rules/conditions.ts';
import { callAddress, endpointOf, modelName } from '../rules/kinds.ts';
import type { Shape } from '../rules/shapes.ts';
import { anthropic } from './anthropic.ts';
import { openai } from './openai.ts';
import { type Answer, arrayOf, type ChatProtocol, objectOf, textOf } from './protocol.ts';
import { responses } from './responses.ts';
import { StreamWatch } from './stream-watch.ts';
import { type Call, type CallResult, failed } from './transport.ts';

/** The size limits of answers and of error bodies, in bytes. */
const maxAnswerBytes = 8 * 1024 * 1024;

const protocols: Readonly<Record<Endpoint, ChatProtocol>> = { chat: openai, messages: anthropic, responses };

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
  readonly shape: Shape;
  /** Whether the API is that of the shape, as a gateway has it, and not the provider's own. */
  readonly isGateway?: boolean;
  /** What is noted of the answer while it arrives. */
  readonly received?: ReceivedAnswer;
  readonly signal: AbortSignal;
}

/** What has arrived of an answer. */
export class ReceivedAnswer {
  /** Null without a response. */
  status: number | null = null;
  /** The answer so far; undefined without one that can be read. */
  answer: (() => Answer | undefined) | undefined;
  /** When the first content of a stream arrived, by the clock; null if none did. */
  firstContentAt: number | null = null;
  readonly #now: () => number;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  noteContent(hasContent: boolean): void {
    if (hasContent) this.firstContentAt ??= this.#now();
  }
}

/** Calls a provider once. The result contains no text of the provider except an error code. */
export async function callProvider({ outgoing, clock }: CallDependencies, call: RealCall): Promise<CallResult> {
  const { provider, prompt, key, headers: further, shape, isGateway = false, received, timeoutMs, signal } = call;
  const { stream } = shape;
  const endpoint = isGateway ? shape.endpoint : endpointOf(provider);
  const protocol = protocols[endpoint];
  // A real request is sent as it is only to the API that it is for.
  const sent = shape.endpoint === endpoint ? shape : { ...shape, body: null };
  const { headers, body } = protocol.request(provider, prompt, sent);
  const request = {
    url: callAddress(provider, endpoint)!,
    headers: {
      'content-type': 'application/json',
      accept: stream ? 'text/event-stream' : 'application/json',
      ...headers,
      // Gateways take their own key in the same header at each of their APIs.
      ...(key === undefined ? {} : (isGateway ? openai : protocol).keyHeaders(key)),
      // A gateway may close an idle connection at the moment at which it is reused (uvicorn does after 5 s, and announces no time).
      ...(isGateway ? { connection: 'close' } : {}),
      ...further,
    },
    body,
    timeoutMs,
    maxBytes: maxAnswerBytes,
  };
  const watch = new StreamWatch(stream ? provider : { first_token_ms: null, idle_ms: null });
  try {
    return await exchanged({ ...request, signal: AbortSignal.any([signal, watch.signal]) });
  } finally {
    watch.stop();
  }

  async function exchanged(sent: Parameters<Outgoing['open']>[0]): Promise<CallResult> {
    let answer: OutgoingAnswer;
    try {
      answer = await outgoing.open(sent);
    } catch (error) {
      return watch.expired === null ? unanswered(failureOf(error)) : late;
    }
    if (received !== undefined) received.status = answer.status;
    if (answer.status >= 200 && answer.status < 300) return read(answer, protocol, watch, received);
    return refused(answer, { model: modelName(provider), key, clock });
  }
}

/** The result of a stream whose first content is late. */
const late: CallResult = { ...failed, condition: ofStream.late, status_code: null, error: 'no content in time' };

function failureOf(error: unknown): OutgoingFailure {
  if (error instanceof OutgoingError) return error.failure;
  throw error;
}

/** The result of a call without a response. */
function unanswered(failure: OutgoingFailure): CallResult {
  if (failure === 'timeout') return { ...failed, condition: ofNoAnswer.late, status_code: null, error: noAnswer };
  return { ...failed, condition: ofNoAnswer.broken, status_code: null, error: failure };
}

/** The result of a response other than 2xx. Its body is only read for the error code. */
async function refused(
  answer: OutgoingAnswer,
  { model, key, clock }: { model: string; key: string | undefined; clock: Clock },
): Promise<CallResult> {
  const { status, headers } = answer;
  let said = noText;
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
    condition: conditionOf(status, [...said.codes, said.message, said.field].join(' '), model),
    status_code: status,
    retry_after_ms: retryAfterMs(headers['retry-after'], clock()),
    error: isRedirect ? 'redirect_refused' : `HTTP ${status}${code === undefined ? '' : ` ${code}`}`,
  };
}

/** The codes, the message and the named field of an error body. */
interface ErrorText {
  readonly codes: readonly string[];
  readonly message: string;
  /** As `"param":"NAME"`; empty without one. */
  readonly field: string;
}

const noText: ErrorText = { codes: [], message: '', field: '' };

/** What an error body says, in the places of the usual APIs. */
function errorText(text: string): ErrorText {
  let body: Record<string, unknown>;
  try {
    const parsed: unknown = readJson(text);
    // Gemini's answer is a list of one error.
    body = objectOf(Array.isArray(parsed) ? parsed[0] : parsed);
  } catch {
    return noText;
  }
  const error = objectOf(body.error);
  const inner = objectOf(error.innererror);
  const reasons = arrayOf(error.details).map((detail) => objectOf(detail).reason);
  // A list of faults, as FastAPI writes it.
  const [fault] = [body.detail, objectOf(body.message).detail, body.message].flatMap((list) => arrayOf(list).slice(0, 1)).map(objectOf);
  const codes = [error.code, inner.code, error.type, error.status, body.code, body.type, fault?.type, ...reasons]
    .map(textOf)
    .filter((code) => code !== null);
  const message = textOf(error.message) ?? textOf(body.error) ?? textOf(body.message) ?? textOf(body.detail) ?? textOf(fault?.msg) ?? '';
  const param = textOf(error.param) ?? textOf(body.param);
  return { codes, message, field: param === null ? '' : `"param":"${param}"` };
}

/** The result of a 2xx, which is read completely. */
async function read(
  answer: OutgoingAnswer,
  protocol: ChatProtocol,
  watch: StreamWatch,
  received: ReceivedAnswer | undefined,
): Promise<CallResult> {
  const { status } = answer;
  let found: Answer | undefined;
  try {
    const isStream = /^text\/event-stream\b/i.test(answer.headers['content-type'] ?? '');
    found = isStream ? await readStream(answer, protocol, watch, received) : protocol.answerOf(readJson(await answer.text()));
    if (!isStream && received !== undefined) received.answer = () => found;
  } catch (error) {
    if (watch.expired === ofStream.late) return late;
    if (watch.expired !== null) return interrupted(status, 'the stream stalled');
    if (!(error instanceof OutgoingError)) {
      return watch.hasContent ? interrupted(status, 'the stream has an error') : unusable(status, 'the answer is malformed');
    }
    if (error.failure === 'timeout') return unanswered('timeout');
    if (watch.hasContent && error.failure !== 'too_large') return interrupted(status, 'the stream was cut');
    return unusable(status, error.failure === 'too_large' ? 'too_large' : 'the answer was cut');
  }
  if (found === undefined) return unusable(status, 'the answer has no content');
  const { text, toolCalls, finishReason, usage } = found;
  const condition = toolCalls.length > 0 && text === '' ? null : conditionOfAnswer(text, finishReason);
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

/** The result of a stream that ended early, after content had arrived. It is unknown whether it is charged. */
const interrupted = (status_code: number, error: string): CallResult => ({ ...unusable(status_code, error), condition: ofStream.broken });

/** The answer of a stream. @throws OutgoingError if it ended early */
async function readStream(
  answer: OutgoingAnswer,
  protocol: ChatProtocol,
  watch: StreamWatch,
  received: ReceivedAnswer | undefined,
): Promise<Answer> {
  const reader = protocol.readStream();
  if (received !== undefined) received.answer = () => reader.answer();
  let isWhole = false;
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (reader.take(event ?? '', data)) isWhole = true;
      // Noted for each event, since one that can't be read may follow in the same chunk.
      watch.note(reader.hasContent());
      received?.noteContent(reader.hasContent());
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (isWhole) return reader.answer();
  }
  throw new OutgoingError('connection_reset');
}
