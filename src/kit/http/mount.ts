import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';

import type { Awaitable } from '../awaitable.ts';
import { type Fault, invalid, ServiceError } from '../errors.ts';
import { MemoryBudget } from '../memory-budget.ts';
import type { RequestOf, ResponseShape, ResultOf, Route } from '../route.ts';
import { type Answers, createAnswers, largeFrom } from './answers.ts';
import { bodyKind, passOver, readBody, textOf } from './body.ts';
import { endSignalOf, signalOf } from './gone.ts';
import { parseJson } from './json.ts';
import { StreamAnswer } from './streams.ts';
import { bodyValidator, queryValidator } from './validate.ts';

/** JSON that is written already, and travels as it is. */
export class JsonText {
  #text: string | Buffer;

  /** @param octets the text's length in UTF-8, where it is known and the text is long: then ASCII goes out as bytes, uncounted */
  constructor(text: string, octets?: number) {
    this.#text = octets === text.length ? Buffer.from(text, 'latin1') : text;
  }

  /** The text as it goes out. A long one is bytes, the same for all who are answered with it. */
  payload(): string | Buffer {
    if (typeof this.#text === 'string' && this.#text.length > largeFrom) this.#text = Buffer.from(this.#text);
    return this.#text;
  }
}

/** An answer with more than a body. `body` is left out for 204. */
export interface Answer<T> {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: T | JsonText;
}

/** Marks a handler's value as an Answer, so that a body with a member called `status` is never taken for one. */
class Answered<T> implements Answer<T> {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: T | JsonText;
  constructor(parts: Answer<T>) {
    Object.assign(this, parts);
  }
}

/** An answer with a status or headers of its own. */
export function answer<T>(parts: Answer<T>): Answer<T> {
  return new Answered(parts);
}

/** What a service puts around all its routes. */
export interface MountParts<Context, Traits> {
  app: FastifyInstance;
  /** Where a route is found: one prefix, or several. */
  prefixes(route: Route): readonly string[];
  /** Runs before the body is read: who is calling, and whether they may. Throws a ServiceError to refuse. */
  admit(route: Route & Traits, request: FastifyRequest, reply: FastifyReply): Awaitable<Context>;
  /** Runs where there is no route, before that is said: requests that lead nowhere count as well. */
  admitStray(request: FastifyRequest, reply: FastifyReply): Awaitable<unknown>;
  /** The largest body this caller may send here, in bytes. */
  bodyLimit(route: Route & Traits, caller: Context): number;
  /** The sentence of a 413. */
  tooLarge?(limit: number): string;
  /** Query parameters that admission reads, which every route takes. */
  admissionParameters?: readonly string[];
  /** Path parameters as the service compares them. */
  readParams?(params: Record<string, string>): Record<string, string>;
  /** The most bytes of large bodies in all requests in hand; what comes beyond it is refused with 503. */
  maxBodyBytes?: number;
  /** The most bytes of large answers that were not taken yet; what comes beyond it is 503. */
  maxAnswerBytes?: number;
}

/** What a handler is told besides the request's own parts. */
export interface HandlerContext<Context> {
  caller: Context;
  headers: FastifyRequest['headers'];
  /** The body's bytes as they came, where there was one. */
  rawBody: Buffer | undefined;
  /** Aborts when the connection is gone before the answer. Who only ends the sending half still waits. Made when it is asked for. */
  readonly signal: AbortSignal;
  /** Aborts earlier: when the client ends its sending half, too. For what must not be given to a client that may be gone. */
  readonly endSignal: AbortSignal;
}

type Handled<T> = T | JsonText | Answer<T> | StreamAnswer;

export type Handler<R extends Route, Context> = (
  request: RequestOf<R>,
  context: HandlerContext<Context>,
) => Awaitable<Handled<ResultOf<R>>>;

/** A function that mounts one route after another on the application. */
export type Mount<Context, Traits = object> = <R extends Route & Traits>(
  route: R,
  handler: Handler<R, Context>,
  options?: MountOptions,
) => void;

/** What else is said of a route where it is mounted. */
export interface MountOptions {
  /** What is wrong with a body beyond its schema; it is asked of bodies of every form, so that all faults are told at once. */
  bodyFaults?(body: unknown): readonly Fault[];
}

/**
 * Mounts routes: admission, then body, then validation, then the handler. The methods of every path are remembered, so
 * that another method gets 405 with `Allow` instead of 404.
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
    // The handler throws it: what is thrown here closes the connection, and who is still sending then misses the answer.
    const refuse = (refusal: unknown) => {
      request.notes.refusal = refusal;
      passOver(payload);
      done(null);
    };
    let kind: 'json' | 'text';
    try {
      kind = bodyKind(request.headers, mounted.textTypes);
    } catch (fault) {
      return refuse(fault);
    }
    // Only routes that were mounted here are noted.
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

  const paths = new Map<string, { pattern: RegExp; access: string; methods: string[] }>();
  let longestPath = 0;
  // What is no route of the API (the explorers, the description) can only be got.
  const others = new Set<string>();
  app.addHook('onRoute', ({ method, url }) => void (method === 'GET' && others.add(url)));
  const find = (path: string) => paths.get(path) ?? [...paths.values()].find(({ pattern }) => pattern.test(path));
  const isKnown = (path: string) => find(path) !== undefined || others.has(path);
  app.setNotFoundHandler(async (request, reply) => {
    const path = pathOf(request);
    const known = find(path);
    const methods = known?.methods ?? (others.has(path) ? ['GET'] : []);
    if (known === undefined ? methods.length === 0 : known.access !== 'public') await admitStray(request, reply);
    const straight = path.replace(/\/+$/, '');
    if (methods.length === 0 && straight !== path && isKnown(straight)) throw slashAtTheEnd(straight);
    if (methods.length === 0) throw new ServiceError('NOT_FOUND', 'There is nothing at this path.');
    throw wrongMethod(methods);
  });

  return (route, handler, { bodyFaults } = {}) => {
    const query = route.query && queryValidator(route.query);
    // Probes add what they like to the addresses of the system; elsewhere a parameter that is not known is a mistake.
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
      const result = handler(
        { params: readParams(request.params as Record<string, string>), query: request.query, body: request.body } as never,
        {
          caller: context as Context,
          headers: request.headers,
          rawBody,
          get signal() {
            return signalOf(request, reply);
          },
          get endSignal() {
            return endSignalOf(request, reply);
          },
        },
      );
      // The framework goes on waiting for an answer that goes out piece by piece when it is given the reply.
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
      const known = paths.get(path) ?? {
        pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
        access: route.access,
        methods: [],
      };
      known.methods.push(route.method);
      paths.set(path, known);
      if (!path.includes('{')) longestPath = Math.max(longestPath, path.length);

      app.route({
        method: route.method,
        url,
        exposeHeadRoute: route.method === 'GET',
        // Admission and the answer seldom have to wait, and promises for each request would be felt.
        onRequest: (request, reply, done) => {
          request.notes.route = url;
          request.notes.mounted = route;
          reply.header('x-request-id', request.id);
          const admitted = (caller: Context) => {
            request.notes.context = caller;
            // `/packets/batch` is no packet of that name.
            const asked = pathOf(request);
            const meant = asked.length <= longestPath && path.includes('{') ? paths.get(asked) : undefined;
            if (meant !== undefined && meant !== known) return done(wrongMethod(meant.methods));
            // The router takes `/packets/` for a packet whose id is empty.
            done(path.includes('{') && asked.endsWith('/') ? slashAtTheEnd(asked.replace(/\/+$/, '')) : undefined);
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

/** Refuses every parameter where none is known. */
function requireNone(query: Record<string, unknown>): void {
  for (const name in query) throw invalid(name, `${name} is not a parameter of this request; it takes none.`);
}

/** What a handler of the framework's gives: nothing where the answer is sent already, else a promise of the reply. */
type Answering = Promise<FastifyReply> | undefined;

/** Does something, and something else once it is done. */
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

/** Whose share of a budget a request takes: its caller's. */
const ownerOf = (request: FastifyRequest): string => request.notes.caller ?? '';

function pathOf(request: FastifyRequest): string {
  const { url } = request;
  const end = url.indexOf('?');
  return end === -1 ? url : url.slice(0, end);
}

/** 404 for a path that is only known without the slash at its end. */
function slashAtTheEnd(straight: string): ServiceError {
  return new ServiceError('NOT_FOUND', `There is nothing at this path: it ends in a slash. Ask for ${straight} instead.`);
}

function wrongMethod(methods: readonly string[]): ServiceError {
  // What can be got can be asked for by HEAD.
  const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
  return new ServiceError('METHOD_NOT_ALLOWED', `This path takes ${allow}.`, { headers: { Allow: allow } });
}

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
  answers.send(reply, ownerOf(request), writtenAs(body, shape));
}

function writtenAs(body: unknown, shape: ResponseShape | undefined): string | Buffer {
  if (body instanceof JsonText) return body.payload();
  if (shape?.contentType !== undefined) return body as string;
  // Only the fields that the declared schema names leave the service, so that a column can't leak.
  return JSON.stringify(shape?.schema === undefined ? body : pick(shape.schema, body));
}

/** `readParams` where path parameters are ids: a UUID may be written in either case (RFC 9562, 4). */
export function lowerCase(params: Record<string, string>): Record<string, string> {
  for (const name in params) params[name] = params[name]!.toLowerCase();
  return params;
}

/** Hands the connection to a stream, unless its client is gone or asked for the head alone. */
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

/** A query parameter given twice is refused, unless it is a list. So is NUL, which no database keeps in a text. */
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

/** The value with those fields alone that the schema names. An object whose schema allows others, by saying so, keeps all. */
function pick(schema: TSchema, value: unknown): unknown {
  const { properties, additionalProperties, items, anyOf } = schema as Shape;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return items === undefined ? value : value.map((item) => pick(items, item));
  if (anyOf !== undefined) {
    // Mostly an object or null. Where there are several objects it can't be told which is meant.
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
