import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

import type { Clock } from '../../kit/clock.ts';
import { nameKey } from '../model/people.ts';
import { personOrigin, subjectOrigin } from '../rules/exclusion.ts';
import { type ClaimRules, type Claims, grantedTo, groupsIn, holderOf, tokenRights } from '../rules/identity.ts';
import { sightOf } from '../rules/sight.ts';
import { type Caller, limitsOf } from '../service/authentication.ts';
import type { Store } from '../store/store.ts';
import { keepPerson, refusedAs, refusedSince, suspendedAs, tenantOf } from './people.ts';
import { type Provider, RefusedToken, requireAudience } from './provider.ts';

interface TokenDependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly provider: Provider;
  readonly rules: ClaimRules;
  /** The address of the service, without a slash at its end. */
  readonly publicUrl: string;
  /** Further audiences. */
  readonly audiences: readonly string[];
}

/** Where a token is sent: each of the two has an audience of its own. */
export type TokenPlace = 'api' | 'mcp';

/** How long what a token stands for is kept, in milliseconds, and for how many. */
const keptMs = 30_000;
const maxKept = 10_000;

/** How far the provider's clock may be from ours, in milliseconds. */
const leewayMs = 60_000;

/** What a caller came with. */
interface Held {
  readonly token: string;
  readonly place: TokenPlace;
  readonly subject: string | undefined;
}

/** What a token stands for. */
type Found = { readonly caller: Caller } | { readonly refusal: RefusedToken } | undefined;

/** A compact JWS: three parts in base64url, the first of which is a JSON object. */
const isJwt = (token: string): boolean => /^eyJ[\w-]*\.[\w-]+\.[\w-]*$/.test(token);

const refused = (sentence: string) => new RefusedToken('UNAUTHORIZED', sentence);

/** Callers with access tokens of the identity provider. */
export class Tokens {
  readonly #parts: TokenDependencies;
  /** What tokens stand for, by the hash of the token and its place; forgotten when a key, a tenant or a person changes. */
  readonly #kept = new LRUCache<string, { readonly found: Found; readonly until: number }>({ max: maxKept });
  readonly #looking = new Map<string, Promise<Found>>();
  /** The tokens of callers, of which some are streams that go on; gone with the caller. */
  readonly #held = new WeakMap<Caller, Held>();
  readonly #over = new WeakSet<Caller>();
  #version = -1;

  constructor(parts: TokenDependencies) {
    this.#parts = parts;
  }

  /** The audiences of tokens that are taken at a place. */
  audiencesAt(place: TokenPlace): readonly string[] {
    const { publicUrl, audiences } = this.#parts;
    return [place === 'mcp' ? `${publicUrl}/mcp` : publicUrl, ...audiences];
  }

  /**
   * The caller with this token; undefined: the provider has not signed it, or does not know it.
   * @param mayAsk whether the provider may be asked about an opaque token
   * @throws RefusedToken 401 for a token that is not taken here; ServiceError 503
   */
  async callerOf(token: string, place: TokenPlace, mayAsk: () => void): Promise<Caller | undefined> {
    const { store, clock } = this.#parts;
    const version = await store.keys.version();
    if (version !== this.#version) {
      this.#kept.clear();
      this.#version = version;
    }
    const id = hash('sha256', `${place} ${token}`);
    const now = clock().getTime();
    const kept = this.#kept.get(id);
    let found: Found;
    if (kept !== undefined && kept.until > now) found = kept.found;
    else {
      if (!isJwt(token)) mayAsk();
      found = await this.#lookUp(id, token, place);
      // What was read before a change of a key, a tenant or a person may be out of date.
      if (this.#version === version) this.#keep(id, found, now + keptMs);
    }
    if (found === undefined) return undefined;
    if ('refusal' in found) throw found.refusal;
    if (found.caller.ends! <= now) throw refused('The token has expired.');
    return found.caller;
  }

  #keep(id: string, found: Found, until: number): void {
    // A guess costs a verification each time: kept, guesses would push out what is used.
    if (found !== undefined) this.#kept.set(id, { found, until });
  }

  /** Requests that send the same token at once share a look-up. */
  #lookUp(id: string, token: string, place: TokenPlace): Promise<Found> {
    const looking = this.#looking.get(id) ?? this.#find(id, token, place).finally(() => this.#looking.delete(id));
    this.#looking.set(id, looking);
    return looking;
  }

  async #find(id: string, token: string, place: TokenPlace): Promise<Found> {
    try {
      const claims = await this.#claimsOf(token, place);
      if (claims === undefined) return undefined;
      const caller = await this.#callerWith(claims, id);
      this.#held.set(caller, { token, place, subject: holderOf(claims, this.#parts.rules).subject });
      return { caller };
    } catch (error) {
      if (error instanceof RefusedToken) return { refusal: error };
      throw error;
    }
  }

  async #claimsOf(token: string, place: TokenPlace): Promise<Claims | undefined> {
    const { provider, clock } = this.#parts;
    const audiences = this.audiencesAt(place);
    if (isJwt(token)) return provider.accessToken(token, audiences);
    if (!(await provider.introspects())) return undefined;
    const claims = await provider.introspected(token);
    if (claims === undefined) return undefined;
    requireAudience(claims, audiences);
    const now = clock().getTime();
    if (typeof claims.exp === 'number' && claims.exp * 1000 + leewayMs <= now) throw refused('The token has expired.');
    return claims;
  }

  async #callerWith(claims: Claims, id: string): Promise<Caller> {
    const { store, clock, provider, rules } = this.#parts;
    const tenant = await tenantOf(store, claims, rules);
    if (typeof tenant === 'string') throw refused(tenant);
    const { agent, subject, name, seesOwn } = holderOf(claims, rules);
    if (agent === undefined)
      throw refused(
        seesOwn ? 'The claim agent_id of the token is no name.' : 'The token names no agent: it has no claim client_id or azp.',
      );
    const groups = groupsIn(claims, rules);
    const granted = grantedTo(groups, rules).scopes;
    // Only a person answers, and what sees its own manages nothing, as for keys.
    const withheld: readonly string[] = [...(name === undefined ? ['respond'] : []), ...(seesOwn ? ['manage'] : [])];
    const grantable = granted.filter((scope) => !withheld.includes(scope));
    const sight = seesOwn ? { queues: [agent], sight: sightOf({ agents: [agent], queues: [agent] })! } : {};
    const held: readonly string[] = tokenRights(claims.scope ?? claims.scp);
    const ends = typeof claims.exp === 'number' ? claims.exp * 1000 + leewayMs : clock().getTime() + keptMs;
    const caller = {
      kind: 'token',
      ...{ ...limitsOf(tenant), admin: false, name: name ?? agent, ends, credential: `token:${id}` },
      ...{ scopes: grantable.filter((scope) => held.includes(scope)), grantable, agents: [agent], responder: name ?? null },
      ...sight,
    } as const satisfies Partial<Caller>;
    const person = name === undefined || subject === undefined ? undefined : { subject, issuer: provider.issuer, name };
    const named = new Date(typeof claims.iat === 'number' ? claims.iat * 1000 - leewayMs : 0);
    const refusal = await this.#refusalOf(tenant.number, subject, person && { person, groups, named });
    if (refusal !== undefined) throw refused(refusal);
    const source = subject === undefined ? {} : { subject: subjectOrigin({ subject, issuer: provider.issuer }) };
    if (person === undefined) return { ...caller, ...source, origin: `client:${agent}` };
    return { ...caller, ...source, origin: personOrigin(person.name), person };
  }

  /**
   * Why a person may not act, also a person whom the token does not name. The name becomes the person's with the first token, as with
   * the first sign-in.
   */
  async #refusalOf(
    tenant: number,
    subject: string | undefined,
    held: Parameters<typeof keepPerson>[2] | undefined,
  ): Promise<string | undefined> {
    const { store, clock } = this.#parts;
    const stored = held && (await store.whole(tenant).people.find(nameKey(held.person.name)));
    if (held !== undefined && !stored?.subject) return keepPerson(store, tenant, held, clock());
    return (held && refusedAs(stored, held.person)) ?? this.#suspendedAs(tenant, subject);
  }

  async #suspendedAs(tenant: number, subject: string | undefined): Promise<string | undefined> {
    const { store, provider } = this.#parts;
    return subject === undefined ? undefined : suspendedAs(store, tenant, { subject, issuer: provider.issuer });
  }

  /** Whether a token that was taken before is still valid. */
  async isValid(caller: Caller): Promise<boolean> {
    const { store, clock } = this.#parts;
    const { ends, tenant_id, tenant_number, person } = caller;
    const held = this.#held.get(caller);
    if (this.#over.has(caller) || (ends !== undefined && ends <= clock().getTime())) return false;
    if ((await store.tenants.matching(tenant_id)).length === 0) return false;
    const stored = person && (await store.whole(tenant_number).people.find(nameKey(person.name)));
    if (person !== undefined && refusedSince(stored, person) !== undefined) return false;
    if (held === undefined) return true;
    if (!isJwt(held.token)) this.#askAgain(caller, held);
    return (await this.#suspendedAs(tenant_number, held.subject)) === undefined;
  }

  /** Asks the provider again about an opaque token, which it may have revoked; nobody waits for the answer, and a provider that does not answer changes nothing. */
  #askAgain(caller: Caller, { token, place }: Held): void {
    const over = () => {
      this.#over.add(caller);
    };
    this.callerOf(token, place, () => undefined).then(
      (found) => {
        if (found === undefined || !caller.scopes?.every((scope) => found.scopes?.includes(scope))) over();
      },
      (error: unknown) => {
        if (error instanceof RefusedToken) over();
      },
    );
  }
}
