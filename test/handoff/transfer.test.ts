import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';

import { maintain } from '../../src/handoff/maintenance.ts';
import { migrations } from '../../src/handoff/store/migrations/index.ts';
import { tablesOf } from '../../src/kit/sql/shape.ts';
import { refused, runCli } from '../support/cli.ts';
import { contentsOf, disagreements, type Inspector, looking, orphans, type Row } from '../support/consistency.ts';
import { answersTo, continues, type Filled, fill, fillSettings } from '../support/filled.ts';
import { startService, type TestService } from '../support/service.ts';
import type { TestStore } from '../support/store.ts';
import { storesOfSeveral } from '../support/stores.ts';

/** Nothing listens on port 1. */
const unreachable = 'http://127.0.0.1:1/hook';

const sourceOf = (databaseUrl: string) => ({ environment: { SERVICE_DATABASE_URL: databaseUrl }, config: undefined });
const exportFrom = (databaseUrl: string, file: string) => maintain('export', file, sourceOf(databaseUrl), () => undefined);
const importInto = (databaseUrl: string, file: string) => maintain('import', file, sourceOf(databaseUrl), () => undefined);

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-transfer-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The text of a file with these lines and the closing record that they need. */
function sealed(lines: readonly string[]): string {
  const text = lines.map((line) => `${line}\n`).join('');
  return `${text}${JSON.stringify({ end: { rows: 0, sha256: hash('sha256', text) } })}\n`;
}

/** The tables of a database that are not carried: the search index with its parts, and what the databases keep themselves. */
const isLeftOut = (name: string) => /^(search_index(_\w+)?|migrations|sqlite_\w+)$/.test(name);

const catalogue = (inspector: Inspector, url: string): Promise<Row[]> =>
  inspector.query(
    url.startsWith('sqlite')
      ? `select tables.name as name, columns.name as column_name from sqlite_schema as tables join pragma_table_info(tables.name) as columns where tables.type = 'table'`
      : `select table_name as name, column_name from information_schema.columns where table_schema = 'public'`,
  );

/** All rows of all tables that the database has, but for the search index: the packets in it, as rows of their numbers. */
function everyRow(url: string): Promise<Record<string, Row[]>> {
  return looking(url, async (inspector) => {
    const names = [...new Set((await catalogue(inspector, url)).map(({ name }) => name as string))].filter((name) => !isLeftOut(name));
    const rows: Record<string, Row[]> = {};
    for (const name of names.sort()) {
      const all = await inspector.query(`select * from ${name}`);
      const lines = all.map((row) => JSON.stringify(Object.fromEntries(Object.entries(row).sort())));
      rows[name] = lines.sort().map((line) => JSON.parse(line) as Row);
    }
    // Which packets a search finds; the import indexes those that were queued.
    const found = [
      ...(await inspector.query('select rowid from search_index')).map(({ rowid }) => rowid),
      ...rows.search_queue!.map(({ packet }) => packet),
    ];
    rows.search_index = [...new Set(found.map(Number))].sort((one, other) => one - other).map((rowid) => ({ rowid }));
    delete rows.search_queue;
    // Numbers of rows that are gone are not assigned again.
    for (const { name, numbered } of tablesOf(migrations)) {
      if (numbered === undefined) continue;
      const last = url.startsWith('sqlite')
        ? `select coalesce(max(seq), 0) as last from sqlite_sequence where name = '${name}'`
        : `select coalesce(max(last_value), 0) as last from pg_sequences where sequencename = '${name}_${numbered}_seq'`;
      rows[`the last number of ${name}`] = (await inspector.query(last)).map((row) => ({ last: Number(row.last) }));
    }
    return rows;
  });
}

/** A filled service on a store. */
async function filledOn(t: TestContext, store: TestStore): Promise<{ service: TestService; filled: Filled }> {
  const service = await startService(t, { store, settings: fillSettings });
  return { service, filled: await fill(service, unreachable) };
}

for (const from of storesOfSeveral) {
  for (const to of storesOfSeveral) {
    test(`An export of ${from.name}, imported into ${to.name}, is the same data: rows, answers, positions, numbers and search`, async (t) => {
      const { service, filled } = await filledOn(t, from);
      const answers = await answersTo(service, filled);
      const file = join(newFolder(t), 'data.jsonl');
      const exported = await exportFrom(service.databaseUrl, file);
      assert.equal(statSync(file).mode & 0o777, 0o600);
      assert.equal(Number(/: (\d+) bytes\.$/.exec(exported)![1]), statSync(file).size);
      const { url, drop } = await to.open();
      assert.equal(/^Imported (\d+) rows/.exec(await importInto(url, file))![1], /^Exported (\d+) rows/.exec(exported)![1]);
      assert.deepEqual(await everyRow(url), await everyRow(service.databaseUrl));

      const moved = await startService(t, { databaseUrl: url, clock: service.clock, settings: fillSettings });
      t.after(drop);
      assert.deepEqual([moved.handoff.adminKey, moved.handoff.warnings], [undefined, []]);
      assert.deepEqual(await answersTo(moved, filled), answers);
      await continues(t, moved, filled);
      const found = await looking(url, async (inspector) => [
        ...disagreements(await contentsOf(inspector, 1)),
        ...disagreements(await contentsOf(inspector, 2)),
        ...(await orphans(inspector)),
      ]);
      assert.deepEqual(found, []);
    });
  }
}

for (const store of storesOfSeveral) {
  describe(`The tables that an export has, on ${store.name}`, () => {
    test('are all tables of the schema with all of their columns, except the search index', async (t) => {
      const service = await startService(t, { store });
      const all = await looking(service.databaseUrl, (inspector) => catalogue(inspector, service.databaseUrl));
      const columns = all.filter(({ name }) => !isLeftOut(name));
      const carried = tablesOf(migrations).flatMap((table) => table.columns.map((column) => `${table.name}.${column}`));
      assert.deepEqual(carried.sort(), columns.map(({ name, column_name }) => `${name}.${column_name}`).sort());
    });
  });

  describe(`An import that is refused, on ${store.name}`, () => {
    test('changes nothing: a database with data, a damaged file, a file of a newer version or of something else', async (t) => {
      const { service } = await filledOn(t, store);
      const folder = newFolder(t);
      const file = join(folder, 'data.jsonl');
      await exportFrom(service.databaseUrl, file);
      await assert.rejects(exportFrom(service.databaseUrl, file), /data\.jsonl exists, and is not overwritten\.$/);
      const before = await everyRow(service.databaseUrl);
      await service.handoff.stop();
      await assert.rejects(
        importInto(service.databaseUrl, file),
        /^Error: The database is not empty: it has the table \w+ of the handoff service\./,
      );
      assert.deepEqual(await everyRow(service.databaseUrl), before);

      const { url, drop } = await store.open();
      t.after(drop);
      const text = readFileSync(file, 'utf8');
      const lines = text.split('\n');
      const damaged: Record<string, string> = {
        'without its end': lines.slice(0, -2).join('\n'),
        'cut in the middle': text.slice(0, text.length / 2),
        'cut by a byte': text.slice(0, -1),
        'without a row': [...lines.slice(0, 3), ...lines.slice(4)].join('\n'),
        'with another letter': text.replace('the heron', 'the heRon'),
        'with more behind': `${text}${lines[0]}\n`,
      };
      const other = join(folder, 'other.jsonl');
      for (const [how, content] of Object.entries(damaged)) {
        writeFileSync(other, content);
        await assert.rejects(importInto(url, other), /other\.jsonl is truncated or was changed/, how);
      }
      for (const content of ['', '{}\n', 'not even JSON']) {
        writeFileSync(other, content);
        await assert.rejects(importInto(url, other), /other\.jsonl is not an export of the handoff service\.$/, content);
      }
      // Faults behind an intact digest.
      const [head = '', ...rest] = lines.slice(0, -2);
      const packet = rest.findIndex((line) => line.startsWith('{"table":"packets"')) + 1;
      for (const [content, reason] of [
        [
          [head.replace('"migrations":[', '"migrations":["9999-later",'), ...rest],
          /^Error: The file was written by another version.*9999-later/,
        ],
        [[head.replace('"version":1', '"version":2'), ...rest], /^Error: The file was written by a newer version/],
        [[head, ...rest.slice(0, packet), rest[packet]!, ...rest.slice(packet)], /duplicate|UNIQUE/],
        [
          [head, ...rest.slice(0, packet), ...rest.slice(packet + 1)],
          /^Error: The rows of packets were not stored as they are in the file\.$/,
        ],
      ] as const) {
        writeFileSync(other, sealed(content));
        await assert.rejects(importInto(url, other), reason);
      }
      await assert.rejects(importInto(url, join(folder, 'none')), /none can't be read \(ENOENT\)\.$/);
      assert.deepEqual(await looking(url, (inspector) => catalogue(inspector, url)), []);
      assert.notEqual(Number(/^Imported (\d+) rows? /.exec(await importInto(url, file))![1]), 0);
    });
  });
}

describe('service-cli export and import', () => {
  test('move a database to another, and say how much', async (t) => {
    const [store] = storesOfSeveral as [TestStore];
    const { service, filled } = await filledOn(t, store);
    const folder = newFolder(t);
    const file = join(folder, 'data.jsonl');
    const run = (command: string, databaseUrl: string) =>
      runCli([command, file], { environment: { SERVICE_DATABASE_URL: databaseUrl, SERVICE_WEBHOOK_ALLOW: '127.0.0.1' } });
    const exported = await run('export', service.databaseUrl);
    assert.deepEqual([exported.exitCode, exported.stdout], [0, ''], exported.stderr);
    const [, rows] = /^Exported (\d+) rows to .*data\.jsonl: \d+ bytes\.\n$/.exec(exported.stderr)!;
    const target = `sqlite://${join(folder, 'new.db')}`;
    const imported = await run('import', target);
    assert.deepEqual([imported.exitCode, imported.stderr], [0, `Imported ${rows} rows from ${file}.\n`]);
    const moved = await startService(t, { databaseUrl: target, clock: service.clock });
    assert.equal((await moved.call('GET', '/packets', { key: filled.key })).status, 200);

    refused(await run('import', target), 1, /^service-cli: The database is not empty/m);
    refused(await run('export', 'sqlite::memory:'), 1, /^service-cli: .*exists, and is not overwritten|A database in memory belongs/m);
    refused(await run('import', 'sqlite::memory:'), 1, /^service-cli: A database in memory belongs to the process that opened it\.$/m);
    refused(await run('export', `sqlite://${join(folder, 'none.db')}`), 1, /^service-cli: There is no database file .*none\.db\.$/m);
    refused(await run('import', 'postgres://user:secret@127.0.0.1:1/x'), 1, /^service-cli: PostgreSQL at 127\.0\.0\.1:1\/x can't be used/m);
    assert.equal(existsSync(join(folder, 'none.db')), false);
  });
});
