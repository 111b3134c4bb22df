import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';

import { Arrivals } from './arrivals.ts';
import { listenFor } from './listen.ts';

/** A request that a receiver got, with its body. */
interface ReceivedPost {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver of webhooks. */
export interface TestReceiver {
  readonly url: string;
  readonly posts: ReceivedPost[];
  /** The number of connections that were opened. */
  connections(): number;
  /** Resolves once `count` posts have arrived. */
  received(count: number): Promise<void>;
  close(): Promise<void>;
}

/** The reply of a receiver: a status, or a handler. */
export type Reply = number | ((response: ServerResponse, post: ReceivedPost, request: IncomingMessage) => void);

/** Starts a receiver that ends with the test. It sends the replies in order and repeats the last; 204 by default. */
export async function startReceiver(t: Pick<TestContext, 'after'>, ...replies: Reply[]): Promise<TestReceiver> {
  const arrivals = new Arrivals<ReceivedPost>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const post = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
      const reply = replies[Math.min(arrivals.all.length, replies.length - 1)] ?? 204;
      arrivals.add(post);
      if (typeof reply === 'number') response.writeHead(reply).end();
      else reply(response, post, request);
    });
  });
  const { url, sockets, close } = await listenFor(t, server);
  return {
    url: `${url}/hook`,
    posts: arrivals.all,
    connections: () => sockets.length,
    received: (count) => arrivals.reached(count),
    close,
  };
}
