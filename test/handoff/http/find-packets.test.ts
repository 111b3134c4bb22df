import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { walk } from '../../support/pages.ts';
import { createPacket, packetRequest, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

async function ids(service: TestService, query: string): Promise<string[]> {
  const { status, body, text } = await service.call('GET', `/packets?${query}`);
  assert.equal(status, 200, text);
  assert.equal(body.total, body.packets.length);
  return body.packets.map(({ id }: { id: string }) => id);
}

for (const store of stores) {
  describe(`Finding packets, on ${store.name}`, () => {
    test('claimed_by finds the packets that an agent holds or held last; released packets are not found [H73]', async () => {
      const service = await shareService(store);
      const [one, two] = [await createPacket(service), await createPacket(service)];
      await service.call('POST', `/packets/${one.id}/claim`, { body: { agent_id: 'resolver' } });
      await service.call('POST', `/packets/${two.id}/claim`, { body: { agent_id: 'other' } });
      assert.deepEqual(await ids(service, 'claimed_by=resolver'), [one.id]);
      assert.deepEqual(await ids(service, 'claimed_by=resolver&status=claimed'), [one.id]);
      await service.call('PATCH', `/packets/${two.id}`, { body: { status: 'completed' } });
      assert.deepEqual(await ids(service, 'claimed_by=other'), [two.id]);
      await service.call('POST', `/packets/${one.id}/release`);
      assert.deepEqual(await ids(service, 'claimed_by=resolver'), []);
    });

    test('parent_packet_id finds the children of a packet', async () => {
      const service = await shareService(store);
      const parent = await createPacket(service);
      const child = await service.call('POST', `/packets/${parent.id}/chain`, { body: packetRequest() });
      assert.deepEqual(await ids(service, `parent_packet_id=${parent.id.toUpperCase()}`), [child.body.id]);
      assert.equal((await service.call('GET', '/packets?parent_packet_id=nonsense')).body.field, 'parent_packet_id');
    });

    test('updated_after and updated_before are inclusive', async () => {
      const service = await shareService(store);
      const [one, two] = [await createPacket(service), await createPacket(service)];
      service.clock.turn(60);
      const { body } = await service.call('POST', `/packets/${one.id}/claim`, { body: { agent_id: 'resolver' } });
      assert.deepEqual(await ids(service, `updated_after=${body.updated_at}`), [one.id]);
      assert.deepEqual(await ids(service, `updated_before=${two.updated_at}`), [two.id]);
      assert.equal((await ids(service, `updated_after=${two.updated_at}&updated_before=${body.updated_at}`)).length, 2);
    });

    test('order=asc lists the oldest first, and its cursors are not valid for order=desc [H73]', async () => {
      const service = await shareService(store);
      const made: string[] = [];
      for (let index = 0; index < 5; index += 1) made.push((await createPacket(service)).id);
      const pages = await walk(async (query) => (await service.call('GET', `/packets?${query}`)).body, 'order=asc&limit=2');
      assert.deepEqual(
        pages.flatMap(({ packets }) => packets.map(({ id }: { id: string }) => id)),
        made,
      );
      for (const { next_cursor } of pages.slice(0, -1)) {
        const refused = await service.call('GET', `/packets?limit=2&cursor=${encodeURIComponent(next_cursor)}`);
        assert.deepEqual([refused.status, refused.body.field], [400, 'cursor']);
      }
      assert.deepEqual(await ids(service, 'order=asc&source_agent=frontline&created_after=2026-01-01'), made);
      assert.equal((await service.call('GET', '/packets?order=up')).body.field, 'order');
    });
  });
}
