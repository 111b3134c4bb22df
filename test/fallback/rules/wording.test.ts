import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listed, times } from '../../../src/fallback/rules/wording.ts';

test('numbers of times and lists are written as in a sentence', () => {
  assert.deepEqual([times(1), times(3)], ['once', '3 times']);
  assert.deepEqual([listed([]), listed(['a']), listed(['a', 'b']), listed(['a', 'b', 'c'])], ['', 'a', 'a and b', 'a, b and c']);
});
