import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { maintain as maintainFallback } from '../src/fallback/maintenance.ts';
import { maintain, makeAdminKey, storage } from '../src/handoff/maintenance.ts';
import { schema } from '../src/handoff/store/migrations/index.ts';
import { holdFile } from '../src/kit/sql/file-lock.ts';
import { temporaryFolder } from './support/folder.ts';
import { runProgram } from './support/program.ts';

const nothing = () => undefined;

/** What another program could have stored, also in a table of the name that ours has. */
const others = {
  'a table': 'create table notes (text)',
  'migrations of its own':
    "create table migrations (name text primary key, applied_at text); insert into migrations values ('2020-users', '')",
  'migrations in other columns': 'create table migrations (id integer primary key, batch integer)',
  'the tables of the fallback service':
    "create table fallback_migrations (name text, applied_at text); insert into fallback_migrations values ('0001-first', '')",
};

const refusal = (service: string, path: string) =>
  `There is no database of the ${service} service at ${path}, but a file of another program, which was left as it is.`;

describe('A SQLite file of another program', () => {
  for (const [name, sql] of Object.entries(others))
    test(`is refused as it is, with ${name}: no command changes a byte of it or creates a file beside it [H288]`, async (t) => {
      const path = join(temporaryFolder(t), 'other.db');
      const database = new DatabaseSync(path);
      database.exec(sql);
      database.close();
      const before = readFileSync(path);
      const url = `sqlite://${path}`;
      const source = { environment: { SERVICE_DATABASE_URL: url }, config: undefined };
      const refused = { message: refusal('handoff', path) };
      await assert.rejects(holdFile(url, schema), refused);
      await assert.rejects(makeAdminKey({ databaseUrl: url }), refused);
      await assert.rejects(storage(source), refused);
      for (const operation of ['export', 'import'] as const)
        await assert.rejects(maintain(operation, `${path}.jsonl`, source, nothing), refused);
      assert.ok(readFileSync(path).equals(before));
      assert.deepEqual(readdirSync(join(path, '..')), ['other.db']);
    });

  test('is refused by serve of both services, and by the commands of the fallback service [H288]', async (t) => {
    const path = join(temporaryFolder(t), 'other.db');
    const database = new DatabaseSync(path);
    database.exec(others['a table']);
    database.close();
    const before = readFileSync(path);
    const url = `sqlite://${path}`;
    const bin = (program: string) => fileURLToPath(new URL(`../bin/${program}.js`, import.meta.url));
    const env = { ...process.env, SERVICE_DATABASE_URL: url, SERVICE_PORT: '0' };
    for (const [service, program, ...args] of [
      ['handoff', 'service-cli', 'serve'],
      ['fallback', 'fallback-service', 'serve', '--port', '0', '--storage', url],
    ] as const) {
      const { exitCode, stdout, stderr } = await runProgram([process.execPath, bin(program), ...args], { env });
      assert.equal(exitCode, 1, stdout);
      assert.ok(stderr.endsWith(`${service}: The service could not start: ${refusal(service, path)}\n`), stderr);
    }
    const said = t.mock.method(console, 'error', nothing);
    t.after(() => {
      process.exitCode = undefined;
    });
    for (const operation of ['export', 'import'] as const) await maintainFallback(operation, `${path}.jsonl`, { storage: url }, {});
    assert.deepEqual(
      said.mock.calls.map(({ arguments: [line] }) => line),
      Array(2).fill(`fallback: ${refusal('fallback', path)}`),
    );
    assert.ok(readFileSync(path).equals(before));
    assert.deepEqual(readdirSync(join(path, '..')), ['other.db']);
  });
});
