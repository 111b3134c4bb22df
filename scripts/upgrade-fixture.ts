import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { startPostgres } from '../test/support/postgres.ts';
import { fallback, handoff, writeFixture } from '../test/support/upgrade.ts';

/**
 * Writes the databases of this version that later versions are tested with, into folders of `test/<service>/upgrade` that have the
 * name of the last migration: the same data as a SQLite file and as SQL for PostgreSQL, and the answers of this version.
 * Run it when a version is released: `node scripts/upgrade-fixture.ts`.
 */
const server = await startPostgres({ durable: false });
process.env.BATON_TEST_POSTGRES = server.url;

function folderOf({ moved: { service, migrations } }: Pick<typeof handoff, 'moved'>): string {
  const folder = fileURLToPath(new URL(`../test/${service}/upgrade/${migrations.at(-1)!.name}`, import.meta.url));
  mkdirSync(folder, { recursive: true });
  console.log(`Written: ${folder}`);
  return folder;
}

await writeFixture(handoff, folderOf(handoff));
await writeFixture(fallback, folderOf(fallback));
await server.stop();
