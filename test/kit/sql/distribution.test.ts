import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openStore } from '../../../src/handoff/store/store.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { looking } from '../../support/consistency.ts';
import { createTestDatabase } from '../../support/databases.ts';

/** Opens the handoff service's store, which prepares its database. */
async function open(databaseUrl: string): Promise<void> {
  const store = await openStore({ databaseUrl, clock: systemClock, newId: () => assert.fail('Nothing is stored.') });
  await store.close();
}

test('An address with ?citus=true is refused where the extension is missing, and nothing is created', async (t) => {
  const { url, drop } = await createTestDatabase('');
  t.after(drop);
  await assert.rejects(
    open(`${url}?citus=true`),
    /^Error: \?citus=true is for a database with the extension citus, .*"create extension citus"/,
  );
  const tables = await looking(url, ({ query }) => query("select tablename from pg_tables where schemaname = 'public'"));
  assert.deepEqual(tables, []);
});
