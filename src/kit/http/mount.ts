import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

import type { Awaitable } from '../awaitable.ts';
import { withRequest } from '../current-request.ts';
import { ServiceError } from '../errors.ts';
import { MemoryBudget } from '../memory-budget.ts';
import type { Route } from '../route.ts';
import { Turns } from '../turns.ts';
import { bodyKind, discardBody, readBody, textOf } from './body.ts';
import { Endpoint, type Handler, type MountOptions } from './endpoint.ts';
import { Exchange } from './exchange.ts';
import { parseJson } from './json.ts';
import { createPaths, type Paths } from './paths.ts';
import { answerBudget, Sender } from './sender.ts';

/** What a service provides for all its routes. */
interface MountDependencies<Context, Traits> {
  app: FastifyInstance;
  /** The path prefixes under which a route is mounted. */
  prefixes: (route: Route) => readonly string[];
  /** Authenticates and authorizes the caller, before the body is read. Throws a ServiceError to refuse. */
  admit(route: Route & Traits, request: FastifyRequest, reply: FastifyReply): Awaitable<Context>;
  /** Runs before a 404 or 405 is sent, so that requests without a route count against the rate limit as well. */
  admitUnrouted: (request: FastifyRequest, reply: FastifyReply) => Awaitable<unknown>;
  /** The largest body that this caller may send to this route, in bytes. */
  bodyLimit: (route: Route & Traits, caller: Context) => number;
  /** The message of a 413. */
  tooLarge?: (limit: number) => string;
  /** Query parameters that `admit` reads; every route accepts them. */
  admissionParameters?: readonly string[];
  /** Normalizes path parameters. */
  readParams?: (params: Record<string, string>) => Record<string, string>;
  /** The limit on the bytes of large bodies of all requests in progress; a request beyond it gets 503. */
  maxBodyBytes?: number;
  /** The limit on the bytes of large answers that clients have not read yet; a request beyond it gets 503. */
  answers?: MemoryBudget;
  /** Where large bodies get their turns of the event loop. */
  turns?: Turns;
  /** On whose behalf the body of a caller takes its turn; left out or undefined: its owner in the memory budgets. */
  turnOwner?: (caller: Context) => unknown;
}

/** Mounts one route on the application. */
export type Mount<Context, Traits = object> = <R extends Route & Traits>(
  route: R,
  handler: Handler<R, Context>,
  options?: MountOptions,
) => void;

/** The result of a Fastify handler: undefined if the response is already sent, else a promise of the reply. */
type Handled = Promise<FastifyReply> | undefined;

/** The default of `maxBodyBytes`. */
const defaultBodyBytes = 256 * 1024 * 1024;

/** Returns a function that mounts routes. A known path with another method gets 405 with `Allow` instead of 404. */
export function createMount<Context, Traits extends object = object>(parts: MountDependencies<Context, Traits>): Mount<Context, Traits> {
  const { app, prefixes, admitUnrouted } = parts;
  const paths = createPaths(app, admitUnrouted);
  const steps = new Steps(parts, paths);
  app.decorateRequest('exchange', null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', ({ exchange }: FastifyRequest, payload: IncomingMessage, done) => {
    if (exchange?.route.body !== undefined) steps.read(exchange as Exchange<Context>, payload, (body) => done(null, body));
    else {
      payload.resume();
      done(null);
    }
  });

  return (route, handler, options) => {
    const endpoint = new Endpoint<Context>(route, handler, options);
    for (const path of prefixes(route).flatMap((prefix) => pathsOf(prefix + route.path, route))) {
      const label = path.replace(/\{(\w+)\}/g, ':$1');
      paths.add(path, route);
      app.route({
        method: route.method,
        url: patternOf(path),
        exposeHeadRoute: route.method === 'GET',
        onRequest: (request, reply, done) => {
          request.info.route = label;
          reply.header('x-request-id', request.id);
          const exchange = new Exchange<Context>(route, request, reply);
          request.exchange = exchange;
          steps.admit(endpoint, exchange, path, done);
        },
        handler: (request) => {
          const exchange = request.exchange as Exchange<Context>;
          return exchange.held === 0 ? steps.handle(endpoint, exchange) : steps.handleLarge(endpoint, exchange);
        },
      });
    }
  };
}

/**
 * The steps of a request: admit, read, validate, handle and send. Most admissions and handlers are synchronous, and
 * promises for every request would cost measurable time.
 */
class Steps<Context, Traits> {
  readonly #parts: MountDependencies<Context, Traits>;
  readonly #paths: Paths;
  readonly #budget: MemoryBudget;
  readonly #sender: Sender;
  readonly #turns: Turns;

  constructor(parts: MountDependencies<Context, Traits>, paths: Paths) {
    this.#parts = parts;
    this.#paths = paths;
    this.#budget = new MemoryBudget(parts.maxBodyBytes ?? defaultBodyBytes);
    this.#sender = new Sender(parts.answers ?? answerBudget());
    this.#turns = parts.turns ?? new Turns();
  }

  admit(endpoint: Endpoint<Context>, exchange: Exchange<Context>, path: string, done: (error?: Error) => void): void {
    const { route, request, reply } = exchange;
    const refuse = (error: unknown) => {
      // A route with error bodies of its own sends this one too.
      const isForRoute = endpoint.refused !== undefined && error instanceof ServiceError;
      if (isForRoute) exchange.notAdmitted = error;
      done(isForRoute ? undefined : (error as Error));
    };
    let caller: Awaitable<Context>;
    try {
      caller = this.#parts.admit(route as Route & Traits, request, reply);
    } catch (error) {
      refuse(error);
      return;
    }
    if (caller instanceof Promise) caller.then((admitted) => this.#enter(exchange, path, admitted, done), refuse);
    else this.#enter(exchange, path, caller, done);
  }

  #enter(exchange: Exchange<Context>, path: string, caller: Context, done: (error?: Error) => void): void {
    exchange.caller = caller;
    done(this.#paths.misroutedTo(path, exchange.request));
  }

  read(exchange: Exchange<Context>, payload: IncomingMessage, done: (body?: unknown) => void): void {
    const { route, request, owner, caller } = exchange;
    if (exchange.notAdmitted !== undefined) {
      discardBody(payload);
      done();
      return;
    }
    const { bodyLimit, turnOwner, tooLarge = (limit) => `The body is larger than the ${limit} bytes that are allowed here.` } = this.#parts;
    // `handle` throws it. An error here closes the connection, and a client that is still sending misses the response.
    const refuse = (refusal: unknown) => {
      exchange.refusal = refusal;
      discardBody(payload);
      done();
    };
    let kind: 'json' | 'text';
    try {
      kind = bodyKind(request.headers, route.textTypes);
    } catch (fault) {
      refuse(fault);
      return;
    }
    const limit = bodyLimit(route as Route & Traits, caller);
    const announced = Number(request.headers['content-length']);
    const reading = { limit, tooLarge, announced, budget: this.#budget, owner, turns: this.#turns, turnOwner: turnOwner?.(caller) };
    readBody(payload, reading, (error, bytes, held) => {
      exchange.held = held;
      if (error !== null) {
        this.#release(exchange);
        return refuse(error);
      }
      if (held > 0) this.#releaseUnhandled(exchange);
      if (bytes === undefined || bytes.length === 0) return done();
      let body: unknown;
      try {
        body = kind === 'json' ? parseJson(bytes) : textOf(bytes);
      } catch (fault) {
        return refuse(fault);
      }
      exchange.rawBody = bytes;
      done(body);
    });
  }

  /** Validates a request, has its handler do it and sends the result. */
  handle(endpoint: Endpoint<Context>, exchange: Exchange<Context>): Handled {
    const { request, reply } = exchange;
    if (exchange.notAdmitted !== undefined) return this.#refuse(endpoint, exchange, exchange.notAdmitted, true);
    if (exchange.refusal !== undefined) return this.#refuse(endpoint, exchange, exchange.refusal, false);
    const { admissionParameters, readParams } = this.#parts;
    const query = request.query as Record<string, unknown>;
    if (admissionParameters !== undefined) for (const name of admissionParameters) delete query[name];
    try {
      endpoint.validate(query, request.body, exchange.rawBody?.length);
    } catch (refusal) {
      // An empty body is no JSON.
      return this.#refuse(endpoint, exchange, refusal, exchange.route.body === undefined || request.body !== undefined);
    }
    const params = request.params as Record<string, string>;
    const input = { params: readParams === undefined ? params : readParams(params), query, body: request.body };
    // A GET writes nothing and sends nothing, so nothing asks for the current request, whose context costs time.
    const result =
      endpoint.route.method === 'GET'
        ? endpoint.handler(input as never, exchange)
        : withRequest(request.info, () => endpoint.handler(input as never, exchange));
    if (result instanceof Promise) {
      // Resolving with the reply makes Fastify wait for a response that is sent in pieces.
      const sent = result.then((found) => {
        this.#sender.send(exchange, found, endpoint.successStatus);
        return reply;
      });
      if (endpoint.refused === undefined) return sent;
      return sent.catch((error: unknown) => {
        this.#refuse(endpoint, exchange, error, true);
        return reply;
      });
    }
    this.#sender.send(exchange, result, endpoint.successStatus);
    return undefined;
  }

  /** Answers a refused request, if its route has an answer of its own. @throws ServiceError if not */
  #refuse({ refused, successStatus }: Endpoint<Context>, exchange: Exchange<Context>, refusal: unknown, isRead: boolean): undefined {
    const { body, query } = exchange.request;
    const answer = refusal instanceof ServiceError ? refused?.(refusal, { isRead, body, query }) : undefined;
    if (answer === undefined) throw refusal;
    exchange.reply.headers((refusal as ServiceError).headers);
    this.#sender.send(exchange, answer, successStatus);
  }

  /** Handles a request whose body counts against the memory budget. */
  async handleLarge(endpoint: Endpoint<Context>, exchange: Exchange<Context>): Promise<FastifyReply> {
    exchange.isHandled = true;
    try {
      await this.handle(endpoint, exchange);
      return exchange.reply;
    } finally {
      this.#release(exchange);
    }
  }

  /** Releases the budget of a request at its end if no handler does, since Fastify calls none for a client that has disconnected. */
  #releaseUnhandled(exchange: Exchange<Context>): void {
    const { raw } = exchange.reply;
    const release = () => {
      if (!exchange.isHandled) this.#release(exchange);
    };
    if (raw.closed) setImmediate(release);
    else raw.once('close', release);
  }

  #release(exchange: Exchange<Context>): void {
    this.#budget.release(exchange.owner, exchange.held);
    exchange.held = 0;
  }
}

const pathsOf = (path: string, { forPeople }: Route): string[] => (forPeople ? [path, `${path}/`] : [path]);

/** The pattern of a path for the router. A colon of the path is written twice, and ends a parameter before it. */
function patternOf(path: string): string {
  return path
    .replaceAll(':', '::')
    .replace(/\{(\w+)\}(?=::)/g, ':$1([^:/]+)')
    .replace(/\{(\w+)\}/g, ':$1');
}

/** Makes a `readParams` for ids: a UUID may be written in either case (RFC 9562, section 4). The parameters in `names` keep theirs. */
export const lowerCaseIds =
  (names: readonly string[] = []) =>
  (params: Record<string, string>): Record<string, string> => {
    for (const name in params) if (!names.includes(name)) params[name] = params[name]!.toLowerCase();
    return params;
  };
