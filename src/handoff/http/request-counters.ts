import { type Awaitable, rethrow } from '../../kit/awaitable.ts';
import { hourMs } from '../../kit/dates.ts';
import { type WindowState, Windows } from '../../kit/window.ts';
import type { RedisLink } from '../live/redis.ts';

export const minuteMs = 60_000;

/** A request to count, against its key's limit per minute and its tenant's limit per hour. A limit of 0 is off. */
export interface Counted {
  readonly keyId: string;
  readonly tenantId: string;
  readonly perMinute: number;
  readonly perHour: number;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The result of counting a request. A request that either limit refuses is not counted; `uncount` removes a counted one. */
export interface Taken {
  readonly minute: WindowState | undefined;
  readonly hour: WindowState | undefined;
  readonly refused: boolean;
  readonly uncount: () => void;
}

/** Counters of requests. */
export interface RequestCounters {
  count(counted: Counted): Awaitable<Taken>;
}

/** Makes counters in this process. */
export function createLocalCounters(): RequestCounters & { count(counted: Counted): Taken } {
  const minutes = new Windows(minuteMs);
  const hours = new Windows(hourMs);
  return {
    count({ keyId, tenantId, perMinute, perHour, now }) {
      const minute = perMinute > 0 ? minutes.of(keyId, now) : undefined;
      const hour = perHour > 0 ? hours.of(tenantId, now) : undefined;
      const found = { minute: minute?.peek(now, perMinute), hour: hour?.peek(now, perHour) };
      if (found.minute?.allowed === false || found.hour?.allowed === false) return { ...found, refused: true, uncount: () => undefined };
      minute?.add(now, perMinute);
      hour?.add(now, perHour);
      const uncount = () => {
        minute?.uncountLast();
        hour?.uncountLast();
      };
      return { minute: minute?.peek(now, perMinute), hour: hour?.peek(now, perHour), refused: false, uncount };
    },
  };
}

/**
 * The same windows in Redis, each a sorted set, checked and incremented atomically. Arguments: now, the name of the
 * request, and for each key the window's length and limit. Returns for each key its count, the milliseconds until another
 * request is allowed, and the milliseconds until its oldest request leaves the window; then 1 if the request was refused.
 */
const takeScript = `
local now, name, refused, answer = tonumber(ARGV[1]), ARGV[2], 0, {}
for i, key in ipairs(KEYS) do
  local length, limit = tonumber(ARGV[1 + 2 * i]), tonumber(ARGV[2 + 2 * i])
  -- After a clock was set back, earlier requests count as made now, so that nobody waits longer than the window.
  for _, later in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. ARGV[1], '+inf')) do redis.call('ZADD', key, now, later) end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - length)
  local count, wait = redis.call('ZCARD', key), 0
  if count >= limit then
    local blocking = redis.call('ZRANGE', key, count - limit, count - limit, 'WITHSCORES')
    wait = math.max(1, tonumber(blocking[2]) + length - now)
    refused = 1
  end
  answer[i] = {count, wait, 0}
end
for i, key in ipairs(KEYS) do
  local length = tonumber(ARGV[1 + 2 * i])
  if refused == 0 then
    redis.call('ZADD', key, now, name)
    redis.call('PEXPIRE', key, length)
    answer[i][1] = answer[i][1] + 1
  end
  local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
  if oldest[2] then answer[i][3] = tonumber(oldest[2]) + length - now end
end
answer[#KEYS + 1] = refused
return answer
`;

const uncountScript = `for _, key in ipairs(KEYS) do redis.call('ZREM', key, ARGV[1]) end return 1`;

/** Makes counters in Redis, shared by all instances; while Redis is unavailable they count in this process. */
export function createSharedCounters(redis: RedisLink, local: RequestCounters, newName: () => string): RequestCounters {
  return {
    async count(counted) {
      const { keyId, tenantId, perMinute, perHour, now } = counted;
      const windows = [
        { name: 'minute', key: `minute:${keyId}`, lengthMs: minuteMs, limit: perMinute },
        { name: 'hour', key: `hour:${tenantId}`, lengthMs: hourMs, limit: perHour },
      ].filter(({ limit }) => limit > 0);
      if (windows.length === 0) return local.count(counted);
      const keys = windows.map(({ key }) => key);
      const name = newName();
      const args = [String(now), name, ...windows.flatMap(({ lengthMs, limit }) => [String(lengthMs), String(limit)])];
      const answer = await redis.evaluate(takeScript, keys, args, (value) => readTaken(value, windows.length));
      if (answer === undefined) return local.count(counted);

      const states = new Map(windows.map(({ name: which, limit }, index) => [which, stateOf(answer.counts[index]!, limit)]));
      return {
        minute: states.get('minute'),
        hour: states.get('hour'),
        refused: answer.refused,
        uncount: () => {
          redis.evaluate(uncountScript, keys, [name], () => undefined).catch(rethrow);
        },
      };
    },
  };
}

/** A key's count, the milliseconds until another request is allowed, and those until its oldest request leaves the window. */
type KeyCount = readonly [count: number, waitMs: number, resetMs: number];

/** The answer of `takeScript` for this many keys. @throws for anything else, as another program behind the address may send it */
function readTaken(answer: unknown, keys: number): { counts: readonly KeyCount[]; refused: boolean } {
  const counts = Array.isArray(answer) ? answer.slice(0, keys) : [];
  if (counts.length !== keys || !counts.every(isKeyCount)) throw new Error('Redis answered a script with a value of another type.');
  return { counts, refused: (answer as unknown[])[keys] === 1 };
}

const isKeyCount = (value: unknown): value is KeyCount => Array.isArray(value) && value.length === 3 && value.every(isCount);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function stateOf([count, wait, reset]: KeyCount, limit: number): WindowState {
  return { allowed: wait === 0, remaining: Math.max(0, limit - count), retryAfterMs: wait, resetMs: reset };
}
