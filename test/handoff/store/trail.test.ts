import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { CreateRequest } from '../../../src/handoff/model/packet.ts';
import { adminCaller } from '../../support/caller.ts';
import { injectFault } from '../../support/faults.ts';
import { openPackets } from '../../support/packet-service.ts';
import { createPacket, newTenant, packetRequest, startService } from '../../support/service.ts';
import { everyStore, postgresql } from '../../support/stores.ts';

const claimant = { agent_id: 'worker', agent_name: 'Worker', framework: null };

const caller = (tenant_number: number) => ({ ...adminCaller, tenant_number });
const request = (summary = 'Work') => packetRequest({ context: { summary } }) as CreateRequest;
const range = (count: number) => Array.from({ length: count }, (_, index) => index);

for (const testStore of everyStore) {
  describe(`The trail on ${testStore.name}`, () => {
    test("a tenant's positions rise by one per event, and a commit reports the same events that are read later [H123]", async (t) => {
      const { store, packets, reported } = await openPackets(t, testStore);
      const [one, two] = [caller(1), caller(2)];
      const made = await Promise.all(range(6).map((index) => packets.create(index % 2 === 0 ? one : two, request(`Work ${index}`))));
      const parent = JSON.parse(made[0]!.text);
      const claimed = await packets.claim(one, parent.id, { claimant });
      await packets.chain(one, parent.id, request('More'));

      const trail = await store.whole(1).trail.between(0, 100);
      assert.deepEqual(
        trail.map(({ position, type }) => [position, type]),
        [
          [1, 'packet.created'],
          [2, 'packet.created'],
          [3, 'packet.created'],
          [4, 'packet.claimed'],
          [5, 'packet.created'],
          [6, null],
        ],
      );
      assert.deepEqual(
        (await store.whole(1).trail.between(3, 4)).map(({ position }) => position),
        [4],
      );
      assert.deepEqual(
        (await store.trail.positions([1, 2, 3])).toSorted((a, b) => a.tenant - b.tenant).map((row) => ({ ...row })),
        [
          { tenant: 1, position: 6 },
          { tenant: 2, position: 3 },
        ],
      );
      assert.deepEqual(await store.whole(1).trail.range(), { last: 6, removed: 0 });

      const own = reported.filter(({ tenant }) => tenant === 1);
      assert.deepEqual(
        own.map(({ first, last }) => [first, last]),
        [
          [1, 3],
          [4, 4],
          [5, 6],
        ],
      );
      assert.deepEqual(
        own.flatMap(({ events }) => events),
        trail.filter(({ type }) => type !== null).map((row) => ({ ...row })),
      );
      // The packet's summary after the change, byte for byte.
      const { context, decisions: _, actions: __, dependencies: ___, ...rest } = JSON.parse(claimed.packet);
      const { type, status, source_agent, target_agent, claimant: holder, payload, timestamp } = trail[3]!;
      const { counts, ...data } = JSON.parse(payload!).data;
      assert.deepEqual(data, { ...rest, context: { summary: context.summary } });
      assert.equal(counts.decisions, 1);
      const page = await store.whole(1).packets.page({ filter: { statuses: ['claimed'] }, limit: 1, offset: 0, full: false });
      assert.equal(payload, `{"type":"packet.claimed","packet_id":"${parent.id}","data":${page.text},"timestamp":"${timestamp}"}`);
      assert.deepEqual(
        [type, status, source_agent, target_agent, holder],
        ['packet.claimed', 'claimed', 'frontline', 'resolver', 'worker'],
      );
      assert.deepEqual([trail[0]!.status, trail[0]!.claimant], ['created', null]);
    });

    test('the events of large packets are committed with them, or neither are', async (t) => {
      const { store, packets, contracts, reported } = await openPackets(t, testStore);
      const summary = 'long '.repeat(150_000);
      // Once it is known that no agent has a contract, creates of one turn share a group.
      for (const tenant of [1, 2]) await contracts.judge(caller(tenant), [request(summary)]);
      // The last event of the group can't be written, so its units run again one by one.
      const fault = injectFault(testStore.name === 'PostgreSQL' ? 1 : 8, { matching: (sql) => sql.includes('insert into events') });
      t.after(fault.remove);
      const made = await Promise.all(range(8).map((index) => packets.create(caller(1 + (index % 2)), request(summary))));
      assert.ok(fault.statements() > 8, 'the units run again');
      for (const tenant of [1, 2]) {
        const trail = await store.whole(tenant).trail.between(0, 100);
        assert.deepEqual(
          trail.map(({ position, type }) => [position, type]),
          [1, 2, 3, 4].map((position) => [position, 'packet.created']),
        );
        assert.deepEqual(
          trail.map(({ packet_id }) => packet_id),
          made.filter((_, index) => index % 2 === tenant - 1).map(({ text }) => JSON.parse(text).id),
        );
        assert.equal(reported.findLast((committed) => committed.tenant === tenant)?.last, 4);
      }
    });

    test('stream events older than the retention are removed, and the trail records up to where; the audit log keeps its entries [H151]', async (t) => {
      const { store, packets, clock } = await openPackets(t, testStore);
      const create = async () => JSON.parse((await packets.create(caller(1), request())).text);
      const { id } = await create();
      await packets.chain(caller(1), id, request('More'));
      clock.turn(100);
      await create();
      assert.equal(await store.trail.forgetPayloads(clock.read(), 500), 2);
      assert.equal(await store.trail.forgetPayloads(clock.read(), 500), 0);
      const trail = await store.whole(1).trail.between(0, 9);
      assert.deepEqual(
        trail.map(({ position, payload }) => [position, payload === null]),
        [
          [1, true],
          [2, true],
          [3, true],
          [4, false],
        ],
      );
      // The entry at position 3 has no stream event, so the last removed position is 2.
      assert.deepEqual(await store.whole(1).trail.range(), { last: 4, removed: 2 });
      assert.equal((await store.whole(1).trail.audit({}, { limit: 9, offset: 0 })).total, 4);
      assert.equal((await store.whole(1).trail.history(id)).length, 2);
    });

    test('whether stream events are old enough to be removed takes one statement for all tenants', async (t) => {
      const { url, drop } = await testStore.open();
      const service = await startService(t, { databaseUrl: url });
      t.after(drop);
      const statements = async () => {
        const counted = injectFault(Number.POSITIVE_INFINITY);
        t.after(counted.remove);
        await service.handoff.runOnce.prune();
        counted.remove();
        return counted.statements();
      };
      await createPacket(service);
      const before = await statements();
      for (let count = 0; count < 3; count += 1) {
        const { key } = await newTenant(service);
        await createPacket(service, {}, key);
      }
      assert.equal(await statements(), before);
    });

    test('a refused unit leaves no event and uses no position', async (t) => {
      const { store, packets, reported } = await openPackets(t, testStore);
      const { id } = JSON.parse((await packets.create(caller(1), request())).text);
      const answers = await Promise.allSettled(range(3).map(() => packets.claim(caller(1), id, { claimant })));
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected', 'rejected']);
      assert.deepEqual(
        (await store.whole(1).trail.between(0, 9)).map(({ position }) => position),
        [1, 2],
      );
      assert.deepEqual(
        reported.map(({ first, last }) => [first, last]),
        [
          [1, 1],
          [2, 2],
        ],
      );
    });

    test('the stream events of a permanently deleted packet leave the trail; packet.deleted stays, with data null [H123]', async (t) => {
      const { store, packets } = await openPackets(t, testStore);
      const { id } = JSON.parse((await packets.create(caller(1), request())).text);
      await packets.create(caller(1), request('Another'));
      await Promise.all([packets.claim(caller(1), id, { claimant }), packets.remove(caller(1), id)]);
      const trail = await store.whole(1).trail.between(0, 9);
      assert.deepEqual(
        trail.map(({ type }) => type),
        [null, 'packet.created', null, 'packet.deleted'],
      );
      const { position, status, claimant: holder, payload, timestamp } = trail[3]!;
      assert.deepEqual([position, status, holder], [4, null, 'worker']);
      assert.equal(payload, `{"type":"packet.deleted","packet_id":"${id}","data":null,"timestamp":"${timestamp}"}`);
    });
  });
}

test('instances on one PostgreSQL append to one trail without gaps or repeated positions', async (t) => {
  const { another, ...first } = await openPackets(t, postgresql);
  const instances = [first, await another(), await another()];
  await Promise.all(range(60).map((index) => instances[index % 3]!.packets.create(caller(1), request(`Work ${index}`))));
  const trail = await instances[0]!.store.whole(1).trail.between(0, 100);
  assert.deepEqual(
    trail.map(({ position }) => position),
    range(60).map((index) => index + 1),
  );
  // Positions are in commit order, so each instance's own positions rise.
  for (const { reported } of instances) {
    const firsts = reported.map(({ first }) => first);
    assert.deepEqual(
      firsts,
      firsts.toSorted((a, b) => a - b),
    );
  }
  assert.equal(instances.flatMap(({ reported }) => reported.flatMap(({ events }) => events)).length, 60);
});
