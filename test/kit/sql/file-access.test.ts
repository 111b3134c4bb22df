import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';

import { openDatabase } from '../../../src/kit/sql/database.ts';
import { fileWarnings } from '../../../src/kit/sql/file-access.ts';
import { holdFile } from '../../../src/kit/sql/file-lock.ts';
import { temporaryFolder } from '../../support/folder.ts';

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** The URL and the path of a database in a new folder that does not exist yet; other users may read new files by default. */
function newFile(t: TestContext): { folder: string; path: string; url: string } {
  const before = process.umask(0o022);
  t.after(() => process.umask(before));
  const folder = join(temporaryFolder(t), 'data');
  const path = join(folder, 'some.db');
  return { folder, path, url: `sqlite://${path}` };
}

test('Only the user that runs a service can read its SQLite database, WAL, shared memory and lock', async (t) => {
  const { folder, path, url } = newFile(t);
  await holdFile(url, { service: 'test', migrations: [], migrationsTable: 'migrations' });
  const database = openDatabase<Record<string, never>>(url);
  t.after(() => database.close());
  await database.transaction(async (db) => db.schema.createTable('words').addColumn('word', 'text').execute());
  assert.equal(modeOf(folder), '700');
  for (const end of ['', '-wal', '-shm', '.lock']) assert.equal(modeOf(path + end), '600', end);
  assert.deepEqual(fileWarnings(url), []);
});

test('A file that other users can read gives a warning with the command that changes it, and keeps its permissions', async (t) => {
  const { path, url } = newFile(t);
  await openDatabase(url).close();
  chmodSync(path, 0o644);
  const database = openDatabase(url);
  t.after(() => database.close());
  assert.equal(modeOf(path), '644');
  const [warning = ''] = fileWarnings(url);
  assert.match(warning, new RegExp(`: run chmod 600 ${path}`));
  chmodSync(path, 0o600);
  for (const end of ['-wal', '-shm']) if (existsSync(path + end)) chmodSync(path + end, 0o600);
  assert.deepEqual(fileWarnings(url), []);
});

test('A deleted value is no longer in the SQLite file', async (t) => {
  const { path, url } = newFile(t);
  const database = openDatabase<{ words: { word: string } }>(url);
  await database.transaction(async (db) => {
    await db.schema.createTable('words').addColumn('word', 'text').execute();
    await db.insertInto('words').values({ word: 'whsec_of_a_webhook' }).execute();
  });
  await database.transaction(async (db) => db.deleteFrom('words').execute());
  await database.close();
  assert.equal(existsSync(`${path}-wal`), false);
  assert.equal(readFileSync(path, 'latin1').includes('whsec_of_a_webhook'), false);
});
