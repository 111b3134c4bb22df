import { conflict, invalid, notFound, ServiceError } from '../../kit/errors.ts';
import type { RandomSource } from '../../kit/id.ts';
import { isId } from '../../kit/uuid.ts';
import { scopes as allScopes, defaultScopes } from '../model/common.ts';
import type { ApiKey, KeyRequest, NewApiKey, OwnKey } from '../model/key.ts';
import { isSamePerson, nameKey } from '../model/people.ts';
import type { Tenant } from '../model/tenant.ts';
import { type Lineage, lineageFrom } from '../rules/exclusion.ts';
import { hashOf, keyBytes, keyFrom, looksLikeKey, prefixOf } from '../rules/keys.ts';
import { makesFor, type Rights, requireLasting, requireWithin } from '../rules/rights.ts';
import { defaultMaxKeys, isAbove } from '../rules/tiers.ts';
import type { Idempotency } from '../store/idempotency.ts';
import { type KeyToStore, type StoredKey, seenAs } from '../store/keys.ts';
import { type Caller, createAuthenticator, familyOf, provenanceOf } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { personLeft } from './people.ts';
import { auditRecord } from './trail.ts';

/** The admin key that a start created, and whether it ignored the one in the settings. */
export interface Bootstrap {
  /** The new admin key, to be shown once. */
  readonly createdKey?: string;
  /** Whether the settings name an admin key that is not in the database. */
  readonly unusedKey?: boolean;
}

/** The tenant created in an empty database. Its id is fixed, so that instances that start at the same time create the same tenant. */
export const defaultTenantId = '00000000-0000-7000-8000-000000000001';

interface KeyServiceDependencies extends ServiceDependencies {
  random: RandomSource;
  /** Called when a request finds that a key, a tenant or a contract has changed, before it is admitted. */
  onChange?: () => void;
}

/** Authentication, and the management of keys. */
export function createKeyService({ store, clock, newId, random, onChange }: KeyServiceDependencies) {
  const { keys: keyStore, tenants: tenantStore } = store;
  function newKey(): string {
    const bytes = Buffer.alloc(keyBytes);
    random(bytes);
    return keyFrom(bytes);
  }

  return {
    ...createAuthenticator(store, clock, onChange),

    /** Whether a value is or was a key, revoked ones included. */
    wasKey: async (value: string): Promise<boolean> => looksLikeKey(value) && (await keyStore.isKnown(hashOf(value))),

    /** The caller of a request without a key in development mode: the tenant `default`, with a key id that matches no key. */
    async defaultCaller(): Promise<Caller> {
      const { number, tier, handoffs_per_day, requests_per_hour } = await tenantStore.withNumber(defaultTenantId);
      return {
        kind: 'key',
        key_id: defaultTenantId,
        origin: defaultTenantId,
        name: 'development',
        tier,
        admin: false,
        tenant_id: defaultTenantId,
        tenant_number: number,
        tenant_tier: tier,
        handoffs_per_day,
        requests_per_hour,
        lineage: [],
      };
    },

    /**
     * Creates the tenant `default` and an admin key in an empty database, and a new admin key in a database without any
     * valid one.
     */
    async bootstrap(adminKey: string | undefined): Promise<Bootstrap> {
      const now = clock();
      const at = now.toISOString();
      const tenant: Tenant = {
        id: defaultTenantId,
        name: 'default',
        tier: 'business',
        handoffs_per_day: null,
        requests_per_hour: null,
        retention_days: null,
        max_api_keys: defaultMaxKeys.business,
        created_at: at,
        updated_at: at,
        deleted_at: null,
      };
      const first = { name: 'first admin key', admin: true };
      const bootstrapWith = (key: string) => keyStore.bootstrap(tenant, keyOf(first, tenant, { id: newId(now), key, now }), now);
      const createdKey = newKey();
      if (adminKey === undefined) return (await bootstrapWith(createdKey)) ? { createdKey } : {};
      try {
        if (await bootstrapWith(adminKey)) return {};
      } catch (error) {
        if (!keyStore.isDuplicate(error)) throw error;
        // The key in the settings was revoked and stays revoked; a new one replaces it.
        if (await bootstrapWith(createdKey)) return { createdKey };
      }
      const found = await keyStore.byHash(hashOf(adminKey));
      return { unusedKey: found?.admin !== 1 || hasEnded(found, now) };
    },

    /**
     * Creates an admin key for the tenant `default`, whether it has one or not, and returns it. The audit log names the
     * service as the actor.
     */
    async makeAdminKey(): Promise<string> {
      const key = newKey();
      const at = { now: clock(), keyId: null };
      const { number } = await tenantStore.withNumber(defaultTenantId);
      await store.whole(number).commit({
        tenantId: defaultTenantId,
        work({ tenants, keys, trail }) {
          const { tenant } = tenants.get(defaultTenantId)!;
          const stored = keyOf({ name: 'admin key made at the database', admin: true }, tenant, { id: newId(at.now), key, now: at.now });
          const { id, name, tier, admin } = stored;
          keys.add(stored);
          trail.audit(
            { event_type: 'created', resource: 'api_key', actor: 'system:admin-key', details: { key_id: id, name, tier, admin } },
            at,
          );
        },
      });
      return key;
    },

    async createKey(caller: Caller, request: KeyRequest, idempotency?: Idempotency): Promise<NewApiKey> {
      if (!caller.admin && request.admin === true)
        throw new ServiceError('FORBIDDEN', 'Only an admin key may create an admin key.', { field: 'admin' });
      if (!caller.admin && request.tenant_id !== undefined)
        throw new ServiceError('FORBIDDEN', 'Only an admin key may create a key for another tenant.', { field: 'tenant_id' });
      requireLasting(caller);
      const rights = rightsOf(caller, request);
      const tenantId = request.tenant_id?.toLowerCase() ?? caller.tenant_id;
      const at = provenanceOf(caller, clock());
      const key = newKey();
      return store.of(caller).commit({
        tenantId,
        idempotencyKey: idempotency?.key,
        work(transaction) {
          const { tenants, keys, idempotency: answers } = transaction;
          if (answers.repeated(idempotency) !== undefined) throw new Error('An answer with an API key was stored.');
          const found = tenants.get(tenantId);
          if (found === undefined) throw notFound('tenant');
          const lineage = lineageOf(caller);
          const stored = { ...keyOf(request, found.tenant, { id: newId(at.now), key, now: at.now }), ...rights, lineage };
          // A rotated key and its replacement count as one.
          requireFewerKeys(keys.ofTenant(tenantId).filter(({ expires_at }) => expires_at === null).length, found.tenant);
          const { id, name, tier, admin } = stored;
          keys.add(stored);
          const record = auditRecord(caller, 'api_key', 'created', { key_id: id, name, tier, admin, ...restrictions(rights) });
          transaction.trailOf(found.number).audit(record, at);
          // The answer contains the key, so its body is not stored.
          if (idempotency !== undefined) answers.remember(idempotency, { status: 201, body: null, etag: null }, at.now);
          return shownOnce(stored, key);
        },
      });
    },

    /** Creates a key that replaces another one, which expires after the overlap. */
    async rotateKey(caller: Caller, id: string, overlapSeconds: number, idempotency?: Idempotency): Promise<NewApiKey> {
      if (!isId(id)) throw notFound('API key');
      requireLasting(caller);
      const at = provenanceOf(caller, clock());
      const key = newKey();
      return store.of(caller).commit({
        tenantId: caller.tenant_id,
        keyId: id,
        idempotencyKey: idempotency?.key,
        work({ tenants, keys, idempotency: answers, trail }) {
          if (answers.repeated(idempotency) !== undefined) throw new Error('An answer with an API key was stored.');
          const tenant = tenants.get(caller.tenant_id)?.tenant;
          const old = keys.get(id);
          if (tenant === undefined || old === undefined || old.tenant_id !== caller.tenant_id || hasEnded(old, at.now))
            throw notFound('API key');
          if (old.admin && !caller.admin) throw new ServiceError('FORBIDDEN', 'Only an admin key may rotate an admin key.');
          requireWithin(caller, old);
          if (old.expires_at !== null)
            throw conflict(`The key has already been rotated and expires at ${old.expires_at}. Rotate the key that replaced it.`);
          const { name, admin } = old;
          const fresh = keyOf({ name, admin }, tenant, { id: newId(at.now), key, now: at.now });
          const { scopes, agents, responder, queues, lineage, tier, rotated_from } = old;
          const stored: KeyToStore = { ...fresh, tier, rotated_from: rotated_from ?? id, scopes, agents, responder, queues, lineage };
          const expires_at = new Date(at.now.getTime() + overlapSeconds * 1000).toISOString();
          keys.add(stored);
          keys.end(id, expires_at);
          trail.audit(auditRecord(caller, 'api_key', 'rotated', { key_id: id, name, new_key_id: stored.id, expires_at }), at);
          if (idempotency !== undefined) answers.remember(idempotency, { status: 201, body: null, etag: null }, at.now);
          return shownOnce(stored, key);
        },
      });
    },

    async revokeKey(caller: Caller, id: string): Promise<void> {
      if (!isId(id)) throw notFound('API key');
      const found = await keyStore.tenantOf(id);
      if (found === undefined || (!caller.admin && found.tenant_id !== caller.tenant_id)) throw notFound('API key');
      const at = provenanceOf(caller, clock());
      await store.whole(found.number).commit({
        keyId: id,
        tenantId: found.tenant_id,
        ...(found.responder === null ? {} : { people: [nameKey(found.responder)] }),
        work(transaction) {
          const { keys, trail } = transaction;
          const key = keys.get(id);
          if (key === undefined || hasEnded(key, at.now)) throw notFound('API key');
          if (key.admin && !caller.admin) throw new ServiceError('FORBIDDEN', 'Only an admin key may revoke an admin key.');
          requireWithin(caller, key);
          keys.revoke(id, at.now);
          const { responder } = key;
          const isOfPerson = (other: StoredKey) =>
            other.responder !== null && !hasEnded(other, at.now) && isSamePerson(other.responder, responder!);
          if (responder !== null && !keys.ofTenant(key.tenant_id).some(isOfPerson)) personLeft(transaction, responder, at.now);
          trail.audit(auditRecord(caller, 'api_key', 'deleted', { key_id: id, name: key.name }), at);
        },
      });
    },

    async keysOfTenant(id: string): Promise<ApiKey[]> {
      if (!isId(id)) throw notFound('tenant');
      await tenantStore.find(id);
      return keyStore.of(id, clock());
    },

    /** The caller's own key, with its tenant. */
    async ownKey(caller: Caller): Promise<OwnKey> {
      const [keys, { id, name, tier }] = await Promise.all([keyStore.of(caller.tenant_id, clock()), tenantStore.find(caller.tenant_id)]);
      if (caller.kind !== 'key') return { ...shownCaller(caller), tenant: { id, name, tier } };
      const own = keys.find((key) => key.id === caller.key_id);
      // It was revoked since it was admitted.
      if (own === undefined) throw new ServiceError('UNAUTHORIZED', 'The API key is not valid.');
      return { kind: 'key', ...own, tenant: { id, name, tier } };
    },

    /** The keys of the caller's tenant; for a key that sees its own, only that key. */
    async keysOf({ tenant_id, key_id, sight }: Caller): Promise<ApiKey[]> {
      const keys = await keyStore.of(tenant_id, clock());
      return sight === undefined ? keys : keys.filter(({ id }) => id === key_id);
    },
  };
}

export type KeyService = ReturnType<typeof createKeyService>;

type StoredRights = Pick<KeyToStore, 'scopes' | 'agents' | 'responder' | 'queues'>;
const unrestricted: StoredRights = { scopes: null, agents: null, responder: null, queues: null };

/** The rights of a requested key: those of its creator, unless the request has fewer. @throws ServiceError 403 when it has more */
function rightsOf(caller: Caller, request: KeyRequest): StoredRights {
  const { scopes, agents, responder, sees, queues, admin } = request;
  if (admin === true) {
    const field = (['scopes', 'agents', 'responder', 'sees', 'queues'] as const).find((name) => request[name] !== undefined);
    if (field !== undefined) throw invalid(field, `An admin key has all rights: leave ${field} out.`);
    return unrestricted;
  }
  const rights = {
    scopes:
      scopes === undefined
        ? (caller.scopes?.filter((scope) => scope !== 'erase') ?? null)
        : allScopes.filter((scope) => scopes.includes(scope)),
    agents: agents ?? caller.agents ?? null,
    responder: responder ?? makesFor(caller),
    queues: null,
  };
  requireWithin(caller, rights);
  if (sees !== 'own') {
    if (queues !== undefined) throw invalid('queues', 'queues needs sees: own; a key that sees all has no queues.');
    return rights;
  }
  if (rights.agents === null) throw invalid('agents', 'A key that sees its own needs agents.');
  if (scopes?.includes('manage')) throw invalid('scopes', "A key that sees its own can't have the scope manage.");
  const granted = (rights.scopes ?? defaultScopes).filter((scope) => scope !== 'manage');
  if (granted.length === 0)
    throw invalid('scopes', "A key that sees its own needs another scope than manage, which is the creating key's only one.");
  return { ...rights, scopes: granted, queues: queues ?? rights.agents };
}

/** How many keys may have been created one by the other. */
const maxLineage = 32;

/** The keys through which a caller creates a key: itself, and those through which it was created. @throws ServiceError 409 */
function lineageOf(caller: Caller): Lineage {
  const lineage = lineageFrom(familyOf(caller), caller);
  if (lineage.length > maxLineage)
    throw conflict(`The key was created through ${maxLineage} others, the maximum; create the new one with an earlier key.`);
  return lineage;
}

/** The restrictions of a key, for the audit log. */
const restrictions = (rights: Rights) => Object.fromEntries(Object.entries(rights).filter(([, value]) => value !== null));

/** The key to store for a request. */
function keyOf(request: KeyRequest, tenant: Tenant, { id, key, now }: { id: string; key: string; now: Date }): KeyToStore {
  const { name, tier = tenant.tier, admin = false } = request;
  if (isAbove(tier, tenant.tier)) throw invalid('tier', `tier can't be above the tenant's tier, ${tenant.tier}.`);
  return {
    id,
    tenant_id: tenant.id,
    name,
    tier,
    admin,
    prefix: prefixOf(key),
    hash: hashOf(key),
    created_at: now.toISOString(),
    expires_at: null,
    rotated_from: null,
    lineage: null,
    ...unrestricted,
  };
}

/** A caller without a key, in the form of a key. */
function shownCaller({ kind, name, tier, admin, scopes, agents, responder, queues, ends }: Caller): Omit<OwnKey, 'tenant'> {
  const rights = { scopes: [...(scopes ?? defaultScopes)], agents: agents ? [...agents] : null, responder: responder ?? null };
  const expires_at = ends === undefined ? null : new Date(ends).toISOString();
  return {
    kind: kind === 'session' ? 'session' : 'token',
    id: null,
    name,
    tier,
    prefix: null,
    admin,
    created_at: null,
    expires_at,
    ...rights,
    ...seenAs(queues ?? null),
  };
}

/** The answer that shows a new key with its value. */
function shownOnce({ id, name, tier, prefix, admin, created_at, expires_at, ...rights }: KeyToStore, key: string): NewApiKey {
  const { scopes, agents, responder, queues } = rights;
  const shown = { scopes: [...(scopes ?? defaultScopes)], agents: agents && [...agents], responder, ...seenAs(queues) };
  return { id, key, name, tier, prefix, admin, created_at, expires_at, ...shown };
}

/** Whether a rotated key has expired. */
function hasEnded({ expires_at }: Pick<StoredKey, 'expires_at'>, now: Date): boolean {
  return expires_at !== null && Date.parse(expires_at) <= now.getTime();
}

function requireFewerKeys(count: number, { max_api_keys }: Tenant): void {
  if (count >= max_api_keys) throw conflict(`The tenant has ${count} of at most ${max_api_keys} API keys; delete one first.`);
}
