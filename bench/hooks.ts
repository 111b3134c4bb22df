import { createServer, type ServerResponse } from 'node:http';
import { Pool } from 'undici';

import { listen } from '../test/support/listen.ts';
import { serveTasks } from './programs.ts';
import { atEvenIntervals, type LoadResult, Times } from './times.ts';

/** Webhook receivers, and creates at a steady rate whose deliveries they wait for. */

interface Receiver {
  received: number;
  held: { response: ServerResponse; body: Buffer }[];
  /** Whether posts are answered or held. */
  isOpen: boolean;
}

const receivers: Receiver[] = [];
let onReceipt: (receiver: number, body: Buffer) => void = () => undefined;

/** The longest wait for the next post, in milliseconds. */
const silenceMs = 30_000;

async function start(isOpen: boolean, keepAlive = true): Promise<{ receiver: number; url: string }> {
  const receiver: Receiver = { received: 0, held: [], isOpen };
  const index = receivers.push(receiver) - 1;
  const server = createServer((request, response) => {
    if (!keepAlive) response.shouldKeepAlive = false;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      if (receiver.isOpen) take(index, response, body);
      else receiver.held.push({ response, body });
    });
  });
  server.keepAliveTimeout = 60_000;
  return { receiver: index, url: `http://127.0.0.1:${await listen(server)}/` };
}

function take(index: number, response: ServerResponse, body: Buffer): void {
  receivers[index]!.received += 1;
  response.writeHead(204).end();
  onReceipt(index, body);
}

/** Waits until a receiver has received `count` more posts; returns their rate. */
async function receive(index: number, count: number): Promise<LoadResult> {
  const times = new Times();
  let left = count;
  await new Promise<void>((resolve, reject) => {
    let silence = setTimeout(() => reject(new Error(`${left} posts did not come.`)), silenceMs);
    onReceipt = (receiver) => {
      if (receiver !== index) return;
      times.add(0);
      left -= 1;
      clearTimeout(silence);
      if (left === 0) resolve();
      else silence = setTimeout(() => reject(new Error(`${left} posts did not come.`)), silenceMs);
    };
  });
  return times.result(0);
}

interface Pace {
  url: string;
  headers: Record<string, string>;
  body: string;
  /** Creates per second, and the number of seconds. */
  rate: number;
  seconds: number;
  receiver: number;
}

/** The times from sending a create, and from its commit (the packet's timestamp, in milliseconds), to the post. */
async function pace({ url, headers, body, rate, seconds, receiver }: Pace): Promise<{ sent: number[]; committed: number[] }> {
  const pool = new Pool(url, { connections: 32 });
  const begunAt = new Map<string, number>();
  const [sent, committed]: [number[], number[]] = [[], []];
  const count = Math.round(rate * seconds);
  const arrived = Promise.withResolvers<void>();
  onReceipt = (index, post) => {
    if (index !== receiver) return;
    const { data, timestamp } = JSON.parse(post.toString()) as { data: { metadata: { tags: string[] } }; timestamp: string };
    const begun = begunAt.get(data.metadata.tags[0] ?? '');
    if (begun === undefined) return;
    sent.push(performance.now() - begun);
    committed.push(Date.now() - Date.parse(timestamp));
    if (sent.length === count) arrived.resolve();
  };
  const request = JSON.parse(body);
  const run = `run-${performance.now()}`;
  const requests: Promise<unknown>[] = [];
  await atEvenIntervals(count, rate, (index) => {
    const tag = `${run}-${index}`;
    begunAt.set(tag, performance.now());
    const tagged = JSON.stringify({ ...request, metadata: { ...request.metadata, tags: [tag] } });
    requests.push(
      pool.request({ method: 'POST', path: '/api/v1/packets', headers, body: tagged }).then(async (answer) => {
        await answer.body.dump();
        if (answer.statusCode !== 201) throw new Error(`POST /packets: ${answer.statusCode}`);
      }),
    );
  });
  await Promise.all(requests);
  await arrived.promise;
  await pool.close();
  return { sent, committed };
}

const tasks = {
  listen: (isOpen: boolean) => start(isOpen),
  /** Starts a receiver that closes each connection, under a name that `bench/hostile-receivers.ts` resolves. */
  async listenByName(_: null) {
    const { receiver, url } = await start(true, false);
    return { receiver, url: url.replace('127.0.0.1', 'receiver.good') };
  },
  receive: ({ receiver, count }: { receiver: number; count: number }) => receive(receiver, count),
  /** Answers held posts and all later ones, or holds posts from now on. */
  open({ receiver, isOpen }: { receiver: number; isOpen: boolean }): void {
    const { held } = receivers[receiver]!;
    receivers[receiver]!.isOpen = isOpen;
    if (isOpen) for (const { response, body } of held.splice(0)) take(receiver, response, body);
  },
  pace,
};

/** The tasks of the receivers. */
export type HookTasks = typeof tasks;

serveTasks(tasks);
