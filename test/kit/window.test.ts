import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { SlidingWindow, type WindowState, Windows } from '../../src/kit/window.ts';

const minuteMs = 60_000;

/** The simplest sliding window: a list of all times. */
class NaiveWindow {
  readonly #lengthMs: number;
  #moments: number[] = [];

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  count(now: number): number {
    return this.#moments.filter((moment) => moment > now - this.#lengthMs).length;
  }

  add(now: number): void {
    this.#moments.push(now);
  }

  uncountLast(now: number): void {
    // A request that has left the window can't be uncounted.
    if (this.count(now) > 0) this.#moments.pop();
  }

  peek(now: number, limit: number): WindowState {
    const counted = this.#moments.filter((moment) => moment > now - this.#lengthMs);
    const allowed = counted.length < limit;
    // The time after which fewer than `limit` requests are left.
    const leaving = counted[counted.length - limit];
    return {
      allowed,
      remaining: Math.max(0, limit - counted.length),
      retryAfterMs: allowed ? 0 : leaving! + this.#lengthMs - now,
      resetMs: counted.length === 0 ? 0 : counted[0]! + this.#lengthMs - now,
    };
  }
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('request' as const),
      afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 40 }), fc.constant(minuteMs)),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('take back' as const), afterMs: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('other limit' as const), afterMs: fc.constant(0) }) },
);

describe('A sliding window', () => {
  test('allows exactly the limit, and no more until the first request has left', () => {
    const window = new SlidingWindow(minuteMs);
    for (let request = 0; request < 60; request += 1) {
      assert.equal(window.peek(0, 60).allowed, true);
      window.add(0, 60);
    }
    assert.deepEqual(window.peek(0, 60), { allowed: false, remaining: 0, retryAfterMs: minuteMs, resetMs: minuteMs });
    assert.equal(window.peek(minuteMs - 1, 60).allowed, false);
    assert.deepEqual(window.peek(minuteMs, 60), { allowed: true, remaining: 60, retryAfterMs: 0, resetMs: 0 });
  });

  test('counts nothing when it is only peeked at', () => {
    const window = new SlidingWindow(minuteMs);
    for (let question = 0; question < 100; question += 1) assert.equal(window.peek(question, 1).remaining, 1);
    assert.equal(window.isEmpty(100), true);
  });

  test('is empty once all counted requests have left', () => {
    const window = new SlidingWindow(minuteMs);
    window.add(0, 60);
    assert.equal(window.isEmpty(minuteMs - 1), false);
    assert.equal(window.isEmpty(minuteMs), true);
  });

  test('uncounts the latest request, and nothing when it is empty', () => {
    const window = new SlidingWindow(minuteMs);
    window.uncountLast();
    window.add(0, 2);
    window.add(10, 2);
    assert.equal(window.peek(10, 2).allowed, false);
    window.uncountLast();
    assert.deepEqual(window.peek(10, 2), { allowed: true, remaining: 1, retryAfterMs: 0, resetMs: minuteMs - 10 });
    window.uncountLast();
    assert.equal(window.isEmpty(10), true);
  });

  test('returns a sufficient wait when the limit has been lowered', () => {
    const window = new SlidingWindow(minuteMs);
    for (const moment of [0, 10, 20, 30]) window.add(moment, 10);
    const { allowed, retryAfterMs } = window.peek(30, 2);
    assert.equal(allowed, false);
    assert.equal(window.peek(30 + retryAfterMs - 1, 2).allowed, false);
    assert.equal(window.peek(30 + retryAfterMs, 2).allowed, true);
  });

  test('always agrees with a plain list of timestamps [H224]', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.constantFrom(100, minuteMs),
        fc.array(step, { maxLength: 60 }),
        (limit, lengthMs, steps) => {
          const window = new SlidingWindow(lengthMs);
          const naive = new NaiveWindow(lengthMs);
          let now = 1_000_000;
          for (const { kind, afterMs } of steps) {
            now += afterMs;
            if (kind === 'other limit') {
              assert.deepEqual(window.peek(now, limit + 2), naive.peek(now, limit + 2));
              continue;
            }
            const state = window.peek(now, limit);
            assert.deepEqual(state, naive.peek(now, limit));
            if (kind === 'take back') {
              window.uncountLast();
              naive.uncountLast(now);
            } else if (state.allowed) {
              window.add(now, limit);
              naive.add(now);
            }
          }
          assert.deepEqual(window.peek(now, limit), naive.peek(now, limit));
        },
      ),
      { numRuns: 500 },
    );
  });

  test('never exceeds a limit above 4,096 either, and returns sufficient waits', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 50, maxLength: 50 });
    fc.assert(
      fc.property(gaps, (pattern) => {
        const lengthMs = 10_000;
        const limit = 5_000;
        const window = new SlidingWindow(lengthMs);
        const passed: number[] = [];
        let now = 0;
        for (let request = 0; request < 12_000; request += 1) {
          now += pattern[request % pattern.length]!;
          const { allowed, retryAfterMs } = window.peek(now, limit);
          if (!allowed) {
            assert.ok(retryAfterMs >= 1 && retryAfterMs <= lengthMs + Math.ceil(lengthMs / 4096));
            now += Math.ceil(retryAfterMs);
            assert.equal(window.peek(now, limit).allowed, true);
          }
          window.add(now, limit);
          passed.push(now);
          const earlier = passed[passed.length - 1 - limit];
          assert.ok(earlier === undefined || now - earlier >= lengthMs, `${limit + 1} requests within ${now - earlier!} ms`);
        }
      }),
      { numRuns: 20 },
    );
  });

  test('after the clock is set back nobody waits longer than the length of the window', () => {
    for (const limit of [5, 10_000]) {
      const window = new SlidingWindow(minuteMs);
      const now = 10_000_000;
      for (let index = 0; index < limit; index += 1) window.add(now, limit);
      const back = now - 3_600_000;
      const state = window.peek(back, limit);
      assert.equal(state.allowed, false);
      assert.ok(state.retryAfterMs > 0 && state.retryAfterMs <= minuteMs, String(state.retryAfterMs));
      assert.equal(window.peek(back + state.retryAfterMs, limit).allowed, true);
    }
  });
});

test('of too many windows the empty ones are dropped first, then the oldest, a thousand at once', () => {
  const windows = new Windows(minuteMs);
  const [most, kept] = [20_000, 19_000];
  const used = (name: number, now: number) => windows.of(`${name}`, now).add(now, 60);
  const left = (name: number, now: number) => windows.of(`${name}`, now).peek(now, 60).remaining;
  for (let name = 0; name < most; name += 1) used(name, name % 2 === 0 ? 0 : minuteMs);
  // Half of them are empty, which leaves enough room.
  used(most, minuteMs);
  assert.deepEqual([left(1, minuteMs), left(most - 1, minuteMs), left(most, minuteMs)], [59, 59, 59]);
  // None is empty, so the oldest are dropped.
  const first = most + 1;
  for (let name = first; name <= first + most; name += 1) used(name, minuteMs);
  assert.deepEqual([left(first + most - kept, minuteMs), left(first + most, minuteMs)], [59, 59]);
  assert.deepEqual([left(1, minuteMs), left(first, minuteMs)], [60, 60]);
});
