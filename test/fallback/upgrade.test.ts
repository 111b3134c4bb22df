import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { migrations } from '../../src/fallback/store/migrations/index.ts';
import { answersOf, createChain, startFallback } from '../support/fallback.ts';
import { TestClock } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';
import { assertAdditive, assertAnswers, databasesOf, schemaOf } from '../support/upgrade.ts';

/** What the earlier version answered. */
interface Expected {
  readonly now: string;
  readonly paths: readonly string[];
  readonly answers: Record<string, string>;
}

const { fixtures, expectedOf, openFixture } = databasesOf<Expected>('fallback');

for (const fixture of fixtures) {
  for (const store of storesOfSeveral) {
    // A SQLite file belongs to one process.
    const count = store.name === 'PostgreSQL' ? 2 : 1;
    test(`A database of version ${fixture} of the fallback service on ${store.name} is migrated by ${count} starting at once`, async (t) => {
      const { now, paths, answers } = expectedOf(fixture);
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

describe('Migrations of the fallback service after the first version whose databases are kept', () => {
  test('only add: a table, an index, a column that may be null or has a default, or values, so that the previous version works on', () => {
    assertAdditive(migrations.filter(({ name }) => name > fixtures[0]!));
  });
});
