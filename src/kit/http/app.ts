import type { IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';

import { type ErrorCode, errorCodes, ServiceError, unavailable } from '../errors.ts';
import type { Route } from '../route.ts';
import { type LingerLimits, lingerBehindAnswers, noteRequest } from './linger.ts';
import { isUpgradeToWebSocket, routeUpgrades } from './upgrade.ts';

/** What the service remembers of a request for its log line and its metrics. */
export class RequestNotes {
  /** The path pattern, never the raw path; unset until somebody asks, where no route of the API is. */
  route: string | undefined;
  /** The route of the API that was found. */
  mounted: Route | undefined;
  /** Whom the log names as the caller, and whose share of the room for large bodies it takes: a tenant, or a key's label. */
  caller: string | undefined;
  /** The error code it was refused with. */
  code: ErrorCode | undefined;
  /** Who is calling, as the service's admission found. */
  context: unknown;
  /** The body's bytes as they came. */
  rawBody: Buffer | undefined;
  /** Why the body is not taken. */
  refusal: unknown;
  /** How many of the bytes that large bodies may hold are its own. */
  held = 0;
  /** Whether the answer is a stream, which tells of itself when it ends. */
  isStream = false;
  /** What admission counted. Data and no closure: one that held the reply would keep each request alive for long. */
  counted: unknown;
}

declare module 'fastify' {
  interface FastifyRequest {
    notes: RequestNotes;
  }
  interface FastifyInstance {
    /** Whether the application ends: then no connection is kept behind its answer. */
    isStopping(): boolean;
  }
}

export interface AppParts {
  logger: Logger;
  /** Told of every finished request: for metrics. */
  onAnswered(method: string, route: string, status: number, seconds: number): void;
  /** Told of a request that a limit refused, before the answer goes out. */
  onLimited(request: FastifyRequest, reply: FastifyReply): void;
  isUnavailable(error: unknown): boolean;
  /** What the log calls the caller. */
  callerField?: string;
  /** How long a connection waits behind its last answer for the rest of a body. */
  linger?: LingerLimits;
}

/** When the application stops: how long a request that is still arriving is waited for, in milliseconds. */
const lastRequestsMs = 5_000;

/** An HTTP application with our error bodies, one log line a request, and time limits on slow senders. */
export function createApp({ logger, onAnswered, onLimited, isUnavailable, callerField = 'tenant_id', linger }: AppParts): FastifyInstance {
  // biome-ignore lint/plugin: it tells one start of the program from another; nothing is decided by it.
  const instance = process.pid.toString(36) + Date.now().toString(36);
  let requests = 0;
  const app = fastify({
    logger: false,
    genReqId: () => `${instance}-${(requests++).toString(36)}`,
    // A sender that trickles headers or body is cut off; answers and streams are not touched by these.
    http: {
      headersTimeout: 15_000,
      connectionsCheckingInterval: 5_000,
      requireHostHeader: false,
      shouldUpgradeCallback: isUpgradeToWebSocket,
    },
    requestTimeout: 60_000,
    keepAliveTimeout: 72_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // No path parameter is longer than all headers may be: a long one is an unknown id like any other.
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: 16_384 },
    onProtoPoisoning: 'error',
    rewriteUrl: routable as never,
    clientErrorHandler(error, socket) {
      const status = answerClientError(error, socket as Socket);
      if (status === undefined) return;
      onAnswered('unknown', 'unknown', status, 0);
      logger.info({ route: 'unknown', status, code: 'VALIDATION_ERROR' }, 'request');
    },
    frameworkErrors: (error, request, reply) => void sendError(reply as never, request as never, translate(error)),
  });

  // Who has sent a request and ends the sending half still waits for the answer.
  (app.server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;

  // When it stops, what is in hand is answered first and each connection closes behind its answer.
  let stopping = false;
  app.addHook('preClose', (done) => {
    stopping = true;
    setTimeout(() => app.server.closeAllConnections(), lastRequestsMs).unref();
    done();
  });
  app.decorate('isStopping', () => stopping);

  lingerBehindAnswers(app.server, linger);
  routeUpgrades(app);

  // Nothing but 100-continue is expected of anybody; a server may pass over the rest (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (request, response) => void app.server.emit('request', request, response));

  app.decorateRequest('notes', null as never);
  app.addHook('onRequest', (request, _reply, done) => {
    request.notes = new RequestNotes();
    noteRequest(request.raw);
    // RFC 9112, 3.2. Node would refuse a missing one by itself, with an empty answer, and passes over a second one.
    const hosts = countHosts(request.raw.rawHeaders);
    if (hosts > 1 || (hosts === 0 && request.raw.httpVersion === '1.1')) done(notOneHost());
    else done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    if (request.notes.isStream) return done();
    const ms = reply.elapsedTime;
    const { method, id } = request;
    const { statusCode } = reply;
    const route = routeOf(request);
    onAnswered(method, route, statusCode, ms / 1000);
    logger.info(
      {
        request_id: id,
        [callerField]: request.notes.caller,
        method,
        route,
        status: statusCode,
        code: request.notes.code,
        ms: Math.round(ms * 100) / 100,
      },
      'request',
    );
    done();
  });

  function translate(error: unknown): ServiceError {
    if (error instanceof ServiceError) return error;
    const ours = frameworkError(error);
    if (ours !== undefined) return ours;
    return isUnavailable(error)
      ? unavailable(error)
      : new ServiceError('SERVER_ERROR', 'The service failed; the request_id finds the cause in its log.');
  }

  function sendError(reply: FastifyReply, request: FastifyRequest, error: ServiceError): FastifyReply {
    if (stopping) reply.header('connection', 'close');
    // What the framework refuses by itself has passed no hook.
    request.notes ??= new RequestNotes();
    request.notes.code = error.code;
    return reply
      .code(error.status)
      .headers(error.headers)
      .type('application/json; charset=utf-8')
      .serializer((text: string) => text)
      .send(JSON.stringify({ ...error.body(), request_id: request.id }));
  }

  app.setErrorHandler((thrown, request, reply) => {
    const error = translate(thrown);
    if (error.code === 'RATE_LIMITED') onLimited(request, reply);
    if (error.status >= 500) {
      const cause = error.cause ?? thrown;
      logger.error({ request_id: request.id, route: routeOf(request), err: describeCause(cause) }, 'request failed');
    }
    return sendError(reply, request, error);
  });

  return app;
}

/** The pattern of the request's path. The framework builds an object to tell it, so a mounted route has noted its own. */
function routeOf(request: FastifyRequest): string {
  return request.notes.route ?? request.routeOptions.url ?? 'unknown';
}

const notOneHost = () => new ServiceError('VALIDATION_ERROR', 'An HTTP/1.1 request needs one Host header.');

/** How many Host headers there are among names and values in turn. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/**
 * Makes a request one that the router takes, so that it is admitted and counted like any other. It gives up on a path that
 * does not decode, which is an unknown one, and on the method QUERY, which is not its older name SEARCH to it.
 */
function routable(raw: IncomingMessage): string {
  if (raw.method === 'QUERY') raw.method = 'SEARCH';
  const url = raw.url ?? '/';
  const end = url.indexOf('?');
  const path = end === -1 ? url : url.slice(0, end);
  if (!path.includes('%')) return url;
  try {
    decodeURIComponent(path);
    return url;
  } catch {
    return path.replaceAll('%', '%25') + url.slice(path.length);
  }
}

/** What the log keeps of an unexpected error: its kind, message and stack, without the values a database may quote. */
export function describeCause(cause: unknown): { type: string; message: string; code?: unknown; stack?: string } {
  if (!(cause instanceof Error)) return { type: typeof cause, message: 'Something that is not an Error was thrown.' };
  const code = (cause as { code?: unknown }).code;
  return {
    type: cause.name,
    message: cause.message,
    ...(code === undefined ? {} : { code }),
    ...(cause.stack === undefined ? {} : { stack: cause.stack }),
  };
}

const byStatus = new Map<number, ErrorCode>(Object.entries(errorCodes).map(([code, { status }]) => [status, code as ErrorCode]));

/** The framework's own refusals, in our words. */
function frameworkError(error: unknown): ServiceError | undefined {
  if (typeof error !== 'object' || error === null || !('statusCode' in error) || !('code' in error)) return undefined;
  const status = Number(error.statusCode);
  if (status < 400 || status >= 500 || !String(error.code).startsWith('FST_')) return undefined;
  const code = byStatus.get(status) ?? 'VALIDATION_ERROR';
  const sentences: Partial<Record<ErrorCode, string>> = {
    PAYLOAD_TOO_LARGE: 'The body is larger than any request may be.',
    UNSUPPORTED_MEDIA_TYPE: 'The body must be application/json in UTF-8.',
    VALIDATION_ERROR: 'The request could not be read.',
  };
  return new ServiceError(code, sentences[code] ?? 'The request was refused.');
}

/**
 * Answers what Node itself refuses before there is a request: a broken request line, headers too large or too slow.
 * @returns the status; undefined when nobody is there to be answered
 */
function answerClientError({ code }: NodeJS.ErrnoException, socket: Socket): number | undefined {
  if (socket.destroyed || !socket.writable) return undefined;
  const late = code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const large = code === 'HPE_HEADER_OVERFLOW';
  const [status, detail] = late
    ? ['408 Request Timeout', 'The request took too long to arrive.']
    : large
      ? ['431 Request Header Fields Too Large', 'The headers are too large.']
      : ['400 Bad Request', 'This is not a valid HTTP request.'];
  const status_code = Number(status.slice(0, 3));
  const body = JSON.stringify({ detail, code: 'VALIDATION_ERROR', field: null, status_code });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  return status_code;
}

/** Starts listening and gives the address to print: port 0 has become a real port, a wildcard the loopback. */
export async function listen(app: FastifyInstance, host: string, port: number): Promise<string> {
  await app.listen({ host, port });
  const address = app.server.address() as AddressInfo;
  const shown = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${shown}:${address.port}`;
}
