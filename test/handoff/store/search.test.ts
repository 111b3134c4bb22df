import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import type { CreateRequest } from '../../../src/handoff/model/packet.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { phrasesOf } from '../../../src/handoff/rules/tokenizer.ts';
import type { PacketFilter } from '../../../src/handoff/store/packet-filter.ts';
import { Budget, unlimited } from '../../../src/handoff/store/search/budget.ts';
import { Indexer } from '../../../src/handoff/store/search/indexer.ts';
import { createSearcher, type SearchPage, type SearchResult, type SearchStart } from '../../../src/handoff/store/search/search.ts';
import { openStore } from '../../../src/handoff/store/store.ts';
import type { Tables } from '../../../src/handoff/store/tables.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import type { TestStore } from '../../support/store.ts';
import { storesOfSeveral } from '../../support/stores.ts';

const tenant = 7;
const agent = { id: 'a', name: 'A', framework: 'f' };

/** Low limits, so that a few packets exceed them. */
const bounds = { ranked: 10, readPositions: 10, counted: 20, scannedPackets: 15, scannedTexts: 6, expected: 100 };

interface Asked {
  q: string;
  filter?: PacketFilter;
  limit?: number;
  offset?: number;
  from?: SearchStart | undefined;
}

/** A search with low limits over indexed packets with these summaries, oldest first; every tenth packet is critical. */
async function searching(t: TestContext, testStore: TestStore, summaries: readonly string[], other: Partial<typeof bounds> = {}) {
  const { url, drop } = await testStore.open('handoff');
  const store = await openStore({ databaseUrl: url, clock: systemClock, newId: () => '' });
  const database = openDatabase<Tables>(url);
  t.after(async () => {
    await store.close();
    await database.close();
    await drop();
  });
  await store.whole(tenant).commit({
    work({ packets }) {
      for (const [index, summary] of summaries.entries()) {
        const priority = index % 10 === 0 ? 'critical' : 'normal';
        const request: CreateRequest = { metadata: { source_agent: agent, target_agent: agent, priority }, context: { summary } };
        const id = `0197b5a6-8c3e-7f01-9a2b-${String(index).padStart(12, '0')}`;
        packets.insert(newPacket(request, { id, now: new Date(), agentId: undefined }).packet);
      }
    },
  });
  // What the store's thread does; to start it takes longer than most of the tests.
  const indexer = new Indexer(database);
  assert.deepEqual(await indexer.prepare({ limit: 500 }), { taken: summaries.length, more: false });
  await indexer.write();
  const searcher = createSearcher(database, { ...bounds, ...other });
  /** A search with a budget; a millisecond passes whenever the time is read. */
  const askWithin = (allowance: { ms?: number; steps?: number }, q: string, filter: PacketFilter = {}): Promise<SearchResult> => {
    let ms = 0;
    const budget = new Budget({ ...unlimited, ...allowance }, () => ms++);
    return createSearcher(database, { ...bounds, ...other }, budget).search({ tenant, phrases: phrasesOf(q), filter, limit: 5, offset: 0 });
  };
  const ask = ({ q, filter = {}, limit = 5, offset = 0, from }: Asked): Promise<SearchResult> =>
    searcher.search({ tenant, phrases: phrasesOf(q), filter, limit, offset, from });
  const page = async (asked: Asked): Promise<SearchPage> => {
    const result = await ask(asked);
    assert.ok('rows' in result, JSON.stringify(result));
    return result;
  };
  /** The summaries of all pages, and the number of pages. */
  async function all(asked: Asked): Promise<{ found: string[]; pages: number }> {
    const found: string[] = [];
    let pages = 0;
    for (let from: SearchStart | undefined; pages === 0 || from !== undefined; pages += 1) {
      const { rows, next }: SearchPage = await page({ ...asked, from });
      found.push(...summariesOf(rows));
      from = next;
    }
    return { found, pages };
  }
  return { ask, askWithin, page, all, store };
}

const summariesOf = (rows: SearchPage['rows']): string[] => rows.map(({ summary }) => JSON.parse(summary).context.summary);
const numbered = (count: number, text = 'word') => Array.from({ length: count }, (_, index) => `${text} ${index}`);

// A store in memory allows no second connection.
for (const testStore of storesOfSeveral) {
  describe(`The limits of a search on ${testStore.name}`, () => {
    test('matches are ranked up to a limit, and the answer says so; beyond it the newest come first [H91]', async (t) => {
      const { page } = await searching(t, testStore, [
        ...numbered(10, 'few word'),
        ...numbered(10, 'many'),
        'many many many many',
        'lone many',
      ]);
      const few = await page({ q: 'few' });
      assert.deepEqual([few.order, few.total, few.total_is], ['rank', 10, 'exact']);
      const many = await page({ q: 'many', limit: 3 });
      assert.deepEqual([many.order, many.total, many.total_is], ['newest', 12, 'exact']);
      assert.deepEqual(summariesOf(many.rows), ['lone many', 'many many many many', 'many 9']);
      // A common word next to a rare one does not affect the ranking, but must occur.
      const both = await page({ q: 'many lone' });
      assert.deepEqual([both.order, summariesOf(both.rows)], ['rank', ['lone many']]);
    });

    test('beyond a second limit the total is reported as a lower bound [H91]', async (t) => {
      const { page } = await searching(t, testStore, numbered(25));
      const { order, total, total_is } = await page({ q: 'word' });
      assert.deepEqual([order, total, total_is], ['newest', 20, 'at_least']);
    });

    test('paging shows every match once, newest first, however many there are [H91]', async (t) => {
      const { page, all } = await searching(t, testStore, numbered(40));
      const newest = numbered(40).reverse();
      const { found, pages } = await all({ q: 'word', limit: 7 });
      assert.deepEqual([found, pages], [newest, 6]);
      assert.deepEqual((await all({ q: 'word', limit: 7, offset: 38 })).found, newest.slice(38));
      // The offset is too deep for one scan, so the next page continues.
      const far = await all({ q: 'word', limit: 7, offset: 33 });
      assert.deepEqual(far.found, newest.slice(33));
      assert.deepEqual((await page({ q: 'word', limit: 40 })).rows.length <= bounds.scannedPackets, true);
    });

    test('with a filter each page scans a bounded number of matches: it may end early, and next continues [H91]', async (t) => {
      const { page, all } = await searching(t, testStore, numbered(40));
      const filter = { priority: 'critical' };
      const first = await page({ q: 'word', filter, limit: 5 });
      assert.equal(first.order, 'newest');
      assert.equal(first.total_is, testStore.name === 'PostgreSQL' ? 'exact' : 'at_least');
      const { found } = await all({ q: 'word', filter, limit: 5 });
      assert.deepEqual(found, ['word 30', 'word 20', 'word 10', 'word 0']);
      assert.deepEqual((await all({ q: 'word', filter, limit: 2, offset: 1 })).found, ['word 20', 'word 10', 'word 0']);
    });

    test('a phrase of common words is searched in the newest packets with its words: a page may end early, and next continues [H93]', async (t) => {
      const summaries = Array.from({ length: 40 }, (_, index) => (index % 10 === 5 ? `the green red ${index}` : `red green ${index}`));
      const { page, all } = await searching(t, testStore, summaries);
      const wanted = summaries.filter((summary) => summary.startsWith('the')).sort();
      for (const q of ['"green red"', '"green re*"', '"the green red"']) {
        const { found } = await all({ q, limit: 2 });
        // If few packets have a phrase's words, they are ranked; PostgreSQL counts the matches of the phrase itself.
        assert.deepEqual(found.toSorted(), wanted, q);
      }
      const first = await page({ q: '"green red"', limit: 5 });
      const bounded = { order: 'newest', rows: 1, total: 1, total_is: 'at_least' };
      const exact = { order: 'rank', rows: 4, total: 4, total_is: 'exact' };
      assert.deepEqual(
        { order: first.order, rows: first.rows.length, total: first.total, total_is: first.total_is },
        testStore.name === 'PostgreSQL' ? exact : bounded,
      );
      const rare = await page({ q: '"the green red"', limit: 5 });
      assert.deepEqual([rare.order, rare.total, rare.total_is], ['rank', 4, 'exact']);
      assert.deepEqual((await all({ q: '"green red"', filter: { priority: 'critical' } })).found, []);
      assert.deepEqual((await all({ q: '"red green"', filter: { priority: 'critical' } })).found.length, 4);
    });

    test('a long phrase is scanned in texts from fewer matches of its words than a short one', async (t) => {
      const summaries = Array.from({ length: 8 }, (_, index) => `one two three four ${index}`);
      const { page } = await searching(t, testStore, summaries, { scannedTexts: 20 });
      assert.equal((await page({ q: '"one two"' })).order, 'rank');
      // PostgreSQL reads a word's positions only for the packets that have all of them.
      const long = await page({ q: '"one two three four"' });
      assert.deepEqual([long.order, long.rows.length], [testStore.name === 'PostgreSQL' ? 'rank' : 'newest', 5]);
    });

    test('matches that PostgreSQL expects to be too many are not counted: it scans the newest packets, and next continues [H93]', async (t) => {
      const summaries = Array.from({ length: 40 }, (_, index) => (index % 10 === 5 ? `the green red ${index}` : `red green ${index}`));
      const { page, all } = await searching(t, testStore, summaries, { expected: 0 });
      for (const q of ['red', '"green red"', 'the red'])
        assert.deepEqual((await all({ q, limit: 3 })).found.length, q === 'red' ? 40 : 4, q);
      const { order, total, total_is } = await page({ q: 'the', limit: 5 });
      assert.deepEqual([order, total, total_is], testStore.name === 'PostgreSQL' ? ['newest', 2, 'at_least'] : ['rank', 4, 'exact']);
    });

    test('a prefix that matches very many packets finds all of them, newest first; a rare word or prefix is ranked [H91]', async (t) => {
      const summaries = Array.from({ length: 240 }, (_, index) => (index % 100 === 5 ? `refund of zephyr ${index}` : `return ${index}`));
      const { page, all } = await searching(t, testStore, summaries, { expected: 50, scannedPackets: 100 });
      const common = await page({ q: 're*', limit: 5 });
      assert.deepEqual([common.order, common.total_is], ['newest', 'at_least']);
      assert.deepEqual(summariesOf(common.rows), ['return 239', 'return 238', 'return 237', 'return 236', 'return 235']);
      assert.deepEqual((await all({ q: 're*', limit: 90 })).found, summaries.toReversed());
      for (const q of ['zephyr', 'ze*', 'zephyr re*', '"refund of ze*"', 're* zephyr']) {
        const { order, total, total_is, rows } = await page({ q, limit: 5 });
        assert.deepEqual([q, order, total, total_is], [q, 'rank', 3, 'exact']);
        assert.deepEqual(summariesOf(rows).sort(), ['refund of zephyr 105', 'refund of zephyr 205', 'refund of zephyr 5']);
      }
      assert.deepEqual((await page({ q: 'zephyr ret*' })).rows, []);
      assert.deepEqual((await page({ q: '"zephyr refund"' })).rows, []);
    });

    test('ranked paging continues with a few new matches, but not with too many [H90]', async (t) => {
      const { page, ask } = await searching(t, testStore, numbered(15));
      const on = await page({ q: 'word', limit: 5, from: { order: 'rank', shown: 5 } });
      assert.deepEqual([on.order, on.rows.length, on.next], ['rank', 5, { order: 'rank', shown: 10 }]);
      const more = await searching(t, testStore, numbered(25));
      assert.deepEqual(await more.ask({ q: 'word', limit: 5, from: { order: 'rank', shown: 5 } }), { outgrown: true });
      assert.ok('rows' in (await ask({ q: 'word' })));
    });

    test('a search that has used its time in the fast lane ends before its next statement', async (t) => {
      const { askWithin } = await searching(t, testStore, numbered(8, 'one'));
      const results = await Promise.all(Array.from({ length: 30 }, (_, ms) => askWithin({ ms }, 'one')));
      const ends = results.map((result) => 'overBudget' in result);
      assert.equal(ends[0], true);
      assert.equal(ends.at(-1), false);
      // More time never makes a search end earlier.
      assert.deepEqual(ends, ends.toSorted().toReversed());
    });

    test('on SQLite no statement of a search starts that would take more steps than the lane allows [H98]', async (t) => {
      const summaries = Array.from({ length: 40 }, (_, index) => `alpha beta ${index % 2 ? 'odd' : 'even'} n${index}`);
      const { askWithin, page } = await searching(t, testStore, summaries, { ranked: 50, readPositions: 50 });
      const steps = async (q: string, filter?: PacketFilter) => {
        for (const most of [0, 100, 1_000, 3_000, 10_000, 30_000, 100_000])
          if ('rows' in (await askWithin({ steps: most }, q, filter))) return most;
        return Number.POSITIVE_INFINITY;
      };
      const needed = {
        'one rare word': await steps('n7'),
        'one common word, which is ranked': await steps('alpha'),
        'two common words without a match': await steps('odd even'),
        'a common word and a rare one': await steps('alpha n7'),
        'ten alternatives': await steps('n3*'),
      };
      const free = Object.fromEntries(Object.keys(needed).map((name) => [name, 0]));
      assert.deepEqual(
        needed,
        testStore.name === 'PostgreSQL'
          ? free
          : {
              'one rare word': 3_000,
              'one common word, which is ranked': 3_000,
              'two common words without a match': 10_000,
              'a common word and a rare one': 10_000,
              'ten alternatives': 100_000,
            },
      );
      assert.equal((await page({ q: 'odd even' })).total, 0);
    });

    test('on SQLite packets are compared with a filter in parts, with others in between [H98]', async (t) => {
      const { askWithin } = await searching(t, testStore, numbered(15));
      // Compared to a search without a filter, one more pause after the ranking and one after each part.
      const ends = async (filter: PacketFilter) => {
        const results = await Promise.all(Array.from({ length: 30 }, (_, ms) => askWithin({ ms }, 'word', filter)));
        return results.filter((result) => 'overBudget' in result).length;
      };
      const more = (await ends({ priority: 'normal' })) - (await ends({}));
      assert.equal(more > 0, testStore.name !== 'PostgreSQL');
    });

    test('a prefix of more than a thousand words is found too [H93]', async (t) => {
      const words = Array.from({ length: 1200 }, (_, index) => `re${index}`);
      const { store } = await searching(t, testStore, [words.join(' '), 'refund', 'other']);
      const search = { phrases: phrasesOf('re*'), filter: {}, limit: 5, offset: 0 };
      assert.equal((await store.whole(tenant).packets.search(search)).total, 2);
    });
  });
}
