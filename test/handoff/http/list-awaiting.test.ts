import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { packetIn } from '../../support/life.ts';
import { createPacket, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const hitl = { required: true, reason: 'policy', question: 'Go on?', timeout_seconds: 60 };

/** Creates packets that await a person, one per second, and returns their ids newest first. */
async function ask(service: TestService, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    ids.unshift((await packetIn(service, 'awaiting_human', { hitl })).id);
    service.clock.turn(1);
  }
  return ids;
}

const idsOf = (body: { packets: { id: string }[] }) => body.packets.map(({ id }) => id);

for (const store of stores) {
  describe(`GET /packets/awaiting on ${store.name}`, () => {
    test('lists only packets in awaiting_human, newest first, in the shape of GET /packets', async () => {
      const service = await shareService(store);
      const [second, first] = await ask(service, 2);
      await createPacket(service, { hitl });
      const { id: claimed } = await createPacket(service);
      await service.call('POST', `/packets/${claimed}/claim`, { body: { agent_id: 'worker' } });
      const answer = await service.call('GET', '/packets/awaiting');
      assert.equal(answer.status, 200);
      assert.deepEqual(idsOf(answer.body), [second, first]);
      assert.deepEqual(Object.keys(answer.body).sort(), ['limit', 'next_cursor', 'offset', 'packets', 'total', 'unnotified']);
      const { total, limit, offset, next_cursor } = answer.body;
      assert.deepEqual({ total, limit, offset, next_cursor }, { total: 2, limit: 50, offset: 0, next_cursor: null });
      const { unnotified: _, ...rest } = answer.body;
      assert.deepEqual(rest, (await service.call('GET', '/packets?status=awaiting_human')).body);
    });

    test('each packet has its question, the time it was asked and the deadline', async () => {
      const service = await shareService(store);
      await ask(service, 1);
      const answer = await service.call('GET', '/packets/awaiting');
      assert.equal(answer.status, 200);
      const [packet] = answer.body.packets;
      assert.equal(packet.status, 'awaiting_human');
      assert.equal(packet.hitl.question, 'Go on?');
      assert.equal(packet.hitl.response, null);
      assert.equal(packet.hitl.requested_at, '2026-03-01T09:30:00.000Z');
      assert.equal(packet.hitl.expires_at, '2026-03-01T09:31:00.000Z');
    });

    test('a packet leaves the list when it is answered, failed, deleted or removed', async () => {
      const service = await shareService(store);
      const [kept, removed, deleted, failed, answered] = await ask(service, 5);
      const response = await service.call('POST', `/packets/${answered}/respond`, { body: { response: 'Yes', responded_by: 'dana' } });
      assert.equal(response.status, 200);
      assert.equal((await service.call('PATCH', `/packets/${failed}`, { body: { status: 'failed' } })).status, 200);
      assert.equal((await service.call('DELETE', `/packets/${deleted}`)).status, 204);
      assert.equal((await service.call('DELETE', `/packets/${removed}?hard=true`)).status, 204);
      const answer = await service.call('GET', '/packets/awaiting');
      assert.equal(answer.status, 200);
      assert.deepEqual(idsOf(answer.body), [kept]);
      assert.equal(answer.body.total, 1);
    });

    test('pages by limit and offset with the exact total, and by cursor', async () => {
      const service = await shareService(store);
      const ids = await ask(service, 5);
      const first = await service.call('GET', '/packets/awaiting?limit=2');
      assert.equal(first.status, 200);
      assert.deepEqual(idsOf(first.body), ids.slice(0, 2));
      const second = await service.call('GET', '/packets/awaiting?limit=2&offset=2');
      assert.deepEqual(idsOf(second.body), ids.slice(2, 4));
      assert.deepEqual([second.body.total, second.body.limit, second.body.offset], [5, 2, 2]);
      const third = await service.call('GET', `/packets/awaiting?limit=2&cursor=${second.body.next_cursor}`);
      assert.deepEqual(idsOf(third.body), ids.slice(4));
      assert.equal(third.body.next_cursor, null);
      const beyond = await service.call('GET', '/packets/awaiting?offset=5');
      assert.deepEqual([beyond.body.packets, beyond.body.total], [[], 5]);
    });

    test('view=full returns whole packets [H69]', async () => {
      const service = await shareService(store);
      const [id] = await ask(service, 1);
      const answer = await service.call('GET', '/packets/awaiting?view=full');
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body.packets, [(await service.call('GET', `/packets/${id}`)).body]);
    });
  });
}
