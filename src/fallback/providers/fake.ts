import type { Condition } from '../model/chain.ts';
import { ofStream } from '../rules/conditions.ts';
import type { Protocol } from '../rules/kinds.ts';
import type { InjectedFault } from '../rules/plan.ts';
import { errorOf } from '../rules/provider-errors.ts';

/** The answer of a fake provider. */
interface FakeAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What follows the body: the end of the answer, the end of the connection, or nothing. */
  readonly then: 'end' | 'cut' | 'silence';
}

/** What a fake provider does with a call: it answers, never does, or breaks the connection. */
export type FakeReaction = FakeAnswer | 'silence' | 'broken';

/** A call of a fake provider. */
interface FakeCall {
  readonly protocol: Protocol;
  /** The kind whose errors it sends. */
  readonly kind: string;
  /** The name of the provider, which an answer contains. */
  readonly provider: string;
  readonly model: string;
  readonly stream: boolean;
}

/** The fields of a fault that decide the answer. */
type FakeFault = Pick<InjectedFault, 'condition' | 'status_code' | 'retry_after_ms'>;

/** The usage that each answer reports, in tokens. */
const usage = { input: 12, output: 6 };

/** The reaction of a provider that fails with `fault`, or of a healthy one without. */
export function fakeReaction(call: FakeCall, fault: FakeFault | undefined): FakeReaction {
  const condition = fault?.condition ?? null;
  if (fault === undefined || condition === null) return success(call);
  const { status_code: status, retry_after_ms } = fault;
  if (condition === 'connection_error') return 'broken';
  if (condition === ofStream.late) return call.stream ? stream(streamOf(call, '', 'stop').slice(0, 1), 'silence') : 'silence';
  if (status === null) return 'silence';
  if (condition === ofStream.broken) return broken(call);
  if (status === 200) return condition === 'content_filter' ? withheld(call) : unusable(call);
  const retryAfter = retry_after_ms === null ? {} : { 'retry-after': String(Math.ceil(retry_after_ms / 1000)) };
  return { ...json(errorBody(call, condition, status), status), headers: { ...jsonType, ...retryAfter } };
}

/** The answer to a list of models. */
export const fakeModels = (model: string): FakeAnswer =>
  json({ object: 'list', data: [{ id: model, object: 'model', owned_by: 'rehearsal' }] });

/** The refusal of a path or provider that does not exist. */
export const fakeUnknown = (what: string): FakeAnswer =>
  json({ error: { message: `There is no ${what}.`, type: 'invalid_request_error', param: null, code: 'not_found' } }, 404);

const jsonType = { 'content-type': 'application/json' };
const streamType = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };

const json = (body: unknown, status = 200): FakeAnswer => ({ status, headers: jsonType, body: JSON.stringify(body), then: 'end' });
const stream = (events: readonly string[], then: FakeAnswer['then'] = 'end'): FakeAnswer => ({
  status: 200,
  headers: streamType,
  body: events.join(''),
  then,
});

/** A usable answer, whose text names the provider. */
function success(call: FakeCall): FakeAnswer {
  const text = `${call.provider} answers.`;
  return call.stream ? stream(streamOf(call, text, 'stop')) : json(answerOf(call, text, 'stop'));
}

/** An answer that the provider's filter has emptied. */
const withheld = (call: FakeCall): FakeAnswer =>
  call.stream ? stream(streamOf(call, '', 'filtered')) : json(answerOf(call, '', 'filtered'));

/** An answer that is cut in the middle. */
function unusable(call: FakeCall): FakeAnswer {
  if (call.stream) return stream(streamOf(call, '', 'stop').slice(0, 1), 'cut');
  const { body } = json(answerOf(call, 'cut', 'stop'));
  return { status: 200, headers: jsonType, body: body.slice(0, body.length / 2), then: 'end' };
}

/** An answer that is cut after its text has begun; a whole one is cut in the middle. */
function broken(call: FakeCall): FakeAnswer {
  if (!call.stream) return { ...unusable(call), then: 'cut' };
  const events = streamOf(call, `${call.provider} answers.`, 'stop');
  // Before the text: the head of the message, and with Anthropic that of its block.
  return stream(events.slice(0, call.protocol === 'anthropic' ? 3 : 2), 'cut');
}

type End = 'stop' | 'filtered';

const reasons = { openai: { stop: 'stop', filtered: 'content_filter' }, anthropic: { stop: 'end_turn', filtered: 'refusal' } } as const;

/** An answer as a whole. */
function answerOf({ protocol, model }: FakeCall, text: string, end: End): unknown {
  const reason = reasons[protocol][end];
  if (protocol === 'anthropic') return { ...message(model), content: text === '' ? [] : [{ type: 'text', text }], stop_reason: reason };
  return {
    ...completion(model, 'chat.completion'),
    choices: [{ index: 0, message: { role: 'assistant', content: text, refusal: null }, logprobs: null, finish_reason: reason }],
    usage: openaiUsage,
  };
}

const openaiUsage = { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.input + usage.output };
const completion = (model: string, object: string) => ({
  id: 'chatcmpl-rehearsal',
  object,
  created: 1_700_000_000,
  model,
  system_fingerprint: 'rehearsal',
  // Clients of Groq expect it.
  service_tier: 'default',
});
const message = (model: string) => ({
  id: 'msg_rehearsal',
  type: 'message',
  role: 'assistant',
  model,
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: usage.input, output_tokens: usage.output },
});

/** The events of a streamed answer, in order. */
function streamOf({ protocol, model }: FakeCall, text: string, end: End): string[] {
  const reason = reasons[protocol][end];
  if (protocol === 'anthropic') {
    const event = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
    const block = [
      event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
      event('content_block_stop', { index: 0 }),
    ];
    return [
      event('message_start', { message: message(model) }),
      ...(text === '' ? [] : block),
      event('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: usage.output } }),
      event('message_stop', {}),
    ];
  }
  const chunk = (fields: object) => `data: ${JSON.stringify({ ...completion(model, 'chat.completion.chunk'), ...fields })}\n\n`;
  const choice = (delta: object, finish_reason: string | null) => chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  return [
    choice({ role: 'assistant', content: '' }, null),
    ...(text === '' ? [] : [choice({ content: text }, null)]),
    choice({}, reason),
    chunk({ choices: [], usage: openaiUsage }),
    'data: [DONE]\n\n',
  ];
}

/** The body of an error as providers of the kind send it, else as those of its protocol. */
function errorBody({ kind, protocol }: FakeCall, condition: Condition, status: number): unknown {
  const found = [kind, protocol].flatMap((name) => errorOf(name, condition, status) ?? [])[0];
  return (found ?? errorOf(protocol, condition) ?? errorOf(protocol, 'server_error')!).body;
}

const chatPath = /^(?:v1\/)?(?:(?:openai\/)?deployments\/[^/]+\/|models\/)?chat\/completions$/;

/** The operation of a path below the address of a fake provider; undefined if there is none. */
export function fakeOperation(path: string): Protocol | 'models' | undefined {
  if (chatPath.test(path)) return 'openai';
  if (/^(?:v1\/)?messages$/.test(path)) return 'anthropic';
  return /^(?:v1\/)?models$/.test(path) ? 'models' : undefined;
}
