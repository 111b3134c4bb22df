import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

import { currentRequest } from '../current-request.ts';
import { httpSpanEnd, type Span, type TraceContext, type Tracer, traceparentOf } from '../trace-context.ts';
import type { ConnectionPool, OutgoingConnection } from './connections.ts';
import { exchangeFailure, OutgoingError } from './failures.ts';
import type { AddressGuard } from './guard.ts';

/** A request to another server. */
interface OutgoingRequest {
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent unchanged. */
  readonly body?: string | Buffer;
  /** The deadline of the whole exchange in milliseconds: waiting for a connection, look-up, connect, request and response. */
  readonly timeoutMs: number;
  /**
   * Whether the request is idempotent (RFC 9110, 9.2.2). It is then sent again on a new connection if a reused one
   * breaks before the response. By default only GET.
   */
  readonly idempotent?: boolean;
  /** The size limit of the response body in bytes. The whole exchange may receive twice that and 256 KiB, and ten interim responses. */
  readonly maxBytes: number;
  /** For whom the request is, such as a tenant's number; the concurrent look-ups of names of one owner are bounded. */
  readonly owner?: unknown;
  /** Aborts the exchange, which then fails as `cancelled`. */
  readonly signal?: AbortSignal;
  /** The trace that the request continues, sent as `traceparent`. */
  readonly trace?: TraceContext | undefined;
}

/** A response whose head has arrived. Its body is not decompressed. */
export interface OutgoingAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * The chunks of the body as they arrive, to be read once. Stopping early closes the connection.
   * @throws OutgoingError `timeout`, `connection_reset`, `tls_error`, `too_large` or `cancelled`
   */
  readonly body: AsyncIterable<Buffer>;
  /** The whole body as text. Throws like `body`. */
  text(): Promise<string>;
}

interface OutgoingDependencies {
  guard: AddressGuard;
  /** The most connections to an origin (scheme, host and port). */
  connectionsPerOrigin?: number;
  /** Certificate authorities to trust instead of the default ones, in PEM. */
  ca?: string;
  /** Records a span for each exchange, until the head of its response; undefined: none. */
  tracer?: Tracer | undefined;
}

/** The most interim responses (1xx) to a request. */
const maxInterim = 10;

/** The most bytes of an exchange, in addition to twice the limit of its body: heads, and the framing of chunks. */
const maxOverhead = 256 * 1024;

/** Outgoing HTTP with keep-alive, the address guard at every connect, one deadline, bounded responses and no redirects. */
export class Outgoing {
  readonly #parts: OutgoingDependencies;
  #connections: ConnectionPool | undefined;
  readonly #exchanges = new Set<AbortController>();
  #closed = false;

  constructor(parts: OutgoingDependencies) {
    this.#parts = parts;
  }

  /**
   * Sends a request; resolves when the head of the response has arrived. Only a request that names its trace sends `traceparent`.
   * @throws OutgoingError with any failure
   */
  async open(request: OutgoingRequest): Promise<OutgoingAnswer> {
    const span = this.#parts.tracer?.begin('client', request.trace ?? currentRequest()?.trace);
    const trace = request.trace && (span?.context ?? request.trace);
    const traced = trace === undefined ? request : { ...request, headers: { ...request.headers, traceparent: traceparentOf(trace) } };
    if (span === undefined) return this.#exchange(traced);
    // The cause may have ended long ago: some systems show only a link to it.
    if (request.trace !== undefined) span.link(request.trace);
    try {
      const answer = await this.#exchange(traced);
      endSpan(span, request, { status: answer.status });
      return answer;
    } catch (error) {
      endSpan(span, request, { failure: error instanceof OutgoingError ? error.failure : 'internal' });
      throw error;
    }
  }

  /**
   * Sends a request of which only the status and headers matter. Up to `maxBytes` of the body are read and discarded
   * within the deadline, so that the connection can be reused; with a longer body it is closed.
   * @throws OutgoingError with any failure but `too_large`
   */
  async send(request: OutgoingRequest): Promise<Pick<OutgoingAnswer, 'status' | 'headers'>> {
    const answer = await this.open(request);
    // It fails when the connection is closed.
    discardBody(answer.body).catch(() => undefined);
    return { status: answer.status, headers: answer.headers };
  }

  /** The current number of connections, idle ones included. */
  connections(): number {
    return this.#connections?.count() ?? 0;
  }

  /** Aborts all exchanges as `cancelled` and closes all connections. */
  close(): void {
    this.#closed = true;
    for (const ending of [...this.#exchanges]) ending.abort(new OutgoingError('cancelled'));
    this.#connections?.close();
  }

  /** Creates the connections at the first exchange: loading their library takes a sixth of the start-up time. */
  async #opened(): Promise<ConnectionPool> {
    const { guard, connectionsPerOrigin: perOrigin = 32, ca } = this.#parts;
    const { ConnectionPool } = await import('./connections.ts');
    this.#connections ??= new ConnectionPool({ guard, perOrigin, ...(ca === undefined ? {} : { ca }) });
    return this.#connections;
  }

  /** Runs an exchange, from the wait for a connection to the last byte. */
  async #exchange(request: OutgoingRequest): Promise<OutgoingAnswer> {
    const { url, method = 'POST', idempotent = method === 'GET', headers, body, timeoutMs, maxBytes, owner, signal: outside } = request;
    if (this.#closed || outside?.aborted) throw new OutgoingError('cancelled');
    const { origin, pathname, search } = new URL(url);
    const ending = new AbortController();
    let pool: ConnectionPool | undefined;
    let connection: OutgoingConnection | undefined;
    const timer = setTimeout(() => ending.abort(new OutgoingError('timeout')), timeoutMs);
    const cancel = () => ending.abort(new OutgoingError('cancelled'));
    outside?.addEventListener('abort', cancel, { once: true });
    this.#exchanges.add(ending);
    ending.signal.addEventListener('abort', () => finish(ending.signal.reason));

    /** Ends the exchange, once. Without a failure the connection is kept. */
    const finish = (failure?: OutgoingError): void => {
      if (!this.#exchanges.delete(ending)) return;
      clearTimeout(timer);
      outside?.removeEventListener('abort', cancel);
      if (connection === undefined) return;
      if (failure === undefined) pool!.release(connection);
      else pool!.discard(connection, failure);
    };

    let interim = 0;
    let isAnswered = false;
    const onInfo = () => {
      interim += 1;
      if (interim > maxInterim) throw new OutgoingError('connection_reset');
    };
    const parts = { path: pathname + search, method, headers: { ...headers }, body: body ?? null, onInfo };
    try {
      pool = this.#connections ?? (await this.#opened());
      ending.signal.throwIfAborted();
      connection = await pool.acquire(origin, ending.signal);
      if (ending.signal.aborted) {
        pool.release(connection);
        throw ending.signal.reason;
      }
      connection.owner = owner;
      connection.receivedBefore = connection.socket?.bytesRead ?? 0;
      connection.maxReceived = 2 * maxBytes + maxOverhead;
      connection.onExcess = () => ending.abort(new OutgoingError(isAnswered ? 'too_large' : 'connection_reset'));
      // A connection that was closed while idle is replaced before anything is sent. If one breaks later, the server may
      // already have carried out the request.
      const repeatable = idempotent && connection.client.stats.connected;
      const answer = await connection.client.request(parts).catch((error: unknown) => {
        if (!repeatable || ending.signal.aborted || exchangeFailure(error).failure !== 'connection_reset') throw error;
        pool!.renew(connection!);
        return connection!.client.request(parts);
      });
      isAnswered = true;
      return answerOf(answer, maxBytes, finish);
    } catch (error) {
      const failure = ending.signal.aborted ? (ending.signal.reason as OutgoingError) : exchangeFailure(error);
      finish(failure);
      throw failure;
    }
  }
}

/** Ends the span of an exchange. The path is left out: it may have secrets. */
function endSpan(span: Span, { url, method = 'POST' }: OutgoingRequest, { status, failure }: { status?: number; failure?: string }): void {
  const { hostname, port, protocol } = new URL(url);
  const more = { 'server.address': hostname, 'server.port': Number(port) || (protocol === 'https:' ? 443 : 80) };
  const refused = status !== undefined && status >= 400 ? String(status) : undefined;
  span.end(httpSpanEnd(method, { ...(status === undefined ? {} : { status }), failure: failure ?? refused, more }));
}

type Finish = (failure?: OutgoingError) => void;

function answerOf({ statusCode, headers, body }: Dispatcher.ResponseData, maxBytes: number, finish: Finish): OutgoingAnswer {
  async function* bounded(): AsyncGenerator<Buffer> {
    let failure: OutgoingError | undefined;
    let isWhole = false;
    let size = 0;
    try {
      for await (const chunk of body) {
        size += chunk.length;
        if (size > maxBytes) throw new OutgoingError('too_large');
        yield chunk;
      }
      isWhole = true;
    } catch (error) {
      failure = exchangeFailure(error);
      throw failure;
    } finally {
      // Creates the error only if it is needed, because that is expensive and most bodies are read completely.
      finish(isWhole ? undefined : (failure ?? new OutgoingError('cancelled')));
    }
  }
  const chunks = bounded();
  return {
    status: statusCode,
    headers,
    body: chunks,
    async text() {
      return Buffer.concat(await Array.fromAsync(chunks)).toString();
    },
  };
}

/** Discards a body. Its errors do not matter, because the status has already decided. */
async function discardBody(body: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of body);
}
