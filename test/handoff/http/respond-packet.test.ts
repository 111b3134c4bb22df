import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, happenings, packetIn, question } from '../../support/life.ts';
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
        hitl: { ...before.hitl, ...reply, answered_by: answer.body.hitl.answered_by, responded_at: at },
        updated_at: at,
        revision: before.revision + 1,
      });
      assert.deepEqual([answer.body.claimed_by, answer.body.claimed_at], [claimant, before.created_at]);
      assert.equal(answer.headers.etag, `"${before.revision + 1}"`);
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, answer.body);
    });

    test('an answer need not be one of the options, and may be empty; notes are optional [H1, H6, H34]', async () => {
      const service = await shareService(store);
      for (const more of [{ response: 'Half of it' }, { response: '', notes: null }]) {
        const { id } = await heldAndWaiting(service, { ...question, options: ['Approve', 'Refuse'] });
        const { status, body } = await respond(service, id, { responded_by: 'dana', ...more });
        assert.equal(status, 200);
        assert.deepEqual([body.hitl.response, body.hitl.notes], [more.response, null]);
      }
    });

    test('409: a question is answered once [H34]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human');
      assert.equal((await respond(service, id)).status, 200);
      const again = await respond(service, id, { ...reply, response: 'Refuse' });
      assert.equal(again.status, 409);
      assert.equal(again.body.detail, 'The packet is claimed and awaits no answer. dana@example.com answered at 2026-03-01T09:30:00.000Z.');
      assert.equal((await service.call('GET', `/packets/${id}`)).body.hitl.response, 'Approve');
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

// These requests are refused before the store is used, so one store is enough.
describe('POST /packets/{id}/respond', () => {
  const store = stores[0]!;

  test('400: response and responded_by are required [H6]', async () => {
    const service = await shareService(store);
    const before = await packetIn(service, 'awaiting_human');
    const wrong: [unknown, string | null][] = [
      [{ responded_by: 'dana' }, 'response'],
      [{ response: 'Approve' }, 'responded_by'],
      [{ ...reply, response: null }, 'response'],
      [{ ...reply, responded_by: null }, 'responded_by'],
      [{ ...reply, responded_by: '' }, 'responded_by'],
      [undefined, null],
    ];
    for (const [body, field] of wrong) {
      const answer = await service.call('POST', `/packets/${before.id}/respond`, { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual([answer.body.code, answer.body.field], ['VALIDATION_ERROR', field]);
    }
    assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
  });
});
