import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';

import { exportData, importData } from '../../src/handoff/maintenance.ts';
import { migrations } from '../../src/handoff/store/migrations/index.ts';
import { contentsOf, disagreements, looking, orphans, type Row } from '../support/consistency.ts';
import { openEmptyDatabase } from '../support/databases.ts';
import { answersTo, continues, type Filled, fillSettings } from '../support/filled.ts';
import { createPacket, startService, TestClock, type TestService } from '../support/service.ts';
import type { TestDatabase } from '../support/store.ts';
import { storesOfSeveral } from '../support/stores.ts';

/** The databases of earlier versions, oldest first; `scripts/upgrade-fixture.ts` wrote them. */
const fixtures = globSync('*', { cwd: fileURLToPath(new URL('upgrade', import.meta.url)) }).sort();
const fileOf = (fixture: string, file: string) => fileURLToPath(new URL(`upgrade/${fixture}/${file}`, import.meta.url));

/** What the earlier version stored and answered. */
interface Expected {
  readonly now: string;
  readonly filled: Filled;
  readonly answers: Record<string, string>;
}
const expectedOf = (fixture: string) => JSON.parse(readFileSync(fileOf(fixture, 'expected.json'), 'utf8')) as Expected;

/** Opens a copy of the database of an earlier version. */
const openFixture: Record<string, (fixture: string) => Promise<TestDatabase>> = {
  'SQLite on disk': async (fixture) => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-upgrade-'));
    const path = join(folder, 'handoff.db');
    writeFileSync(path, gunzipSync(readFileSync(fileOf(fixture, 'handoff.db.gz'))), { mode: 0o600 });
    return { url: `sqlite://${path}`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
  },
  PostgreSQL: async (fixture) => {
    const database = await openEmptyDatabase();
    await looking(database.url, ({ query }) => query(readFileSync(fileOf(fixture, 'handoff.postgres.sql'), 'utf8')));
    return database;
  },
};

/** A service on the database at the time at which the earlier version stopped. */
const upgraded = (t: TestContext, databaseUrl: string, { now }: Expected): Promise<TestService> =>
  startService(t, { databaseUrl, clock: new TestClock(now), settings: fillSettings });

/** The schema of a database: every column, and every index and table as its statement. */
async function schemaOf(url: string): Promise<Row[]> {
  const columns = url.startsWith('sqlite')
    ? `select tables.name as thing, columns.name as name, columns.type as type, columns.dflt_value as value, columns."notnull" as required
        from sqlite_schema as tables join pragma_table_info(tables.name) as columns where tables.type = 'table' order by 1, 2`
    : `select table_name as thing, column_name as name, data_type || coalesce(collation_name, '') as type, column_default as value, is_nullable as required
        from information_schema.columns where table_schema = 'public' order by 1, 2`;
  const indexes = url.startsWith('sqlite')
    ? `select name, sql as text from sqlite_schema where type = 'index' order by 1`
    : `select indexname as name, indexdef as text from pg_indexes where schemaname = 'public' order by 1`;
  return looking(url, async ({ query }) => [...(await query(columns)), ...(await query(indexes))]);
}

/** Asserts that everything in an earlier answer is in a later one, which may have more fields. */
function includes(later: unknown, earlier: unknown, place: string): void {
  if (typeof earlier !== 'object' || earlier === null) {
    assert.deepEqual(later, earlier, place);
    return;
  }
  assert.ok(typeof later === 'object' && later !== null, place);
  if (Array.isArray(earlier)) assert.equal((later as unknown[]).length, earlier.length, place);
  for (const [name, value] of Object.entries(earlier)) includes((later as Row)[name], value, `${place}, ${name}`);
}

function assertAnswers(later: Record<string, string>, earlier: Record<string, string>): void {
  for (const [path, answer] of Object.entries(earlier)) {
    const [one, two] = [later[path]!, answer].map((text) => /^(\d+ \S*) (.*)$/s.exec(text)!) as [RegExpExecArray, RegExpExecArray];
    assert.equal(one[1], two[1], path);
    const parse = (text: string) => (/^[[{]/.test(text) ? JSON.parse(text) : text);
    includes(parse(one[2]!), parse(two[2]!), path);
  }
}

async function assertConsistent(url: string): Promise<void> {
  const found = await looking(url, async (inspector) => [
    ...disagreements(await contentsOf(inspector, 1)),
    ...disagreements(await contentsOf(inspector, 2)),
    ...(await orphans(inspector)),
  ]);
  assert.deepEqual(found, []);
}

for (const fixture of fixtures) {
  for (const store of storesOfSeveral) {
    describe(`A database of version ${fixture} on ${store.name}`, () => {
      test('is migrated at the start: every answer is as before, and its schema is that of a new database', async (t) => {
        const expected = expectedOf(fixture);
        const { url, drop } = await openFixture[store.name]!(fixture);
        const service = await upgraded(t, url, expected);
        t.after(drop);
        assert.equal(service.handoff.adminKey, undefined);
        assertAnswers(await answersTo(service, expected.filled), expected.answers);
        await continues(t, service, expected.filled);
        await assertConsistent(url);
        const fresh = await startService(t, { store });
        assert.deepEqual(await schemaOf(url), await schemaOf(fresh.databaseUrl));
      });

      test('can be exported as it is, and its export be imported', async (t) => {
        const expected = expectedOf(fixture);
        const { url, drop } = await openFixture[store.name]!(fixture);
        t.after(drop);
        const target = await store.open();
        const folder = mkdtempSync(join(tmpdir(), 'baton-upgrade-'));
        t.after(() => rmSync(folder, { recursive: true, force: true }));
        const file = join(folder, 'data.jsonl');
        const sourceOf = (databaseUrl: string) => ({ environment: { SERVICE_DATABASE_URL: databaseUrl }, config: undefined });
        const applied = () => looking(url, ({ query }) => query('select name from migrations order by name'));
        const before = await applied();
        await exportData(sourceOf(url), file, () => undefined);
        assert.deepEqual(await applied(), before);
        await importData(sourceOf(target.url), file, () => undefined);
        const service = await upgraded(t, target.url, expected);
        t.after(target.drop);
        assertAnswers(await answersTo(service, expected.filled), expected.answers);
      });
    });
  }

  test(`Two instances that start at once on a PostgreSQL of version ${fixture}, while that version works on it, lose nothing`, async (t) => {
    const expected = expectedOf(fixture);
    const { url, drop } = await openFixture.PostgreSQL!(fixture);
    let ended = false;
    const callers = [1, 2, 3].map((number) => earlierVersion(url, number, () => ended));
    const instances = await whileLocked(url, () => Promise.all([upgraded(t, url, expected), upgraded(t, url, expected)])).finally(() => {
      ended = true;
    });
    t.after(drop);
    const written = await Promise.all(callers);
    assert.ok(
      written.every((count) => count > 0),
      `${written}`,
    );
    const found = await looking(url, ({ query }) => query(`select value from counters where tenant = 9 order by name`));
    assert.deepEqual(
      found.map(({ value }) => value),
      written,
    );
    const applied = await looking(url, ({ query }) => query('select name from migrations order by name'));
    assert.deepEqual(
      applied.map(({ name }) => name),
      migrations.map(({ name }) => name),
    );
    for (const one of instances) assertAnswers(await answersTo(one, expected.filled), expected.answers);
    const made = await Promise.all(instances.flatMap((one) => [createPacket(one), createPacket(one)]));
    assert.equal(new Set(made.map(({ id }) => id)).size, 4);
    await assertConsistent(url);
  });
}

/** Starts instances on a database whose table of migrations is locked until two of them wait, so that none is done before another begins. */
async function whileLocked<T>(url: string, start: () => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query('begin; lock table migrations in access exclusive mode');
    const starting = start();
    const state = { ended: false };
    const end = () => {
      state.ended = true;
    };
    starting.then(end, end);
    const waiting = `select count(*)::integer as count from pg_locks where not granted and locktype in ('relation', 'advisory')
      and database = (select oid from pg_database where datname = current_database())`;
    while (!state.ended && (await client.query(waiting)).rows[0].count < 2);
    await client.query('commit');
    return await starting;
  } finally {
    await client.end();
  }
}

/**
 * Writes as an instance of the earlier version does, in transactions of several tables that it repeats after a deadlock, until
 * `ended`; returns how many it committed. The tenant of the rows is unknown to the service.
 */
async function earlierVersion(url: string, number: number, ended: () => boolean): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  let count = 0;
  try {
    while (!ended() || count === 0) {
      try {
        await client.query('begin');
        await client.query(`update deliveries set updated_at = updated_at where seq = (select min(seq) from deliveries)`);
        await client.query(`update packets set updated_at = updated_at where seq = $1`, [number]);
        await client.query(
          `insert into counters (tenant, name, value) values (9, $1, 1) on conflict (tenant, name) do update set value = counters.value + 1`,
          [`earlier:${number}`],
        );
        await client.query('commit');
        count += 1;
      } catch (error) {
        await client.query('rollback');
        if (!['40001', '40P01'].includes((error as { code?: string }).code ?? '')) throw error;
      }
    }
    return count;
  } finally {
    await client.end();
  }
}

describe('Migrations after the first version whose databases are kept', () => {
  const additive = /^\s*(create (unique )?index|create (virtual )?table|insert into|update|alter table \w+ add column) /i;
  const later = migrations.filter(({ name }) => name > basename(fixtures[0]!));

  test('only add: a table, an index, a column that may be null or has a default, or values, so that the previous version works on', () => {
    for (const { name, up } of later) {
      for (const database of ['sqlite', 'postgres'] as const) {
        for (const statement of up(database)) {
          assert.match(statement, additive, `${name} on ${database}`);
          if (/ add column .*not null/i.test(statement)) assert.match(statement, / default /i, `${name} on ${database}`);
        }
      }
    }
  });

  test('are recorded in the order of their names', () => {
    const names = migrations.map(({ name }) => name);
    assert.deepEqual(names, names.toSorted());
  });
});
