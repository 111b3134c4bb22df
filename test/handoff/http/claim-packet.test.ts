import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, happenings, historyOf, packetIn, refusal } from '../../support/life.ts';
import { createPacket } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

for (const store of stores) {
  describe(`POST /packets/{id}/claim on ${store.name}`, () => {
    test('200: the packet is claimed, with the claimant and the time [H7]', async () => {
      const service = await shareService(store);
      const before = await createPacket(service);
      service.clock.turn(60);
      const answer = await service.call('POST', `/packets/${before.id}/claim`, { body: claimant });
      assert.equal(answer.status, 200);
      const at = '2026-03-01T09:31:00.000Z';
      assert.deepEqual(answer.body, { ...before, status: 'claimed', claimed_by: claimant, claimed_at: at, updated_at: at, revision: 2 });
      assert.equal(answer.headers.etag, '"2"');
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, answer.body);
      assert.deepEqual((await historyOf(service, before.id)).at(-1), {
        timestamp: at,
        event_type: 'claimed',
        actor: 'agent:resolver',
        details: claimant,
      });
    });

    test('agent_name defaults to agent_id and framework to null, whether left out or null [H6]', async () => {
      const service = await shareService(store);
      for (const body of [{ agent_id: 'solo' }, { agent_id: 'solo', agent_name: null, framework: null }]) {
        const { id } = await createPacket(service);
        const answer = await service.call('POST', `/packets/${id}/claim`, { body });
        assert.equal(answer.status, 200);
        assert.deepEqual(answer.body.claimed_by, { agent_id: 'solo', agent_name: 'solo', framework: null });
      }
    });

    test('an agent other than the target may claim; the target agent stays unchanged [H24]', async () => {
      const service = await shareService(store);
      const { id, metadata } = await createPacket(service);
      const answer = await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'stand-in' } });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body.metadata, metadata);
    });

    test('409: a claimed packet keeps its holder, whom the answer names [H24]', async () => {
      const service = await shareService(store);
      const packet = await packetIn(service, 'claimed');
      service.clock.turn(60);
      for (const body of [{ agent_id: 'late' }, claimant]) {
        const answer = await service.call('POST', `/packets/${packet.id}/claim`, { body });
        assert.equal(answer.status, 409);
        const { detail, ...rest } = refusal(answer);
        assert.match(String(detail), /^[A-Z].*Resolver.*\.$/, 'detail stays a sentence');
        assert.deepEqual(rest, {
          code: 'CONFLICT',
          field: null,
          status_code: 409,
          claimed_by: { ...claimant, claimed_at: packet.claimed_at },
        });
      }
      assert.deepEqual((await service.call('GET', `/packets/${packet.id}`)).body, packet);
    });

    test('of 100 concurrent claims exactly one succeeds, and 99 get 409 with the winner', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, index) => service.call('POST', `/packets/${id}/claim`, { body: { agent_id: `agent-${index}` } })),
      );
      const winners = answers.filter(({ status }) => status === 200);
      const losers = answers.filter(({ status }) => status === 409);
      assert.deepEqual([winners.length, losers.length], [1, 99]);
      const { claimed_by, claimed_at } = winners[0]!.body;
      for (const { body } of losers) assert.deepEqual(body.claimed_by, { ...claimed_by, claimed_at });
      assert.deepEqual(await happenings(service, id), ['created', 'claimed']);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.revision, 2);
    });

    test('a concurrent claim and delete leave the packet expired; the claim succeeds before the delete or gets 410', async () => {
      const service = await shareService(store);
      for (let round = 0; round < 10; round += 1) {
        const { id } = await createPacket(service);
        const claim = () => service.call('POST', `/packets/${id}/claim`, { body: claimant });
        const remove = () => service.call('DELETE', `/packets/${id}`);
        const [first, second] = await Promise.all(round % 2 === 0 ? [claim(), remove()] : [remove(), claim()]);
        const [claimed, removed] = round % 2 === 0 ? [first, second] : [second, first];
        assert.equal(removed.status, 204);
        assert.ok([200, 410].includes(claimed.status), claimed.text);
        const expected = claimed.status === 200 ? ['created', 'claimed', 'expired'] : ['created', 'expired'];
        assert.deepEqual(await happenings(service, id), expected);
        assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'expired');
      }
    });

    test('texts that answers and the trail repeat are limited: a framework to 1,024 characters, an answer to 16,384 [H6]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const claim = (framework: string) => service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a', framework } });
      const long = await claim('x'.repeat(1025));
      assert.deepEqual([long.status, long.body.field], [400, 'framework']);
      assert.equal((await claim('x'.repeat(1024))).status, 200);
      const { id: asked } = await packetIn(service, 'awaiting_human');
      const respond = (response: string) => service.call('POST', `/packets/${asked}/respond`, { body: { response, responded_by: 'dana' } });
      const wordy = await respond('x'.repeat(16_385));
      assert.deepEqual([wordy.status, wordy.body.field], [400, 'response']);
      assert.equal((await respond('x'.repeat(16_384))).status, 200);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('POST /packets/{id}/claim', () => {
  const store = stores[0]!;

  test('400: agent_id is required, and texts must not be empty [H6]', async () => {
    const service = await shareService(store);
    const { id } = await createPacket(service);
    const wrong: [unknown, string | null][] = [
      [{}, 'agent_id'],
      [{ agent_name: 'Resolver' }, 'agent_id'],
      [{ agent_id: null }, 'agent_id'],
      [{ agent_id: '' }, 'agent_id'],
      [{ ...claimant, agent_name: '' }, 'agent_name'],
      [undefined, null],
    ];
    for (const [body, field] of wrong) {
      const answer = await service.call('POST', `/packets/${id}/claim`, { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual([answer.body.code, answer.body.field], ['VALIDATION_ERROR', field]);
    }
    assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'created');
  });
});
