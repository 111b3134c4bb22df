import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { type Status, statuses } from '../../../src/handoff/model/common.ts';
import { claimant, happenings, historyOf, packetIn, question, unknownId } from '../../support/life.ts';
import { createPacket, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** How many bytes a packet may exceed its tier's body size by, for the fields that the service adds. */
const ownBytes = 4096;

const patch = (service: TestService, id: string, body: unknown, headers: Record<string, string> = {}) =>
  service.call('PATCH', `/packets/${id}`, { body, headers });

/** The statuses that a PATCH can set, by the current status. */
const pairs: Record<Status, readonly Status[]> = {
  created: ['awaiting_human', 'failed', 'expired'],
  claimed: ['in_progress', 'awaiting_human', 'completed', 'failed', 'expired'],
  in_progress: ['awaiting_human', 'completed', 'failed', 'expired'],
  awaiting_human: ['failed', 'expired'],
  failed: ['expired'],
  completed: [],
  expired: [],
};

for (const store of stores) {
  describe(`PATCH /packets/{id} with a status on ${store.name}`, () => {
    for (const from of statuses) {
      test(`from ${from} it can move to ${pairs[from].join(', ') || 'nothing'}; any other status is 400 [H17, H18]`, async () => {
        const service = await shareService(store);
        for (const to of statuses.filter((status) => status !== from)) {
          const before = await packetIn(service, from);
          const answer = await patch(service, before.id, { status: to });
          const { body } = await service.call('GET', `/packets/${before.id}`);
          if (pairs[from].includes(to)) {
            assert.equal(answer.status, 200, to);
            assert.deepEqual([answer.body.status, answer.body.revision], [to, before.revision + 1]);
            assert.equal(answer.headers.etag, `"${before.revision + 1}"`);
            assert.deepEqual(body, answer.body);
            assert.equal((await happenings(service, before.id)).at(-1), to);
          } else {
            assert.equal(answer.status, 400, to);
            assert.deepEqual([answer.body.code, answer.body.field, answer.body.status_code], ['VALIDATION_ERROR', 'status', 400]);
            for (const allowed of pairs[from]) assert.ok(answer.body.detail.includes(allowed), answer.body.detail);
            assert.deepEqual(body, before);
          }
        }
      });
    }

    test('the current status is 200 and has no effect; alone it changes nothing [H20, H53]', async () => {
      const service = await shareService(store);
      for (const status of statuses) {
        const before = await packetIn(service, status);
        const history = await happenings(service, before.id);
        service.clock.turn(1);
        const answer = await patch(service, before.id, { status });
        assert.equal(answer.status, 200, status);
        assert.deepEqual(answer.body, before);
        assert.equal(answer.headers.etag, `"${before.revision}"`);
        assert.deepEqual(await happenings(service, before.id), history);
      }
    });

    test('with the current status the rest of the body applies [H20]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'claimed');
      const answer = await patch(service, id, { status: 'claimed', context: { summary: 'Both found.' } });
      assert.equal(answer.status, 200);
      assert.equal(answer.body.context.summary, 'Both found.');
      assert.deepEqual(await happenings(service, id), ['created', 'claimed', 'updated']);
    });

    test('400 on status when there is no such status', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      for (const status of ['done', '', 'CLAIMED', 7, null]) {
        const answer = await patch(service, id, { status });
        assert.equal(answer.status, 400, String(status));
        assert.equal(answer.body.field, 'status');
      }
    });

    test('a refused status refuses the whole request', async () => {
      const service = await shareService(store);
      const before = await packetIn(service, 'created');
      assert.equal((await patch(service, before.id, { status: 'completed', context: { summary: 'Done.' } })).status, 400);
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
    });

    test('a refused field refuses the change of status as well', async () => {
      const service = await shareService(store);
      const before = await packetIn(service, 'claimed');
      assert.equal((await patch(service, before.id, { status: 'in_progress', decisions: [{ id: 'new' }] })).status, 400);
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
    });

    test('awaiting_human needs a question, in the packet or in the same request [H8, H22]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const without = await patch(service, id, { status: 'awaiting_human' });
      assert.equal(without.status, 400);
      assert.deepEqual([without.body.code, without.body.field], ['VALIDATION_ERROR', 'hitl']);
      const unfinished = await patch(service, id, { status: 'awaiting_human', hitl: { required: true, reason: 'Policy' } });
      assert.equal(unfinished.status, 400);
      assert.equal(unfinished.body.field, 'hitl.question');
      const whole = await patch(service, id, { status: 'awaiting_human', hitl: question });
      assert.equal(whole.status, 200);
      const unanswered = { response: null, responded_by: null, responded_at: null, notes: null, expires_at: null };
      const { question_id, digest } = whole.body.hitl;
      assert.match(digest, /^[0-9a-f]{64}$/);
      assert.match(question_id, /^[0-9a-f-]{36}$/);
      const asked = { requested_at: '2026-03-01T09:30:00.000Z', asked_by: { agent_id: 'frontline', agent_name: 'Frontline agent' } };
      assert.deepEqual(whole.body.hitl, { ...question, ...unanswered, question_id, digest, ...asked });
      assert.equal((await service.call('GET', '/packets/awaiting')).body.total, 1);
    });

    test('completed is 400 on status while a required question is unanswered, and 200 afterwards [H21]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'claimed', { hitl: { ...question, required: true } });
      const answer = await patch(service, id, { status: 'completed' });
      assert.equal(answer.status, 400);
      assert.deepEqual([answer.body.code, answer.body.field], ['VALIDATION_ERROR', 'status']);
      await patch(service, id, { status: 'awaiting_human' });
      await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Approve', responded_by: 'dana' } });
      assert.equal((await patch(service, id, { status: 'completed' })).status, 200);
    });

    test('asking again keeps the previous answer; only a new hitl clears it [H22]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human');
      await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Approve', responded_by: 'dana' } });
      const same = await patch(service, id, { status: 'awaiting_human' });
      assert.equal(same.status, 200);
      assert.deepEqual([same.body.hitl.response, same.body.hitl.responded_by], ['Approve', 'dana']);
      await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Refuse', responded_by: 'kim' } });
      const fresh = await patch(service, id, { status: 'awaiting_human', hitl: { question: 'Sure?' } });
      assert.equal(fresh.status, 200);
      assert.deepEqual([fresh.body.hitl.response, fresh.body.hitl.responded_by, fresh.body.hitl.responded_at], [null, null, null]);
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
    for (const status of statuses.filter((one) => one !== 'expired')) {
      test(`a packet that is ${status} accepts content, and stays ${status} [H43]`, async () => {
        const service = await shareService(store);
        const before = await packetIn(service, status);
        service.clock.turn(60);
        const answer = await patch(service, before.id, { context: { summary: 'Both charges found.' } });
        assert.equal(answer.status, 200);
        assert.deepEqual(answer.body, {
          ...before,
          // While a question is open, its digest tells that what it is about has changed.
          hitl: status === 'awaiting_human' ? { ...before.hitl, digest: answer.body.hitl.digest } : before.hitl,
          context: { ...before.context, summary: 'Both charges found.' },
          revision: before.revision + 1,
          updated_at: '2026-03-01T09:31:00.000Z',
        });
        assert.equal((await happenings(service, before.id)).at(-1), 'updated');
      });
    }

    test('409: an expired packet accepts no content [H43]', async () => {
      const service = await shareService(store);
      const before = await packetIn(service, 'expired');
      for (const body of [{ context: { summary: 'Late.' } }, { status: 'expired', hitl: null }]) {
        const answer = await patch(service, before.id, body);
        assert.equal(answer.status, 409);
        assert.deepEqual([answer.body.code, answer.body.field], ['CONFLICT', null]);
      }
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
    });

    test('an empty body is 200 and changes nothing [H53]', async () => {
      const service = await shareService(store);
      const before = await createPacket(service);
      service.clock.turn(1);
      const answer = await patch(service, before.id, {});
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, before);
      assert.deepEqual(await happenings(service, before.id), ['created']);
    });

    test('fields that are left out stay: lists are merged by id, objects at their top level [H44, H45]', async () => {
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

    test('an action listed in completed or failed is removed from pending [H46]', async () => {
      const service = await shareService(store);
      const pending = ['a1', 'a2', 'a3'].map((id) => ({ id, description: `Do ${id}`, assignee: 'resolver' }));
      const { id } = await createPacket(service, { actions: { pending } });
      const completed = { id: 'a1', description: 'Do a1', result: 'Refunded', completed_by: 'resolver' };
      const failed = { id: 'a2', description: 'Do a2', error: 'No answer' };
      const answer = await patch(service, id, { actions: { completed: [completed], failed: [failed] } });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body.actions, { pending: [pending[2]], completed: [completed], failed: [failed] });
    });

    test('hitl null removes the question [H48, H50]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { hitl: { ...question, required: true } });
      assert.equal((await service.call('GET', '/packets?hitl_required=true')).body.total, 1);
      const answer = await patch(service, id, { hitl: null });
      assert.equal(answer.status, 200);
      assert.equal(answer.body.hitl, null);
      assert.equal((await service.call('GET', '/packets?hitl_required=true')).body.total, 0);
      assert.equal((await patch(service, id, { status: 'awaiting_human' })).status, 400);
    });

    test('400: a new item must be complete; the missing field is named by its path [H45]', async () => {
      const service = await shareService(store);
      const before = await createPacket(service);
      const incomplete: [object, string][] = [
        [
          {
            decisions: [
              { id: 'd1', rationale: 'Known' },
              { id: 'new', decision: 'D' },
            ],
          },
          'decisions.1.rationale',
        ],
        [{ decisions: [{ id: 'new', rationale: 'R' }] }, 'decisions.0.decision'],
        [{ decisions: [{ decision: 'D', rationale: 'R' }] }, 'decisions.0.id'],
        [{ dependencies: [{ id: 'new', type: 'api' }] }, 'dependencies.0.description'],
        [{ actions: { pending: [{ id: 'new', description: 'D' }] } }, 'actions.pending.0.assignee'],
        [{ actions: { completed: [{ id: 'new', description: 'D' }] } }, 'actions.completed.0.result'],
        [{ actions: { failed: [{ id: 'new', error: 'E' }] } }, 'actions.failed.0.description'],
        [{ hitl: { required: true, reason: 'R' } }, 'hitl.question'],
      ];
      for (const [body, field] of incomplete) {
        const answer = await patch(service, before.id, body);
        assert.equal(answer.status, 400, field);
        assert.deepEqual([answer.body.code, answer.body.field], ['VALIDATION_ERROR', field]);
      }
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
    });

    test("400 names a field that an update can't set: id, version, source agent, times [H49]", async () => {
      const service = await shareService(store);
      const before = await createPacket(service);
      const at = '1999-01-01T00:00:00.000Z';
      const fixed: [object, string][] = [
        [{ id: unknownId }, 'id'],
        [{ version: '2.0.0' }, 'version'],
        [{ parent_packet_id: unknownId }, 'parent_packet_id'],
        [{ revision: 7 }, 'revision'],
        [{ created_at: at }, 'created_at'],
        [{ updated_at: at }, 'updated_at'],
        [{ claimed_at: at }, 'claimed_at'],
        [{ claimed_by: claimant }, 'claimed_by'],
        [{ _links: {} }, '_links'],
        [{ x_extra: 1 }, 'x_extra'],
        [{ metadata: { source_agent: { id: 'me', name: 'Me', framework: 'cli' } } }, 'metadata.source_agent'],
        [{ metadata: { created_at: at } }, 'metadata.created_at'],
      ];
      for (const [body, field] of fixed) {
        const answer = await patch(service, before.id, { ...body, context: { summary: 'Forged.' } });
        assert.equal(answer.status, 400, field);
        assert.deepEqual([answer.body.code, answer.body.field], ['VALIDATION_ERROR', field]);
      }
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
    });

    test("a PATCH can't set the answer to the question [H11]", async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'claimed', { hitl: { ...question, required: true } });
      const forged = { response: 'Approve', responded_by: 'me', responded_at: '2026-01-01T00:00:00Z', expires_at: '2099-01-01T00:00:00Z' };
      const answer = await patch(service, id, { hitl: forged });
      assert.equal(answer.status, 200);
      assert.deepEqual([answer.body.hitl.response, answer.body.hitl.responded_by, answer.body.hitl.expires_at], [null, null, null]);
      assert.equal((await patch(service, id, { status: 'completed' })).status, 400);
    });

    test('400 names the field with the wrong form', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const wrong: [object, string][] = [
        [{ context: { summary: '' } }, 'context.summary'],
        [{ metadata: { priority: 'urgent' } }, 'metadata.priority'],
        [{ metadata: { target_agent: { id: 'desk' } } }, 'metadata.target_agent.name'],
        [{ decisions: {} }, 'decisions'],
        [{ decisions: [{ id: '' }] }, 'decisions.0.id'],
        [{ actions: { pending: 'all' } }, 'actions.pending'],
        [{ hitl: { question: '' } }, 'hitl.question'],
        [{ hitl: { timeout_seconds: 0 } }, 'hitl.timeout_seconds'],
      ];
      for (const [body, field] of wrong) {
        const answer = await patch(service, id, body);
        assert.equal(answer.status, 400, field);
        assert.equal(answer.body.field, field);
      }
    });

    test('lists filter by the current tags, priority and target agent', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const metadata = { priority: 'low', tags: ['later', 'billing'], target_agent: { id: 'desk', name: 'Desk' } };
      assert.equal((await patch(service, id, { metadata })).status, 200);
      const totalOf = async (query: string) => (await service.call('GET', `/packets?${query}`)).body.total;
      assert.deepEqual([await totalOf('priority=low'), await totalOf('priority=high')], [1, 0]);
      assert.deepEqual([await totalOf('target_agent=desk'), await totalOf('target_agent=resolver')], [1, 0]);
      assert.deepEqual([await totalOf('tags=later,billing'), await totalOf('tags=billing')], [1, 1]);
      await patch(service, id, { metadata: { tags: [] } });
      assert.deepEqual([await totalOf('tags=later'), await totalOf('tags=billing'), await totalOf('priority=low')], [0, 0, 1]);
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
    });

    test('search finds the current content of the packet', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      assert.equal((await service.call('GET', '/packets/search?q=customer')).body.total, 1);
      await patch(service, id, { context: { summary: 'Zebra.' } });
      assert.equal((await service.call('GET', '/packets/search?q=zebra')).body.total, 1);
      assert.equal((await service.call('GET', '/packets/search?q=customer')).body.total, 0);
    });

    test('the trail names the source agent, then the claimant, or the agent in X-Agent-Id [H9]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      await patch(service, id, { context: { summary: 'One.' } });
      await service.call('POST', `/packets/${id}/claim`, { body: claimant });
      await patch(service, id, { context: { summary: 'Two.' } });
      await patch(service, id, { status: 'in_progress' }, { 'X-Agent-Id': 'auditor' });
      assert.deepEqual(
        (await historyOf(service, id)).map(({ event_type, actor }) => [event_type, actor]),
        [
          ['created', 'agent:frontline'],
          ['updated', 'agent:frontline'],
          ['claimed', 'agent:resolver'],
          ['updated', 'agent:resolver'],
          ['in_progress', 'agent:auditor'],
        ],
      );
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

    test('an action that moves from pending to completed or failed keeps its description [H47]', async () => {
      const service = await shareService(store);
      const pending = ['a1', 'a2'].map((id) => ({ id, description: `Do ${id}`, assignee: 'resolver' }));
      const { id } = await createPacket(service, { actions: { pending } });
      const answer = await service.call('PATCH', `/packets/${id}`, {
        body: { actions: { completed: [{ id: 'a1', result: 'Done' }], failed: [{ id: 'a2', error: 'No answer' }] } },
      });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body.actions, {
        pending: [],
        completed: [{ id: 'a1', description: 'Do a1', result: 'Done' }],
        failed: [{ id: 'a2', description: 'Do a2', error: 'No answer' }],
      });
    });

    test('null in a PATCH removes hitl; for any other field it is 400 [H50]', async () => {
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
