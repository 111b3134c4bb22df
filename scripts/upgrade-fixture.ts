import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import pg from 'pg';

import { backUpData, exportData, importData } from '../src/handoff/maintenance.ts';
import { migrations } from '../src/handoff/store/migrations/index.ts';
import { tablesOf } from '../src/kit/sql/shape.ts';
import { answersTo, fill, fillSettings } from '../test/support/filled.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { startService } from '../test/support/service.ts';

/**
 * Writes the databases of this version that later versions are tested with, into a folder of `test/handoff/upgrade` that has the name
 * of the last migration: the same data as a SQLite file and as SQL for PostgreSQL, and the answers of this version. Run it
 * before a release: `node scripts/upgrade-fixture.ts`.
 */
const name = migrations.at(-1)!.name;
const folder = fileURLToPath(new URL(`../test/handoff/upgrade/${name}`, import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'baton-fixture-'));
const ends: (() => unknown)[] = [() => rmSync(work, { recursive: true, force: true })];
const t = { after: (end: unknown) => void ends.unshift(end as () => unknown) };
const sourceOf = (databaseUrl: string) => ({ environment: { SERVICE_DATABASE_URL: databaseUrl }, config: undefined });

/** A row as a statement; its values are given as JSON, which PostgreSQL converts to the types of the columns. */
const inserted = (table: string, row: object) =>
  `insert into ${table} select * from json_populate_record(null::${table}, '${JSON.stringify(row).replaceAll("'", "''")}');`;

/** The database at the URL as statements: its schema, its rows and the last numbers of its sequences. */
async function statementsOf(url: string): Promise<string[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const rowsOf = async (table: string, order: string) =>
      (await client.query(`select * from ${table} order by ${order}`)).rows.map((row) => inserted(table, row));
    const tables = tablesOf(migrations);
    const rows = await rowsOf('migrations', 'name');
    const last: string[] = [];
    for (const { name: table, key, numbered } of tables) {
      rows.push(...(await rowsOf(table, key.join(', '))));
      if (numbered === undefined) continue;
      const sequence = `${table}_${numbered}_seq`;
      const { last_value, is_called } = (await client.query(`select last_value, is_called from ${sequence}`)).rows[0];
      last.push(`select setval('${sequence}', ${last_value}, ${is_called});`);
    }
    rows.push(...(await rowsOf('search_index', 'rowid')));
    const schema = [
      'create table migrations (name text primary key, applied_at text not null)',
      ...migrations.flatMap(({ up }) => up('postgres')),
    ];
    return [...schema.map((statement) => `${statement};`), 'delete from versions;', ...rows, ...last];
  } finally {
    await client.end();
  }
}

const databaseUrl = `sqlite://${join(work, 'handoff.db')}`;
const service = await startService(t, { databaseUrl, settings: fillSettings });
const filled = await fill(service, 'http://127.0.0.1:1/hook');
const answers = await answersTo(service, filled);
await backUpData(sourceOf(databaseUrl), join(work, 'copy.db'));
await exportData(sourceOf(databaseUrl), join(work, 'data.jsonl'), () => undefined);
const server = await startPostgres({ durable: false });
t.after(() => server.stop());
await importData(sourceOf(`${server.url}/postgres`), join(work, 'data.jsonl'), () => undefined);

mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, 'handoff.db.gz'), gzipSync(readFileSync(join(work, 'copy.db')), { level: 9 }));
writeFileSync(join(folder, 'handoff.postgres.sql'), `${(await statementsOf(`${server.url}/postgres`)).join('\n')}\n`);
writeFileSync(join(folder, 'expected.json'), `${JSON.stringify({ now: service.clock.read(), filled, answers }, null, 2)}\n`);
for (const end of ends) await end();
console.log(`Written: ${folder}`);
