import assert from 'node:assert/strict';
import { test } from 'node:test';
import { short } from '../../src/kit/errors.ts';
import { beginningOf, duration, partOf, plural } from '../../src/kit/wording.ts';

test('a duration is written in readable units', () => {
  const told: [number, string][] = [
    [0, '0 ms'],
    [999, '999 ms'],
    [1000, '1 s'],
    [12_340, '12.3 s'],
    [119_949, '119.9 s'],
    [119_950, '2 min'],
    [460_000, '7 min 40 s'],
    [3_599_600, '1 h'],
    [6_308_500, '1 h 45 min 9 s'],
  ];
  for (const [ms, text] of told) assert.equal(duration(ms), text);
});

test('a noun after a number other than one is plural', () => {
  assert.deepEqual([plural(1, 'attempt'), plural(2, 'attempt'), plural(0, 'attempt')], ['1 attempt', '2 attempts', '0 attempts']);
});

test('The beginning or a part of a text cuts no character in two', () => {
  assert.equal(beginningOf('abc', 5), 'abc');
  assert.equal(beginningOf('abc', 2), 'ab');
  assert.deepEqual(
    [1, 2, 3, 4].map((length) => beginningOf('a😀b', length)),
    ['a', 'a', 'a😀', 'a😀b'],
  );
  assert.deepEqual([partOf('a😀b', 1, 3), partOf('a😀b', 2, 4), partOf('a😀b', 2, 2)], ['😀', 'b', '']);
  for (const text of [short('😀'.repeat(400)), short(`a${'😀'.repeat(400)}`)]) assert.ok(text.isWellFormed() && !text.includes('\ufffd'));
});
