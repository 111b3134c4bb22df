import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, packetRequest, startService, type TestService } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';

const create = (service: TestService, changes: object = {}) =>
  service.call('POST', '/packets', { body: packetRequest(changes as Record<string, unknown>) });

for (const store of stores) {
  describe(`Guards against runaway agents, on ${store.name}`, () => {
    test('a chain has at most the configured number of packets from its root [H117]', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_CHAIN_DEPTH_MAX: '3' } });
      let { id } = await createPacket(service);
      for (const depth of [2, 3]) {
        const child = await service.call('POST', `/packets/${id}/chain`, { body: packetRequest() });
        assert.equal(child.status, 201, `depth ${depth}`);
        id = child.body.id;
      }
      const refused = await service.call('POST', `/packets/${id}/chain`, { body: packetRequest() });
      assert.equal(refused.status, 409);
      assert.equal(refused.body.code, 'LOOP_GUARD');
      assert.match(refused.body.detail, /4 packets.* 3 /);
      assert.equal((await create(service, { parent_packet_id: id })).body.code, 'LOOP_GUARD');
    });

    test('a source agent has at most the configured number of open packets, even with concurrent creates [H117]', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_OPEN_PACKETS_PER_AGENT: '3' } });
      const answers = await Promise.all(Array.from({ length: 8 }, () => create(service)));
      const made = answers.filter(({ status }) => status === 201);
      assert.equal(made.length, 3);
      assert.deepEqual([...new Set(answers.filter(({ status }) => status !== 201).map(({ body }) => body.code))], ['LOOP_GUARD']);
      await service.call('DELETE', `/packets/${made[0]!.body.id}`);
      assert.equal((await create(service)).status, 201);
    });

    test('in a batch the guard applies item by item [H117]', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_OPEN_PACKETS_PER_AGENT: '2' } });
      const { status, body } = await service.call('POST', '/packets/batch', {
        body: { packets: [packetRequest(), packetRequest(), packetRequest()] },
      });
      assert.equal(status, 201);
      assert.equal(body.created.length, 2);
      assert.deepEqual(
        body.errors.map(({ index, code }: { index: number; code: string }) => ({ index, code })),
        [{ index: 2, code: 'LOOP_GUARD' }],
      );
    });

    test('0 turns a guard off', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_CHAIN_DEPTH_MAX: '0', SERVICE_OPEN_PACKETS_PER_AGENT: '0' } });
      const { id } = await createPacket(service);
      assert.equal((await service.call('POST', `/packets/${id}/chain`, { body: packetRequest() })).status, 201);
    });
  });
}
