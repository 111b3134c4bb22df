/** A database that only one test uses. */
export interface TestDatabase {
  readonly url: string;
  /** Releases it and terminates all connections to it. */
  readonly drop: () => Promise<void>;
}

/** A kind of database that contract suites run on. */
export interface TestStore {
  readonly name: string;
  /** Opens a new database: empty, or with the schema of the handoff service, if the store can copy that in a tenth of the time. */
  open(schema?: 'handoff'): Promise<TestDatabase>;
}

/**
 * A table `numbers` with the numbers from 1 to `count`, in the SQL of the database at the URL. On a cluster nothing can be inserted
 * from a recursive query.
 */
export const numbersTo = (url: string, count: number): string =>
  url.startsWith('sqlite')
    ? `(with recursive counted (number) as (select 1 union all select number + 1 from counted where number < ${count}) select number from counted) as numbers`
    : `generate_series(1, ${count}) as numbers (number)`;

/** The store of tests that don't depend on it. */
export const inMemory: TestStore = {
  name: 'SQLite in memory',
  open: async () => ({ url: 'sqlite::memory:', drop: async () => undefined }),
};
