import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';

import { type OpenStream, type Stream, StreamAnswer, type StreamEnd, type StreamFeed, type Streams } from './streams.ts';

/** A server-sent event; `data` is one line, as JSON text is. */
export interface ServerSentEvent {
  readonly event: string;
  readonly data: string;
  readonly id?: string;
  /** How long the client should wait before it connects again, in milliseconds. */
  readonly retry?: number;
}

/** An event as it travels (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export function eventText({ event, data, id, retry }: ServerSentEvent): Buffer {
  const idLine = id === undefined ? '' : `id: ${id}\n`;
  const retryLine = retry === undefined ? '' : `retry: ${retry}\n`;
  return Buffer.from(`${retryLine}${idLine}event: ${event}\ndata: ${data}\n\n`);
}

/** TCP asks a client for a sign of life after five seconds without traffic, then every second, five times. */
const keepAlive = { enable: true, initialDelay: 5_000, interval: 1_000, count: 5 };

const headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  // nginx gathers answers unless it is told not to.
  'x-accel-buffering': 'no',
};

export interface EventsParts {
  streams: Streams;
  /** Begins to feed the stream; its head has been sent. */
  feed(open: OpenStream): StreamFeed;
  /** Called instead, where there is nobody to feed. */
  abandon(): void;
}

/** An answer that is a stream of server-sent events. */
export function eventStream({ streams, feed, abandon }: EventsParts): StreamAnswer {
  return new StreamAnswer(
    (request, reply) => {
      reply.hijack();
      streams.open(takeOver(reply), request, (open) => {
        // With half-open connections allowed, a client that closes is known by the end of its side alone.
        reply.raw.socket?.once('end', () => open.end('gone'));
        reply.raw.once('close', () => open.end('gone'));
        return feed(open);
      });
    },
    { abandon, contentType: headers['content-type'] },
  );
}

/** Sends the head, and what the hooks have set of it. The body ends with the connection, so that a message is one write. */
function takeOver(reply: FastifyReply): Stream {
  const response: ServerResponse = reply.raw;
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) response.setHeader(name, value);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.removeHeader('transfer-encoding');
  response.setHeader('connection', 'close');
  response.writeHead(200);
  response.flushHeaders();
  // A large answer sent before on this connection may have left its time limit.
  response.socket?.setTimeout(0);
  // A client has nothing to answer a ping with: that it vanished while nothing was sent is noticed by TCP alone.
  response.socket?.setKeepAlive(keepAlive);
  return {
    protocol: 'sse',
    waitingBytes: () => response.writableLength,
    sentBytes: () => (response.socket?.bytesWritten ?? 0) - response.writableLength,
    write(message, done) {
      response.write(message, done === undefined ? undefined : () => done());
    },
    end(why: StreamEnd) {
      // What waits for a client that does not read would keep the connection.
      if (why === 'slow' || why === 'gone') response.destroy();
      else response.end();
    },
  };
}
