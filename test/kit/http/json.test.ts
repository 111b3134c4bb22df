import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import type { ServiceError } from '../../../src/kit/errors.ts';
import { maxDepth, maxDifferentNames, maxNames, maxValues, maxValuesByHand, parseJson } from '../../../src/kit/http/json.ts';
import { refusal } from '../../support/refusal.ts';
import { runs } from '../../support/runs.ts';

const parse = (text: string) => parseJson(Buffer.from(text));

function refusalOf(bytes: string | Buffer): ServiceError {
  const error = refusal(() => parseJson(Buffer.from(bytes as string)), `This was let in: ${bytes.toString().slice(0, 100)}`);
  assert.deepEqual([error.status, error.code], [400, 'VALIDATION_ERROR']);
  return error;
}

const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth);

/** Names that look like syntax, which are the hardest to count and to parse. */
const hardName = fc
  .oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('', '"', '":', '\\', '\\"', '\\\\', 'a":1', 'a\\nb', 'a\nbX', '{', '}', ':', ',', '\u2028', '\ud83d\ude00', '__proto'),
  )
  .filter((name) => !['__proto__', 'constructor', 'prototype'].includes(name));
const document = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    hardName,
    // JSON.stringify writes -0 as 0.
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.constantFrom(null, true, false),
    fc.constantFrom('\\', '\\"', '\\\\', '\\u0022:'),
    fc.array(tie('node'), { maxLength: 4 }),
    fc.dictionary(hardName, tie('node'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).node;

describe('A JSON body', () => {
  test('is parsed correctly with any names and white space', () => {
    fc.assert(
      fc.property(document, fc.constantFrom('', ' ', '\t', ' \r\n'), (value, gap) => {
        assert.deepEqual(parse(spell(value, gap)), value);
      }),
      { numRuns: runs(1000) },
    );
  });

  test('is parsed independently of documents parsed before', () => {
    for (const [before, text] of [
      ['{"x":1,"\\\\":2}', '{"x":1,"\\"":2}'],
      ['{"x":1,"a\\\\nb":2}', '{"x":1,"a\\nbX":2}'],
      ['{"y":{"z":[{"\\\\":1}]}}', '{"y":{"z":[{"\\"" : -1.5e3 },{"\\t":null}, [], {}, true]}}'],
    ] as const) {
      parse(before);
      assert.equal(JSON.stringify(parse(text)), text.replaceAll(' ', '').replace('-1.5e3', '-1500'));
    }
  });

  test('may repeat a name in different objects, or as a value', () => {
    assert.deepEqual(parse('{"a":{"a":1},"b":[{"a":"\\"a\\":1"},{"a":2}]}'), { a: { a: 1 }, b: [{ a: '"a":1' }, { a: 2 }] });
  });

  test('is refused with the path when a name appears twice in one object [H245]', () => {
    assert.equal(refusalOf('{"a":1,"a":2}').field, 'a');
    assert.equal(refusalOf('{"a":1,"\\u0061":1}').field, 'a');
    assert.equal(refusalOf('{"x":{"y":1,"z":[],"y":1}}').field, 'x.y');
    assert.match(refusalOf('[{"b":1,"b":1}]').message, /"b" appears twice/);
    // Beside a name that ends with an escaped backslash.
    assert.equal(refusalOf('{"x\\\\":1,"a":1,"a":2}').field, 'a');
  });

  test('is refused whichever of its names is repeated', () => {
    fc.assert(
      fc.property(fc.dictionary(hardName, document, { minKeys: 1, maxKeys: 4, noNullPrototype: true }), fc.nat(), (value, pick) => {
        const members = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${JSON.stringify(item)}`);
        const [first] = members.slice(pick % members.length);
        assert.match(refusalOf(`{${[...members, first].join(',')}}`).message, /appears twice/);
      }),
    );
  });

  test('is refused with names of prototypes, at any depth [H245]', () => {
    assert.equal(refusalOf('{"__proto__":{"admin":true}}').field, '__proto__');
    assert.equal(refusalOf('{"a":{"constructor":1}}').field, 'a.constructor');
    assert.equal(refusalOf('{"a":[{"b":{"prototype":1}}]}').field, 'a.0.b.prototype');
    assert.equal(refusalOf('{"\\u005f_proto__":1}').field, '__proto__');
    assert.deepEqual(parse('{"a":"__proto__"}'), { a: '__proto__' });
  });

  test('is refused with a number beyond the range of a double [H249]', () => {
    assert.equal(refusalOf('{"a":{"b":[0,1e400]}}').field, 'a.b.1');
    assert.equal(refusalOf('-1e400').field, null);
    assert.deepEqual(parse('[1.7976931348623157e308,5e-324,-0]'), [Number.MAX_VALUE, Number.MIN_VALUE, -0]);
  });

  test('may be nested 64 levels deep; 65 and 100,000 levels are refused [H245]', () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const inner = open === '[' ? '' : '1';
      assert.doesNotThrow(() => parse(open.repeat(maxDepth) + inner + close.repeat(maxDepth)));
      assert.match(refusalOf(open.repeat(maxDepth + 1) + inner + close.repeat(maxDepth + 1)).message, /deeper than 64/);
    }
    refusalOf(nested(100_000, '[', ']'));
    refusalOf('['.repeat(100_000));
  });

  test('is refused when it is invalid, without quoting its text', () => {
    for (const text of [
      '',
      ' ',
      '{',
      '{"a":1,}',
      "{'a':1}",
      '{"a":NaN}',
      '[1 2]',
      '{"a":1} x',
      '\ufeff{}',
      'undefined',
      '{"token":"s3cret-value" x}',
    ]) {
      const { message, field } = refusalOf(text);
      assert.match(message, /^The body is not valid JSON( at line \d+, column \d+)?\.$/);
      assert.ok(!message.includes('s3cret'));
      assert.equal(field, null);
    }
  });

  test('is refused when it is not UTF-8', () => {
    assert.match(refusalOf(Buffer.from([0x22, 0xff, 0x22])).message, /UTF-8/);
    assert.match(refusalOf(Buffer.from('{"a":1}', 'utf16le')).message, /not valid/);
    // An overlong encoding of a slash, and a lone surrogate as bytes.
    assert.match(refusalOf(Buffer.from([0x22, 0xc0, 0xaf, 0x22])).message, /UTF-8/);
    assert.match(refusalOf(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])).message, /UTF-8/);
  });
});

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
  const escaped = `{"\\"":[${'0,'.repeat(maxValuesByHand)}0]}`;
  assert.throws(() => parseJson(Buffer.from(escaped)), { message: /at most 5000 values/ });
  assert.throws(() => parseJson(named(235_000, (index) => `\\u0061${index}`)), { code: 'VALIDATION_ERROR' });
});

test('400: a body with too many different names, escaped or not, is refused before it is parsed; few names may be repeated often [H250]', () => {
  const tooMany = { code: 'VALIDATION_ERROR', message: /more than 5000 different names/ };
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
  const spelled = parseJson(named(4_000, (index) => `\\u00e9\\u0061${index}`));
  assert.deepEqual(spelled, parseJson(named(4_000, (index) => `\u00e9a${index}`)));
  const needed = parseJson(named(100, (index) => `\\"${index}`)) as { packets: Record<string, number>[] };
  assert.equal(Object.keys(needed.packets[0]!)[7], '"7');
  assert.deepEqual(parseJson(Buffer.from('{"a":"\\\\\\"","\\u0062" : {"c\\/d":"\\u0062"},"e":["\\"",{"\\u0066":1}]}')), {
    a: '\\"',
    b: { 'c/d': 'b' },
    e: ['"', { f: 1 }],
  });
});

/** The value as JSON, with the given white space wherever JSON allows it. */
function spell(value: unknown, gap: string): string {
  if (Array.isArray(value)) return `[${gap}${value.map((item) => spell(item, gap)).join(`${gap},${gap}`)}${gap}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}${gap}:${gap}${spell(item, gap)}`);
  return `{${gap}${members.join(`${gap},${gap}`)}${gap}}`;
}
