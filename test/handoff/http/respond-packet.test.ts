import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, happenings, historyOf, packetIn, question } from '../../support/life.ts';
import type { TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const reply = { response: 'Approve', responded_by: 'dana@example.com', notes: 'Loyal customer' };

const respond = (service: TestService, id: string, body: unknown = reply) => service.call('POST', `/packets/${id}/respond`, { body });

/** A claimed packet that awaits a person. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into packets of every shape.
async function heldAndWaiting(service: TestService, hitl: object = question): Promise<any> {
  const { id } = await packetIn(service, 'claimed');
  return (await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } })).body;
}

for (const store of stores) {
  describe(`POST /packets/{id}/respond on ${store.name}`, () => {
    test('200: the answer is stored and the packet is claimed again by its previous holder [H8, H34]', async () => {
      const service = await shareService(store);
      const before = await heldAndWaiting(service);
      service.clock.turn(60);
      const answer = await respond(service, before.id);
      assert.equal(answer.status, 200);
      const at = '2026-03-01T09:31:00.000Z';
      assert.deepEqual(answer.body, {
        ...before,
        status: 'claimed',
        hitl: { ...before.hitl, ...reply, responded_at: at },
        updated_at: at,
        revision: before.revision + 1,
      });
      assert.deepEqual([answer.body.claimed_by, answer.body.claimed_at], [claimant, before.created_at]);
      assert.equal(answer.headers.etag, `"${before.revision + 1}"`);
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, answer.body);
    });

    test('200: a packet without a holder is claimed by its target agent at the time of the answer [H34]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human');
      service.clock.turn(60);
      const { status, body } = await respond(service, id);
      assert.equal(status, 200);
      assert.deepEqual(body.claimed_by, { agent_id: 'resolver', agent_name: 'Resolution desk', framework: null });
      assert.equal(body.claimed_at, '2026-03-01T09:31:00.000Z');
    });

    test('the history has hitl_responded by the person, not claimed [H9]', async () => {
      const service = await shareService(store);
      const { id } = await heldAndWaiting(service);
      assert.equal((await respond(service, id)).status, 200);
      const events = await historyOf(service, id);
      assert.deepEqual(
        events.map(({ event_type, actor }) => [event_type, actor]),
        [
          ['created', 'agent:frontline'],
          ['claimed', 'agent:resolver'],
          ['awaiting_human', 'agent:resolver'],
          ['hitl_responded', 'human:dana@example.com'],
        ],
      );
    });

    test('notes are optional: null if left out [H6]', async () => {
      const service = await shareService(store);
      for (const body of [
        { response: 'Approve', responded_by: 'dana' },
        { response: 'Approve', responded_by: 'dana', notes: null },
      ]) {
        const { id } = await packetIn(service, 'awaiting_human');
        const answer = await respond(service, id, body);
        assert.equal(answer.status, 200);
        assert.deepEqual([answer.body.hitl.response, answer.body.hitl.notes], ['Approve', null]);
      }
    });

    test('an answer need not be one of the options [H35]', async () => {
      const service = await shareService(store);
      const { id } = await heldAndWaiting(service, { ...question, options: ['Approve', 'Refuse'] });
      const { status, body } = await respond(service, id, { ...reply, response: 'Half of it' });
      assert.equal(status, 200);
      assert.equal(body.hitl.response, 'Half of it');
    });

    test('400: response and responded_by are required, and unknown fields are refused [H6]', async () => {
      const service = await shareService(store);
      const before = await packetIn(service, 'awaiting_human');
      const wrong: [unknown, string | null][] = [
        [{ responded_by: 'dana' }, 'response'],
        [{ response: 'Approve' }, 'responded_by'],
        [{ ...reply, response: null }, 'response'],
        [{ ...reply, responded_by: null }, 'responded_by'],
        [{ ...reply, responded_by: '' }, 'responded_by'],
        [{ ...reply, notes: 7 }, 'notes'],
        [{ ...reply, responded_at: '2026-01-01T00:00:00Z' }, 'responded_at'],
        [undefined, null],
      ];
      for (const [body, field] of wrong) {
        const answer = await service.call('POST', `/packets/${before.id}/respond`, { body });
        assert.equal(answer.status, 400, JSON.stringify(body));
        assert.deepEqual([answer.body.code, answer.body.field], ['VALIDATION_ERROR', field]);
      }
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
    });

    for (const status of ['created', 'claimed', 'in_progress', 'completed', 'failed', 'expired'] as const) {
      test(`409: a packet that is ${status} awaits no answer`, async () => {
        const service = await shareService(store);
        const before = await packetIn(service, status);
        const answer = await respond(service, before.id);
        assert.equal(answer.status, 409);
        assert.deepEqual([answer.body.code, answer.body.field, answer.body.status_code], ['CONFLICT', null, 409]);
        assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
      });
    }

    test('409: a question is answered once [H36]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human');
      assert.equal((await respond(service, id)).status, 200);
      const again = await respond(service, id, { ...reply, response: 'Refuse' });
      assert.equal(again.status, 409);
      assert.equal(again.body.detail, 'The packet is claimed and awaits no answer. dana@example.com answered at 2026-03-01T09:30:00.000Z.');
      assert.equal((await service.call('GET', `/packets/${id}`)).body.hitl.response, 'Approve');
    });

    test('an answer is accepted until the last millisecond before the timeout [H31]', async () => {
      const service = await shareService(store);
      const { id } = await heldAndWaiting(service, { ...question, timeout_seconds: 60 });
      service.clock.turn(59.999);
      const answer = await respond(service, id);
      assert.equal(answer.status, 200);
      assert.equal(answer.body.hitl.expires_at, '2026-03-01T09:31:00.000Z');
    });

    test('410 from the timeout on, and nothing changes [H31]', async () => {
      const service = await shareService(store);
      const before = await heldAndWaiting(service, { ...question, timeout_seconds: 60 });
      for (const seconds of [60, 1, 86_400]) {
        service.clock.turn(seconds);
        const answer = await respond(service, before.id);
        assert.equal(answer.status, 410);
        assert.deepEqual([answer.body.code, answer.body.field, answer.body.status_code], ['GONE', null, 410]);
      }
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
      assert.deepEqual(await happenings(service, before.id), ['created', 'claimed', 'awaiting_human']);
    });

    test('the time counts from when the packet enters awaiting_human, not from its creation [H31]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'created', { hitl: { ...question, timeout_seconds: 60 } });
      service.clock.turn(3600);
      const { body } = await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
      assert.deepEqual([body.hitl.requested_at, body.hitl.expires_at], ['2026-03-01T10:30:00.000Z', '2026-03-01T10:31:00.000Z']);
      service.clock.turn(59);
      assert.equal((await respond(service, id)).status, 200);
    });

    test('without timeout_seconds an answer is always accepted', async () => {
      const service = await shareService(store);
      const { id, hitl } = await packetIn(service, 'awaiting_human');
      assert.equal(hitl.expires_at, null);
      service.clock.set('2036-03-01T00:00:00.000Z');
      assert.equal((await respond(service, id)).status, 200);
    });

    test('a packet can be completed after the required answer', async () => {
      const service = await shareService(store);
      const { id } = await heldAndWaiting(service, { ...question, required: true });
      assert.equal((await respond(service, id)).status, 200);
      const answer = await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } });
      assert.equal(answer.status, 200);
      assert.equal(answer.body.hitl.response, 'Approve');
    });

    test('a second question is asked and answered like the first', async () => {
      const service = await shareService(store);
      const { id } = await heldAndWaiting(service);
      await respond(service, id);
      const again = { status: 'awaiting_human', hitl: { question: 'And the postage?' } };
      const asked = await service.call('PATCH', `/packets/${id}`, { body: again });
      assert.equal(asked.status, 200);
      assert.deepEqual(
        [asked.body.hitl.question, asked.body.hitl.response, asked.body.hitl.responded_by],
        ['And the postage?', null, null],
      );
      const answer = await respond(service, id, { response: 'No', responded_by: 'kim' });
      assert.equal(answer.status, 200);
      assert.deepEqual([answer.body.hitl.response, answer.body.hitl.responded_by, answer.body.hitl.notes], ['No', 'kim', null]);
    });

    test('of 50 concurrent answers one is accepted, and 49 get 409', async () => {
      const service = await shareService(store);
      const { id } = await heldAndWaiting(service);
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, index) => respond(service, id, { response: `Answer ${index}`, responded_by: `person-${index}` })),
      );
      const taken = answers.filter(({ status }) => status === 200);
      assert.deepEqual([taken.length, answers.filter(({ status }) => status === 409).length], [1, 49]);
      assert.deepEqual((await service.call('GET', `/packets/${id}`)).body, taken[0]!.body);
      assert.equal((await happenings(service, id)).filter((event) => event === 'hitl_responded').length, 1);
    });
  });
}
