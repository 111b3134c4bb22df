import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** Makes a server listen on a free port of the loopback; returns the port. */
export async function listen(server: Server): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** A server that listens until the test ends. */
interface Listening {
  readonly port: number;
  /** `http://127.0.0.1:41573`. */
  readonly url: string;
  /** All of its connections, those that have ended too. */
  readonly sockets: readonly Socket[];
  /** Ends it, and its connections. */
  readonly close: () => Promise<void>;
}

/** Makes a server listen until the test ends, which also ends its connections. */
export async function listenFor(t: Pick<TestContext, 'after'>, server: Server): Promise<Listening> {
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => {
    sockets.push(socket);
    // A peer may reset it.
    socket.on('error', () => undefined);
  });
  const port = await listen(server);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  t.after(close);
  return { port, url: `http://127.0.0.1:${port}`, sockets, close };
}
