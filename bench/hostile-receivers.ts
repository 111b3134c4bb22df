import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

import { listen } from '../test/support/listen.ts';
import { serveTasks } from './programs.ts';

/** What a hostile tenant's webhooks lead to: a name server that never answers, and receivers that never stop answering. */

const interim = Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(1_000));
const beginning = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=');
const extension = Buffer.alloc(60_000, 'a');

const tasks = {
  /** Starts a name server that answers 127.0.0.1 for names below `good` and nothing for others; returns its address. */
  async startNameServer(_: null): Promise<string> {
    const socket = createSocket('udp4');
    socket.on('message', (query, { address, port }) => {
      if (!query.includes(Buffer.from('\x04good\x00', 'latin1'))) return;
      // The question ends with a zero byte, its type and its class.
      const end = query.indexOf(0, 12) + 5;
      const isA = query.readUInt16BE(end - 4) === 1;
      const answer = isA ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1]) : Buffer.alloc(0);
      const head = Buffer.from([query[0]!, query[1]!, 0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0]);
      socket.send(Buffer.concat([head, query.subarray(12, end), answer]), port, address);
    });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return `127.0.0.1:${socket.address().port}`;
  },
  /** Starts a receiver that sends endless interim responses, or an endless chunk extension; returns its URL. */
  async startFlood(kind: 'interim' | 'extension'): Promise<string> {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        const more = () => {
          while (!socket.destroyed && socket.write(kind === 'interim' ? interim : extension));
        };
        if (kind === 'extension') socket.write(beginning);
        socket.on('drain', more);
        more();
      });
    });
    return `http://127.0.0.1:${await listen(server)}/`;
  },
};

/** The tasks of the hostile receivers. */
export type HostileReceiverTasks = typeof tasks;

serveTasks(tasks);
