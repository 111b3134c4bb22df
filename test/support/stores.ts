import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** A place to keep things, as a contract suite opens it: each call gives the address of an empty database of its own. */
export interface TestStore {
  readonly name: string;
  open(): Promise<{ url: string; drop(): Promise<void> }>;
}

let databases = 0;

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
  { name: 'PostgreSQL', open: () => openPostgresDatabase() },
];

/** A new database on the PostgreSQL that the test run started. */
export async function openPostgresDatabase(options = ''): Promise<{ url: string; drop(): Promise<void> }> {
  const server = process.env.BATON_TEST_POSTGRES;
  if (server === undefined) throw new Error('No PostgreSQL: run the tests with `npm test`, which starts one.');
  databases += 1;
  const name = `baton_${process.pid}_${databases}`;
  await withClient(`${server}/postgres`, (client) => client.query(`create database ${name} ${options}`));
  return {
    url: `${server}/${name}`,
    drop: async () => {
      await withClient(`${server}/postgres`, (client) => client.query(`drop database ${name} with (force)`));
    },
  };
}

async function withClient(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
