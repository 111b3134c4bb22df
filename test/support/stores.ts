import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openEmptyDatabase, openHandoffDatabase } from './databases.ts';
import { inMemory, type TestStore } from './store.ts';

/** The stores that all contract suites run on. */
export const stores: readonly TestStore[] = [
  inMemory,
  {
    name: 'SQLite on disk',
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'baton-'));
      return { url: `sqlite://${join(folder, 'test.db')}`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
    },
  },
  { name: 'PostgreSQL', open: (schema) => (schema === 'handoff' ? openHandoffDatabase() : openEmptyDatabase()) },
];

/** The stores whose data a second connection can open, for tests that look into tables. */
export const storesOfSeveral: readonly TestStore[] = stores.filter((store) => store !== inMemory);
