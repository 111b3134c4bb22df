import type { Fault } from '../../kit/errors.ts';
import { isObject } from '../../kit/json.ts';

/** The keywords of a rule that approves, with the type that each compares; null: any. */
const strictKeywords: Readonly<Record<string, string | null>> = {
  type: null,
  const: null,
  enum: null,
  allOf: null,
  properties: 'object',
  required: 'object',
  items: 'array',
  minimum: 'number',
  maximum: 'number',
  exclusiveMinimum: 'number',
  exclusiveMaximum: 'number',
  minLength: 'string',
  maxLength: 'string',
};

/**
 * The schema of a rule that approves, so that everything that it names must be there and have the type that it is compared as: in JSON
 * Schema, `properties` says nothing of what is missing, and `maximum` nothing of a text. An array whose items are named has one at least.
 * `faults` lists what such a rule may not have.
 */
export function strictSchema(schema: unknown, field: string): { readonly schema: unknown; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  return { schema: strict(schema, field, faults), faults };
}

function strict(schema: unknown, path: string, faults: Fault[]): unknown {
  // `true` and `false` name nothing.
  if (!isObject(schema)) return schema;
  const fault = (at: string, rest: string) => faults.push({ field: at, detail: `${at} ${rest}` });
  const compared = new Set<string>();
  for (const keyword of Object.keys(schema)) {
    if (!Object.hasOwn(strictKeywords, keyword))
      fault(`${path}.${keyword}`, `can't be used by a rule that approves; it may use ${Object.keys(strictKeywords).join(', ')}.`);
    else if (strictKeywords[keyword] !== null) compared.add(strictKeywords[keyword]!);
  }
  const types = typesOf(schema.type, compared);
  if (compared.size > 1) fault(path, `compares a value as ${[...compared].join(' and as ')}, so that it never fits.`);
  else if (types?.length === 0) fault(`${path}.type`, `never fits, since another keyword compares a value of type ${[...compared][0]}.`);
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = [...new Set([...(Array.isArray(schema.required) ? schema.required : []), ...Object.keys(properties)])];
  const inner = (name: string, value: unknown) => strict(value, `${path}.${name}`, faults);
  return {
    ...schema,
    ...(types === undefined ? {} : { type: types.length === 1 ? types[0] : types }),
    ...(compared.has('object') ? { required } : {}),
    ...(schema.properties === undefined
      ? {}
      : { properties: Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, inner(`properties.${name}`, value)])) }),
    ...(schema.items === undefined ? {} : { items: inner('items', schema.items), minItems: 1 }),
    ...(Array.isArray(schema.allOf) ? { allOf: schema.allOf.map((part, index) => inner(`allOf.${index}`, part)) } : {}),
  };
}

/** The types that a value may have: those of the schema that can be compared; undefined: any. */
function typesOf(type: unknown, compared: ReadonlySet<string>): string[] | undefined {
  const given = type === undefined ? undefined : ([type].flat() as string[]);
  const [only] = compared;
  if (only === undefined) return given;
  if (given === undefined) return [only];
  return given.filter((name) => name === only || (only === 'number' && name === 'integer'));
}
