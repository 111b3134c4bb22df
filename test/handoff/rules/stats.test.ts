import assert from 'node:assert/strict';
import { test } from 'node:test';

import { medianSeconds } from '../../../src/handoff/rules/stats.ts';

test('the median of times that were counted in steps is that of the middle one, of an even number the lower', () => {
  assert.equal(medianSeconds(new Map()), null);
  assert.equal(medianSeconds(new Map([['00', 1]])), 1);
  // Four steps double the time: 08 is 4 s, 24 is 64 s, 40 is 1,024 s.
  assert.equal(medianSeconds(new Map(Object.entries({ '40': 1, '08': 1, '24': 1 }))), 64);
  assert.equal(medianSeconds(new Map(Object.entries({ '08': 2, '40': 2 }))), 4);
  assert.equal(medianSeconds(new Map(Object.entries({ '08': 2, '40': 3 }))), 1024);
});
