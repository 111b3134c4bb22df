import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Hub } from '../../src/handoff/live/hub.ts';
import { createPacket, packetRequest, startService } from '../support/service.ts';
import { stores } from '../support/stores.ts';
import { openEvents } from '../support/streams.ts';

const keyed = { 'x-api-key': 'test-admin-key-0123456789' };

for (const store of stores) {
  test(`A failure after a commit fails no request: it is logged with the request's id and counted, and streams get the event later (${store.name})`, async (t) => {
    const service = await startService(t, { store });
    const address = await service.handoff.start();
    const stream = await openEvents(address, '', keyed);
    t.after(() => stream.close());
    await stream.events.next();
    const receive = t.mock.method(Hub.prototype, 'receive', () => {
      throw new Error('the hub is broken');
    });
    const created = await service.call('POST', '/packets', { body: packetRequest() });
    assert.equal(created.status, 201, created.text);
    receive.mock.restore();
    const line = service.logs.map((text) => JSON.parse(text)).find(({ msg }) => msg === 'failed after a commit');
    const request = service.logs.map((text) => JSON.parse(text)).find(({ status }) => status === 201);
    assert.deepEqual(line.request_ids, [request.request_id]);
    assert.equal(line.err.message, 'the hub is broken');
    const metrics = await service.call('GET', '//metrics', { key: null });
    assert.match(metrics.text, /^service_after_commit_failures_total 1$/m);
    await service.handoff.runOnce.look();
    assert.equal((await stream.events.next()).data.packet_id, created.body.id);
    const { id } = await createPacket(service);
    assert.equal((await stream.events.next()).data.packet_id, id);
  });
}
