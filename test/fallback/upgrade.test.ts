import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { migrations } from '../../src/fallback/store/migrations/index.ts';
import { looking } from '../support/consistency.ts';
import { answersOf, createChain, startFallback } from '../support/fallback.ts';
import { TestClock } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';
import { assertAdditive, assertAnswers, databasesOf, fallback, schemaOf } from '../support/upgrade.ts';

const { fixtures, expectedOf, openFixture } = databasesOf(fallback);

for (const fixture of fixtures) {
  for (const store of storesOfSeveral) {
    // A SQLite file belongs to one process.
    const count = store.name === 'PostgreSQL' ? 2 : 1;
    test(`A database of version ${fixture} of the fallback service on ${store.name} is opened by ${count} starting at once`, async (t) => {
      const { now, paths, answers } = await expectedOf(fixture);
      const { url, drop } = await openFixture[store.name]!(fixture);
      const start = () => startFallback(t, { storage: url, clock: new TestClock(now) });
      const instances = await Promise.all(Array.from({ length: count }, start));
      t.after(drop);
      for (const one of instances) assertAnswers(await answersOf(one, paths), answers);
      for (const one of instances) await createChain(one);
      const fresh = await startFallback(t, { store });
      assert.deepEqual(await schemaOf(url), await schemaOf(fresh.storage));
    });
  }
}

for (const store of storesOfSeveral) {
  test(`A chain with characters that PostgreSQL can't decode is stored on ${store.name} and found by its name`, async (t) => {
    const { url, drop } = await store.open();
    const service = await startFallback(t, { storage: url });
    t.after(drop);
    const id = '019ca8bb-b5c0-712a-adab-000000000000';
    const text = JSON.stringify({ id, name: 'odd "name"', description: null, metadata: { nul: '\0', half: '\ud800' } });
    await looking(url, ({ query }) => query(`insert into chains (id, version, text) values ('${id}', 1, '${text}')`));
    assert.equal((await service.call('GET', `/chains/${id}`)).text, text);
    assert.match(JSON.stringify((await createChain(service, { name: 'odd "name"' })).warnings), new RegExp(`Another chain, ${id}`));
  });
}

describe('Migrations of the fallback service after the first schema', () => {
  test('only add a table, an index, a column that may be null or has a default, or values, or replace an index, so that the previous version works on', () => {
    assertAdditive(migrations.slice(1));
    // There may be none yet.
    assert.throws(() => assertAdditive([{ name: 'x', up: () => ['drop table chains'] }]), /x on sqlite/);
  });
});
