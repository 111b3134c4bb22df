/** A database that only one test uses. */
export interface TestDatabase {
  readonly url: string;
  /** Releases it and terminates all connections to it. */
  drop(): Promise<void>;
}

/** A kind of database that contract suites run on. */
export interface TestStore {
  readonly name: string;
  /** Opens a new database: empty, or with the schema of the handoff service, if the store can copy that in a tenth of the time. */
  open(schema?: 'handoff'): Promise<TestDatabase>;
}

/** The store of tests that don't depend on it. */
export const inMemory: TestStore = {
  name: 'SQLite in memory',
  open: async () => ({ url: 'sqlite::memory:', drop: async () => undefined }),
};
