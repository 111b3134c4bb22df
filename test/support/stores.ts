import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { isOnCluster, openClusterDatabase } from './citus.ts';
import { openEmptyDatabase, openHandoffDatabase } from './databases.ts';
import { inMemory, type TestStore } from './store.ts';

/** The host of a PgBouncer before the test server, for runs through it. */
const bouncer = process.env.BATON_TEST_PGBOUNCER;

/** PostgreSQL through a PgBouncer in transaction mode. */
const throughPgbouncer: TestStore = {
  name: 'PostgreSQL through PgBouncer',
  async open(schema) {
    const { url, drop } = await (schema === 'handoff' ? openHandoffDatabase() : openEmptyDatabase());
    const through = new URL(url);
    through.host = bouncer!;
    through.searchParams.set('pgbouncer', 'true');
    return { url: through.href, drop };
  },
};

/** SQLite in a file, in every run. */
export const onDisk: TestStore = {
  name: 'SQLite on disk',
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'baton-'));
    return { url: `sqlite://${join(folder, 'test.db')}`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
  },
};

const usualStores: readonly TestStore[] = [
  inMemory,
  onDisk,
  { name: 'PostgreSQL', open: (schema) => (schema === 'handoff' ? openHandoffDatabase() : openEmptyDatabase()) },
];

/** The stores that all contract suites run on. */
export const stores: readonly TestStore[] = isOnCluster
  ? // Named as what it stands in for.
    [{ name: 'PostgreSQL', open: openClusterDatabase }]
  : bouncer === undefined
    ? usualStores
    : [throughPgbouncer];

/** The stores whose data a second connection can open, for tests that look into tables. */
export const storesOfSeveral: readonly TestStore[] = stores.filter((store) => store !== inMemory);
