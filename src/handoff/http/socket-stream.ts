import type { FastifyRequest } from 'fastify';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';

import { ServiceError } from '../../kit/errors.ts';
import { StreamResponse } from '../../kit/http/response.ts';
import type { OpenStream, Stream, StreamEnd, StreamFeed, Streams } from '../../kit/http/streams.ts';
import { upgradeOf } from '../../kit/http/upgrade.ts';

/** The longest message a client may send, in bytes. */
const maxMessageBytes = 64 * 1024;

/** How long a client has to answer a close frame, in milliseconds. */
const closeMs = 2_000;

/** How long a refused client is given to read why, in milliseconds. */
const refusedMs = 200;

/** Close codes and reasons. Codes from 4000 on are our own, the others are defined in RFC 6455, 7.4.1. */
const closeCodes: Readonly<Record<Exclude<StreamEnd, 'gone' | 'refused'>, readonly [number, string]>> = {
  done: [1000, 'The subject of this stream has ended.'],
  shutdown: [1001, 'The service is stopping; connect again.'],
  failed: [1011, 'The service failed; connect again and resume.'],
  revoked: [4001, 'The API key is no longer valid.'],
  slow: [4200, 'The client reads too slowly; connect again and resume.'],
  no_pong: [4201, 'No pong was received.'],
};

/** A feed that also receives messages of the client. */
export interface SocketFeed extends StreamFeed {
  /** Called for every text message, and without a text for every protocol ping and pong. */
  onMessage(text: string | undefined): void;
}

interface SocketOptions {
  streams: Streams;
  /** Starts feeding the stream. `close` ends it with a code and a reason. */
  feed: (open: OpenStream, request: FastifyRequest, close: (code: number, reason: string) => void) => SocketFeed;
  /** Called instead if the client is gone or sent HEAD. */
  abandon: () => void;
}

// The types of the library lack `closeTimeout`.
const options = {
  noServer: true,
  clientTracking: false,
  // A small compressed message could expand a thousandfold.
  perMessageDeflate: false,
  maxPayload: maxMessageBytes,
  closeTimeout: closeMs,
};
const server = new WebSocketServer(options);

/** An answer that opens a WebSocket connection. @throws ServiceError 426 if the request does not ask for one */
export function webSocket({ streams, feed, abandon }: SocketOptions): StreamResponse {
  return new StreamResponse({
    abandon,
    open(request, reply) {
      const upgrade = upgradeOf(request.raw);
      if (upgrade === undefined || request.raw.headers['sec-websocket-version'] !== '13') {
        abandon();
        throw new ServiceError('UPGRADE_REQUIRED', 'This path only accepts WebSocket, version 13.', {
          headers: { Upgrade: 'websocket', Connection: 'Upgrade, close', 'Sec-WebSocket-Version': '13' },
        });
      }
      reply.hijack();
      const { socket, head, takeSocket } = upgrade;
      takeSocket();
      socket.once('close', abandon);
      server.handleUpgrade(request.raw, socket, head, (connection) => {
        socket.removeListener('close', abandon);
        follow(connection, request, streams, feed);
      });
    },
  });
}

function follow(connection: WebSocket, request: FastifyRequest, streams: Streams, feed: SocketOptions['feed']): void {
  let fed: SocketFeed | undefined;
  const open = streams.open(new SocketStream(connection), request, (opened) => {
    fed = feed(opened, request, (code, reason) => {
      connection.close(code, reason);
      // What a client sends after its refusal is not read, since it may be a flood.
      connection.pause();
      setTimeout(() => connection.terminate(), refusedMs).unref();
      opened.end('refused');
    });
    return fed;
  });
  const countFrame = () => {
    if (open.isOpen) fed!.onMessage(undefined);
  };
  connection.on('ping', countFrame);
  connection.on('pong', countFrame);
  connection.on('message', (data: RawData, isBinary: boolean) => {
    if (!open.isOpen) return;
    if (!isBinary) return fed!.onMessage(String(data));
    connection.close(1003, 'Only text messages are supported.');
    open.end('refused');
  });
  // The library has already closed the connection with the appropriate code.
  connection.on('error', () => open.end('refused'));
  connection.on('close', () => open.end('gone'));
}

/** A WebSocket connection as a stream of text messages. */
class SocketStream implements Stream {
  readonly protocol = 'websocket';
  readonly #connection: WebSocket;
  #writtenBytes = 0;
  #awaitsPong = false;

  constructor(connection: WebSocket) {
    this.#connection = connection;
    connection.on('pong', () => {
      this.#awaitsPong = false;
    });
  }

  waitingBytes(): number {
    return this.#connection.bufferedAmount;
  }

  sentBytes(): number {
    return this.#writtenBytes - this.#connection.bufferedAmount;
  }

  probe(): boolean {
    if (this.#awaitsPong) return false;
    this.#awaitsPong = true;
    this.#connection.ping();
    return true;
  }

  write(message: Buffer, done?: () => void): void {
    this.#writtenBytes += message.length;
    this.#connection.send(message, { binary: false }, done === undefined ? undefined : () => done());
  }

  end(why: StreamEnd): void {
    const connection = this.#connection;
    if (why === 'gone') connection.terminate();
    if (why === 'gone' || why === 'refused') return;
    connection.close(...closeCodes[why]);
    // Data that the client does not read is queued before the close frame.
    if (connection.bufferedAmount > 0) setTimeout(() => connection.terminate(), closeMs).unref();
  }
}
