import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

import type { Migration } from '../../src/kit/sql/migrate.ts';
import { looking, type Row } from './consistency.ts';
import { openEmptyDatabase } from './databases.ts';
import type { TestDatabase } from './store.ts';

/** The databases of earlier versions of a service, oldest first, and what those versions stored; `scripts/upgrade-fixture.ts` wrote them. */
export function databasesOf<Expected>(service: 'handoff' | 'fallback') {
  const folder = fileURLToPath(new URL(`../${service}/upgrade`, import.meta.url));
  const read = (fixture: string, file: string) => readFileSync(join(folder, fixture, file));
  /** Open a copy of the database of a version, by the name of the store. */
  const openFixture: Record<string, (fixture: string) => Promise<TestDatabase>> = {
    'SQLite on disk': async (fixture) => {
      const own = mkdtempSync(join(tmpdir(), 'baton-upgrade-'));
      const path = join(own, `${service}.db`);
      writeFileSync(path, gunzipSync(read(fixture, `${service}.db.gz`)), { mode: 0o600 });
      return { url: `sqlite://${path}`, drop: async () => rmSync(own, { recursive: true, force: true }) };
    },
    PostgreSQL: async (fixture) => {
      const database = await openEmptyDatabase();
      await looking(database.url, ({ query }) => query(read(fixture, `${service}.postgres.sql`).toString()));
      return database;
    },
  };
  return {
    fixtures: globSync('*', { cwd: folder }).sort(),
    expectedOf: (fixture: string) => JSON.parse(read(fixture, 'expected.json').toString()) as Expected,
    openFixture,
  };
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
function includes(later: unknown, earlier: unknown, place: string): void {
  if (typeof earlier !== 'object' || earlier === null) {
    assert.deepEqual(later, earlier, place);
    return;
  }
  assert.ok(typeof later === 'object' && later !== null, place);
  if (Array.isArray(earlier)) assert.equal((later as unknown[]).length, earlier.length, place);
  for (const [name, value] of Object.entries(earlier)) includes((later as Row)[name], value, `${place}, ${name}`);
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
