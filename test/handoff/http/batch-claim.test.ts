import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { happenings, unknownId } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const worker = { agent_id: 'worker', agent_name: 'Worker', framework: 'langgraph' };

const claimEach = (service: TestService, packet_ids: unknown, who: Record<string, unknown> = worker, key?: string) =>
  service.call('POST', '/packets/batch/claim', { body: { packet_ids, ...who }, ...(key === undefined ? {} : { key }) });

/** Creates packets in one batch and returns their ids. */
async function createMany(service: TestService, count: number): Promise<string[]> {
  const { status, body } = await service.call('POST', '/packets/batch', { body: { packets: Array(count).fill(packetRequest()) } });
  assert.equal(status, 201);
  return body.created.map(({ id }: { id: string }) => id);
}

for (const store of stores) {
  describe(`POST /packets/batch/claim on ${store.name}`, () => {
    test('200: every packet is claimed as by POST /packets/{id}/claim, in the given order [H62]', async () => {
      const service = await shareService(store);
      const [one, two, three] = await createMany(service, 3);
      service.clock.turn(5);
      const answer = await claimEach(service, [three, one, two]);
      assert.equal(answer.status, 200);
      assert.deepEqual(Object.keys(answer.body), ['claimed', 'errors']);
      assert.deepEqual(answer.body.errors, []);
      assert.deepEqual(
        answer.body.claimed.map(({ id }: { id: string }) => id),
        [three, one, two],
      );
      for (const packet of answer.body.claimed) {
        assert.equal(packet.status, 'claimed');
        assert.deepEqual(packet.claimed_by, worker);
        assert.equal(packet.claimed_at, '2026-03-01T09:30:05.000Z');
        assert.equal(packet.updated_at, '2026-03-01T09:30:05.000Z');
        assert.equal(packet.revision, 2);
        assert.deepEqual((await service.call('GET', `/packets/${packet.id}`)).body, packet);
        const { events } = (await service.call('GET', `/packets/${packet.id}/history`)).body;
        assert.deepEqual([events.length, events[1].event_type, events[1].actor], [2, 'claimed', 'agent:worker']);
      }
    });

    test('each packet is claimed or refused independently; errors have the reason, and the holder of a held packet [H62]', async () => {
      const service = await shareService(store);
      const other = await newTenant(service);
      const foreign = await createPacket(service, {}, other.key);
      const [free, held, failed, expired, awaiting] = await createMany(service, 5);
      await service.call('POST', `/packets/${held}/claim`, { body: { agent_id: 'first' } });
      await service.call('PATCH', `/packets/${failed}`, { body: { status: 'failed' } });
      await service.call('DELETE', `/packets/${expired}`);
      await service.call('PATCH', `/packets/${awaiting}`, {
        body: { status: 'awaiting_human', hitl: { required: true, reason: '', question: 'Go on?' } },
      });
      const named = [unknownId, held, failed, free, expired, awaiting, foreign.id, 'junk', ''];
      const answer = await claimEach(service, named);
      assert.equal(answer.status, 200);
      assert.deepEqual(
        answer.body.claimed.map(({ id }: { id: string }) => id),
        [free],
      );
      const holder = { agent_id: 'first', agent_name: 'first', framework: null, claimed_at: '2026-03-01T09:30:00.000Z' };
      const expected = [
        { packet_id: unknownId, code: 'NOT_FOUND' },
        { packet_id: held, code: 'CONFLICT', claimed_by: holder },
        { packet_id: failed, code: 'CONFLICT', claimed_by: null },
        { packet_id: expired, code: 'GONE' },
        { packet_id: awaiting, code: 'CONFLICT', claimed_by: null },
        { packet_id: foreign.id, code: 'NOT_FOUND' },
        { packet_id: 'junk', code: 'NOT_FOUND' },
        { packet_id: '', code: 'NOT_FOUND' },
      ];
      assert.deepEqual(
        answer.body.errors.map(({ error, ...rest }: { error: string }) => rest),
        expected,
      );
      for (const { error } of answer.body.errors) assert.notEqual(error, '');
      const missing = answer.body.errors
        .filter(({ code }: { code: string }) => code === 'NOT_FOUND')
        .map(({ error }: { error: string }) => error);
      assert.equal(new Set(missing).size, 1);
      assert.equal((await service.call('GET', `/packets/${foreign.id}`, { key: other.key })).body.status, 'created');
    });

    test('an id that is given twice is claimed once; the second entry is refused with the caller as holder [H65]', async () => {
      const service = await shareService(store);
      const [id] = await createMany(service, 1);
      const answer = await claimEach(service, [id, id, id]);
      assert.equal(answer.status, 200);
      assert.equal(answer.body.claimed.length, 1);
      assert.equal(answer.body.claimed[0].revision, 2);
      assert.deepEqual(
        answer.body.errors.map(({ packet_id, code, claimed_by }: { packet_id: string; code: string; claimed_by: { agent_id: string } }) => [
          packet_id,
          code,
          claimed_by.agent_id,
        ]),
        [
          [id, 'CONFLICT', 'worker'],
          [id, 'CONFLICT', 'worker'],
        ],
      );
      assert.deepEqual(await happenings(service, id!), ['created', 'claimed']);
    });

    test('of parallel batches over the same packets, each packet goes to exactly one', async () => {
      const service = await shareService(store);
      const ids = await createMany(service, 20);
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          claimEach(service, index % 2 === 0 ? ids : [...ids].reverse(), { agent_id: `worker-${index}` }),
        ),
      );
      const winners = new Map<string, string>();
      for (const { status, body } of answers) {
        assert.equal(status, 200);
        assert.equal(body.claimed.length + body.errors.length, 20);
        for (const { id, claimed_by } of body.claimed) {
          assert.ok(!winners.has(id));
          winners.set(id, claimed_by.agent_id);
        }
      }
      assert.equal(winners.size, 20);
      for (const { body } of answers) {
        for (const { packet_id, claimed_by } of body.errors) assert.equal(claimed_by.agent_id, winners.get(packet_id));
      }
      assert.equal((await service.call('GET', '/audit?action=claimed')).body.total, 20);
    });

    test('claiming counts against no daily quota', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free', handoffs_per_day: 1 });
      const { id } = await createPacket(service, {}, key);
      const answer = await claimEach(service, [id], worker, key);
      assert.equal(answer.status, 200);
      assert.equal(answer.body.claimed.length, 1);
    });

    test('the answer to a batch is limited to 16 Mi characters: packets that do not fit are reported and not changed [H67]', async () => {
      const service = await shareService(store);
      const large = { context: { summary: 'x'.repeat(1_000_000) } };
      const ids: string[] = [];
      for (let count = 0; count < 17; count += 1) ids.push((await createPacket(service, large)).id);
      // The answer has reached its limit, so the size of the others does not matter.
      for (let count = 0; count < 2; count += 1) ids.push((await createPacket(service)).id);
      const first = await service.call('POST', '/packets/batch/claim', { body: { packet_ids: ids, agent_id: 'a' } });
      assert.equal(first.status, 200);
      assert.equal(first.body.claimed.length, 17);
      assert.deepEqual(
        first.body.errors.map(({ packet_id, code }: { packet_id: string; code: string }) => [packet_id, code]),
        ids.slice(17).map((id) => [id, 'PAYLOAD_TOO_LARGE']),
      );
      assert.equal((await service.call('GET', '/packets?status=created')).body.total, 2);
      const rest = await service.call('POST', '/packets/batch/claim', { body: { packet_ids: ids.slice(17), agent_id: 'a' } });
      assert.equal(rest.body.claimed.length, 2);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('POST /packets/batch/claim', () => {
  const store = stores[0]!;

  test('400 names the field: no ids, more than SERVICE_BATCH_MAX, no agent', async (t) => {
    const service = await startService(t, { store, settings: { SERVICE_BATCH_MAX: '2' } });
    const ids = await createMany(service, 2);
    for (const [body, field] of [
      [{ packet_ids: [], agent_id: 'a' }, 'packet_ids'],
      [{ packet_ids: [...ids, unknownId], agent_id: 'a' }, 'packet_ids'],
      [{ agent_id: 'a' }, 'packet_ids'],
      [{ packet_ids: ids }, 'agent_id'],
      [{ packet_ids: ids, agent_id: '' }, 'agent_id'],
    ]) {
      const answer = await service.call('POST', '/packets/batch/claim', { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.equal(answer.body.code, 'VALIDATION_ERROR');
      assert.equal(answer.body.field, field);
    }
    assert.equal((await service.call('GET', '/packets?status=created')).body.total, 2);
    assert.equal((await claimEach(service, ids)).status, 200);
  });

  test('a batch names 100 packets by default, and not 101', async () => {
    const service = await shareService(store);
    const ids = Array(101).fill(unknownId);
    assert.equal((await claimEach(service, ids)).status, 400);
    const answer = await claimEach(service, ids.slice(1));
    assert.equal(answer.status, 200);
    assert.equal(answer.body.errors.length, 100);
  });
});
