import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

import type { ClientWorld } from '../../src/kit/connection.ts';

/** A world in which no time passes by itself: what is waited for is over once the test says so. */
export class TestWorld implements ClientWorld {
  /** The waits that were begun, in seconds, oldest first; those of time limits among them. */
  readonly waits: number[] = [];
  readonly atOnce: number;
  readonly #begun = new Set<{ ms: number; end(): void }>();
  #keys = 0;

  /** @param atOnce the longest wait that is over at once, in seconds */
  constructor(atOnce = 29) {
    this.atOnce = atOnce;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.waits.push(ms / 1000);
    return new Promise((resolve, reject) => {
      const wait = { ms, end: resolve };
      this.#begun.add(wait);
      signal?.addEventListener('abort', () => {
        this.#begun.delete(wait);
        reject(signal.reason);
      });
      if (ms <= this.atOnce * 1000) resolve();
    });
  }

  /** Ends every wait that is going on. */
  endWaits(): void {
    for (const { end } of this.#begun) end();
  }

  random(): number {
    return 1;
  }

  newIdempotencyKey(): string {
    this.#keys += 1;
    return `key-${this.#keys}`;
  }
}

/** What a request brought. */
export interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** A server that notes what comes and answers as it is told, and its address. */
export async function startPeer(
  t: TestContext,
  answer: (reply: ServerResponse, request: Received, turn: number) => void,
): Promise<{ address: string; received: Received[]; close(): Promise<void> }> {
  const received: Received[] = [];
  const server = createServer(async (request, reply) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method, url, headers } = request;
    received.push({ method, url, headers, body });
    answer(reply, received.at(-1)!, received.length);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  t.after(close);
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received, close };
}
