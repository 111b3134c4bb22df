import { timingSafeEqual } from 'node:crypto';
import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import { sharing } from '../../kit/sharing.ts';
import type { Scope, Tier } from '../model/common.ts';
import type { KeyFamily, Lineage } from '../rules/exclusion.ts';
import { hashOf, looksLikeKey } from '../rules/keys.ts';
import type { Rights } from '../rules/rights.ts';
import { type KeyAccess, storedList } from '../store/keys.ts';
import type { Store } from '../store/store.ts';

/** The caller of a request: its API key, what that may do, and the limits of its tenant. */
export interface Caller extends Rights {
  readonly key_id: string;
  readonly key_name: string;
  readonly key_tier: Tier;
  readonly admin: boolean;
  readonly tenant_id: string;
  /** The tenant's number in the store. */
  readonly tenant_number: number;
  readonly tenant_tier: Tier;
  /** The tenant's own daily quota; null: the quota of its tier. */
  readonly handoffs_per_day: number | null;
  /** When the key expires, in milliseconds since 1970; left out: never. */
  readonly key_ends?: number;
  /** For a rotated key, the first key of its chain of rotations: the rate limit counts the whole chain as one key. */
  readonly rotated_from?: string;
  /** The keys through which its key was created. */
  readonly lineage: Lineage;
}

/** The first key of the chain of rotations that a key belongs to; its id identifies the chain. */
export const originOf = ({ key_id, rotated_from = key_id }: Caller): string => rotated_from;

/** The family of a caller's key. */
export const familyOf = (caller: Caller): KeyFamily => ({ origin: originOf(caller), lineage: caller.lineage });

/**
 * The caller for whom something acts later: an answer link, a channel or a push notification configuration of a chain of
 * rotations that begins with the key `origin`. Undefined when no key of it is valid any more.
 */
export async function callerOfChain({ keys }: Pick<Store, 'keys'>, origin: string, now: Date): Promise<Caller | undefined> {
  const row = await keys.ofChain(origin, now);
  return row && callerOf(row);
}

/** The most keys that are cached. */
const maxKnownKeys = 10_000;

/**
 * Returns the function that finds the caller behind an API key, undefined for a key that is unknown, revoked or expired.
 * Callers are cached until any key, tenant or contract changes, so a revocation on any instance takes effect with the next call.
 * @param onChange called when a request finds that any of them has changed
 */
export function createAuthenticator(
  keys: Store['keys'],
  clock: Clock,
  onChange: () => void = () => undefined,
): (key: string, connection?: object) => Awaitable<Caller | undefined> {
  const known = new Map<string, Caller>();
  const hashFor = createHashing();
  let knownVersion = -1;
  const currentVersion = sharing(() => keys.version());

  function callerOfKey(hash: string, version: number): Awaitable<Caller | undefined> {
    if (version !== knownVersion) {
      known.clear();
      knownVersion = version;
      onChange();
    }
    const caller = known.get(hash);
    return caller === undefined ? lookUp(hash, version) : unlessExpired(caller);
  }

  async function lookUp(hash: string, version: number): Promise<Caller | undefined> {
    const row = await keys.byHash(hash);
    if (row === undefined || !timingSafeEqual(Buffer.from(row.hash), Buffer.from(hash))) return undefined;
    const caller = callerOf(row);
    // The row is at least as new as `version`. If a later version has cleared the cache since, that change may have
    // revoked this key, so it is not cached.
    if (version !== knownVersion) return unlessExpired(caller);
    if (known.size >= maxKnownKeys) known.delete(known.keys().next().value!);
    known.set(hash, caller);
    return unlessExpired(caller);
  }

  function unlessExpired(caller: Caller): Caller | undefined {
    return caller.key_ends === undefined || caller.key_ends > clock().getTime() ? caller : undefined;
  }

  return (key, connection) => {
    const hash = hashFor(key, connection);
    if (hash === undefined) return undefined;
    return andThen(currentVersion(undefined), (version) => callerOfKey(hash, version));
  };
}

/**
 * Returns the function that hashes a key; undefined if the value can't be one. The hash of the last key of a connection is
 * kept until the connection is gone, since most connections always send the same key. It decides nothing: whether the key
 * is valid is looked up for each request.
 */
function createHashing(): (key: string, connection: object | undefined) => string | undefined {
  const lastKeys = new WeakMap<object, { readonly key: string; readonly hash: string }>();
  return (key, connection) => {
    const last = connection && lastKeys.get(connection);
    if (last !== undefined && isSame(last.key, key)) return last.hash;
    if (!looksLikeKey(key)) return undefined;
    const hash = hashOf(key);
    if (connection !== undefined) lastKeys.set(connection, { key, hash });
    return hash;
  };
}

/** Whether two keys are equal, compared in constant time: clients behind one proxy may share its connection. */
function isSame(a: string, b: string): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let index = 0; index < a.length; index += 1) difference |= a.charCodeAt(index) ^ b.charCodeAt(index);
  return difference === 0;
}

function callerOf({ admin, hash: _, expires_at, rotated_from, scopes, agents, lineage, ...caller }: KeyAccess): Caller {
  return {
    ...caller,
    admin: admin === 1,
    scopes: storedList(scopes) as Scope[] | null,
    agents: storedList(agents),
    lineage: storedList(lineage) ?? [],
    ...(expires_at === null ? {} : { key_ends: Date.parse(expires_at) }),
    ...(rotated_from === null ? {} : { rotated_from }),
  };
}
