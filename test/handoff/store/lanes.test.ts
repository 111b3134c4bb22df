import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Lanes } from '../../../src/handoff/store/lanes.ts';
import { FairQueue } from '../../../src/kit/fair-queue.ts';

/** Lanes whose places are strings, and a clock that work advances. */
function timed() {
  let nowMs = 0;
  const laneOf = (runner: string) => ({ queue: new FairQueue({ concurrency: 1, perOwner: 1 }), runner });
  const lanes = new Lanes({ fast: laneOf('fast'), slow: laneOf('slow'), longMs: 50, stayMs: 30_000, clock: () => new Date(nowMs) });
  const pass = (milliseconds: number) => {
    nowMs += milliseconds;
  };
  /** Work that takes the given time; returns the lane it ran in. */
  const taking = (milliseconds: number) => async (runner: string) => {
    pass(milliseconds);
    return { value: runner, tookMs: milliseconds };
  };
  return { lanes, pass, taking };
}

describe('Lanes', () => {
  test('an owner with long work uses the slow lane for a while after it; other owners do not [H98]', async () => {
    const { lanes, pass, taking } = timed();
    assert.equal(await lanes.run('a', taking(50)), 'fast');
    assert.equal(await lanes.run('a', taking(51)), 'fast');
    assert.equal(await lanes.run('a', taking(1)), 'slow');
    assert.equal(await lanes.run('b', taking(1)), 'fast');
    pass(20_000);
    assert.equal(await lanes.run('a', taking(51)), 'slow');
    pass(29_999);
    assert.equal(await lanes.run('a', taking(0)), 'slow');
    pass(1);
    assert.equal(await lanes.run('a', taking(0)), 'fast');
  });

  test('each owner leaves the slow lane independently', async () => {
    const { lanes, pass, taking } = timed();
    await lanes.run('a', taking(51));
    await lanes.run('b', taking(51));
    pass(29_960);
    assert.deepEqual([await lanes.run('a', taking(0)), await lanes.run('b', taking(0))], ['fast', 'slow']);
  });

  test('after the clock is set back, no owner stays in the slow lane for longer', async () => {
    const { lanes, pass, taking } = timed();
    pass(3_600_000);
    await lanes.run('a', taking(51));
    pass(-1_800_000);
    assert.equal(await lanes.run('a', taking(0)), 'fast');
  });

  test('failed work counts like successful work', async () => {
    const { lanes, pass, taking } = timed();
    const failing = lanes.run('a', async () => {
      pass(51);
      throw new Error('It failed.');
    });
    await assert.rejects(failing, /It failed/);
    assert.equal(await lanes.run('a', taking(0)), 'slow');
  });

  test('work marked as long runs in the slow lane, and short work of others does not wait for it', async () => {
    const { lanes, taking } = timed();
    const ended = Promise.withResolvers<void>();
    const long = lanes.run('a', (runner) => ended.promise.then(() => ({ value: runner, tookMs: 0 })), { long: true });
    assert.equal(await lanes.run('b', taking(1)), 'fast');
    ended.resolve();
    assert.equal(await long, 'slow');
  });

  test('pending work whose caller has disconnected is not started', async () => {
    const { lanes, taking } = timed();
    const gone = new AbortController();
    gone.abort();
    await assert.rejects(lanes.run('a', taking(51), { signal: gone.signal }), /The connection closed/);
    assert.equal(await lanes.run('a', taking(0)), 'fast');
  });
});
