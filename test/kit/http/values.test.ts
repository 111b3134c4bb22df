import assert from 'node:assert/strict';
import { test } from 'node:test';

import { maxDifferentNames, maxNames, maxValues, maxValuesByHand, parseJson } from '../../../src/kit/http/json.ts';

const arrays = (count: number) => Buffer.from(`[${Array.from({ length: count }, () => '[]').join(',')}]`);

test('400: a body with too many values is refused before it is parsed [H250]', () => {
  assert.throws(() => parseJson(arrays(maxValues)), { code: 'VALIDATION_ERROR', message: /more than 250000 values/ });
});

test('commas and brackets inside strings do not count as values', () => {
  const text = `,[{\\"`.repeat(200_000);
  assert.deepEqual(parseJson(Buffer.from(`{"text":"${text}"}`)), { text: text.replaceAll('\\"', '"') });
});

const named = (count: number, name: (index: number) => string) =>
  Buffer.from(`{"packets":[{${Array.from({ length: count }, (_, index) => `"${name(index)}":1`).join(',')}}]}`);

/** A list of objects with one property each. */
const alike = (count: number, name: (index: number) => string) =>
  Buffer.from(`{"packets":[${Array.from({ length: count }, (_, index) => `{"${name(index)}":1}`).join(',')}]}`);

test('400: a body with too many names, or too many values and a name that needs an escape, is refused before it is parsed [H250]', () => {
  assert.throws(() => parseJson(alike(maxNames, () => 'role')), { code: 'VALIDATION_ERROR', message: /more than 100000 names/ });
  assert.throws(() => parseJson(alike(maxValuesByHand + 1, () => '\\"')), { message: /at most 5000 values/ });
  assert.throws(() => parseJson(named(235_000, (index) => `\\u0061${index}`)), { code: 'VALIDATION_ERROR' });
});

test('400: a body with too many different names, escaped or not, is refused before it is parsed; few names may be repeated often [H250]', () => {
  const tooMany = { code: 'VALIDATION_ERROR', message: /more than 10000 different names/ };
  for (const body of [named, alike]) {
    assert.throws(() => parseJson(body(maxDifferentNames, (index) => `a${index}`)), tooMany);
    assert.throws(() => parseJson(body(maxDifferentNames, (index) => `\\u0061${index}`)), tooMany);
  }
  assert.throws(() => parseJson(alike(maxDifferentNames + 1, () => '\\u0061')), tooMany);
  // Together with "packets" these are exactly as many as allowed.
  assert.ok(parseJson(named(maxDifferentNames - 1, (index) => `a${index}`)));
  assert.ok(parseJson(alike(maxNames - 1, (index) => (index % 2 === 0 ? 'role' : 'content'))));
  // Text inside a string is not a name.
  assert.ok(parseJson(Buffer.from(JSON.stringify({ text: named(20_000, (index) => `a${index}`).toString() }))));
});

test('names with escape sequences are decoded, in any allowed number', () => {
  const spelled = parseJson(named(9_000, (index) => `\\u00e9\\u0061${index}`));
  assert.deepEqual(spelled, parseJson(named(9_000, (index) => `\u00e9a${index}`)));
  const needed = parseJson(named(100, (index) => `\\"${index}`)) as { packets: Record<string, number>[] };
  assert.equal(Object.keys(needed.packets[0]!)[7], '"7');
  assert.deepEqual(parseJson(Buffer.from('{"a":"\\\\\\"","\\u0062" : {"c\\/d":"\\u0062"},"e":["\\"",{"\\u0066":1}]}')), {
    a: '\\"',
    b: { 'c/d': 'b' },
    e: ['"', { f: 1 }],
  });
});
