import { type Fault, faultOf } from '../../kit/errors.ts';
import { isObject } from '../../kit/json.ts';
import type { Effort, Endpoint } from '../model/request.ts';
import type { TestRequest } from '../model/test.ts';
import { withoutNulls } from './chain.ts';

type Json = Record<string, unknown>;

/** A tool of a request, whatever the API. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Json;
}

/** The shape of a request: what it has besides its text. */
export interface Shape {
  readonly endpoint: Endpoint;
  readonly stream: boolean;
  readonly tools: readonly Tool[];
  readonly hasImage: boolean;
  readonly effort: Effort | null;
  readonly format: Json | null;
  readonly maxTokens: number | null;
  /** The shape of a real request, which is sent as it is; null for one that is made of the fields above. */
  readonly body: ReducedBody | null;
  /** The index of this request in those of the test. */
  readonly index: number | null;
}

/** A real request without its texts. */
export interface ReducedBody {
  readonly value: Json;
  /** Where the prompt belongs, and how long it was. */
  readonly at: readonly (string | number)[];
  readonly length: number;
}

/** A request with nothing but a text. */
export const plainShape: Shape = {
  endpoint: 'chat',
  stream: false,
  tools: [],
  hasImage: false,
  effort: null,
  format: null,
  maxTokens: null,
  body: null,
  index: null,
};

/** A picture of one pixel, as a PNG in base64. */
export const smallImage = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const weatherTool: Tool = {
  name: 'get_weather',
  description: 'Returns the weather of a city.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'fahrenheit'] } },
    required: ['city', 'unit'],
    additionalProperties: false,
  },
};
const answerFormat: Json = {
  type: 'json_schema',
  json_schema: {
    name: 'answer',
    strict: true,
    schema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'], additionalProperties: false },
  },
};

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** A definition of a tool in the form of any of the APIs; undefined for anything else. */
export function toolOf(definition: unknown): Tool | undefined {
  if (!isObject(definition)) return undefined;
  const own = isObject(definition.function) ? definition.function : definition;
  const name = textOf(own.name);
  const parameters = [own.parameters, own.input_schema].find(isObject) ?? { type: 'object', properties: {} };
  return name === '' ? undefined : { name, description: textOf(own.description), parameters };
}

/** Whether a request lets a model call its tools. */
export function mayCall({ tool_choice: choice }: Json): boolean {
  return (isObject(choice) ? choice.type : choice) !== 'none';
}

/** What is wrong with the shape of a request. */
export function shapeFaults({ mode, stream, request }: TestRequest): Fault[] {
  if (!request) return [];
  const found: Fault[] = [];
  const fault = (field: string, rest: string) => found.push(faultOf(`request${field === '' ? '' : `.${field}`}`, rest));
  const given = withoutNulls(request);
  if (mode === undefined || mode === null || mode === 'simulate') fault('', 'is not for the mode simulate, which sends no requests.');
  if (stream !== undefined && stream !== null && given.stream !== undefined) fault('stream', 'cannot be given together with stream.');
  if (given.endpoint !== undefined && mode !== 'rehearsal')
    fault('endpoint', 'is only for the mode rehearsal; other modes call each provider by its own API.');
  for (const name of ['tools', 'images', 'reasoning', 'response_format', 'max_tokens'] as const)
    if (given.requests !== undefined && given[name] !== undefined)
      fault(name, 'cannot be given together with request.requests, which have shapes of their own.');
  if (Array.isArray(given.tools))
    for (const [index, tool] of given.tools.entries()) if (toolOf(tool) === undefined) fault(`tools.${index}`, 'has no name.');
  for (const [index, body] of (given.requests ?? []).entries())
    if (!isObject(body) || (!Array.isArray(body.messages) && body.input === undefined))
      fault(`requests.${index}`, 'has neither messages nor input, so it is no request of a chat model.');
  return found;
}

/** The shapes of a test, each distinct one once; those with streamed answers first. */
export function shapesOf({ stream, request }: TestRequest): readonly Shape[] {
  const given = request ? withoutNulls(request) : {};
  const streamed = given.stream ?? stream ?? undefined;
  const streams = (own: boolean) => (streamed === 'both' ? [true, false] : [streamed ?? own]);
  if (given.requests === undefined) {
    const { tools, images, reasoning, response_format, max_tokens, endpoint } = given;
    const shape: Shape = {
      ...plainShape,
      endpoint: endpoint ?? 'chat',
      tools: Array.isArray(tools) ? tools.map((tool) => toolOf(tool)!) : tools === true ? [weatherTool] : [],
      hasImage: images === true,
      effort: reasoning ?? null,
      format: response_format === true ? answerFormat : isObject(response_format) ? response_format : null,
      maxTokens: max_tokens ?? null,
    };
    return streams(false).map((isStreamed) => ({ ...shape, stream: isStreamed }));
  }
  const distinct = new Map<string, Shape>();
  for (const [index, body] of given.requests.entries()) {
    const reduced = reducedBody(body);
    const endpoint = given.endpoint ?? endpointOfBody(body);
    for (const isStreamed of streams(body.stream === true)) {
      const shape = { ...neutralOf(reduced.value), endpoint, stream: isStreamed, body: reduced, index };
      const key = JSON.stringify([endpoint, isStreamed, reduced]);
      if (!distinct.has(key)) distinct.set(key, shape);
    }
  }
  return [...distinct.values()].sort((one, other) => Number(other.stream) - Number(one.stream));
}

/** The API that a body is for, by the fields that only one of them has. */
function endpointOfBody(body: Json): Endpoint {
  if (body.input !== undefined && body.messages === undefined) return 'responses';
  const tools = Array.isArray(body.tools) ? body.tools : [];
  const isAnthropic = ['system', 'stop_sequences', 'top_k', 'thinking', 'anthropic_version'].some((name) => body[name] !== undefined);
  return isAnthropic || tools.some((tool) => isObject(tool) && tool.input_schema !== undefined) ? 'messages' : 'chat';
}

/** The shape of a real request in the terms of all APIs, for providers that are called by another one. */
function neutralOf(body: Json): Omit<Shape, 'endpoint' | 'stream' | 'body' | 'index'> {
  const tools = Array.isArray(body.tools) && mayCall(body) ? body.tools.flatMap((tool) => toolOf(tool) ?? []) : [];
  const effort = body.reasoning_effort ?? (isObject(body.reasoning) ? body.reasoning.effort : undefined);
  const text = isObject(body.text) && isObject(body.text.format) ? body.text.format : undefined;
  const limit = body.max_completion_tokens ?? body.max_tokens ?? body.max_output_tokens;
  return {
    tools,
    hasImage: JSON.stringify(body).includes(smallImage),
    effort: effort === 'low' || effort === 'medium' || effort === 'high' ? effort : null,
    format: isObject(body.response_format) ? body.response_format : (text ?? null),
    maxTokens: typeof limit === 'number' ? limit : null,
  };
}

/** A text without meaning, of a given length. */
export const filler = (length: number): string => 'lorem ipsum '.repeat(Math.ceil(length / 12)).slice(0, length);

/** Fields whose texts are no content: they say what something is, or connect parts of a request. */
const kept = new Set([
  ...['role', 'type', 'name', 'id', 'tool_call_id', 'tool_use_id', 'call_id', 'media_type', 'detail', 'status', 'format', 'service_tier'],
  ...['reasoning_effort', 'verbosity', 'effort', 'truncation', 'model', 'tool_choice', 'include'],
]);
/** Fields that stay as they are, with all that is in them. */
const keptWhole = new Set([
  'tools',
  'functions',
  'tool_choice',
  'function_call',
  'response_format',
  'stream_options',
  'thinking',
  'output_config',
  'output_format',
]);
/** Fields that may have secrets or name people, or that only have a meaning for one account. */
const dropped = new Set([
  ...[
    'metadata',
    'user',
    'safety_identifier',
    'prompt_cache_key',
    'previous_response_id',
    'conversation',
    'api_key',
    'api_base',
    'base_url',
  ],
  ...['authorization', 'authorization_token', 'headers', 'extra_headers', 'extra_body', 'container', 'signature', 'encrypted_content'],
]);
const secret = /^(?:authorization|authorization_token|headers|api_key|token|secret|password)$/i;

/** A value as it is, except for secrets in it. */
function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets);
  if (!isObject(value)) return value;
  const isSchema = isObject(value.properties);
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) =>
      secret.test(name) && !isSchema && !isObject(inner) ? [] : [[name, withoutSecrets(inner)]],
    ),
  );
}

const imageUrl = `data:image/png;base64,${smallImage}`;

/** A value without its texts, images and secrets. */
function reduced(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((item) => reduced(item, name));
  if (isObject(value)) return reducedObject(value);
  if (typeof value !== 'string' || kept.has(name)) return value;
  if (name === 'arguments') return '{}';
  if (name === 'url' || name === 'image_url' || name === 'file_url') return imageUrl;
  return filler(value.length);
}

function reducedObject(value: Json): Json {
  // The image of a message of Anthropic's.
  if (isObject(value.source) && value.type === 'image')
    return { type: 'image', source: { type: 'base64', media_type: 'image/png', data: smallImage } };
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => {
      if (dropped.has(name)) return [];
      // The format of a response of OpenAI's has a schema in it.
      if (keptWhole.has(name) || (name === 'format' && isObject(inner)) || (name === 'reasoning' && isObject(inner)))
        return [[name, withoutSecrets(inner)]];
      return [[name, reduced(inner, name)]];
    }),
  );
}

/** A real request without its texts, and where its prompt belongs: the last text of the user. */
export function reducedBody(body: Json): ReducedBody {
  const { model: _, stream: __, ...others } = body;
  const value = reducedObject(others);
  if (typeof value.input === 'string') return { value, at: ['input'], length: value.input.length };
  const list = Array.isArray(value.messages) ? 'messages' : 'input';
  const items = value[list] as unknown[];
  for (let index = items.length - 1; index >= 0; index -= 1) {
    const item = items[index];
    if (!isObject(item) || item.role !== 'user') continue;
    const { content } = item;
    if (typeof content === 'string') return { value, at: [list, index, 'content'], length: content.length };
    const part = Array.isArray(content) ? content.findLastIndex((one) => isObject(one) && typeof one.text === 'string') : -1;
    if (part !== -1) {
      const { text } = (content as Json[])[part]!;
      return { value, at: [list, index, 'content', part, 'text'], length: (text as string).length };
    }
  }
  return { value: { ...value, [list]: [...items, { role: 'user', content: '' }] }, at: [list, items.length, 'content'], length: 0 };
}

/** The body of a real request with another prompt. */
export function bodyWith({ value, at }: ReducedBody, prompt: string): Json {
  const body = structuredClone(value);
  // biome-ignore lint/suspicious/noExplicitAny: the path leads through objects and lists.
  let place: any = body;
  for (const step of at.slice(0, -1)) place = place[step];
  place[at.at(-1)!] = prompt;
  return body;
}

/** Arguments of a tool that match the required properties of its schema. */
export function argumentsFor(parameters: unknown): string {
  return JSON.stringify(exampleOf(parameters, 0) ?? {});
}

const deepest = 5;

function exampleOf(schema: unknown, depth: number): unknown {
  if (!isObject(schema) || depth > deepest) return null;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'string') return 'text';
  if (type === 'number' || type === 'integer') return 1;
  if (type === 'boolean') return true;
  if (type === 'array') return [];
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === 'string') : Object.keys(properties);
  return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name], depth + 1)]));
}
