import { AsyncLocalStorage } from 'node:async_hooks';
import type { Socket } from 'node:net';
import { buildConnector, Client } from 'undici';

import { connectFailure, OutgoingError } from './failures.ts';
import { type AddressGuard, guardedLookup } from './guard.ts';

/** A connection to an origin, used by one exchange at a time. */
export interface OutgoingConnection {
  readonly origin: string;
  client: Client;
  /** For whom the current exchange is; a connect looks the name up for this owner. */
  owner: unknown;
  /** The socket since the connect began, which is before the client has it. */
  socket: Socket | undefined;
  /** The bytes that had arrived before the current exchange, and the most that it may receive, whatever they are. */
  receivedBefore: number;
  maxReceived: number;
  /** Called when more arrive. */
  onExcess(): void;
}

export interface ConnectionDependencies {
  guard: AddressGuard;
  /** Certificate authorities to trust instead of the default ones, in PEM. */
  ca?: string;
  /** The most connections to an origin; further exchanges wait in a queue. */
  perOrigin: number;
}

interface Origin {
  open: number;
  readonly idle: OutgoingConnection[];
  readonly waiting: Set<(connection: OutgoingConnection) => void>;
}

/** The most idle connections of all origins. */
const maxIdle = 1_000;

/** How long an idle connection is kept, in milliseconds, unless the server announces another time. */
const keepAliveMs = 15_000;
const maxKeepAliveMs = 60_000;

/** Keep-alive connections, in a pool for each origin. Each connect resolves the name again and has the guard check every address. */
export class ConnectionPool {
  readonly #origins = new Map<string, Origin>();
  readonly #idle = new Set<OutgoingConnection>();
  readonly #connectors: Record<'https:' | 'http:', ReturnType<typeof guarded>>;
  readonly #perOrigin: number;

  constructor({ guard, ca, perOrigin }: ConnectionDependencies) {
    this.#connectors = { 'https:': guarded('https:', guard, ca), 'http:': guarded('http:', guard) };
    this.#perOrigin = perOrigin;
  }

  /** A connection for an exchange: an idle one, a new one, or the next one that is released. */
  acquire(origin: string, signal: AbortSignal): Promise<OutgoingConnection> {
    let pool = this.#origins.get(origin);
    if (pool === undefined) {
      pool = { open: 0, idle: [], waiting: new Set() };
      this.#origins.set(origin, pool);
    }
    // Reuses the most recently released connection, so that surplus ones become idle and close.
    const free = pool.idle.pop();
    if (free !== undefined) {
      this.#idle.delete(free);
      return Promise.resolve(free);
    }
    if (pool.open < this.#perOrigin) return Promise.resolve(this.#add(pool, origin));
    const { waiting } = pool;
    return new Promise((resolve, reject) => {
      const stop = () => {
        waiting.delete(accept);
        reject(signal.reason);
      };
      const accept = (connection: OutgoingConnection) => {
        signal.removeEventListener('abort', stop);
        resolve(connection);
      };
      waiting.add(accept);
      signal.addEventListener('abort', stop, { once: true });
    });
  }

  /** Returns a connection after a complete exchange. */
  release(connection: OutgoingConnection) {
    const pool = this.#origins.get(connection.origin)!;
    const [next] = pool.waiting;
    if (next !== undefined) {
      pool.waiting.delete(next);
      next(connection);
      return;
    }
    // The server has closed the connection or asked to close it.
    if (!connection.client.stats.connected) return this.#forget(connection);
    pool.idle.push(connection);
    this.#idle.add(connection);
    if (this.#idle.size > maxIdle) this.#forget(this.#idle.values().next().value!);
  }

  /** Closes a connection at once. */
  discard(connection: OutgoingConnection, reason: Error): void {
    this.#cut(connection, reason);
    this.#forget(connection);
  }

  /** Closes a connection and opens another one for the same exchange. */
  renew(connection: OutgoingConnection): void {
    this.#cut(connection, new OutgoingError('connection_reset'));
    connection.client = this.#open(connection);
  }

  /** The number of connections, idle ones included. */
  count(): number {
    let count = 0;
    for (const { open } of this.#origins.values()) count += open;
    return count;
  }

  /** Closes the idle connections. */
  close(): void {
    for (const connection of [...this.#idle]) this.#forget(connection);
  }

  #open(connection: OutgoingConnection): Client {
    const client = new Client(connection.origin, {
      pipelining: 1,
      // The caller enforces one deadline for the whole exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: maxKeepAliveMs,
      connect: (options, callback) => {
        connection.receivedBefore = 0;
        connection.socket = this.#connectors[options.protocol as 'https:' | 'http:'](options, callback, connection.owner);
        // Interim responses and chunk extensions are not part of any body, so only the socket counts everything.
        connection.socket?.on('readable', () => {
          const { socket, receivedBefore, maxReceived } = connection;
          if (socket !== undefined && socket.bytesRead - receivedBefore > maxReceived) connection.onExcess();
        });
      },
    });
    client.on('disconnect', () => {
      if (connection.client === client && this.#idle.has(connection)) this.#forget(connection);
    });
    return client;
  }

  #cut({ client, socket }: OutgoingConnection, reason: Error): void {
    client.destroy(reason).catch(() => undefined);
    socket?.destroy();
  }

  #forget(connection: OutgoingConnection): void {
    const pool = this.#origins.get(connection.origin)!;
    if (this.#idle.delete(connection)) pool.idle.splice(pool.idle.indexOf(connection), 1);
    pool.open -= 1;
    this.#cut(connection, new OutgoingError('connection_reset'));
    const [next] = pool.waiting;
    if (next !== undefined) {
      pool.waiting.delete(next);
      next(this.#add(pool, connection.origin));
    } else if (pool.open === 0) this.#origins.delete(connection.origin);
  }

  #add(pool: Origin, origin: string): OutgoingConnection {
    pool.open += 1;
    const connection = { origin, owner: undefined, socket: undefined } as unknown as OutgoingConnection;
    connection.client = this.#open(connection);
    return connection;
  }
}

/**
 * Connects only to addresses that the guard has checked. Node calls `lookup` for names but not for IP addresses, which
 * are therefore checked first.
 */
function guarded(protocol: string, guard: AddressGuard, ca?: string) {
  // undici passes a connect no more than the origin on to `lookup`.
  const owners = new AsyncLocalStorage<unknown>();
  const lookup = guardedLookup(guard, protocol, () => owners.getStore());
  // The deadline of the exchange also covers the connect.
  const connect = buildConnector({ ...(ca === undefined ? {} : { ca }), lookup, autoSelectFamily: true, timeout: 0 });
  return (target: buildConnector.Options, callback: buildConnector.Callback, owner: unknown): Socket | undefined => {
    if (guard.refusesHost({ protocol, hostname: target.hostname })) {
      callback(new OutgoingError('address_refused'), null);
      return undefined;
    }
    const connecting: unknown = owners.run(owner, connect, target, (...[error, socket]: Parameters<buildConnector.Callback>) => {
      if (error === null) callback(null, socket);
      else callback(connectFailure(error, protocol), null);
    });
    // It returns the socket, although its type does not say so.
    return connecting as Socket;
  };
}
