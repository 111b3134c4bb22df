import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';

import { StreamResponse } from './response.ts';
import type { OpenStream, Stream, StreamEnd, StreamFeed, Streams } from './streams.ts';

/** A server-sent event. `data` must be a single line, such as JSON text. */
export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
  readonly id?: string;
  /** How long the client should wait before it reconnects, in milliseconds. */
  readonly retry?: number;
}

/** An event in wire format (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export function eventText({ event, data, id, retry }: ServerSentEvent): Buffer {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  const retryLine = retry === undefined ? '' : `retry: ${retry}\n`;
  return Buffer.from(`${retryLine}${idLine}event: ${event}\ndata: ${data}\n\n`);
}

/** A heartbeat for clients of protocols without one: a comment, which they ignore. */
export const commentHeartbeat = Buffer.from(': keep-alive\n\n');

/** TCP keep-alive probes start after five seconds without traffic and repeat every second, five times. */
const keepAlive = { enable: true, initialDelay: 5_000, interval: 1_000, count: 5 };

const headers = {
  'content-type': 'text/event-stream',
  // Proxies that compress hold events back until they have enough of them, unless told not to transform.
  'cache-control': 'no-store, no-transform',
  // Stops nginx from buffering the response.
  'x-accel-buffering': 'no',
};

interface EventStreamOptions {
  streams: Streams;
  /** Starts feeding the stream; the response head has been sent. */
  feed: (open: OpenStream) => StreamFeed;
  /** Called instead if the client is gone or sent HEAD. */
  abandon: () => void;
}

/** An answer that is a stream of server-sent events. */
export function eventStream({ streams, feed, abandon }: EventStreamOptions): StreamResponse {
  return new StreamResponse({
    abandon,
    contentType: headers['content-type'],
    open(request, reply) {
      reply.hijack();
      streams.open(takeOver(reply), request, (open) => {
        // With half-open connections allowed, a closing client only shows as the end of its sending half.
        reply.raw.socket?.once('end', () => open.end('gone'));
        reply.raw.once('close', () => open.end('gone'));
        return feed(open);
      });
    },
  });
}

/** Sends the head, with the headers that hooks have set. The body ends with the connection, so each message is one write. */
function takeOver(reply: FastifyReply): Stream {
  const response: ServerResponse = reply.raw;
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) response.setHeader(name, value);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.removeHeader('transfer-encoding');
  response.setHeader('connection', 'close');
  response.writeHead(200);
  response.flushHeaders();
  const { socket } = response;
  // A request that is injected has no connection.
  if (socket instanceof Socket) {
    // Clears the timeout that an earlier large response on this connection may have set.
    socket.setTimeout(0);
    // Clients of server-sent events can't answer a ping, so only TCP notices that an idle client has vanished.
    socket.setKeepAlive(keepAlive);
  }
  return {
    protocol: 'sse',
    waitingBytes: () => response.writableLength,
    sentBytes: () => (response.socket?.bytesWritten ?? 0) - response.writableLength,
    write(message, done) {
      response.write(message, done === undefined ? undefined : () => done());
    },
    end(why: StreamEnd) {
      // Unread data would keep the connection open.
      if (why === 'slow' || why === 'gone') response.destroy();
      else response.end();
    },
  };
}
