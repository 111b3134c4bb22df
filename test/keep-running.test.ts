import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { keepRunning, type Run } from '../src/programs/keep-running.ts';

const crash: Run = { code: 3, wasStopped: false, hasServed: true };

/** Plays runs, each with the seconds that it lasts, on a clock of its own; returns the pauses in seconds and the result. */
async function play(runs: readonly (readonly [seconds: number, run: Run])[], stopInPause = Number.POSITIVE_INFINITY) {
  let now = 0;
  let started = 0;
  const pauses: number[] = [];
  const result = await keepRunning({
    async run() {
      const [seconds, run] = runs[started] ?? assert.fail('It was started too often.');
      started += 1;
      now += seconds * 1000;
      return run;
    },
    now: () => now,
    async pause(ms) {
      now += ms;
      return pauses.length === stopInPause;
    },
    onRestart: (ms) => void pauses.push(ms / 1000),
  });
  return { ...result, pauses, started };
}

describe('A service that ends with an error', () => {
  test('is started again after 1, 2, 4 and 8 seconds, and no more after five ends within a minute [F83]', async () => {
    const runs = Array.from({ length: 9 }, () => [1, crash] as const);
    assert.deepEqual(await play(runs), { code: 3, gaveUp: true, pauses: [1, 2, 4, 8], started: 5 });
  });

  test('is started again after a second if it ran for a minute before', async () => {
    const runs = [...Array.from({ length: 8 }, () => [60, crash] as const), [60, { ...crash, code: 0 }] as const];
    assert.deepEqual(await play(runs), { code: 0, gaveUp: false, pauses: Array.from({ length: 8 }, () => 1), started: 9 });
  });

  test('is started again if a restart fails before it serves', async () => {
    const never = { ...crash, hasServed: false };
    const runs = [
      [1, crash],
      [1, never],
      [1, never],
      [1, { ...crash, code: 0 }],
    ] as const;
    assert.deepEqual(await play(runs), { code: 0, gaveUp: false, pauses: [1, 2, 4], started: 4 });
  });

  test('is not started again if it exits 0, was told to stop, or never served', async () => {
    for (const run of [
      { ...crash, code: 0 },
      { ...crash, wasStopped: true },
      { ...crash, hasServed: false },
    ])
      assert.deepEqual(await play([[1, run]]), { code: run.code, gaveUp: false, pauses: [], started: 1 });
  });

  test('is not started again if it is told to stop during the pause', async () => {
    assert.deepEqual(
      await play(
        [
          [1, crash],
          [1, crash],
        ],
        2,
      ),
      { code: 3, gaveUp: false, pauses: [1, 2], started: 2 },
    );
  });
});
