import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { migrations } from '../../src/fallback/store/migrations/index.ts';
import { maintain } from '../../src/handoff/maintenance.ts';
import { tablesOf } from '../../src/kit/sql/shape.ts';
import { looking, type Row } from '../support/consistency.ts';
import { answersOf, createChain, fillChains, startFallback } from '../support/fallback.ts';
import { temporaryFolder } from '../support/folder.ts';
import { runProgram } from '../support/program.ts';
import { startService } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';

const program = fileURLToPath(new URL('../../bin/fallback-service.js', import.meta.url));

/** Runs `fallback-service export` or `import`; returns its exit code and what it said. */
async function run(command: 'export' | 'import', file: string, storage: string): Promise<[code: number | null, said: string]> {
  const { exitCode, stdout, stderr } = await runProgram([process.execPath, program, command, file, '--storage', storage]);
  return [exitCode, stdout + stderr];
}

/** All rows of the tables that the schema of the fallback service has, in the order of their keys. */
const rowsOf = (url: string): Promise<Record<string, Row[]>> =>
  looking(url, async ({ query }) => {
    const rows: Record<string, Row[]> = {};
    for (const { name, key } of tablesOf(migrations))
      rows[name] = (await query(`select * from ${name} order by ${key.join(', ')}`)).map((row) => ({ ...row }));
    return rows;
  });

/** A service with chains, results, and rows that have every column; and its answers to reads. */
async function filledOn(t: TestContext, store: (typeof storesOfSeveral)[number]) {
  const service = await startFallback(t, { store });
  const paths = await fillChains(service);
  const [id = '', chain = ''] = ['018f0000-0000-7000-8000-000000000001', '018f0000-0000-7000-8000-000000000002'];
  await looking(service.storage, async ({ query }) => {
    await query(`insert into test_results (id, chain_id, status, text, lease_until, cancel_requested)
      values ('${id}', '${chain}', 'completed', '{"id":"${id}","é":"\\n"}', '2020-01-01T00:00:00.000Z', 1)`);
    for (const position of [0, 1])
      await query(`insert into test_prompts (result_id, position, text) values ('${id}', ${position}, '{"index":${position}}')`);
  });
  return { service, paths, answers: await answersOf(service, paths) };
}

for (const from of storesOfSeveral) {
  for (const to of storesOfSeveral) {
    test(`fallback-service export on ${from.name} and import into ${to.name} move every row, and a second export is the same file`, async (t) => {
      const { service, paths, answers } = await filledOn(t, from);
      const rows = await rowsOf(service.storage);
      const count = Object.values(rows).reduce((sum, { length }) => sum + length, 0);
      assert.ok(Object.values(rows).every(({ length }) => length > 0));
      const folder = temporaryFolder(t);
      const file = join(folder, 'chains.jsonl');
      assert.deepEqual(await run('export', file, service.storage), [
        0,
        `Exported ${count} rows to ${file}: ${statSync(file).size} bytes.\n`,
      ]);
      const { url, drop } = await to.open();
      assert.deepEqual(await run('import', file, url), [0, `Imported ${count} rows from ${file}.\n`]);
      assert.deepEqual(await rowsOf(url), rows);
      assert.equal((await run('export', join(folder, 'again.jsonl'), url))[0], 0);
      assert.equal(readFileSync(join(folder, 'again.jsonl'), 'utf8'), readFileSync(file, 'utf8'));

      const moved = await startFallback(t, { storage: url, clock: service.clock });
      t.after(drop);
      assert.deepEqual(await answersOf(moved, paths), answers);
      const { warnings } = await createChain(moved);
      assert.match(JSON.stringify(warnings), /production-chain|same name/);
    });
  }
}

for (const store of storesOfSeveral) {
  test(`fallback-service import into ${store.name} refuses with a sentence, and changes nothing: data, a file of the handoff service, a truncated one`, async (t) => {
    const { service } = await filledOn(t, store);
    const rows = await rowsOf(service.storage);
    const folder = temporaryFolder(t);
    const [file, cut, other] = ['chains', 'cut', 'handoff'].map((name) => join(folder, `${name}.jsonl`)) as [string, string, string];
    assert.equal((await run('export', file, service.storage))[0], 0);
    assert.deepEqual(await run('export', file, service.storage), [1, `fallback: ${file} exists, and is not overwritten.\n`]);
    await service.fallback.stop();
    const [code, said] = await run('import', file, service.storage);
    assert.equal(code, 1);
    assert.match(
      said,
      /^fallback: The database is not empty: it has the table fallback_migrations of the fallback service\. Import into a new database/,
    );
    assert.deepEqual(await rowsOf(service.storage), rows);

    writeFileSync(cut, readFileSync(file, 'utf8').slice(0, -100));
    const handoff = await startService(t, { store });
    await maintain('export', other, { environment: { SERVICE_DATABASE_URL: handoff.databaseUrl }, config: undefined }, () => undefined);
    const { url, drop } = await store.open();
    t.after(drop);
    assert.deepEqual(await run('import', cut, url), [
      1,
      `fallback: ${cut} is truncated or was changed: it does not end with its own digest. Export it again.\n`,
    ]);
    assert.deepEqual(await run('import', other, url), [1, `fallback: ${other} is not an export of the fallback service.\n`]);
    const [empty, why] = await run('export', join(folder, 'none.jsonl'), url);
    assert.deepEqual([empty, why], [1, 'fallback: The database has no data of the fallback service.\n']);
    assert.equal((await run('import', file, url))[0], 0);
    assert.deepEqual(await rowsOf(url), rows);
  });
}

test('fallback-service export and import refuse a database in memory', async (t) => {
  const file = join(temporaryFolder(t), 'chains.jsonl');
  for (const command of ['export', 'import'] as const)
    assert.deepEqual(await run(command, file, 'memory'), [1, 'fallback: A database in memory belongs to the process that opened it.\n']);
});

test('fallback-service export and import of a single row say so in the singular', async (t) => {
  const [store] = storesOfSeveral as [(typeof storesOfSeveral)[number]];
  const { storage } = await startFallback(t, { store });
  await looking(storage, async ({ query }) => {
    await query("insert into test_results (id, chain_id, status, text) values ('1', '2', 'completed', '{}')");
  });
  const file = join(temporaryFolder(t), 'one.jsonl');
  assert.deepEqual(await run('export', file, storage), [0, `Exported 1 row to ${file}: ${statSync(file).size} bytes.\n`]);
  assert.deepEqual(await run('export', '--check', storage), [0, `Read 1 row: an export has ${statSync(file).size} bytes.\n`]);
  const { url, drop } = await store.open();
  t.after(drop);
  assert.deepEqual(await run('import', file, url), [0, `Imported 1 row from ${file}.\n`]);
});
