import type { IncomingHttpHeaders } from 'node:http';

import { type Connection, createConnections } from './connections.ts';
import { exchangeFailure, OutgoingError } from './failures.ts';
import type { AddressGuard } from './guard.ts';

/** A request to somebody else's server. */
export interface OutgoingRequest {
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it is. */
  readonly body?: string | Buffer;
  /** The deadline of the whole exchange in milliseconds: waiting in turn, look-up, connect, request and the answer to its end. */
  readonly timeoutMs: number;
  /**
   * Whether the request may arrive twice (RFC 9110, 9.2.2): it is then sent again, the same bytes on a fresh connection,
   * where a reused one breaks before the answer. Left out: GET alone.
   */
  readonly idempotent?: boolean;
  /** The most bytes of body that are taken. */
  readonly maxBytes: number;
  /** Ends the exchange from outside, as `cancelled`. */
  readonly signal?: AbortSignal;
}

/** An answer whose head has arrived. Its body is as the server sent it, never decompressed. */
export interface OutgoingAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * The body's chunks as they come, to be read once; who stops early cuts the connection.
   * @throws OutgoingError `timeout`, `connection_reset`, `tls_error`, `too_large` or `cancelled`
   */
  readonly body: AsyncIterable<Buffer>;
  /** The whole body as text. Throws what reading `body` throws. */
  text(): Promise<string>;
}

export interface OutgoingParts {
  guard: AddressGuard;
  /** The most connections to one origin (scheme, host and port). */
  connectionsPerOrigin?: number;
  /** Certificate authorities to trust instead of the usual ones, in PEM. */
  ca?: string;
}

/** Outgoing HTTP: keep-alive, the address guard at every connect, one deadline, bounded answers, no redirects. */
export interface Outgoing {
  /**
   * Sends a request; resolves with the answer's head.
   * @throws OutgoingError of any class
   */
  open(request: OutgoingRequest): Promise<OutgoingAnswer>;
  /**
   * Sends a request whose answer is decided by its status. At most `maxBytes` of the body are read, to nowhere, within
   * the same deadline, so that the connection can be used again; then it is cut.
   * @throws OutgoingError of any class but `too_large`
   */
  send(request: OutgoingRequest): Promise<Pick<OutgoingAnswer, 'status' | 'headers'>>;
  /** How many connections there are now, idle ones included. */
  connections(): number;
  /** Ends what is in hand as `cancelled`, and every connection. */
  close(): void;
}

/** A sender of requests. */
export function createOutgoing({ guard, connectionsPerOrigin = 32, ca }: OutgoingParts): Outgoing {
  const connections = createConnections({ guard, perOrigin: connectionsPerOrigin, ...(ca === undefined ? {} : { ca }) });
  const inHand = new Set<AbortController>();
  let closed = false;

  /** One exchange, from the wait for a connection to the last byte. */
  async function open(request: OutgoingRequest): Promise<OutgoingAnswer> {
    const { url, method = 'POST', idempotent = method === 'GET', headers = {}, body, timeoutMs, maxBytes, signal: outside } = request;
    if (closed || outside?.aborted) throw new OutgoingError('cancelled');
    const { origin, pathname, search } = new URL(url);
    const ending = new AbortController();
    let connection: Connection | undefined;
    const timer = setTimeout(() => ending.abort(new OutgoingError('timeout')), timeoutMs);
    const cancel = () => ending.abort(new OutgoingError('cancelled'));
    outside?.addEventListener('abort', cancel, { once: true });
    inHand.add(ending);
    ending.signal.addEventListener('abort', () => finish(ending.signal.reason));

    /** Ends the exchange once: without a failure the connection is kept. */
    function finish(failure?: OutgoingError): void {
      if (!inHand.delete(ending)) return;
      clearTimeout(timer);
      outside?.removeEventListener('abort', cancel);
      if (connection === undefined) return;
      if (failure === undefined) connections.release(connection);
      else connections.discard(connection, failure);
    }

    const parts = { path: pathname + search, method, headers: { ...headers }, body: body ?? null };
    try {
      connection = await connections.acquire(origin, ending.signal);
      if (ending.signal.aborted) {
        connections.release(connection);
        throw ending.signal.reason;
      }
      // A connection that was closed while it stood idle is replaced before anything is sent. One that breaks afterwards may
      // have carried the request to somebody who acted on it.
      const repeatable = idempotent && connection.client.stats.connected;
      const answer = await connection.client.request(parts).catch((error: unknown) => {
        if (!repeatable || ending.signal.aborted || exchangeFailure(error).failure !== 'connection_reset') throw error;
        connections.renew(connection!);
        return connection!.client.request(parts);
      });
      return answerOf(answer, maxBytes, finish);
    } catch (error) {
      const failure = ending.signal.aborted ? (ending.signal.reason as OutgoingError) : exchangeFailure(error);
      finish(failure);
      throw failure;
    }
  }

  return {
    open,
    async send(request) {
      const answer = await open(request);
      void passOver(answer.body);
      return { status: answer.status, headers: answer.headers };
    },
    connections: connections.count,
    close() {
      closed = true;
      for (const ending of [...inHand]) ending.abort(new OutgoingError('cancelled'));
      connections.close();
    },
  };
}

interface Received {
  statusCode: number;
  headers: IncomingHttpHeaders;
  body: AsyncIterable<Buffer>;
}

function answerOf({ statusCode, headers, body }: Received, maxBytes: number, finish: (failure?: OutgoingError) => void): OutgoingAnswer {
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
      // An error takes longer to make than the rest of this; most bodies are read to their end.
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

/** Reads a body to nowhere. The status has decided already, so that how the rest ends does not matter. */
async function passOver(body: AsyncIterable<Buffer>): Promise<void> {
  try {
    for await (const _ of body);
  } catch {
    // The connection has been cut.
  }
}
