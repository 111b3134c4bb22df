import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openEmptyDatabase, openHandoffDatabase } from './databases.ts';
import { inMemory, type TestStore } from './store.ts';

/** PostgreSQL: a database of the server of the run. */
export const postgresql: TestStore = {
  name: 'PostgreSQL',
  open: (schema) => (schema === 'handoff' ? openHandoffDatabase() : openEmptyDatabase()),
};

/** PostgreSQL through a PgBouncer in transaction mode. */
const throughPgbouncer: TestStore = {
  name: 'PostgreSQL through PgBouncer',
  async open(schema) {
    const { url, drop } = await postgresql.open(schema);
    const through = new URL(url);
    through.host = process.env.BATON_TEST_PGBOUNCER!;
    through.searchParams.set('pgbouncer', 'true');
    return { url: through.href, drop };
  },
};

/** SQLite in a file. */
export const onDisk: TestStore = {
  name: 'SQLite on disk',
  async open() {
    const folder = mkdtempSync(join(tmpdir(), 'baton-'));
    return { url: `sqlite://${join(folder, 'test.db')}`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
  },
};

/** The only store of a run (`npm test -- FILE --store NAME`), or undefined. */
const only: TestStore | undefined = { memory: inMemory, disk: onDisk, postgresql, pgbouncer: throughPgbouncer }[
  process.env.BATON_TEST_STORE ?? ''
];

/** The stores that all contract suites run on. */
export const stores: readonly TestStore[] = only === undefined ? [inMemory, postgresql] : [only];

/** All stores, for suites of the store itself, of files and of instances. */
export const everyStore: readonly TestStore[] = only === undefined ? [inMemory, onDisk, postgresql] : [only];

/** The stores whose data a second connection can open, for tests that look into tables. */
export const storesOfSeveral: readonly TestStore[] = everyStore.filter((store) => store !== inMemory);
