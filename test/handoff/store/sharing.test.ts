import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sharing } from '../../../src/handoff/store/sharing.ts';
import type { Awaitable } from '../../../src/kit/awaitable.ts';

/** Work whose runs are settled by hand. */
function createWork() {
  const runs: { key: string; resolve(value: number): void; reject(error: Error): void }[] = [];
  const ask = sharing((key: string): Awaitable<number> => new Promise((resolve, reject) => void runs.push({ key, resolve, reject })));
  return { runs, ask };
}

test('callers that ask while work runs share the next run, each key its own', async () => {
  const { runs, ask } = createWork();
  const first = ask('a');
  const [second, third, other] = [ask('a'), ask('a'), ask('b')];
  assert.deepEqual(
    runs.map(({ key }) => key),
    ['a', 'b'],
  );
  runs[0]!.resolve(1);
  runs[1]!.resolve(10);
  assert.deepEqual([await first, await other], [1, 10]);
  await Promise.resolve();
  assert.equal(runs.length, 3);
  // The second run has begun, so this waits for a third.
  const fourth = ask('a');
  runs[2]!.resolve(2);
  assert.deepEqual([await second, await third], [2, 2]);
  await Promise.resolve();
  runs[3]!.resolve(3);
  assert.equal(await fourth, 3);
  assert.equal(runs.length, 4);
});

test('a failure reaches those that asked for that run, and the next one is run', async () => {
  const { runs, ask } = createWork();
  const first = ask('a');
  const second = ask('a');
  runs[0]!.reject(new Error('no'));
  await assert.rejects(async () => first, /no/);
  await Promise.resolve();
  runs[1]!.resolve(2);
  assert.equal(await second, 2);
  const third = ask('a');
  runs[2]!.resolve(3);
  assert.equal(await third, 3);
});

test('a result that is there at once is returned at once, also after a run', async () => {
  let value: Awaitable<number> = Promise.resolve(1);
  const ask = sharing(() => value);
  const first = ask('a');
  value = 2;
  const second = ask('a');
  assert.deepEqual([await first, await second, ask('a')], [1, 2, 2]);
});
