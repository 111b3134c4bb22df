import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { statuses } from '../../../src/handoff/model/common.ts';
import { happenings, historyOf, packetIn } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const chain = (service: TestService, id: string, body: unknown = packetRequest(), headers: Record<string, string> = {}) =>
  service.call('POST', `/packets/${id}/chain`, { body, headers });

/** A minimal request. */
const next = {
  metadata: { source_agent: { id: 'resolver', name: 'Resolver', framework: 'cli' }, target_agent: { id: 'ledger', name: 'Ledger' } },
  context: { summary: 'Refunded; book it.' },
};

for (const store of stores) {
  describe(`POST /packets/{id}/chain on ${store.name}`, () => {
    test('201: a new packet, linked to the packet in the path', async () => {
      const service = await shareService(store);
      const parent = await createPacket(service);
      const answer = await chain(service, parent.id);
      assert.equal(answer.status, 201);
      assert.notEqual(answer.body.id, parent.id);
      assert.deepEqual([answer.body.parent_packet_id, answer.body.status, answer.body.revision], [parent.id, 'created', 1]);
      assert.equal(answer.headers.etag, '"1"');
      assert.deepEqual((await service.call('GET', `/packets/${answer.body.id}`)).body, answer.body);
    });

    test('the new packet has only what was sent, nothing of its parent [H37]', async () => {
      const service = await shareService(store);
      const parent = await createPacket(service, { hitl: { required: true, reason: 'R', question: 'Q' } });
      const { status, body } = await chain(service, parent.id, next);
      assert.equal(status, 201);
      assert.deepEqual(body.metadata, { ...next.metadata, priority: 'normal', tags: [], created_at: body.created_at });
      assert.deepEqual(body.context, { ...next.context, conversation_state: [], artifacts: [], custom: {} });
      assert.deepEqual([body.decisions, body.dependencies, body.hitl], [[], [], null]);
      assert.deepEqual(body.actions, { pending: [], completed: [], failed: [] });
    });

    test('the parent may be in any status, and stays byte for byte unchanged [H37]', async () => {
      const service = await shareService(store);
      for (const status of statuses) {
        const { id } = await packetIn(service, status);
        const before = await service.call('GET', `/packets/${id}`);
        service.clock.turn(60);
        assert.equal((await chain(service, id)).status, 201);
        const after = await service.call('GET', `/packets/${id}`);
        assert.deepEqual([after.text, after.headers.etag], [before.text, before.headers.etag]);
      }
    });

    test('the history of the child names its parent, and the history of the parent has a chained event [H37]', async () => {
      const service = await shareService(store);
      const parent = await packetIn(service, 'completed');
      service.clock.turn(60);
      const { body: child } = await chain(service, parent.id, next);
      const timestamp = '2026-03-01T09:31:00.000Z';
      const actor = 'agent:resolver';
      assert.deepEqual(await historyOf(service, child.id), [
        { timestamp, event_type: 'created', actor, details: { parent_packet_id: parent.id } },
      ]);
      assert.deepEqual((await historyOf(service, parent.id)).at(-1), {
        timestamp,
        event_type: 'chained',
        actor,
        details: { child_packet_id: child.id },
      });
    });

    test('the agent in X-Agent-Id is named in both histories', async () => {
      const service = await shareService(store);
      const parent = await createPacket(service);
      const { body: child } = await chain(service, parent.id, next, { 'X-Agent-Id': 'router' });
      assert.equal((await historyOf(service, child.id))[0]?.actor, 'agent:router');
      assert.equal((await historyOf(service, parent.id)).at(-1)?.actor, 'agent:router');
    });

    test('a chained packet counts towards the daily quota, and a refused one leaves no trace on its parent', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { handoffs_per_day: 2 });
      const parent = await createPacket(service, {}, key);
      const as = { body: next, key };
      assert.equal((await service.call('POST', `/packets/${parent.id}/chain`, as)).status, 201);
      const refused = await service.call('POST', `/packets/${parent.id}/chain`, as);
      assert.equal(refused.status, 429);
      assert.deepEqual([refused.body.code, Number(refused.headers['retry-after'])], ['RATE_LIMITED', 14.5 * 3600]);
      assert.deepEqual(await happenings(service, parent.id, key), ['created', 'chained']);
    });

    test('30 concurrent requests to continue one packet create 30 packets and 30 links', async () => {
      const service = await shareService(store);
      const parent = await createPacket(service);
      const answers = await Promise.all(Array.from({ length: 30 }, () => chain(service, parent.id, next)));
      for (const { status } of answers) assert.equal(status, 201);
      const children = answers.map(({ body }) => body.id as string).sort();
      assert.equal(new Set(children).size, 30);
      const linked = (await historyOf(service, parent.id)).filter(({ event_type }) => event_type === 'chained');
      assert.deepEqual(linked.map(({ details }) => details.child_packet_id as string).sort(), children);
    });
  });
}
