import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runsWhere, sentenceOf, tableRows } from '../../../src/fallback/web/parts/timeline-runs.ts';

const second = (number: number, condition: 'timeout' | null, more = {}) => ({
  ...{ second: number, calls: [{ provider: 'a', condition }], out: [], failed: 0, slow: 0 },
  ...more,
});
const seconds = [
  second(0, null),
  second(1, null),
  second(2, 'timeout', { slow: 1, out: [{ provider: 'a', until_s: 4.5 }] }),
  second(3, null, { calls: [] }),
  second(5, null),
];

test('A timeline is told as runs of seconds, as a sentence for each and as a table in which equal seconds are one row [F124]', () => {
  const runs = runsWhere(seconds, ({ calls }) => calls.some(({ condition }) => condition === null));
  assert.deepEqual(runs, [
    { from: 0, to: 1 },
    { from: 5, to: 5 },
  ]);
  assert.equal(sentenceOf(seconds[2]), 'a fails: timeout; left out: a until 4.5 s; 1 prompt served after a failed call');
  assert.equal(sentenceOf(undefined), 'no calls');
  const rows = tableRows({ rate_per_minute: 60, outages: [], seconds, only_last: [], first_back_s: null, cost: null });
  assert.deepEqual(
    rows.map(({ from, to, calls }) => [from, to, calls]),
    [
      [0, 1, 'a answers'],
      [2, 2, 'a fails: timeout'],
      [3, 3, 'no calls'],
      [5, 5, 'a answers'],
    ],
  );
});
