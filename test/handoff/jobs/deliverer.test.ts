import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Deliverer } from '../../../src/handoff/jobs/deliverer.ts';
import type { DeliveryQueue } from '../../../src/handoff/store/delivery-queues.ts';
import type { Store } from '../../../src/handoff/store/store.ts';

test('A round over 200,000 webhooks returns the milliseconds until the first of their deliveries is due', async () => {
  const now = new Date('2026-07-01T12:00:00.000Z');
  const queue = { kind: 'webhook', url: 'https://example.com/hook', tenant: 1, active: 1, gone: 0 } as DeliveryQueue;
  const found = Array.from({ length: 200_000 }, (_, webhook) => ({ ...queue, webhook, due_at: '2026-07-01T12:00:00.900Z' }));
  found[100_000]!.due_at = '2026-07-01T12:00:00.250Z';
  const deliverer = new Deliverer({
    store: { deliveries: { queues: async () => ({ found, failure: undefined }) } } as unknown as Store,
    clock: () => now,
    onError: assert.fail,
  } as unknown as ConstructorParameters<typeof Deliverer>[0]);
  assert.equal(await deliverer.round(), 250);
});
