import { connect, type Socket } from 'node:net';

import { hostileSchemas, product } from '../test/support/hostile-schemas.ts';

/** A request of the hostile tenant, and what it does with the answer. */
interface HostileRequest {
  readonly name: string;
  /** Sends it once; resolves when it is answered, refused or abandoned. */
  readonly send: (target: Target) => Promise<void>;
}

interface Target {
  /** The service's address. */
  readonly url: string;
  /** A key of the hostile tenant. */
  readonly key: string;
}

/** Packets that make searches and pages as expensive as possible: many words, words beyond ASCII, and a megabyte each. */
export const hostileSummaries: readonly string[] = [
  ...Array<string>(5).fill('a '.repeat(31_500)),
  ...Array<string>(20).fill('x \u00e9 '.repeat(64_000)),
  ...Array<string>(20).fill(`large ${'y'.repeat(900_000)}`),
];

const path = (text: string) => `/api/v1${text}`;

async function get({ url, key }: Target, text: string, signal?: AbortSignal): Promise<void> {
  const answer = await fetch(url + path(text), { headers: { 'x-api-key': key }, ...(signal === undefined ? {} : { signal }) });
  await answer.arrayBuffer();
}

/** Sends the request, reads nothing of the answer, and disconnects after the given milliseconds. */
function standStill({ url, key }: Target, text: string, milliseconds: number): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.on('close', () => resolve());
    socket.pause();
    socket.write(`GET ${path(text)} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\n\r\n`);
    setTimeout(() => socket.destroy(), milliseconds);
  });
}

/** A batch with as many escaped property names as fit into it. */
const escapedNames = `{"packets":[${Array.from({ length: 100 }, (_, item) => `{${Array.from({ length: 2350 }, (_, index) => `"\\u0061${item}_${index}":1`).join(',')}}`).join(',')}]}`;

/** A packet with nearly as many distinct property names as a body may have, none of them seen before. */
const differentNames = (round: number) =>
  `{"metadata":{"source_agent":{"id":"a","name":"a","framework":"f"},"target_agent":{"id":"b","name":"b"}},"context":{"summary":"s","custom":{${Array.from({ length: 4900 }, (_, index) => `"a${round}_${index}":1`).join(',')}}}}`;

async function post({ url, key }: Target, text: string, body: string): Promise<void> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  await (await fetch(url + path(text), { method: 'POST', headers, body })).arrayBuffer();
}

/** Publishes a contract of the agent for whom the packets of `contracted` are. */
async function publish({ url, key }: Target, schema: unknown): Promise<void> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  const body = JSON.stringify({ schema });
  await (await fetch(url + path('/agents/contracted/contract'), { method: 'PUT', headers, body })).arrayBuffer();
}

/** A batch of packets for an agent with a contract. */
const contracted = JSON.stringify({
  packets: Array.from({ length: 20 }, () => ({
    metadata: { source_agent: { id: 'a', name: 'a', framework: 'f' }, target_agent: { id: 'contracted', name: 'c' } },
    context: { summary: 's' },
  })),
});

let rounds = 0;

/** The most expensive known requests, each repeated. */
const hostileRequests: readonly HostileRequest[] = [
  {
    name: 'repeated words, hanging up',
    send: (target) =>
      get(target, `/packets/search?q=${encodeURIComponent('a '.repeat(32))}`, AbortSignal.timeout(60)).catch(() => undefined),
  },
  { name: 'a pattern, 200 times', send: (target) => get(target, `/packets/search?q=${encodeURIComponent('(a+)+$ .* '.repeat(200))}`) },
  { name: 'snippets beyond ASCII', send: (target) => get(target, '/packets/search?limit=200&q=x') },
  { name: 'a beginning', send: (target) => get(target, '/packets/search?q=la*&limit=10') },
  { name: 'a filter that nothing meets', send: (target) => get(target, '/packets?tags=x&source_agent=a') },
  { name: 'large pages nobody takes', send: (target) => standStill(target, '/packets?view=full&limit=15', 2_000) },
  { name: 'large pages by cursor and offset', send: (target) => get(target, '/packets?limit=20&offset=0') },
  { name: 'a phrase that no packet has', send: (target) => get(target, `/packets/search?q=${encodeURIComponent('"x x"')}`) },
  { name: 'escaped names', send: (target) => post(target, '/packets/batch', escapedNames) },
  { name: 'a contract that is slow to compile', send: (target) => publish(target, hostileSchemas['490 branches for each item']![0]) },
  {
    name: 'a contract that is slow to check',
    async send(target) {
      await publish(target, product('allOf', { type: 'object' }));
      await post(target, '/packets/batch', contracted);
    },
  },
  {
    name: 'different names',
    send(target) {
      rounds += 1;
      return post(target, '/packets', differentNames(rounds));
    },
  },
];

/** An attack that runs until it is stopped. */
export interface Attack {
  stop: () => Promise<unknown>;
}

const contents = (bytes: number) =>
  Array.from({ length: Math.floor(bytes / 1000) }, (_, index) => ({ role: 'user', content: `word${index} `.repeat(125).slice(0, 960) }));

const largePacket = (bytes: number) => ({
  metadata: { source_agent: { id: 'a', name: 'a', framework: 'f' }, target_agent: { id: 'b', name: 'b' } },
  context: { summary: 's', conversation_state: contents(bytes) },
});

/** Large writes, by what they are: the path and the body. */
export const largeWrites: Readonly<Record<string, readonly [path: string, body: string]>> = {
  'batches of 9 MB': ['/packets/batch', JSON.stringify({ packets: Array.from({ length: 100 }, () => largePacket(90_000)) })],
  'creates of 900 KB': ['/packets', JSON.stringify(largePacket(900_000))],
};

/** Sends a large write again and again, six at once. */
export function writeLarge(target: Target, [text, body]: readonly [string, string]): Attack {
  let isStopped = false;
  const sending = Array.from({ length: 6 }, async () => {
    while (!isStopped) await post(target, text, body);
  });
  return {
    stop() {
      isStopped = true;
      return Promise.allSettled(sending);
    },
  };
}

const reconnectMs = 100;

/** Keeps connections open, and reconnects whenever one is closed. `begin`: called with each when it is connected. */
function keepConnected({ url }: Pick<Target, 'url'>, count: number, begin: (socket: Socket) => void): Attack {
  const { hostname, port } = new URL(url);
  const open = new Set<Socket>();
  let isStopped = false;
  const start = () => {
    if (isStopped) return;
    const socket = connect(Number(port), hostname);
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('connect', () => begin(socket));
    socket.on('close', () => {
      open.delete(socket);
      setTimeout(start, reconnectMs);
    });
  };
  for (let connection = 0; connection < count; connection += 1) start();
  return {
    async stop() {
      isStopped = true;
      for (const socket of open) socket.destroy();
    },
  };
}

const pipelinedRequest = `GET ${path('/packets')} HTTP/1.1\r\nHost: x\r\n\r\n`;
const pipelinedBytes = 0.9 * 1024 * 1024;
const pieceMs = 100;

/** Sends pipelined requests without a key on ten connections, 0.9 MiB a second each. */
export function pipeline(target: Pick<Target, 'url'>): Attack {
  const piece = pipelinedRequest.repeat(Math.floor((pipelinedBytes * pieceMs) / 1000 / pipelinedRequest.length));
  return keepConnected(target, 10, (socket) => {
    socket.resume();
    const timer = setInterval(() => {
      if (socket.writableLength <= piece.length * 20) socket.write(piece);
    }, pieceMs);
    socket.on('close', () => clearInterval(timer));
  });
}

/** Opens 256 streams that resume after the event with this id, and reads nothing of them. */
export function replay(target: Target, lastEventId: string): Attack {
  return keepConnected(target, 256, (socket) => {
    socket.pause();
    socket.write(`GET /events HTTP/1.1\r\nHost: x\r\nX-API-Key: ${target.key}\r\nLast-Event-ID: ${lastEventId}\r\n\r\n`);
  });
}

/** An empty pong of a client, with a mask of zeros. */
const pong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);

/** Sends pongs that nobody asked for on ten WebSockets, as fast as the service takes them. */
export function pongs(target: Target): Attack {
  const piece = Buffer.concat(Array<Buffer>(10_000).fill(pong));
  return keepConnected(target, 10, (socket) => {
    const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';
    socket.write(`GET /ws HTTP/1.1\r\nHost: x\r\nX-API-Key: ${target.key}\r\n${upgrade}\r\n\r\n`);
    socket.once('data', (answer: Buffer) => {
      if (!answer.toString('latin1').startsWith('HTTP/1.1 101')) return socket.destroy();
      socket.resume();
      const more = () => {
        while (!socket.destroyed && socket.write(piece));
      };
      socket.on('drain', more);
      more();
    });
  });
}

/** Sends the hostile requests in turn, at a steady rate, until it is stopped. */
export function attack(target: Target, perSecond: number): { stop(): Promise<number> } {
  const open = new Set<Promise<void>>();
  let sent = 0;
  const timer = setInterval(() => {
    const { send } = hostileRequests[sent % hostileRequests.length]!;
    sent += 1;
    const sending: Promise<void> = send(target)
      .catch(() => undefined)
      .finally(() => open.delete(sending));
    open.add(sending);
  }, 1000 / perSecond);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
      return sent;
    },
  };
}
