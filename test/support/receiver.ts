import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';

import { Arrivals } from './arrivals.ts';
import { listen } from './listen.ts';

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
  let opened = 0;
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
  server.on('connection', () => {
    opened += 1;
  });
  const port = await listen(server);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  t.after(close);
  return {
    url: `http://127.0.0.1:${port}/hook`,
    posts: arrivals.all,
    connections: () => opened,
    received: (count) => arrivals.reached(count),
    close,
  };
}
