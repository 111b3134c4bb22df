import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';

import { maintain } from '../../src/handoff/maintenance.ts';
import { eventId } from '../../src/handoff/rules/channels.ts';
import { migrations } from '../../src/handoff/store/migrations/index.ts';
import { tablesOf } from '../../src/kit/sql/shape.ts';
import { renumberer } from '../../src/kit/sql/tenancy.ts';
import { refused } from '../support/cli.ts';
import { runCliProgram } from '../support/cli-program.ts';
import { assertSound, type Inspector, looking, type Row } from '../support/consistency.ts';
import { answersTo, continues, type Filled, fill, fillSettings, repeatedKey } from '../support/filled.ts';
import { temporaryFolder } from '../support/folder.ts';
import { createPacket, newTenant, startService, type TestService } from '../support/service.ts';
import type { TestStore } from '../support/store.ts';
import { storesOfSeveral } from '../support/stores.ts';
import { openEvents } from '../support/streams.ts';

/** Nothing listens on port 1. */
const unreachable = 'http://127.0.0.1:1/hook';

const sourceOf = (databaseUrl: string) => ({ environment: { SERVICE_DATABASE_URL: databaseUrl }, config: undefined });
const exportFrom = (databaseUrl: string, file: string) => maintain('export', file, sourceOf(databaseUrl), () => undefined);
const importInto = (databaseUrl: string, file: string) => maintain('import', file, sourceOf(databaseUrl), () => undefined);

/** The text of a file with these lines and the closing record that they need. */
function sealed(lines: readonly string[]): string {
  const text = lines.map((line) => `${line}\n`).join('');
  const rows = lines.filter((line) => line.startsWith('[')).length;
  return `${text}${JSON.stringify({ end: { rows, sha256: hash('sha256', text) } })}\n`;
}

/** The tables of a database that are not carried: the search index with its parts, the notes for jobs, and what the databases keep themselves. */
const isLeftOut = (name: string) => /^(search_index(_\w+)?|due|migrations|sqlite_\w+)$/.test(name);

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
      const file = join(temporaryFolder(t), 'data.jsonl');
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
      await assertSound(url);
    });
  }
}

/** Files with an intact digest and a fault of their lines, each with the sentence that refuses it. */
function wrongFiles(head: string, rest: readonly string[]): (readonly [lines: readonly string[], reason: RegExp])[] {
  const header = JSON.parse(head);
  const packets = rest.findIndex((line) => line.startsWith('{"table":"packets"'));
  const { table, columns } = JSON.parse(rest[packets]!) as { table: string; columns: string[] };
  const row = JSON.parse(rest[packets + 1]!) as unknown[];
  // The header is the first line of the file.
  const begin = packets + 2;
  const without = (values: readonly unknown[], column: string) => values.filter((_, index) => index !== columns.indexOf(column));
  const withValue = (column: string, value: unknown) => row.map((other, index) => (index === columns.indexOf(column) ? value : other));
  const withHeader = (more: object) => [JSON.stringify({ ...header, ...more }), ...rest];
  const withRow = (values: unknown) => [head, ...rest.slice(0, packets + 1), JSON.stringify(values), ...rest.slice(packets + 2)];
  const withTable = (line: unknown) => [head, ...rest.slice(0, packets), JSON.stringify(line), ...rest.slice(packets + 1)];
  const line = (number: number, what: string) => new RegExp(`^Line ${number} of the file: ${what}`);
  const next = rest.findIndex((text, index) => index > packets && text.startsWith('{'));
  return [
    [
      withHeader({ last: { ...header.last, packets: 'many' } }),
      line(1, 'last\\.packets must be a whole number up to \\d+, not "many"\\.$'),
    ],
    [withHeader({ last: { ...header.last, packets: undefined } }), line(1, 'last lacks the table packets')],
    [withHeader({ last: { ...header.last, packets: 0 } }), line(begin + 1, 'packets\\.seq is \\d+, above the last number, 0')],
    [withHeader({ rows: { ...header.rows, packets: 1_000 } }), line(1, 'rows\\.packets is 1000, but the file has \\d+ rows of packets')],
    [withHeader({ rows: null }), line(1, 'rows must be an object')],
    [withHeader({ migrations: null }), line(1, 'migrations must be a list')],
    [withHeader({ tenant: { id: 1 } }), line(1, 'tenant must have an id and a number')],
    [withTable({ table, columns: without(columns, 'digest') }), line(begin, 'the table packets lacks the column digest')],
    [withTable({ table, columns: [...columns, 'more'] }), line(begin, 'the table packets has no column "more"')],
    [withTable({ table, columns: columns.toReversed() }), line(begin, 'the columns of packets are in another order')],
    [withTable({ table: 'nothing', columns }), line(begin, '"nothing" is no table of its version')],
    [withTable({ table: 'tenants', columns }), line(begin, 'the table tenants has begun before')],
    [withTable({ table }), line(begin, 'it is neither a row nor the beginning of a table')],
    [withRow(null), line(begin + 1, 'it is neither a row nor the beginning of a table')],
    [withRow(row.slice(1)), line(begin + 1, 'the row has \\d+ values, but packets has \\d+ columns')],
    [withRow(withValue('tenant', 99)), line(begin + 1, 'packets\\.tenant is 99, which is no tenant of the file')],
    ...[2 ** 53 - 1, 2 ** 53, -1, 1.5].map(
      (last) => [withHeader({ last: { ...header.last, packets: last } }), line(1, 'last\\.packets must be a whole number up to')] as const,
    ),
    ...[0, -3].map(
      (seq) => [withRow(withValue('seq', seq)), line(begin + 1, `packets\\.seq is ${seq}, which is no number of a row`)] as const,
    ),
    ...[-1, 1_000_000].map(
      (webhook) => [withRow(withValue('followers', `[${webhook}]`)), line(begin + 1, `packets\\.followers is ${webhook}`)] as const,
    ),
    [withRow(withValue('followers', '{}')), line(begin + 1, 'packets\\.followers must have numbers of rows')],
    [withRow(withValue('revision', 2 ** 53)), line(begin + 1, 'packets\\.revision is 9007199254740992, which is no whole number')],
    [withRow(withValue('seq', 'one')), line(begin + 1, 'packets\\.seq must be a number, not "one"')],
    [withRow(withValue('status', 7)), line(begin + 1, 'packets\\.status must be a text, not 7')],
    [withRow(withValue('digest', null)), /^Line \d+ of the file: packets: the database refuses it or a row before it/],
    [[head, ...rest.slice(0, packets + 1), '[1,', ...rest.slice(packets + 2)], line(begin + 1, 'it is not JSON')],
    [[head, JSON.stringify(row), ...rest], line(2, 'a row comes before the first table')],
    [[head, ...rest.slice(0, packets), ...rest.slice(next)], /^The file lacks the table packets\.$/],
  ];
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
      const folder = temporaryFolder(t);
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
        [[head, ...rest.slice(0, packet), rest[packet]!, ...rest.slice(packet)], /^Error: The file has a row twice\.$/],
        [[head, ...rest.slice(0, packet), ...rest.slice(packet + 1)], /^Error: Line 1 of the file: rows\.packets is \d+, but the file has/],
      ] as const) {
        writeFileSync(other, sealed(content));
        await assert.rejects(importInto(url, other), reason);
      }
      for (const [content, reason] of wrongFiles(head, rest)) {
        writeFileSync(other, sealed(content));
        await assert.rejects(importInto(url, other), (error: Error) => {
          assert.match(error.message, reason);
          assert.equal(error.constructor, Error, String(error.stack));
          return true;
        });
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
    const folder = temporaryFolder(t);
    const file = join(folder, 'data.jsonl');
    const run = (command: string, databaseUrl: string) =>
      runCliProgram([command, file], { environment: { SERVICE_DATABASE_URL: databaseUrl, SERVICE_WEBHOOK_ALLOW: '127.0.0.1' } });
    const exported = await run('export', service.databaseUrl);
    assert.deepEqual([exported.exitCode, exported.stdout], [0, ''], exported.stderr);
    const [, rows] = /^Exported (\d+) rows to .*data\.jsonl: \d+ bytes\.\n$/.exec(exported.stderr)!;
    const options = { environment: { SERVICE_DATABASE_URL: service.databaseUrl, SERVICE_WEBHOOK_ALLOW: '127.0.0.1' } };
    const checked = await runCliProgram(['export', '--check'], options);
    assert.deepEqual([checked.exitCode, checked.stderr], [0, `Read ${rows} rows: an export has ${statSync(file).size} bytes.\n`]);
    assert.deepEqual(readdirSync(folder), ['data.jsonl']);
    refused(await runCliProgram(['export'], options), 2, /missing required argument 'file'/);
    refused(await runCliProgram(['export', '--check', file], options), 2, /with --check no file is written/);
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

/** The service with another default key. */
const withKey = (service: TestService, key: string): TestService => ({
  ...service,
  call: (method, path, options = {}) => service.call(method, path, { key, ...options }),
});

/** A tenant that `fill` filled, beside others, and the answers to reads of what it has. */
async function filledTenant(service: TestService) {
  const { id } = await newTenant(service, { max_api_keys: 20 });
  const made = await service.call('POST', '/keys', { body: { name: 'theirs', tenant_id: id, admin: true } });
  assert.equal(made.status, 201, made.text);
  const own = withKey(service, made.body.key);
  const filled = await fill(own, unreachable);
  // What other tenants there are differs between deployments.
  return { id, key: made.body.key as string, filled: { ...filled, paths: filled.paths.filter((path) => path !== '/tenants') } };
}

async function answersOf(service: TestService, { key, filled }: { key: string; filled: Filled }): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (const path of filled.paths) {
    const { status, headers, text } = await service.call('GET', path, { key });
    answers[path] = `${status} ${headers.etag ?? ''} ${text}`;
  }
  return answers;
}

for (const from of storesOfSeveral) {
  for (const to of storesOfSeveral) {
    test(`A tenant exported from ${from.name} continues on ${to.name} beside the tenants there, with ids, keys, positions and search`, async (t) => {
      const { service } = await filledOn(t, from);
      const tenant = await filledTenant(service);
      const answers = await answersOf(service, tenant);
      assert.match(answers['/packets/search?q=walrus']!, /the walrus/);
      const file = join(temporaryFolder(t), 'tenant.jsonl');
      const said = await maintain('export', file, { ...sourceOf(service.databaseUrl), tenant: tenant.id }, () => undefined);
      assert.match(said, new RegExp(`^Exported \\d+ rows of the tenant ${tenant.id} to `));
      const theirs = readFileSync(file, 'utf8').split('\n');
      assert.ok(!theirs.some((line) => line.includes('"default"')), 'rows of another tenant');

      const other = await filledOn(t, to);
      const before = await answersTo(other.service, other.filled);
      // A PostgreSQL may be in use meanwhile; a SQLite file belongs to one process.
      if (to.name !== 'PostgreSQL') await other.service.handoff.stop();
      const imported = await importInto(other.service.databaseUrl, file);
      assert.equal(imported, `${said.replace('Exported', 'Imported').replace(/ to .*$/, '')} from ${file}.`);
      const { databaseUrl, clock } = other.service;
      const next = to.name === 'PostgreSQL' ? other.service : await startService(t, { databaseUrl, clock, settings: fillSettings });
      clock.set(service.clock.read().toISOString());
      // Its admin key is an ordinary one here.
      answers['/keys'] = answers['/keys']!.replace('"admin":true', '"admin":false');
      assert.deepEqual(await answersOf(next, tenant), answers);
      const without = (given: Record<string, string>) =>
        Object.fromEntries(Object.entries(given).filter(([path]) => !path.endsWith('/tenants')));
      assert.deepEqual(without(await answersTo(next, other.filled)), without(before));

      const { leased, page, repeatable } = tenant.filled;
      const position = await looking(databaseUrl, async ({ query }) => {
        const [row] = await query(`select position from heads join tenants on tenants.number = heads.tenant where id = '${tenant.id}'`);
        return Number(row!.position);
      });
      const call = withKey(next, tenant.key).call;
      const repeated = await call('POST', '/packets', { body: repeatable.body, headers: { 'Idempotency-Key': repeatedKey } });
      assert.deepEqual([repeated.status, repeated.text], [201, repeatable.text]);
      const moved = await call('PATCH', `/packets/${leased.id}`, {
        body: { status: 'completed' },
        headers: { 'x-lease-token': leased.token },
      });
      assert.equal(moved.status, 200, moved.text);
      assert.equal((await call('GET', page, { key: null })).status, 200);
      const [hook] = (await call('GET', '/hooks')).body;
      const attempts = async () => {
        const deliveries: { attempts: number }[] = (await call('GET', `/hooks/${hook.id}/deliveries?limit=200`)).body;
        return deliveries.reduce((sum, delivery) => sum + delivery.attempts, 0);
      };
      const tried = await attempts();
      clock.turn(61);
      await next.handoff.runOnce.deliver();
      assert.ok((await attempts()) > tried);
      // A stream resumes where it was in the other deployment.
      const address = await next.handoff.start();
      const stream = await openEvents(address, `?last_event_id=${eventId(tenant.id, position)}`, { 'x-api-key': tenant.key });
      t.after(() => stream.close());
      const [, resumed] = await stream.events.take(2);
      assert.deepEqual([resumed!.event, resumed!.data.packet_id], ['packet.completed', leased.id]);

      for (const key of [tenant.key, undefined]) {
        const { id } = await createPacket(next, { context: { summary: 'After: the otter' } }, key);
        const found = await next.call('GET', '/packets/search?q=otter', key === undefined ? {} : { key });
        assert.deepEqual(
          found.body.packets.map((packet: { id: string }) => packet.id),
          [id],
        );
      }
      await assertSound(databaseUrl);

      await stream.close();
      await next.handoff.stop();
      const rows = await everyRow(databaseUrl);
      await assert.rejects(
        importInto(databaseUrl, file),
        new RegExp(`^Error: The database has the tenant ${tenant.id} already, deleted or not\\.$`),
      );
      assert.deepEqual(await everyRow(databaseUrl), rows);
      await assert.rejects(
        maintain('export', `${file}.2`, { ...sourceOf(databaseUrl), tenant: 'nobody' }, () => undefined),
        /^Error: The database has no tenant with the id nobody\.$/,
      );
    });
  }
}

for (const store of storesOfSeveral) {
  test(`A file of one tenant that was edited gives no right outside it and takes no numbers from others, on ${store.name} [H441]`, async (t) => {
    const source = await filledOn(t, store);
    const tenant = await filledTenant(source.service);
    const folder = temporaryFolder(t);
    const file = join(folder, 'tenant.jsonl');
    await maintain('export', file, { ...sourceOf(source.service.databaseUrl), tenant: tenant.id }, () => undefined);
    const [head = '', ...rest] = readFileSync(file, 'utf8').split('\n').slice(0, -2);
    const keys = rest.findIndex((line) => line.startsWith('{"table":"api_keys"'));
    const admin = (JSON.parse(rest[keys]!) as { columns: string[] }).columns.indexOf('admin');
    const asAdmin = rest.map((line, index) => {
      const isKey = index > keys && index <= keys + JSON.parse(head).rows.api_keys;
      return isKey ? JSON.stringify((JSON.parse(line) as unknown[]).map((value, at) => (at === admin ? 1 : value))) : line;
    });
    const other = await startService(t, { store });
    await createPacket(other);
    if (store.name !== 'PostgreSQL') await other.handoff.stop();
    const edited = join(folder, 'edited.jsonl');
    const header = JSON.parse(head);
    writeFileSync(edited, sealed([JSON.stringify({ ...header, last: { ...header.last, packets: 2 ** 50 } }), ...rest]));
    await assert.rejects(
      importInto(other.databaseUrl, edited),
      /no room for the numbers of packets in the file, which go up to 1125899906842624\.$/,
    );
    writeFileSync(edited, sealed([head, ...asAdmin]));
    await importInto(other.databaseUrl, edited);
    const service = store.name === 'PostgreSQL' ? other : await startService(t, { databaseUrl: other.databaseUrl, clock: other.clock });
    assert.equal((await service.call('GET', '/tenants', { key: tenant.key })).status, 403);
    assert.equal((await service.call('GET', '/packets', { key: tenant.key })).status, 200);
    await createPacket(service);
  });
}

test('Row numbers of another table in a row, also in a list, are those of the import', () => {
  const tenancy = {
    table: 'tenants',
    byId: {},
    references: { 'contents.packet': 'packets' },
    lists: { 'packets.followers': 'webhooks' },
    outside: {},
  };
  const numbers = { tenant: { id: 'a', number: 7 }, added: { packets: 100, webhooks: 1000 } };
  const packet = renumberer(tenancy, { name: 'packets', numbered: 'seq' }, ['seq', 'tenant', 'id', 'followers'], numbers);
  assert.deepEqual(packet([3, 1, 'x', '[1,2]']), [103, 7, 'x', '[1001,1002]']);
  assert.deepEqual(packet([4, 1, 'y', null]), [104, 7, 'y', null]);
  assert.deepEqual(renumberer(tenancy, { name: 'contents', numbered: undefined }, ['packet', 'content'], numbers)([3, 'c']), [103, 'c']);
});
