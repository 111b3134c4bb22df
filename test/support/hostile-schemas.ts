/** A list, made item by item. */
export const list = <T>(length: number, item: (index: number) => T): T[] => Array.from({ length }, (_, index) => item(index));
/** An object, made property by property. */
export const object = <T>(length: number, entry: (index: number) => [string, T]): Record<string, T> =>
  Object.fromEntries(list(length, entry));

/** 40 definitions, each of which applies the next one twice. */
export const product = (keyword: string, last: unknown) => ({
  $ref: '#/$defs/d0',
  $defs: {
    ...object(40, (index) => [`d${index}`, { [keyword]: list(2, () => ({ $ref: `#/$defs/d${index + 1}` })) }]),
    d40: last,
  },
});
/** 20 definitions, each of which applies the next one twice: the last is applied a million times. */
export const doubled = (last: unknown, more: Record<string, unknown> = {}) => ({
  $ref: '#/$defs/d0',
  $defs: {
    ...object(20, (index) => [`d${index}`, { allOf: list(2, () => ({ $ref: `#/$defs/d${index + 1}` })) }]),
    d20: last,
    ...more,
  },
});
const wide = object(9000, (index) => [`k${index}`, index]);
const items = list(20_000, (index) => ({ a: index }));
const nested = (depth: number): unknown => (depth === 0 ? 1 : { a: nested(depth - 1) });
const letters = list(65_536, (index) => 'ab'[((index * 7919) >> 3) & 1]).join('');

/** Schemas that are made to be slow, with a value. */
export const hostileSchemas: Record<string, [schema: unknown, value: unknown]> = {
  'a product of allOf': [product('allOf', { type: 'object' }), {}],
  'a product of anyOf': [product('anyOf', { not: {} }), {}],
  'a product of oneOf': [product('oneOf', { type: 'object' }), {}],
  'a recursion whose every level begins another': [
    {
      $ref: '#/$defs/p0',
      $defs: object(160, (index) => [
        `p${index}`,
        { properties: { a: { $ref: '#/$defs/p0' } }, ...(index < 159 ? { $ref: `#/$defs/p${index + 1}` } : {}) },
      ]),
    },
    nested(60),
  ],
  'uniqueItems on a large array, many times': [{ allOf: list(150, () => ({ uniqueItems: true })) }, items],
  '490 branches for each item': [{ items: { anyOf: list(490, (index) => ({ const: index })) } }, items],
  '490 types for each item': [{ items: { oneOf: list(490, () => ({ type: ['string', 'null'] })) } }, items],
  '499 counts of many properties': [{ allOf: list(490, (index) => ({ minProperties: index })) }, wide],
  '100 patterns for each property': [{ patternProperties: object(60, (index) => [`^k${index}[0-9]*$`, { type: 'number' }]) }, wide],
  'unevaluatedProperties beside many names': [
    { properties: object(490, (index) => [`p${index}`, true]), unevaluatedProperties: false },
    wide,
  ],
  'a list of names that is compared with each value': [{ items: { enum: list(3000, (index) => index) } }, items],
  'a large constant that is compared with each item': [
    { items: { anyOf: list(20, () => ({ const: list(500, () => 0) })) } },
    list(900, () => list(500, () => 0)),
  ],
  'a pattern that an engine with backtracking needs exponential time for': [{ pattern: '^(a+)+$' }, `${'a'.repeat(65_000)}b`],
  'a pattern with many states': [{ pattern: '(a|b)*a(a|b){200}$' }, letters],
  'a format in quadratic time': [{ items: { format: 'uri-reference' } }, list(60, () => 'a'.repeat(1000))],
  'a long text that is measured many times': [{ allOf: list(490, () => ({ maxLength: 100_000 })) }, letters],
  'a doubling that looks for equal items with long names': [
    doubled({ uniqueItems: true }),
    list(90, (index) => ({ [`${'n'.repeat(1000)}${index}`]: 1 })),
  ],
  'a doubling that looks for equal items with escapes': [
    doubled({ uniqueItems: true }),
    list(16, (index) => '\u0001'.repeat(1000 + index)),
  ],
  'a doubling that looks for equal items with half characters': [doubled({ uniqueItems: true }), ['\ud800'.repeat(16_000)]],
  'a doubling that reads the names of properties': [
    doubled({ additionalProperties: { $ref: '#/$defs/any' } }, { any: true }),
    object(90, (index) => [`${'~'.repeat(1000)}${index}`, 1]),
  ],
  'a doubling that compares a long text': [doubled({ const: `${'c'.repeat(20_000)}a` }), `${'c'.repeat(20_000)}b`],
  'a doubling that compares an object with a small one': [doubled({ enum: [{ a: 1 }] }), wide],
  'a doubling that needs names beside others': [
    doubled({ dependentRequired: object(20, (index) => [`k${index}`, list(20, (other) => `k${other}`)]) }),
    wide,
  ],
  'a doubling that measures a text by several keywords': [doubled({ minLength: 1, maxLength: 100_000 }), letters],
  'a doubling that divides': [doubled({ multipleOf: 5e-324 }), 1.7e308],
  'a search for an item by reference, which copies the errors of all before': [
    { contains: { $ref: '#/$defs/text' }, $defs: { text: { type: 'string' } } },
    list(100_000, (index) => index),
  ],
  'a large value whose every part has a fault with a long path': [
    { additionalProperties: { additionalProperties: { type: 'string' } } },
    { ['p'.repeat(400_000)]: object(2000, (index) => [`k${index}`, index]) },
  ],
};
