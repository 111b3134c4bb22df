import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, newTenant, packetRequest, startService } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';

for (const store of stores) {
  describe(`POST /packets on ${store.name}`, () => {
    test('201: the packet starts as created and carries what was sent', async (t) => {
      const service = await startService(t, { store });
      const answer = await service.call('POST', '/packets', { body: packetRequest() });
      assert.equal(answer.status, 201);
      const { body } = answer;
      assert.equal(body.status, 'created');
      assert.equal(body.revision, 1);
      assert.equal(body.claimed_at, null);
      assert.equal(answer.headers.etag, '"1"');
      assert.deepEqual((await service.call('GET', `/packets/${body.id}`)).body, body);
    });

    test('100 parallel claims: one wins, 99 get 409 with the claimant', async (t) => {
      const service = await startService(t, { store });
      const { id } = await createPacket(service);
      const answers = await Promise.all(Array.from({ length: 100 }, (_, index) => service.call('POST', `/packets/${id}/claim`, { body: { agent_id: `agent-${index}` } })));
      const winners = answers.filter(({ status }) => status === 200);
      assert.equal(winners.length, 1);
      const losers = answers.filter(({ status }) => status === 409);
      assert.equal(losers.length, 99);
      for (const { body } of losers) assert.equal(body.claimed_by.agent_id, winners[0]!.body.claimed_by.agent_id);
      const { body } = await service.call('GET', `/packets/${id}/history`);
      assert.deepEqual(body.events.map((event: { event_type: string }) => event.event_type), ['created', 'claimed']);
    });

    test('what was just created is found by search, by its own tenant alone', async (t) => {
      const service = await startService(t, { store });
      const other = await newTenant(service);
      const packet = await createPacket(service);
      const found = await service.call('GET', '/packets/search?q=charged');
      assert.equal(found.status, 200);
      assert.equal(found.body.total, 1);
      assert.equal(found.body.packets[0].id, packet.id);
      assert.match(found.body.packets[0].snippet, /charged/);
      assert.equal((await service.call('GET', '/packets/search?q=%22charged+twice%22')).body.total, 1);
      assert.equal((await service.call('GET', '/packets/search?q=%22twice+charged%22')).body.total, 0);
      assert.equal((await service.call('GET', '/packets/search?q=charged', { key: other.key })).body.total, 0);
    });
  });
}
