import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';

import { type CommonCode, commonErrors, describeBriefly, describeCause, ServiceError, toServiceError } from '../errors.ts';
import { stopLimits } from '../lifecycle.ts';
import { isWildcard } from '../loopback.ts';
import { parseTraceparent, type Span, type TraceContext, type Tracer, traceFields } from '../trace-context.ts';
import { mergeForwarded } from './forwarded.ts';
import { type LingerLimits, lingerBehindAnswers, rememberRequest } from './linger.ts';
import { closeGently } from './listener.ts';
import { maxUnanswered, Pipelining } from './pipelining.ts';
import { endSpan } from './spans.ts';
import { isUpgradeToWebSocket, routeUpgrades } from './upgrade.ts';

/** What the service keeps about a request for its log line, its metrics and its limits. */
class RequestInfo {
  readonly id: string;
  /** The span of this request if spans are exported, else that of the caller if it named one. */
  trace: TraceContext | undefined;
  /** The span of this request, until it ends. */
  span: Span | undefined;
  /** The path pattern, never the raw path. Unset for paths outside the API until it is needed. */
  route: string | undefined;
  /** The caller in the log, also the owner for memory budgets: a tenant, or the label of a key. */
  caller: string | undefined;
  /** The name of the caller in the log and in spans. */
  readonly callerField: string;
  /** The error code, if the request was refused. */
  code: string | undefined;
  /** Whether the response is a stream, which is logged when it ends. */
  isStream = false;
  /** What admission counted, as data: a closure over the reply would keep every request alive for long. */
  counted: unknown;

  constructor(id: string, callerField: string) {
    this.id = id;
    this.callerField = callerField;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    info: RequestInfo;
  }
  interface FastifyInstance {
    /** Whether the application drains or is stopping. Connections then close after their response. */
    isStopping(): boolean;
    /** Begins to drain: `isStopping` is true from now on, and everything is still answered. */
    drain(): void;
  }
}

interface AppDependencies {
  logger: Logger;
  /** Called for every finished request, for metrics. */
  onAnswered: (method: string, route: string, status: number, seconds: number) => void;
  /** Called for a request that a limit refused, before the response is sent. */
  onLimited: (request: FastifyRequest, reply: FastifyReply) => void;
  isUnavailable: (error: unknown) => boolean;
  /** The log field of the caller. */
  callerField: string;
  /** Addresses and CIDR ranges of proxies whose word about the client's address is taken. */
  trustedProxies?: readonly string[];
  /** How long a connection waits after its last response for the rest of a request body. */
  linger?: LingerLimits;
  /** Records a span for each request; undefined: none. */
  tracer?: Tracer | undefined;
}

/** Creates an HTTP application with the service's error bodies, one log line per request, and timeouts for slow senders. */
export function createApp({
  logger,
  onAnswered,
  onLimited,
  isUnavailable,
  callerField,
  trustedProxies = [],
  linger,
  tracer,
}: AppDependencies): FastifyInstance {
  // biome-ignore lint/plugin: distinguishes the request ids of different starts; no decision depends on it.
  const instance = process.pid.toString(36) + Date.now().toString(36);
  let requests = 0;
  const app = fastify({
    logger: false,
    genReqId: () => `${instance}-${(requests++).toString(36)}`,
    // These end slow requests. They do not apply to responses and streams.
    serverFactory(handler) {
      const onClosed = () => logger.info({ unanswered: maxUnanswered }, 'connection closed: too many unanswered requests');
      const pipelining = new Pipelining(handler, onClosed);
      return createServer(
        {
          headersTimeout: 15_000,
          requestTimeout: 60_000,
          keepAliveTimeout: 72_000,
          connectionsCheckingInterval: 5_000,
          requireHostHeader: false,
          shouldUpgradeCallback: isUpgradeToWebSocket,
        },
        (request, response) => pipelining.receive(request, response),
      );
    },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    // The size of all headers, so that a long path parameter is an unknown id like any other.
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: 16_384 },
    onProtoPoisoning: 'error',
    // `request.ip` is then the last address of X-Forwarded-For that is not a trusted proxy.
    trustProxy: trustedProxies.length === 0 ? false : [...trustedProxies],
    rewriteUrl: routable as never,
    clientErrorHandler(error, socket) {
      const status = answerClientError(error, socket as Socket);
      if (status === undefined) return;
      onAnswered('unknown', 'unknown', status, 0);
      logger.info({ route: 'unknown', status, code: 'VALIDATION_ERROR' }, 'request');
    },
    frameworkErrors: (error, request, reply) => {
      sendError(reply as never, request as never, translate(error));
    },
  });

  // A client that ends its sending half after the request still waits for the response.
  (app.server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;

  // While stopping, requests in progress are answered first, and each connection closes after its response.
  let stopping = false;
  const closeListener = closeGently(app.server);
  app.addHook('preClose', async () => {
    stopping = true;
    setTimeout(() => app.server.closeAllConnections(), stopLimits.requests).unref();
    await closeListener();
  });
  app.decorate('isStopping', () => stopping);
  app.decorate('drain', () => {
    stopping = true;
    logger.info('draining');
  });

  lingerBehindAnswers(app.server, linger);
  routeUpgrades(app);

  // A server may ignore expectations other than 100-continue (RFC 9110, 10.1.1).
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response);
  });

  app.decorateRequest('info', null as never);
  app.addHook('onRequest', (request, reply, done) => {
    const info = new RequestInfo(request.id, callerField);
    request.info = info;
    info.trace = parseTraceparent(request.raw.headers.traceparent);
    if (tracer !== undefined) {
      info.span = tracer.begin('server', info.trace);
      info.trace = info.span.context;
    }
    if (trustedProxies.length > 0) mergeForwarded(request.raw.headers);
    rememberRequest(request.raw);
    // RFC 9112, 3.2. Node itself would answer a missing Host without a body, and ignore a second one.
    const hosts = countHosts(request.raw.rawHeaders);
    if (request.raw.httpVersionMajor !== 1) done(notHttp1(reply));
    else if (hosts > 1 || (hosts === 0 && request.raw.httpVersion === '1.1')) done(notOneHost());
    else done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    if (request.info.isStream) return done();
    const ms = reply.elapsedTime;
    const { method, id } = request;
    const { statusCode } = reply;
    const route = routeOf(request);
    endSpan(request, statusCode);
    onAnswered(method, route, statusCode, ms / 1000);
    if (!logger.isLevelEnabled('info')) return done();
    logger.info(
      {
        request_id: id,
        [callerField]: request.info.caller,
        method,
        route,
        ...(route === 'unknown' ? { path: redactedPath(request.url) } : {}),
        status: statusCode,
        code: request.info.code,
        ms: Math.round(ms * 100) / 100,
        ...traceFields(request.info.trace),
      },
      'request',
    );
    done();
  });

  function translate(error: unknown): ServiceError {
    return toServiceError(frameworkError(error) ?? error, isUnavailable);
  }

  function sendError(reply: FastifyReply, request: FastifyRequest, error: ServiceError): FastifyReply {
    if (stopping) reply.header('connection', 'close');
    // Requests that Fastify itself refuses have passed no hook.
    request.info ??= new RequestInfo(request.id, callerField);
    request.info.code = error.code;
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
      const err = error.code === 'SERVICE_UNAVAILABLE' ? describeBriefly(cause) : describeCause(cause);
      const fields = { request_id: request.id, route: routeOf(request), err, ...traceFields(request.info?.trace) };
      logger.error(fields, 'request failed');
    }
    return sendError(reply, request, error);
  });

  return app;
}

/** The pattern of the request's path. Mounted routes set it themselves, since Fastify builds an object to return it. */
function routeOf(request: FastifyRequest): string {
  return request.info.route ?? request.routeOptions.url ?? 'unknown';
}

/** The most segments of an unknown path in the log. */
const maxSegments = 12;

/**
 * An unknown path for the log, by which a mistyped one can be found. Only segments that are words in lower case are shown,
 * and versions: all others could be an id, a key or content. The query is left out.
 */
function redactedPath(url: string): string {
  const segments = url.replace(/[?#].*$/s, '').split('/', maxSegments + 1);
  return segments.map((segment) => (/^([a-z]{1,20}(-[a-z]{1,20})?(\.[a-z]{2,5})?|v\d|)$/.test(segment) ? segment : '*')).join('/');
}

const notOneHost = () => new ServiceError('VALIDATION_ERROR', 'An HTTP/1.1 request needs one Host header.');

/** Node also takes requests of HTTP/0.9, which has no versions, and lines that name HTTP/2.0. */
function notHttp1(reply: FastifyReply): ServiceError {
  reply.header('connection', 'close');
  return new ServiceError('VALIDATION_ERROR', 'This service supports HTTP/1.1 and HTTP/1.0.');
}

/** Counts the Host headers in a list of alternating names and values. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/**
 * Rewrites requests that the router can't handle, so that they are admitted and counted like any other: a path that does
 * not decode becomes an unknown path, and the method QUERY becomes SEARCH, its former name.
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

const byStatus = new Map<number, CommonCode>(Object.values(commonErrors).map(({ code, status }) => [status, code]));

/** Translates Fastify's own refusals into a ServiceError. */
function frameworkError(error: unknown): ServiceError | undefined {
  if (typeof error !== 'object' || error === null || !('statusCode' in error) || !('code' in error)) return undefined;
  const status = Number(error.statusCode);
  if (status < 400 || status >= 500 || !String(error.code).startsWith('FST_')) return undefined;
  const code = byStatus.get(status) ?? 'VALIDATION_ERROR';
  const sentences: Partial<Record<CommonCode, string>> = {
    PAYLOAD_TOO_LARGE: 'The body is larger than any request may be.',
    UNSUPPORTED_MEDIA_TYPE: 'The body must be application/json in UTF-8.',
    VALIDATION_ERROR: 'The request could not be read.',
  };
  return new ServiceError(code, sentences[code] ?? 'The request was refused.');
}

/** How long a connection stays open after an answer to an invalid request, in milliseconds, so that the client can read it. */
const refusedMs = 2_000;

const clientErrors: Record<string, readonly [string, string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request took too long to arrive.'],
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The headers are too large.'],
};

/**
 * Answers what Node refuses before there is a request: an invalid request line, or headers that are too large or too slow.
 * @returns the status; undefined if the client has disconnected
 */
function answerClientError({ code }: NodeJS.ErrnoException, socket: Socket): number | undefined {
  if (socket.destroyed || !socket.writable) return undefined;
  // The client may keep its half open, and Node has no time-outs for what follows an error.
  setTimeout(() => socket.destroy(), refusedMs).unref();
  const [status, detail] = clientErrors[code ?? ''] ?? ['400 Bad Request', 'This is not a valid HTTP request.'];
  const status_code = Number(status.slice(0, 3));
  const body = JSON.stringify({ detail, code: 'VALIDATION_ERROR', field: null, status_code });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  return status_code;
}

/** Starts listening. Returns the address to print, with the real port for port 0 and the loopback address for a wildcard. */
export async function listen(app: FastifyInstance, host: string, port: number): Promise<string> {
  await app.listen({ host, port });
  const address = app.server.address() as AddressInfo;
  const shown = isWildcard(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return `http://${shown}:${address.port}`;
}
