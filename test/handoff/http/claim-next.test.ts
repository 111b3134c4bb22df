import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, newTenant, packetRequest, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { waiting } from '../../support/until.ts';
import { assertEachOnce, createPackets, runWorkers } from '../../support/workers.ts';

/** The number of packets for a hundred workers. */
const packetCount = 1_000;

const next = (service: TestService, body: object = {}, options: { key?: string; headers?: Record<string, string> } = {}) =>
  service.call('POST', '/packets/claim-next', { body: { agent_id: 'resolver', ...body }, ...options });

/** A packet for an agent. */
const packetFor = (service: TestService, agent: string, metadata: object = {}) =>
  createPacket(service, { metadata: { ...(packetRequest().metadata as object), target_agent: { id: agent, name: agent }, ...metadata } });

/** Only a test of connections has a tenant of the tier free. */
const settings = { SERVICE_CONNECTIONS_FREE: '1' };

for (const store of stores) {
  describe(`The next packet, on ${store.name}`, () => {
    test('is the oldest of the highest priority among the packets for the agent [H101]', async () => {
      const service = await shareService(store, settings);
      const made: Record<string, string> = {};
      for (const [name, priority, agent] of [
        ['normal', 'normal', 'resolver'],
        ['low', 'low', 'resolver'],
        ['high', 'high', 'resolver'],
        ['foreign', 'critical', 'somebody'],
        ['high again', 'high', 'resolver'],
        ['critical', 'critical', 'resolver'],
      ])
        made[(await packetFor(service, agent!, { priority })).id] = name!;
      const taken: string[] = [];
      for (let answer = await next(service); answer.status === 200; answer = await next(service)) {
        assert.equal(answer.body.status, 'claimed');
        assert.deepEqual(answer.body.claimed_by, { agent_id: 'resolver', agent_name: 'resolver', framework: null });
        assert.equal(answer.headers.etag, '"2"');
        taken.push(made[answer.body.id]!);
      }
      assert.deepEqual(taken, ['critical', 'high', 'high again', 'normal', 'low']);
      assert.equal((await next(service, { target_agent: '*' })).body.metadata.target_agent.id, 'somebody');
    });

    test('can be filtered by tags, all of which must match, and priorities, any of which may match [H101]', async () => {
      const service = await shareService(store, settings);
      await packetFor(service, 'resolver', { tags: ['billing'] });
      const both = await packetFor(service, 'resolver', { tags: ['billing', 'urgent'], priority: 'low' });
      assert.equal((await next(service, { tags: ['billing', 'urgent'], priorities: ['high', 'normal'] })).status, 204);
      const answer = await next(service, { tags: ['urgent', 'billing'], priorities: ['low', 'high'] });
      assert.equal(answer.body.id, both.id);
    });

    test('is 204 without a body if no packet is available', async () => {
      const service = await shareService(store, settings);
      const answer = await next(service);
      assert.equal(answer.status, 204);
      assert.equal(answer.text, '');
    });

    test('goes to exactly one of many workers: no packet twice, none left over, no 409 [H101]', async () => {
      const service = await shareService(store, settings);
      await createPackets(service, packetCount);
      assertEachOnce(await runWorkers([service], 100), packetCount);
      assert.equal((await service.call('GET', '/audit?action=claimed&limit=1')).body.total, packetCount);
      assert.equal((await service.call('GET', '/packets?status=created&limit=1')).body.total, 0);
    });

    test('goes to one waiting worker each, whether created before the wait or during it [H101]', async (t) => {
      const service = await startService(t, { store });
      await createPackets(service, 300);
      const working = runWorkers([service], 100, { total: 600, wait_seconds: 60 });
      await createPackets(service, 300);
      assertEachOnce(await working, 600);
    });

    test('a waiting request is answered by the commit of a packet', async () => {
      const service = await shareService(store, settings);
      const answering = next(service, { wait_seconds: 60, lease_seconds: 300 });
      await waiting(service, 1);
      const { id } = await packetFor(service, 'resolver');
      const answer = await answering;
      assert.equal(answer.status, 200);
      assert.equal(answer.body.id, id);
      assert.match(answer.body.lease.token, /^lease_/);
      assert.equal(service.handoff.waiting(), 0);
    });

    test('a released packet also wakes a waiting request', async () => {
      const service = await shareService(store, settings);
      const { id } = await packetFor(service, 'resolver');
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'other' } });
      const answering = next(service, { wait_seconds: 60 });
      await waiting(service, 1);
      await service.call('POST', `/packets/${id}/release`);
      assert.equal((await answering).body.id, id);
    });

    test('waiting requests are served in order of arrival, one packet each [H101]', async () => {
      const service = await shareService(store, settings);
      const order: number[] = [];
      const answers: Promise<TestAnswer>[] = [];
      for (let index = 0; index < 5; index += 1) {
        answers.push(
          next(service, { agent_id: `worker-${index}`, target_agent: 'resolver', wait_seconds: 60 }).then((answer) => {
            order.push(index);
            return answer;
          }),
        );
        await waiting(service, index + 1);
      }
      for (let index = 0; index < 5; index += 1) {
        await packetFor(service, 'resolver');
        await answers[index];
      }
      assert.deepEqual(order, [0, 1, 2, 3, 4]);
    });

    test('a waiting request with other tags does not keep a packet from a request that matches it', async () => {
      const service = await shareService(store, settings);
      const other = next(service, { tags: ['rare'], wait_seconds: 60 });
      await waiting(service, 1);
      const any = next(service, { wait_seconds: 60 });
      await waiting(service, 2);
      const plain = await packetFor(service, 'resolver');
      assert.equal((await any).body.id, plain.id);
      const rare = await packetFor(service, 'resolver', { tags: ['rare'] });
      assert.equal((await other).body.id, rare.id);
    });

    test('a stop of the service answers waiting requests with 204 [H101]', async (t) => {
      const service = await startService(t, { store });
      const answering = next(service, { wait_seconds: 60 });
      await waiting(service, 1);
      await service.handoff.stop();
      assert.equal((await answering).status, 204);
    });

    test("waiting requests count towards the tenant's connections [H101]", async () => {
      const service = await shareService(store, settings);
      const { key } = await newTenant(service, { tier: 'free' });
      const first = next(service, { wait_seconds: 60 }, { key });
      await waiting(service, 1);
      const second = await next(service, { wait_seconds: 60 }, { key });
      assert.equal(second.status, 429);
      assert.equal(second.body.limit.name, 'connections');
      assert.equal((await next(service, {}, { key })).status, 204);
      await service.call('POST', '/packets', { body: packetRequest(), key });
      assert.equal((await first).status, 200);
      assert.equal((await next(service, {}, { key })).status, 204);
    });

    test('a key that is revoked ends the wait [H101]', async () => {
      const service = await shareService(store, settings);
      const { key, keyId } = await newTenant(service);
      const answering = next(service, { wait_seconds: 60 }, { key });
      await waiting(service, 1);
      assert.equal((await service.call('DELETE', `/keys/${keyId}`)).status, 204);
      await service.handoff.runOnce.recheck();
      // A claim in progress ends first.
      assert.equal((await answering).status, 204);
      assert.equal(service.handoff.waiting(), 0);
    });

    test('an Idempotency-Key repeats an answer with a packet, but not a 204 [H101]', async () => {
      const service = await shareService(store, settings);
      const headers = { 'idempotency-key': 'next-1' };
      assert.equal((await next(service, {}, { headers })).status, 204);
      await packetFor(service, 'resolver');
      await packetFor(service, 'resolver');
      const first = await next(service, {}, { headers });
      assert.equal(first.status, 200);
      const again = await next(service, {}, { headers });
      assert.equal(again.text, first.text);
      assert.equal(again.headers['idempotency-replayed'], 'true');
    });

    test('for 24 hours a repeat with the same Idempotency-Key gets the same packet with the same token [H101, H262]', async () => {
      const service = await shareService(store, settings);
      const headers = { 'idempotency-key': 'next-1' };
      const wanted = { lease_seconds: 60 };
      await packetFor(service, 'resolver');
      await packetFor(service, 'resolver');
      const first = await next(service, wanted, { headers });
      assert.equal(first.status, 200);
      assert.match(first.body.lease.token, /^lease_/);
      service.clock.turn(24 * 3600 - 1);
      await service.handoff.runOnce.prune();
      const again = await next(service, wanted, { headers });
      assert.equal(again.status, 200);
      assert.equal(again.body.lease.token, first.body.lease.token);
      assert.equal(again.text, first.text);
      service.clock.turn(2);
      await service.handoff.runOnce.prune();
      const later = await next(service, wanted, { headers });
      assert.equal(later.status, 200);
      assert.notEqual(later.body.lease.token, first.body.lease.token);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('The next packet', () => {
  const store = stores[0]!;

  test('errors name the field of the request', async () => {
    const service = await shareService(store, settings);
    for (const [body, field] of [
      [{ wait_seconds: 61 }, 'wait_seconds'],
      [{ wait_seconds: -1 }, 'wait_seconds'],
      [{ lease_seconds: 0 }, 'lease_seconds'],
      [{ priorities: ['urgent'] }, 'priorities.0'],
      [{ priorities: [] }, 'priorities'],
      [{ agent_id: '' }, 'agent_id'],
    ] as const) {
      const answer = await next(service, body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.equal(answer.body.field, field);
    }
  });
});
