import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, newTenant, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { waiting } from '../../support/until.ts';

const settings = { SERVICE_CONNECTIONS_FREE: '1' };
const hitl = { required: true, reason: 'Over 50', question: 'Refund?' };

const get = (service: TestService, id: string, query: string, options: { key?: string; headers?: Record<string, string> } = {}) =>
  service.call('GET', `/packets/${id}?${query}`, options);

for (const store of stores) {
  describe(`A read that waits for a packet, on ${store.name}`, () => {
    test('is answered when the packet has one of the statuses, for every request that waits for it [H100]', async () => {
      const service = await shareService(store, settings);
      const { id } = await createPacket(service);
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } });
      const answering = [1, 2].map(() => get(service, id, 'wait_seconds=60&until=claimed,completed'));
      const { id: changing } = await createPacket(service);
      const other = get(service, changing, 'wait_seconds=60&until_revision=2');
      await waiting(service, 3);
      const answered = await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } });
      for (const answer of await Promise.all(answering)) {
        assert.equal(answer.status, 200);
        assert.equal(answer.text, answered.text);
        assert.equal(answer.headers.etag, answered.headers.etag);
      }
      assert.equal(service.handoff.waiting(), 1);
      assert.equal((await service.call('PATCH', `/packets/${changing}`, { body: { context: { summary: 'New' } } })).status, 200);
      assert.equal((await other).body.revision, 2);
    });

    test('is answered at once if the packet already meets the condition, or with wait_seconds=0', async () => {
      const service = await shareService(store, settings);
      const { id, revision } = await createPacket(service);
      for (const query of [
        'wait_seconds=60&until=created',
        `wait_seconds=60&until_revision=${revision}`,
        'wait_seconds=0&until=completed',
      ]) {
        const answer = await get(service, id, query);
        assert.deepEqual([answer.status, answer.body.id, answer.body.status], [200, id, 'created'], query);
      }
      const headers = { 'if-none-match': '"1"' };
      assert.equal((await get(service, id, 'wait_seconds=60&until=created', { headers })).status, 304);
    });

    test('is answered with the packet as it is at the timeout, and when the service stops [H100]', async (t) => {
      const service = await startService(t, { store });
      const { id } = await createPacket(service);
      t.mock.timers.enable({ apis: ['setTimeout'] });
      const late = get(service, id, 'wait_seconds=60&until=completed');
      await waiting(service, 1);
      t.mock.timers.tick(60_000);
      t.mock.timers.reset();
      assert.deepEqual([(await late).status, (await late).body.status], [200, 'created']);
      const stopped = get(service, id, 'wait_seconds=60&until=completed');
      await waiting(service, 1);
      await service.handoff.stop();
      assert.deepEqual([(await stopped).status, (await stopped).body.status], [200, 'created']);
    });

    test('is answered 404 when the packet is removed [H100]', async () => {
      const service = await shareService(store, settings);
      const { id } = await createPacket(service);
      const answering = get(service, id, 'wait_seconds=60&until=completed');
      await waiting(service, 1);
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      assert.equal((await answering).status, 404);
    });

    test("counts towards the tenant's connections, and ends with its key [H100]", async () => {
      const service = await shareService(store, settings);
      const { key, keyId } = await newTenant(service, { tier: 'free' });
      const { id } = await createPacket(service, {}, key);
      const first = get(service, id, 'wait_seconds=60&until=completed', { key });
      await waiting(service, 1);
      const second = await get(service, id, 'wait_seconds=60&until=completed', { key });
      assert.deepEqual([second.status, second.body.limit?.name], [429, 'connections']);
      assert.equal((await service.call('DELETE', `/keys/${keyId}`)).status, 204);
      await service.handoff.runOnce.recheck();
      assert.equal((await first).status, 401);
      assert.equal(service.handoff.waiting(), 0);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('A request that waits for a packet', () => {
  const store = stores[0]!;

  test('needs a condition, known statuses and at most a minute [H100]', async () => {
    const service = await shareService(store, settings);
    const { id } = await createPacket(service);
    for (const [query, field] of [
      ['wait_seconds=60', 'wait_seconds'],
      ['wait_seconds=61&until=completed', 'wait_seconds'],
      ['wait_seconds=60&until=creatd', 'until'],
      ['wait_seconds=60&until=', 'until'],
      ['wait_seconds=60&until_revision=0', 'until_revision'],
    ]) {
      const answer = await get(service, id, query!);
      assert.deepEqual([answer.status, answer.body.field], [400, field], query!);
    }
  });
});
