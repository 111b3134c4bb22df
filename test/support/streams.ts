import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { TestContext } from 'node:test';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { WebSocket } from 'ws';

/** An asynchronous queue: taking an item waits until there is one. */
export class AsyncQueue<T> {
  readonly all: T[] = [];
  #taken = 0;
  #waiting: (() => void) | undefined;

  put(item: T): void {
    this.all.push(item);
    this.#waiting?.();
  }

  /** The next item. */
  async next(): Promise<T> {
    while (this.all.length === this.#taken) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    this.#taken += 1;
    return this.all[this.#taken - 1]!;
  }

  /** The next `count` items. */
  async take(count: number): Promise<T[]> {
    const items: T[] = [];
    while (items.length < count) items.push(await this.next());
    return items;
  }
}

/** An event of a stream. */
export interface TestEvent {
  readonly event: string;
  readonly id: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into data of every shape.
  readonly data: any;
}

/** An open stream of server-sent events. */
export interface TestEvents {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** The events from `connected` on, without heartbeats. */
  readonly events: AsyncQueue<TestEvent>;
  /** The heartbeats. The service sends due ones by itself every second, so a test with a clock that turns may get some. */
  readonly pings: AsyncQueue<TestEvent>;
  /** The raw text received. */
  readonly text: () => string;
  /** Resolves when the other side has closed it. */
  readonly ended: Promise<void>;
  /** Pauses and resumes reading. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Opens `/events`; resolves when the headers have arrived. The body of a refusal is the data of its only event. */
export async function openEvents(address: string, query = '', headers: Record<string, string> = {}): Promise<TestEvents> {
  const request = get(`${address}/events${query}`, { agent: false, headers });
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  const events = new AsyncQueue<TestEvent>();
  const pings = new AsyncQueue<TestEvent>();
  const chunks: Buffer[] = [];
  const parser = createParser({
    onEvent: ({ event = 'message', id, data }: EventSourceMessage) =>
      (event === 'ping' ? pings : events).put({ event, id, data: JSON.parse(data) }),
  });
  const decoder = new TextDecoder();
  const ended = new Promise<void>((resolve) => {
    answer.once('close', () => resolve());
  });
  answer.on('error', () => undefined);
  answer.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    if (answer.statusCode === 200) parser.feed(decoder.decode(chunk, { stream: true }));
  });
  if (answer.statusCode !== 200) {
    await ended;
    events.put({ event: 'refused', id: undefined, data: JSON.parse(Buffer.concat(chunks).toString() || 'null') });
  }
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    events,
    pings,
    text: () => Buffer.concat(chunks).toString(),
    ended,
    pause: () => void answer.pause(),
    resume: () => void answer.resume(),
    close: () => request.destroy(),
  };
}

/** Opens `/events` until the test ends, and reads `connected`. */
export async function listenTo(t: TestContext, ...request: Parameters<typeof openEvents>): Promise<TestEvents> {
  const stream = await openEvents(...request);
  t.after(() => stream.close());
  assert.equal(stream.status, 200, stream.text());
  assert.equal((await stream.events.next()).event, 'connected');
  return stream;
}

/** An open WebSocket. */
export interface TestSocket {
  readonly socket: WebSocket;
  /** The messages without heartbeats. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into messages of every shape.
  readonly messages: AsyncQueue<any>;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into messages of every shape.
  readonly pings: AsyncQueue<any>;
  /** The code and reason with which it was closed. */
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly send: (message: unknown) => void;
}

/** Opens `/ws`; rejects with an Error whose message is `<status> <body>` when the upgrade is refused. */
export async function openSocket(address: string, query = '', headers: Record<string, string> = {}): Promise<TestSocket> {
  const socket = new WebSocket(`${address.replace('http', 'ws')}/ws${query}`, { headers });
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into messages of every shape.
  const messages = new AsyncQueue<any>();
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into messages of every shape.
  const pings = new AsyncQueue<any>();
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    (message.type === 'ping' ? pings : messages).put(message);
  });
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }));
  });
  await new Promise<void>((resolve, reject) => {
    socket.on('open', resolve);
    socket.on('error', reject);
    socket.on('unexpected-response', async (_request, answer) => {
      const body = Buffer.concat(await answer.toArray()).toString();
      reject(Object.assign(new Error(`${answer.statusCode} ${body}`), { status: answer.statusCode, body, headers: answer.headers }));
    });
  });
  return {
    socket,
    messages,
    pings,
    closed,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
  };
}
