import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';

import { measureGrowth } from '../../src/handoff/store/growth.ts';
import { searchLimits } from '../../src/handoff/store/search/matches.ts';
import { createPostgresMatches } from '../../src/handoff/store/search/postgres.ts';
import { measure } from '../../src/handoff/store/sizes.ts';
import type { Tables } from '../../src/handoff/store/tables.ts';
import { openDatabase } from '../../src/kit/sql/database.ts';
import { openClusterDatabase, workersOf } from '../../test/support/citus.ts';
import { looking } from '../../test/support/consistency.ts';
import { createPacket, packetRequest, startService } from '../../test/support/service.ts';

const packetCount = 300;

/** A service on a cluster with packets of one tenant. */
async function filled(t: TestContext) {
  const { url, drop } = await openClusterDatabase('handoff');
  const service = await startService(t, { databaseUrl: url });
  const database = openDatabase<Tables>(url, { longTimeoutMs: 1000, byIndex: true });
  t.after(async () => {
    await database.close();
    await drop();
  });
  await createPacket(service, { context: { summary: 'A zymurgy question' } });
  for (let left = packetCount - 1; left > 0; left -= 100) {
    const packets = Array.from({ length: Math.min(left, 100) }, () => packetRequest());
    assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
  }
  for (let pause = 0; pause < 100; ) pause = await service.handoff.runOnce.index();
  for (const worker of workersOf(url)) await looking(worker, ({ query }) => query('analyze'));
  return { url, service, database };
}

test('The words of a search are as common as the server that has them estimates, and a search finds what matches', async (t) => {
  const { database, service } = await filled(t);
  const { plan } = createPostgresMatches(database, { ...searchLimits('postgres'), expected: 50 });
  const planOf = (word: string) => plan({ tenant: 1, phrases: [[word]] } as never);
  assert.equal((await planOf('charged')).isCommon, true);
  assert.equal((await planOf('zymurgy')).isCommon, false);
  const { body } = await service.call('GET', '/packets/search?q=zymurgy');
  assert.deepEqual([body.total, body.packets.length], [1, 1]);
});

test('The rows and bytes of a database are those of all servers', async (t) => {
  const { url, database } = await filled(t);
  const { rows, bytes } = await measure(database);
  assert.deepEqual([rows.packets, rows.search_queue], [packetCount, 0]);
  assert.ok(rows.events! >= packetCount);
  let onServers = 0;
  for (const server of [url.replace('?citus=true', ''), ...workersOf(url)])
    onServers += Number((await looking(server, ({ query }) => query('select pg_database_size(current_database()) as bytes')))[0]!.bytes);
  assert.ok(Math.abs(bytes - onServers) < onServers / 10, `${bytes}, and ${onServers} on the servers`);

  const { tables, packets } = await measureGrowth(database, new Date('2026-03-01T10:00:00Z'));
  assert.equal(packets, packetCount);
  const ofPackets = tables.find(({ table }) => table === 'packets')!;
  assert.ok(ofPackets.bytes > packetCount * 500, `${ofPackets.bytes} bytes`);
});

test('The settings of a transaction reach the server of its tenant, and a time limit ends the work there', async (t) => {
  const { url, database } = await filled(t);
  const setting = (name: string) => sql<{ value: string }>`select current_setting(${name}) as value from counters where tenant = 1 limit 1`;
  const scans = await setting('enable_seqscan').execute(database.longReads);
  assert.equal(scans.rows[0]!.value, 'off');
  const commits = await database.write(
    async (tx) =>
      tx.name === 'postgres' ? tx.run(`select current_setting('synchronous_commit') from counters where tenant = 1 limit 1`) : [],
    { asyncCommit: true },
  );
  assert.deepEqual(commits, [['off']]);

  await assert.rejects(sql`select pg_sleep(60) from counters where tenant = 1 limit 1`.execute(database.longReads), (error) =>
    database.isTimeout(error),
  );
  for (const worker of workersOf(url)) {
    const running = await looking(worker, ({ query }) =>
      query(`select pid from pg_stat_activity where state = 'active' and query like '%pg_sleep%' and pid <> pg_backend_pid()`),
    );
    assert.deepEqual(running, []);
  }
});

test('The jobs of an idle service ask only the coordinator, but for a scan every half a minute', async (t) => {
  const { service, url } = await filled(t);
  const round = async () => {
    for (const job of ['sweep', 'index', 'deliver', 'poll'] as const) await service.handoff.runOnce[job]();
  };
  /** The statements of rounds, a second apart. */
  const statementsOf = async (seconds: number) => {
    const query = t.mock.method(pg.Client.prototype, 'query');
    for (let second = 0; second < seconds; second += 1) {
      service.clock.turn(1);
      await round();
    }
    const sent = query.mock.calls.map(({ arguments: [one] }) => (one as unknown as { text?: string }).text ?? String(one));
    query.mock.restore();
    return sent;
  };
  const isOfCoordinator = (text: string) => /^\s*delete from due where/.test(text);
  service.clock.turn(31);
  await round();
  const idle = await statementsOf(20);
  assert.deepEqual(
    idle.filter((text) => !isOfCoordinator(text)),
    [],
  );
  assert.equal(idle.length, 60);
  const scans = (await statementsOf(12)).filter((text) => !isOfCoordinator(text));
  assert.deepEqual(scans.map((text) => /select distinct "tenant" from "(\w+)"/.exec(text)?.[1]).sort(), [
    'deliveries',
    'packets',
    'search_queue',
  ]);

  // Work is found at once by its tenant.
  await createPacket(service);
  const busy = (await statementsOf(1)).filter((text) => !isOfCoordinator(text));
  assert.deepEqual(await looking(url, ({ query }) => query('select packet from search_queue')), []);
  assert.ok(busy.every((text) => !text.includes('distinct')));
});

test('Another instance takes the work that one has noted, and a scan finds what was never noted', async (t) => {
  const { service, url } = await filled(t);
  const other = await startService(t, { databaseUrl: url, clock: service.clock });
  await other.handoff.runOnce.sweep();
  const { id } = await createPacket(service);
  const claim = { body: { agent_id: 'worker', lease_seconds: 60 } };
  assert.equal((await service.call('POST', `/packets/${id}/claim`, claim)).status, 200);
  // The round writes what it knows.
  service.clock.turn(1);
  await service.handoff.runOnce.sweep();
  service.clock.turn(20);
  await other.handoff.runOnce.sweep();
  service.clock.turn(9);
  await other.handoff.runOnce.sweep();
  const noted = async () => looking(url.replace('?citus=true', ''), ({ query }) => query(`select due_at from due where job = 'sweep'`));
  assert.equal((await noted()).length, 1);
  // 32 seconds later the lease ends; the other instance last scanned a second ago.
  service.clock.turn(29);
  await other.handoff.runOnce.sweep();
  service.clock.turn(3);
  await other.handoff.runOnce.sweep();
  assert.equal((await other.call('GET', `/packets/${id}`)).body.status, 'created');
  assert.deepEqual(await noted(), []);

  assert.equal((await service.call('POST', `/packets/${id}/claim`, claim)).status, 200);
  service.clock.turn(62);
  await other.handoff.runOnce.sweep();
  assert.equal((await other.call('GET', `/packets/${id}`)).body.status, 'created');
});
