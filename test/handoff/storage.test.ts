import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { refused } from '../support/cli.ts';
import { runCliProgram } from '../support/cli-program.ts';
import { temporaryFolder } from '../support/folder.ts';
import { packetRequest, startService, TestClock } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';

describe('service-cli storage', () => {
  for (const store of storesOfSeveral) {
    test(`shows the rows and bytes of each table and a forecast, on ${store.name}`, async (t) => {
      const service = await startService(t, { store, clock: new TestClock(new Date().toISOString()) });
      const createMany = async (count: number) => {
        const body = { packets: Array(count).fill(packetRequest()) };
        assert.equal((await service.call('POST', '/packets/batch', { body })).status, 201);
      };
      await createMany(99);
      const environment = { SERVICE_DATABASE_URL: service.databaseUrl };
      const early = await runCliProgram(['storage'], { environment });
      assert.match(early.stdout, /, 99 packets; .*\nThere are too few packets for a forecast, which needs a thousand\.\n$/);
      for (let batch = 0; batch < 9; batch += 1) await createMany(100);
      const fewer = JSON.parse((await runCliProgram(['storage', '--format', 'json'], { environment })).stdout);
      assert.deepEqual([fewer.packets, fewer.bytes_per_packet, fewer.bytes_in_a_year], [999, null, null]);
      await createMany(1);
      const { exitCode, stdout, stderr } = await runCliProgram(['storage', '--format', 'json'], { environment });
      assert.equal(exitCode, 0, stderr);
      const { tables, packets, packets_per_day, bytes, bytes_per_packet, bytes_in_a_year } = JSON.parse(stdout);
      const of = (name: string) => tables.find(({ table }: { table: string }) => table === name);
      assert.deepEqual([of('packets').rows, of('contents').rows, of('tenants').rows, packets], [1000, 1000, 1, 1000]);
      assert.deepEqual([of('events').is_kept, of('messages').is_kept], [true, false]);
      assert.ok(of('packets').bytes > 8192 && of('search_index').bytes > 0);
      // A database that is younger than a day is taken to be a day old.
      assert.equal(packets_per_day, 1000);
      assert.ok(Math.abs(bytes_in_a_year - (bytes + 365 * packets_per_day * bytes_per_packet)) < 365 * packets_per_day);
      const table = await runCliProgram(['storage'], { environment });
      assert.match(table.stdout, /^packets +1000 +\d+\.\d +\d+ +until deleted$/m);
      assert.match(table.stdout, /^In a year: \d+\.\d MB, at \d+ bytes kept for each packet/m);
    });
  }

  test('refuses a database on which no service was started, and creates nothing', async (t) => {
    const file = join(temporaryFolder(t), 'none.db');
    refused(
      await runCliProgram(['storage'], { environment: { SERVICE_DATABASE_URL: `sqlite://${file}` } }),
      1,
      /There is no database of the handoff service at /,
    );
    assert.equal(existsSync(file), false);
  });
});

test('admin-key -q prints the key alone', async (t) => {
  const home = temporaryFolder(t);
  const environment = { HOME: home, SERVICE_DATABASE_URL: `sqlite://${join(home, 'handoff.db')}` };
  const { handoff } = await startService(t, { databaseUrl: environment.SERVICE_DATABASE_URL });
  await handoff.stop();
  const { exitCode, stdout, stderr } = await runCliProgram(['admin-key', '-q'], { environment });
  assert.equal(exitCode, 0, stderr);
  assert.match(stdout, /^svc_\S+\n$/);
});
