import assert from 'node:assert/strict';
import { linkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';

import { systemClock } from '../../../src/kit/clock.ts';
import { backUp } from '../../../src/kit/sql/backup.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import { exportTo } from '../../../src/kit/sql/export.ts';
import { holdFile } from '../../../src/kit/sql/file-lock.ts';
import { importFrom } from '../../../src/kit/sql/import.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { startProgram } from '../../support/program.ts';

/** What a service leaves in its database. */
const schema = { service: 'test', migrations: [], migrationsTable: 'migrations' };

const module = new URL('../../../src/kit/sql/file-lock.ts', import.meta.url);

function newFile(t: TestContext): string {
  const folder = temporaryFolder(t);
  return `sqlite://${join(folder, 'test.db')}`;
}

/** A process that holds the lock until it is killed. */
async function startHolder(t: TestContext, url: string) {
  const source = `import('${module}').then(async ({ holdFile }) => { await holdFile('${url}', ${JSON.stringify(schema)}); console.log('held'); setInterval(() => {}, 1000); })`;
  const { child, printed } = startProgram([process.execPath, '-e', source], { t });
  await printed(/^held$/);
  return child;
}

test('a SQLite file is locked by one process; a second is refused with the process id of the first [H288]', async (t) => {
  const url = newFile(t);
  const holder = await startHolder(t, url);
  await assert.rejects(holdFile(url, schema, { waitMs: 0 }), {
    message: `The database file ${url.slice('sqlite://'.length)} is in use by process ${holder.pid}. Stop that one first, or give this one a file of its own.`,
  });
});

test('a killed process releases its lock, for a waiting process and for later ones [H288]', async (t) => {
  const url = newFile(t);
  const holder = await startHolder(t, url);
  const waiting = holdFile(url, schema, { waitMs: 60_000 });
  holder.kill('SIGKILL');
  await waiting;
  await assert.rejects(holdFile(url, schema, { waitMs: 0 }), new RegExp(`in use by process ${process.pid}\\.`));
});

test('a database in memory or on a server is not locked [H288]', async () => {
  for (const url of ['sqlite::memory:', 'postgres://u:p@localhost/x']) for (let time = 0; time < 2; time += 1) await holdFile(url, schema);
});

test('a lock that its process releases can be taken again', async (t) => {
  const url = newFile(t);
  const release = await holdFile(url, schema, { waitMs: 0 });
  release();
  release();
  await holdFile(url, schema, { waitMs: 0 });
});

test('a file by a symbolic link is locked as by its own name [H440]', async (t) => {
  const url = newFile(t);
  const release = await holdFile(url, schema, { waitMs: 0 });
  t.after(release);
  symlinkSync(url.slice('sqlite://'.length), `${url.slice('sqlite://'.length)}.link`);
  await assert.rejects(holdFile(`${url}.link`, schema, { waitMs: 0 }), /is in use by process \d+\./);
});

test('a file with a hard link is refused by either name [H440]', async (t) => {
  const url = newFile(t);
  (await holdFile(url, schema, { waitMs: 0 }))();
  const path = url.slice('sqlite://'.length);
  linkSync(path, `${path}.link`);
  const refused = /has 2 names \(hard links\)/;
  for (const name of [url, `${url}.link`]) {
    await assert.rejects(holdFile(name, schema, { waitMs: 0 }), refused);
    await assert.rejects(backUp(name, `${path}.copy`), refused);
    await assert.rejects(exportTo(`${path}.jsonl`, { databaseUrl: name, moved: schema, onProgress: () => undefined }), refused);
    const parts = { databaseUrl: name, moved: schema, clock: systemClock, onProgress: () => undefined };
    await assert.rejects(importFrom(`${path}.jsonl`, parts), refused);
    assert.throws(() => openDatabase(name), refused);
  }
});
