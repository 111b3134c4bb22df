import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { sql } from 'kysely';

import { createIndexingJob } from '../../../src/handoff/jobs/indexer.ts';
import type { CreateRequest } from '../../../src/handoff/model/packet.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { Indexer } from '../../../src/handoff/store/search/indexer.ts';
import { createSearcher } from '../../../src/handoff/store/search/search.ts';
import { openStore } from '../../../src/handoff/store/store.ts';
import type { Tables } from '../../../src/handoff/store/tables.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import type { TestStore } from '../../support/store.ts';
import { storesOfSeveral } from '../../support/stores.ts';

const now = new Date('2026-03-01T09:30:00.000Z');
/** The number of the first tenant. */
const tenant = 1;
const agent = { id: 'a', name: 'A', framework: 'f' };
const packetId = (number: number) => `0197b5a6-8c3e-7f01-9a2b-${String(number).padStart(12, '0')}`;
const everything = { after: { tenant, packet: 0 }, upTo: { tenant, packet: 1_000_000 }, limit: 500 };

/** A store with `count` queued packets, and a second connection with an indexer. */
async function queuedPackets(t: TestContext, testStore: TestStore, count: number, summary = (number: number) => `word n${number}`) {
  const { url, drop } = await testStore.open('handoff');
  const store = await openStore({ databaseUrl: url, clock: systemClock, newId: () => packetId(0) });
  const database = openDatabase<Tables>(url);
  t.after(async () => {
    await store.close();
    await database.close();
    await drop();
  });
  const tier = { tier: 'free' as const, handoffs_per_day: null, max_api_keys: 1, deleted_at: null };
  const made = { created_at: now.toISOString(), updated_at: now.toISOString() };
  await database.transaction((tx) =>
    tx
      .insertInto('tenants')
      .values({ id: 'tenant', name: 'T', ...tier, ...made })
      .execute(),
  );
  await store.whole(tenant).commit({
    work({ packets }) {
      for (let number = 1; number <= count; number += 1) {
        const request: CreateRequest = { metadata: { source_agent: agent, target_agent: agent }, context: { summary: summary(number) } };
        packets.insert(newPacket(request, { id: packetId(number), now, agentId: undefined }).packet);
      }
    },
  });
  const search = (word: string) => ({ phrases: [[word]], filter: {}, limit: 1, offset: 0 });
  /** The matches of a word, after the queue has been processed. */
  const found = async (word: string) => (await store.whole(tenant).packets.search(search(word))).total;
  const searcher = createSearcher(database);
  /** The matches of a word in the index as it is. */
  const indexed = async (word: string) => {
    const result = await searcher.search({ tenant, ...search(word) });
    return 'total' in result ? result.total : undefined;
  };
  const change = (number: number, revision = 2) =>
    database.transaction((tx) => tx.updateTable('search_queue').set({ revision }).where('packet', '=', number).execute());
  return { store, url, database, indexer: new Indexer(database), found, indexed, change };
}

// A store in memory allows no second connection.
for (const testStore of storesOfSeveral) {
  describe(`The search index behind the packets on ${testStore.name}`, () => {
    test('keeps the queue when the service stops, which does not wait for the thread that was to take it', async (t) => {
      const { store, url, indexed } = await queuedPackets(t, testStore, 3);
      const step = store.index.step();
      await store.index.isQueued(1);
      store.index.stop();
      assert.equal((await step).taken, 0);
      assert.equal(await indexed('word'), 0);
      const next = await openStore({ databaseUrl: url, clock: systemClock, newId: () => packetId(0) });
      assert.equal((await next.index.step()).taken, 3);
      await next.close();
      assert.equal(await indexed('word'), 3);
    });

    test('is written in queue order, and a step reports whether more is queued', async (t) => {
      const { indexer, store, indexed } = await queuedPackets(t, testStore, 250);
      assert.deepEqual(await indexer.prepare({ limit: 120 }), { taken: 120, more: true });
      assert.deepEqual(await indexer.write(), { refused: [], reached: { tenant, packet: 120 } });
      assert.equal(await store.index.queued(1000), 130);
      assert.deepEqual(await indexer.prepare({ limit: 500 }), { taken: 130, more: false });
      assert.deepEqual(await indexer.write(), { refused: [], reached: { tenant, packet: 250 } });
      assert.deepEqual(await indexer.prepare({ limit: 500 }), { taken: 0, more: false });
      assert.equal(await indexed('word'), 250);
      assert.equal(await indexed('n250'), 1);
    });

    test('a packet that changes between read and write is indexed as read, stays queued and delays nothing', async (t) => {
      const { indexer, store, found, change } = await queuedPackets(t, testStore, 5);
      const reached = { tenant, packet: 5 };
      await indexer.prepare(everything);
      await change(3);
      assert.deepEqual(await indexer.write(), { refused: [], reached });
      assert.equal(await store.index.queued(10), 1);
      // It changes again while it is indexed for the second time: the words already in the index are replaced.
      assert.equal((await indexer.prepare(everything)).taken, 1);
      await change(3, 3);
      assert.deepEqual(await indexer.write(), { refused: [], reached: { tenant, packet: 3 } });
      assert.equal(await store.index.queued(10), 1);
      assert.equal(await found('word'), 5);
      assert.equal(await store.index.queued(10), 0);
    });

    test('a packet that another writer removed from the queue is not indexed', async (t) => {
      const { indexer, store, database, indexed } = await queuedPackets(t, testStore, 3);
      await indexer.prepare(everything);
      await database.transaction((tx) => tx.deleteFrom('search_queue').execute());
      assert.deepEqual(await indexer.write(), { refused: [], reached: { tenant, packet: 3 } });
      assert.equal(await store.index.queued(10), 0);
      assert.equal(await indexed('word'), 0);
    });

    test('only a packet that the database refuses is left out of the index; it leaves the queue, and the job names it', async (t) => {
      const { store, database } = await queuedPackets(t, testStore, 5);
      // A full-text index accepts any words, so a plain table with a check constraint replaces it.
      const refusing = database.name === 'postgres' ? 'bigint, tenant bigint, words tsvector' : 'integer primary key, words text';
      await database.transaction(async (tx) => {
        await sql.raw('drop table search_index').execute(tx);
        await sql.raw(`create table search_index (rowid ${refusing}, check (cast(words as text) not like '%n3%'))`).execute(tx);
      });
      const job = createIndexingJob(store, () => now);
      await assert.rejects(job(), new RegExp(`a search can't find them: ${packetId(3)}$`));
      assert.equal(await store.index.queued(10), 0);
      const rows = await database.reads.selectFrom('search_index').select('rowid').orderBy('rowid').execute();
      assert.deepEqual(
        rows.map(({ rowid }) => rowid),
        [1, 2, 4, 5],
      );
      assert.equal(await job(), 100);
    });

    test('isQueued compares the number of waiting packets exactly', async (t) => {
      const { store } = await queuedPackets(t, testStore, 3);
      assert.deepEqual(await Promise.all([1, 3, 4].map((count) => store.index.isQueued(count))), [true, true, false]);
    });

    test('the job pauses while few packets wait, and longer when none do', async (t) => {
      const { store, indexed } = await queuedPackets(t, testStore, 900);
      const job = createIndexingJob(store, () => now);
      assert.deepEqual([await job(), await job(), await job(), await job()], [50, 50, 50, 100]);
      assert.equal(await indexed('word'), 900);
    });

    test('the job takes at most a fifth of the time, also when it finds nothing', async (t) => {
      const { store } = await queuedPackets(t, testStore, 1);
      let reads = 0;
      // Each look takes a second.
      const job = createIndexingJob(store, () => new Date(now.getTime() + 1000 * reads++));
      assert.deepEqual([await job(), await job()], [4001, 4001]);
    });

    test('a range takes only packets after its start and up to its end, of its tenant', async (t) => {
      const { indexer } = await queuedPackets(t, testStore, 9);
      const stretch = (after: number, upTo: number) => ({
        after: { tenant, packet: after },
        upTo: { tenant, packet: upTo },
        limit: 500,
      });
      assert.deepEqual(await indexer.prepare(stretch(2, 5)), { taken: 3, more: false });
      assert.deepEqual(await indexer.prepare(stretch(5, 5)), { taken: 0, more: false });
      const other = { after: { tenant: 2, packet: 0 }, upTo: { tenant: 2, packet: 1_000_000 }, limit: 500 };
      assert.deepEqual(await indexer.prepare(other), { taken: 0, more: false });
    });

    test('a step over large packets ends early, so that it blocks nobody for long', async (t) => {
      const { indexer, found } = await queuedPackets(t, testStore, 250, (number) => `word n${number} ${'x'.repeat(25_000)}`);
      assert.deepEqual(await indexer.prepare({ limit: 500 }), { taken: 78, more: true });
      await indexer.write();
      assert.equal(await found('word'), 250);
    });

    test('a search during other steps finds everything queued when it started', async (t) => {
      const { store, found } = await queuedPackets(t, testStore, 600);
      const jobs = [store.index.step(), store.index.step()];
      assert.equal(await found('word'), 600);
      await Promise.all(jobs);
      assert.equal(await store.index.queued(10), 0);
    });
  });
}
