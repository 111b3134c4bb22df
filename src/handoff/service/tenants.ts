import { conflict, notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/uuid.ts';
import type { Tenant, TenantPatch, TenantRequest } from '../model/tenant.ts';
import { defaultMaxKeys } from '../rules/tiers.ts';
import { type Caller, provenanceOf } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { defaultTenantId } from './keys.ts';
import { auditRecord } from './trail.ts';

/** The operations on tenants. */
export function createTenantService({ store, clock, newId }: ServiceDependencies) {
  return {
    list: () => store.tenants.list(),

    async create(caller: Caller, request: TenantRequest): Promise<Tenant> {
      const { name, tier = 'free', handoffs_per_day = null, requests_per_hour = null, retention_days = null, max_api_keys } = request;
      const now = clock();
      const created_at = now.toISOString();
      const maxKeys = max_api_keys ?? defaultMaxKeys[tier];
      const times = { created_at, updated_at: created_at, deleted_at: null };
      const tenant: Tenant = {
        id: newId(now),
        name,
        tier,
        handoffs_per_day,
        requests_per_hour,
        retention_days,
        max_api_keys: maxKeys,
        ...times,
      };
      return store.of(caller).commit({
        newTenant: true,
        work(transaction) {
          const number = transaction.tenants.add(tenant, max_api_keys !== undefined);
          transaction.trailOf(number).audit(auditRecord(caller, 'tenant', 'created', { name, tier }), provenanceOf(caller, now));
          return tenant;
        },
      });
    },

    async change(caller: Caller, id: string, patch: TenantPatch): Promise<Tenant> {
      if (!isId(id)) throw notFound('tenant');
      const at = provenanceOf(caller, clock());
      return store.of(caller).commit({
        tenantId: id,
        work(transaction) {
          const { tenants } = transaction;
          const found = tenants.get(id);
          if (found === undefined) throw notFound('tenant');
          const maxKeysSet = found.maxKeysSet || patch.max_api_keys !== undefined;
          const changed = { ...found.tenant, ...patch, updated_at: at.now.toISOString() };
          const tenant = maxKeysSet ? changed : { ...changed, max_api_keys: defaultMaxKeys[changed.tier] };
          tenants.save(id, { ...found, tenant, maxKeysSet });
          transaction.trailOf(found.number).audit(auditRecord(caller, 'tenant', 'updated', { fields: Object.keys(patch) }), at);
          return tenant;
        },
      });
    },

    async remove(caller: Caller, id: string): Promise<void> {
      if (!isId(id)) throw notFound('tenant');
      if (id === defaultTenantId) throw conflict("The tenant default can't be deleted.");
      const at = provenanceOf(caller, clock());
      const deleted_at = at.now.toISOString();
      await store.of(caller).commit({
        tenantId: id,
        work({ tenants, trail }) {
          const found = tenants.get(id);
          if (found === undefined) throw notFound('tenant');
          tenants.remove(id, { ...found, tenant: { ...found.tenant, updated_at: deleted_at, deleted_at } });
          // Noted in the caller's audit log: no key can read the deleted tenant's log.
          trail.audit(auditRecord(caller, 'tenant', 'deleted', { tenant_id: id, name: found.tenant.name }), at);
        },
      });
    },

    async find(id: string): Promise<Tenant> {
      if (!isId(id)) throw notFound('tenant');
      return store.tenants.find(id);
    },
  };
}

export type TenantService = ReturnType<typeof createTenantService>;
