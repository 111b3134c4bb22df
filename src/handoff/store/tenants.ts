import { type Generated, sql } from 'kysely';
import { notFound } from '../../kit/errors.ts';
import type { Tier } from '../model/common.ts';
import type { Tenant } from '../model/tenant.ts';
import { noContent, noTenant, type Writes } from './engine/group.ts';
import { Table, TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies } from './noun.ts';

declare module './tables.ts' {
  interface Tables {
    tenants: {
      id: string;
      /** The tenant's key in the other tables and in the search index. */
      number: Generated<number>;
      name: string;
      tier: Tier;
      handoffs_per_day: number | null;
      requests_per_hour: number | null;
      /** How many days packets are kept after they ended; null: as the settings say, 0: for ever. */
      retention_days: number | null;
      max_api_keys: number;
      /** Whether `max_api_keys` was set explicitly, 1 or 0; until then it follows the tier. */
      max_api_keys_set: Generated<number>;
      created_at: string;
      updated_at: string;
      deleted_at: string | null;
    };
  }
}

/** The tenant that a unit needs. */
export interface TenantNeeds {
  /** The id of a tenant to lock; its keys are read under the lock. */
  readonly tenantId?: string;
  /** Whether the unit creates a tenant, which needs a number. */
  readonly newTenant?: boolean;
}

/** A tenant that is not deleted, with its number. */
interface StoredTenant {
  readonly number: number;
  readonly tenant: Tenant;
  /** Whether `max_api_keys` was set explicitly; until then it follows the tier. */
  readonly maxKeysSet: boolean;
}

const columns = [
  'id',
  'name',
  'tier',
  'handoffs_per_day',
  'requests_per_hour',
  'retention_days',
  'max_api_keys',
  'created_at',
  'updated_at',
  'deleted_at',
] as const;

const table = new Table<StoredTenant>({
  name: 'tenants',
  columns: ['number', 'max_api_keys_set', ...columns],
  key: 'number',
  decode: ({ number, max_api_keys_set, ...tenant }) => ({
    number: number as number,
    tenant: tenant as unknown as Tenant,
    maxKeysSet: max_api_keys_set === 1,
  }),
  encode: ({ number, tenant, maxKeysSet }) => ({ number, ...tenant, max_api_keys_set: maxKeysSet ? 1 : 0 }),
});

/** Tenants by id. A unit may change any tenant, since an admin works on all. */
export class TenantBuffer extends TableBuffer<string, StoredTenant> {
  readonly numbers: number[] = [];

  /** Adds a tenant; returns its number. */
  add(tenant: Tenant, maxKeysSet: boolean): number {
    const number = this.numbers[this.inserted.length]!;
    this.insert({ number, tenant, maxKeysSet });
    return number;
  }
}

/** Tenants. A change makes every instance drop its cached keys. */
const writes: Writes<TenantNeeds, TenantBuffer> = {
  needs: { tenantId: true, newTenant: true },
  stage: (_tenant, { journal }) => new TenantBuffer(journal),
  erase: noContent,

  async find(session, group) {
    const ids = new Set(group.units.flatMap(({ unit }) => unit.tenantId ?? []));
    const count = group.units.filter(({ unit }) => unit.newTenant).length;
    const keys = [...ids].map((id) => ({ id }));
    const [found, numbers] = await Promise.all([table.find(session, keys), session.reserve('tenants', 'number', count)]);
    const own = group.of(writes, noTenant);
    for (const { stored } of found) if (stored.tenant.deleted_at === null) own.found.set(stored.tenant.id, stored);
    own.numbers.push(...numbers);
  },

  flush(session, group) {
    table.flush(session, group, writes);
    if (group.of(writes, noTenant).changed.size > 0) session.add('versions', ['name'], 'value', [{ name: 'access', value: 1 }]);
  },
};

function reads({ database: { reads: db } }: ReadDependencies) {
  const ofAll = {
    /** The number and limits of an existing tenant. */
    withNumber: (id: string) =>
      db
        .selectFrom('tenants')
        .select(['number', 'tier', 'handoffs_per_day', 'requests_per_hour'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow(),

    /** An existing tenant, by its number. */
    numbered: (number: number) =>
      db
        .selectFrom('tenants')
        .select(['id', 'number', 'tier', 'handoffs_per_day', 'requests_per_hour'])
        .where('number', '=', number)
        .where('deleted_at', 'is', null)
        .executeTakeFirst(),

    /** The tenants with this id or this name, up to two: those with the id first. */
    matching: (text: string) =>
      db
        .selectFrom('tenants')
        .select(['id', 'number', 'name', 'tier', 'handoffs_per_day', 'requests_per_hour'])
        .where((eb) => eb.or([eb('id', '=', text.toLowerCase()), eb('name', '=', text)]))
        .where('deleted_at', 'is', null)
        .orderBy((eb) => eb.case().when('id', '=', text.toLowerCase()).then(0).else(1).end())
        .limit(2)
        .execute(),

    /** The tenants whose packets are erased some days after they ended, deleted ones too. `byDefault`: the days of a tenant without `retention_days`. */
    async retaining(byDefault: number): Promise<{ number: number; days: number }[]> {
      const days = sql<number>`coalesce(retention_days, cast(${byDefault} as integer))`;
      const rows = await db
        .selectFrom('tenants')
        .select(['number', days.as('days')])
        .where(days, '>', 0)
        .execute();
      return rows.map(({ number, days: own }) => ({ number, days: Number(own) }));
    },

    list: (): Promise<Tenant[]> => db.selectFrom('tenants').select(columns).where('deleted_at', 'is', null).orderBy('number').execute(),

    async find(id: string): Promise<Tenant> {
      const tenant = await db.selectFrom('tenants').select(columns).where('id', '=', id).where('deleted_at', 'is', null).executeTakeFirst();
      if (tenant === undefined) throw notFound('tenant');
      return tenant;
    },
  };
  return { ofAll };
}

/** Tenants. */
export const tenants = { writes, reads };
