import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { verify } from '@octokit/webhooks-methods';
import { Webhook } from 'standardwebhooks';

import { startReceiver } from '../../support/receiver.ts';
import { createPacket } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';
import { deliveriesOf, register, secret, startHooked } from '../../support/webhooks.ts';

for (const store of stores) {
  describe(`Deliveries on ${store.name}`, () => {
    test('an event is posted with the whole packet, signed over the bytes sent, as verifiers of others find', async (t) => {
      const receiver = await startReceiver(t);
      const service = await startHooked(t, { store });
      const hook = await register(service, receiver.url);
      const packet = await createPacket(service);
      await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 1);
      const [{ path, headers, body }] = receiver.posts as [(typeof receiver.posts)[0]];
      assert.deepEqual(JSON.parse(body), { type: 'packet.created', packet_id: packet.id, data: packet, timestamp: packet.created_at });
      assert.equal(path, '/hook');
      assert.equal(headers['content-type'], 'application/json; charset=utf-8');
      assert.ok(await verify(secret, body, String(headers['x-service-signature'])));
      const { entries } = (await service.call('GET', '/audit?action=created')).body;
      assert.equal(headers['webhook-id'], entries.find(({ resource }: { resource: string }) => resource === 'packet').id);
      assert.equal(headers['webhook-timestamp'], String(service.clock.read().getTime() / 1000));
      const [delivery] = await deliveriesOf(service, hook.id);
      assert.deepEqual(
        [headers['x-service-event'], headers['x-service-delivery'], headers['x-service-attempt']],
        ['packet.created', delivery.id, '1'],
      );
      assert.deepEqual(delivery, {
        id: delivery.id,
        webhook_id: hook.id,
        packet_id: packet.id,
        event_type: 'packet.created',
        status: 'delivered',
        attempts: 1,
        last_error: null,
        last_status_code: 204,
        next_retry_at: null,
        delivered_at: '2026-03-01T09:30:00.000Z',
        created_at: '2026-03-01T09:30:00.000Z',
        updated_at: '2026-03-01T09:30:00.000Z',
      });
    });

    test('six failures: attempts at once and after 1 s, 5 s, 30 s, 5 min, 1 h; then a dead letter, due again after 6 h', async (t) => {
      const receiver = await startReceiver(t, 500);
      const service = await startHooked(t, { store });
      const hook = await register(service, receiver.url);
      await createPacket(service);
      const { deliver } = service.handoff.runOnce;
      await deliver();
      for (const [index, delay] of [1, 5, 30, 300, 3600].entries()) {
        const [{ status, attempts, last_error, last_status_code, next_retry_at }] = await deliveriesOf(service, hook.id);
        assert.deepEqual([status, attempts, last_error, last_status_code], ['failed', index + 1, 'http_status', 500]);
        const waitMs = Date.parse(next_retry_at) - service.clock.read().getTime();
        assert.ok(waitMs >= delay * 1000 && waitMs <= delay * 1100 + 1, `${delay}: ${waitMs}`);
        service.clock.turn(delay - 0.001);
        await deliver();
        assert.equal(receiver.posts.length, index + 1);
        service.clock.turn(delay * 0.1 + 0.002);
        await deliver();
        assert.equal(receiver.posts.length, index + 2);
      }
      const [dead] = await deliveriesOf(service, hook.id);
      assert.deepEqual([dead.status, dead.attempts, dead.last_error], ['dead_letter', 6, 'http_status']);
      assert.equal(Date.parse(dead.next_retry_at) - service.clock.read().getTime(), 21_600_000);
      service.clock.turn(100_000);
      await deliver();
      assert.equal(receiver.posts.length, 6);
      assert.equal(new Set(receiver.posts.map(({ headers }) => headers['x-service-delivery'])).size, 1);
      assert.equal(new Set(receiver.posts.map(({ body }) => body)).size, 1);
      assert.deepEqual(
        receiver.posts.map(({ headers }) => headers['x-service-attempt']),
        ['1', '2', '3', '4', '5', '6'],
      );
      // Each attempt is dated and signed anew.
      for (const { headers, body } of receiver.posts.slice(-1))
        assert.throws(() => new Webhook(secret, { format: 'raw' }).verify(body, headers as Record<string, string>), /too (old|new)/);
      assert.deepEqual((await service.call('GET', '/hooks/dlq')).body, [dead]);
    });
  });
}
