import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';

import { Deliverer } from '../../../src/handoff/jobs/deliverer.ts';
import type { DeliveryQueue } from '../../../src/handoff/store/delivery-queues.ts';
import type { Store } from '../../../src/handoff/store/store.ts';
import { startReceiver } from '../../support/receiver.ts';
import { packetRequest } from '../../support/service.ts';
import { repeat } from '../../support/until.ts';
import { register, startHooked } from '../../support/webhooks.ts';

test('A round over 200,000 webhooks returns the milliseconds until the first of their deliveries is due', async () => {
  const now = new Date('2026-07-01T12:00:00.000Z');
  const queue = { kind: 'webhook', url: 'https://example.com/hook', tenant: 1, active: 1, gone: 0 } as DeliveryQueue;
  const found = Array.from({ length: 200_000 }, (_, webhook) => ({ ...queue, webhook, due_at: '2026-07-01T12:00:00.900Z' }));
  found[100_000]!.due_at = '2026-07-01T12:00:00.250Z';
  // One that is gone and whose deliveries can't be cancelled delays no other.
  found[0]!.gone = 1;
  const gone = new Error('This webhook fails.');
  const cancel = () => Promise.reject(gone);
  const deliverer = new Deliverer({
    store: { deliveries: { queues: async () => found, cancel } } as unknown as Store,
    clock: () => now,
  } as unknown as ConstructorParameters<typeof Deliverer>[0]);
  await assert.rejects(deliverer.round(), gone);
  found[0]!.gone = 0;
  assert.equal(await deliverer.round(), 250);
});

test('An attempt that its lease would not outlast is not begun: the delivery is due again when the lease ends [H128]', async (t) => {
  const held: ServerResponse[] = [];
  let holds = false;
  const receiver = await startReceiver(t, (response) => void (holds ? held.push(response) : response.writeHead(204).end()));
  const service = await startHooked(t);
  await register(service, receiver.url);
  const deliver = service.handoff.runOnce.deliver;
  const create = async (count: number) => {
    const packets = Array.from({ length: count }, () => packetRequest());
    assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
  };
  // Eight quick answers: twelve attempts at a time, and more deliveries than that are leased.
  await create(8);
  await repeat(deliver, () => receiver.posts.length === 8);
  holds = true;
  await create(40);
  const delivering = deliver();
  await receiver.received(20);
  // Of 20 seconds, eleven are left; an attempt may take twelve.
  service.clock.turn(9);
  holds = false;
  for (const response of held) response.writeHead(204).end();
  await delivering;
  assert.equal(receiver.posts.length, 20);
  service.clock.turn(11);
  await repeat(deliver, () => receiver.posts.length >= 48);
  assert.equal(new Set(receiver.posts.map(({ headers }) => headers['x-service-delivery'])).size, 48);
});
