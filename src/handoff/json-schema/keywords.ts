/**
 * What the value of a keyword of JSON Schema 2020-12 is. `here` schemas apply to the value itself, `inside` ones to its items or
 * properties, `named` ones only where a reference names them.
 */
interface Keyword {
  readonly holds: 'value' | 'schema' | 'list' | 'map';
  readonly applies?: 'here' | 'inside' | 'named';
}

const rows = (names: string, keyword: Keyword) => names.split(' ').map((name): [string, Keyword] => [name, keyword]);

/** The keywords that a schema may have. */
export const keywords: ReadonlyMap<string, Keyword> = new Map([
  ...rows('not if then else', { holds: 'schema', applies: 'here' }),
  ...rows('allOf anyOf oneOf', { holds: 'list', applies: 'here' }),
  ...rows('dependentSchemas', { holds: 'map', applies: 'here' }),
  ...rows('items contains additionalProperties propertyNames unevaluatedItems unevaluatedProperties', {
    holds: 'schema',
    applies: 'inside',
  }),
  ...rows('prefixItems', { holds: 'list', applies: 'inside' }),
  ...rows('properties patternProperties', { holds: 'map', applies: 'inside' }),
  ...rows('$defs', { holds: 'map', applies: 'named' }),
  ...rows('contentSchema', { holds: 'schema', applies: 'named' }),
  ...rows(
    '$ref $anchor type enum const multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength pattern format minItems maxItems uniqueItems minContains maxContains minProperties maxProperties required dependentRequired',
    { holds: 'value' },
  ),
  ...rows('title description default deprecated readOnly writeOnly examples $comment contentEncoding contentMediaType', { holds: 'value' }),
]);

/** Keywords of the specification that the service refuses, with the reason. */
export const refused: Readonly<Record<string, string>> = {
  $id: 'is only allowed in the root of the schema, where it has no effect',
  $schema: 'is only allowed in the root of the schema',
  $dynamicAnchor: 'is not supported',
  $dynamicRef: 'is not supported',
  $vocabulary: 'is not supported',
  $async: 'is not supported',
};

/** The keywords that go through all properties of an object. */
export const overProperties: ReadonlySet<string> = new Set([
  'additionalProperties',
  'maxProperties',
  'minProperties',
  'patternProperties',
  'propertyNames',
  'unevaluatedProperties',
]);

/** The keywords that measure a text. */
export const overCharacters: ReadonlySet<string> = new Set(['maxLength', 'minLength']);
