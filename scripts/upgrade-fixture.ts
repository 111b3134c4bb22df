import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import pg from 'pg';

import { migrationsTable, migrations as ofFallback } from '../src/fallback/store/migrations/index.ts';
import { migrations as ofHandoff } from '../src/handoff/store/migrations/index.ts';
import { systemClock } from '../src/kit/clock.ts';
import { backUp } from '../src/kit/sql/backup.ts';
import { exportTo, type Moved } from '../src/kit/sql/export.ts';
import { importFrom } from '../src/kit/sql/import.ts';
import { tablesOf } from '../src/kit/sql/shape.ts';
import { answersOf, fillChains, startFallback } from '../test/support/fallback.ts';
import { answersTo, fill, fillSettings } from '../test/support/filled.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { startService } from '../test/support/service.ts';

/**
 * Writes the databases of this version that later versions are tested with, into folders of `test/<service>/upgrade` that have the
 * name of the last migration: the same data as a SQLite file and as SQL for PostgreSQL, and the answers of this version.
 * Search indexes are left out of the SQL. Run it before a release: `node scripts/upgrade-fixture.ts`.
 */
const ends: (() => unknown)[] = [];
const t = { after: (end: unknown) => void ends.unshift(end as () => unknown) };
const work = mkdtempSync(join(tmpdir(), 'baton-fixture-'));
t.after(() => rmSync(work, { recursive: true, force: true }));
const server = await startPostgres({ durable: false });
t.after(() => server.stop());

const handoff: Moved = { service: 'handoff', migrations: ofHandoff, migrationsTable: 'migrations' };
const fallback: Moved = { service: 'fallback', migrations: ofFallback, migrationsTable };

/** A row as a statement; its values are given as JSON, which PostgreSQL converts to the types of the columns. */
const inserted = (table: string, row: object) =>
  `insert into ${table} select * from json_populate_record(null::${table}, '${JSON.stringify(row).replaceAll("'", "''")}');`;

/** The database at the URL as statements: its schema, its rows and the last numbers of its sequences. */
async function statementsOf(url: string, { migrations, migrationsTable: notes }: Moved): Promise<string[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    const rowsOf = async (table: string, order: string) =>
      (await client.query(`select * from ${table} order by ${order}`)).rows.map((row) => inserted(table, row));
    const rows = await rowsOf(notes, 'name');
    const last: string[] = [];
    const emptied: string[] = [];
    for (const { name: table, key, numbered } of tablesOf(migrations)) {
      emptied.push(`delete from ${table};`);
      rows.push(...(await rowsOf(table, key.join(', '))));
      if (numbered === undefined) continue;
      const sequence = `${table}_${numbered}_seq`;
      const { last_value, is_called } = (await client.query(`select last_value, is_called from ${sequence}`)).rows[0];
      last.push(`select setval('${sequence}', ${last_value}, ${is_called});`);
    }
    const schema = [
      `create table ${notes} (name text primary key, applied_at text not null)`,
      ...migrations.flatMap(({ up }) => up('postgres')),
    ];
    // Without their index, packets are indexed again.
    const unindexed =
      'insert into search_queue (tenant, packet, revision) select tenant, seq, revision from packets on conflict do nothing;';
    if (notes === handoff.migrationsTable) rows.push(unindexed);
    return [...schema.map((statement) => `${statement};`), ...emptied.toReversed(), ...rows, ...last];
  } finally {
    await client.end();
  }
}

/** Writes the files of a service whose data is in the SQLite database at the URL. */
async function write(databaseUrl: string, moved: Moved, expected: object): Promise<void> {
  const { service, migrations } = moved;
  const file = (name: string) => join(work, `${service}-${name}`);
  const onProgress = () => undefined;
  await backUp(databaseUrl, file('copy.db'));
  await exportTo(file('data.jsonl'), { databaseUrl, moved, onProgress });
  const admin = new pg.Client(`${server.url}/postgres`);
  await admin.connect();
  await admin.query(`create database ${service}`);
  await admin.end();
  const url = `${server.url}/${service}`;
  await importFrom(file('data.jsonl'), { databaseUrl: url, moved, clock: systemClock, onProgress });

  const folder = fileURLToPath(new URL(`../test/${service}/upgrade/${migrations.at(-1)!.name}`, import.meta.url));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${service}.db.gz`), gzipSync(readFileSync(file('copy.db')), { level: 9 }));
  writeFileSync(join(folder, `${service}.postgres.sql`), `${(await statementsOf(url, moved)).join('\n')}\n`);
  writeFileSync(join(folder, 'expected.json'), `${JSON.stringify(expected, null, 2)}\n`);
  console.log(`Written: ${folder}`);
}

const handoffUrl = `sqlite://${join(work, 'handoff.db')}`;
const service = await startService(t, { databaseUrl: handoffUrl, settings: fillSettings });
const filled = await fill(service, 'http://127.0.0.1:1/hook');
await write(handoffUrl, handoff, { now: service.clock.read(), filled, answers: await answersTo(service, filled) });

const fallbackUrl = `sqlite://${join(work, 'fallback.db')}`;
const chains = await startFallback(t, { storage: fallbackUrl });
const paths = await fillChains(chains);
await write(fallbackUrl, fallback, { now: chains.clock.read(), paths, answers: await answersOf(chains, paths) });
for (const end of ends) await end();
