import { readJson } from '../../kit/json.ts';
import type { Condition } from '../model/chain.ts';
import type { Endpoint } from '../model/request.ts';
import { ofStream } from '../rules/conditions.ts';
import type { InjectedFault } from '../rules/plan.ts';
import { errorOf } from '../rules/provider-errors.ts';
import type { Refusal } from '../rules/published-params.ts';
import { argumentsFor, mayCall, toolOf } from '../rules/shapes.ts';
import { type StreamFault, shownParts } from '../rules/stream-faults.ts';
import { answerForms } from './fake-events.ts';

/** The answer of a fake provider. */
interface FakeAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What follows the body after a silence. */
  readonly later?: { readonly afterMs: number; readonly body: string };
  /** What comes at last: the end of the answer, the end of the connection, or nothing. */
  readonly then: 'end' | 'cut' | 'silence';
}

/** What a fake provider does with a call: it answers, never does, or breaks the connection. */
export type FakeReaction = FakeAnswer | 'silence' | 'broken';

/** A call of a fake provider. */
export interface FakeCall {
  /** The API by which it is called. */
  readonly endpoint: Endpoint;
  /** The kind whose errors it sends. */
  readonly kind: string;
  /** The name of the provider, which an answer contains. */
  readonly provider: string;
  readonly model: string;
  readonly stream: boolean;
  /** The tool that it calls; null for an answer in text. */
  readonly tool: { readonly name: string; readonly arguments: string } | null;
}

/** The reaction of a provider that fails with `fault`, or of a healthy one without. */
export function fakeReaction(
  call: FakeCall,
  fault: Pick<InjectedFault, 'condition' | 'status_code' | 'retry_after_ms' | 'inStream'> | undefined,
): FakeReaction {
  const condition = fault?.condition ?? null;
  if (fault?.inStream !== undefined && call.stream) return faulty(call, fault.inStream);
  if (fault === undefined || condition === null) return success(call);
  const { status_code: status, retry_after_ms } = fault;
  if (condition === 'connection_error') return 'broken';
  if (condition === ofStream.late) return call.stream ? stream(eventsOf(call, []).head, 'silence') : 'silence';
  if (status === null) return 'silence';
  if (condition === ofStream.broken) return broken(call);
  if (status === 200) return condition === 'content_filter' ? withheld(call) : unusable(call);
  const retryAfter = retry_after_ms === null ? {} : { 'retry-after': String(Math.ceil(retry_after_ms / 1000)) };
  return { ...json(errorBody(call, condition, status), status), headers: { ...jsonType, ...retryAfter } };
}

/** The refusal of a request by a provider that does not take one of its fields. */
export const fakeRefusal = ({ status, body }: Refusal): FakeAnswer => json(body, status);

/** The answer to a list of models. */
export const fakeModels = (model: string): FakeAnswer =>
  json({ object: 'list', data: [{ id: model, object: 'model', owned_by: 'rehearsal' }] });

/** The refusal of a path or provider that does not exist. */
export const fakeUnknown = (what: string): FakeAnswer =>
  json({ error: { message: `There is no ${what}.`, type: 'invalid_request_error', param: null, code: 'not_found' } }, 404);

const jsonType = { 'content-type': 'application/json' };
const streamType = { 'content-type': 'text/event-stream', 'cache-control': 'no-store' };

const json = (body: unknown, status = 200): FakeAnswer => ({ status, headers: jsonType, body: JSON.stringify(body), then: 'end' });
const stream = (body: string, then: FakeAnswer['then'] = 'end'): FakeAnswer => ({ status: 200, headers: streamType, body, then });

/** The parts of a usable answer: of its text, which names the provider, or of the arguments of its tool. */
const partsOf = ({ provider, tool }: FakeCall): string[] => (tool === null ? shownParts(provider) : inParts(tool.arguments));

/** A text in as many parts as an answer has. */
function inParts(text: string): string[] {
  const size = Math.max(Math.ceil(text.length / shownParts('').length), 1);
  return Array.from({ length: Math.ceil(text.length / size) }, (_, index) => text.slice(index * size, (index + 1) * size));
}

const contentOf = ({ model, tool }: FakeCall, parts: readonly string[], end: 'stop' | 'filtered' = 'stop') => ({
  model,
  parts,
  end: end === 'stop' && tool !== null ? ('tool' as const) : end,
  tool: tool?.name ?? '',
});
const eventsOf = (call: FakeCall, parts: readonly string[], end?: 'filtered') =>
  answerForms[call.endpoint].events(contentOf(call, parts, end));
const wholeOf = (call: FakeCall, parts: readonly string[], end?: 'filtered') =>
  answerForms[call.endpoint].whole(contentOf(call, parts, end));

/** A usable answer, whose text names the provider. */
function success(call: FakeCall): FakeAnswer {
  const parts = partsOf(call);
  if (!call.stream) return json(wholeOf(call, parts));
  const { head, content, tail } = eventsOf(call, parts);
  return stream(head + content.join('') + tail);
}

/** An answer that the provider's filter has emptied. */
function withheld(call: FakeCall): FakeAnswer {
  if (!call.stream) return json(wholeOf(call, [], 'filtered'));
  const { head, tail } = eventsOf(call, [], 'filtered');
  return stream(head + tail);
}

/** An answer that is cut in the middle. */
function unusable(call: FakeCall): FakeAnswer {
  if (call.stream) return stream(eventsOf(call, []).head, 'cut');
  const { body } = json(wholeOf(call, partsOf(call)));
  return { status: 200, headers: jsonType, body: body.slice(0, body.length / 2), then: 'end' };
}

/** An answer that is cut after its text has begun; a whole one is cut in the middle. */
function broken(call: FakeCall): FakeAnswer {
  if (!call.stream) return { ...unusable(call), then: 'cut' };
  const { head, content } = eventsOf(call, partsOf(call));
  return stream(head + content[0]!, 'cut');
}

/** A stream that goes wrong behind some of its parts. */
function faulty(call: FakeCall, { way, afterChunks, stallMs }: StreamFault): FakeAnswer {
  const { errorEvent, malformed } = answerForms[call.endpoint];
  const { head, content, tail } = eventsOf(call, partsOf(call));
  const sent = head + content.slice(0, afterChunks).join('');
  const rest = content.slice(afterChunks).join('') + tail;
  if (way === 'cut') return stream(sent, 'cut');
  if (way === 'unfinished') return stream(sent);
  if (way === 'error') return stream(sent + errorEvent);
  // The broken part stands for one of the content.
  if (way === 'malformed') return stream(sent + malformed + content.slice(afterChunks + 1).join('') + tail);
  return { ...stream(sent), later: { afterMs: stallMs!, body: rest } };
}

/** The body of an error as providers of the kind send it, else as those of its protocol. */
function errorBody({ kind, endpoint }: FakeCall, condition: Condition, status: number): unknown {
  const protocol = endpoint === 'messages' ? 'anthropic' : 'openai';
  const found = [kind, protocol].flatMap((name) => errorOf(name, condition, status) ?? [])[0];
  return (found ?? errorOf(protocol, condition) ?? errorOf(protocol, 'server_error')!).body;
}

const chatPath = /^(?:v1\/)?(?:(?:openai\/)?deployments\/[^/]+\/|models\/)?chat\/completions$/;

/** The operation of a path below the address of a fake provider; undefined if there is none. */
export function fakeOperation(path: string): Endpoint | 'models' | undefined {
  if (chatPath.test(path)) return 'chat';
  if (/^(?:v1\/)?messages$/.test(path)) return 'messages';
  if (/^(?:openai\/)?(?:v1\/)?responses$/.test(path)) return 'responses';
  return /^(?:v1\/)?models$/.test(path) ? 'models' : undefined;
}

/** The fields of a request that decide its answer. A body that is not a JSON object has none. */
export function fakeRequestOf(text: string): Pick<FakeCall, 'model' | 'stream' | 'tool'> & { body: Record<string, unknown> } {
  const body = objectIn(text);
  const { model, stream, tools } = body;
  const tool = Array.isArray(tools) && mayCall(body) ? tools.map(toolOf).find((one) => one !== undefined) : undefined;
  return {
    body,
    model: typeof model === 'string' ? model : '',
    stream: stream === true,
    tool: tool === undefined ? null : { name: tool.name, arguments: argumentsFor(tool.parameters) },
  };
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = readJson(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
