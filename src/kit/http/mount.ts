import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';

import type { Awaitable } from '../awaitable.ts';
import { type Fault, invalid, ServiceError } from '../errors.ts';
import { MemoryBudget } from '../memory-budget.ts';
import { withRequestId } from '../request-id.ts';
import type { RequestOf, ResponseShape, ResultOf, Route } from '../route.ts';
import { type Answers, createAnswers, largeFrom } from './answers.ts';
import { bodyKind, discardBody, readBody, textOf } from './body.ts';
import { endSignalOf, signalOf } from './disconnect.ts';
import { parseJson } from './json.ts';
import { createPaths } from './paths.ts';
import { StreamAnswer } from './streams.ts';
import { bodyValidator, queryValidator } from './validate.ts';

/** JSON that is already serialized and is sent unchanged. */
export class JsonText {
  #text: string | Buffer;

  /** @param octets the text's length in UTF-8, if known. If it equals `text.length`, the text is ASCII and takes the faster Latin-1 conversion. */
  constructor(text: string | Buffer, octets?: number) {
    this.#text = typeof text === 'string' && octets === text.length ? Buffer.from(text, 'latin1') : text;
  }

  /** The text to send. A long text is converted to bytes once, and all responses share them. */
  payload(): string | Buffer {
    if (typeof this.#text === 'string' && this.#text.length > largeFrom) this.#text = Buffer.from(this.#text);
    return this.#text;
  }
}

/** JSON that is read in pieces while it is sent, because all of it may not fit into memory. */
export class JsonPieces {
  readonly pieces: AsyncIterable<string>;

  /** @param pieces each of them of about a MiB at most */
  constructor(pieces: AsyncIterable<string>) {
    this.pieces = pieces;
  }
}

/** An answer with a status, headers and a body. A 204 has no `body`. */
export interface Answer<T> {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: T | JsonText | JsonPieces;
}

/** Marks a handler's value as an Answer, so that a body with a field called `status` is not mistaken for one. */
class Answered<T> implements Answer<T> {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: T | JsonText | JsonPieces;
  constructor(parts: Answer<T>) {
    Object.assign(this, parts);
  }
}

/** An answer with a status or headers of its own. */
export function answer<T>(parts: Answer<T>): Answer<T> {
  return new Answered(parts);
}

/** What a service provides for all its routes. */
export interface MountParts<Context, Traits> {
  app: FastifyInstance;
  /** The path prefixes under which a route is mounted. */
  prefixes(route: Route): readonly string[];
  /** Authenticates and authorizes the caller, before the body is read. Throws a ServiceError to refuse. */
  admit(route: Route & Traits, request: FastifyRequest, reply: FastifyReply): Awaitable<Context>;
  /** Runs before a 404 or 405 is sent, so that requests without a route count against the rate limit as well. */
  admitStray(request: FastifyRequest, reply: FastifyReply): Awaitable<unknown>;
  /** The largest body that this caller may send to this route, in bytes. */
  bodyLimit(route: Route & Traits, caller: Context): number;
  /** The message of a 413. */
  tooLarge?(limit: number): string;
  /** Query parameters that `admit` reads; every route accepts them. */
  admissionParameters?: readonly string[];
  /** Normalizes path parameters. */
  readParams?(params: Record<string, string>): Record<string, string>;
  /** The limit on the bytes of large bodies of all requests in progress; a request beyond it gets 503. */
  maxBodyBytes?: number;
  /** The limit on the bytes of large answers that clients have not read yet; a request beyond it gets 503. */
  maxAnswerBytes?: number;
}

/** What a handler gets besides the parts of the request. */
export interface HandlerContext<Context> {
  readonly caller: Context;
  readonly headers: FastifyRequest['headers'];
  /** The body's bytes as received, if the request has a body. */
  readonly rawBody: Buffer | undefined;
  /** The origin by which the client reached the service, such as `https://example.com`; empty for a call inside the process. */
  readonly origin: string;
  /** Aborts when the connection closes before the answer; not when the client only ends its sending half. Created on first use. */
  readonly signal: AbortSignal;
  /** Also aborts when the client ends its sending half. For answers that must not be lost, such as a claimed packet. */
  readonly endSignal: AbortSignal;
}

/** The context of one request. V8 would make a map for each object literal with accessors, so this is a class. */
class RequestContext<Context> implements HandlerContext<Context> {
  readonly caller: Context;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;

  constructor(caller: Context, request: FastifyRequest, reply: FastifyReply) {
    this.caller = caller;
    this.#request = request;
    this.#reply = reply;
  }

  get headers(): FastifyRequest['headers'] {
    return this.#request.headers;
  }

  get rawBody(): Buffer | undefined {
    return this.#request.notes.rawBody;
  }

  get origin(): string {
    return `${this.#request.protocol}://${this.#request.host}`;
  }

  get signal(): AbortSignal {
    return signalOf(this.#reply);
  }

  get endSignal(): AbortSignal {
    return endSignalOf(this.#request, this.#reply);
  }
}

type Handled<T> = T | JsonText | Answer<T> | StreamAnswer;

export type Handler<R extends Route, Context> = (
  request: RequestOf<R>,
  context: HandlerContext<Context>,
) => Awaitable<Handled<ResultOf<R>>>;

/** Mounts one route on the application. */
export type Mount<Context, Traits = object> = <R extends Route & Traits>(
  route: R,
  handler: Handler<R, Context>,
  options?: MountOptions,
) => void;

/** Options of a mounted route. */
export interface MountOptions {
  /** Faults of a body beyond its schema. Called even if the schema is violated, so that the answer lists all faults at once. */
  bodyFaults?(body: unknown): readonly Fault[];
}

/**
 * Returns a function that mounts routes. A request passes admission, body, validation and handler, in this order. A
 * known path with another method gets 405 with `Allow` instead of 404.
 */
export function createMount<Context, Traits extends object = object>({
  app,
  prefixes,
  admit,
  admitStray,
  bodyLimit,
  tooLarge = (limit) => `The body is larger than the ${limit} bytes that are allowed here.`,
  admissionParameters = [],
  readParams = (params) => params,
  maxBodyBytes = 256 * 1024 * 1024,
  maxAnswerBytes = 256 * 1024 * 1024,
}: MountParts<Context, Traits>): Mount<Context, Traits> {
  const budget = new MemoryBudget(maxBodyBytes);
  const answers = createAnswers(maxAnswerBytes);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage, done) => {
    const { mounted, context } = request.notes;
    if (mounted?.body === undefined) {
      payload.resume();
      done(null);
      return;
    }
    // The handler throws it. An error thrown here closes the connection, and a client that is still sending misses the answer.
    const refuse = (refusal: unknown) => {
      request.notes.refusal = refusal;
      discardBody(payload);
      done(null);
    };
    let kind: 'json' | 'text';
    try {
      kind = bodyKind(request.headers, mounted.textTypes);
    } catch (fault) {
      return refuse(fault);
    }
    // `mounted` is only set for routes that were mounted here.
    const limit = bodyLimit(mounted as Route & Traits, context as Context);
    readBody(
      payload,
      { limit, tooLarge, announced: Number(request.headers['content-length']), budget, owner: ownerOf(request) },
      (error, bytes, held) => {
        request.notes.held = held;
        if (error !== null) return refuse(error);
        if (bytes === undefined || bytes.length === 0) return done(null);
        let value: unknown;
        try {
          value = kind === 'json' ? parseJson(bytes) : textOf(bytes);
        } catch (fault) {
          return refuse(fault);
        }
        request.notes.rawBody = bytes;
        done(null, value);
      },
    );
  });

  const paths = createPaths(app, admitStray);

  return (route, handler, { bodyFaults } = {}) => {
    const query = route.query && queryValidator(route.query);
    // Health probes may add arbitrary parameters. On other routes an unknown parameter is a mistake.
    const takesAny = route.access === 'public';
    const lists = listsOf(route.query);
    const body =
      route.body &&
      bodyValidator(route.body, {
        nullIsAbsent: route.nullIsAbsent ?? false,
        ...(bodyFaults === undefined ? {} : { faultsOf: bodyFaults }),
      });
    const successStatus = Number(Object.keys(route.responses).find((status) => status < '300'));

    const answerTo = (request: FastifyRequest, reply: FastifyReply): Answering => {
      const { context, rawBody, refusal } = request.notes;
      if (refusal !== undefined) throw refusal;
      for (const name of admissionParameters) delete (request.query as Record<string, unknown>)[name];
      if (query !== undefined) query(single(request.query as Record<string, unknown>, lists));
      else if (!takesAny) requireNone(request.query as Record<string, unknown>);
      if (body !== undefined && (request.body !== undefined || !route.bodyOptional)) {
        if (request.body === undefined) throw new ServiceError('VALIDATION_ERROR', 'A JSON body is required.');
        body(request.body, rawBody?.length);
      }
      const respond = (found: unknown) =>
        found instanceof StreamAnswer
          ? takeOver(found, request, reply)
          : answerWith(found, { route, request, reply, successStatus, answers });
      const input = { params: readParams(request.params as Record<string, string>), query: request.query, body: request.body } as never;
      const result = withRequestId(request.id, () => handler(input, new RequestContext(context as Context, request, reply)));
      // Resolving with the reply makes Fastify wait for an answer that is sent in pieces.
      if (result instanceof Promise) {
        return result.then((found) => {
          respond(found);
          return reply;
        });
      }
      respond(result);
      return undefined;
    };

    for (const prefix of prefixes(route)) {
      const path = prefix + route.path;
      const url = path.replace(/\{(\w+)\}/g, ':$1');
      paths.add(path, route);
      app.route({
        method: route.method,
        url,
        exposeHeadRoute: route.method === 'GET',
        // Admission and handlers are usually synchronous, and promises for every request would cost measurable time.
        onRequest: (request, reply, done) => {
          request.notes.route = url;
          request.notes.mounted = route;
          reply.header('x-request-id', request.id);
          const admitted = (caller: Context) => {
            request.notes.context = caller;
            done(paths.misroutedTo(path, request));
          };
          let caller: Awaitable<Context>;
          try {
            caller = admit(route, request, reply);
          } catch (error) {
            return done(error as Error);
          }
          if (caller instanceof Promise) caller.then(admitted, done);
          else admitted(caller);
        },
        handler: (request, reply) => {
          const { held } = request.notes;
          if (held === 0) return answerTo(request, reply);
          return after(
            () => answerTo(request, reply),
            () => budget.release(ownerOf(request), held),
          );
        },
      });
    }
  };
}

/** Refuses all query parameters of a route that takes none. */
function requireNone(query: Record<string, unknown>): void {
  for (const name in query) throw invalid(name, `${name} is not a parameter of this request; it takes none.`);
}

/** The result of a Fastify handler: undefined if the answer is already sent, else a promise of the reply. */
type Answering = Promise<FastifyReply> | undefined;

/** Does `work`, and calls `then` when it has finished or failed. */
function after(work: () => Answering, then: () => void): Answering {
  let working: Answering;
  try {
    working = work();
  } catch (error) {
    then();
    throw error;
  }
  if (working instanceof Promise) working.then(then, then);
  else then();
  return working;
}

/** The owner to whom the memory budgets charge a request. */
const ownerOf = (request: FastifyRequest): string => request.notes.caller ?? '';

interface AnswerParts {
  route: Route;
  request: FastifyRequest;
  reply: FastifyReply;
  successStatus: number;
  answers: Answers;
}

function answerWith(result: unknown, { route, request, reply, successStatus, answers }: AnswerParts): void {
  const { status = successStatus, headers, body } = result instanceof Answered ? (result as Answer<unknown>) : { body: result };
  reply.code(status);
  if (reply.server.isStopping()) reply.header('connection', 'close');
  if (headers !== undefined) reply.headers(headers);
  if (body === undefined) {
    reply.send();
    return;
  }
  const shape = route.responses[status];
  if (!reply.hasHeader('content-type')) reply.type(shape?.contentType ?? 'application/json; charset=utf-8');
  if (!(body instanceof JsonPieces)) answers.send(reply, ownerOf(request), writtenAs(body, shape));
  else if (request.method === 'HEAD') reply.send('');
  else answers.sendPieces(reply, ownerOf(request), body.pieces);
}

function writtenAs(body: unknown, shape: ResponseShape | undefined): string | Buffer {
  if (body instanceof JsonText) return body.payload();
  if (shape?.contentType !== undefined) return body as string;
  // Only fields of the declared schema are sent, so that a column can't leak.
  return JSON.stringify(shape?.schema === undefined ? body : pick(shape.schema, body));
}

/** A `readParams` for ids: a UUID may be written in either case (RFC 9562, section 4). */
export function lowerCase(params: Record<string, string>): Record<string, string> {
  for (const name in params) params[name] = params[name]!.toLowerCase();
  return params;
}

/** Hands the connection to a stream, unless the client has disconnected or sent HEAD. */
function takeOver(stream: StreamAnswer, request: FastifyRequest, reply: FastifyReply): void {
  if (request.method === 'HEAD') {
    stream.abandon();
    reply.type(stream.contentType ?? 'text/plain').send('');
  } else if (request.raw.socket.destroyed) {
    stream.abandon();
    reply.hijack();
  } else {
    stream.open(request, reply);
    request.notes.isStream = true;
  }
}

/** The query parameters that may be repeated: those whose schema is an array. */
function listsOf(query: TSchema | undefined): ReadonlySet<string> {
  const properties = Object.entries((query as { properties?: Record<string, { type?: string }> } | undefined)?.properties ?? {});
  return new Set(properties.filter(([, { type }]) => type === 'array').map(([name]) => name));
}

/** Refuses a repeated query parameter that is not a list, and NUL, which PostgreSQL can't store in a text. */
function single(query: Record<string, unknown>, lists: ReadonlySet<string>): Record<string, unknown> {
  for (const [name, value] of Object.entries(query)) {
    if (lists.has(name)) query[name] = Array.isArray(value) ? value : [value];
    else if (Array.isArray(value)) throw invalid(name, `${name} is given more than once.`);
    if (String(value).includes('\0')) throw invalid(name, `${name} has a character that is not allowed.`);
  }
  return query;
}

interface Shape {
  properties?: Record<string, TSchema>;
  additionalProperties?: unknown;
  items?: TSchema;
  anyOf?: TSchema[];
}

/** The value reduced to the fields of its schema. If the schema allows additional properties, all fields are kept. */
function pick(schema: TSchema, value: unknown): unknown {
  const { properties, additionalProperties, items, anyOf } = schema as Shape;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return items === undefined ? value : value.map((item) => pick(items, item));
  if (anyOf !== undefined) {
    // Usually an object or null. With several object schemas it is unknown which one applies.
    const objects = anyOf.filter((one) => (one as Shape).properties !== undefined);
    return objects.length === 1 ? pick(objects[0]!, value) : value;
  }
  if (properties === undefined || (additionalProperties !== undefined && additionalProperties !== false)) return value;
  const source = value as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => source[name] !== undefined)
      .map(([name, property]) => [name, pick(property, source[name])]),
  );
}
