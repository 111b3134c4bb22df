import { sql } from 'kysely';

import type { Clock } from '../../kit/clock.ts';
import { invalid, tookTooLong } from '../../kit/errors.ts';
import type { NewId } from '../../kit/id.ts';
import type { Timed } from '../../kit/lanes.ts';
import { isShared } from '../../kit/sql/database.ts';
import { migrate } from '../../kit/sql/migrate.ts';
import type { DeliveryStatus } from '../model/webhook.ts';
import { createAgentStore } from './agents.ts';
import { createAgeReads } from './ages.ts';
import { createAnswerLinkReads } from './answer-links.ts';
import { createDeliveryStore, type RetryFilter } from './deliveries.ts';
import type { InTurn } from './in-turn.ts';
import { createKeyStore } from './keys.ts';
import { migrations } from './migrations/index.ts';
import { createPacketReads } from './packets.ts';
import { type Page, pageTooLarge } from './page-size.ts';
import { createPageReads, type PacketPage } from './pages.ts';
import { openWithReaders, type Reader, startSearchThread } from './readers.ts';
import { createQueueReads } from './search/indexer.ts';
import { createIndexing } from './search/indexing.ts';
import type { EncodedPage, Search } from './search/search.ts';
import { measure } from './sizes.ts';
import { createTenantReads } from './tenants.ts';
import { createTrailReads } from './trail.ts';
import { createUnits, type Unit } from './units.ts';
import { createOriginsRead, createWebhookReads, type Noun } from './webhooks.ts';

interface StoreParts {
  databaseUrl: string;
  clock: Clock;
  newId: NewId;
  charactersPerTurn?: number | undefined;
}

/** The service's data, on SQLite or PostgreSQL. */
export type Store = Awaited<ReturnType<typeof openStore>>;

/** Opens the store and brings its schema up to date. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: wires the parts of the program once, in the order in which they depend on each other.
export async function openStore({ databaseUrl, clock, newId, charactersPerTurn }: StoreParts) {
  const { database, lanes, stopReaders } = openWithReaders(databaseUrl, clock, { charactersPerTurn });
  // The schema must exist before the threads start, which they do at their first task.
  await migrate(database, migrations, clock).catch(async (error: unknown) => {
    await database.close();
    throw error;
  });
  const thread = isShared(databaseUrl) ? startSearchThread(databaseUrl) : undefined;

  const packets = createPacketReads(database);
  const pages = createPageReads(database);
  const trail = createTrailReads(database);
  const webhooks = createWebhookReads(database);
  const { ofWebhook, detail, deadLetters, failed, destination, ...deliveries } = createDeliveryStore(database);
  const answerLinks = createAnswerLinkReads(database);
  const agents = createAgentStore(database);
  const queue = createQueueReads(database);
  const units = createUnits(database, newId);
  const indexing = createIndexing(database, thread);

  return {
    /** The data of the tenant with this number. `signal`: aborted when the caller's connection closes; pending long reads are then not started. */
    of: (tenant: number, signal?: AbortSignal) => {
      const runIn = <T>(work: (reader: Reader) => Promise<Timed<T>>, options: { long?: boolean } = {}): Promise<T> =>
        lanes.run(tenant, work, { signal, ...options }).catch((error: unknown) => {
          throw database.isTimeout(error) ? tookTooLong() : error;
        });
      const inTurn: InTurn = (read) => runIn((reader) => reader.read(read));
      const readLarge = (page: PacketPage) => runIn((reader) => reader.largePage(tenant, page));
      const search = (wanted: Search, options?: { long: boolean }) => runIn((reader) => reader.search(wanted, signal), options);
      return {
        packets: {
          find: (id: string) => packets.find(tenant, id),
          /** A page and the total number of packets. */
          page: (page: PacketPage) => pages.page(tenant, page, { inTurn, readLarge }),
          /** Finds everything that was committed before the call. */
          async search(wanted: Omit<Search, 'tenant'>): Promise<EncodedPage> {
            await indexing.all(tenant);
            const whole = { ...wanted, tenant };
            let result = await search(whole);
            if ('overBudget' in result) result = await search(whole, { long: true });
            if ('overBudget' in result) throw new Error('A search exceeded an unlimited budget.');
            if ('outgrown' in result) throw invalid('cursor', 'Too many packets match now to be ranked; search again without the cursor.');
            if ('fitting' in result) throw pageTooLarge(result.fitting);
            return result;
          },
        },
        trail: {
          history: (packetId: string) => trail.history(tenant, packetId),
          sizesAfter: (position: number, limit: number) => trail.sizesAfter(tenant, position, limit),
          between: (after: number, upTo: number) => trail.between(tenant, after, upTo),
          bounds: () => trail.bounds(tenant),
          audit: (filter: Parameters<typeof trail.audit>[1], page: Page) => trail.audit(tenant, filter, page, inTurn),
        },
        webhooks: {
          list: () => webhooks.list(tenant),
          channels: () => webhooks.channels(tenant),
          ofPacket: (packetId: string) => webhooks.ofPacket(tenant, packetId),
          follow: (packetId: string) => webhooks.follow(tenant, packetId),
          isTold: () => webhooks.isTold(tenant),
          number: (id: string, noun: Noun) => webhooks.number(tenant, id, noun),
        },
        answerLinks: {
          find: (id: string) => answerLinks.find(tenant, id),
          ofPacket: (packetId: string) => answerLinks.ofPacket(tenant, packetId),
        },
        deliveries: {
          /** The deliveries of a webhook or channel, removed or not; undefined when it is unknown. */
          of: (noun: Noun, id: string, status: DeliveryStatus | undefined, page: Page) =>
            inTurn(async (db) => {
              const webhook = await webhooks.number(tenant, id, noun);
              return webhook === undefined ? undefined : ofWebhook(db, tenant, webhook, status, page);
            }),
          detail: (webhook: number, id: string) => detail(tenant, webhook, id),
          deadLetters: (webhook: number | undefined, page: Page) => inTurn((db) => deadLetters(db, tenant, webhook, page)),
          destination: (id: string) => destination(tenant, id),
          failed: (filter: RetryFilter, limit: number) => inTurn((db) => failed(db, tenant, filter, limit)),
        },
        agents: {
          page: (page: Page) => agents.page(tenant, page, inTurn),
        },
        /** The number of packets created on the day. */
        async usedOn(day: string): Promise<number> {
          const row = await database.reads
            .selectFrom('counters')
            .select('value')
            .where('tenant', '=', tenant)
            .where('name', '=', `created:${day}`)
            .executeTakeFirst();
          return row?.value ?? 0;
        },
        /** Runs a unit of work; resolves when it is committed. */
        commit: <T>(unit: Unit<T>): Promise<T> => units.commit(tenant, unit),
      };
    },
    keys: createKeyStore(database),
    tenants: createTenantReads(database),
    /** Whether the links of any channel begin with the origin of a request. */
    hasOrigins: createOriginsRead(database),
    /** Records when agents of any tenant were last seen. */
    sawAgents: agents.saw,
    forgetAgents: agents.forget,
    /** The deliveries of all tenants. */
    deliveries: { ...deliveries, onWaiting: units.onDeliveries },
    /** The answer links of all tenants. */
    answerLinks: { byHash: answerLinks.byHash, forget: answerLinks.forget },
    forgetPayloads: trail.forgetPayloads,
    /** The last positions of tenants, by their numbers. */
    positions: trail.positions,
    /** Calls the listener after every commit of this process, once per tenant, with the events appended to its trail. */
    onCommit: units.onCommit,
    /** Calls the listener when something that runs after a commit failed. */
    onFailure: units.onFailure,
    /** Packets of all tenants for the background jobs. */
    sweep: { due: packets.due, unclaimed: packets.unclaimed },
    index: { step: indexing.step, stop: indexing.stop, queued: queue.queued, isQueued: queue.isQueued },
    countByStatus: packets.countByStatus,
    /** When the oldest work of each kind began that somebody has to finish. */
    ages: createAgeReads(database),
    /** Deletes idempotency answers older than `before`, and day counters before `day`; up to `limit` of each. */
    async prune(before: Date, day: string, limit: number): Promise<number> {
      const old = await database.reads
        .selectFrom('idempotency')
        // The age is part of the key: another instance may have deleted the answer, and its idempotency key may be in use again.
        .select(['tenant', 'key', 'created_at'])
        .where('created_at', '<', before.toISOString())
        .orderBy('created_at')
        .limit(limit)
        .execute();
      const days = await database.reads
        .selectFrom('counters')
        .select(['tenant', 'name'])
        // Literals, so that the partial index of these counters matches.
        .where('name', '>=', sql.lit('created:'))
        .where('name', '<', sql.lit('created;'))
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
    /** The result of `read`, shared between identical reads of this turn of the event loop: see `Database.inView`. */
    inView: database.inView,
    /** How large the database is. */
    measure: () => measure(database),
    ping: () => database.ping(),
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
