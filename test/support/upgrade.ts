import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

import { schema as ofFallback } from '../../src/fallback/store/migrations/index.ts';
import { schema as ofHandoff } from '../../src/handoff/store/migrations/index.ts';
import { systemClock } from '../../src/kit/clock.ts';
import { backUp } from '../../src/kit/sql/backup.ts';
import { exportTo, type Moved } from '../../src/kit/sql/export.ts';
import { importFrom } from '../../src/kit/sql/import.ts';
import type { Migration } from '../../src/kit/sql/migrate.ts';
import { tablesOf } from '../../src/kit/sql/shape.ts';
import { looking, type Row } from './consistency.ts';
import { createTestDatabase, openEmptyDatabase } from './databases.ts';
import { answersOf, fillChains, startFallback } from './fallback.ts';
import { answersTo, type Filled, fill, fillSettings } from './filled.ts';
import { startService } from './service.ts';
import type { TestDatabase } from './store.ts';

/** A service's data in a SQLite file, and what the version that wrote it answered. */
interface Made<Expected> {
  readonly databaseUrl: string;
  readonly expected: Expected;
}

/** A service whose databases are kept. */
interface Kept<Expected> {
  readonly moved: Moved;
  /** Fills a database in the folder, at the end of the test. */
  readonly make: (folder: string) => Promise<Made<Expected>>;
}

/** What the handoff service stored and answered. */
export interface ExpectedOfHandoff {
  readonly now: string;
  readonly filled: Filled;
  readonly answers: Record<string, string>;
}

/** What the fallback service answered. */
interface ExpectedOfFallback {
  readonly now: string;
  readonly paths: readonly string[];
  readonly answers: Record<string, string>;
}

/** Runs a service until the work with it is done. */
async function whileRunning<T>(work: (t: Pick<TestContext, 'after'>) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = [];
  try {
    return await work({ after: (end: unknown) => void ends.unshift(end as () => unknown) });
  } finally {
    for (const end of ends) await end();
  }
}

export const handoff: Kept<ExpectedOfHandoff> = {
  moved: ofHandoff,
  make: (folder) =>
    whileRunning(async (t) => {
      const databaseUrl = `sqlite://${join(folder, 'made.db')}`;
      const service = await startService(t, { databaseUrl, settings: fillSettings });
      const filled = await fill(service, 'http://127.0.0.1:1/hook');
      return { databaseUrl, expected: { now: service.clock.read().toISOString(), filled, answers: await answersTo(service, filled) } };
    }),
};

export const fallback: Kept<ExpectedOfFallback> = {
  moved: ofFallback,
  make: (folder) =>
    whileRunning(async (t) => {
      const databaseUrl = `sqlite://${join(folder, 'made.db')}`;
      const service = await startFallback(t, { storage: databaseUrl });
      const paths = await fillChains(service);
      return { databaseUrl, expected: { now: service.clock.read().toISOString(), paths, answers: await answersOf(service, paths) } };
    }),
};

/**
 * The databases of released versions of a service, oldest first, which `scripts/upgrade-fixture.ts` wrote, and one that this
 * version makes, unless it is released. They are named after their last migration.
 */
export function databasesOf<Expected>({ moved, make }: Kept<Expected>) {
  const { service } = moved;
  const released = fileURLToPath(new URL(`../${service}/upgrade`, import.meta.url));
  const own = moved.migrations.at(-1)!.name;
  const made = once(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-upgrade-'));
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
    await writeFixture({ moved, make }, folder);
    return folder;
  });
  const fixtures = globSync('*', { cwd: released }).sort();
  const read = async (fixture: string, file: string) =>
    readFileSync(join(fixtures.includes(fixture) ? join(released, fixture) : await made(), file));
  /** Opens a copy of the database of a version, by the name of the store. */
  const openFixture: Record<string, (fixture: string) => Promise<TestDatabase>> = {
    'SQLite on disk': async (fixture) => {
      const folder = mkdtempSync(join(tmpdir(), 'baton-upgrade-'));
      const path = join(folder, `${service}.db`);
      writeFileSync(path, gunzipSync(await read(fixture, `${service}.db.gz`)), { mode: 0o600 });
      return { url: `sqlite://${path}`, drop: async () => rmSync(folder, { recursive: true, force: true }) };
    },
    PostgreSQL: async (fixture) => {
      const database = await openEmptyDatabase();
      const statements = (await read(fixture, `${service}.postgres.sql`)).toString();
      await looking(database.url, ({ query }) => query(statements));
      return database;
    },
  };
  return {
    fixtures: [...new Set([...fixtures, own])],
    expectedOf: async (fixture: string) => JSON.parse((await read(fixture, 'expected.json')).toString()) as Expected,
    openFixture,
  };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** Writes the data of this version as a SQLite file and as SQL for PostgreSQL, and what it answered. Search indexes are left out of the SQL. */
export async function writeFixture<Expected>({ moved, make }: Kept<Expected>, folder: string): Promise<void> {
  const { service } = moved;
  const { databaseUrl, expected } = await make(folder);
  const file = (name: string) => join(folder, `${service}${name}`);
  const copy = file('.copy');
  const exported = file('.jsonl');
  const onProgress = () => undefined;
  await backUp(databaseUrl, copy);
  await exportTo(exported, { databaseUrl, moved, onProgress });
  const { url, drop } = await createTestDatabase('');
  await importFrom(exported, { databaseUrl: url, moved, clock: systemClock, onProgress });
  writeFileSync(file('.db.gz'), gzipSync(readFileSync(copy), { level: 9 }));
  writeFileSync(file('.postgres.sql'), `${(await statementsOf(url, moved)).join('\n')}\n`);
  writeFileSync(join(folder, 'expected.json'), `${JSON.stringify(expected, null, 2)}\n`);
  for (const path of globSync(['made.db*', `${service}.copy`, `${service}.jsonl`], { cwd: folder })) rmSync(join(folder, path));
  await drop();
}

/** A row as a statement; its values are given as JSON, which PostgreSQL converts to the types of the columns. */
const inserted = (table: string, row: object) =>
  `insert into ${table} select * from json_populate_record(null::${table}, '${JSON.stringify(row).replaceAll("'", "''")}');`;

/** The database at the URL as statements: its schema, its rows and the last numbers of its sequences. */
function statementsOf(url: string, { service, migrations, migrationsTable }: Moved): Promise<string[]> {
  return looking(url, async ({ query }) => {
    const rowsOf = async (table: string, order: string) =>
      (await query(`select * from ${table} order by ${order}`)).map((row) => inserted(table, row));
    const rows = await rowsOf(migrationsTable, 'name');
    const last: string[] = [];
    const emptied: string[] = [];
    for (const { name: table, key, numbered } of tablesOf(migrations)) {
      emptied.push(`delete from ${table};`);
      rows.push(...(await rowsOf(table, key.join(', '))));
      if (numbered === undefined) continue;
      const sequence = `${table}_${numbered}_seq`;
      const [row] = await query(`select last_value, is_called from ${sequence}`);
      last.push(`select setval('${sequence}', ${row!.last_value}, ${row!.is_called});`);
    }
    const schema = [
      `create table ${migrationsTable} (name text primary key, applied_at text not null)`,
      ...migrations.flatMap(({ up }) => up('postgres')),
    ];
    // Without their index, packets are indexed again.
    const unindexed =
      'insert into search_queue (tenant, packet, revision) select tenant, seq, revision from packets on conflict do nothing;';
    if (service === 'handoff') rows.push(unindexed);
    return [...schema.map((statement) => `${statement};`), ...emptied.toReversed(), ...rows, ...last];
  });
}

/** The schema of a database: every column, and every index and table as its statement. */
export async function schemaOf(url: string): Promise<Row[]> {
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
function includes(later: unknown, earlier: unknown, path: string): void {
  if (typeof earlier !== 'object' || earlier === null) {
    assert.deepEqual(later, earlier, path);
    return;
  }
  assert.ok(typeof later === 'object' && later !== null, path);
  if (Array.isArray(earlier)) assert.equal((later as unknown[]).length, earlier.length, path);
  for (const [name, value] of Object.entries(earlier)) includes((later as Row)[name], value, `${path}, ${name}`);
}

/** Asserts that every earlier answer, by its path, is in the later one. */
export function assertAnswers(later: Record<string, string>, earlier: Record<string, string>): void {
  for (const [path, answer] of Object.entries(earlier)) {
    const [one, two] = [later[path]!, answer].map((text) => /^(\d+ \S*) (.*)$/s.exec(text)!) as [RegExpExecArray, RegExpExecArray];
    assert.equal(one[1], two[1], path);
    const parse = (text: string) => (/^[[{]/.test(text) ? JSON.parse(text) : text);
    includes(parse(one[2]!), parse(two[2]!), path);
  }
}

const additive = /^\s*((create|drop) index|create unique index|create (virtual )?table|insert into|update|alter table \w+ add column) /i;

/** Asserts that the previous version can work on what the migrations make. Indexes may be replaced: it works without them. */
export function assertAdditive(migrations: readonly Migration[]): void {
  for (const { name, up } of migrations) {
    for (const database of ['sqlite', 'postgres'] as const) {
      for (const statement of up(database)) {
        assert.match(statement, additive, `${name} on ${database}`);
        if (/ add column .*not null/i.test(statement)) assert.match(statement, / default /i, `${name} on ${database}`);
      }
    }
  }
}
