import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** A place to keep things, as a contract suite opens it. */
export interface TestStore {
  readonly name: string;
  /**
   * Gives the address of a database of its own: empty, or with the schema of the handoff service where that is asked for and
   * the store can copy it, which takes a tenth of the time.
   */
  open(schema?: 'handoff'): Promise<{ url: string; drop(): Promise<void> }>;
}

/** The database on the server of the tests that has the schema of the handoff service and nothing else. */
export const handoffTemplate = 'baton_template_handoff';

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
  { name: 'PostgreSQL', open: (schema) => openPostgresDatabase(schema && `template ${handoffTemplate}`) },
];

/** A new database on the PostgreSQL that the test run started. */
export async function openPostgresDatabase(options = ''): Promise<{ url: string; drop(): Promise<void> }> {
  const server = process.env.BATON_TEST_POSTGRES;
  if (server === undefined) throw new Error('No PostgreSQL: run the tests with `npm test`, which starts one.');
  databases += 1;
  const name = `baton_${process.pid}_${databases}`;
  await withServer(server, (client) => client.query(`create database ${name} ${options}`));
  return {
    url: `${server}/${name}`,
    drop: async () => {
      await withServer(server, (client) => client.query(`drop database ${name} with (force)`));
    },
  };
}

/** Does some work on a connection to the server itself. */
export async function withServer(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(`${url}/postgres`);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
