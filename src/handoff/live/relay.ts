import { rethrow } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import type { RedisLink } from './redis.ts';

/** The channel on which instances announce new events. */
const channel = 'trails';

/** The longest message that is parsed; valid ones are far shorter. */
const maxMessageLength = 1024 * 1024;

/** The most tenants in one message. */
const maxHints = 1000;

interface RelayDependencies {
  redis: RedisLink;
  /** Called with a hint from another instance: a tenant's number and the last position of its trail. It may be wrong. */
  onHint: (tenant: number, position: number) => void;
  /** Called when the subscription is (re)established: hints sent before were missed. */
  onReady: () => void;
  /** Called for an invalid message. */
  onIgnored: () => void;
}

/**
 * A relay over Redis. A message contains only the last positions of trails, `[[tenant, position], ...]`. The events
 * themselves are read from the database, so other users of the Redis can neither forge nor read them, and a lost message
 * only delays them.
 */
export class Relay {
  readonly #redis: RedisLink;
  readonly #pending = new Map<number, number>();
  #isSending = false;

  constructor({ redis, onHint, onReady, onIgnored }: RelayDependencies) {
    this.#redis = redis;
    redis.subscribe(
      channel,
      (message) => {
        const hints = parseHints(message);
        if (hints === undefined) onIgnored();
        else for (const [tenant, position] of hints) onHint(tenant, position);
      },
      onReady,
    );
  }

  /** Announces the last position of a tenant's trail. */
  publish(tenant: number, position: number): void {
    this.#pending.set(tenant, position);
    if (!this.#isSending) this.#sendAll().catch(rethrow);
  }

  /** Sends one message at a time and merges later hints into the next, so that no backlog builds up behind a slow Redis. */
  async #sendAll(): Promise<void> {
    this.#isSending = true;
    try {
      // biome-ignore lint/plugin: each pass waits for Redis, and has a thousand numbers at most.
      while (this.#pending.size > 0) {
        const hints = [...this.#pending].slice(0, maxHints);
        for (const [tenant] of hints) this.#pending.delete(tenant);
        await this.#redis.publish(channel, JSON.stringify(hints));
      }
    } finally {
      this.#isSending = false;
    }
  }
}

/** Parses a message into hints; undefined for an invalid message. */
export function parseHints(message: unknown): readonly (readonly [number, number])[] | undefined {
  if (typeof message !== 'string' || message.length > maxMessageLength) return undefined;
  let hints: unknown;
  try {
    hints = readJson(message);
  } catch {
    return undefined;
  }
  return Array.isArray(hints) && hints.every(isHint) ? hints : undefined;
}

function isHint(hint: unknown): hint is [number, number] {
  return Array.isArray(hint) && hint.length === 2 && hint.every((one) => Number.isSafeInteger(one) && one > 0);
}
