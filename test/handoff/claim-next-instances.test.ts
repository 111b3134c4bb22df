import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { openInstances } from '../support/instances.ts';
import { createRedis, skipWithoutRedis } from '../support/redis.ts';
import { createPacket, type TestService } from '../support/service.ts';
import { until, waiting } from '../support/until.ts';
import { assertEachOnce, createPackets, runWorkers, waitingAt } from '../support/workers.ts';

/** The number of packets for a hundred workers. */
const packetCount = 1_000;

/** Two instances on one empty PostgreSQL. */
async function startInstances(t: TestContext, settings: Record<string, string> = {}): Promise<[TestService, TestService]> {
  const { start } = await openInstances(t);
  return [await start(settings), await start(settings)];
}

describe('The next packet, of two instances on one PostgreSQL,', () => {
  test('goes to exactly one of a hundred workers on both [H101]', async (t) => {
    const [one, other] = await startInstances(t);
    await createPackets(one, packetCount);
    assertEachOnce(await runWorkers([one, other], 100), packetCount);
    assert.equal((await other.call('GET', '/audit?action=claimed&limit=1')).body.total, packetCount);
  });

  test('wakes a request that waits on the other one, without a broker', async (t) => {
    const [one, other] = await startInstances(t);
    const answering = other.call('POST', '/packets/claim-next', { body: { agent_id: 'resolver', wait_seconds: 60 } });
    await waiting(other, 1);
    const { id } = await createPacket(one);
    await other.handoff.runOnce.poll();
    assert.equal((await answering).body.id, id);
  });

  test('as a packet to wait for, is answered when the other instance changes it, without a broker', async (t) => {
    const [one, other] = await startInstances(t);
    const { id } = await createPacket(one);
    const answering = other.call('GET', `/packets/${id}?wait_seconds=60&until=claimed`);
    await waiting(other, 1);
    await one.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
    await other.handoff.runOnce.poll();
    assert.equal((await answering).body.status, 'claimed');
  });

  test('goes to exactly one of a hundred waiting requests on both, with a broker', { skip: skipWithoutRedis }, async (t) => {
    const redis = await createRedis();
    await redis.start();
    t.after(() => redis.stop());
    const instances = await startInstances(t, { SERVICE_REDIS_URL: redis.url });
    await Promise.all(instances.map(({ handoff }) => handoff.start()));
    const working = runWorkers(instances, 100, { total: packetCount, wait_seconds: 60 });
    await until(() => waitingAt(instances) >= 100);
    await createPackets(instances[0], packetCount);
    assertEachOnce(await working, packetCount);
  });
});
