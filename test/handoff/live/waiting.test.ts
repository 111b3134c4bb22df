import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Hub } from '../../../src/handoff/live/hub.ts';
import { WaitingList, type Wish } from '../../../src/handoff/live/waiting.ts';

const tenant = { tenant_id: '019cb8d3-f1a2-7c05-9a2b-3c4d5e6f7a8b', tenant_number: 1 };

/** A waiting list over an empty trail. */
const newList = () =>
  new WaitingList(new Hub({ after: async () => [], bounds: async () => ({ last: 0, removed: 0 }), positions: async () => [] }));

/** A wish whose claims the test answers. */
function wishOf(): { wish: Wish<string>; looks: PromiseWithResolvers<string | null>[] } {
  const looks: PromiseWithResolvers<string | null>[] = [];
  const take = () => {
    const look = Promise.withResolvers<string | null>();
    looks.push(look);
    return look.promise;
  };
  return { wish: { tenant, target: 'resolver', kind: 'any', isOpen: () => true, take }, looks };
}

const until = async (condition: () => boolean) => {
  while (!condition()) await new Promise(setImmediate);
};

describe('Requests that wait for work', () => {
  test('get the packet that was being claimed when they timed out', async () => {
    const list = newList();
    const { wish, looks } = wishOf();
    const waiting = list.wait(wish, 60_000);
    await until(() => looks.length === 1);
    const stopping = list.stop();
    looks[0]!.resolve('packet');
    assert.equal(await waiting, 'packet');
    await stopping;
    assert.equal(await list.wait(wish, 60_000), null);
  });

  test('try again when the request that was woken before them has disconnected', async () => {
    const list = newList();
    const [closed, open] = [wishOf(), wishOf()];
    const first = list.wait(closed.wish, 60_000);
    const second = list.wait(open.wish, 60_000);
    await until(() => closed.looks.length === 1 && open.looks.length === 1);
    open.looks[0]!.resolve(null);
    list.drop(closed.wish);
    closed.looks[0]!.resolve(null);
    assert.equal(await first, null);
    await until(() => open.looks.length === 2);
    open.looks[1]!.resolve('packet');
    assert.equal(await second, 'packet');
    assert.equal(list.size, 0);
  });
});
