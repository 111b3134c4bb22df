import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';

import { keepReserve, openWithReserve } from '../../src/kit/sql/reserve.ts';
import { startFallback } from '../support/fallback.ts';
import { injectFault } from '../support/faults.ts';
import { startFallbackProcess, startProcess } from '../support/process.ts';
import { createPacket, packetRequest, startService } from '../support/service.ts';
import { everyStore, onDisk } from '../support/stores.ts';

const chain = { name: 'one', providers: [{ name: 'a', model_id: 'openai/gpt-4o' }] };
const isInsert = (sql: string) => /^\s*(insert|with .*insert)/is.test(sql);

for (const store of everyStore) {
  describe(`While writes find no space, on ${store.name}`, () => {
    test('/ready of the handoff service is 503 for ten seconds after one, and reads are answered', async (t) => {
      const service = await startService(t, { store });
      const { id } = await createPacket(service);
      const ready = async () => (await service.call('GET', '//ready', { key: null })).status;
      assert.equal(await ready(), 200);
      const full = injectFault(1, { kind: 'unavailable', matching: isInsert });
      const refused = await service.call('POST', '/packets', { body: packetRequest() });
      full.remove();
      assert.equal(refused.status, 503, refused.text);
      assert.equal(await ready(), 503);
      assert.equal((await service.call('GET', `/packets/${id}`)).status, 200);
      assert.equal((await service.call('GET', '/packets')).status, 200);
      // A smaller write may find space.
      await createPacket(service);
      assert.equal(await ready(), 503);
      service.clock.turn(10);
      assert.equal(await ready(), 200);
    });

    test('/ready of the fallback service is 503 as well', async (t) => {
      const { call, clock } = await startFallback(t, { store });
      const full = injectFault(1, { kind: 'unavailable', matching: isInsert });
      const refused = await call('POST', '/chains', { body: chain });
      full.remove();
      assert.equal(refused.status, 503, refused.text);
      assert.equal((await call('GET', '/ready')).status, 503);
      assert.equal((await call('GET', '/chains')).status, 200);
      clock.turn(10);
      assert.equal((await call('GET', '/ready')).status, 200);
      assert.equal((await call('POST', '/chains', { body: chain })).status, 201);
    });
  });
}

describe('A service that finds its disk full at the start', () => {
  // Less than the log of the database has: every write fails, as on a full disk.
  const fileLimitKib = 64;

  test('the handoff service starts, says so, and answers reads; with space again it answers all', async (t) => {
    const { url, drop } = await onDisk.open();
    t.after(drop);
    const before = await startProcess({ databaseUrl: url });
    t.after(() => before.kill());
    const { body } = await before.call('POST', '/packets', { body: packetRequest({ context: { summary: 'charged '.repeat(20_000) } }) });
    await before.kill();

    const full = await startProcess({ databaseUrl: url, fileLimitKib });
    t.after(() => full.kill());
    assert.match(full.errors.join('\n'), /warning: The disk of the database is full/);
    assert.equal((await full.call('GET', '//ready')).status, 503);
    assert.equal((await full.call('GET', '//health')).status, 200);
    assert.equal((await full.call('GET', `/packets/${body.id}`)).status, 200);
    const refused = await full.call('POST', '/packets', { body: packetRequest() });
    assert.deepEqual([refused.status, refused.body.code], [503, 'SERVICE_UNAVAILABLE']);
    assert.equal(await full.stop(), 0);

    const roomy = await startProcess({ databaseUrl: url });
    t.after(() => roomy.kill());
    assert.deepEqual(roomy.errors, []);
    assert.equal((await roomy.call('GET', '//ready')).status, 200);
    assert.equal((await roomy.call('GET', '/packets')).body.total, 1);
    assert.equal((await roomy.call('POST', '/packets', { body: packetRequest() })).status, 201);
  });

  test('the fallback service starts, says so, and answers reads', async (t) => {
    const { url, drop } = await onDisk.open();
    t.after(drop);
    const before = await startFallbackProcess({ storage: url });
    t.after(() => before.kill());
    const long = { ...chain, metadata: { text: 'x'.repeat(150_000) } };
    const { body } = await before.call('POST', '/chains', { body: long });
    await before.kill();

    const full = await startFallbackProcess({ storage: url, fileLimitKib });
    t.after(() => full.kill());
    assert.match(full.errors.join('\n'), /warning: The disk of the database is full/);
    assert.equal((await full.call('GET', '/ready')).status, 503);
    assert.equal((await full.call('GET', `/chains/${body.id}`)).status, 200);
    assert.equal((await full.call('POST', '/chains', { body: chain })).status, 503);
    assert.equal(await full.stop(), 0);
  });

  test('gives up the reserve that an earlier start has made, if SQLite can not even open the file', async (t) => {
    const { url, drop } = await onDisk.open();
    t.after(drop);
    const path = url.slice('sqlite://'.length);
    // SQLITE_IOERR_SHMSIZE.
    const full = Object.assign(new Error('disk I/O error'), { errcode: 4874 });
    const open = () => {
      if (existsSync(`${path}.reserve`)) throw full;
      return 'opened';
    };
    keepReserve(path);
    assert.ok(existsSync(`${path}.reserve`));
    assert.equal(openWithReserve(path, open), 'opened');
    assert.ok(!existsSync(`${path}.reserve`));
    const failing = () => {
      throw full;
    };
    assert.throws(() => openWithReserve(path, failing), full);
  });
});
