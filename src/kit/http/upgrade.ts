import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** A connection whose client asked for an upgrade to WebSocket. */
export interface Upgrade {
  readonly socket: Socket;
  /** Bytes that have already arrived after the request. */
  readonly head: Buffer;
  /** Takes the connection for WebSocket: no HTTP response will be sent on it. */
  readonly takeSocket: () => void;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** How long a refused client has to close its half, in milliseconds. */
const closeMs = 5_000;

/** The upgrade that a request asks for, if any. */
export const upgradeOf = (raw: IncomingMessage): Upgrade | undefined => upgrades.get(raw);

/** Whether a request asks for WebSocket. Other upgrades, such as to HTTP/2, are ignored, as RFC 9110, 7.8, allows. */
export function isUpgradeToWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.trim().toLowerCase() === 'websocket';
}

/**
 * Routes upgrade requests like any other, with the same admission, limits and error bodies. A handler takes the
 * connection with `upgradeOf`.
 */
export function routeUpgrades(app: FastifyInstance): void {
  app.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // Node no longer handles errors of a socket that it has handed over.
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    const releaseSocket = () => {
      response.detachSocket(socket);
      upgrades.delete(request);
    };
    response.once('finish', () => {
      if (!upgrades.has(request)) return;
      releaseSocket();
      socket.end();
      socket.resume();
      socket.setTimeout(closeMs, () => socket.destroy());
    });
    upgrades.set(request, { socket, head, takeSocket: releaseSocket });
    app.routing(request, response);
  });
}
