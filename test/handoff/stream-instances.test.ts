import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { connectTo, openEmptyDatabase } from '../support/databases.ts';
import { openInstances } from '../support/instances.ts';
import { startProcess, type TestProcess } from '../support/process.ts';
import { createRedis, skipWithoutRedis } from '../support/redis.ts';
import { adminKey, createPacket, newTenant, packetRequest, type TestService } from '../support/service.ts';
import { AsyncQueue, listenTo, type TestEvents } from '../support/streams.ts';

const keyed = { 'x-api-key': adminKey };

/** Starts instances on one empty PostgreSQL, with streams on each. */
async function startInstances(t: TestContext, count: number): Promise<{ url: string; instances: TestService[]; addresses: string[] }> {
  const { url, start } = await openInstances(t);
  const instances = await Promise.all(Array.from({ length: count }, () => start()));
  const addresses = await Promise.all(instances.map(({ handoff }) => handoff.start()));
  return { url, instances, addresses };
}

const listen = (t: TestContext, address: string): Promise<TestEvents> => listenTo(t, address, '', keyed);

const packetIds = (events: readonly { data: { packet_id: string } }[]) => events.map(({ data }) => data.packet_id);

describe('Streams of instances that share a PostgreSQL', () => {
  test('get events of other instances without a broker, by polling the database [H166]', async (t) => {
    const { instances, addresses } = await startInstances(t, 2);
    const streams = await Promise.all(addresses.map((address) => listen(t, address)));
    const ids: string[] = [];
    for (let round = 0; round < 6; round += 1) ids.push((await createPacket(instances[round % 2]!)).id);
    // Two seconds from the start of one poll to the next leave one of the three promised seconds for the poll itself.
    assert.deepEqual(await Promise.all(instances.map(({ handoff }) => handoff.runOnce.poll())), [2000, 2000]);
    for (const { events } of streams) assert.deepEqual(packetIds(await events.take(6)), ids);
  });

  test('end if their key is revoked on another instance [H168]', async (t) => {
    const { instances, addresses } = await startInstances(t, 2);
    const { key, keyId } = await newTenant(instances[0]!);
    const stream = await listenTo(t, addresses[1]!, `?api_key=${key}`);
    assert.equal((await instances[0]!.call('DELETE', `/keys/${keyId}`)).status, 204);
    await instances[1]!.handoff.runOnce.recheck();
    await stream.ended;
  });

  test('miss and repeat nothing if transactions commit in another order than they began [H166]', async (t) => {
    const { url, instances, addresses } = await startInstances(t, 2);
    const first = await createPacket(instances[0]!);
    const streams = await Promise.all(addresses.map((address) => listen(t, address)));
    // The first instance's transaction waits for a locked row, so the second's later transaction commits first.
    const locker = await connectTo(t, url);
    await locker.query('begin');
    await locker.query('select 1 from packets for update');
    const waiting = instances[0]!.call('POST', `/packets/${first.id}/claim`, { body: { agent_id: 'a' } });
    const later = await createPacket(instances[1]!);
    await locker.query('commit');
    assert.equal((await waiting).status, 200);
    const last = await createPacket(instances[1]!);
    await Promise.all(instances.map(({ handoff }) => handoff.runOnce.poll()));
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

  test('under concurrent writes send the same events in the same order to every listener', async (t) => {
    const { instances, addresses } = await startInstances(t, 2);
    const streams = await Promise.all([...addresses, ...addresses].map((address) => listen(t, address)));
    const batch = (index: number) =>
      instances[index % 2]!.call('POST', '/packets/batch', { body: { packets: Array(20).fill(packetRequest()) } });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => batch(index)));
    for (const { status } of answers) assert.equal(status, 201);
    await Promise.all(instances.map(({ handoff }) => handoff.runOnce.poll()));
    const heard = await Promise.all(streams.map(({ events }) => events.take(400)));
    for (const events of heard) assert.deepEqual(events, heard[0]);
    assert.equal(new Set(packetIds(heard[0]!)).size, 400);
  });
});

/** A stream and its events, each with its time of arrival. */
interface Heard {
  readonly events: { readonly position: number; readonly packetId: string; readonly at: number }[];
  /** Resolves when `count` events have arrived. */
  count(wanted: number): Promise<void>;
}

async function hear(t: TestContext, address: string): Promise<Heard> {
  const stream = await listen(t, address);
  const events: Heard['events'] = [];
  const arrivals = new AsyncQueue<number>();
  void (async () => {
    for (;;) {
      const { id, data } = await stream.events.next();
      events.push({ position: Number(id!.split('-')[0]), packetId: data.packet_id, at: performance.now() });
      arrivals.put(events.length);
    }
  })();
  return {
    events,
    async count(wanted) {
      while (events.length < wanted) await arrivals.next();
    },
  };
}

/**
 * The delay of a stream that is tolerated on a busy machine, in milliseconds. The promised three seconds follow from the
 * interval of polling, which has its own test; this test shows that no fault of the broker delays a poll.
 */
const lateMs = 10_000;

describe('Streams of instances with a broker that fails', { skip: skipWithoutRedis }, () => {
  test('miss and repeat nothing while it is killed, frozen and flapping under load, and every request succeeds [H166]', async (t) => {
    const redis = await createRedis();
    await redis.start();
    const { url, drop } = await openEmptyDatabase();
    const settings = { SERVICE_REDIS_URL: redis.url };
    const programs: TestProcess[] = [];
    t.after(async () => {
      redis.thaw();
      await Promise.all(programs.map((program) => program.kill()));
      await redis.stop();
      await drop();
    });
    programs.push(...(await Promise.all([0, 1].map(() => startProcess({ databaseUrl: url, settings })))));
    const heard = await Promise.all([...programs, ...programs].map(({ address }) => hear(t, address)));
    const answeredAt = new Map<string, number>();
    let isLoaded = true;
    const load = programs.flatMap((program) =>
      [0, 1].map(async () => {
        while (isLoaded) {
          const answer = await program.call('POST', '/packets', { body: packetRequest() });
          assert.equal(answer.status, 201, answer.text);
          answeredAt.set(answer.body.id, performance.now());
        }
      }),
    );
    /** Resolves when every stream has sent this many more of the packets created meanwhile. */
    const more = async (count: number) => {
      const wanted = answeredAt.size + count;
      await Promise.all(heard.map((one) => one.count(wanted)));
    };
    const stages: (() => unknown)[] = [
      () => undefined,
      () => redis.freeze(),
      () => redis.thaw(),
      () => redis.stop(),
      () => redis.start(),
      () => redis.freeze(),
      () => redis.stop(),
      () => redis.start(),
      () => redis.stop(),
    ];
    const playing = (async () => {
      for (const stage of stages) {
        await stage();
        await more(20);
      }
    })();
    // A request that fails ends the test at once.
    await Promise.race([playing, Promise.all(load)]);
    isLoaded = false;
    await Promise.all(load);
    await Promise.all(heard.map((one) => one.count(answeredAt.size)));
    const [first] = heard;
    const slowest = Math.max(...heard.flatMap(({ events }) => events.map(({ packetId, at }) => at - answeredAt.get(packetId)!)));
    t.diagnostic(`${answeredAt.size} packets; the latest event came ${Math.round(slowest)} ms after its answer`);
    assert.ok(slowest < lateMs, `${slowest} ms`);
    assert.deepEqual(first!.events.map(({ packetId }) => packetId).toSorted(), [...answeredAt.keys()].toSorted());
    for (const { events } of heard) {
      assert.deepEqual(
        events.map(({ position }) => position),
        events.map((_, index) => first!.events[0]!.position + index),
      );
      assert.deepEqual(
        events.map(({ packetId }) => packetId),
        first!.events.map(({ packetId }) => packetId),
      );
    }
  });
});
