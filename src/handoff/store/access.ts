import type { ExpressionBuilder, Kysely } from 'kysely';
import type { Awaitable } from '../../kit/awaitable.ts';
import { notFound } from '../../kit/errors.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import type { ApiKey, Tenant } from '../model/access.ts';
import type { Tier } from '../model/common.ts';
import type { Tables } from './tables.ts';
import type { KeyToStore } from './units/access.ts';

/** A valid API key with its tenant's limits. */
export interface KeyAccess {
  key_id: string;
  key_tier: Tier;
  admin: number;
  hash: string;
  tenant_id: string;
  tenant_number: number;
  tenant_tier: Tier;
  handoffs_per_day: number | null;
  /** When it expires, after a rotation; null: never. */
  expires_at: string | null;
  /** The first key of its chain of rotations; null: it replaced no key. */
  rotated_from: string | null;
}

const tenantColumns = ['id', 'name', 'tier', 'handoffs_per_day', 'max_api_keys', 'created_at', 'updated_at', 'deleted_at'] as const;
const keyColumns = ['id', 'name', 'tier', 'prefix', 'admin', 'created_at', 'expires_at'] as const;

type Tx = Kysely<Tables>;

const shown = (row: Omit<ApiKey, 'admin'> & { admin: number }): ApiKey => ({ ...row, admin: row.admin === 1 });

/** The condition that a key has not expired at `now`. */
const stillValid = (now: Date) => (eb: ExpressionBuilder<Tables, 'api_keys'>) =>
  eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now.toISOString())]);

/** Reads tenants and their keys, and creates the first tenant and admin key. */
export function createAccessStore(database: Database<Tables>) {
  // SQLite runs one write transaction at a time; PostgreSQL needs a lock on the tenant's row.
  const locking = database.name === 'postgres';

  async function lockTenant(tx: Tx, id: string): Promise<void> {
    const query = tx.selectFrom('tenants').select('number').where('id', '=', id);
    await (locking ? query.forUpdate() : query).execute();
  }

  const byHash = database.query<{ hash: string }, KeyAccess>((db, { hash }) =>
    db
      .selectFrom('api_keys')
      .innerJoin('tenants', 'tenants.id', 'api_keys.tenant_id')
      .select([
        'api_keys.id as key_id',
        'api_keys.tier as key_tier',
        'admin',
        'hash',
        'tenant_id',
        'tenants.number as tenant_number',
        'tenants.tier as tenant_tier',
        'handoffs_per_day',
        'expires_at',
        'rotated_from',
      ])
      .where('hash', '=', hash)
      .where('revoked_at', 'is', null)
      .where('deleted_at', 'is', null),
  );
  const version = database.query<Record<string, never>, { value: number }>(
    (db) => db.selectFrom('versions').select('value').where('name', '=', 'access'),
    { quick: true },
  );

  return {
    /** A number that rises whenever any instance changes a key or a tenant. Each request reads it. */
    version(): Awaitable<number> {
      database.beginView();
      return database.inView('access version', () => {
        const row = version.first({});
        return row instanceof Promise ? row.then((found) => found?.value ?? 0) : (row?.value ?? 0);
      });
    },
    keyByHash: (hash: string) => byHash.first({ hash }),

    /** The number of an existing tenant. */
    numbered: (id: string) => database.reads.selectFrom('tenants').select('number').where('id', '=', id).executeTakeFirstOrThrow(),

    /** The tenant of a key; undefined when the key is unknown. */
    tenantOfKey: (id: string) =>
      database.reads
        .selectFrom('api_keys')
        .innerJoin('tenants', 'tenants.id', 'api_keys.tenant_id')
        .select(['tenant_id', 'number'])
        .where('api_keys.id', '=', id)
        .executeTakeFirst(),

    /** The number and limits of an existing tenant. */
    tenantWithNumber: (id: string) =>
      database.reads
        .selectFrom('tenants')
        .select(['number', 'tier', 'handoffs_per_day'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow() as Promise<{ number: number; tier: Tier; handoffs_per_day: number | null }>,

    /** The keys of a tenant that are neither revoked nor expired at `now`. */
    async keysOf(tenantId: string, now: Date): Promise<ApiKey[]> {
      const rows = await database.reads
        .selectFrom('api_keys')
        .select(keyColumns)
        .where('tenant_id', '=', tenantId)
        .where('revoked_at', 'is', null)
        .where(stillValid(now))
        .orderBy('id')
        .execute();
      return rows.map(shown);
    },

    tenants: () =>
      database.reads.selectFrom('tenants').select(tenantColumns).where('deleted_at', 'is', null).orderBy('number').execute() as Promise<
        Tenant[]
      >,

    async tenant(id: string): Promise<Tenant> {
      const tenant = await database.reads
        .selectFrom('tenants')
        .select(tenantColumns)
        .where('id', '=', id)
        .where('deleted_at', 'is', null)
        .executeTakeFirst();
      if (tenant === undefined) throw notFound('tenant');
      return tenant;
    },

    /**
     * Creates the first tenant if it does not exist, and an admin key if no valid one is left; returns whether it created the
     * key. Rejects as a duplicate when the key has been used before.
     */
    async begin(tenant: Tenant, key: KeyToStore, now: Date): Promise<boolean> {
      return database.transaction(async (tx) => {
        await tx
          .insertInto('tenants')
          .values(tenant)
          .onConflict((conflict) => conflict.column('id').doNothing())
          .execute();
        await lockTenant(tx, tenant.id);
        const admin = await tx
          .selectFrom('api_keys')
          .innerJoin('tenants', 'tenants.id', 'api_keys.tenant_id')
          .select('api_keys.id')
          .where('admin', '=', 1)
          .where('revoked_at', 'is', null)
          .where('deleted_at', 'is', null)
          .where(stillValid(now))
          .executeTakeFirst();
        if (admin !== undefined) return false;
        await tx
          .insertInto('api_keys')
          .values({ ...key, admin: 1, revoked_at: null })
          .execute();
        return true;
      });
    },
    isDuplicate: database.isDuplicate,
  };
}
