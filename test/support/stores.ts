import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openEmptyDatabase, openHandoffDatabase, type TestDatabase } from './databases.ts';

/** A kind of database that contract suites run on. */
export interface TestStore {
  readonly name: string;
  /** Opens a new database: empty, or with the schema of the handoff service, if the store can copy that in a tenth of the time. */
  open(schema?: 'handoff'): Promise<TestDatabase>;
}

/** The stores that all contract suites run on. */
export const stores: readonly TestStore[] = [
  { name: 'SQLite in memory', open: async () => ({ url: 'sqlite::memory:', drop: async () => undefined }) },
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
export const storesOfSeveral: readonly TestStore[] = stores.filter(({ name }) => name !== 'SQLite in memory');
