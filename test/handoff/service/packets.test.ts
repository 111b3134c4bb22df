import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import type { ChainRequest, CreateRequest } from '../../../src/handoff/model/packet.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import type { PacketBuffer } from '../../../src/handoff/store/packets.ts';
import type { Tables } from '../../../src/handoff/store/tables.ts';
import { createIds } from '../../../src/kit/id.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import { adminCaller as caller } from '../../support/caller.ts';
import { assertSound } from '../../support/consistency.ts';
import { openPackets } from '../../support/packet-service.ts';
import { createPacket, packetRequest, startService, TestClock } from '../../support/service.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);
const claimant = { agent_id: 'a', agent_name: 'a', framework: null };

for (const store of stores) {
  describe(`Requests of the same moment on ${store.name}`, () => {
    test('a hard delete also removes the details of changes of the packet in the same commit', async (t) => {
      const { store: opened, packets, tenant, newPacket } = await openPackets(t, store);
      const id = await newPacket();
      // What answers need beside the packet is read before the first one.
      await assert.rejects(packets.respond(caller, id, { response: 'Yes', responded_by: 'dana' }), /awaits no answer/);
      const before = [
        packets.patch(caller, id, { status: 'awaiting_human', metadata: { tags: ['secret'] }, hitl: createExample.hitl }),
        packets.respond(caller, id, { response: 'A secret answer', responded_by: 'dana' }),
        packets.chain(caller, id, packetRequest() as ChainRequest),
      ];
      // A new packet is first checked against contracts, in the same turn of the event loop.
      for (let step = 0; step < 10 && opened.waiting() < before.length; step += 1) await Promise.resolve();
      assert.equal(opened.waiting(), before.length);
      const answers = await Promise.allSettled([
        ...before,
        packets.remove(caller, id),
        packets.patch(caller, id, { context: { summary: 'Too late' } }),
      ]);
      assert.deepEqual(
        answers.map(({ status }) => status),
        ['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
      );
      assert.equal(await tenant.packets.find(id), undefined);
      const page = { limit: 200, offset: 0 };
      const { rows, total } = await tenant.trail.audit({ packet_id: id }, page);
      assert.deepEqual(
        rows.filter(({ details }) => details !== null).map(({ event_type, details }) => [event_type, details]),
        [['erased', '{}']],
      );
      assert.deepEqual([total, new Set(rows.map(({ event_type }) => event_type)).has('hitl_responded')], [rows.length, true]);
      // Those, and the entry of the child.
      const all = await tenant.trail.audit({}, page);
      assert.deepEqual([all.total, all.rows.length], [total + 1, total + 1]);
      assert.equal((await tenant.packets.page({ filter: {}, full: true, ...page })).total, 1);
      assert.equal((await tenant.packets.page({ filter: { tags: ['secret'] }, full: true, ...page })).total, 0);
      assert.equal((await tenant.packets.search({ phrases: [['charged']], filter: {}, ...page })).total, 1);
    });

    test('a unit that changes a packet it inserts is a bug: it fails and writes nothing', async (t) => {
      const { tenant } = await openPackets(t, store);
      const now = new TestClock().read();
      const { packet } = newPacket(packetRequest() as CreateRequest, { id: createIds()(now), now, agentId: undefined });
      for (const change of [
        (own: PacketBuffer) => own.save(packet, { searchable: true }),
        (own: PacketBuffer) => own.remove(packet.id, now),
      ]) {
        const changing = tenant.commit({
          work({ packets: own }) {
            own.insert(packet);
            change(own);
          },
        });
        await assert.rejects(changing, /changes a packet that it inserts/);
      }
      assert.equal((await tenant.packets.page({ filter: {}, full: false, limit: 1, offset: 0 })).total, 0);
    });

    test('units of one commit see the changes of earlier units', async (t) => {
      const { packets, tenant, newPacket } = await openPackets(t, store);
      const id = await newPacket();
      const answers = await Promise.allSettled([
        packets.claim(caller, id, { claimant }, { ifMatch: '"1"' }),
        packets.claim(caller, id, { claimant }),
        packets.patch(caller, id, { status: 'in_progress' }, { ifMatch: '"2"' }),
        packets.patch(caller, id, { metadata: { tags: ['one'] } }, { ifMatch: '"2"' }),
        packets.patch(caller, id, { metadata: { tags: ['two', 'three'] } }),
        packets.completeEach(caller, [id, id], undefined),
      ]);
      const codes = answers.map((answer) => (answer.status === 'rejected' ? answer.reason.code : 'done'));
      assert.deepEqual(codes, ['done', 'CONFLICT', 'done', 'PRECONDITION_FAILED', 'done', 'done']);
      const stored = JSON.parse((await tenant.packets.find(id))!.packet);
      assert.deepEqual([stored.revision, stored.status, stored.metadata.tags], [5, 'completed', ['two', 'three']]);
      const events = await tenant.trail.history(id);
      assert.deepEqual(
        events.map(({ event_type }) => event_type),
        ['created', 'claimed', 'in_progress', 'updated', 'completed'],
      );
      for (const [tag, total] of [
        ['billing', 0],
        ['one', 0],
        ['two', 1],
        ['three', 1],
      ] as const) {
        assert.equal((await tenant.packets.page({ filter: { tags: [tag] }, full: false, limit: 1, offset: 0 })).total, total);
      }
    });

    test('new words are found even if another change of the packet follows in the same commit', async (t) => {
      const { packets, tenant, newPacket } = await openPackets(t, store);
      const id = await newPacket();
      const total = async (word: string) => (await tenant.packets.search({ phrases: [[word]], filter: {}, limit: 1, offset: 0 })).total;
      assert.equal(await total('marmalade'), 0);
      const patching = packets.patch(caller, id, { context: { summary: 'Marmalade' } });
      await Promise.all([patching, packets.claim(caller, id, { claimant })]);
      assert.equal(await total('marmalade'), 1);
    });

    test('concurrent creates, claims, updates and removals keep counters, lists, index and trail consistent', async (t) => {
      const service = await startService(t, { store });
      const ids: string[] = (await Promise.all(range(40).map(() => createPacket(service)))).map(({ id }) => id);
      const answers = await Promise.all(
        ids.flatMap((id, index) => [
          service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' } }),
          service.call('PATCH', `/packets/${id}`, { body: { metadata: { tags: [`t${index % 3}`, 'new'] } } }),
          index % 4 === 0
            ? service.call('DELETE', `/packets/${id}?hard=true`)
            : service.call('POST', '/packets/batch/complete', { body: { packet_ids: [id, id] } }),
          service.call('POST', '/packets', { body: packetRequest() }),
        ]),
      );
      for (const { status, text } of answers) assert.ok(status < 300 || status === 404, text);
      assert.equal((await service.call('GET', '/packets')).body.total, 70);
      await assertSound(service.databaseUrl);
    });
  });
}

for (const store of storesOfSeveral)
  test(`a hard delete also removes tags that were set in the same commit, on ${store.name}`, async (t) => {
    const { url, packets, newPacket } = await openPackets(t, store);
    const id = await newPacket();
    await Promise.all([packets.patch(caller, id, { metadata: { tags: ['secret'] } }), packets.remove(caller, id)]);
    const database = openDatabase<Tables>(url);
    t.after(() => database.close());
    const tagged = await database.reads.selectFrom('packet_tags').select('packet_id').execute();
    assert.ok(tagged.every(({ packet_id }) => packet_id !== id));
  });
