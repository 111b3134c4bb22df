import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';

import { type Checker, compileSchema, maxSteps } from '../../../src/handoff/json-schema/compile.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { hostileSchemas, list, object, product } from '../../support/hostile-schemas.ts';
import { schemas, values } from '../../support/random-schemas.ts';
import { runs } from '../../support/runs.ts';

/** The checker of a schema that is accepted. */
function checkerOf(schema: unknown): Checker {
  const result = compileSchema(schema);
  assert.ok('checker' in result, JSON.stringify(result));
  return result.checker;
}

/** The fields that a schema is refused for. */
function refusedFor(schema: unknown): string[] {
  const result = compileSchema(schema);
  return 'faults' in result ? result.faults.map(({ field }) => field) : [];
}

const faultsOf = (schema: unknown, value: unknown) =>
  checkerOf(schema)
    .check(value)
    .faults.map(({ detail }) => detail);

/** A value that counts how often anything of it is read. */
function watched(value: unknown, reads: { count: number }): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const known = new Map<PropertyKey, unknown>();
  const count = () => {
    reads.count += 1;
  };
  return new Proxy(value, {
    get(target, name, receiver) {
      count();
      if (!known.has(name)) known.set(name, watched(Reflect.get(target, name, receiver), reads));
      return known.get(name);
    },
    ownKeys(target) {
      const keys = Reflect.ownKeys(target);
      // A name is read as a text is: eight characters in a step.
      for (const key of keys) reads.count += 1 + String(key).length / 8;
      return keys;
    },
    getOwnPropertyDescriptor(target, name) {
      count();
      return Reflect.getOwnPropertyDescriptor(target, name);
    },
  });
}

describe('A schema of a caller', () => {
  for (const [name, [schema, value]] of Object.entries(hostileSchemas)) {
    test(`takes a bounded number of steps: ${name} [H363]`, () => {
      const checker = checkerOf(schema);
      const reads = { count: 0 };
      const { steps, ranOut, faults } = checker.check(watched(value, reads));
      // A refused value is checked twice: for the first fault, and for all.
      assert.ok(steps <= 2 * maxSteps + 100_000, `${steps} steps`);
      // What was counted is what was done.
      assert.ok(reads.count <= 2 * maxSteps, `${reads.count} reads`);
      assert.ok(!ranOut || faults.length === 0);
    });
  }

  test('and a value, both made at random, get the verdict of plain Ajv, and no part is read that was not counted [H363]', () => {
    fc.assert(
      fc.property(schemas, values, (schema, value) => {
        const result = compileSchema(schema);
        // For example a cycle of references.
        if ('faults' in result) return;
        const plain = new Ajv2020({ strict: false, logger: false, ownProperties: true }).compile(schema);
        const reads = { count: 0 };
        const { steps, ranOut, faults } = result.checker.check(watched(value, reads));
        assert.ok(reads.count <= steps + JSON.stringify(value).length, `${reads.count} reads in ${steps} steps`);
        // Plain Ajv 8 refuses some values that satisfy such a schema, and throws for others; the next test has verdicts for them.
        if (!ranOut && !JSON.stringify(schema).includes('"unevaluated'))
          assert.equal(faults.length === 0, plain(value), JSON.stringify(faults));
      }),
      { numRuns: runs(30) },
    );
  });

  for (const [schema, value, satisfied] of [
    [{ prefixItems: [true], unevaluatedItems: false }, [1, 2], false],
    [{ anyOf: [{}, { oneOf: [{ unevaluatedItems: false }, {}], not: {} }] }, [1], true],
    [{ anyOf: [{}, { not: {}, oneOf: [{}, { unevaluatedProperties: false }] }] }, { a: 1 }, true],
    [{ properties: { a: {} }, unevaluatedProperties: false }, { a: 1 }, true],
    [{ properties: { a: {} }, unevaluatedProperties: false }, { a: 1, b: 2 }, false],
    [
      { anyOf: [{ properties: { b: {} }, required: ['b'] }, { properties: { a: {} } }], unevaluatedProperties: false },
      { a: 1, b: 2 },
      true,
    ],
  ] as const)
    test(`judges what is not evaluated: ${JSON.stringify(schema)} of ${JSON.stringify(value)}`, () => {
      assert.equal(faultsOf(schema, value).length === 0, satisfied);
    });

  test('has no unevaluatedItems beside contains, which Ajv judges wrongly together [H405]', () => {
    const schema = { items: { contains: { type: 'string' } }, $defs: { rest: { unevaluatedItems: false } } };
    assert.deepEqual(refusedFor(schema), ['schema.$defs.rest.unevaluatedItems']);
    assert.deepEqual(refusedFor({ items: schema.items }), []);
  });

  test('has as many alternatives as it may have keywords, and a value needs to satisfy one of them', () => {
    const codes = { anyOf: list(240, (index) => ({ const: `C${index}` })) };
    assert.deepEqual(faultsOf(codes, 'C239'), []);
    assert.deepEqual(faultsOf({ not: codes }, 'other'), []);
    assert.deepEqual(faultsOf({ not: codes }, 'C239'), ["The value can't be set."]);
    assert.deepEqual(
      faultsOf(
        { contains: { const: 1 } },
        list(2000, (index) => 2000 - index),
      ),
      [],
    );
    assert.deepEqual(
      faultsOf(
        { contains: { $ref: '#/$defs/one' }, $defs: { one: { const: 1 } } },
        list(2000, (index) => 2000 - index),
      ),
      [],
    );
    const many = { not: { allOf: [{ items: { type: 'string' } }, codes] } };
    assert.deepEqual(
      faultsOf(
        many,
        list(2000, (index) => index),
      ),
      [],
    );
  });

  test('names the first fault where Ajv fails to find all', () => {
    const schema = { patternProperties: { '^n': false }, oneOf: [{ anyOf: [{ properties: { a: false } }] }] };
    assert.ok(faultsOf(schema, { a: {}, n: [] }).length > 0);
    const same = { ...schema, $defs: { x: { allOf: [{ $ref: '#/$defs/z' }] }, z: { uniqueItems: true } } };
    assert.ok(faultsOf(same, { a: {}, n: [] }).length > 0);
    assert.deepEqual(faultsOf(schema, {}), []);
  });

  test('lists a hundred faults, however many there are', () => {
    const schema = { items: { $ref: '#/$defs/text' }, $defs: { text: { type: 'string' } } };
    assert.equal(
      faultsOf(
        schema,
        list(50_000, (index) => index),
      ).length,
      100,
    );
  });

  test('takes multiples by decimal digits', () => {
    const isTaken = (multipleOf: number, value: unknown) => faultsOf({ multipleOf }, value).length === 0;
    for (const [divisor, value] of [
      [0.01, 19.99],
      [0.01, 4.35],
      [0.1, 1e21],
      [1e-7, 0.0000003],
      [0.3, -0.9],
      [2, 4],
      [5e-324, 1.7e308],
      [0.01, 0],
      [0.01, 'text'],
    ] as const)
      assert.ok(isTaken(divisor, value), `${value} by ${divisor}`);
    for (const [divisor, value] of [
      [0.01, 19.999],
      [0.3, 1],
      [2, 5],
      [1.7e308, 5e-324],
      [0.01, Number.POSITIVE_INFINITY],
    ] as const)
      assert.ok(!isTaken(divisor, value), `${value} by ${divisor}`);
    assert.deepEqual(faultsOf({ properties: { price: { multipleOf: 0.01 } } }, { price: 0.001 }), ['price must be a multiple of 0.01.']);
  });

  test('names a subschema by an anchor too', () => {
    const schema = {
      properties: { 'a b': { $ref: '#order' }, other: { $ref: '#place' } },
      $defs: { 'x/y%': { $anchor: 'order', type: 'string' } },
      additionalProperties: { $anchor: 'place', type: 'number' },
    };
    assert.deepEqual(faultsOf(schema, { 'a b': 1, other: 'x' }), [
      'a b must be a string, not a number.',
      'other must be a number, not a string.',
    ]);
    assert.deepEqual(faultsOf(schema, { 'a b': 'x', other: 1 }), []);
  });

  test('counts names in lists of dependent properties as keywords [H363]', () => {
    const needs = (length: number) => ({ dependentRequired: { a: list(length, (index) => `n${index}`) } });
    assert.deepEqual(refusedFor(needs(499)), []);
    assert.deepEqual(refusedFor(needs(500)), ['schema']);
    assert.deepEqual(faultsOf({ dependentRequired: { a: ['b', 'c'] } }, { a: 1, b: 2 }), [
      'The value must have property c when property a is present.',
    ]);
    assert.deepEqual(faultsOf({ dependentRequired: { toString: ['b'] } }, {}), []);
  });

  test('that needs too many steps says at which part of the value', () => {
    const slow = { ...product('allOf', {}), $ref: undefined };
    const at = (schema: object, value: unknown) => checkerOf(JSON.parse(JSON.stringify({ ...slow, ...schema }))).check(value).field;
    const ref = { $ref: '#/$defs/d0' };
    assert.equal(
      at({ properties: { context: { properties: { tags: { items: ref } } } } }, { other: {}, context: { tags: ['x'] } }),
      'context.tags.0',
    );
    assert.equal(at({ properties: { context: ref } }, { context: {} }), 'context');
    assert.equal(at(ref, {}), '');
  });

  test('that needs more steps than a check may take is neither satisfied nor violated [H363]', () => {
    const { ranOut, faults, steps } = checkerOf(product('allOf', { type: 'object' })).check({});
    assert.deepEqual([ranOut, faults, steps], [true, [], maxSteps]);
  });

  test('is compiled to code whose length its keywords bound, whatever they are', () => {
    let written = 0;
    const original = globalThis.Function;
    globalThis.Function = new Proxy(original, {
      construct(target, given: string[], as) {
        written += given.at(-1)!.length;
        return Reflect.construct(target, given, as) as object;
      },
    });
    try {
      for (const [schema] of Object.values(hostileSchemas)) checkerOf(schema);
    } finally {
      globalThis.Function = original;
    }
    assert.ok(written > 0 && written < 500_000 * Object.keys(hostileSchemas).length, `${written} characters`);
  });

  test('may have 500 keywords, 12 schemas within one another and 32 KiB, where names of properties are no keywords [H363]', () => {
    const deep = (depth: number): unknown => (depth === 1 ? { type: 'object' } : { properties: { a: deep(depth - 1) } });
    assert.deepEqual(refusedFor(deep(12)), []);
    assert.deepEqual(refusedFor(deep(13)), [`schema${'.properties.a'.repeat(12)}`]);
    assert.deepEqual(refusedFor({ properties: object(499, (index) => [`p${index}`, true]) }), []);
    assert.deepEqual(refusedFor({ properties: object(500, (index) => [`p${index}`, true]) }), ['schema']);
    assert.deepEqual(refusedFor({ required: list(3000, (index) => `n${index}`) }), []);
    assert.deepEqual(refusedFor({ $comment: 'é'.repeat(16_400) }), ['schema']);
  });

  test('refers to places of itself only, and never to itself without a part of the value [H363]', () => {
    const cases: [unknown, string[]][] = [
      [{ $ref: 'https://example.com/schema' }, ['schema.$ref']],
      [{ $ref: 'other.json#/a' }, ['schema.$ref']],
      [{ $ref: '#anchor' }, ['schema.$ref']],
      [{ $ref: '#order', $defs: { a: { $anchor: 'order' } } }, []],
      [{ $defs: { a: { $anchor: 'order' }, b: { $anchor: 'order' } } }, ['schema.$defs.b.$anchor']],
      [{ $defs: { a: { $anchor: '1 order' } } }, ['schema.$defs.a.$anchor']],
      [{ $anchor: 'all', $ref: '#all' }, ['schema']],
      [{ $ref: '#/$defs/%zz' }, ['schema.$ref']],
      [{ $ref: '#/properties/a/type', properties: { a: { type: 'string' } } }, ['schema.$ref']],
      [{ $ref: '#' }, ['schema']],
      [{ allOf: [{ if: true, else: { $ref: '#' } }] }, ['schema']],
      [{ $defs: { a: { anyOf: [{ $ref: '#/$defs/b' }] }, b: { not: { $ref: '#/$defs/a' } } } }, ['schema']],
      [{ dependentSchemas: { x: { $ref: '#' } } }, ['schema']],
      [{ properties: { a: { $ref: '#' } } }, []],
      [{ items: { $ref: '#' } }, []],
      [{ $id: 'https://example.com/mine', $schema: 'https://json-schema.org/draft/2020-12/schema' }, []],
      [{ $defs: { 'a/b~c d': { type: 'string' } }, $ref: '#/$defs/a~1b~0c%20d' }, []],
    ];
    for (const [schema, fields] of cases) assert.deepEqual(refusedFor(schema), fields, JSON.stringify(schema));
    assert.deepEqual(faultsOf({ $defs: { 'a/b': { type: 'string' } }, properties: { x: { $ref: '#/$defs/a~1b' } } }, { x: 1 }), [
      'x must be a string, not a number.',
    ]);
  });

  test('has patterns of an engine in linear time, and formats of short texts [H363]', () => {
    for (const pattern of ['(?=a)b', '(a)\\1', '(?i:a)', 'a{1001}', '(a{100}){100}', '(', '(\\pL{500}){2}'])
      assert.deepEqual(refusedFor({ pattern }), ['schema.pattern'], pattern);
    assert.deepEqual(refusedFor({ patternProperties: { '(?<=a)b': {} } }), ['schema.patternProperties.(?<=a)b']);
    for (const [pattern, yes, no] of [
      ['^ORD-\\d+$', 'ORD-1', 'ORD-'],
      ['^\\p{Lu}', 'Élan', 'élan'],
      ['^[\\w.-]+@[\\w-]+\\.\\w{2,}$', 'dana@example.com', 'dana'],
      ['\\u00e9', 'é', 'e'],
    ] as const)
      assert.deepEqual([faultsOf({ pattern }, yes).length, faultsOf({ pattern }, no).length], [0, 1], pattern);
    assert.deepEqual(refusedFor({ format: 'url' }), ['schema.format']);
    assert.deepEqual(faultsOf({ format: 'email' }, 'dana@example.com'), []);
    assert.deepEqual(faultsOf({ format: 'email' }, 'dana'), ['The value must be an email.']);
    assert.equal(faultsOf({ format: 'json-pointer' }, `/${'a'.repeat(1024)}`).length, 1);
    assert.equal(faultsOf({ format: 'byte' }, 'QUJD'.repeat(1000)).length, 0);
  });

  test('sees own properties only, whatever their names are', () => {
    assert.deepEqual(faultsOf({ required: ['__proto__', 'toString', 'constructor'] }, {}).length, 3);
    const proto = JSON.parse('{"properties": {"__proto__": {"type": "string"}, "valueOf": {"const": {"valueOf": 1}}}}');
    // No packet and no contract has a property of this name: bodies with it are refused.
    assert.deepEqual(faultsOf(proto, JSON.parse('{"__proto__": 1, "valueOf": {"valueOf": 2}}')), ['valueOf must be {"valueOf":1}.']);
    assert.deepEqual(faultsOf(proto, JSON.parse('{"valueOf": {"valueOf": 1}}')), []);
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });

  test('compares values as JSON Schema does', () => {
    const unique = { uniqueItems: true };
    assert.deepEqual(faultsOf(unique, [1, '1', true, null, { a: 1, b: 2 }, [1, 2], [2, 1]]), []);
    assert.equal(
      faultsOf(unique, [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ]).length,
      1,
    );
    assert.equal(faultsOf(unique, [0, -0]).length, 1);
    assert.deepEqual(faultsOf({ uniqueItems: false }, [1, 1]), []);
    assert.deepEqual(faultsOf({ const: { a: [1, { b: null }] } }, { a: [1, { b: null }] }), []);
    assert.equal(faultsOf({ const: [] }, {}).length, 1);
    assert.deepEqual(faultsOf({ enum: ['x', { a: 1 }] }, { a: 1 }), []);
    assert.deepEqual(faultsOf({ properties: { p: { enum: ['x', 'y'] } } }, { p: 'z' }), ['p must be one of x, y.']);
  });

  test('lists all faults of a value, and those of a branch only if no branch is satisfied', () => {
    const schema = {
      required: ['a', 'b'],
      properties: { c: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'number' }] } }, d: { maxLength: 2 } },
    };
    assert.deepEqual(faultsOf(schema, { c: list(2000, (index) => index), d: 'abc' }), [
      'a is required.',
      'b is required.',
      'd can have at most 2 characters.',
    ]);
    assert.deepEqual(faultsOf(schema, { a: 1, b: 1, c: ['x', true] }), ['c.1 must be a string, not a boolean.']);
  });

  test('keeps no value that was checked', async () => {
    const checked = [{ a: 'x' }, { a: 1 }, { b: 1 }].map((value) => {
      const checker = checkerOf({ properties: { a: { type: 'string' } }, additionalProperties: false });
      checker.check(value);
      return { checker, value: new WeakRef<object>(value) };
    });
    await collectGarbage();
    assert.deepEqual(
      checked.map(({ value }) => value.deref()),
      [undefined, undefined, undefined],
    );
    assert.deepEqual(
      checked.map(({ checker }) => checker.check({}).faults),
      [[], [], []],
    );
  });
});
