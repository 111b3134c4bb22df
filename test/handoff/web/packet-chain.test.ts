import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createHandoffClient } from '../../../src/client.ts';
import { readChain } from '../../../src/handoff/web/data/packet-chain.ts';
import { adminKey, createPacket, packetRequest, startService } from '../../support/service.ts';

test('a chain in the console starts at the oldest ancestor that is left; one that can’t be read now is a failure', async (t) => {
  const service = await startService(t);
  const client = createHandoffClient({ baseUrl: await service.handoff.start(), apiKey: adminKey });
  const first = await createPacket(service);
  const { body: second } = await service.call('POST', `/packets/${first.id}/chain`, { body: packetRequest() });
  const { signal } = new AbortController();
  const read = async () => {
    const { packet, children } = await readChain(client, await client.getPacket({ params: { id: second.id } }), signal);
    return [packet.id, ...children.map((child) => child.packet.id)];
  };
  assert.deepEqual(await read(), [first.id, second.id]);

  const broken = { ...client, getPacket: createHandoffClient({ baseUrl: 'http://127.0.0.1:9', retries: 0 }).getPacket };
  await assert.rejects(readChain(broken, second, signal), /127\.0\.0\.1:9/);

  await service.call('DELETE', `/packets/${first.id}?hard=true`);
  assert.deepEqual(await read(), [second.id]);
});
