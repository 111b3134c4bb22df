import type { Clock } from '../../kit/clock.ts';
import type { NewId } from '../../kit/id.ts';
import { isShared, openDatabase } from '../../kit/sql/database.ts';
import { migrate } from '../../kit/sql/migrate.ts';
import { startThread } from '../../kit/thread.ts';
import type { DeliveryStatus } from '../model/webhook.ts';
import { createAccessStore } from './access.ts';
import { createDeliveryStore, type RetryFilter } from './deliveries.ts';
import { createEventReads } from './events.ts';
import { createIndexing } from './indexing.ts';
import { migrations } from './migrations/index.ts';
import { createPacketReads } from './packets.ts';
import { createPageReads, type PacketPage } from './pages.ts';
import { createSearcher, type Search, type SearchResult } from './search.ts';
import { createQueueReads } from './search-index.ts';
import type { SearchTasks } from './search-thread.ts';
import type { Tables } from './tables.ts';
import type { Unit } from './units/transaction.ts';
import { createUnits } from './units.ts';
import { createWebhookReads } from './webhooks.ts';

interface StoreParts {
  databaseUrl: string;
  clock: Clock;
  newId: NewId;
}

/** What the service keeps, on SQLite or PostgreSQL. */
export type Store = Awaited<ReturnType<typeof openStore>>;

/** Opens the store and brings its schema up to date. */
export async function openStore({ databaseUrl, clock, newId }: StoreParts) {
  // The schema comes first: the thread expects to find it.
  const migrating = openDatabase<Tables>(databaseUrl);
  const shared = isShared(databaseUrl);
  await migrate(migrating, migrations, clock).catch(async (error: unknown) => {
    await migrating.close();
    throw error;
  });

  const entry = new URL(import.meta.url.endsWith('.ts') ? './search-thread.ts' : './search-thread.js', import.meta.url);
  const thread = shared ? startThread<SearchTasks>(entry, { databaseUrl }) : undefined;
  // Long reads have a thread of their own: the index is written in a turn of ours, which must not wait behind them.
  const reader =
    shared && databaseUrl.startsWith('sqlite') ? startThread<SearchTasks>(entry, { databaseUrl }, { patient: true }) : undefined;
  if (reader !== undefined) await migrating.close();
  const database =
    reader === undefined ? migrating : openDatabase<Tables>(databaseUrl, (sql, parameters) => reader.call('read', { sql, parameters }));

  const packets = createPacketReads(database);
  const pages = createPageReads(database);
  const events = createEventReads(database);
  const webhooks = createWebhookReads(database);
  const { ofWebhook, deadLetters, failed, ...deliveries } = createDeliveryStore(database);
  const queue = createQueueReads(database);
  const searcher = reader === undefined ? createSearcher(database) : { search: (search: Search) => reader.call('search', search) };
  const units = createUnits(database, newId);
  const indexing = createIndexing(database, thread);

  return {
    /** What belongs to the tenant with this number. */
    of: (tenant: number) => ({
      packets: {
        find: (id: string) => packets.find(tenant, id),
        /** A page, and how many packets there are in all. */
        page: (page: PacketPage) => pages.page(tenant, page),
        /** Everything committed before the call is found. */
        async search(search: Omit<Search, 'tenant'>): Promise<SearchResult> {
          await indexing.all(tenant);
          return searcher.search({ ...search, tenant });
        },
      },
      events: {
        history: (packetId: string) => events.history(tenant, packetId),
        after: (position: number, limit: number) => events.after(tenant, position, limit),
        bounds: () => events.bounds(tenant),
        audit: (filter: Parameters<typeof events.audit>[1], page: { limit: number; offset: number }) => events.audit(tenant, filter, page),
      },
      webhooks: {
        list: () => webhooks.list(tenant),
        number: (id: string) => webhooks.number(tenant, id),
      },
      deliveries: {
        ofWebhook: (webhook: number, status: DeliveryStatus | undefined, page: { limit: number; offset: number }) =>
          ofWebhook(tenant, webhook, status, page),
        deadLetters: (webhook: number | undefined, page: { limit: number; offset: number }) => deadLetters(tenant, webhook, page),
        failed: (filter: RetryFilter, limit: number) => failed(tenant, filter, limit),
      },
      /** How many packets were created on the day. */
      async usedOn(day: string): Promise<number> {
        const row = await database.reads
          .selectFrom('counters')
          .select('value')
          .where('tenant', '=', tenant)
          .where('name', '=', `created:${day}`)
          .executeTakeFirst();
        return row?.value ?? 0;
      },
      /** Carries out a unit of work; resolves when it is committed. */
      commit: <T>(unit: Unit<T>): Promise<T> => units.commit(tenant, unit),
    }),
    access: createAccessStore(database),
    /** What waits to be sent to webhooks, of all tenants. */
    deliveries: { ...deliveries, onWaiting: units.onDeliveries },
    /** The last positions of tenants, by their numbers. */
    positions: events.positions,
    /** Has the listener told of what every commit of this program appends to trails, once for each group. */
    onCommit: units.onCommit,
    /** Packets of any tenant that a job must look at. */
    sweep: { due: packets.due, unclaimed: packets.unclaimed },
    index: { step: indexing.step, queued: queue.queued, isQueued: queue.isQueued },
    countInStatuses: packets.countInStatuses,
    countByStatus: packets.countByStatus,
    oldestQuestion: packets.oldestQuestion,
    /** Forgets answers older than the moment, and the day counters before the day; up to `limit` of each. */
    async prune(before: Date, day: string, limit: number): Promise<number> {
      const old = await database.reads
        .selectFrom('idempotency')
        // With its age: another instance may have forgotten it meanwhile, and the key may be in use again.
        .select(['tenant', 'key', 'created_at'])
        .where('created_at', '<', before.toISOString())
        .orderBy('created_at')
        .limit(limit)
        .execute();
      const days = await database.reads
        .selectFrom('counters')
        .select(['tenant', 'name'])
        .where('name', '>=', 'created:')
        .where('name', '<', `created:${day}`)
        .limit(limit)
        .execute();
      if (old.length + days.length > 0) {
        await database.session(async (session) => {
          await session.remove('idempotency', old);
          await session.remove(
            'idempotency_packets',
            old.map(({ tenant, key }) => ({ tenant, key })),
          );
          await session.remove('counters', days);
        });
      }
      return old.length + days.length;
    },
    /** What `read` gives, shared with whoever asked the same in this turn: see `Database.inView`. */
    inView: database.inView,
    ping: () => database.ping(),
    /** How many writes wait for their commit. */
    waiting: () => units.waiting() + database.waiting(),
    isUnavailable: database.isUnavailable,
    async close() {
      await indexing.idle();
      await Promise.all([thread?.stop(), reader?.stop()]);
      await database.close();
    },
  };
}
