import assert from 'node:assert/strict';
import { test } from 'node:test';

import { canonicalJson } from '../../../src/handoff/rules/canonical-json.ts';

test('Canonical JSON is that of RFC 8785 [H172]', () => {
  // The example of section 3.2.2, and that of section 3.2.3 for the order of properties.
  const numbers = JSON.parse('[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]');
  assert.equal(
    canonicalJson({ numbers, string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/', literals: [null, true, false] }),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
  const names = ['\u20ac', '\r', '\ufb33', '1', '\ud83d\ude00', '\u0080', '\u00f6'];
  const sorted = ['\r', '1', '\u0080', '\u00f6', '\u20ac', '\ud83d\ude00', '\ufb33'];
  assert.deepEqual(
    Object.keys(JSON.parse(canonicalJson(Object.fromEntries(names.map((name) => [`_${name}`, 0]))))),
    sorted.map((name) => `_${name}`),
  );
});

test('Canonical JSON spends the cost of each step before it takes it, by what it reads', () => {
  const costOf = (value: unknown) => {
    let cost = 0;
    canonicalJson(value, (more) => {
      cost += more;
    });
    return cost;
  };
  const long = 'n'.repeat(10_000);
  // Names count as texts do, and what is escaped counts more.
  assert.ok(costOf({ [long]: 1 }) >= 10_000);
  assert.ok(costOf(long) >= 10_000);
  for (const escaped of ['"', '\\', '\u0001', '\ud800'])
    assert.ok(costOf(escaped.repeat(10_000)) > 5 * costOf(long), JSON.stringify(escaped));
  const read: string[] = [];
  const watched = new Proxy({ a: 1 }, { get: (_, name) => read.push(String(name)) });
  assert.throws(
    () =>
      canonicalJson([long, watched], (cost) => {
        if (cost >= 10_000) throw new RangeError('too much');
      }),
    RangeError,
  );
  assert.deepEqual(read, []);
});
