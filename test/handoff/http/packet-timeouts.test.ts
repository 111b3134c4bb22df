import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, happenings, historyOf, packetIn, question } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { repeat } from '../../support/until.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test looks into packets of every shape.
const get = async (service: TestService, id: string, key?: string): Promise<any> =>
  (await service.call('GET', `/packets/${id}`, key === undefined ? {} : { key })).body;

/** Sweeps until nothing more is due now. */
async function sweepAll(service: TestService): Promise<void> {
  await repeat(service.handoff.runOnce.sweep, (nextMs) => nextMs > 0);
}

/** A question with a timeout of a minute. */
const minute = (on_timeout?: string) => ({
  hitl: { ...question, timeout_seconds: 60, ...(on_timeout === undefined ? {} : { on_timeout }) },
});

for (const store of stores) {
  describe(`hitl.on_timeout on ${store.name}`, () => {
    for (const [on_timeout, end] of [
      ['fail', 'failed'],
      ['expire', 'expired'],
    ] as const) {
      test(`${on_timeout}: the packet is ${end} at its timeout, and not a millisecond before [H31]`, async () => {
        const service = await shareService(store);
        const before = await packetIn(service, 'awaiting_human', minute(on_timeout));
        service.clock.turn(59.999);
        await sweepAll(service);
        assert.deepEqual(await get(service, before.id), before);
        service.clock.turn(0.001);
        await sweepAll(service);
        assert.deepEqual(await get(service, before.id), {
          ...before,
          status: end,
          revision: before.revision + 1,
          hitl: { ...before.hitl, ended_at: '2026-03-01T09:31:00.000Z' },
          updated_at: '2026-03-01T09:31:00.000Z',
        });
        const timestamp = '2026-03-01T09:31:00.000Z';
        assert.deepEqual(
          (await historyOf(service, before.id)).slice(2).map(({ details: _, ...event }) => event),
          ['hitl_timed_out', end].map((event_type) => ({ timestamp, event_type, actor: 'system:sweeper' })),
        );
      });
    }

    test('on_timeout and timeout_seconds may change while the packet awaits an answer', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human', minute('fail'));
      await service.call('PATCH', `/packets/${id}`, { body: { hitl: { on_timeout: 'expire', timeout_seconds: 120 } } });
      service.clock.turn(60);
      await sweepAll(service);
      assert.equal((await get(service, id)).status, 'awaiting_human');
      service.clock.turn(60);
      await sweepAll(service);
      assert.equal((await get(service, id)).status, 'expired');
    });

    test('an answer in the last millisecond counts, even if the sweeper runs at the same time', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human', minute('fail'));
      service.clock.turn(59.999);
      const [answer] = await Promise.all([
        service.call('POST', `/packets/${id}/respond`, { body: { response: 'Approve', responded_by: 'dana' } }),
        service.handoff.runOnce.sweep(),
      ]);
      assert.equal(answer.status, 200);
      assert.deepEqual(await happenings(service, id), ['created', 'awaiting_human', 'hitl_responded']);
    });

    test('if more packets are overdue than fit in one round, the longest overdue come first', async (t) => {
      // A round is that of the whole service, so it has no other tenants.
      const service = await startService(t, { store });
      const packets = Array.from({ length: 201 }, (_, index) =>
        packetRequest({ hitl: { ...minute('fail').hitl, timeout_seconds: 300 - index } }),
      );
      const ids: string[] = [];
      for (let from = 0; from < packets.length; from += 100) {
        const { status, body } = await service.call('POST', '/packets/batch', { body: { packets: packets.slice(from, from + 100) } });
        assert.equal(status, 201);
        ids.push(...body.created.map(({ id }: { id: string }) => id));
      }
      const asked = await Promise.all(ids.map((id) => service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } })));
      for (const { status } of asked) assert.equal(status, 200);
      service.clock.turn(300);
      await service.handoff.runOnce.sweep();
      const waiting = (await service.call('GET', '/packets/awaiting')).body.packets;
      assert.deepEqual(
        waiting.map(({ id }: { id: string }) => id),
        [ids[0]],
      );
    });

    test('packets of every tenant time out, each recorded in its own trail', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service);
      const own = await packetIn(service, 'awaiting_human', minute('fail'));
      const foreign = await packetIn(service, 'awaiting_human', minute('expire'), key);
      service.clock.turn(60);
      await sweepAll(service);
      assert.equal((await get(service, own.id)).status, 'failed');
      assert.equal((await get(service, foreign.id, key)).status, 'expired');
      assert.equal((await service.call('GET', '/audit?action=hitl_timed_out')).body.total, 1);
      assert.equal((await service.call('GET', '/audit?action=hitl_timed_out', { key })).body.total, 1);
    });
  });

  describe(`SERVICE_UNCLAIMED_TTL_SECONDS on ${store.name}`, () => {
    const settings = { SERVICE_UNCLAIMED_TTL_SECONDS: '60', SERVICE_BATCH_MAX: '500' };

    test('off by default: an unclaimed packet never expires [H31]', async () => {
      const service = await shareService(store);
      const before = await createPacket(service);
      service.clock.set('2036-03-01T00:00:00.000Z');
      await sweepAll(service);
      assert.deepEqual(await get(service, before.id), before);
    });

    test('a packet still in created expires at its timeout, and not a millisecond before [H31]', async () => {
      const service = await shareService(store, settings);
      const before = await createPacket(service);
      service.clock.turn(59.999);
      await sweepAll(service);
      assert.deepEqual(await get(service, before.id), before);
      service.clock.turn(0.001);
      await sweepAll(service);
      const at = '2026-03-01T09:31:00.000Z';
      assert.deepEqual(await get(service, before.id), { ...before, status: 'expired', revision: 2, updated_at: at });
      const last = (await historyOf(service, before.id)).at(-1)!;
      assert.deepEqual([last.timestamp, last.event_type, last.actor], [at, 'expired', 'system:sweeper']);
      assert.equal((await service.call('GET', `/audit?packet_id=${before.id}`)).body.entries[0].key_id, null);
      assert.equal((await service.call('POST', `/packets/${before.id}/claim`, { body: claimant })).status, 410);
    });

    test('packets in other statuses do not expire, even if they were claimed in the last millisecond [H31]', async () => {
      const service = await shareService(store, settings);
      const kept = await Promise.all(
        (['claimed', 'in_progress', 'awaiting_human', 'completed', 'failed'] as const).map((status) => packetIn(service, status)),
      );
      const last = await createPacket(service);
      service.clock.turn(59.999);
      await service.call('POST', `/packets/${last.id}/claim`, { body: claimant });
      service.clock.turn(3600);
      await sweepAll(service);
      for (const packet of kept) assert.deepEqual(await get(service, packet.id), packet);
      assert.equal((await get(service, last.id)).status, 'claimed');
    });

    test('the time of each packet counts from its creation, not from its last change', async () => {
      const service = await shareService(store, settings);
      const early = await createPacket(service);
      service.clock.turn(30);
      await service.call('PATCH', `/packets/${early.id}`, { body: { context: { summary: 'Changed.' } } });
      const late = await createPacket(service);
      service.clock.turn(30);
      await sweepAll(service);
      assert.deepEqual([(await get(service, early.id)).status, (await get(service, late.id)).status], ['expired', 'created']);
    });

    test('each unclaimed packet expires once, in every tenant, also if there are more than one round takes', async () => {
      const service = await shareService(store, settings);
      const { key } = await newTenant(service);
      const foreign = await createPacket(service, {}, key);
      const packets = Array.from({ length: 401 }, () => packetRequest());
      assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      service.clock.turn(60);
      await sweepAll(service);
      await sweepAll(service);
      assert.equal((await service.call('GET', '/packets?status=expired')).body.total, 401);
      assert.equal((await service.call('GET', '/packets?status=created')).body.total, 0);
      assert.equal((await service.call('GET', '/audit?action=expired')).body.total, 401);
      assert.deepEqual(await happenings(service, foreign.id, key), ['created', 'expired']);
    });

    test('a claim at the same time as the sweeper: either the packet is claimed, or it is expired and the claim 410', async () => {
      const service = await shareService(store, settings);
      for (let round = 0; round < 5; round += 1) {
        const { id } = await createPacket(service);
        service.clock.turn(60);
        let status = 0;
        const claim = async () => {
          ({ status } = await service.call('POST', `/packets/${id}/claim`, { body: claimant }));
        };
        const both = round % 2 === 0 ? [claim(), sweepAll(service)] : [sweepAll(service), claim()];
        await Promise.all(both);
        assert.ok([200, 410].includes(status), String(status));
        const expected = status === 200 ? 'claimed' : 'expired';
        assert.deepEqual(await happenings(service, id), ['created', expected]);
      }
    });

    test('the sweeper runs every second, and at once while more packets are due [H31]', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_UNCLAIMED_TTL_SECONDS: '1', SERVICE_BATCH_MAX: '300' } });
      assert.equal(await service.handoff.runOnce.sweep(), 1000);
      const packets = Array.from({ length: 300 }, () => packetRequest());
      assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      service.clock.turn(1);
      assert.equal(await service.handoff.runOnce.sweep(), 0);
      // The round with the rest is followed by one from the beginning.
      assert.equal(await service.handoff.runOnce.sweep(), 0);
      assert.equal(await service.handoff.runOnce.sweep(), 1000);
      assert.equal((await service.call('GET', '/packets?status=expired')).body.total, 300);
    });
  });
}
