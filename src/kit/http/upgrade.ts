import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/** A connection whose client asked to speak WebSocket from here on. */
export interface Upgrade {
  readonly socket: Socket;
  /** What came behind the request already. */
  readonly head: Buffer;
  /** Gives the connection up to the other protocol: no answer of HTTP will go over it. */
  takeSocket(): void;
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>();

/** How long a refused client has to close its side, in milliseconds. */
const closeMs = 5_000;

/** The upgrade that a request asks for, if it does. */
export const upgradeOf = (raw: IncomingMessage): Upgrade | undefined => upgrades.get(raw);

/** Whether a request is an upgrade to WebSocket. Others, to HTTP/2 say, are passed over as RFC 9110, 7.8, allows. */
export function isUpgradeToWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.trim().toLowerCase() === 'websocket';
}

/**
 * Sends requests that ask for an upgrade through the routes like any other: admission, limits and error bodies are the
 * same. A handler takes the connection with `upgradeOf`.
 */
export function routeUpgrades(app: FastifyInstance): void {
  app.server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // Node listens no more to a socket that it has handed over.
    socket.on('error', () => socket.destroy());
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    const giveBack = () => {
      response.detachSocket(socket);
      upgrades.delete(request);
    };
    response.once('finish', () => {
      if (!upgrades.has(request)) return;
      giveBack();
      socket.end();
      socket.resume();
      socket.setTimeout(closeMs, () => socket.destroy());
    });
    upgrades.set(request, { socket, head, takeSocket: giveBack });
    app.routing(request, response);
  });
}
