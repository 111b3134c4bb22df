import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, packetRequest } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

for (const store of stores) {
  describe(`ids on ${store.name}`, () => {
    test('an id may be in upper or lower case, in a path and in a body [H237]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const upper = id.toUpperCase();
      assert.equal((await service.call('GET', `/packets/${upper}`)).body.id, id);
      const claimed = await service.call('POST', '/packets/batch/claim', { body: { packet_ids: [upper, id], agent_id: 'one' } });
      assert.equal(claimed.status, 200);
      assert.deepEqual(
        claimed.body.claimed.map((packet: { id: string }) => packet.id),
        [id],
      );
      assert.equal(claimed.body.errors[0].code, 'CONFLICT');
      const child = await service.call('POST', '/packets', { body: packetRequest({ parent_packet_id: upper }) });
      assert.equal(child.status, 201);
      assert.equal(child.body.parent_packet_id, id);
    });
  });
}
