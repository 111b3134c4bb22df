import type { RedisLink } from './redis.ts';

/** The channel on which instances tell one another that trails have grown. */
const channel = 'baton:trails';

/** The longest message that is read; ours are far shorter. */
const maxMessageLength = 1024 * 1024;

/** How many tenants one message tells of. */
const maxHints = 1000;

export interface RelayParts {
  redis: RedisLink;
  /** Told what another instance says: a tenant's number, and how far its trail reaches. It need not be true. */
  onHint(tenant: number, position: number): void;
  /** Told when the relay begins to hear, so that what was said before is looked for. */
  onReady(): void;
  /** Told of a message that is none of ours. */
  onIgnored(): void;
}

/** Tells instances of one another's events. */
export interface Relay {
  /** Says that a tenant's trail reaches to a position. */
  tell(tenant: number, position: number): void;
}

/**
 * A relay over Redis. A message says how far trails reach, `[[tenant, position], ...]`, and nothing of the events: those are
 * read from the database, so that whoever else writes to that Redis can neither forge nor read one, and a message lost
 * costs no more than time.
 */
export function createRelay({ redis, onHint, onReady, onIgnored }: RelayParts): Relay {
  const untold = new Map<number, number>();
  let telling = false;

  redis.subscribe(
    channel,
    (message) => {
      const hints = parseHints(message);
      if (hints === undefined) onIgnored();
      else for (const [tenant, position] of hints) onHint(tenant, position);
    },
    onReady,
  );

  /** One message at a time: what happens meanwhile goes into the next one, so that a slow Redis gathers nothing. */
  async function tellAll(): Promise<void> {
    telling = true;
    while (untold.size > 0) {
      const hints = [...untold].slice(0, maxHints);
      for (const [tenant] of hints) untold.delete(tenant);
      await redis.publish(channel, JSON.stringify(hints));
    }
    telling = false;
  }

  return {
    tell(tenant, position) {
      untold.set(tenant, position);
      if (!telling) void tellAll();
    },
  };
}

/** What a message says; undefined for one that is none of ours. */
export function parseHints(message: string): readonly (readonly [number, number])[] | undefined {
  if (message.length > maxMessageLength) return undefined;
  let hints: unknown;
  try {
    hints = JSON.parse(message);
  } catch {
    return undefined;
  }
  return Array.isArray(hints) && hints.every(isHint) ? hints : undefined;
}

function isHint(hint: unknown): hint is [number, number] {
  return Array.isArray(hint) && hint.length === 2 && hint.every((one) => Number.isSafeInteger(one) && one > 0);
}
