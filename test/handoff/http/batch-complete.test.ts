import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { unknownId } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const completeEach = (
  service: TestService,
  packet_ids: unknown,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
) => service.call('POST', '/packets/batch/complete', { body: { packet_ids, ...more }, headers });

/** Creates packets in one batch, claims them for `worker`, and returns their ids. */
async function claimMany(service: TestService, count: number): Promise<string[]> {
  const created = await service.call('POST', '/packets/batch', { body: { packets: Array(count).fill(packetRequest()) } });
  assert.equal(created.status, 201);
  const packet_ids = created.body.created.map(({ id }: { id: string }) => id);
  const claimed = await service.call('POST', '/packets/batch/claim', { body: { packet_ids, agent_id: 'worker' } });
  assert.equal(claimed.body.claimed.length, count);
  return packet_ids;
}

const lastEvent = async (service: TestService, id: string) => (await service.call('GET', `/packets/${id}/history`)).body.events.at(-1);

for (const store of stores) {
  describe(`POST /packets/batch/complete on ${store.name}`, () => {
    test('200: packets that are claimed or in progress are completed, in the given order [H62]', async () => {
      const service = await shareService(store);
      const [one, two] = await claimMany(service, 2);
      await service.call('PATCH', `/packets/${one}`, {
        body: { status: 'in_progress', actions: { completed: [{ id: 'a1', result: 'done' }] } },
      });
      service.clock.turn(5);
      const answer = await completeEach(service, [two, one]);
      assert.equal(answer.status, 200);
      assert.deepEqual(Object.keys(answer.body), ['completed', 'errors']);
      assert.deepEqual(answer.body.errors, []);
      assert.deepEqual(
        answer.body.completed.map(({ id, status, revision, updated_at }: Record<string, unknown>) => [id, status, revision, updated_at]),
        [
          [two, 'completed', 3, '2026-03-01T09:30:05.000Z'],
          [one, 'completed', 4, '2026-03-01T09:30:05.000Z'],
        ],
      );
      for (const packet of answer.body.completed) assert.deepEqual((await service.call('GET', `/packets/${packet.id}`)).body, packet);
      const { event_type, details } = await lastEvent(service, one!);
      assert.deepEqual([event_type, details], ['completed', { actions_completed: 1 }]);
      assert.deepEqual((await lastEvent(service, two!)).details, { actions_completed: 0 });
    });

    test('the trail names the agent in the body, else the one in X-Agent-Id, else the claimant [H62]', async () => {
      const service = await shareService(store);
      const [one, two, three] = await claimMany(service, 3);
      const header = { 'X-Agent-Id': 'header' };
      assert.equal((await completeEach(service, [one], { agent_id: 'body' }, header)).status, 200);
      assert.equal((await completeEach(service, [two], {}, header)).status, 200);
      assert.equal((await completeEach(service, [three], { agent_id: null })).status, 200);
      assert.equal((await lastEvent(service, one!)).actor, 'agent:body');
      assert.equal((await lastEvent(service, two!)).actor, 'agent:header');
      assert.equal((await lastEvent(service, three!)).actor, 'agent:worker');
    });

    test('each packet is completed or refused independently; refused packets stay unchanged [H62]', async () => {
      const service = await shareService(store);
      const other = await newTenant(service);
      const foreign = await createPacket(service, {}, other.key);
      await service.call('POST', `/packets/${foreign.id}/claim`, { body: { agent_id: 'theirs' }, key: other.key });
      const [good, done, failed, expired, awaiting, unanswered] = await claimMany(service, 6);
      const { id: created } = await createPacket(service);
      const hitl = { required: true, reason: '', question: 'Go on?' };
      await service.call('PATCH', `/packets/${done}`, { body: { status: 'completed' } });
      await service.call('PATCH', `/packets/${failed}`, { body: { status: 'failed' } });
      await service.call('DELETE', `/packets/${expired}`);
      await service.call('PATCH', `/packets/${awaiting}`, { body: { status: 'awaiting_human', hitl } });
      await service.call('PATCH', `/packets/${unanswered}`, { body: { hitl } });
      const refused = [created, done, failed, expired, awaiting, unanswered];
      const before = await Promise.all(refused.map(async (id) => (await service.call('GET', `/packets/${id}`)).body));
      const answer = await completeEach(service, [...refused, unknownId, foreign.id, 'junk', good]);
      assert.equal(answer.status, 200);
      assert.deepEqual(
        answer.body.completed.map(({ id }: { id: string }) => id),
        [good],
      );
      assert.deepEqual(
        answer.body.errors.map(({ packet_id, code }: { packet_id: string; code: string }) => [packet_id, code]),
        [...refused.map((id) => [id, 'CONFLICT']), [unknownId, 'NOT_FOUND'], [foreign.id, 'NOT_FOUND'], ['junk', 'NOT_FOUND']],
      );
      for (const { error } of answer.body.errors) assert.notEqual(error, '');
      const after = await Promise.all(refused.map(async (id) => (await service.call('GET', `/packets/${id}`)).body));
      assert.deepEqual(after, before);
      assert.equal((await service.call('GET', `/packets/${foreign.id}`, { key: other.key })).body.status, 'claimed');
    });

    test('an id that is given twice is completed once [H65]', async () => {
      const service = await shareService(store);
      const [id] = await claimMany(service, 1);
      const answer = await completeEach(service, [id, id]);
      assert.equal(answer.status, 200);
      assert.equal(answer.body.completed.length, 1);
      assert.deepEqual(
        answer.body.errors.map(({ packet_id, code }: { packet_id: string; code: string }) => [packet_id, code]),
        [[id, 'CONFLICT']],
      );
      assert.equal((await service.call('GET', '/audit?action=completed')).body.total, 1);
    });

    test('of parallel batches over the same packets, each packet is completed once', async () => {
      const service = await shareService(store);
      const ids = await claimMany(service, 20);
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, index) => completeEach(service, index % 2 === 0 ? ids : [...ids].reverse())),
      );
      const completed = answers.flatMap(({ body }) => body.completed.map(({ id }: { id: string }) => id));
      assert.deepEqual(completed.sort(), ids);
      for (const { status, body } of answers) assert.deepEqual([status, body.completed.length + body.errors.length], [200, 20]);
      assert.equal((await service.call('GET', '/audit?action=completed')).body.total, 20);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('POST /packets/batch/complete', () => {
  const store = stores[0]!;

  test('400 names the field: no ids, more than SERVICE_BATCH_MAX, an empty agent', async (t) => {
    const service = await startService(t, { store, settings: { SERVICE_BATCH_MAX: '2' } });
    const ids = await claimMany(service, 2);
    for (const [body, field] of [
      [{ packet_ids: [] }, 'packet_ids'],
      [{ packet_ids: [...ids, unknownId] }, 'packet_ids'],
      [{}, 'packet_ids'],
      [{ packet_ids: ids, agent_id: '' }, 'agent_id'],
    ]) {
      const answer = await service.call('POST', '/packets/batch/complete', { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.equal(answer.body.code, 'VALIDATION_ERROR');
      assert.equal(answer.body.field, field);
    }
    assert.equal((await service.call('GET', '/packets?status=claimed')).body.total, 2);
  });
});
