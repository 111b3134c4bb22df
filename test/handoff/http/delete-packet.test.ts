import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, happenings, historyOf, packetIn } from '../../support/life.ts';
import { createPacket } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

for (const store of stores) {
  describe(`DELETE /packets/{id} on ${store.name}`, () => {
    test('204: the packet becomes expired and stays readable with all its content [H29]', async () => {
      const service = await shareService(store);
      const before = await packetIn(service, 'in_progress');
      service.clock.turn(60);
      const answer = await service.call('DELETE', `/packets/${before.id}`, { headers: { 'X-Agent-Id': 'janitor' } });
      assert.equal(answer.status, 204);
      assert.equal(answer.text, '');
      const { body } = await service.call('GET', `/packets/${before.id}`);
      assert.deepEqual(body, {
        ...before,
        status: 'expired',
        revision: before.revision + 1,
        updated_at: '2026-03-01T09:31:00.000Z',
      });
      const last = (await historyOf(service, before.id)).at(-1)!;
      assert.deepEqual([last.event_type, last.actor, last.timestamp], ['expired', 'agent:janitor', body.updated_at]);
      assert.equal((await service.call('GET', '/packets?status=expired')).body.total, 1);
    });

    test('of 20 concurrent deletes one is 204, and 19 are 409', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const answers = await Promise.all(Array.from({ length: 20 }, () => service.call('DELETE', `/packets/${id}`)));
      assert.equal(answers.filter(({ status }) => status === 204).length, 1);
      assert.equal(answers.filter(({ status }) => status === 409).length, 19);
      assert.deepEqual(await happenings(service, id), ['created', 'expired']);
    });

    test('a body is ignored on an operation that takes none [H251]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const odd = { raw: '{"broken', headers: { 'content-type': 'text/plain' } };
      assert.equal((await service.call('DELETE', `/packets/${id}`, odd)).status, 204);
    });
  });

  describe(`DELETE /packets/{id}?hard=true on ${store.name}`, () => {
    test('204: with an admin key the packet is removed from every place where it could be read [H29]', async () => {
      const service = await shareService(store);
      const kept = await createPacket(service);
      const { id } = await createPacket(service, { metadata: { ...kept.metadata, tags: ['secret'] } });
      assert.equal((await service.call('GET', '/packets/search?q=charged')).body.total, 2);
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      assert.equal((await service.call('GET', `/packets/${id}`)).status, 404);
      assert.equal((await service.call('GET', `/packets/${id}/history`)).status, 404);
      assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: claimant })).status, 404);
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 404);
      for (const list of ['/packets', '/packets?status=created', '/packets?priority=high', '/packets/search?q=charged']) {
        const { body } = await service.call('GET', list);
        assert.equal(body.total, 1, list);
        assert.equal(body.packets[0].id, kept.id);
      }
      assert.equal((await service.call('GET', '/packets?tags=secret')).body.total, 0);
    });

    test('a child of the packet keeps its content and its link', async () => {
      const service = await shareService(store);
      const parent = await createPacket(service);
      const child = await createPacket(service, { parent_packet_id: parent.id });
      assert.equal((await service.call('DELETE', `/packets/${parent.id}?hard=true`)).status, 204);
      assert.deepEqual((await service.call('GET', `/packets/${child.id}`)).body, child);
    });

    test('hard=false is a soft delete, and any other value is 400 on hard', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      for (const value of ['maybe', '', 'true&hard=false']) {
        const answer = await service.call('DELETE', `/packets/${id}?hard=${value}`);
        assert.equal(answer.status, 400, value);
        assert.equal(answer.body.field, 'hard');
      }
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=false`)).status, 204);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'expired');
    });

    test('of 10 concurrent requests one is 204, and 9 are 404', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const answers = await Promise.all(Array.from({ length: 10 }, () => service.call('DELETE', `/packets/${id}?hard=true`)));
      assert.equal(answers.filter(({ status }) => status === 204).length, 1);
      assert.equal(answers.filter(({ status }) => status === 404).length, 9);
      assert.equal((await service.call('GET', `/audit?packet_id=${id}`)).body.total, 2);
      assert.equal((await service.call('GET', '/packets')).body.total, 0);
    });
  });
}
