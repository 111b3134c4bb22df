import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Hub } from '../../../src/handoff/live/hub.ts';
import { ReplayMemory } from '../../../src/handoff/live/replay-memory.ts';
import { WaitingList, type WaitingRequest } from '../../../src/handoff/live/waiting.ts';
import { Turns } from '../../../src/kit/turns.ts';
import { until } from '../../support/until.ts';

const tenant = { tenant_id: '019cb8d3-f1a2-7c05-9a2b-3c4d5e6f7a8b', tenant_number: 1 };

/** A waiting list over an empty trail. */
const newList = () =>
  new WaitingList(
    new Hub({
      trail: {
        sizesAfter: async () => [],
        between: async () => [],
        range: async () => ({ last: 0, removed: 0 }),
        positions: async () => [],
      },
      memory: new ReplayMemory(() => new Date(0)),
      turns: new Turns(),
      onFailure: (error) => assert.ifError(error),
    }),
  );

/** A request whose claims the test answers. */
function newRequest(): { request: WaitingRequest<string>; claims: PromiseWithResolvers<string | null>[] } {
  const claims: PromiseWithResolvers<string | null>[] = [];
  const claim = () => {
    const outcome = Promise.withResolvers<string | null>();
    claims.push(outcome);
    return outcome.promise;
  };
  return { request: { tenant, wants: () => true, kind: 'any', isOpen: () => true, claim }, claims };
}

describe('Requests that wait for work', () => {
  test('get the packet that was being claimed when they timed out [H101]', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { request, claims } = newRequest();
    const waiting = newList().wait(request, 60_000);
    await until(() => claims.length === 1);
    t.mock.timers.tick(60_000);
    claims[0]!.resolve('packet');
    assert.equal(await waiting, 'packet');
  });

  test('get the packet that was being claimed when the service stopped; later requests get none [H101]', async () => {
    const list = newList();
    const { request, claims } = newRequest();
    const waiting = list.wait(request, 60_000);
    await until(() => claims.length === 1);
    const stopping = list.stop();
    claims[0]!.resolve('packet');
    assert.equal(await waiting, 'packet');
    await stopping;
    assert.equal(await list.wait(request, 60_000), null);
  });

  test('are not kept when their client has left before they begin to wait', async () => {
    const list = newList();
    const { request, claims } = newRequest();
    const waiting = list.wait({ ...request, isOpen: () => false }, 60_000);
    assert.equal(list.size, 0);
    assert.deepEqual([await waiting, claims.length], [null, 0]);
  });

  test('try again when the request that was woken before them has disconnected', async () => {
    const list = newList();
    const [closed, open] = [newRequest(), newRequest()];
    const first = list.wait(closed.request, 60_000);
    const second = list.wait(open.request, 60_000);
    await until(() => closed.claims.length === 1 && open.claims.length === 1);
    open.claims[0]!.resolve(null);
    list.drop(closed.request);
    closed.claims[0]!.resolve(null);
    assert.equal(await first, null);
    await until(() => open.claims.length === 2);
    open.claims[1]!.resolve('packet');
    assert.equal(await second, 'packet');
    assert.equal(list.size, 0);
  });
});
