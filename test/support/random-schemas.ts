import fc from 'fast-check';

/** Names of properties: short ones that schemas and values share, long ones, and some that need escapes. */
const names = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('a', 'b', 'c', 'd', 'e', '~/') },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 3000 }).map((length) => 'n'.repeat(length)) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 500 }).map((length) => '\u0001"'.repeat(length)) },
);

const texts = fc.oneof(names, fc.string({ unit: 'binary', maxLength: 20 }));

const scalars = fc.oneof(texts, fc.integer({ min: -3, max: 30 }), fc.boolean(), fc.constant(null));

/** The value as it comes out of JSON: objects of fast-check have no prototype. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value));

/** Any JSON value, with objects and arrays of some hundred parts. */
export const values: fc.Arbitrary<unknown> = fc
  .letrec((tie) => ({
    value: fc.oneof(
      { weight: 2, arbitrary: scalars },
      { weight: 3, arbitrary: fc.dictionary(names, tie('value'), { maxKeys: 12 }) },
      { weight: 3, arbitrary: fc.array(tie('value'), { maxLength: 12 }) },
      { weight: 1, arbitrary: fc.array(fc.nat(50), { maxLength: 300 }) },
    ),
  }))
  .value.map(plain);

/** Schemas of all keywords but formats, with references to three definitions. */
export const schemas: fc.Arbitrary<Record<string, unknown>> = fc
  .letrec<{ schema: unknown; object: Record<string, unknown> }>((tie) => {
    const some = fc.array(tie('schema'), { minLength: 1, maxLength: 3 });
    const map = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', '~/'), tie('schema'), { maxKeys: 4 });
    const list = fc.uniqueArray(names, { maxLength: 12 });
    const small = fc.nat(6);
    const keywords: Record<string, fc.Arbitrary<unknown>> = {
      type: fc.uniqueArray(fc.constantFrom('object', 'array', 'string', 'number', 'integer', 'boolean', 'null'), {
        minLength: 1,
        maxLength: 4,
      }),
      enum: fc.array(fc.oneof(scalars, values), { minLength: 1, maxLength: 6 }),
      const: fc.oneof(scalars, values),
      multipleOf: fc.integer({ min: 1, max: 4 }),
      minimum: small,
      exclusiveMaximum: small,
      minLength: small,
      maxLength: fc.nat(2000),
      pattern: fc.constantFrom('^n+$', 'a|b', '[^"]'),
      items: tie('schema'),
      prefixItems: some,
      contains: tie('schema'),
      minContains: fc.nat(3),
      minItems: small,
      uniqueItems: fc.boolean(),
      properties: map,
      patternProperties: fc.dictionary(fc.constantFrom('^n', 'a', '.'), tie('schema'), { maxKeys: 2 }),
      additionalProperties: tie('schema'),
      propertyNames: tie('schema'),
      unevaluatedProperties: tie('schema'),
      unevaluatedItems: tie('schema'),
      required: list,
      dependentRequired: fc.dictionary(names, list, { maxKeys: 3 }),
      dependentSchemas: map,
      minProperties: small,
      maxProperties: fc.nat(12),
      allOf: some,
      anyOf: some,
      oneOf: some,
      not: tie('schema'),
      if: tie('schema'),
      else: tie('schema'),
      $ref: fc.constantFrom('#/$defs/x', '#/$defs/y', '#/$defs/z'),
    };
    const pair = fc.constantFrom(...Object.keys(keywords)).chain((name) => fc.tuple(fc.constant(name), keywords[name]!));
    return {
      schema: fc.oneof({ weight: 1, arbitrary: fc.boolean() }, { weight: 5, arbitrary: tie('object') }),
      object: fc.array(pair, { maxLength: 3 }).map(Object.fromEntries),
    };
  })
  .object.chain((object) => fc.tuple(fc.constant(object), definitions()))
  .map(([object, $defs]) => plain({ ...object, $defs }));

/** Definitions that apply one another several times. */
function definitions(): fc.Arbitrary<Record<string, unknown>> {
  const ends = fc.constantFrom<unknown>(
    { uniqueItems: true },
    { type: 'object' },
    { additionalProperties: { type: ['object', 'array', 'string', 'number', 'boolean', 'null'] } },
    { not: { required: ['a'] } },
    { maxLength: 10 },
    { enum: ['a', { a: 1 }, [1]] },
  );
  const keyword = fc.constantFrom('allOf', 'anyOf', 'oneOf');
  return fc.tuple(keyword, keyword, ends, ends).map(([one, two, y, z]) => ({
    x: { [one]: [{ $ref: '#/$defs/y' }, { $ref: '#/$defs/z' }, { $ref: '#/$defs/y' }], items: { $ref: '#/$defs/x' } },
    y: { [two]: [{ $ref: '#/$defs/z' }, y], additionalProperties: { $ref: '#/$defs/x' } },
    z,
  }));
}
