import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';

import { serveTasks } from './programs.ts';
import { atEvenIntervals } from './times.ts';

/** The minimal broadcast: `ws` serializes each message once and sends it to every client. */

let server: WebSocketServer;

const tasks = {
  async start(_: null): Promise<string> {
    server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
  /** Sends a number of messages at a steady rate to every client. */
  broadcast({ data, count, rate }: { data: string; count: number; rate: number }): Promise<void> {
    return atEvenIntervals(count, rate, () => {
      const message = Buffer.from(`${data.slice(0, -1)},"timestamp":"${new Date().toISOString()}"}`);
      for (const client of server.clients) client.send(message, { binary: false });
    });
  },
};

/** The tasks of the bare broadcast. */
export type BareBroadcastTasks = typeof tasks;

serveTasks(tasks);
