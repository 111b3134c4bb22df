import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { happenings, packetIn, question } from '../../support/life.ts';
import { createPacket, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** How many bytes a packet may exceed its tier's body size by, for the fields that the service adds. */
const ownBytes = 4096;

const patch = (service: TestService, id: string, body: unknown, headers: Record<string, string> = {}) =>
  service.call('PATCH', `/packets/${id}`, { body, headers });

for (const store of stores) {
  describe(`PATCH /packets/{id} with a status on ${store.name}`, () => {
    test('200 with the next revision and its tag; a status that the packet cannot move to is 400, with those that it can, and changes nothing [H18]', async () => {
      const service = await shareService(store);
      const before = await packetIn(service, 'claimed');
      const moved = await patch(service, before.id, { status: 'in_progress', context: { summary: 'Both found.' } });
      assert.deepEqual([moved.status, moved.body.status, moved.body.revision, moved.headers.etag], [200, 'in_progress', 3, '"3"']);
      const refused = await patch(service, before.id, { status: 'created', context: { summary: 'Lost.' } });
      assert.deepEqual([refused.status, refused.body.code, refused.body.field], [400, 'VALIDATION_ERROR', 'status']);
      for (const allowed of ['awaiting_human', 'completed', 'failed', 'expired']) assert.ok(refused.body.detail.includes(allowed));
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, moved.body);
      assert.deepEqual(await happenings(service, before.id), ['created', 'claimed', 'in_progress']);
    });

    test('an action that failed and is completed later is completed only, in the brief too [H464]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'claimed');
      const pending = [{ id: 'refund', description: 'Refund order 4711', assignee: 'resolver' }];
      await patch(service, id, { actions: { pending } });
      await patch(service, id, { actions: { failed: [{ id: 'refund', error: 'Timed out' }] } });
      const { body } = await patch(service, id, { actions: { completed: [{ id: 'refund', result: 'Refunded' }] } });
      assert.ok(body.actions.pending.every((action: { id: string }) => action.id !== 'refund'));
      assert.deepEqual(body.actions.failed, []);
      assert.deepEqual(body.actions.completed, [{ id: 'refund', description: 'Refund order 4711', result: 'Refunded' }]);
      const brief = await service.call('GET', `/packets/${id}/brief`);
      assert.ok(!brief.text.includes('"failed"') && !brief.text.includes('Timed out'), brief.text);
    });

    test('no content, or only the current status, is 200 and changes nothing [H18, H43]', async () => {
      const service = await shareService(store);
      const before = await packetIn(service, 'completed');
      service.clock.turn(1);
      for (const body of [{}, { status: 'completed' }]) {
        const answer = await patch(service, before.id, body);
        assert.deepEqual([answer.status, answer.body, answer.headers.etag], [200, before, `"${before.revision}"`]);
      }
      assert.deepEqual(await happenings(service, before.id), ['created', 'claimed', 'completed']);
    });

    test('20 concurrent completions are all 200, and complete the packet once', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'claimed');
      const answers = await Promise.all(Array.from({ length: 20 }, () => patch(service, id, { status: 'completed' })));
      for (const { status } of answers) assert.equal(status, 200);
      assert.deepEqual(await happenings(service, id), ['created', 'claimed', 'completed']);
    });

    test('of two concurrent final statuses one is reached, and the other is 400', async () => {
      const service = await shareService(store);
      for (const ends of [
        ['completed', 'failed'],
        ['failed', 'completed'],
      ]) {
        const { id } = await packetIn(service, 'claimed');
        const answers = await Promise.all(ends.map((status) => patch(service, id, { status })));
        assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 400]);
        const reached = answers.find(({ status }) => status === 200)!.body.status;
        assert.deepEqual(await happenings(service, id), ['created', 'claimed', reached]);
      }
    });
  });

  describe(`PATCH /packets/{id} with content on ${store.name}`, () => {
    test('a completed packet accepts content and stays completed; a new item must be complete [H43, H44]', async () => {
      const service = await shareService(store);
      const before = await packetIn(service, 'completed');
      service.clock.turn(60);
      const refused = await patch(service, before.id, {
        decisions: [
          { id: 'd1', rationale: 'Known' },
          { id: 'new', decision: 'D' },
        ],
      });
      assert.deepEqual([refused.status, refused.body.code, refused.body.field], [400, 'VALIDATION_ERROR', 'decisions.1.rationale']);
      const answer = await patch(service, before.id, { context: { summary: 'Both charges found.' } });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, {
        ...before,
        context: { ...before.context, summary: 'Both charges found.' },
        revision: before.revision + 1,
        updated_at: '2026-03-01T09:31:00.000Z',
      });
      assert.equal((await happenings(service, before.id)).at(-1), 'updated');
    });

    test('fields that are left out stay: lists are merged by id, objects at their top level [H44]', async () => {
      const service = await shareService(store);
      const before = await createPacket(service, { hitl: question, dependencies: [{ id: 'p1', type: 'api', description: 'Payment' }] });
      const answer = await patch(service, before.id, {
        metadata: { priority: 'low' },
        context: { custom: { ticket: 4711 } },
        decisions: [
          { id: 'd1', rationale: 'Same minute' },
          { id: 'd2', decision: 'Refund', rationale: 'Within 14 days' },
        ],
        dependencies: [{ id: 'p1', status: 'down' }],
        hitl: { options: ['Yes', 'No'] },
      });
      assert.equal(answer.status, 200);
      const { metadata, context, decisions, dependencies, hitl, actions } = answer.body;
      assert.deepEqual(metadata, { ...before.metadata, priority: 'low' });
      assert.deepEqual(context, { ...before.context, custom: { ticket: 4711 } });
      assert.deepEqual(decisions, [
        { ...before.decisions[0], rationale: 'Same minute' },
        { id: 'd2', decision: 'Refund', rationale: 'Within 14 days' },
      ]);
      assert.deepEqual(dependencies, [{ ...before.dependencies[0], status: 'down' }]);
      assert.deepEqual(hitl, { ...before.hitl, options: ['Yes', 'No'] });
      assert.deepEqual(actions, before.actions);
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, answer.body);
    });

    test('hitl null removes the question [H44, H43]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { hitl: { ...question, required: true } });
      assert.equal((await service.call('GET', '/packets?hitl_required=true')).body.total, 1);
      const answer = await patch(service, id, { hitl: null });
      assert.equal(answer.status, 200);
      assert.equal(answer.body.hitl, null);
      assert.equal((await service.call('GET', '/packets?hitl_required=true')).body.total, 0);
      assert.equal((await patch(service, id, { status: 'awaiting_human' })).status, 400);
    });

    test('lists reflect an update of only the priority, the target agent, the question, or the way tags are split', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      assert.equal((await patch(service, id, { metadata: { tags: ['a,b', 'c'] } })).status, 200);
      const listed = async (query: string) => (await service.call('GET', `/packets?${query}`)).body.packets.length;
      for (const [content, before, after] of [
        [{ metadata: { priority: 'low' } }, 'priority=high', 'priority=low'],
        [{ metadata: { target_agent: { id: 'desk', name: 'Desk' } } }, 'target_agent=resolver', 'target_agent=desk'],
        [{ hitl: { ...question, required: true } }, 'hitl_required=false', 'hitl_required=true'],
        [{ metadata: { tags: ['a', 'b,c'] } }, 'tags=c', 'tags=a'],
      ] as const) {
        assert.deepEqual([await listed(before), await listed(after)], [1, 0], after);
        assert.equal((await patch(service, id, content)).status, 200);
        assert.deepEqual([await listed(before), await listed(after)], [0, 1], after);
      }
      await patch(service, id, { metadata: { tags: [] } });
      assert.equal(await listed('tags=a'), 0);
    });

    test('of 50 concurrent changes none is lost', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { decisions: [] });
      const names = Array.from({ length: 50 }, (_, index) => `d${index}`);
      const answers = await Promise.all(
        names.map((name) => patch(service, id, { decisions: [{ id: name, decision: name, rationale: '' }] })),
      );
      for (const { status } of answers) assert.equal(status, 200);
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.deepEqual(body.decisions.map((decision: { id: string }) => decision.id).sort(), [...names].sort());
      assert.equal(body.revision, 51);
      const revisions = answers.map((answer) => answer.body.revision as number).sort((one, other) => one - other);
      assert.deepEqual(
        revisions,
        names.map((_, index) => index + 2),
      );
      assert.equal((await happenings(service, id)).length, 51);
    });

    test('a packet may exceed the size of a request by 4 KiB; a PATCH beyond that is 413 and changes nothing [H54]', async () => {
      const limit = 2048;
      const service = await shareService(store, { SERVICE_PACKET_BYTES_BUSINESS: String(limit) });
      const { id } = await createPacket(service, { decisions: [] });
      const patch = (name: string, length: number) =>
        service.call('PATCH', `/packets/${id}`, { body: { decisions: [{ id: name, decision: 'x'.repeat(length), rationale: '' }] } });
      const sizeOf = ({ text }: TestAnswer) => Buffer.byteLength(text);
      assert.equal((await patch('a', 1500)).status, 200);
      assert.equal((await patch('b', 1500)).status, 200);
      const room = limit + ownBytes - sizeOf(await patch('c', 100));
      const full = await patch('c', 100 + room);
      assert.equal(full.status, 200);
      assert.equal(sizeOf(full), limit + ownBytes);
      const before = await happenings(service, id);
      const over = await patch('c', 101 + room);
      assert.equal(over.status, 413);
      assert.deepEqual([over.body.code, over.body.field], ['PAYLOAD_TOO_LARGE', null]);
      assert.deepEqual((await service.call('GET', `/packets/${id}`)).body, full.body);
      assert.deepEqual(await happenings(service, id), before);
      // The limit is in bytes: a two-byte letter exceeds it with the same number of characters.
      const letters = { decisions: [{ id: 'c', decision: `${'x'.repeat(99 + room)}ü`, rationale: '' }] };
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: letters })).status, 413);
      assert.equal((await patch('c', 1)).status, 200);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('PATCH /packets/{id}', () => {
  const store = stores[0]!;

  test('400 names the field with the wrong form', async () => {
    const service = await shareService(store);
    const { id } = await createPacket(service);
    const wrong: [object, string][] = [
      ...['done', '', 'CLAIMED'].map((status) => [{ status }, 'status'] as [object, string]),
      [{ context: { summary: '' } }, 'context.summary'],
      [{ metadata: { priority: 'urgent' } }, 'metadata.priority'],
      [{ metadata: { target_agent: { id: 'desk' } } }, 'metadata.target_agent.name'],
      [{ decisions: [{ id: '' }] }, 'decisions.0.id'],
      [{ hitl: { question: '' } }, 'hitl.question'],
      [{ hitl: { timeout_seconds: 0 } }, 'hitl.timeout_seconds'],
    ];
    for (const [body, field] of wrong) {
      const answer = await patch(service, id, body);
      assert.equal(answer.status, 400, field);
      assert.equal(answer.body.field, field);
    }
  });

  test('400 for null in any field of a PATCH but hitl [H43]', async () => {
    const service = await shareService(store);
    const before = await createPacket(service, { hitl: { ...question, timeout_seconds: 60 } });
    const cases: [body: object, field: string][] = [
      [{ status: null }, 'status'],
      [{ metadata: null }, 'metadata'],
      [{ metadata: { tags: null } }, 'metadata.tags'],
      [{ context: { conversation_state: null } }, 'context.conversation_state'],
      [{ decisions: null }, 'decisions'],
      [{ actions: { pending: null } }, 'actions.pending'],
      [{ decisions: [{ id: 'd1', decided_by: null }] }, 'decisions.0.decided_by'],
      [{ hitl: { timeout_seconds: null } }, 'hitl.timeout_seconds'],
    ];
    for (const [body, field] of cases) {
      const answer = await service.call('PATCH', `/packets/${before.id}`, { body });
      assert.equal(answer.status, 400, field);
      assert.equal(answer.body.field, field);
    }
    assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
  });
});
