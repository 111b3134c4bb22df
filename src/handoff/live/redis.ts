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

/** A Redis that may come and go. */
export interface RedisLink {
  /** Runs a Lua script; undefined when Redis is out of reach. */
  evaluate(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>;
  /** Begins to connect, and goes on trying; resolves when it is in reach, or is known not to be. Never fails. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A link to Redis. While it is out of reach the service goes on without; each change of state is one log line. */
export function createRedisLink(url: string, { logger, clock }: { logger: Logger; clock: Clock }): RedisLink {
  const client = createClient({
    url,
    disableOfflineQueue: true,
    pingInterval: 10_000,
    socket: { connectTimeout: 2000, reconnectStrategy: (attempt) => Math.min(50 * 2 ** attempt, maxReconnectMs) },
  });
  let inReach: boolean | undefined;
  let askAgainAt = 0;
  let late = 0;

  function reconnect(): void {
    late = 0;
    client.destroy();
    client.connect().catch(() => seen(false));
  }

  function seen(reached: boolean): void {
    if (inReach === reached) return;
    inReach = reached;
    if (reached) logger.info('redis is in reach: limits are shared between instances');
    else logger.warn('redis is out of reach: this instance counts by itself');
  }
  client.on('ready', () => {
    askAgainAt = 0;
    seen(true);
  });
  client.on('error', () => seen(false));

  return {
    async evaluate(script, keys, args) {
      if (!client.isReady || clock().getTime() < askAgainAt) return undefined;
      try {
        const answer = await within(commandMs, client.eval(script, { keys: [...keys], arguments: [...args] }));
        late = 0;
        seen(true);
        return answer;
      } catch (error) {
        // The kind of failure is Redis's affair; that there was one is logged as a change of state.
        askAgainAt = clock().getTime() + restMs;
        seen(false);
        late = error instanceof Late ? late + 1 : 0;
        if (late >= maxLate && client.isReady) reconnect();
        return undefined;
      }
    },
    async start() {
      const settled = new Promise<void>((resolve) => {
        client.once('ready', () => resolve());
        client.once('error', () => resolve());
      });
      client.connect().catch(() => seen(false));
      await within(commandMs, settled).catch(() => seen(false));
    },
    async stop() {
      client.destroy();
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
