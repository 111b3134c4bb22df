import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, packetRequest, type TestService } from '../support/service.ts';
import { shareService } from '../support/shared.ts';
import { stores } from '../support/stores.ts';

// Webhooks: test/handoff/http/webhook-faults.test.ts; heartbeats: streams.test.ts; Redis: shared-limits.test.ts.

/** Claims a new packet for a minute; returns its id, the token and the end of the lease. */
async function lease(service: TestService): Promise<{ id: string; token: string; ends: string }> {
  const { id } = await createPacket(service);
  const { status, body } = await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a', lease_seconds: 60 } });
  assert.equal(status, 200);
  return { id, token: body.lease.token, ends: body.lease.expires_at };
}

/** The status of a packet after the sweeper has run. */
async function swept(service: TestService, id: string): Promise<string> {
  await service.handoff.runOnce.sweep();
  return (await service.call('GET', `/packets/${id}`)).body.status;
}

for (const store of stores) {
  describe(`A clock that jumps, on ${store.name}`, () => {
    test('back: a lease keeps its end, its holder can work and renew it, and it is freed at its end [H162]', async () => {
      const service = await shareService(store);
      const { id, token, ends } = await lease(service);
      service.clock.turn(-3600);
      assert.equal(await swept(service, id), 'claimed');
      const headers = { 'x-lease-token': token };
      const patched = await service.call('PATCH', `/packets/${id}`, { body: { status: 'in_progress' }, headers });
      assert.deepEqual([patched.status, patched.body.lease.expires_at], [200, ends]);
      const renewed = await service.call('POST', `/packets/${id}/lease`, { headers });
      const end = Date.parse(renewed.body.lease.expires_at) - service.clock.read().getTime();
      assert.deepEqual([renewed.status, end], [200, 60_000]);
      service.clock.turn(60);
      assert.equal(await swept(service, id), 'created');
      // What happened later comes later, whatever its timestamps. A renewal is no event.
      const { body } = await service.call('GET', `/packets/${id}/history`);
      assert.deepEqual(
        body.events.map(({ event_type }: { event_type: string }) => event_type),
        ['created', 'claimed', 'in_progress', 'lease_expired'],
      );
    });

    test('ahead and back again: a lease that ended stays lost, and the packet has one holder [H162]', async () => {
      const service = await shareService(store);
      const { id, token } = await lease(service);
      service.clock.turn(3600);
      assert.equal(await swept(service, id), 'created');
      service.clock.turn(-3600);
      const late = await service.call('POST', `/packets/${id}/lease`, { headers: { 'x-lease-token': token } });
      assert.deepEqual([late.status, late.body.code], [409, 'LEASE_LOST']);
      const claim = () => service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'b', lease_seconds: 60 } });
      assert.deepEqual([(await claim()).status, (await claim()).status], [200, 409]);
    });

    test('back: a new packet is found by lists, searches, claim-next and the audit log as any other', async () => {
      const service = await shareService(store);
      const before = await createPacket(service, { context: { summary: 'before' } });
      service.clock.turn(-3600);
      const after = await createPacket(service, { context: { summary: 'after the jump' } });
      const listed = (await service.call('GET', '/packets?limit=1')).body;
      const next = (await service.call('GET', `/packets?limit=1&cursor=${listed.next_cursor}`)).body;
      // Lists are in the order of the timestamps.
      assert.deepEqual([listed.packets[0].id, next.packets[0].id, next.total], [before.id, after.id, 2]);
      const found = await service.call('GET', '/packets/search?q=jump');
      assert.deepEqual([found.body.total, found.body.packets[0].id], [1, after.id]);
      const taken = await service.call('POST', '/packets/claim-next', { body: { agent_id: 'resolver' } });
      assert.deepEqual([taken.status, taken.body.id], [200, after.id]);
      // So is the audit log.
      const { entries } = (await service.call('GET', '/audit')).body;
      const ofPackets = entries.filter(({ packet_id: id }: { packet_id: string | null }) => id !== null);
      assert.deepEqual(
        ofPackets.map(({ action, packet_id: id }: { action: string; packet_id: string }) => [action, id]),
        [
          ['created', before.id],
          ['claimed', after.id],
          ['created', after.id],
        ],
      );
    });

    test('ahead: an answer is repeated for its idempotency key until a day has passed, also after the jump back', async () => {
      const service = await shareService(store);
      const create = () => service.call('POST', '/packets', { body: packetRequest(), headers: { 'idempotency-key': 'once' } });
      const first = await create();
      assert.equal(first.status, 201);
      for (const jump of [82_800, -82_800, -3600]) {
        service.clock.turn(jump);
        await service.handoff.runOnce.prune();
        const again = await create();
        assert.deepEqual([again.text, again.headers['idempotency-replayed']], [first.text, 'true']);
      }
    });
  });
}
