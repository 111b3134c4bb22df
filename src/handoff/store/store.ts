import type { Clock } from '../../kit/clock.ts';
import { createSalts, type NewId, type RandomSource } from '../../kit/id.ts';
import { isShared } from '../../kit/sql/database.ts';
import { migrate } from '../../kit/sql/migrate.ts';
import type { Viewer } from '../rules/sight.ts';
import { createDueWalks } from './due-walk.ts';
import { migrations } from './migrations/index.ts';
import { ReadScope } from './noun.ts';
import { matches } from './packet-filter.ts';
import { openWithReaders, startSearchThread } from './readers.ts';
import { createQueueReads } from './search/indexer.ts';
import { Indexing } from './search/indexing.ts';
import { measure } from './sizes.ts';
import { prepareReads, readsOfAll, TenantStore } from './tenant-store.ts';
import { createUnits } from './units.ts';

interface StoreOptions {
  databaseUrl: string;
  clock: Clock;
  newId: NewId;
  /** The source of the salts of the trail; by default that of the system. */
  random?: RandomSource;
  charactersPerTurn?: number | undefined;
}

/** The service's data, on SQLite or PostgreSQL. */
export type Store = Awaited<ReturnType<typeof openStore>>;

/** Opens the store and brings its schema up to date. */
export async function openStore({ databaseUrl, clock, newId, random, charactersPerTurn }: StoreOptions) {
  const { database, lanes, stopReaders } = openWithReaders(databaseUrl, clock, { charactersPerTurn });
  // The schema must exist before the threads start, which they do at their first task.
  await migrate(database, migrations, clock).catch(async (error: unknown) => {
    await database.close();
    throw error;
  });
  const { value: deployment } = await database.reads
    .selectFrom('versions')
    .select('value')
    .where('name', '=', 'deployment')
    .executeTakeFirstOrThrow();
  const thread = isShared(databaseUrl) ? startSearchThread(databaseUrl) : undefined;

  const queue = createQueueReads(database);
  const walks = createDueWalks(database.name === 'postgres');
  const units = createUnits(database, { newId, newSalt: createSalts(random), clock, walks });
  const indexing = new Indexing(database, thread);
  const reads = prepareReads({ database, indexing, walks });
  const isSeen = async ({ tenant_number, sight }: Viewer, packetId: string) => {
    const seen = database.reads
      .selectFrom('packets')
      .select('id')
      .where(matches(tenant_number, { seen_by: sight! }));
    return (await seen.where('packets.id', '=', packetId).executeTakeFirst()) !== undefined;
  };
  const storeOf = (viewer: Viewer, signal?: AbortSignal) =>
    new TenantStore(new ReadScope(viewer, { lanes, signal, isTimeout: database.isTimeout, isSeen }), reads, units.commit);

  return {
    /** The reads of all tenants, by noun. */
    ...readsOfAll(reads),
    /** What a caller sees of its tenant's data. `signal`: aborted when the caller's connection closes; pending long reads are then not started. */
    of: storeOf,
    /** All data of the tenant with this number, for what the service does itself. */
    whole: (tenant: number): TenantStore => storeOf({ tenant_number: tenant }),
    /** Calls the listener after every commit of this process, once per tenant, with the events appended to its trail. */
    onCommit: units.onCommit,
    /** Calls the listener when something that runs after a commit failed. */
    onFailure: units.onFailure,
    /** Calls the listener after every commit that leaves deliveries to be sent. */
    onDeliveries: units.onDeliveries,
    index: { step: () => indexing.round(), stop: () => indexing.stop(), queued: queue.queued, isQueued: queue.isQueued },
    /** The result of `read`, shared between identical reads of this turn of the event loop: see `Database.shareInTurn`. */
    shareInTurn: database.shareInTurn,
    /** A number that all instances on this database have, and other deployments have not. */
    deployment,
    /** How large the database is. */
    measure: () => measure(database),
    ping: () => database.ping(),
    spaceWarnings: database.spaceWarnings,
    /** The number of writes that wait for their commit. */
    waiting: () => units.waiting() + database.waiting(),
    isUnavailable: database.isUnavailable,
    async close() {
      await indexing.idle();
      await Promise.all([thread?.stop(), stopReaders()]);
      await database.close();
    },
  };
}
