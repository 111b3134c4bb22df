import assert from 'node:assert/strict';
import { test } from 'node:test';

import { dayOf, isAbove, secondsToMidnight } from '../../../src/handoff/rules/tiers.ts';

test('a day of the quota begins at midnight UTC, and the wait for it is at least a second', () => {
  const at = (time: string) => new Date(`2026-02-28T${time}Z`);
  assert.deepEqual([dayOf(at('00:00:00.000')), dayOf(at('23:59:59.999'))], ['2026-02-28', '2026-02-28']);
  assert.deepEqual(
    ['00:00:00.000', '23:59:00.000', '23:59:58.500', '23:59:59.999'].map((time) => secondsToMidnight(at(time))),
    [86_400, 60, 2, 1],
  );
});

test('business is above pro, and pro above free', () => {
  assert.deepEqual(
    [isAbove('business', 'pro'), isAbove('pro', 'free'), isAbove('free', 'free'), isAbove('free', 'pro')],
    [true, true, false, false],
  );
});
