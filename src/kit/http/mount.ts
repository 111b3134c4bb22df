import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';

import { invalid, ServiceError } from '../errors.ts';
import type { RequestOf, ResultOf, Route } from '../route.ts';
import { parseJson } from './json.ts';
import { bodyValidator, queryValidator } from './validate.ts';

/** JSON that is text already, and travels as it is. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
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
export interface MountParts<Context> {
  app: FastifyInstance;
  /** Where a route is found: one prefix, or several. */
  prefixes(route: Route): readonly string[];
  /** Runs before the body is read: who is calling, and whether they may. Throws a ServiceError to refuse. */
  admit(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<Context> | Context;
  /** The largest body this caller may send here, in bytes. */
  bodyLimit(route: Route, caller: Context): number;
}

/** What a handler is told besides the request's own parts. */
export interface HandlerContext<Context> {
  caller: Context;
  headers: FastifyRequest['headers'];
  /** The body's bytes as they came, where there was one. */
  rawBody: Buffer | undefined;
}

type Handled<T> = T | JsonText | Answer<T>;

export type Handler<R extends Route, Context> = (
  request: RequestOf<R>,
  context: HandlerContext<Context>,
) => Promise<Handled<ResultOf<R>>> | Handled<ResultOf<R>>;

/** A function that mounts one route after another on the application. */
export type Mount<Context> = <R extends Route>(route: R, handler: Handler<R, Context>) => void;

/**
 * Mounts routes: admission, then body, then validation, then the handler. The methods of every path are remembered, so
 * that another method gets 405 with `Allow` instead of 404.
 */
export function createMount<Context>({ app, prefixes, admit, bodyLimit }: MountParts<Context>): Mount<Context> {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage, done) => {
    readJson(request, payload).then((value) => done(null, value), done);
  });

  async function readJson(request: FastifyRequest, payload: IncomingMessage): Promise<unknown> {
    const { route } = request.routeOptions.config as { route?: Route };
    if (route?.body === undefined) {
      payload.resume();
      return undefined;
    }
    requireJson(request.headers['content-type']);
    const limit = bodyLimit(route, request.notes.context as Context);
    const bytes = await readBody(payload, limit, Number(request.headers['content-length']));
    if (bytes.length === 0) return undefined;
    request.notes.rawBody = bytes;
    return parseJson(bytes);
  }

  const paths = new Map<string, { pattern: RegExp; methods: string[] }>();
  // What is no route of the API (the explorers, the description) can only be got.
  const others = new Set<string>();
  app.addHook('onRoute', ({ method, url }) => void (method === 'GET' && others.add(url)));
  app.setNotFoundHandler(async (request) => {
    const path = request.url.split('?', 1)[0]!;
    const known = [...paths.values()].find(({ pattern }) => pattern.test(path));
    const methods = known?.methods ?? (others.has(path) ? ['GET'] : []);
    if (methods.length === 0) throw new ServiceError('NOT_FOUND', 'There is nothing at this path.');
    const allow = methods.join(', ');
    throw new ServiceError('METHOD_NOT_ALLOWED', `This path takes ${allow}.`, { headers: { Allow: allow } });
  });

  return (route, handler) => {
    const query = route.query && queryValidator(route.query);
    const body = route.body && bodyValidator(route.body, { nullIsAbsent: route.nullIsAbsent ?? false });
    const successStatus = Number(Object.keys(route.responses).find((status) => status < '300'));

    for (const prefix of prefixes(route)) {
      const path = prefix + route.path;
      const known = paths.get(path) ?? {
        pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
        methods: [],
      };
      known.methods.push(route.method);
      paths.set(path, known);

      app.route({
        method: route.method,
        url: path.replace(/\{(\w+)\}/g, ':$1'),
        exposeHeadRoute: route.method === 'GET',
        config: { route } as never,
        // Called back rather than awaited: admission seldom has to wait, and a promise for each request would be felt.
        onRequest: (request, reply, done) => {
          reply.header('X-Request-Id', request.id);
          const admitted = (caller: Context) => {
            request.notes.context = caller;
            done();
          };
          try {
            const caller = admit(route, request, reply);
            if (caller instanceof Promise) caller.then(admitted, done);
            else admitted(caller);
          } catch (error) {
            done(error as Error);
          }
        },
        handler: async (request, reply) => {
          const { context, rawBody } = request.notes;
          if (query !== undefined) query(single(request.query as Record<string, unknown>));
          if (body !== undefined && (request.body !== undefined || !route.bodyOptional)) {
            if (request.body === undefined) throw new ServiceError('VALIDATION_ERROR', 'A JSON body is required.');
            body(request.body, rawBody?.length);
          }
          const result = await handler(
            { params: lowerCase(request.params as Record<string, string>), query: request.query, body: request.body } as never,
            {
              caller: context as Context,
              headers: request.headers,
              rawBody,
            },
          );
          return respond(route, reply, successStatus, result);
        },
      });
    }
  };
}

function respond(route: Route, reply: FastifyReply, successStatus: number, result: unknown): FastifyReply {
  const { status = successStatus, headers, body } = result instanceof Answered ? (result as Answer<unknown>) : { body: result };
  reply.code(status);
  if (headers !== undefined) reply.headers(headers);
  if (body === undefined) return reply.send();
  if (body instanceof JsonText) return reply.type('application/json; charset=utf-8').send(body.text);
  const shape = route.responses[status];
  if (shape?.contentType !== undefined) return reply.type(shape.contentType).send(body);
  // Only the fields that the declared schema names leave the service, so that a column can't leak.
  const shown = shape?.schema === undefined ? body : pick(shape.schema, body);
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(shown));
}

/** Path parameters are ids, and a UUID may be written in either case (RFC 9562, 4). */
function lowerCase(params: Record<string, string>): Record<string, string> {
  for (const name in params) params[name] = params[name]!.toLowerCase();
  return params;
}

/** A query parameter given twice is refused: each of ours has one meaning. So is NUL, which no database keeps in a text. */
function single(query: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) throw invalid(name, `${name} is given more than once.`);
    if (String(value).includes('\0')) throw invalid(name, `${name} has a character that is not allowed.`);
  }
  return query;
}

function requireJson(header: string | undefined): void {
  const [type = '', ...parameters] = (header ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  const isJson = type === 'application/json' || /^application\/[\w.-]+\+json$/.test(type);
  if (!isJson || (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset))) {
    throw new ServiceError('UNSUPPORTED_MEDIA_TYPE', 'The body must be application/json in UTF-8.');
  }
}

/** Reads a body, counting: one byte over the limit is refused, whatever its Content-Length said. */
async function readBody(payload: IncomingMessage, limit: number, announced: number): Promise<Buffer> {
  const tooLarge = () =>
    new ServiceError('PAYLOAD_TOO_LARGE', `The body is larger than the ${limit} bytes that this tenant's tier allows.`, {
      // The rest is not read: the connection closes behind the answer.
      headers: { Connection: 'close' },
    });
  if (announced > limit) throw tooLarge();
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    payload.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) {
        payload.removeAllListeners('data');
        payload.pause();
        reject(tooLarge());
        return;
      }
      chunks.push(chunk);
    });
    payload.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    payload.on('error', reject);
    payload.on('close', () => {
      if (!payload.complete) reject(new ServiceError('VALIDATION_ERROR', 'The body ended too early.'));
    });
  });
}

interface Shape {
  properties?: Record<string, TSchema>;
  additionalProperties?: unknown;
  items?: TSchema;
}

function pick(schema: TSchema, value: unknown): unknown {
  const { properties, additionalProperties, items } = schema as Shape;
  if (Array.isArray(value)) return items === undefined ? value : value.map((item) => pick(items, item));
  if (properties === undefined || typeof value !== 'object' || value === null) return value;
  const source = value as Record<string, unknown>;
  if (additionalProperties !== false) return value;
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => source[name] !== undefined)
      .map(([name, property]) => [name, pick(property, source[name])]),
  );
}
