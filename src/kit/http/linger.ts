import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';

/** How long and how much of a body is read to nowhere behind the last answer of a connection. */
export interface LingerLimits {
  /** Without a byte, in milliseconds. */
  idleMs: number;
  /** In all, in milliseconds. */
  totalMs: number;
  /** In bytes. */
  maxBytes: number;
}

/** nginx waits as long (`lingering_timeout`, `lingering_time`). */
const usualLimits: LingerLimits = { idleMs: 5_000, totalMs: 30_000, maxBytes: 64 * 1024 * 1024 };

const request = Symbol('request');

interface NotedSocket extends Socket {
  [request]?: IncomingMessage;
}

/** Notes which request a connection is about, for the time when it closes. */
export function noteRequest(raw: IncomingMessage): void {
  (raw.socket as NotedSocket)[request] = raw;
}

/**
 * Makes connections that close behind an answer wait for the rest of the request. Node would close at once, and a
 * connection that is closed with bytes unread is reset, which takes the answer from a client that is still sending.
 */
export function lingerBehindAnswers(server: Server, limits: LingerLimits = usualLimits): void {
  server.on('connection', (socket: NotedSocket) => {
    // Node calls it, and nothing else, where the last answer of a connection has been written.
    socket.destroySoon = () => {
      const body = socket[request];
      if (body === undefined || body.complete || body.destroyed) Socket.prototype.destroySoon.call(socket);
      else linger(socket, body, limits);
    };
  });
}

/** Sends the end of our side and reads the other to nowhere, until it ends or has used up the limits. */
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
