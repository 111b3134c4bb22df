import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';

import { maintain } from '../../src/handoff/maintenance.ts';
import { openClusterDatabase, openSingleDatabase } from '../../test/support/citus.ts';
import { assertSound } from '../../test/support/consistency.ts';
import { answersTo, continues, fill, fillSettings } from '../../test/support/filled.ts';
import { startService } from '../../test/support/service.ts';
import type { TestDatabase } from '../../test/support/store.ts';

const sourceOf = (databaseUrl: string) => ({ environment: { SERVICE_DATABASE_URL: databaseUrl }, config: undefined });

/** Opens a database without the schema. */
async function opened(t: TestContext, open: () => Promise<TestDatabase>): Promise<string> {
  const { url, drop } = await open();
  t.after(drop);
  return url;
}

test('A deployment moves from one PostgreSQL to a cluster and back byte for byte, and answers and goes on there as before', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-transfer-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [first, cluster, last] = [
    await opened(t, openSingleDatabase),
    await opened(t, openClusterDatabase),
    await opened(t, openSingleDatabase),
  ];
  const service = await startService(t, { databaseUrl: first, settings: fillSettings });
  const filled = await fill(service, 'http://127.0.0.1:1/hook');
  // What waits for the index is queued again by an import, so that it is not the same.
  await service.handoff.runOnce.index();
  const answers = await answersTo(service, filled);
  const files: string[] = [];
  for (const [from, to] of [
    [first, cluster],
    [cluster, last],
    [last, undefined],
  ] as const) {
    const file = join(folder, `${files.length}.jsonl`);
    await maintain('export', file, sourceOf(from), () => undefined);
    files.push(readFileSync(file, 'utf8'));
    if (to !== undefined) await maintain('import', file, sourceOf(to), () => undefined);
  }
  assert.ok(files[0]!.length > 10_000);
  assert.equal(files[1], files[0]);
  assert.equal(files[2], files[0]);

  const moved = await startService(t, { databaseUrl: cluster, clock: service.clock, settings: fillSettings });
  assert.deepEqual(await answersTo(moved, filled), answers);
  await continues(t, moved, filled);
  await assertSound(cluster);
});
