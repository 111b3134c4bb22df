import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

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
  const posts: ReceivedPost[] = [];
  const waiting = new Set<() => void>();
  let opened = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const post = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() };
      const reply = replies[Math.min(posts.length, replies.length - 1)] ?? 204;
      posts.push(post);
      if (typeof reply === 'number') response.writeHead(reply).end();
      else reply(response, post, request);
      for (const check of waiting) check();
    });
  });
  server.on('connection', () => {
    opened += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  t.after(close);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    posts,
    connections: () => opened,
    received: (count) =>
      new Promise((resolve) => {
        const check = () => {
          if (posts.length < count) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    close,
  };
}
