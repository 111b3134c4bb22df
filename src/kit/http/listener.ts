import type { Server } from 'node:http';
import { Server as Listener, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** How many turns of the event loop accept connections before the listener closes all the same. */
const maxTurns = 1_000;

/** How long connections without a request may take to send one after the listener has closed, and how often to look, in ms. */
const firstRequestMs = 500;
const lookEveryMs = 10;

/**
 * Returns how to stop listening without a reset of a connection that a client has just opened: it is accepted, and may still send its
 * first request. When the returned function resolves, only idle connections that have had their answers can be ended.
 */
export function closeGently(server: Server): () => Promise<void> {
  const sockets = new Set<Socket>();
  let accepted = false;
  server.on('connection', (socket: Socket) => {
    accepted = true;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const hasNew = () => [...sockets].some((socket) => socket.bytesRead === 0);

  return async () => {
    // The kernel resets what it has accepted for a listener that closes, and each turn of the event loop takes over one connection. The
    // rest of a turn that has begun takes none.
    await new Promise(setImmediate);
    for (let turns = 0; turns < maxTurns; turns += 1) {
      accepted = false;
      await new Promise(setImmediate);
      if (!accepted) break;
    }
    // The close of an HTTP server would also end connections without a request.
    Listener.prototype.close.call(server);
    for (let waited = 0; waited < firstRequestMs && hasNew(); waited += lookEveryMs) await sleep(lookEveryMs);
  };
}
