import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { WebSocket } from 'ws';

import { serveTasks } from './programs.ts';
import { quantile } from './times.ts';

/** Many stream listeners: they count messages and measure their delay from the event's timestamp, in milliseconds. */

export type Kind = 'sse' | 'websocket';

interface Opening {
  url: string;
  kind: Kind;
  count: number;
  key: string;
}

const mark = Buffer.from('"timestamp":"');
let listeners: (Socket | WebSocket)[] = [];
let received = 0;
let delays: number[] = [];
let wanted = Number.POSITIVE_INFINITY;
let onWanted: () => void = () => undefined;

/** Counts the envelopes in a chunk: the last timestamp in an envelope is the event's. */
function count(chunk: Buffer, end: string): void {
  const now = Date.now();
  for (let found = chunk.indexOf(end); found !== -1; found = chunk.indexOf(end, found + 1)) {
    const start = chunk.lastIndexOf(mark, found);
    if (start === -1) continue;
    received += 1;
    const moment = Date.parse(chunk.toString('latin1', start + mark.length, start + mark.length + 24));
    if (!Number.isNaN(moment)) delays.push(now - moment);
  }
  if (received >= wanted) onWanted();
}

async function openSse({ url, key }: Opening): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(`GET /events HTTP/1.1\r\nHost: bench\r\nX-API-Key: ${key}\r\n\r\n`);
  const [head] = (await once(socket, 'data')) as [Buffer];
  if (!head.toString().startsWith('HTTP/1.1 200')) throw new Error(head.toString().slice(0, 200));
  socket.on('data', (chunk: Buffer) => count(chunk, '"}\n\n'));
  return socket;
}

async function openWebSocket({ url, key }: Opening): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?api_key=${key}`, { perMessageDeflate: false });
  await once(socket, 'open');
  socket.on('message', (data: Buffer) => count(data, '"}'));
  return socket;
}

const tasks = {
  /** Opens listeners in batches. */
  async open(opening: Opening): Promise<void> {
    const one = opening.kind === 'sse' ? openSse : openWebSocket;
    for (let opened = 0; opened < opening.count; opened += 50) {
      const more = Math.min(50, opening.count - opened);
      listeners.push(...(await Promise.all(Array.from({ length: more }, () => one(opening)))));
    }
  },
  /** Resets the counts. */
  begin(_: null): void {
    received = 0;
    delays = [];
    wanted = Number.POSITIVE_INFINITY;
  },
  /** Resolves when `count` messages have arrived; returns their delays in milliseconds. */
  async settle(count: number): Promise<{ p50: number; p99: number }> {
    wanted = count;
    if (received < wanted) {
      await new Promise<void>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`${wanted - received} of ${wanted} messages did not come.`)), 60_000);
        onWanted = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return { p50: quantile(delays, 0.5), p99: quantile(delays, 0.99) };
  },
  async closeAll(_: null): Promise<void> {
    for (const listener of listeners) {
      if (listener instanceof WebSocket) listener.terminate();
      else listener.destroy();
    }
    listeners = [];
  },
};

/** The tasks of the listeners. */
export type ListenerTasks = typeof tasks;

serveTasks(tasks);
