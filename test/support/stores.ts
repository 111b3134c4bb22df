import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openEmptyDatabase, openHandoffDatabase, type TestDatabase } from './databases.ts';

/** A place to keep things, as a contract suite opens it. */
export interface TestStore {
  readonly name: string;
  /** Gives a database of its own: empty, or for a new handoff service, which costs a tenth where the store can copy its schema. */
  open(schema?: 'handoff'): Promise<TestDatabase>;
}

/** Every store that the contract suites run on, no case skipped on any. */
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
