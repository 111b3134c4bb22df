import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';

/** How long, and up to how many bytes, the rest of a request is discarded after the last response of a connection. */
export interface LingerLimits {
  /** The longest pause without a byte, in milliseconds. */
  idleMs: number;
  /** The longest total time, in milliseconds. */
  totalMs: number;
  /** The most bytes. */
  maxBytes: number;
}

/** The times are nginx's defaults (`lingering_timeout`, `lingering_time`). */
const defaultLimits: LingerLimits = { idleMs: 5_000, totalMs: 30_000, maxBytes: 64 * 1024 * 1024 };

const request = Symbol('request');

interface ConnectionSocket extends Socket {
  [request]?: IncomingMessage;
}

/** Remembers the current request of a connection, for when the connection closes. */
export function rememberRequest(raw: IncomingMessage): void {
  (raw.socket as ConnectionSocket)[request] = raw;
}

/**
 * Makes connections that close after a response wait for the rest of the request (a lingering close). Node would close
 * at once, and closing with unread bytes resets the connection, so that a client that is still sending loses the response.
 */
export function lingerBehindAnswers(server: Server, limits: LingerLimits = defaultLimits): void {
  server.on('connection', (socket: ConnectionSocket) => {
    // Node calls this method only after it has written the last response of a connection.
    socket.destroySoon = () => {
      const body = socket[request];
      if (body === undefined || body.complete || body.destroyed) Socket.prototype.destroySoon.call(socket);
      else linger(socket, body, limits);
    };
  });
}

/** Ends the sending half and discards what is received, until the client ends its half or a limit is reached. */
function linger(socket: Socket, body: IncomingMessage, { idleMs, totalMs, maxBytes }: LingerLimits): void {
  socket.end();
  const from = socket.bytesRead;
  let [read, idle, total] = [from, 0, 0];
  const stepMs = Math.min(idleMs / 4, 250);
  const watch = setInterval(() => {
    idle = socket.bytesRead === read ? idle + stepMs : 0;
    total += stepMs;
    read = socket.bytesRead;
    if (idle >= idleMs || total >= totalMs || read - from > maxBytes) socket.destroy();
  }, stepMs);
  socket.once('close', () => clearInterval(watch));
  body.once('end', () => Socket.prototype.destroySoon.call(socket));
  body.resume();
}
