import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openStore } from '../../src/handoff/store/store.ts';
import { systemClock } from '../../src/kit/clock.ts';
import { openClusterDatabase } from '../../test/support/citus.ts';
import { looking } from '../../test/support/consistency.ts';

/** Opens the handoff service's store, which prepares its database. */
async function open(databaseUrl: string): Promise<void> {
  const store = await openStore({ databaseUrl, clock: systemClock, newId: () => assert.fail('Nothing is stored.') });
  await store.close();
}

test('The first start distributes the tables of tenants together, and later starts need ?citus=true', async (t) => {
  const { url, drop } = await openClusterDatabase();
  t.after(drop);
  await open(url);
  await open(url);
  await assert.rejects(open(url.replace('?citus=true', '')), /distributed by Citus: add \?citus=true to its address/);
  const namesOf = (query: string) =>
    looking(url.replace('?citus=true', ''), async (own) => (await own.query(query)).map(({ name }) => name));
  const distributed = `select logicalrelid::text as name from pg_dist_partition`;
  assert.deepEqual(await namesOf(`select distinct colocation_id || ' ' || distribution_column as name from citus_tables`), [
    `${(await namesOf('select max(colocation_id) as name from citus_tables'))[0]} tenant`,
  ]);
  // A table of a new noun is distributed, unless it is named here.
  const here = `select tablename::text as name from pg_tables where schemaname = 'public' and tablename not in (${distributed}) order by 1`;
  assert.deepEqual(await namesOf(here), ['api_keys', 'due', 'migrations', 'tenants', 'versions']);
  assert.ok((await namesOf(distributed)).includes('documents'));
});

test('Tables that were made without ?citus=true are not distributed later', async (t) => {
  const { url, drop } = await openClusterDatabase();
  t.after(drop);
  await open(url.replace('?citus=true', ''));
  await assert.rejects(open(url), /distributes only new ones: export it, and import into a new database/);
});
