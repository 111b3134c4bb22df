import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import pg from 'pg';

import { startProcess, type TestProcess } from '../support/process.ts';
import { createRedis, skipWithoutRedis } from '../support/redis.ts';
import { adminKey, createPacket, packetRequest, startService, TestClock, type TestService } from '../support/service.ts';
import { openPostgresDatabase } from '../support/stores.ts';
import { openEvents, type TestEvents } from '../support/streams.ts';

const keyed = { 'x-api-key': adminKey };

/** Instances on one empty PostgreSQL, and the streams of each. */
async function startInstances(t: TestContext, count: number): Promise<{ url: string; instances: TestService[]; addresses: string[] }> {
  const { url, drop } = await openPostgresDatabase();
  const clock = new TestClock();
  const stops: (() => Promise<void>)[] = [];
  const instances: TestService[] = [];
  while (instances.length < count) {
    instances.push(await startService({ after: (stop) => stops.push(stop as () => Promise<void>) }, { databaseUrl: url, clock }));
  }
  t.after(async () => {
    await Promise.all(stops.map((stop) => stop()));
    await drop();
  });
  const addresses = await Promise.all(instances.map(({ handoff }) => handoff.start()));
  return { url, instances, addresses };
}

async function listen(t: TestContext, address: string): Promise<TestEvents> {
  const stream = await openEvents(address, '', keyed);
  t.after(() => stream.close());
  assert.equal(stream.status, 200, stream.text());
  assert.equal((await stream.events.next()).event, 'connected');
  return stream;
}

const packetIds = (events: readonly { data: { packet_id: string } }[]) => events.map(({ data }) => data.packet_id);

describe('Streams of instances that share a PostgreSQL', () => {
  test('hear of one another without a broker: an instance looks at the database', async (t) => {
    const { instances, addresses } = await startInstances(t, 2);
    const streams = await Promise.all(addresses.map((address) => listen(t, address)));
    const ids: string[] = [];
    for (let round = 0; round < 6; round += 1) ids.push((await createPacket(instances[round % 2]!)).id);
    await Promise.all(instances.map(({ handoff }) => handoff.runOnce.look()));
    for (const { events } of streams) assert.deepEqual(packetIds(await events.take(6)), ids);
  });

  test('miss and repeat nothing when commits end in another order than they began', async (t) => {
    const { url, instances, addresses } = await startInstances(t, 2);
    const first = await createPacket(instances[0]!);
    const streams = await Promise.all(addresses.map((address) => listen(t, address)));
    // The first instance's transaction waits for a row that is locked; what the second begins later is committed first.
    const locker = new pg.Client(url);
    await locker.connect();
    await locker.query('begin');
    await locker.query('select 1 from packets for update');
    const waiting = instances[0]!.call('POST', `/packets/${first.id}/claim`, { body: { agent_id: 'a' } });
    const later = await createPacket(instances[1]!);
    await locker.query('commit');
    await locker.end();
    assert.equal((await waiting).status, 200);
    const last = await createPacket(instances[1]!);
    await Promise.all(instances.map(({ handoff }) => handoff.runOnce.look()));
    for (const { events } of streams) {
      const heard = await events.take(3);
      assert.deepEqual(packetIds(heard), [later.id, first.id, last.id]);
      const positions = heard.map(({ id }) => Number(id!.split('-')[0]));
      assert.deepEqual(
        positions,
        positions.toSorted((a, b) => a - b),
      );
    }
  });

  test('of many at once tell every listener the same events in the same order', async (t) => {
    const { instances, addresses } = await startInstances(t, 2);
    const streams = await Promise.all([...addresses, ...addresses].map((address) => listen(t, address)));
    const batch = (index: number) =>
      instances[index % 2]!.call('POST', '/packets/batch', { body: { packets: Array(20).fill(packetRequest()) } });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => batch(index)));
    for (const { status } of answers) assert.equal(status, 201);
    await Promise.all(instances.map(({ handoff }) => handoff.runOnce.look()));
    const heard = await Promise.all(streams.map(({ events }) => events.take(400)));
    for (const events of heard) assert.deepEqual(events, heard[0]);
    assert.equal(new Set(packetIds(heard[0]!)).size, 400);
  });
});

describe('Streams of instances with a broker that fails', { skip: skipWithoutRedis }, () => {
  test('miss nothing and repeat nothing while it is killed, frozen and flapping', async (t) => {
    const redis = await createRedis();
    await redis.start();
    const { url, drop } = await openPostgresDatabase();
    const settings = { SERVICE_REDIS_URL: redis.url };
    const programs: TestProcess[] = [];
    t.after(async () => {
      await Promise.all(programs.map((program) => program.stop()));
      await redis.stop();
      await drop();
    });
    while (programs.length < 2) programs.push(await startProcess({ databaseUrl: url, settings }));
    const streams = await Promise.all(programs.map(({ address }) => listen(t, address)));
    const made: string[] = [];
    const create = async () => {
      const answer = await programs[made.length % 2]!.call('POST', '/packets', { body: packetRequest() });
      assert.equal(answer.status, 201);
      made.push(answer.body.id);
    };
    const stages: [string, () => unknown][] = [
      ['in reach', () => undefined],
      ['frozen', () => redis.freeze()],
      ['killed', () => redis.stop()],
      ['back', () => redis.start()],
      ['killed again', () => redis.stop()],
    ];
    let heard = 0;
    for (const [, stage] of stages) {
      await stage();
      for (let round = 0; round < 10; round += 1) await create();
      const expected = made.slice(heard);
      for (const { events } of streams) {
        assert.deepEqual(packetIds((await events.take(expected.length)).toSorted(byPosition)).toSorted(), expected.toSorted());
      }
      heard = made.length;
    }
    for (const { events } of streams) {
      const positions = events.all.slice(1).map(({ id }) => Number(id!.split('-')[0]));
      assert.deepEqual(
        positions,
        [...new Set(positions)].toSorted((a, b) => a - b),
      );
    }
  });
});

const byPosition = (one: { id: string | undefined }, other: { id: string | undefined }) =>
  Number(one.id!.split('-')[0]) - Number(other.id!.split('-')[0]);
