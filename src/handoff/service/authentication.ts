import { timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';

import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Scope, Tier } from '../model/common.ts';
import type { AnsweredBy } from '../model/hitl.ts';
import { nameKey } from '../model/people.ts';
import { typedName } from '../rules/answered-by.ts';
import { type KeyFamily, type Lineage, personIn, personOrigin, subjectOrigin } from '../rules/exclusion.ts';
import { type ClaimRules, grantedTo, isSameIssuer, type Person } from '../rules/identity.ts';
import { hashOf, looksLikeKey } from '../rules/keys.ts';
import type { Rights } from '../rules/rights.ts';
import { sightOf, type Viewer } from '../rules/sight.ts';
import { type KeyAccess, storedList } from '../store/keys.ts';
import type { Provenance } from '../store/provenance.ts';
import { sharing } from '../store/sharing.ts';
import type { Store } from '../store/store.ts';

/** How a caller is known: by an API key, by an answer link, by the session of a person who signed in, or by a token of the identity provider. */
type CallerKind = 'key' | 'link' | 'session' | 'token';

/** The caller of a request: what it may do, and the limits of its tenant. */
export interface Caller extends Rights, Viewer {
  readonly kind: CallerKind;
  /** The id of its key; null: it has none. */
  readonly key_id: string | null;
  /** The name of its key, of the person, or of the program. */
  readonly name: string;
  /** Its tier, at most that of its tenant. */
  readonly tier: Tier;
  readonly admin: boolean;
  readonly tenant_id: string;
  readonly tenant_tier: Tier;
  /** The tenant's own daily quota; null: the quota of its tier. */
  readonly handoffs_per_day: number | null;
  /** The tenant's own requests per hour; null: those of its tier. */
  readonly requests_per_hour: number | null;
  /** When it ends, in milliseconds since 1970; left out: never. */
  readonly ends?: number;
  /** What stays the same while its credential changes: the first key of its chain of rotations. The rate limit counts by it. */
  readonly origin: string;
  /** The keys through which its key was created. */
  readonly lineage: Lineage;
  /** What its credential is found by, to tell whether it is still valid; left out: it has none, and is always valid. */
  readonly credential?: string;
  /** The person, if the identity provider says who it is. */
  readonly person?: Person;
  /** The person of the identity provider who it is, as a source of questions: also of a token without a name, and of a key in the name. */
  readonly subject?: string;
  /** What a token could give with further scopes; left out for other callers. */
  readonly grantable?: readonly Scope[];
}

/** The tenant of a person or of a token. */
export interface FoundTenant {
  readonly id: string;
  readonly number: number;
  readonly tier: Tier;
  readonly handoffs_per_day: number | null;
  readonly requests_per_hour: number | null;
}

/** The family of a caller. */
export const familyOf = ({ origin, lineage, responder, subject }: Caller): KeyFamily => ({
  origin,
  lineage,
  ...(responder ? { person: personOrigin(responder) } : {}),
  ...(subject === undefined ? {} : { subject }),
});

/** The provenance of what a caller does. */
export const provenanceOf = ({ kind, key_id, person, name }: Caller, now: Date): Provenance =>
  person === undefined ? { now, keyId: key_id } : { now, keyId: key_id, person, ...(kind === 'session' ? { actor: `human:${name}` } : {}) };

/** Who answers by a caller, and how that is known. A key without a responder answers under any name. */
export function answeredBy({ kind, key_id, responder, person }: Caller, name: string): AnsweredBy {
  const key = key_id === null ? {} : { key_id };
  if (person !== undefined) return { name, verified: true, method: kind === 'token' ? 'token' : 'sign_in', subject: person.subject };
  return responder ? { name, verified: true, method: 'key', ...key } : typedName(name, key);
}

/** The actor of what a caller does in no agent's name, as histories name it. */
export const actorOf = ({ kind, key_id, name, agents }: Caller): string =>
  kind === 'session' ? `human:${name}` : kind === 'token' ? `agent:${agents?.[0]}` : `key:${key_id}`;

/** What the callers of a tenant have in common who have no key. */
export const limitsOf = ({ id, number, tier, handoffs_per_day, requests_per_hour }: FoundTenant) => ({
  ...{ key_id: null, tenant_id: id, tenant_number: number, tier, tenant_tier: tier, handoffs_per_day, requests_per_hour, lineage: [] },
});

/** A person as a caller, with what its groups may do. */
export function callerOfPerson(tenant: FoundTenant, person: Person, groups: readonly string[], rules: ClaimRules): Caller {
  const { scopes, admin } = grantedTo(groups, rules);
  const { name } = person;
  // As for a key: an admin is not restricted.
  const rights = { scopes: admin ? null : scopes, agents: null, responder: name, admin };
  return { kind: 'session', ...limitsOf(tenant), ...rights, name, origin: personOrigin(name), person, subject: subjectOrigin(person) };
}

/** How people sign in: the rules for their rights, and the provider that they come from. */
export interface SignInRules {
  readonly rules: ClaimRules;
  readonly issuer: () => string;
}

interface LaterDependencies {
  readonly store: Pick<Store, 'keys' | 'whole' | 'tenants'>;
  readonly clock: Clock;
  /** Undefined: nobody signs in. */
  readonly signIn: SignInRules | undefined;
}

/**
 * Finds the caller of a tenant for whom something acts later, such as an answer link or a channel, by its `origin`: the first
 * key of a chain of rotations, or a person who signed in. Undefined when no key of the chain is valid any more, when the person is
 * suspended or has lost the name, and when it is of another tenant.
 */
export function createCallerOfOrigin({ store, clock, signIn }: LaterDependencies) {
  return async (tenant: number, origin: string): Promise<Caller | undefined> => {
    const name = personIn(origin);
    if (name !== undefined) return signIn && signedIn(tenant, name, signIn);
    const row = await store.keys.ofChain(origin, clock());
    if (row === undefined || row.tenant_number !== tenant) return undefined;
    return callerUnlessSuspended(store, row);
  };

  /** A person with the rights of the groups that the provider named last. */
  async function signedIn(number: number, name_key: string, { rules, issuer }: SignInRules): Promise<Caller | undefined> {
    const { people } = store.whole(number);
    const stored = await people.find(name_key);
    if (stored === undefined || stored.subject === null || !isSameIssuer(stored.issuer!, issuer())) return undefined;
    const person = { subject: stored.subject, issuer: stored.issuer!, name: stored.name };
    if (stored.suspended_at !== null || (await people.suspendedName(person)) !== undefined) return undefined;
    const tenant = await store.tenants.numbered(number);
    return tenant && callerOfPerson(tenant, person, stored.groups, rules);
  }
}

/** Finds the caller for whom something acts later. */
export type CallerOfOrigin = ReturnType<typeof createCallerOfOrigin>;

/** The caller behind a key; undefined: it answers in the name of a person who is suspended. */
async function callerUnlessSuspended(store: Pick<Store, 'whole'>, row: KeyAccess): Promise<Caller | undefined> {
  const { tenant_number, responder } = row;
  if (responder === null) return callerOf(row);
  const person = await store.whole(tenant_number).people.find(nameKey(responder));
  if (person === undefined || person.subject === null) return person?.suspended_at ? undefined : callerOf(row);
  if (person.suspended_at !== null) return undefined;
  return { ...callerOf(row), subject: subjectOrigin({ subject: person.subject, issuer: person.issuer! }) };
}

/** The most keys that are cached. */
const maxKnownKeys = 10_000;

/**
 * Returns the functions that find the caller behind an API key, undefined for a key that is unknown, revoked or expired, and
 * that tell whether a caller's key is still valid. Callers are cached until any key, tenant or contract changes, so a revocation on any instance takes effect with the next call.
 * @param onChange called when a request finds that any of them has changed
 */
export function createAuthenticator(store: Pick<Store, 'keys' | 'whole'>, clock: Clock, onChange: () => void = () => undefined) {
  const { keys } = store;
  const known = new LRUCache<string, Caller>({ max: maxKnownKeys });
  const hashFor = createHashing();
  let knownVersion = -1;
  const currentVersion = sharing(() => keys.version());

  function callerOfKey(hash: string, version: number): Awaitable<Caller | undefined> {
    refresh(version);
    const caller = known.get(hash);
    return caller === undefined ? lookUp(hash, version) : unlessExpired(caller);
  }

  async function lookUp(hash: string, version: number): Promise<Caller | undefined> {
    const row = await keys.byHash(hash);
    if (row === undefined || !timingSafeEqual(Buffer.from(row.hash), Buffer.from(hash))) return undefined;
    const caller = await callerUnlessSuspended(store, row);
    if (caller === undefined) return undefined;
    // The row is at least as new as `version`. If a later version has cleared the cache since, that change may have
    // revoked this key, so it is not cached.
    if (version !== knownVersion) return unlessExpired(caller);
    known.set(hash, caller);
    return unlessExpired(caller);
  }

  function unlessExpired(caller: Caller): Caller | undefined {
    return caller.ends === undefined || caller.ends > clock().getTime() ? caller : undefined;
  }

  /** Drops what is cached if any key, tenant or document has changed. */
  function refresh(version: number): void {
    if (version === knownVersion) return;
    known.clear();
    knownVersion = version;
    onChange();
  }

  const current = (hash: string) => andThen(currentVersion(undefined), (version) => callerOfKey(hash, version));
  return {
    authenticate(key: string, connection?: object): Awaitable<Caller | undefined> {
      const hash = hashFor(key, connection);
      return hash === undefined ? undefined : current(hash);
    },
    /** Drops what is cached if it has changed, as each request with a key does. */
    refresh: (): Awaitable<void> => andThen(currentVersion(undefined), refresh),
    isValid: ({ credential }: Caller): Awaitable<boolean> =>
      credential === undefined || andThen(current(credential), (caller) => caller !== undefined),
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

function callerOf({ admin, hash, expires_at, rotated_from, scopes, lineage, ...caller }: KeyAccess): Caller {
  const own = { agents: storedList(caller.agents), queues: storedList(caller.queues) };
  const sight = sightOf(own);
  return {
    ...caller,
    ...own,
    ...(sight === undefined ? {} : { sight }),
    kind: 'key',
    credential: hash,
    origin: rotated_from ?? caller.key_id,
    admin: admin === 1,
    scopes: storedList(scopes) as Scope[] | null,
    lineage: storedList(lineage) ?? [],
    ...(expires_at === null ? {} : { ends: Date.parse(expires_at) }),
  };
}
