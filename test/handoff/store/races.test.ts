import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';

import { connectTo } from '../../support/databases.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, packetRequest, type TestService } from '../../support/service.ts';
import { postgresql } from '../../support/stores.ts';
import { until } from '../../support/until.ts';
import { register, startHooked } from '../../support/webhooks.ts';

/** Lets an operation read, makes a change before it can lock what it read, and returns what the operation returns. */
async function overtaken<T>(t: TestContext, { databaseUrl }: TestService, change: string, operation: () => Promise<T>): Promise<T> {
  const [other, observer] = await Promise.all([connectTo(t, databaseUrl), connectTo(t, databaseUrl)]);
  await other.query('begin');
  assert.equal((await other.query(change)).rowCount, 1);
  const operating = operation();
  const blocked = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await until(async () => (await observer.query(blocked)).rowCount === 1);
  await other.query('commit');
  return operating;
}

test('retry-all leaves a delivery alone that an instance has leased meanwhile, on PostgreSQL [H127]', async (t) => {
  const receiver = await startReceiver(t, 500);
  const service = await startHooked(t, { store: postgresql });
  await register(service, receiver.url);
  await createPacket(service);
  await service.handoff.runOnce.deliver();
  const lease = `update deliveries set due_at = '2026-03-01T09:30:20.000Z' where status = 'failed'`;
  const retry = () => service.call('POST', '/hooks/dlq/retry-all', { body: { force: true } });
  assert.deepEqual((await overtaken(t, service, lease, retry)).body, { retried: 0, skipped: 0, remaining: 0 });
});

test('the packets of an idempotency key are kept if it is used again while its old answer is forgotten, on PostgreSQL', async (t) => {
  const service = await startHooked(t, { store: postgresql });
  const headers = { 'idempotency-key': 'again' };
  assert.equal((await service.call('POST', '/packets', { body: packetRequest(), headers })).status, 201);
  service.clock.turn(30 * 86_400);
  const use = `update idempotency set created_at = '${service.clock.read().toISOString()}'`;
  await overtaken(t, service, use, () => service.handoff.runOnce.prune());
  const client = await connectTo(t, service.databaseUrl);
  assert.equal((await client.query(`select from idempotency_packets`)).rowCount, 1);
});
