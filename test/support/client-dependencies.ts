import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';

import type { ClientDependencies } from '../../src/kit/connection.ts';
import { listenFor } from './listen.ts';

/** Dependencies of a client without real time: a wait ends when the test ends it, or at once if it is short. */
export class TestClientDependencies implements ClientDependencies {
  /** All waits so far, including timeouts, in seconds, oldest first. */
  readonly waits: number[] = [];
  readonly atOnce: number;
  readonly #begun = new Set<{ ms: number; end: () => void }>();
  #keys = 0;

  /** @param atOnce the longest wait that ends at once, in seconds */
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

  /** Ends all current waits. */
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

/** Dependencies of a client whose time the test moves on. */
export class ClientClock implements ClientDependencies {
  readonly #waits = new Set<{ at: number; end: () => void }>();
  #now = 0;

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const wait = { at: this.#now + ms, end: resolve };
      const stop = () => {
        this.#waits.delete(wait);
        reject(signal?.reason);
      };
      if (signal?.aborted) return stop();
      this.#waits.add(wait);
      signal?.addEventListener('abort', stop, { once: true });
    });
  }

  /** Ends the waits of the next seconds one after the other, each when all that follows from those before has happened. */
  async advance(seconds: number): Promise<void> {
    const until = this.#now + seconds * 1000;
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = [...this.#waits].filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];
      if (next === undefined) break;
      this.#now = next.at;
      this.#waits.delete(next);
      next.end();
    }
    this.#now = until;
  }

  random(): number {
    return 1;
  }

  newIdempotencyKey(): string {
    return 'key';
  }
}

/** A received request. */
export interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Starts a server that records requests and answers them with `answer`. */
export async function startPeer(
  t: TestContext,
  answer: (reply: ServerResponse, request: Received, turn: number) => void,
): Promise<{ address: string; received: Received[]; close: () => Promise<void> }> {
  const received: Received[] = [];
  const server = createServer(async (request, reply) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { method, url, headers } = request;
    received.push({ method, url, headers, body });
    answer(reply, received.at(-1)!, received.length);
  });
  const { url: address, close } = await listenFor(t, server);
  return { address, received, close };
}
