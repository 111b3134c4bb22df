import assert from 'node:assert/strict';
import { test } from 'node:test';

import { commaList, quotedList, quotedListOf } from '../../src/kit/comma-list.ts';

test('A comma-separated list has no empty items, and no spaces around items', () => {
  assert.deepEqual(commaList(' a, b c ,,d'), ['a', 'b c', 'd']);
  assert.deepEqual(quotedList(' a, b c ,,d'), ['a', 'b c', 'd']);
});

test('An item in quotation marks has commas, spaces and doubled quotation marks [H408]', () => {
  assert.deepEqual(quotedList('"a, b" , " c ","say ""hi""",d'), ['a, b', ' c ', 'say "hi"', 'd']);
  // What is no quoted item is taken as it is.
  assert.deepEqual(quotedList('"a,b,c"d'), ['"a', 'b', 'c"d']);
  const items = ['a', 'a, b', ' c ', 'say "hi"', '"', 'é'];
  assert.deepEqual(quotedList(quotedListOf(items)), items);
});
