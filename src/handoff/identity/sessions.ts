import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

import type { Clock } from '../../kit/clock.ts';
import { notFound, ServiceError } from '../../kit/errors.ts';
import type { NewId, RandomSource } from '../../kit/id.ts';
import { isId } from '../../kit/uuid.ts';
import { nameKey } from '../model/people.ts';
import type { Session } from '../model/session.ts';
import { type ClaimRules, grantedTo, groupsIn, noName, personName } from '../rules/identity.ts';
import { hasRight, requireRight } from '../rules/rights.ts';
import { type Caller, callerOfPerson, provenanceOf } from '../service/authentication.ts';
import { auditRecord } from '../service/trail.ts';
import type { SessionAccess, StoredSession } from '../store/sessions.ts';
import type { Store } from '../store/store.ts';
import { keepPerson, refusedSince, suspendedAs, tenantOf } from './people.ts';
import { type Provider, providerUnavailable, type SignedIn } from './provider.ts';
import type { Seal } from './seal.ts';

/** How long sessions last. */
export interface SessionTimes {
  readonly hours: number;
  readonly idleMinutes: number;
}

interface SessionDependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly random: RandomSource;
  readonly provider: Provider;
  readonly rules: ClaimRules;
  readonly times: SessionTimes;
  readonly seal: Seal;
  /** Reports a failure that no request waits for. */
  readonly failed: (error: unknown) => void;
}

/** The tokens of the provider that a session keeps, encrypted. */
interface Kept {
  readonly refreshToken: string | undefined;
  readonly idToken: string | undefined;
}

/** A session that goes on. */
interface OpenSession extends SessionAccess {
  readonly kept: Kept;
}

const minuteMs = 60_000;

/** From which age on the provider is asked again in the background, and from which a request waits for it, in milliseconds. */
const checkFromMs = 10 * minuteMs;
const checkBeforeMs = 15 * minuteMs;

/** How long an instance has for asking, before another one asks, in milliseconds. */
const checkingMs = 30_000;

/** How long a session lasts whose person can't be asked for again, in milliseconds. */
const unaskedMs = 60 * minuteMs;

/** How often it is noted that a session is in use, in milliseconds. */
const seenEveryMs = minuteMs;

/** How many logout tokens are remembered. */
const maxReceived = 1000;

/** The random bytes of a session's token. */
const tokenBytes = 32;

const hashOf = (token: string): string => hash('sha256', token);
const purpose = (id: string): string => `session ${id}`;

/** A sentence for a person who may not sign in. */
const refused = (sentence: string) => new ServiceError('FORBIDDEN', sentence);

/** Sessions of people who signed in. */
export class Sessions {
  readonly #parts: SessionDependencies;
  readonly #checking = new Map<string, Promise<boolean>>();
  /** When logout tokens came for the first time, by their ids: a token that is sent again ends no session that began later. */
  readonly #received = new LRUCache<string, Date>({ max: maxReceived });

  constructor(parts: SessionDependencies) {
    this.#parts = parts;
  }

  /** Begins a session for a person whom the provider let in; returns its token, and when it ends. @throws ServiceError 403 with a sentence for the person */
  async begin({ claims, refreshToken, idToken, providerSession }: SignedIn): Promise<{ token: string; expires: Date }> {
    const { store, clock, newId, random, provider, rules, times, seal } = this.#parts;
    const name = personName(claims, rules);
    if (name === undefined) throw refused(noName(rules));
    const tenant = await tenantOf(store, claims, rules);
    if (typeof tenant === 'string') throw refused(tenant);
    const person = { subject: String(claims.sub), issuer: provider.issuer, name };
    const groups = groupsIn(claims, rules);
    const now = clock();
    const refusal = await keepPerson(store, tenant.number, { person, groups, named: now }, now);
    if (refusal !== undefined) throw refused(refusal);
    const bytes = Buffer.alloc(tokenBytes);
    random(bytes);
    const token = `${tenant.id}.${bytes.toString('base64url')}`;
    const lasts = times.hours * 60 * minuteMs;
    const expires = new Date(now.getTime() + (refreshToken === undefined ? Math.min(lasts, unaskedMs) : lasts));
    const id = newId(now);
    const at = now.toISOString();
    const session: StoredSession = {
      ...{ id, token_hash: hashOf(token), name_key: nameKey(name), ...person, groups },
      ...{ provider_session: providerSession ?? null, created_at: at, last_seen_at: at, expires_at: expires.toISOString() },
      ...{
        checked_at: at,
        checking_until: null,
        sealed: seal.close({ refreshToken, idToken } satisfies Kept, purpose(id)),
        ended_at: null,
      },
    };
    const caller = callerOfPerson(tenant, person, groups, rules);
    await store.whole(tenant.number).commit({
      people: [session.name_key],
      work({ people, sessions, trail }) {
        const refusedNow = refusedSince(people.get(session.name_key), person);
        if (refusedNow !== undefined) throw refused(refusedNow);
        sessions.insert(session);
        trail.audit(auditRecord(caller, 'session', 'created', { session_id: id }), provenanceOf(caller, now));
      },
    });
    return { token, expires };
  }

  /** The caller with this token; undefined: there is no such session any more. @throws ServiceError 503 while the provider does not say whether the person is still there */
  async callerOf(token: string): Promise<Caller | undefined> {
    const session = await this.#open(token);
    if (session === undefined || (await this.#isSuspended(session))) return undefined;
    const { clock, failed } = this.#parts;
    const now = clock().getTime();
    const { refreshToken } = session.kept;
    const age = now - Date.parse(session.checked_at);
    if (refreshToken !== undefined && age >= checkFromMs) {
      const checking = this.#check(session, refreshToken);
      if (age >= checkBeforeMs) return (await checking) ? this.callerOf(token) : undefined;
      checking.catch(failed);
    }
    if (now - Date.parse(session.last_seen_at) >= seenEveryMs) await this.#seen(session);
    return this.#callerWith(session);
  }

  #callerWith(session: SessionAccess): Caller {
    const {
      name,
      subject,
      issuer,
      groups,
      tenant_id: id,
      tenant_number: number,
      tenant_tier: tier,
      handoffs_per_day,
      requests_per_hour,
    } = session;
    const tenant = { id, number, tier, handoffs_per_day, requests_per_hour };
    const caller = callerOfPerson(tenant, { subject, issuer, name }, groups, this.#parts.rules);
    return { ...caller, ends: Date.parse(session.expires_at), credential: session.token_hash };
  }

  async #open(token: string): Promise<OpenSession | undefined> {
    const { store, clock, times } = this.#parts;
    const tenant = token.split('.', 1)[0]!;
    if (!isId(tenant) || token.length > 200) return undefined;
    const session = await store.sessions.byHash(tenant, hashOf(token));
    if (session === undefined) return undefined;
    const now = clock().getTime();
    const isIdle = now - Date.parse(session.last_seen_at) >= times.idleMinutes * minuteMs;
    if (isIdle || Date.parse(session.expires_at) <= now) return undefined;
    const kept = this.#kept(session);
    if (kept !== undefined) return { ...session, kept };
    await this.#end(session.tenant_number, [session.id], 'another SERVICE_SESSION_KEY');
    return undefined;
  }

  /** Whether the person is suspended, also under another name than that of the session. */
  async #isSuspended({ tenant_number, subject, issuer }: SessionAccess): Promise<boolean> {
    return (await suspendedAs(this.#parts.store, tenant_number, { subject, issuer })) !== undefined;
  }

  /** The tokens that a session keeps; undefined: another key encrypted them, so nobody can ask the provider for the person again. */
  #kept({ id, sealed }: Pick<StoredSession, 'id' | 'sealed'>): Kept | undefined {
    return sealed === null ? undefined : this.#parts.seal.open<Kept>(sealed, purpose(id));
  }

  #seen({ id, tenant_number }: SessionAccess): Promise<void> {
    const { store, clock } = this.#parts;
    const last_seen_at = clock().toISOString();
    return store.whole(tenant_number).commit({
      sessions: [id],
      work({ sessions }) {
        const stored = sessions.get(id);
        if (stored !== undefined && stored.ended_at === null) sessions.save(id, { ...stored, last_seen_at });
      },
    });
  }

  /** Asks the provider for the person again; false: the session has ended. One request of one instance asks at a time. */
  #check(session: OpenSession, refreshToken: string): Promise<boolean> {
    const checking = this.#checking.get(session.id) ?? this.#ask(session, refreshToken).finally(() => this.#checking.delete(session.id));
    this.#checking.set(session.id, checking);
    return checking;
  }

  async #ask(session: OpenSession, refreshToken: string): Promise<boolean> {
    const { store, clock, provider, seal } = this.#parts;
    const { id, tenant_number, checked_at } = session;
    const own = store.whole(tenant_number);
    const begun = clock();
    const turn = await own.commit({
      sessions: [id],
      work({ sessions }) {
        const stored = sessions.get(id);
        if (stored === undefined || stored.ended_at !== null) return 'ended';
        if (stored.checked_at !== checked_at) return 'done';
        if (stored.checking_until !== null && Date.parse(stored.checking_until) > begun.getTime()) return 'busy';
        sessions.save(id, { ...stored, checking_until: new Date(begun.getTime() + checkingMs).toISOString() });
        return 'ours';
      },
    });
    if (turn === 'ended') return false;
    if (turn === 'done') return true;
    if (turn === 'busy') throw providerUnavailable();
    let found: SignedIn | undefined;
    try {
      found = await provider.refresh(refreshToken, session.subject);
    } catch (error) {
      await this.#save(session, { checking_until: null });
      throw error;
    }
    if (found === undefined) await this.#removed(session);
    const groups = found && (await this.#stillThere(session, found));
    if (found === undefined || groups === undefined) {
      await this.#end(tenant_number, [id], 'the identity provider');
      return false;
    }
    const kept: Kept = { refreshToken: found.refreshToken, idToken: found.idToken ?? session.kept.idToken };
    const sealed = seal.close(kept, purpose(id));
    await this.#save(session, { groups, sealed, checked_at: clock().toISOString(), checking_until: null });
    return true;
  }

  /**
   * Takes the groups from a person whom the provider no longer lets in, and ends the person's links: without another session that the
   * provider has confirmed lately nobody would ask again. The next sign-in brings the groups back.
   */
  #removed({ id, name_key, subject, tenant_number }: SessionAccess): Promise<void> {
    const { store, clock } = this.#parts;
    const now = clock();
    const isThere = (other: StoredSession) =>
      other.id !== id && Date.parse(other.expires_at) > now.getTime() && now.getTime() - Date.parse(other.checked_at) < checkBeforeMs;
    return store.whole(tenant_number).commit({
      people: [name_key],
      sessionsOf: [name_key],
      work({ people, sessions }) {
        const person = people.get(name_key)!;
        if (person.subject !== subject || sessions.ofPerson(name_key).some(isThere)) return;
        people.put({ ...person, groups: [], links_end_at: now.toISOString() });
      },
    });
  }

  /** The groups of the person now; undefined: the session is somebody else's now, or of another tenant. */
  async #stillThere(
    { name, subject, issuer, tenant_id, tenant_number, created_at }: SessionAccess,
    { claims }: SignedIn,
  ): Promise<string[] | undefined> {
    const { store, rules, clock } = this.#parts;
    const tenant = await tenantOf(store, claims, rules);
    if (typeof tenant === 'string' || tenant.id !== tenant_id || personName(claims, rules) !== name) return undefined;
    const groups = groupsIn(claims, rules);
    const refusal = await keepPerson(
      store,
      tenant_number,
      { person: { subject, issuer, name }, groups, named: new Date(created_at) },
      clock(),
    );
    return refusal === undefined ? groups : undefined;
  }

  #save({ id, tenant_number }: SessionAccess, change: Partial<StoredSession>): Promise<void> {
    return this.#parts.store.whole(tenant_number).commit({
      sessions: [id],
      work({ sessions }) {
        const stored = sessions.get(id);
        if (stored !== undefined && stored.ended_at === null) sessions.save(id, { ...stored, ...change });
      },
    });
  }

  /** Whether the session of a caller is still open, and its person has all rights that the caller had. */
  async isValid({ tenant_id, credential = '', scopes, admin }: Caller): Promise<boolean> {
    const { store, clock, times, rules } = this.#parts;
    const session = await store.sessions.byHash(tenant_id, credential);
    const kept = session && this.#kept(session);
    if (session === undefined || kept === undefined || (await this.#isSuspended(session))) return false;
    const granted = grantedTo(session.groups, rules);
    // A stream judges its caller once, when it is opened; it is opened again with the rights that are left.
    const isLess = admin ? !granted.admin : !scopes?.every((scope) => granted.scopes.includes(scope));
    if (isLess) return false;
    const now = clock().getTime();
    // Whoever listens is not idle, but has to be known to the provider.
    const isChecked = kept.refreshToken === undefined || now - Date.parse(session.checked_at) < checkBeforeMs + checkingMs;
    if (isChecked && now - Date.parse(session.last_seen_at) >= Math.min(seenEveryMs, times.idleMinutes * minuteMs))
      await this.#seen(session);
    return isChecked && Date.parse(session.expires_at) > now;
  }

  /** Ends the session with this token; returns where the browser goes to end that of the provider, if there is such a place. */
  async end(token: string): Promise<string | undefined> {
    const session = await this.#endOpen(token, 'signing out');
    return session && this.#parts.provider.endSession(session.kept.idToken);
  }

  /** Ends the session with this token, whose browser has begun another one. */
  async endEarlier(token: string): Promise<void> {
    await this.#endOpen(token, 'another sign-in');
  }

  async #endOpen(token: string, endedBy: string): Promise<OpenSession | undefined> {
    const session = await this.#open(token);
    if (session !== undefined) await this.#end(session.tenant_number, [session.id], endedBy);
    return session;
  }

  /** Ends the sessions that a logout token names; false: it is none. */
  async endByProvider(logoutToken: string): Promise<boolean> {
    const { provider, store, clock } = this.#parts;
    const named = await provider.loggedOut(logoutToken);
    if (named === undefined) return false;
    const { subject, providerSession, tokenId } = named;
    const now = clock();
    // The first time without a bound: the clocks of the provider and of the instance that began a session may differ from ours.
    const begunBefore = this.#received.get(tokenId);
    const by = providerSession === undefined ? { subject: subject!, begunBefore } : { provider_session: providerSession };
    const open = await store.sessions.ofProvider(provider.issuer, by);
    for (const [tenant, own] of Map.groupBy(open, (session) => session.tenant))
      await this.#end(
        tenant,
        own.map(({ id }) => id),
        'the identity provider',
      );
    if (begunBefore === undefined) this.#received.set(tokenId, now);
    return true;
  }

  #end(tenant: number, ids: readonly string[], ended_by: string, by?: Caller): Promise<void> {
    const now = this.#parts.clock();
    return this.#parts.store.whole(tenant).commit({
      sessions: ids,
      work({ sessions, trail }) {
        for (const id of ids) {
          const stored = sessions.get(id);
          if (stored === undefined || stored.ended_at !== null) continue;
          sessions.end(stored, now);
          const details = { session_id: id, name: stored.name, ended_by };
          if (by !== undefined) trail.audit(auditRecord(by, 'session', 'deleted', details), provenanceOf(by, now));
          else trail.audit({ event_type: 'deleted', resource: 'session', actor: `human:${stored.name}`, details }, { now, keyId: null });
        }
      },
    });
  }

  /** The open sessions that a caller may see: the own ones, and with the right to manage those of the tenant. @throws ServiceError 403 */
  async list(caller: Caller): Promise<Session[]> {
    const { store, clock, times } = this.#parts;
    const now = clock();
    const open = await store.of(caller).sessions.list(now, this.#seenBy(caller));
    const isInUse = ({ last_seen_at }: StoredSession) => now.getTime() - Date.parse(last_seen_at) < times.idleMinutes * minuteMs;
    return open.filter(isInUse).map(({ id, name, created_at, last_seen_at, expires_at, token_hash }) => {
      const current = caller.kind === 'session' && token_hash === caller.credential;
      return { id, person: name, created_at, last_seen_at, expires_at, current };
    });
  }

  /** Ends a session that the caller may see. @throws ServiceError 403, 404 */
  async remove(caller: Caller, id: string): Promise<void> {
    const { store, clock } = this.#parts;
    const open = await store.of(caller).sessions.list(clock(), this.#seenBy(caller));
    if (!open.some((session) => session.id === id)) throw notFound('session');
    await this.#end(caller.tenant_number, [id], 'a request', caller);
  }

  /** Whose sessions a caller sees, in the form in which names are compared; undefined: everybody's. @throws ServiceError 403 */
  #seenBy(caller: Caller): string | undefined {
    if (hasRight(caller, { access: 'manage' })) return undefined;
    if (caller.kind !== 'session') requireRight(caller, { access: 'manage' });
    return nameKey(caller.name);
  }
}
