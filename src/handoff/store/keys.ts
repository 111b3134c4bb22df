import type { ExpressionBuilder, Kysely } from 'kysely';
import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import type { Row } from '../../kit/sql/dialect.ts';
import { defaultScopes, type Scope, type Tier } from '../model/common.ts';
import type { ApiKey } from '../model/key.ts';
import type { Tenant } from '../model/tenant.ts';
import { noContent, noTenant, type Writes } from './engine/group.ts';
import { Table, TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies } from './noun.ts';
import type { RowOf, Tables } from './tables.ts';
import type { TenantNeeds } from './tenants.ts';

declare module './tables.ts' {
  interface Tables {
    api_keys: {
      id: string;
      tenant_id: string;
      name: string;
      tier: Tier;
      admin: number;
      prefix: string;
      hash: string;
      created_at: string;
      /** When it expires, after a rotation; null: never. */
      expires_at: string | null;
      /** The first key of its chain of rotations; null: it replaced no key. */
      rotated_from: string | null;
      /** What it may do, as JSON arrays and a name; null: everything. */
      scopes: string | null;
      agents: string | null;
      responder: string | null;
      /** For a key that sees its own: the target agents whose packets it sees beside those of its agents, as a JSON array; null: it sees all. */
      queues: string | null;
      /** The first keys of the chains of rotations of the keys through which it was created, as a JSON array; null: none. */
      lineage: string | null;
      revoked_at: string | null;
    };
  }
}

/** The keys that a unit needs, besides those of the tenant that it names. */
export interface KeyNeeds extends TenantNeeds {
  /** The id of a key to lock. */
  readonly keyId?: string;
}

/** A key to be stored, with its lists parsed. */
export type KeyToStore = Omit<RowOf<'api_keys'>, 'admin' | 'scopes' | 'agents' | 'queues' | 'lineage' | 'revoked_at'> & {
  readonly admin: boolean;
  readonly scopes: readonly Scope[] | null;
  readonly agents: readonly string[] | null;
  readonly queues: readonly string[] | null;
  readonly lineage: readonly string[] | null;
};

/** A stored key that is not revoked. */
export type StoredKey = Readonly<Omit<KeyToStore, 'prefix' | 'hash' | 'created_at'>>;

/** A valid API key with its tenant's limits. */
export type KeyAccess = Pick<
  RowOf<'api_keys'>,
  'admin' | 'hash' | 'tenant_id' | 'expires_at' | 'rotated_from' | 'lineage' | (typeof rights)[number]
> &
  Pick<RowOf<'tenants'>, 'handoffs_per_day' | 'requests_per_hour'> & {
    readonly key_id: string;
    readonly name: string;
    readonly tier: Tier;
    readonly tenant_number: number;
    readonly tenant_tier: Tier;
  };

const rights = ['scopes', 'agents', 'responder', 'queues'] as const;
const shownColumns = ['id', 'name', 'tier', 'prefix', 'admin', 'created_at', 'expires_at', ...rights] as const;

/** A list as it is stored, and back. */
const textOf = (list: readonly string[] | null): string | null => (list === null ? null : JSON.stringify(list));
export const storedList = (text: unknown): string[] | null => (typeof text === 'string' ? (readJson(text) as string[]) : null);

const decoded = ({ scopes, agents, queues, lineage }: Row) => ({
  scopes: storedList(scopes),
  agents: storedList(agents),
  queues: storedList(queues),
  lineage: storedList(lineage),
});
const encoded = ({ scopes, agents, queues, lineage }: Pick<KeyToStore, 'scopes' | 'agents' | 'queues' | 'lineage'>) => ({
  scopes: textOf(scopes),
  agents: textOf(agents),
  queues: textOf(queues),
  lineage: textOf(lineage),
});

const table = new Table<StoredKey & { readonly revoked_at: string | null }>({
  name: 'api_keys',
  columns: ['id', 'tenant_id', 'name', 'tier', 'admin', 'expires_at', 'rotated_from', ...rights, 'lineage', 'revoked_at'],
  key: 'id',
  updated: ['expires_at', 'revoked_at'],
  decode: (row) => ({ ...row, admin: row.admin === 1, ...decoded(row) }) as never,
  encode: (key) => ({ ...key, admin: key.admin ? 1 : 0, ...encoded(key) }) as Row,
});

/** Keys that are not revoked, by id. A unit may change the keys of any tenant, since an admin works on all. */
export class KeyBuffer extends TableBuffer<string, StoredKey & { readonly revoked_at: string | null }> {
  /** The keys of the tenant that the unit names. */
  ofTenant(id: string): StoredKey[] {
    return this.all().filter(({ tenant_id }) => tenant_id === id);
  }

  add(key: KeyToStore): void {
    const stored = { ...key, revoked_at: null };
    this.insert(stored);
    this.journal.set(this.found, key.id, stored);
  }

  /** Sets the expiry of a key. */
  end(id: string, expires_at: string): void {
    this.save(id, { ...this.found.get(id)!, expires_at });
  }

  revoke(id: string, now: Date): void {
    this.remove(id, { ...this.found.get(id)!, revoked_at: now.toISOString() });
  }
}

/** Keys. A change makes every instance drop its cached keys. */
const writes: Writes<KeyNeeds, KeyBuffer> = {
  needs: { keyId: true, tenantId: true, newTenant: true },
  stage: (_tenant, { journal }) => new KeyBuffer(journal),
  erase: noContent,

  async find(session, group) {
    const ids = new Set(group.units.flatMap(({ unit }) => unit.keyId ?? []));
    const tenantIds = new Set(group.units.flatMap(({ unit }) => unit.tenantId ?? []));
    const [named, theirs] = await Promise.all([
      table.find(
        session,
        [...ids].map((id) => ({ id })),
      ),
      table.read(
        session,
        [...tenantIds].map((tenant_id) => ({ tenant_id, revoked_at: null })),
      ),
    ]);
    const { found } = group.of(writes, noTenant);
    for (const { stored } of [...named, ...theirs]) if (stored.revoked_at === null) found.set(stored.id, stored);
  },

  flush(session, group) {
    table.flush(session, group, writes);
    if (group.of(writes, noTenant).changed.size > 0) session.add('versions', ['name'], 'value', [{ name: 'access', value: 1 }]);
  },
};

type ShownRow = Omit<ApiKey, 'admin' | 'scopes' | 'agents' | 'sees' | 'queues'> & {
  admin: number;
  scopes: string | null;
  agents: string | null;
  queues: string | null;
};

const shown = ({ admin, scopes, agents, queues, ...row }: ShownRow): ApiKey => ({
  ...row,
  admin: admin === 1,
  scopes: (storedList(scopes) as Scope[] | null) ?? [...defaultScopes],
  agents: storedList(agents),
  ...seenAs(storedList(queues)),
});

/** What a key sees, as the API has it. `queues`: as stored. */
export const seenAs = (queues: readonly string[] | null) => ({
  sees: queues === null ? ('all' as const) : ('own' as const),
  queues: queues && [...queues],
});

/** The condition that a key has not expired at `now`. */
const stillValid = (now: Date) => (eb: ExpressionBuilder<Tables, 'api_keys'>) =>
  eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now.toISOString())]);

/** Keys that are not revoked, with the limits of their tenants. */
const accessOf = (db: Kysely<Tables>) =>
  db
    .selectFrom('api_keys')
    .innerJoin('tenants', 'tenants.id', 'api_keys.tenant_id')
    .select([
      'api_keys.id as key_id',
      'api_keys.name',
      'api_keys.tier',
      'admin',
      'hash',
      'tenant_id',
      'tenants.number as tenant_number',
      'tenants.tier as tenant_tier',
      'handoffs_per_day',
      'requests_per_hour',
      'expires_at',
      'rotated_from',
      'lineage',
      ...rights,
    ])
    .where('revoked_at', 'is', null)
    .where('deleted_at', 'is', null);

/** Reads keys, and creates the first tenant and admin key. */
function reads({ database }: ReadDependencies) {
  const validByHash = database.query<{ hash: string }, KeyAccess>((db, { hash }) => accessOf(db).where('hash', '=', hash));
  const validOfChain = database.query<{ origin: string; now: string }, KeyAccess>((db, { origin, now }) =>
    accessOf(db)
      .where((eb) => eb.or([eb('api_keys.id', '=', origin), eb('rotated_from', '=', origin)]))
      .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
      .orderBy('api_keys.id', 'desc')
      .limit(1),
  );
  const version = database.query<Record<string, never>, { value: number }>(
    (db) => db.selectFrom('versions').select('value').where('name', '=', 'access'),
    { quick: true },
  );

  const ofAll = {
    /** A number that rises whenever any instance changes a key, a tenant or a contract. Each request reads it. */
    version(): Awaitable<number> {
      database.beginTurnReads();
      return database.shareInTurn('access version', () => andThen(version.first({}), (row) => row?.value ?? 0));
    },
    byHash: (hash: string) => validByHash.first({ hash }),

    /** Whether there is a key with this hash, valid or not. */
    isKnown: async (hash: string): Promise<boolean> =>
      (await database.reads.selectFrom('api_keys').select('id').where('hash', '=', hash).executeTakeFirst()) !== undefined,

    /** The latest valid key of the chain of rotations that begins with this key. */
    ofChain: (origin: string, now: Date) => validOfChain.first({ origin, now: now.toISOString() }),

    /** The valid keys of a tenant that name a person, with the keys through which each was created. */
    async withResponder(tenantId: string, now: Date): Promise<{ responder: string; origin: string; lineage: readonly string[] }[]> {
      const rows = await database.reads
        .selectFrom('api_keys')
        .select(['id', 'rotated_from', 'responder', 'lineage'])
        .where('tenant_id', '=', tenantId)
        .where('responder', 'is not', null)
        .where('revoked_at', 'is', null)
        .where(stillValid(now))
        .execute();
      return rows.map(({ id, rotated_from, responder, lineage }) => ({
        responder: responder!,
        origin: rotated_from ?? id,
        lineage: storedList(lineage) ?? [],
      }));
    },

    /** The tenant of a key, and its responder; undefined when the key is unknown. */
    tenantOf: (id: string) =>
      database.reads
        .selectFrom('api_keys')
        .innerJoin('tenants', 'tenants.id', 'api_keys.tenant_id')
        .select(['tenant_id', 'number', 'responder'])
        .where('api_keys.id', '=', id)
        .executeTakeFirst(),

    /** The keys of a tenant that are neither revoked nor expired at `now`. */
    async of(tenantId: string, now: Date): Promise<ApiKey[]> {
      const rows = await database.reads
        .selectFrom('api_keys')
        .select(shownColumns)
        .where('tenant_id', '=', tenantId)
        .where('revoked_at', 'is', null)
        .where(stillValid(now))
        .orderBy('id')
        .execute();
      return rows.map(shown);
    },

    /**
     * Creates the first tenant if it does not exist, and an admin key if no valid one is left; returns whether it created the
     * key. Rejects as a duplicate when the key has been used before.
     */
    async bootstrap(tenant: Tenant, key: KeyToStore, now: Date): Promise<boolean> {
      // First without a write, for which a full disk has no space.
      if ((await adminKey(database.reads, now).executeTakeFirst()) !== undefined) return false;
      return database.transaction(async (tx) => {
        await tx
          .insertInto('tenants')
          .values(tenant)
          .onConflict((conflict) => conflict.column('id').doNothing())
          .execute();
        // SQLite runs one write transaction at a time; PostgreSQL needs a lock on the tenant's row.
        const locking = tx.selectFrom('tenants').select('number').where('id', '=', tenant.id);
        await (database.name === 'postgres' ? locking.forUpdate() : locking).execute();
        if ((await adminKey(tx, now).executeTakeFirst()) !== undefined) return false;
        await tx
          .insertInto('api_keys')
          .values({ ...key, admin: 1, ...encoded(key), revoked_at: null })
          .execute();
        return true;
      });
    },
    isDuplicate: database.isDuplicate,
  };
  return { ofAll };
}

/** A valid admin key. */
const adminKey = (db: Kysely<Tables>, now: Date) =>
  db
    .selectFrom('api_keys')
    .innerJoin('tenants', 'tenants.id', 'api_keys.tenant_id')
    .select('api_keys.id')
    .where('admin', '=', 1)
    .where('revoked_at', 'is', null)
    .where('deleted_at', 'is', null)
    .where(stillValid(now));

/** API keys. */
export const keys = { writes, reads };
