import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';

import { listenFor } from './listen.ts';

/** A request that a fake provider got. */
interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into bodies of every shape.
  readonly body: any;
}

/** How a fake provider treats a request. */
export type Behaviour = (response: ServerResponse, request: IncomingMessage) => void;

/** A provider on loopback whose behaviour the test controls. */
export interface FakeProvider {
  /** Its `api_base`. */
  readonly base: string;
  readonly port: number;
  readonly seen: SeenRequest[];
  /** The number of connections that were opened. */
  connections(): number;
  /** Sets its behaviours: they are used in order, and the last one is repeated. */
  does(...behaviours: Behaviour[]): void;
}

/** Starts a fake provider that ends with the test. By default it answers every request. */
export async function startProvider(t: Pick<TestContext, 'after'>, ...first: Behaviour[]): Promise<FakeProvider> {
  let behaviours = first.length === 0 ? [answering()] : first;
  const seen: SeenRequest[] = [];
  const server = createServer(async (request, response) => {
    response.on('error', () => undefined);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    seen.push({
      method: request.method!,
      path: request.url!,
      headers: request.headers,
      body: JSON.parse(Buffer.concat(chunks).toString() || 'null'),
    });
    const behaviour = behaviours.length > 1 ? behaviours.shift()! : behaviours[0]!;
    behaviour(response, request);
  });
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  const { port, url } = await listenFor(t, server);
  return {
    base: `${url}/v1`,
    port,
    seen,
    connections: () => connections,
    does(...next) {
      behaviours = next;
    },
  };
}

/** A status with a JSON body. */
export const status =
  (code: number, body: unknown = {}, headers: Record<string, string> = {}): Behaviour =>
  (response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

/** An error in OpenAI's format. */
export const failing = (code: number, name: string, headers: Record<string, string> = {}) =>
  status(code, { error: { message: 'It failed.', type: name, code: name } }, headers);

/** An answer in OpenAI's format. */
export const answering = (text = 'ready', finish_reason = 'stop') =>
  status(200, {
    choices: [{ message: { role: 'assistant', content: text }, finish_reason }],
    usage: { prompt_tokens: 12, completion_tokens: 3 },
  });

/** An answer in Anthropic's format. */
export const answeringAnthropic = (text = 'ready', stop_reason = 'end_turn') =>
  status(200, { content: [{ type: 'text', text }], stop_reason, usage: { input_tokens: 12, output_tokens: 3 } });

/** A streaming answer. Each item is the data of an event, or its name and data. With `cut` the connection closes after them. */
export const streaming =
  (events: readonly (string | readonly [string, string])[], { cut = false } = {}): Behaviour =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events) {
      response.write(typeof event === 'string' ? `data: ${event}\n\n` : `event: ${event[0]}\ndata: ${event[1]}\n\n`);
    }
    // In the next turn, since Node keeps the writes of this one together.
    if (cut) setImmediate(() => response.socket!.end());
    else response.end();
  };

/** Streams events, and then neither goes on nor ends. */
export const stalling =
  (events: readonly string[]): Behaviour =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events) response.write(`data: ${event}\n\n`);
  };

/** Accepts the request and never answers. */
export const hanging: Behaviour = () => undefined;

/** Closes the connection instead of answering. */
export const resetting: Behaviour = (response) => void response.socket!.resetAndDestroy();

/** Sends the headers and half of the announced body. */
export const cutting: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
  response.write('{"choices":[', () => response.socket!.destroy());
};

/** Sends the headers and then a byte from time to time, endlessly. */
export const dripping: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const timer = setInterval(() => response.write(' '), 5);
  response.on('close', () => clearInterval(timer));
};

/** Sends an endless body as fast as it is read. */
export const flooding: Behaviour = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const block = Buffer.alloc(256 * 1024, ' ');
  let isOpen = true;
  response.on('close', () => {
    isOpen = false;
  });
  const more = () => {
    while (isOpen && response.write(block));
  };
  response.on('drain', more);
  more();
};
