import { type Kysely, sql } from 'kysely';
import type { Awaitable } from '../../kit/awaitable.ts';
import { conflict, notFound } from '../../kit/errors.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import type { ApiKey, Tenant } from '../model/access.ts';
import type { Tier } from '../model/common.ts';
import type { Tables } from './tables.ts';
import type { Remembered } from './units.ts';

/** A key that is valid now, with what its tenant allows. */
export interface KeyAccess {
  key_id: string;
  key_tier: Tier;
  admin: number;
  hash: string;
  tenant_id: string;
  tenant_number: number;
  tenant_tier: Tier;
  handoffs_per_day: number | null;
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
}

/** An entry of the audit log that is not about a packet. */
export interface AuditNote {
  id: string;
  actor: string;
  event_type: string;
  resource: 'api_key' | 'tenant';
  details: Record<string, unknown>;
  timestamp: string;
}

const tenantColumns = ['id', 'name', 'tier', 'handoffs_per_day', 'max_api_keys', 'created_at', 'updated_at', 'deleted_at'] as const;
const keyColumns = ['id', 'name', 'tier', 'prefix', 'admin', 'created_at'] as const;

type Tx = Kysely<Tables>;

/** Raises the version that tells every instance to forget the keys it knows. */
async function forgetKeys(tx: Tx): Promise<void> {
  await tx.updateTable('versions').set({ value: sql`value + 1` }).where('name', '=', 'access').execute();
}

async function note(tx: Tx, tenant: number, { details, ...entry }: AuditNote): Promise<void> {
  await tx
    .insertInto('events')
    .values({ ...entry, tenant, packet_id: null, details: JSON.stringify(details) })
    .execute();
  await tx
    .insertInto('counters')
    .values({ tenant, name: 'events', value: 1 })
    .onConflict((conflict) => conflict.columns(['tenant', 'name']).doUpdateSet({ value: sql`counters.value + 1` }))
    .execute();
}

const shown = (row: Omit<ApiKey, 'admin'> & { admin: number }): ApiKey => ({ ...row, admin: row.admin === 1 });

/** Tenants and their keys. What changes a key or a tenant also tells every instance to forget the keys it knows. */
export function createAccessStore(database: Database<Tables>) {
  // A no-op on SQLite, where transactions that write are one at a time; on PostgreSQL it makes them so for a tenant.
  const locking = database.name === 'postgres';

  async function lockTenant(tx: Tx, id: string): Promise<{ number: number; tenant: Tenant }> {
    let query = tx.selectFrom('tenants').select('number').select(tenantColumns).where('id', '=', id).where('deleted_at', 'is', null);
    if (locking) query = query.forUpdate();
    const found = await query.executeTakeFirst();
    if (found === undefined) throw notFound('tenant');
    const { number, ...tenant } = found;
    return { number, tenant };
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
    /** Rises whenever a key or a tenant changed, on any instance. Asked when a request arrives. */
    version(): Awaitable<number> {
      database.beginView();
      return database.inView('access version', () => {
        const row = version.first({});
        return row instanceof Promise ? row.then((found) => found?.value ?? 0) : (row?.value ?? 0);
      });
    },
    keyByHash: (hash: string) => byHash.first({ hash }),

    async keysOf(tenantId: string): Promise<ApiKey[]> {
      const rows = await database.reads
        .selectFrom('api_keys')
        .select(keyColumns)
        .where('tenant_id', '=', tenantId)
        .where('revoked_at', 'is', null)
        .orderBy('id')
        .execute();
      return rows.map(shown);
    },

    /**
     * Stores a key, or gives what was answered before under the same idempotency key.
     * `decide` sees the tenant, locked, and gives the key; it throws to refuse.
     */
    async addKey(
      tenantId: string,
      idempotency: { tenant: number; key: string; fingerprint: string; status: number; now: Date } | undefined,
      decide: (tenant: Tenant) => { key: KeyToStore; note: AuditNote },
    ): Promise<{ key: KeyToStore } | { remembered: Remembered }> {
      const add = () =>
        database.transaction(async (tx) => {
          const { number, tenant } = await lockTenant(tx, tenantId);
          if (idempotency !== undefined) {
            const remembered = await tx
              .selectFrom('idempotency')
              .selectAll()
              .where('tenant', '=', idempotency.tenant)
              .where('key', '=', idempotency.key)
              .executeTakeFirst();
            if (remembered !== undefined) return { remembered };
          }
          const decided = decide(tenant);
          const { count } = await tx
            .selectFrom('api_keys')
            .select(sql<number>`count(*)`.as('count'))
            .where('tenant_id', '=', tenantId)
            .where('revoked_at', 'is', null)
            .executeTakeFirstOrThrow();
          if (Number(count) >= tenant.max_api_keys)
            throw conflict(`The tenant has ${count} of at most ${tenant.max_api_keys} API keys; delete one first.`);
          await tx
            .insertInto('api_keys')
            .values({ ...decided.key, admin: decided.key.admin ? 1 : 0, revoked_at: null })
            .execute();
          await note(tx, number, decided.note);
          if (idempotency !== undefined) {
            const { tenant, key, fingerprint, status, now } = idempotency;
            await tx
              .insertInto('idempotency')
              .values({ tenant, key, fingerprint, status, body: null, etag: null, created_at: now.toISOString() })
              .execute();
          }
          return { key: decided.key };
        });
      // Two requests under one idempotency key may be for two tenants, whose locks do not keep them apart: the one that
      // comes second finds at its next attempt what the first has written.
      return add().catch((error: unknown) => {
        if (database.isDuplicate(error) || database.isOvertaken(error)) return add();
        throw error;
      });
    },

    /** Revokes a key of the tenant, or of any tenant when that is undefined. */
    async revokeKey(tenantId: string | undefined, id: string, at: string, noteOf: (key: { name: string }) => AuditNote): Promise<void> {
      await database.transaction(async (tx) => {
        let query = tx.updateTable('api_keys').set({ revoked_at: at }).where('id', '=', id).where('revoked_at', 'is', null);
        if (tenantId !== undefined) query = query.where('tenant_id', '=', tenantId);
        const key = await query.returning(['tenant_id', 'name']).executeTakeFirst();
        if (key === undefined) throw notFound('API key');
        const { number } = await tx.selectFrom('tenants').select('number').where('id', '=', key.tenant_id).executeTakeFirstOrThrow();
        await note(tx, number, noteOf(key));
        await forgetKeys(tx);
      });
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

    async addTenant(tenant: Tenant, entry: AuditNote): Promise<void> {
      await database.transaction(async (tx) => {
        const { number } = await tx.insertInto('tenants').values(tenant).returning('number').executeTakeFirstOrThrow();
        await note(tx, number, entry);
      });
    },

    /** Changes a tenant, locked: `decide` gives it as it shall be. The note goes into its own trail, or that of `noteIn`. */
    async changeTenant(id: string, decide: (tenant: Tenant) => { tenant: Tenant; note: AuditNote; noteIn?: number }): Promise<Tenant> {
      return database.transaction(async (tx) => {
        const { number, tenant } = await lockTenant(tx, id);
        const decided = decide(tenant);
        const { id: _, ...changed } = decided.tenant;
        await tx.updateTable('tenants').set(changed).where('id', '=', id).execute();
        await note(tx, decided.noteIn ?? number, decided.note);
        await forgetKeys(tx);
        return decided.tenant;
      });
    },

    /**
     * Makes the first tenant where there is none, and an admin key where no admin key is left; whether this call made the
     * key. Rejects with a duplicate where the key was in use before.
     */
    async begin(tenant: Tenant, key: KeyToStore): Promise<boolean> {
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
