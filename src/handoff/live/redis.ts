import { createClient } from '@redis/client';
import type { Logger } from 'pino';

import type { Clock } from '../../kit/clock.ts';

/** How long a command may take before Redis counts as out of reach, in milliseconds. */
const commandMs = 500;

/** How long nothing is asked of a Redis that did not answer, in milliseconds: a frozen one must not slow every request. */
const restMs = 1000;

/** After so many commands in a row without an answer the connection is made anew: its other end may be gone unnoticed. */
const maxLate = 2;

/** The longest pause between two attempts to connect, in milliseconds. */
const maxReconnectMs = 2000;

/** A Redis that may come and go. Nothing here fails: what is out of reach does nothing. */
export interface RedisLink {
  /** Runs a Lua script; undefined when Redis is out of reach. */
  evaluate(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Sends a message to whoever listens to the channel now; resolves when Redis has it, or is out of reach. */
  publish(channel: string, message: string): Promise<void>;
  /**
   * Listens to a channel, over a connection of its own, as long as the link is.
   * @param onReady is called whenever it begins anew: what was published before was missed
   */
  subscribe(channel: string, onMessage: (message: string) => void, onReady: () => void): void;
  /** Asks whether the listening connection still has another end, and makes it anew when it does not answer. */
  check(): Promise<void>;
  /** Begins to connect, and goes on trying; resolves when it is in reach, or is known not to be. Never fails. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface Connecting {
  url: string;
  clock: Clock;
  onChange(isInReach: boolean): void;
}

/** A connection to Redis that is made anew as often as it breaks, or stops answering. */
class Connection {
  readonly client;
  readonly #clock: Clock;
  readonly #onChange: (isInReach: boolean) => void;
  #isInReach: boolean | undefined;
  #askAgainAt = 0;
  #late = 0;

  constructor({ url, clock, onChange }: Connecting) {
    this.#clock = clock;
    this.#onChange = onChange;
    this.client = createClient({
      url,
      disableOfflineQueue: true,
      pingInterval: 10_000,
      socket: { connectTimeout: 2000, reconnectStrategy: (attempt) => Math.min(50 * 2 ** attempt, maxReconnectMs) },
    });
    this.client.on('ready', () => {
      this.#askAgainAt = 0;
      this.#seen(true);
    });
    this.client.on('error', () => this.#seen(false));
  }

  connect(): void {
    this.client.connect().catch(() => this.#seen(false));
  }

  /** What Redis answers; undefined when it is out of reach. */
  async ask<T>(run: () => Promise<T>): Promise<T | undefined> {
    const { client } = this;
    if (!client.isReady || this.#clock().getTime() < this.#askAgainAt) return undefined;
    try {
      const answer = await within(commandMs, run());
      this.#late = 0;
      this.#seen(true);
      return answer;
    } catch (error) {
      // The kind of failure is Redis's affair; that there was one is told as a change of state.
      this.#askAgainAt = this.#clock().getTime() + restMs;
      this.#seen(false);
      this.#late = error instanceof Late ? this.#late + 1 : 0;
      if (this.#late >= maxLate && client.isReady) {
        this.#late = 0;
        client.destroy();
        this.connect();
      }
      return undefined;
    }
  }

  /** Resolves when the connection stands, or has failed once. */
  async settled(): Promise<void> {
    const settling = new Promise<void>((resolve) => {
      this.client.once('ready', () => resolve());
      this.client.once('error', () => resolve());
    });
    await within(commandMs, settling).catch(() => this.#seen(false));
  }

  #seen(isInReach: boolean): void {
    if (this.#isInReach === isInReach) return;
    this.#isInReach = isInReach;
    this.#onChange(isInReach);
  }
}

/** A link to Redis. While it is out of reach the service goes on without; each change of state is one log line. */
export function createRedisLink(url: string, { logger, clock }: { logger: Logger; clock: Clock }): RedisLink {
  const asking = new Connection({
    url,
    clock,
    onChange(isInReach) {
      if (isInReach) logger.info('redis is in reach: limits are shared between instances, and events relayed at once');
      else logger.warn('redis is out of reach: this instance counts by itself, and looks for events in the database');
    },
  });
  let listening: Connection | undefined;

  return {
    evaluate: (script, keys, args) => asking.ask(() => asking.client.eval(script, { keys: [...keys], arguments: [...args] })),
    async publish(channel, message) {
      await asking.ask(() => asking.client.publish(channel, message));
    },
    subscribe(channel, onMessage, onReady) {
      // Its state is that of the other connection, give or take a moment, and is not told twice.
      const connection = new Connection({ url, clock, onChange: () => undefined });
      listening = connection;
      connection.client.on('ready', () => {
        connection.client.unsubscribe(channel).catch(() => undefined);
        connection.client.subscribe(channel, onMessage).then(onReady, () => undefined);
      });
    },
    async check() {
      await listening?.ask(() => listening!.client.ping());
    },
    async start() {
      const settled = asking.settled();
      asking.connect();
      listening?.connect();
      await settled;
    },
    async stop() {
      asking.client.destroy();
      listening?.client.destroy();
    },
  };
}

class Late extends Error {}

/** The promise's value, or a rejection with Late when it takes longer. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const lateness = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Late('Redis did not answer in time.')), ms);
  });
  try {
    return await Promise.race([promise, lateness]);
  } finally {
    clearTimeout(timer);
  }
}
