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
  const tables = await looking(url.replace('?citus=true', ''), ({ query }) =>
    query(`select count(distinct colocation_id)::int as places, min(distribution_column) as by, max(distribution_column) as also, count(*)::int as tables
      from citus_tables where citus_table_type = 'distributed'`),
  );
  assert.deepEqual(tables, [{ places: 1, by: 'tenant', also: 'tenant', tables: 14 }]);
});

test('Tables that were made without ?citus=true are not distributed later', async (t) => {
  const { url, drop } = await openClusterDatabase();
  t.after(drop);
  await open(url.replace('?citus=true', ''));
  await assert.rejects(open(url), /distributes only new ones: export it, and import into a new database/);
});
