import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { historyOf, packetIn, question } from '../../support/life.ts';
import { createPacket } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

for (const store of stores) {
  describe(`DELETE /packets/{id}/question on ${store.name}`, () => {
    test('200: the packet goes back to its holder without its question, and can be completed [H118]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'claimed', { hitl: undefined });
      const hitl = { ...question, required: true };
      const asked = await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } });
      const { question_id } = asked.body.hitl;
      const answer = await service.call('DELETE', `/packets/${id}/question`, { headers: { 'x-agent-id': 'resolver' } });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual([answer.body.status, answer.body.hitl, answer.body.claimed_by.agent_id], ['claimed', null, 'resolver']);
      const { event_type, actor, details } = (await historyOf(service, id)).at(-1)!;
      assert.deepEqual(
        { event_type, actor, details },
        { event_type: 'question_withdrawn', actor: 'agent:resolver', details: { question_id } },
      );
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } })).status, 200);
    });

    test('needs no lease token; the full time of the lease runs again [H118]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const claimed = await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver', lease_seconds: 60 } });
      const headers = { 'x-lease-token': claimed.body.lease.token };
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl: question }, headers });
      service.clock.turn(3600);
      const answer = await service.call('DELETE', `/packets/${id}/question`);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(Date.parse(answer.body.lease.expires_at) - service.clock.read().getTime(), 60_000);
    });

    test('each question that is asked has its own id, which callers cannot set', async () => {
      const service = await shareService(store);
      const { id, hitl } = await createPacket(service, { hitl: { ...question, question_id: 'mine' } });
      assert.equal(hitl.question_id, null);
      const ids = new Set<string>();
      for (const body of [{ status: 'awaiting_human' }, { status: 'awaiting_human', hitl: { question: 'Really?' } }]) {
        const forged = { ...body, hitl: { question: 'Really?', question_id: 'mine' } };
        assert.equal((await service.call('PATCH', `/packets/${id}`, { body: forged })).body.field, 'hitl.question_id');
        const asked = await service.call('PATCH', `/packets/${id}`, { body });
        assert.equal(asked.status, 200, asked.text);
        ids.add(asked.body.hitl.question_id);
        await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } });
        assert.equal((await historyOf(service, id)).at(-1)!.details.question_id, asked.body.hitl.question_id);
      }
      assert.equal(ids.size, 2);
      assert.ok(!ids.has('mine'));
    });
  });
}
