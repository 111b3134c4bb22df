import type { FastifyRequest } from 'fastify';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';

import { ServiceError } from '../errors.ts';
import { type OpenStream, type Stream, StreamAnswer, type StreamEnd, type StreamFeed, type Streams } from './streams.ts';
import { upgradeOf } from './upgrade.ts';

/** The longest message a client may send, in bytes. */
const maxMessageBytes = 64 * 1024;

/** How long a client has to answer our close, in milliseconds. */
const closeMs = 2_000;

/** Close codes and what they say: RFC 6455, 7.4.1, and of the private ones our own. */
const closeCodes: Readonly<Record<Exclude<StreamEnd, 'gone' | 'refused'>, readonly [number, string]>> = {
  done: [1000, 'What this stream tells of has ended.'],
  shutdown: [1001, 'The service stops; connect again.'],
  revoked: [4001, 'The API key is not valid any more.'],
  slow: [4200, 'Too much waits; connect again and resume.'],
  no_pong: [4201, 'No pong came.'],
};

/** A feed that hears its client as well. */
export interface SocketFeed extends StreamFeed {
  /** Told of every text message and every protocol ping, which has no text. */
  onMessage(text: string | undefined): void;
}

export interface SocketParts {
  streams: Streams;
  /** Begins to feed the stream. `close` ends it with a code and a sentence. */
  feed(open: OpenStream, request: FastifyRequest, close: (code: number, reason: string) => void): SocketFeed;
  /** Called instead, where there is nobody to feed. */
  abandon(): void;
}

// Of the options, `closeTimeout` has no type yet.
const options = {
  noServer: true,
  clientTracking: false,
  // A small message could say to grow by a thousand.
  perMessageDeflate: false,
  maxPayload: maxMessageBytes,
  closeTimeout: closeMs,
};
const server = new WebSocketServer(options);

/** @throws ServiceError 426 on a request that does not ask for WebSocket in a version that is spoken */
function requireUpgrade({ raw }: FastifyRequest): void {
  if (upgradeOf(raw) !== undefined && raw.headers['sec-websocket-version'] === '13') return;
  throw new ServiceError('UPGRADE_REQUIRED', 'This path speaks WebSocket, version 13.', {
    headers: { Upgrade: 'websocket', Connection: 'Upgrade, close', 'Sec-WebSocket-Version': '13' },
  });
}

/** An answer that is a WebSocket connection; 426 where the request does not ask for one. */
export function webSocket({ streams, feed, abandon }: SocketParts): StreamAnswer {
  return new StreamAnswer(
    (request, reply) => {
      try {
        requireUpgrade(request);
      } catch (error) {
        abandon();
        throw error;
      }
      reply.hijack();
      const { socket, head, takeSocket } = upgradeOf(request.raw)!;
      takeSocket();
      const failed = () => abandon();
      socket.once('close', failed);
      server.handleUpgrade(request.raw, socket, head, (connection) => {
        socket.removeListener('close', failed);
        follow(connection, request, streams, feed);
      });
    },
    { abandon },
  );
}

function follow(connection: WebSocket, request: FastifyRequest, streams: Streams, feed: SocketParts['feed']): void {
  let fed: SocketFeed | undefined;
  const open = streams.open(streamOf(connection), request, (opened) => {
    fed = feed(opened, request, (code, reason) => {
      connection.close(code, reason);
      opened.end('refused');
    });
    return fed;
  });
  connection.on('ping', () => {
    if (open.isOpen) fed!.onMessage(undefined);
  });
  connection.on('message', (data: RawData, isBinary: boolean) => {
    if (!open.isOpen) return;
    if (!isBinary) return fed!.onMessage(String(data));
    connection.close(1003, 'Only text is understood.');
    open.end('refused');
  });
  // The library has closed the connection with the code that fits.
  connection.on('error', () => open.end('refused'));
  connection.on('close', () => open.end('gone'));
}

function streamOf(connection: WebSocket): Stream {
  let sentBytes = 0;
  let awaitsPong = false;
  connection.on('pong', () => {
    awaitsPong = false;
  });
  return {
    protocol: 'websocket',
    waitingBytes: () => connection.bufferedAmount,
    sentBytes: () => sentBytes - connection.bufferedAmount,
    probe() {
      if (awaitsPong) return false;
      awaitsPong = true;
      connection.ping();
      return true;
    },
    write(message, done) {
      sentBytes += message.length;
      connection.send(message, { binary: false }, done === undefined ? undefined : () => done());
    },
    end(why) {
      if (why === 'gone') connection.terminate();
      if (why === 'gone' || why === 'refused') return;
      connection.close(...closeCodes[why]);
      // What waits for a client that does not read would come before the close.
      if (connection.bufferedAmount > 0) setTimeout(() => connection.terminate(), closeMs).unref();
    },
  };
}
