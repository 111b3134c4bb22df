import { systemClock } from '../kit/clock.ts';
import { createIds, systemRandom } from '../kit/id.ts';
import { withDatabase } from '../kit/sql/database.ts';
import type { Database } from '../kit/sql/dialect.ts';
import { type Moved, type OnProgress, requireService } from '../kit/sql/export.ts';
import { maintenance } from '../kit/sql/maintenance.ts';
import { createKeyService } from './service/keys.ts';
import { readHandoffSettings, type Settings } from './settings.ts';
import { type Growth, measureGrowth } from './store/growth.ts';
import { schema } from './store/migrations/index.ts';
import { completeTenant, indexAll, queueAll } from './store/search/rebuild.ts';
import { openStore } from './store/store.ts';
import type { Tables } from './store/tables.ts';
import { type KnownTenantHead, type VerifiedTrails, verifyTrails } from './store/verify.ts';

export type { Growth } from './store/growth.ts';

/** Where the settings come from that name the database: variables, and a TOML file. */
interface SettingsSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly config: string | undefined;
  /** The id of the tenant that an export is of; everything if left out. */
  readonly tenant?: string | undefined;
}

/** What an export has and an import reads: every table but the search index, which is made anew. */
const moved: Moved = {
  ...schema,
  tenancy: {
    table: 'tenants',
    byId: { api_keys: 'tenant_id' },
    references: { 'contents.packet': 'packets', 'deliveries.webhook': 'webhooks', 'search_queue.packet': 'packets' },
    lists: { 'packets.followers': 'webhooks' },
    // An admin key acts on all tenants of its deployment.
    outside: { 'api_keys.admin': 0 },
  },
};

/**
 * Works on the database of the settings, even while a service uses it; only an import of everything needs an empty one. An import makes the search index.
 * @returns what was done, as a sentence
 */
export function maintain(
  operation: keyof typeof maintenance,
  file: string,
  { environment, config, tenant }: SettingsSource,
  onProgress: OnProgress,
): Promise<string> {
  return maintenance[operation](file, {
    databaseUrl: readHandoffSettings({ environment, file: config ?? environment.SERVICE_CONFIG }).databaseUrl,
    moved,
    tenant,
    clock: systemClock,
    onProgress,
    complete: (tx, number) => (number === undefined ? queueAll(tx) : completeTenant(tx, number)),
    afterwards: (database) =>
      indexAll(database as Database<Tables>, (done, total) => onProgress(done, total, 'indexing packets for search')),
  });
}

/** What the database of the settings holds, and how it grows. @throws Error when no service was started on it */
export async function storage({ environment, config }: SettingsSource): Promise<Growth> {
  const { databaseUrl } = readHandoffSettings({ environment, file: config ?? environment.SERVICE_CONFIG });
  await requireService(databaseUrl, schema);
  return withDatabase<Tables, Growth>(databaseUrl, (database) => measureGrowth(database, systemClock()));
}

/**
 * Creates an admin key directly in the database, even while a service uses it, and returns it.
 * @throws Error when the database can't be opened, is in memory, or is none of the service; nothing is created then
 */
export async function makeAdminKey({ databaseUrl }: Pick<Settings, 'databaseUrl'>): Promise<string> {
  await requireService(databaseUrl, schema);
  const newId = createIds();
  const store = await openStore({ databaseUrl, clock: systemClock, newId });
  try {
    const keys = createKeyService({ store, clock: systemClock, newId, random: systemRandom });
    // In an empty database `begin` creates the tenant and the key.
    return (await keys.bootstrap(undefined)).createdKey ?? (await keys.makeAdminKey());
  } finally {
    await store.close();
  }
}

/**
 * Checks the audit logs of all tenants in the database of the settings, or of one, also while a service uses it.
 * @throws ChainFault with the tenant and the first entry that does not hold
 */
export async function verifyDatabase({ environment, config, tenant }: SettingsSource, known?: KnownTenantHead): Promise<VerifiedTrails> {
  const { databaseUrl } = readHandoffSettings({ environment, file: config ?? environment.SERVICE_CONFIG });
  await requireService(databaseUrl, schema);
  return withDatabase<Tables, VerifiedTrails>(databaseUrl, (database) => verifyTrails(database, { tenant, known }), { readOnly: true });
}
