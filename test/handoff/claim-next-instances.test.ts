import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { connectTo } from '../support/databases.ts';
import { openInstances } from '../support/instances.ts';
import { createRedis, skipWithoutRedis } from '../support/redis.ts';
import { createPacket, packetRequest, type TestClock, type TestService } from '../support/service.ts';
import { pagesOf, recordStatements } from '../support/statements.ts';
import { until, waiting } from '../support/until.ts';
import { assertEachOnce, createPackets, runWorkers, waitingAt } from '../support/workers.ts';

/** The number of packets for a hundred workers. */
const packetCount = 1_000;

/** Two instances on one empty PostgreSQL. */
async function startInstances(t: TestContext, settings: Record<string, string> = {}): Promise<[TestService, TestService]> {
  const { start } = await openInstances(t);
  return [await start(settings), await start(settings)];
}

/** Numbers from 0 to below `count`, the same at each run. */
function dice(seed: number): (count: number) => number {
  let state = seed;
  return (count) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % count;
  };
}

const ranks = ['critical', 'high', 'normal', 'low'];

interface Waiting {
  readonly id: string;
  readonly priority: string;
  readonly agent: string;
  /** Empty: none. */
  readonly due: string;
}

/**
 * Creates, claims, releases, changes and removes packets at random, one after another, at any of the instances, and asserts that each claim
 * gets the packet that is first.
 */
async function assertFirstOnes(instances: readonly TestService[], clock: TestClock, seed: number, isByDue: boolean): Promise<void> {
  const any = dice(seed);
  const pick = <T>(some: readonly T[]): T => some[any(some.length)]!;
  const waiting: Waiting[] = [];
  const held: Waiting[] = [];
  const at = () => pick(instances);
  /** Few times, so that several packets are due at one. */
  const anyDue = () => (any(4) === 0 ? '' : new Date(Date.UTC(2030, 0, 1 + any(20))).toISOString());
  const steps: (() => Promise<unknown>)[] = [
    async () => {
      const [priority, agent, due] = [pick(ranks), pick(['a', 'b']), anyDue()];
      const metadata = { ...(packetRequest().metadata as object), priority, target_agent: { id: agent, name: agent } };
      const { id } = await createPacket(at(), { metadata, ...(due === '' ? {} : { due_at: due }) });
      waiting.push({ id, priority, agent, due });
    },
    ...Array.from({ length: 3 }, () => async () => {
      const target_agent = pick(['a', 'b', '*']);
      const own = waiting.filter(({ agent }) => target_agent === '*' || agent === target_agent);
      // Those without a `due_at` come last.
      const place = ({ due, id }: Waiting) => (isByDue ? `${due || 'none'} ${id}` : id);
      const order = (one: Waiting, other: Waiting) =>
        ranks.indexOf(one.priority) - ranks.indexOf(other.priority) || (place(one) < place(other) ? -1 : 1);
      const first = own.sort(order)[0];
      const ordered = isByDue ? { order: 'due' } : {};
      const { status, body } = await at().call('POST', '/packets/claim-next', { body: { agent_id: 'worker', target_agent, ...ordered } });
      assert.equal(status === 204 ? undefined : body.id, first?.id);
      if (first === undefined) return;
      waiting.splice(waiting.indexOf(first), 1);
      held.push(first);
    }),
    async () => {
      if (held.length === 0) return;
      const [one] = held.splice(any(held.length), 1) as [Waiting];
      assert.equal((await at().call('POST', `/packets/${one.id}/release`)).status, 200);
      waiting.push(one);
    },
    async () => {
      if (waiting.length === 0) return;
      const index = any(waiting.length);
      const [priority, due] = [pick(ranks), anyDue()];
      const { id } = waiting[index]!;
      const body = { metadata: { priority }, due_at: due === '' ? null : due };
      assert.equal((await at().call('PATCH', `/packets/${id}`, { body })).status, 200);
      waiting[index] = { ...waiting[index]!, priority, due };
    },
    async () => clock.turn(pick([0.1, 0.3, 3, 11, 61])),
  ];
  for (let step = 0; step < 400; step += 1) await pick(steps)();
}

describe('The next packet, of two instances on one PostgreSQL,', () => {
  test('goes to exactly one of a hundred workers on both [H101]', async (t) => {
    const [one, other] = await startInstances(t);
    await createPackets(one, packetCount);
    assertEachOnce(await runWorkers([one, other], 100), packetCount);
    assert.equal((await other.call('GET', '/audit?action=claimed&limit=1')).body.total, packetCount);
  });

  for (const order of ['age', 'due'] as const)
    test(`is the first one by ${order} at each moment, whichever has created, released or changed packets`, async (t) => {
      const { start, clock } = await openInstances(t);
      await assertFirstOnes([await start(), await start()], clock, 1, order === 'due');
    });

  for (const order of ['age', 'due'] as const)
    test(`is found by ${order} without a visit to those that died since another session took its snapshot`, async (t) => {
      const { start, url, clock } = await openInstances(t);
      const instances = [await start(), await start()];
      const holder = await connectTo(t, url);
      await holder.query('begin isolation level repeatable read');
      await holder.query('select 1');
      const reader = await connectTo(t, url);
      const statements = recordStatements(t, 'skip locked');
      const isByDue = order === 'due';
      const body = { agent_id: 'resolver', ...(isByDue ? { order } : {}) };
      const claim = (index: number) => instances[index % 2]!.call('POST', '/packets/claim-next', { body });
      const pagesAfter = async (count: number) => {
        await createPackets(instances[0]!, count + 10, isByDue ? { due_at: '2030-01-01T00:00:00Z' } : {});
        for (let index = 0; index < count; index += 1) assert.equal((await claim(index)).status, 200);
        clock.turn(0.3);
        // The second one begins where the first one looked.
        for (const index of [0, 0]) assert.equal((await claim(index)).status, 200);
        // By `due_at` those without one are looked for too.
        return pagesOf(reader, statements.filter(({ text }) => text.includes('floor_by') === isByDue).at(-1)!);
      };
      const few = await pagesAfter(20);
      assert.ok((await pagesAfter(400)) < few + 40);
    });

  for (const order of ['age', 'due'] as const)
    test(`is looked for by ${order} among all packets without reading what has happened to the others`, async (t) => {
      const { start, url } = await openInstances(t);
      const service = await start();
      const isByDue = order === 'due';
      await createPackets(service, 20, isByDue ? { due_at: '2030-01-01T00:00:00Z' } : {});
      const looks = recordStatements(t, 'select max(position)');
      const claim = await service.call('POST', '/packets/claim-next', { body: { agent_id: 'resolver', ...(isByDue ? { order } : {}) } });
      assert.equal(claim.status, 200);
      // By `due_at` those without one are looked for too.
      const whole = looks.filter(({ text }) => text.includes('floor_by') === isByDue);
      assert.equal(whole.length, 1);
      const reader = await connectTo(t, url);
      const few = await pagesOf(reader, whole[0]!);
      const { rows: columns } = await reader.query(`select string_agg(column_name, ', ') as names,
        string_agg(case column_name when 'position' then '1000 + i' else column_name end, ', ') as given
        from information_schema.columns where table_name = 'events'`);
      const { names, given } = columns[0] as { names: string; given: string };
      await reader.query(`insert into events (${names})
        select ${given} from (select * from events where event_type = 'created' limit 1) one cross join generate_series(1, 5000) i`);
      const many = await pagesOf(reader, whole[0]!);
      assert.ok(many < few + 20, `${few} pages, and ${many} with the trail`);
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
