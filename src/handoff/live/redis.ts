import { createClient } from '@redis/client';
import type { Logger } from 'pino';

import type { Clock } from '../../kit/clock.ts';

/** The timeout of a command, after which Redis counts as unavailable, in milliseconds, unless another one is given. */
const defaultCommandMs = 500;

/** How many times the event loop turns, at least, before a command times out: time in which the event loop stood still does not count against Redis. */
const waits = 5;

/** How long no command is sent after a failure, in milliseconds, so that a frozen Redis does not slow down every request. */
const backOffMs = 1000;

/** After this many consecutive timeouts the client reconnects: the peer may be gone without closing the connection. */
const maxTimeouts = 2;

/** The longest pause between two attempts to connect, in milliseconds. */
const maxReconnectMs = 2000;

/** A connection to a Redis that may be unavailable at times. No method rejects: without Redis it does nothing. */
export type RedisLink = ReturnType<typeof createRedisLink>;

interface LinkOptions {
  clock: Clock;
  /** The timeout of a command in milliseconds; 500 by default. */
  commandMs?: number | undefined;
}

/** A connection to Redis that reconnects whenever it breaks or stops answering. */
class RedisConnection {
  readonly client;
  readonly #clock: Clock;
  readonly #commandMs: number;
  readonly #onChange: (isAvailable: boolean) => void;
  #isAvailable: boolean | undefined;
  #retryAt = 0;
  #timeouts = 0;

  constructor({ url, clock, commandMs, onChange }: LinkOptions & { url: string; onChange: (isAvailable: boolean) => void }) {
    this.#clock = clock;
    this.#commandMs = commandMs ?? defaultCommandMs;
    this.#onChange = onChange;
    this.client = createClient({
      url,
      disableOfflineQueue: true,
      pingInterval: 10_000,
      socket: { connectTimeout: 2000, reconnectStrategy: (attempt) => Math.min(50 * 2 ** attempt, maxReconnectMs) },
    });
    this.client.on('ready', () => {
      this.#retryAt = 0;
      this.#setAvailable(true);
    });
    this.client.on('error', () => this.#setAvailable(false));
  }

  connect(): void {
    this.client.connect().catch(() => this.#setAvailable(false));
  }

  /** Runs a command; resolves with undefined when Redis is unavailable. */
  async ask<T>(run: () => Promise<T>): Promise<T | undefined> {
    const { client } = this;
    const wait = this.#retryAt - this.#clock().getTime();
    // A longer wait than the pause after a failure means that the clock was set back.
    if (!client.isReady || (wait > 0 && wait <= backOffMs)) return undefined;
    try {
      const answer = await within(this.#commandMs, run());
      this.#timeouts = 0;
      this.#setAvailable(true);
      return answer;
    } catch (error) {
      // Every failure is handled alike: callers go on without Redis, and `onChange` reports the change of state.
      this.#retryAt = this.#clock().getTime() + backOffMs;
      this.#setAvailable(false);
      this.#timeouts = error instanceof CommandTimeout ? this.#timeouts + 1 : 0;
      if (this.#timeouts >= maxTimeouts && client.isReady) {
        this.#timeouts = 0;
        client.destroy();
        this.connect();
      }
      return undefined;
    }
  }

  /** Resolves when the connection is ready, has failed once, or has taken too long. */
  async settled(): Promise<void> {
    const settling = new Promise<void>((resolve) => {
      this.client.once('ready', () => resolve());
      this.client.once('error', () => resolve());
    });
    await within(this.#commandMs, settling).catch(() => this.#setAvailable(false));
  }

  #setAvailable(isAvailable: boolean): void {
    if (this.#isAvailable === isAvailable) return;
    this.#isAvailable = isAvailable;
    this.#onChange(isAvailable);
  }
}

/**
 * Makes a link to Redis, in which other deployments have other keys and channels. The service works without it while it is
 * unavailable; each change of state is logged once.
 */
export function createRedisLink(url: string, { logger, deployment, ...options }: LinkOptions & { logger: Logger; deployment: number }) {
  const named = (name: string) => `baton:${deployment.toString(36)}:${name}`;
  const asking = new RedisConnection({
    ...options,
    url,
    onChange(isAvailable) {
      if (isAvailable) logger.info('redis is available: limits are shared between instances, and events relayed at once');
      else logger.warn('redis is unavailable: this instance counts by itself, and polls the database for events');
    },
  });
  let listening: RedisConnection | undefined;

  return {
    /**
     * Runs a Lua script; resolves with its answer as `read` returns it, and with undefined when Redis is unavailable.
     * @param read throws for an answer of another type; Redis then counts as unavailable
     */
    evaluate: <T>(script: string, keys: readonly string[], args: readonly string[], read: (answer: unknown) => T): Promise<T | undefined> =>
      asking.ask(async () => read(await asking.client.eval(script, { keys: keys.map(named), arguments: [...args] }))),
    /** Publishes a message; resolves when Redis has it, or is unavailable. */
    async publish(channel: string, message: string): Promise<void> {
      await asking.ask(() => asking.client.publish(named(channel), message));
    },
    /**
     * Subscribes to a channel over a separate connection.
     * @param onReady called after every (re)connect: messages published before were missed
     */
    subscribe(channel: string, onMessage: (message: string) => void, onReady: () => void): void {
      // The other connection already reports whether Redis is available.
      const connection = new RedisConnection({ ...options, url, onChange: () => undefined });
      listening = connection;
      connection.client.on('ready', () => {
        connection.client.unsubscribe(named(channel)).catch(() => undefined);
        connection.client.subscribe(named(channel), onMessage).then(onReady, () => undefined);
      });
    },
    /** Pings over the subscribed connection, and reconnects it when Redis does not answer. */
    async check(): Promise<void> {
      await listening?.ask(() => listening!.client.ping());
    },
    /** Starts connecting, and keeps trying; resolves when Redis is connected, the first attempt has failed, or half a second has passed. */
    async start(): Promise<void> {
      const settled = asking.settled();
      asking.connect();
      listening?.connect();
      await settled;
    },
    async stop(): Promise<void> {
      asking.client.destroy();
      listening?.client.destroy();
    },
  };
}

class CommandTimeout extends Error {}

/** The promise's value; rejects with CommandTimeout when it takes longer, of time in which the event loop turned. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    const wait = (left: number) => {
      if (left > 0) timer = setTimeout(wait, ms / waits, left - 1);
      // After the sockets are read, which may have the answer since the loop stood still.
      else setImmediate(() => reject(new CommandTimeout('Redis did not answer in time.')));
    };
    wait(waits);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
