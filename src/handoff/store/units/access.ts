import type { Row } from '../../../kit/sql/dialect.ts';
import type { Tenant } from '../../model/access.ts';
import type { Tier } from '../../model/common.ts';
import type { EventTransaction } from './events.ts';
import type { Group, Kind } from './transaction.ts';

/** The tenants and keys that a unit needs. */
export interface AccessNeeds {
  /** The id of a tenant to lock; its keys are read under the lock. */
  readonly tenantId?: string;
  /** The id of a key to lock. */
  readonly keyId?: string;
  /** Whether the unit creates a tenant, which needs a number. */
  readonly newTenant?: boolean;
}

/** A key to be stored. */
export interface KeyToStore {
  id: string;
  tenant_id: string;
  name: string;
  tier: Tier;
  admin: boolean;
  prefix: string;
  hash: string;
  created_at: string;
  expires_at: string | null;
  /** The first of the keys whose place it took; null: it took none's. */
  rotated_from: string | null;
}

/** A stored key that is not revoked. */
export interface StoredKey {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly tier: Tier;
  readonly admin: boolean;
  /** When it expires or has expired, after a rotation; null: never. */
  readonly expires_at: string | null;
  /** The first of the keys whose place it took; null: it took none's. */
  readonly rotated_from: string | null;
}

/** A tenant that is not deleted, with its number. */
export interface StoredTenant {
  readonly number: number;
  readonly tenant: Tenant;
  /** Whether `max_api_keys` was set explicitly; until then it follows the tier. */
  readonly maxKeysSet: boolean;
}

const tenantColumns = ['id', 'name', 'tier', 'handoffs_per_day', 'max_api_keys', 'created_at', 'updated_at', 'deleted_at'] as const;
const keyColumns = ['id', 'tenant_id', 'name', 'tier', 'admin', 'expires_at', 'rotated_from'] as const;

/** The tenants and keys that the units of a group read and change. They may be of any tenant, since an admin works on all. */
export class AccessTransaction {
  readonly tenants = new Map<string, StoredTenant>();
  readonly keys = new Map<string, StoredKey>();
  readonly numbers: number[] = [];
  readonly addedTenants: Row[] = [];
  readonly changedTenants = new Map<string, Row>();
  readonly addedKeys: Row[] = [];
  readonly revokedKeys: Row[] = [];
  readonly endingKeys: Row[] = [];
  readonly #group: Group;

  constructor(group: Group) {
    this.#group = group;
  }

  /** The tenant that the unit names; undefined when it is unknown or deleted. */
  tenant(id: string): StoredTenant | undefined {
    return this.tenants.get(id);
  }

  /** The key that the unit names; undefined when it is unknown or revoked. */
  key(id: string): StoredKey | undefined {
    return this.keys.get(id);
  }

  /** The keys of the tenant that the unit names. */
  keysOf(tenantId: string): StoredKey[] {
    return [...this.keys.values()].filter(({ tenant_id }) => tenant_id === tenantId);
  }

  /** The trail of another tenant: what an admin does to a tenant is recorded in that tenant's trail. */
  trailOf(number: number): EventTransaction {
    return this.#group.of(number).events;
  }

  /** Adds a tenant; returns its number. */
  addTenant(tenant: Tenant, maxKeysSet: boolean): number {
    const number = this.numbers[this.addedTenants.length]!;
    this.#group.journal.push(this.addedTenants, { number, ...tenant, max_api_keys_set: maxKeysSet ? 1 : 0 });
    return number;
  }

  saveTenant(tenant: Tenant, maxKeysSet = this.tenants.get(tenant.id)!.maxKeysSet): void {
    const { number } = this.tenants.get(tenant.id)!;
    this.#group.journal.set(this.changedTenants, tenant.id, { ...tenant, max_api_keys_set: maxKeysSet ? 1 : 0 });
    if (tenant.deleted_at === null) this.#group.journal.set(this.tenants, tenant.id, { number, tenant, maxKeysSet });
    else this.#group.journal.delete(this.tenants, tenant.id);
  }

  addKey(key: KeyToStore): void {
    this.#group.journal.push(this.addedKeys, { ...key, admin: key.admin ? 1 : 0, revoked_at: null });
    this.#group.journal.set(this.keys, key.id, key);
  }

  /** Sets the expiry of a key. */
  endKey(id: string, expires_at: string): void {
    this.#group.journal.push(this.endingKeys, { id, expires_at });
    this.#group.journal.set(this.keys, id, { ...this.keys.get(id)!, expires_at });
  }

  revokeKey(id: string, now: Date): void {
    this.#group.journal.push(this.revokedKeys, { id, revoked_at: now.toISOString() });
    this.#group.journal.delete(this.keys, id);
  }
}

/** Tenants and their keys. A change makes every instance drop its cached keys. */
export const access: Kind = {
  async find(session, group) {
    const needs = group.units.flatMap(({ unit }) => unit.access ?? []);
    if (needs.length === 0) return;
    const own = group.access;
    const tenantIds = [...new Set(needs.flatMap(({ tenantId }) => tenantId ?? []))];
    const keyIds = [...new Set(needs.flatMap(({ keyId }) => keyId ?? []))];
    const count = needs.filter(({ newTenant }) => newTenant).length;
    const [tenants, named, theirs, numbers] = await Promise.all([
      session.find(
        'tenants',
        ['number', 'max_api_keys_set', ...tenantColumns],
        tenantIds.map((id) => ({ id })),
      ),
      session.find(
        'api_keys',
        [...keyColumns, 'revoked_at'],
        keyIds.map((id) => ({ id })),
      ),
      session.read(
        'api_keys',
        [...keyColumns, 'revoked_at'],
        tenantIds.map((tenant_id) => ({ tenant_id, revoked_at: null })),
      ),
      session.reserve('tenants', 'number', count),
    ]);
    for (const [number, maxKeysSet, ...values] of tenants) {
      const tenant = Object.fromEntries(tenantColumns.map((column, index) => [column, values[index]])) as unknown as Tenant;
      if (tenant.deleted_at === null) own.tenants.set(tenant.id, { number: number as number, tenant, maxKeysSet: maxKeysSet === 1 });
    }
    for (const [id, tenant_id, name, tier, admin, expires_at, rotated_from, revoked_at] of [...named, ...theirs]) {
      if (revoked_at !== null) continue;
      const key = { id, tenant_id, name, tier, admin: admin === 1, expires_at, rotated_from } as StoredKey;
      own.keys.set(key.id, key);
    }
    own.numbers.push(...numbers);
  },

  async flush(session, { access: own }) {
    await session.insert('tenants', own.addedTenants);
    await session.update('tenants', ['id'], [...own.changedTenants.values()]);
    await session.insert('api_keys', own.addedKeys);
    await session.update('api_keys', ['id'], own.revokedKeys);
    await session.update('api_keys', ['id'], own.endingKeys);
    const invalidates = own.changedTenants.size + own.revokedKeys.length + own.endingKeys.length > 0;
    if (invalidates) await session.add('versions', ['name'], 'value', [{ name: 'access', value: 1 }]);
  },
};
