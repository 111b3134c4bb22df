import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { createEnding, stopLimits } from '../../src/kit/lifecycle.ts';

/** An ending with mocked timers: the exit codes and logged errors so far, and how the stop ends. */
function ending(t: TestContext, drainMs = 0) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { promise, resolve: finish, reject: refuse } = Promise.withResolvers<void>();
  const exits: number[] = [];
  const logged: unknown[] = [];
  let stops = 0;
  let drains = 0;
  const { terminate, fail } = createEnding(
    {
      stop(onStep) {
        stops += 1;
        onStep?.('requests in progress');
        return promise;
      },
      onFatal: (error) => void logged.push(error),
      drain: () => {
        drains += 1;
      },
      drainMs,
    },
    (code) => void exits.push(code),
  );
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return { terminate, fail, finish, refuse, settle, exits, logged, stops: () => stops, drains: () => drains };
}

describe('The end of a process', () => {
  test('a signal exits 0 once requests in progress have ended', async (t) => {
    const { terminate, finish, settle, exits } = ending(t);
    terminate();
    t.mock.timers.tick(8_999);
    assert.deepEqual(exits, []);
    finish();
    await settle();
    assert.deepEqual(exits, [0]);
  });

  test('a signal drains first, and the stop begins when that time has passed', async (t) => {
    const { terminate, finish, settle, exits, stops, drains } = ending(t, 5_000);
    terminate();
    assert.deepEqual([drains(), stops()], [1, 0]);
    t.mock.timers.tick(4_999);
    assert.equal(stops(), 0);
    t.mock.timers.tick(1);
    assert.equal(stops(), 1);
    finish();
    await settle();
    assert.deepEqual(exits, [0]);
  });

  test('a second signal ends the draining at once', async (t) => {
    const { terminate, finish, settle, exits, stops, drains } = ending(t, 5_000);
    terminate();
    terminate();
    assert.deepEqual([drains(), stops()], [1, 1]);
    t.mock.timers.tick(5_000);
    assert.equal(stops(), 1);
    finish();
    await settle();
    assert.deepEqual(exits, [0]);
  });

  test('a signal exits 1 after nine seconds in any case, and says what the stop still waited for', (t) => {
    const said = t.mock.method(console, 'error', () => undefined);
    const { terminate, exits } = ending(t);
    terminate();
    t.mock.timers.tick(9_000);
    assert.deepEqual(exits, [1]);
    const sentence = 'The stop took more than 9 seconds. It still waited for requests in progress.';
    assert.deepEqual(said.mock.calls[0]!.arguments, [sentence]);
  });

  test('the parts of a stop that wait leave two seconds for the rest', () => {
    assert.ok(stopLimits.requests + stopLimits.attempts <= stopLimits.whole - 2_000);
  });

  test('a stop that fails is reported and exits 1', async (t) => {
    const said = t.mock.method(console, 'error', () => undefined);
    const { terminate, refuse, settle, exits } = ending(t);
    terminate();
    refuse(new Error('the disk is gone'));
    await settle();
    assert.deepEqual(exits, [1]);
    assert.deepEqual(said.mock.calls[0]!.arguments, ['The stop failed: the disk is gone']);
  });

  test('an unexpected error is logged, and exits 1 once requests in progress have ended', async (t) => {
    const { fail, finish, settle, exits, logged } = ending(t);
    const error = new Error('unexpected');
    fail(error);
    assert.deepEqual(logged, [error]);
    t.mock.timers.tick(1_999);
    assert.deepEqual(exits, []);
    finish();
    await settle();
    assert.deepEqual(exits, [1]);
  });

  test('an unexpected error exits 1 after two seconds in any case', (t) => {
    const { fail, exits } = ending(t);
    fail(new Error('unexpected'));
    t.mock.timers.tick(2_000);
    assert.deepEqual(exits, [1]);
  });

  test('further errors are logged and change nothing; an error during a stop makes it exit 1', async (t) => {
    const { terminate, fail, finish, settle, exits, logged, stops } = ending(t);
    terminate();
    fail('first');
    fail('second');
    finish();
    await settle();
    assert.deepEqual(logged, ['first', 'second']);
    assert.equal(stops(), 1);
    assert.ok(exits.length > 0 && exits.every((code) => code === 1));
  });
});
