import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { migrations } from '../../src/fallback/store/migrations/index.ts';
import { looking } from '../support/consistency.ts';
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

for (const store of storesOfSeveral) {
  test(`A chain that the previous version creates or renames on ${store.name} after the upgrade is found by its name`, async (t) => {
    const { url, drop } = await openFixture[store.name]!('0002-leases');
    const { now } = expectedOf('0002-leases');
    const service = await startFallback(t, { storage: url, clock: new TestClock(now) });
    t.after(drop);
    const { id, ...chain } = await createChain(service, { name: 'renamed' });
    const other = '019ca8bb-b5c0-712a-adab-000000000000';
    // What version 0002-leases executes.
    await looking(url, async ({ query }) => {
      await query(
        `insert into chains (id, version, text) values ('${other}', 1, '${JSON.stringify({ id: other, ...chain, name: 'created' })}')`,
      );
      await query(`update chains set version = 2, text = '${JSON.stringify({ id, ...chain, name: 'new "name"' })}' where id = '${id}'`);
    });
    const namesakeOf = async (name: string) => {
      const { warnings } = await createChain(service, { name });
      return warnings.find(({ code }: { code: string }) => code === 'same_name')?.detail.match(/[\da-f-]{36}/)[0];
    };
    assert.equal(await namesakeOf('created'), other);
    assert.equal(await namesakeOf('new "name"'), id);
    assert.equal(await namesakeOf('renamed'), undefined);
  });

  test(`A chain with characters that PostgreSQL can't decode is no obstacle to a migration on ${store.name}`, async (t) => {
    const { url, drop } = await openFixture[store.name]!('0002-leases');
    const id = '019ca8bb-b5c0-712a-adab-000000000000';
    const text = JSON.stringify({ id, name: 'odd', description: null, metadata: { nul: '\0', half: '\ud800' } });
    await looking(url, ({ query }) => query(`insert into chains (id, version, text) values ('${id}', 1, '${text}')`));
    const service = await startFallback(t, { storage: url });
    t.after(drop);
    assert.equal((await service.call('GET', `/chains/${id}`)).text, text);
    assert.match(JSON.stringify((await createChain(service, { name: 'odd' })).warnings), new RegExp(`Another chain, ${id}`));
  });
}

describe('Migrations of the fallback service after the first version whose databases are kept', () => {
  test('only add a table, an index, a column that may be null or has a default, or values, or replace an index, so that the previous version works on', () => {
    assertAdditive(migrations.filter(({ name }) => name > fixtures[0]!));
  });
});
