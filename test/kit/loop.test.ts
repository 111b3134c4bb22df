import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Loop } from '../../src/kit/loop.ts';

/** A promise and its resolve functions. */
function gate(): { passed: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: () => resolve() };
}

const noError = (error: unknown) => assert.fail(`A round failed: ${error}`);

/** A pause longer than any test. */
const never = 2 ** 30;

describe('A loop', () => {
  test('does nothing until it is started, and then runs its first round at once', async () => {
    let rounds = 0;
    const first = gate();
    const loop = new Loop({
      runOnce: async () => {
        rounds += 1;
        first.open();
        return never;
      },
      onError: noError,
    });
    await new Promise(setImmediate);
    assert.equal(rounds, 0);
    loop.start();
    await first.passed;
    assert.equal(rounds, 1);
    await loop.stop();
  });

  test('waits before its first round if it is to, unless it is woken', async () => {
    let rounds = 0;
    const first = gate();
    const runOnce = async () => {
      rounds += 1;
      first.open();
      return never;
    };
    const loop = new Loop({ runOnce, onError: noError, firstAfterMs: never });
    loop.start();
    await new Promise(setImmediate);
    assert.equal(rounds, 0);
    loop.wake();
    await first.passed;
    await loop.stop();
    assert.equal(rounds, 1);
  });

  test('started twice, runs one round at a time', async () => {
    let running = 0;
    let rounds = 0;
    const third = gate();
    const loop = new Loop({
      async runOnce() {
        running += 1;
        assert.equal(running, 1);
        await new Promise(setImmediate);
        running -= 1;
        rounds += 1;
        if (rounds === 3) third.open();
        return 0;
      },
      onError: noError,
    });
    loop.start();
    loop.start();
    await third.passed;
    await loop.stop();
  });

  test('woken, runs the next round at once', async () => {
    const rounds = [gate(), gate()];
    let count = 0;
    const loop = new Loop({
      runOnce: async () => {
        rounds[count]?.open();
        count += 1;
        return never;
      },
      onError: noError,
    });
    loop.start();
    await rounds[0]!.passed;
    // The pause begins when the round has returned.
    await new Promise(setImmediate);
    loop.wake();
    await rounds[1]!.passed;
    await loop.stop();
    assert.equal(count, 2);
  });

  test('woken during a round, runs another right after it', async () => {
    const begun = gate();
    const release = gate();
    const second = gate();
    let count = 0;
    const loop = new Loop({
      async runOnce() {
        count += 1;
        if (count === 2) second.open();
        begun.open();
        await release.passed;
        return never;
      },
      onError: noError,
    });
    loop.start();
    await begun.passed;
    loop.wake();
    release.open();
    await second.passed;
    await loop.stop();
    assert.equal(count, 2);
  });

  test('continues after a failed round, and reports it', async () => {
    const errors: unknown[] = [];
    const second = gate();
    let count = 0;
    const loop = new Loop({
      async runOnce() {
        count += 1;
        if (count === 1) throw new Error('once');
        second.open();
        return never;
      },
      onError: (error) => void errors.push(error),
      retryMs: 0,
    });
    loop.start();
    await second.passed;
    await loop.stop();
    assert.deepEqual(
      errors.map((error) => (error as Error).message),
      ['once'],
    );
  });

  test('pauses after a failed round for the given time', async () => {
    const other = gate();
    const counts = { failing: 0, other: 0 };
    const failing = new Loop({
      async runOnce() {
        counts.failing += 1;
        throw new Error('always');
      },
      onError: () => undefined,
      retryMs: never,
    });
    // A loop without a pause runs several rounds in this time.
    const restless = new Loop({
      async runOnce() {
        counts.other += 1;
        if (counts.other === 5) other.open();
        return 0;
      },
      onError: noError,
    });
    failing.start();
    restless.start();
    await other.passed;
    await Promise.all([failing.stop(), restless.stop()]);
    assert.equal(counts.failing, 1);
  });

  test('stopped, waits for the current round and starts no other', async () => {
    const begun = gate();
    const release = gate();
    let ended = false;
    let rounds = 0;
    const loop = new Loop({
      async runOnce() {
        rounds += 1;
        begun.open();
        await release.passed;
        ended = true;
        return 0;
      },
      onError: noError,
    });
    loop.start();
    await begun.passed;
    let isStopped = false;
    const stopped = loop.stop().then(() => {
      isStopped = true;
    });
    await new Promise(setImmediate);
    assert.deepEqual([isStopped, ended], [false, false]);
    release.open();
    await stopped;
    assert.equal(ended, true);
    loop.wake();
    await new Promise(setImmediate);
    assert.equal(rounds, 1);
  });

  test('stopped during its pause, stops at once', async () => {
    const first = gate();
    const loop = new Loop({
      runOnce: async () => {
        first.open();
        return never;
      },
      onError: noError,
    });
    loop.start();
    await first.passed;
    await new Promise(setImmediate);
    await loop.stop();
  });

  test('that was never started can be stopped', async () => {
    await new Loop({ runOnce: async () => 0, onError: noError }).stop();
  });
});
