import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { TrailEvent } from '../../../src/handoff/live/event.ts';
import { Hub, type Listener, type Trail } from '../../../src/handoff/live/hub.ts';
import { ReplayMemory } from '../../../src/handoff/live/replay-memory.ts';
import { Turns } from '../../../src/kit/turns.ts';
import { TestClock } from '../../support/service.ts';
import { AsyncQueue } from '../../support/streams.ts';
import { countTurns, until } from '../../support/until.ts';

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

/** A hub over a trail, its clock and its failures. */
function newHub(trail: Partial<Trail>, memory?: number) {
  const clock = new TestClock();
  const failures: unknown[] = [];
  const replays = new ReplayMemory(clock.read, memory);
  const hub = new Hub({
    trail: {
      sizesAfter: async () => [],
      between: async () => [],
      range: async () => ({ last: 0, removed: 0 }),
      positions: async () => [],
      ...trail,
    },
    memory: replays,
    turns: new Turns(),
    onFailure: (error) => void failures.push(error),
  });
  return { hub, clock, failures, replays };
}

type TestListener = Listener & { readonly ends: unknown[] };

function newListener(receive: Listener['receive']): TestListener {
  const ends: unknown[] = [];
  return {
    position: 0,
    ends,
    isOpen: () => ends.length === 0,
    receive,
    endSlow: () => void ends.push('slow'),
    fail: (error) => void ends.push(error),
  };
}

const tenantOf = (number: number) => ({ tenant_id: `0000000${number}-f1a2-7c05-9a2b-3c4d5e6f7a8b`, tenant_number: number });

/** Resolves once so many replays wait for memory. */
const waitingFor = (replays: ReplayMemory, count: number) =>
  until(
    () => replays.waiting === count,
    () => `${replays.waiting} replays wait, not ${count}`,
  );

/** A trail of 20 events of a mebibyte each. */
const megabyte = 1024 * 1024;
const largeTrail = {
  sizesAfter: async (_tenant: number, position: number, limit: number) =>
    Array.from({ length: Math.min(limit, 20 - position) }, (_, index) => ({ position: position + index + 1, bytes: megabyte })),
  between: async (_tenant: number, after: number, upTo: number) =>
    Array.from({ length: upTo - after }, (_, index) => ({ ...eventAt(after + index + 1), payload: `{"x":"${'x'.repeat(megabyte - 8)}"}` })),
};

describe('Replays', () => {
  test('of clients that read nothing hold no more memory than the budget; the others wait, and get all of it [H163]', async () => {
    const { hub, replays } = newHub(largeTrail, 16 * megabyte);
    const unread: (() => void)[] = [];
    let held = 0;
    let isReading = false;
    const receive: Listener['receive'] = (event, done) => {
      const { length } = event.sse;
      held += length;
      const take = () => {
        held -= length;
        done!();
      };
      if (isReading) setImmediate(take);
      else unread.push(take);
      return length;
    };
    const listeners = [1, 2, 3, 4, 5].flatMap((number) =>
      Array.from({ length: 200 }, () => ({ tenant: tenantOf(number), listener: newListener(receive) })),
    );
    const joined = Promise.all(listeners.slice(0, 300).map(({ tenant, listener }) => hub.join(tenant, listener)));
    await waitingFor(replays, 300 - 8);
    await until(() => unread.length >= 8);
    // Two tenants hold a quarter each, whatever the number of their streams.
    assert.equal(replays.bytes, 8 * megabyte);
    assert.ok(held < 8.1 * megabyte, String(held));
    const rest = listeners.slice(300).map(({ tenant, listener }) => hub.join(tenant, listener));
    await waitingFor(replays, 1000 - 16);
    await until(() => unread.length >= 16);
    assert.equal(replays.bytes, 16 * megabyte);
    assert.ok(held < 16.1 * megabyte, String(held));
    isReading = true;
    for (const take of unread.splice(0)) take();
    // The first and the last are enough to see that those that wait get everything.
    for (const { tenant, listener } of listeners)
      if (listener !== listeners[0]!.listener && listener !== listeners[999]!.listener) {
        listener.ends.push('gone');
        hub.leave(tenant, listener);
      }
    await Promise.all([joined, ...rest]);
    assert.deepEqual([listeners[0]!.listener.position, listeners[999]!.listener.position], [20, 20]);
    assert.deepEqual([replays.bytes, replays.waiting, held], [0, 0, 0]);
  });

  test('that hold memory for 30 seconds end as slow while others wait for it, and only then', async () => {
    const { hub, clock, replays } = newHub(largeTrail, 8 * megabyte);
    const receive: Listener['receive'] = (event) => event.sse.length;
    const holders = [newListener(receive), newListener(receive)];
    for (const holder of holders) void hub.join(tenantOf(1), holder);
    await until(() => replays.bytes === 2 * megabyte);
    clock.turn(60);
    await hub.poll();
    assert.deepEqual(
      holders.map(({ ends }) => ends),
      [[], []],
    );
    const next = newListener(receive);
    void hub.join(tenantOf(1), next);
    await waitingFor(replays, 1);
    clock.turn(29);
    await hub.poll();
    assert.deepEqual(holders[0]!.ends, []);
    clock.turn(1);
    await hub.poll();
    assert.deepEqual(
      holders.map(({ ends }) => ends),
      [['slow'], ['slow']],
    );
    assert.deepEqual(next.ends, []);
  });

  test('after the clock was set back, that hold memory while others wait for it have 30 seconds from then [H162]', async () => {
    const { hub, clock, replays } = newHub(largeTrail, 8 * megabyte);
    const listeners = Array.from({ length: 3 }, () => newListener((event) => event.sse.length));
    for (const listener of listeners) void hub.join(tenantOf(1), listener);
    await waitingFor(replays, 1);
    const ends = () => listeners.map((listener) => listener.ends.length);
    clock.turn(-3600);
    await hub.poll();
    clock.turn(29);
    await hub.poll();
    assert.deepEqual(ends(), [0, 0, 0]);
    clock.turn(1);
    await hub.poll();
    assert.deepEqual(ends(), [1, 1, 0]);
  });

  test('of streams that have ended stop waiting, and streams without past events need no memory', async () => {
    const { hub, replays } = newHub(largeTrail, 4 * megabyte);
    const holder = newListener((event) => event.sse.length);
    void hub.join(tenantOf(1), holder);
    const waiting = newListener(() => assert.fail('no event was expected'));
    const joining = hub.join(tenantOf(1), waiting);
    await waitingFor(replays, 1);
    const atEnd = newListener(() => 1);
    atEnd.position = 20;
    await hub.join(tenantOf(1), atEnd);
    waiting.ends.push('gone');
    hub.leave(tenantOf(1), waiting);
    await joining;
    assert.equal(replays.waiting, 0);
  });
});

test('of many streams that catch up, one page is read and sent in each turn of the event loop', async () => {
  const readIn: number[] = [];
  const page = { sizesAfter: async (_tenant: number, position: number) => (position === 0 ? [{ position: 1, bytes: 1000 }] : []) };
  await countTurns(async (turn) => {
    const { hub } = newHub({
      ...page,
      async between() {
        readIn.push(turn());
        return [{ ...eventAt(1), payload: '{}' }];
      },
    });
    const listeners = Array.from({ length: 20 }, () => newListener(() => 0));
    await Promise.all(listeners.map((listener) => hub.join(tenantOf(1), listener)));
  });
  assert.equal(readIn.length, 20);
  assert.equal(new Set(readIn).size, 20, `${readIn}`);
});

test('a stream that resumes and one that catches up read one page in each turn of the event loop, also of events that streams do not send', async () => {
  const length = 4000;
  let last = length;
  const reads: number[] = [];
  await countTurns(async (turn) => {
    const { hub } = newHub({
      sizesAfter: async (_tenant, position, limit) => {
        reads.push(turn());
        return Array.from({ length: Math.min(limit, last - position) }, (_, index) => ({ position: position + index + 1, bytes: 0 }));
      },
      positions: async () => [{ tenant: 1, position: last }],
    });
    await hub.join(
      tenantOf(1),
      newListener(() => 0),
    );
    last = 2 * length;
    await hub.poll();
    await until(() => reads.length > (2 * length) / 200);
  });
  assert.equal(new Set(reads).size, reads.length);
});

test('two streams of a tenant read the trail at once to catch up, and those of other tenants do not wait for them', async () => {
  const started: number[] = [];
  const reads: (() => void)[] = [];
  const { hub } = newHub({
    sizesAfter: async (tenant) => {
      started.push(tenant);
      if (tenant === 1) await new Promise<void>((resolve) => void reads.push(resolve));
      return [];
    },
  });
  const joins = [1, 1, 1, 1, 1, 2].map((number) =>
    hub.join(
      tenantOf(number),
      newListener(() => 0),
    ),
  );
  await joins.at(-1);
  assert.deepEqual(started, [1, 1, 2]);
  for (const count of [4, 5, 6]) {
    reads.shift()!();
    await until(() => started.length >= count);
    assert.deepEqual([started.length, reads.length], [count, 2]);
  }
  for (const end of reads) end();
  await Promise.all(joins);
});

test('A listener that fails is told so and removed; the others get the event, and the failure is reported', async () => {
  const { hub, failures } = newHub({});
  const heard: number[] = [];
  const broken = newListener(() => {
    throw new Error('broken');
  });
  const whole = newListener(({ position }) => heard.push(position));
  await hub.join(tenantOf(1), broken);
  await hub.join(tenantOf(1), whole);
  hub.receive({ tenant: 1, first: 1, last: 1, events: [eventAt(1)] });
  await until(() => heard.length === 1 && hub.size === 1);
  hub.receive({ tenant: 1, first: 2, last: 2, events: [eventAt(2)] });
  await until(() => heard.length === 2);
  assert.deepEqual(heard, [1, 2]);
  assert.equal(failures.length, 1);
  assert.equal(broken.ends.length, 1);
});

test('After a failed read of the trail the hub reports it, and reads again at the next round', async () => {
  let last = 0;
  let isFailing = true;
  const heard: number[] = [];
  const { hub, failures } = newHub({
    sizesAfter: async (_tenant, position) => (position < last ? [{ position: last, bytes: 2 }] : []),
    between: async (_tenant, _after, upTo) => {
      if (isFailing) throw new Error('failing');
      return [eventAt(upTo)];
    },
    positions: async () => [{ tenant: 1, position: last }],
  });
  await hub.join(
    tenantOf(1),
    newListener(({ position }) => heard.push(position)),
  );
  last = 1;
  hub.hint(1, 1);
  await until(() => failures.length === 1);
  isFailing = false;
  await hub.poll();
  await until(() => heard.length === 1);
});

test("a hanging read of one tenant's trail does not delay other tenants [H166]", async () => {
  const positions = new Map([
    [1, 0],
    [2, 0],
  ]);
  let isStuck = false;
  const { hub } = newHub({
    sizesAfter: (tenant, position) => {
      if (isStuck && tenant === 1) return new Promise(() => undefined);
      return Promise.resolve(position < positions.get(tenant)! ? [{ position: positions.get(tenant)!, bytes: 2 }] : []);
    },
    between: async (_tenant, _after, upTo) => [eventAt(upTo)],
    positions: async (tenants) => tenants.map((tenant) => ({ tenant, position: positions.get(tenant)! })),
  });
  const heard = new AsyncQueue<number>();
  for (const tenant of [1, 2]) {
    const listener = newListener(({ position }) => {
      heard.put(tenant * 100 + position);
      return 1;
    });
    await hub.join({ tenant_id: `t${tenant}`, tenant_number: tenant }, listener);
  }
  isStuck = true;
  positions.set(1, 1);
  await hub.poll();
  positions.set(2, 1);
  await hub.poll();
  assert.equal(await heard.next(), 201);
});
