import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { openStore } from '../../../src/fallback/store/store.ts';
import { TestClock } from '../../support/service.ts';
import type { TestStore } from '../../support/store.ts';
import { everyStore } from '../../support/stores.ts';

const chainId = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
const idOf = (number: number) => `0197b5a6-0000-7000-8000-00000000000${number}`;
const momentOfIds = new Date(0x0197b5a60000);
const leaseUntil = new Date('2026-01-01T00:00:30Z');
const later = new Date('2026-01-01T00:00:31Z');

async function opened(t: TestContext, store: TestStore) {
  const { url, drop } = await store.open();
  const kept = await openStore({ databaseUrl: url, clock: new TestClock().read });
  t.after(async () => {
    await kept.close();
    await drop();
  });
  return kept.results;
}

for (const store of everyStore) {
  describe(`Results of tests on ${store.name}`, () => {
    test('the result of a running test has its finished prompts, in order', async (t) => {
      const results = await opened(t, store);
      await results.begin({ id: idOf(1), chainId, text: '{"done":0}', leaseUntil });
      assert.deepEqual(await results.find(idOf(1)), { id: idOf(1), status: 'running', text: '{"done":0}', prompts: '[]' });
      await results.addPrompts(
        idOf(1),
        [
          { position: 1, text: '"b"' },
          { position: 0, text: '"a"' },
        ],
        '{"done":2}',
      );
      await results.addPrompts(idOf(1), [{ position: 2, text: '"c"' }], '{"done":3}');
      await results.addPrompts(idOf(1), [], '{"done":9}');
      assert.deepEqual(await results.find(idOf(1)), { id: idOf(1), status: 'running', text: '{"done":3}', prompts: '["a","b","c"]' });
      assert.equal(await results.find(idOf(2)), undefined);
    });

    test('the result of an ended test is stored with its prompts, whether it was started here or not', async (t) => {
      const results = await opened(t, store);
      await results.begin({ id: idOf(1), chainId, text: '{}', leaseUntil });
      await results.addPrompts(idOf(1), [{ position: 0, text: '"a"' }], '{}');
      await results.end({ id: idOf(1), chainId, status: 'completed', text: '{"all":1}', prompts: '["a"]' });
      await results.end({ id: idOf(2), chainId, status: 'failed', text: '{}', prompts: '[]' });
      assert.deepEqual(await results.find(idOf(1)), { id: idOf(1), status: 'completed', text: '{"all":1}', prompts: '["a"]' });
      assert.equal((await results.find(idOf(2)))?.status, 'failed');
      assert.deepEqual(await results.orphans(undefined), []);
    });

    test("a chain's results are listed newest first, in pages, with their total [F46]", async (t) => {
      const results = await opened(t, store);
      for (const number of [1, 3, 2])
        await results.end({ id: idOf(number), chainId, status: 'completed', text: String(number), prompts: '[]' });
      await results.begin({ id: idOf(4), chainId: idOf(9), text: 'other', leaseUntil });
      const textsOf = async (limit: number, offset: number, maxBytes?: number) => {
        const { rows, total } = await results.ofChain(chainId, { limit, offset, ...(maxBytes === undefined ? {} : { maxBytes }) });
        assert.equal(total, 3);
        return rows.map(({ text }) => text);
      };
      assert.deepEqual(await textsOf(10, 0), ['3', '2', '1']);
      assert.deepEqual(await textsOf(2, 1), ['2', '1']);
      assert.deepEqual(await textsOf(2, 3), []);
      // Of three with three bytes each; the first is shown however large it is.
      assert.deepEqual(await textsOf(10, 0, 6), ['3', '2']);
      assert.deepEqual(await textsOf(10, 2, 0), ['1']);
    });

    test('tests that were running when their process ended are found with their chain and prompts', async (t) => {
      const results = await opened(t, store);
      await results.begin({ id: idOf(1), chainId, text: '{}', leaseUntil });
      await results.addPrompts(idOf(1), [{ position: 0, text: '"a"' }], '{"done":1}');
      await results.end({ id: idOf(2), chainId, status: 'cancelled', text: '{}', prompts: '[]' });
      const left = { id: idOf(1), chain_id: chainId, status: 'running', text: '{"done":1}', prompts: '["a"]' };
      assert.deepEqual(await results.orphans(undefined), [left]);
      assert.deepEqual(await results.orphans(leaseUntil), []);
      assert.deepEqual(await results.orphans(later), [left]);
    });

    test('a lease is renewed while the test runs, and returns a requested cancellation', async (t) => {
      const results = await opened(t, store);
      for (const number of [1, 2]) await results.begin({ id: idOf(number), chainId, text: '{}', leaseUntil });
      assert.deepEqual(await results.renew([idOf(1)], later), [{ id: idOf(1), cancel: false }]);
      assert.deepEqual(
        (await results.orphans(later)).map(({ id }) => id),
        [idOf(2)],
      );
      assert.equal(await results.requestCancel(idOf(1)), true);
      await results.end({ id: idOf(2), chainId, status: 'completed', text: '{}', prompts: '[]' });
      assert.deepEqual(await results.renew([idOf(1), idOf(2)], later), [{ id: idOf(1), cancel: true }]);
      for (const number of [2, 3]) assert.equal(await results.requestCancel(idOf(number)), false);
    });

    test('a test ends once: a later end, or one during a lease, changes nothing', async (t) => {
      const results = await opened(t, store);
      await results.begin({ id: idOf(1), chainId, text: '{}', leaseUntil });
      const orphan = { id: idOf(1), chainId, status: 'cancelled', text: '{"orphan":1}', prompts: '[]' };
      assert.equal(await results.end({ ...orphan, unlessLeasedAt: leaseUntil }), false);
      assert.equal(await results.end({ ...orphan, unlessLeasedAt: later }), true);
      assert.equal(await results.end({ id: idOf(1), chainId, status: 'completed', text: '{"late":1}', prompts: '[]' }), false);
      await results.addPrompts(idOf(1), [{ position: 0, text: '"late"' }], '{"late":1}');
      assert.deepEqual(await results.find(idOf(1)), { id: idOf(1), status: 'cancelled', text: '{"orphan":1}', prompts: '[]' });
    });

    test('the newest results of a chain, and those started since a given time, are kept; running tests stay [F54]', async (t) => {
      const results = await opened(t, store);
      await results.begin({ id: idOf(1), chainId, text: '{}', leaseUntil });
      await results.end({ id: idOf(2), chainId: idOf(9), status: 'completed', text: 'other', prompts: '[]' });
      for (const number of [3, 4, 5])
        await results.end({ id: idOf(number), chainId, status: 'completed', text: String(number), prompts: '[]', keep: 2 });
      const kept = async () => {
        const { rows } = await results.ofChain(chainId, { limit: 10, offset: 0 });
        return rows.map(({ id }) => id);
      };
      assert.deepEqual(await kept(), [idOf(5), idOf(4), idOf(1)]);
      assert.equal((await results.find(idOf(2)))?.text, 'other');
      assert.equal(await results.prune(momentOfIds), false);
      assert.deepEqual(await kept(), [idOf(5), idOf(4), idOf(1)]);
      assert.equal(await results.prune(new Date(momentOfIds.getTime() + 1)), false);
      assert.deepEqual(await kept(), [idOf(1)]);
      assert.equal(await results.find(idOf(2)), undefined);
    });
  });
}
