import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseHints } from '../../../src/handoff/live/relay.ts';

test('a message of the broker is a list of tenants and positions; anything else is ignored [H166]', () => {
  assert.deepEqual(parseHints('[[1,2],[3,4]]'), [
    [1, 2],
    [3, 4],
  ]);
  const none = [
    '',
    'nonsense',
    'null',
    '{}',
    '[1,2]',
    '[[1]]',
    '[[1,2,3]]',
    '[["1",2]]',
    '[[1,-2]]',
    '[[0,1]]',
    '[[1,1e300]]',
    '[[1,null]]',
  ];
  for (const message of none) assert.equal(parseHints(message), undefined, message);
  assert.equal(parseHints(`[[1,2]${' '.repeat(1024 * 1024)}]`), undefined);
});
