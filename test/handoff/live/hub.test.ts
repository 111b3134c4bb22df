import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { TrailEvent } from '../../../src/handoff/live/event.ts';
import { Hub, type Listener } from '../../../src/handoff/live/hub.ts';
import { parseHints } from '../../../src/handoff/live/relay.ts';
import { AsyncQueue } from '../../support/streams.ts';

const eventAt = (position: number): TrailEvent => ({
  position,
  type: 'packet.created',
  payload: '{}',
  packet_id: 'p',
  status: 'created',
  source_agent: 's',
  target_agent: 't',
  claimant: null,
});

test("a hanging read of one tenant's trail does not delay other tenants", async () => {
  const positions = new Map([
    [1, 0],
    [2, 0],
  ]);
  let isStuck = false;
  const hub = new Hub({
    after: (tenant, position) => {
      if (isStuck && tenant === 1) return new Promise(() => undefined);
      return Promise.resolve(position < positions.get(tenant)! ? [eventAt(positions.get(tenant)!)] : []);
    },
    bounds: async () => ({ last: 0, removed: 0 }),
    positions: async (tenants) => tenants.map((tenant) => ({ tenant, position: positions.get(tenant)! })),
  });
  const heard = new AsyncQueue<number>();
  for (const tenant of [1, 2]) {
    const listener: Listener = {
      position: 0,
      isOpen: () => true,
      receive({ position }) {
        heard.put(tenant * 100 + position);
        return 1;
      },
    };
    await hub.join({ tenant_id: `t${tenant}`, tenant_number: tenant }, listener);
  }
  isStuck = true;
  positions.set(1, 1);
  await hub.look();
  positions.set(2, 1);
  await hub.look();
  assert.equal(await heard.next(), 201);
});

test('a message of the broker is a list of tenants and positions; anything else is ignored', () => {
  assert.deepEqual(parseHints('[[1,2],[3,4]]'), [
    [1, 2],
    [3, 4],
  ]);
  const none = [
    '',
    'nonsense',
    'null',
    '{}',
    '[1,2]',
    '[[1]]',
    '[[1,2,3]]',
    '[["1",2]]',
    '[[1,-2]]',
    '[[0,1]]',
    '[[1,1e300]]',
    '[[1,null]]',
  ];
  for (const message of none) assert.equal(parseHints(message), undefined, message);
  assert.equal(parseHints(`[[1,2]${' '.repeat(1024 * 1024)}]`), undefined);
});
