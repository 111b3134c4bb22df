import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { a2a } from '../../support/a2a.ts';
import { looking } from '../../support/consistency.ts';
import { createPacket, packetRequest, startService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

for (const store of stores) {
  describe(`After a hard delete, on ${store.name}`, () => {
    test('410: an answer stored under an idempotency key is removed with its packet [H264]', async () => {
      const service = await shareService(store);
      const headers = { 'idempotency-key': 'once' };
      const made = await service.call('POST', '/packets', { body: packetRequest(), headers });
      assert.equal(made.status, 201);
      assert.equal((await service.call('DELETE', `/packets/${made.body.id}?hard=true`)).status, 204);
      const again = await service.call('POST', '/packets', { body: packetRequest(), headers });
      assert.equal(again.status, 410);
      assert.equal(again.text.includes('charged twice'), false);
    });

    test('the stored answer to a batch is removed with any of its packets', async () => {
      const service = await shareService(store);
      const headers = { 'idempotency-key': 'batch' };
      const body = { packets: [packetRequest(), packetRequest()] };
      const made = await service.call('POST', '/packets/batch', { body, headers });
      assert.equal(made.status, 201);
      for (const { id } of made.body.created) assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      assert.equal((await service.call('POST', '/packets/batch', { body, headers })).status, 410);
    });

    test('nothing of a packet is left that a request of the same moment or an earlier one stored: no repeated answer, answer link or push configuration', async () => {
      const service = await shareService(store, { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
      const ids: string[] = [];
      for (let round = 0; round < 8; round += 1) {
        const question = { required: true, reason: '', question: 'Go on?' };
        const { id } = await createPacket(service, { hitl: question });
        const asked = await createPacket(service, { hitl: question });
        await service.call('PATCH', `/packets/${asked.id}`, { body: { status: 'awaiting_human' } });
        await service.call('PATCH', `/packets/${asked.id}`, { body: { hitl: { question: 'Really?' } } });
        const claim = () =>
          service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' }, headers: { 'idempotency-key': `claim ${id}` } });
        ids.push(id, asked.id);
        const early = await service.call('POST', `/packets/${asked.id}/answer-links`, { body: { responder: 'eve' } });
        assert.equal(early.status, 201);
        const config = { taskId: asked.id, id: 'mine', url: 'http://127.0.0.1:9/', token: 'a-token-for-tests-0123456789' };
        const [, , link] = await Promise.all([
          claim(),
          a2a(service, 'CreateTaskPushNotificationConfig', config),
          service.call('POST', `/packets/${asked.id}/answer-links`, { body: { responder: 'dana' } }),
          service.call('DELETE', `/packets/${id}?hard=true`),
          service.call('DELETE', `/packets/${asked.id}?hard=true`),
        ]);
        const again = await claim();
        assert.ok(again.status === 410 || again.status === 404, `${again.status}`);
        assert.ok(!again.text.includes('charged twice'));
        const url = link.body.url === undefined ? undefined : new URL(link.body.url).pathname;
        if (url !== undefined) assert.equal((await service.call('GET', `/${url}`, { key: null })).status, 404);
      }
      const erased = ids.map((id) => `'${id}'`).join();
      await looking(service.databaseUrl, async ({ query }) => {
        for (const [table, column] of [
          ['answer_links', 'packet_id'],
          ['questions', 'packet_id'],
          ['idempotency_packets', 'packet_id'],
          ['webhooks', 'for_packet'],
        ])
          assert.deepEqual(await query(`select * from ${table} where ${column} in (${erased})`), [], table!);
      });
    });

    test('totals by status, priority and question stay exact through changes and removal', async () => {
      const service = await shareService(store);
      const hitl = { required: true, reason: '', question: 'Go on?' };
      const first = await createPacket(service, { hitl });
      const second = await createPacket(service, { hitl });
      await createPacket(service);
      const totals = async () => {
        const queries = ['', '?priority=high', '?priority=low', '?hitl_required=true', '?hitl_required=false', '?status=created'];
        return Promise.all(queries.map(async (query) => (await service.call('GET', `/packets${query}`)).body.total));
      };
      assert.deepEqual(await totals(), [3, 3, 0, 2, 1, 3]);
      assert.equal(
        (await service.call('PATCH', `/packets/${first.id}`, { body: { metadata: { priority: 'low' }, hitl: null } })).status,
        200,
      );
      assert.deepEqual(await totals(), [3, 2, 1, 1, 2, 3]);
      assert.equal((await service.call('DELETE', `/packets/${second.id}?hard=true`)).status, 204);
      assert.deepEqual(await totals(), [2, 1, 1, 0, 2, 2]);
    });
  });
}

for (const store of stores) {
  describe(`The tables after a hard delete, on ${store.name}`, () => {
    test('204: no table contains anything of the packet but its audit entries without details, and that of its removal', async (t) => {
      const service = await startService(t, { store });
      const headers = { 'idempotency-key': 'once' };
      const made = await service.call('POST', '/packets', { body: packetRequest(), headers });
      assert.equal(made.status, 201);
      const { id } = made.body;
      assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } })).status, 200);
      await service.handoff.runOnce.index();
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'Other words' } } })).status, 200);
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      await looking(service.databaseUrl, async ({ query }) => {
        for (const table of ['packets', 'contents', 'packet_tags', 'search_queue', 'search_index', 'idempotency_packets'])
          assert.deepEqual(await query(`select * from ${table}`), [], table);
        const kept = await query('select body from idempotency');
        assert.deepEqual(
          kept.map(({ body }) => body),
          [null],
        );
        const events = await query(`select event_type, details from events where packet_id = '${id}'`);
        assert.deepEqual(
          events.map(({ event_type, details }) => [event_type, details]),
          [
            ['created', null],
            ['claimed', null],
            ['updated', null],
            ['erased', '{}'],
          ],
        );
      });
    });
  });
}
