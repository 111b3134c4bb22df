import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';

import { isDate } from '../dates.ts';
import { type Fault, invalid, ServiceError } from '../errors.ts';

/** All faults are listed for bodies up to this many bytes, only the first for larger ones. */
const listAllBelow = 65_536;

/** The most faults in one answer. */
const maxFaults = 50;

const isoTimestamp = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/;

/** A date or date-time of ISO 8601, with or without an offset. */
function isTimestamp(text: string): boolean {
  return isoTimestamp.test(text) && !Number.isNaN(Date.parse(text)) && isDate(text.slice(0, 10));
}

function createAjv(options: { coerceTypes: boolean; allErrors: boolean }): Ajv {
  const ajv = new Ajv({ ...options, strict: true, strictTypes: false, useDefaults: true, removeAdditional: false, verbose: true });
  (addFormats as unknown as (ajv: Ajv) => void)(ajv);
  ajv.addFormat('timestamp', isTimestamp);
  ajv.addKeyword('example');
  return ajv;
}

const bodies = { first: createAjv({ coerceTypes: false, allErrors: false }), all: createAjv({ coerceTypes: false, allErrors: true }) };
const queries = createAjv({ coerceTypes: true, allErrors: true });

/** The errors of a value. A compiled function would keep them until its next call, and they have the value, which may be large. */
export function errorsOf(isValid: ValidateFunction, value: unknown): readonly ErrorObject[] {
  if (isValid(value)) return [];
  const errors = isValid.errors!;
  isValid.errors = null;
  return errors;
}

/** Returns a function that lists a value's errors. The schema is compiled at the first value: compiling all takes a third of the start-up time. */
function checker(ajv: Ajv, schema: TSchema): (value: unknown) => readonly ErrorObject[] {
  let isValid: ValidateFunction | undefined;
  return (value) => {
    isValid ??= ajv.compile(schema);
    return errorsOf(isValid, value);
  };
}

/** Returns a valid value; throws 400 with all faults otherwise. `size` is the body's length in bytes. */
export type Validator = (value: unknown, size?: number) => unknown;

/**
 * Creates a validator of request bodies. It converts nothing and refuses unknown top-level fields.
 * @param options.name the name of the whole body in error sentences
 * @param options.faultsOf finds faults beyond the schema, which are listed together with those of the schema
 */
export function bodyValidator(
  schema: TSchema,
  {
    nullIsAbsent = false,
    name = 'The body',
    faultsOf = () => [],
  }: { nullIsAbsent?: boolean | undefined; name?: string; faultsOf?: ((value: unknown) => readonly Fault[]) | undefined } = {},
): Validator {
  const first = checker(bodies.first, schema);
  const all = checker(bodies.all, schema);
  const dropNulls = nullIsAbsent ? nullDropper(schema) : undefined;
  return (value, size = 0) => {
    dropNulls?.(value);
    let errors = first(value);
    const more = faultsOf(value);
    if (errors.length === 0 && more.length === 0) return value;
    if (errors.length > 0 && size <= listAllBelow) {
      const found = all(value);
      if (found.length > 0) errors = found;
    }
    // For a field with a fault of both kinds, the one beyond the schema is more specific.
    throw refusal([...new Map([...faultsIn(errors, name), ...more].map((fault) => [fault.field, fault])).values()]);
  };
}

const wholeNumber = /^-?\d{1,15}$/;

/** Creates a validator of query strings and path parameters, which converts numbers and booleans from text. */
export function queryValidator(schema: TSchema): Validator {
  const check = checker(queries, schema);
  const { properties = {} } = schema as SchemaShape;
  const integers = Object.keys(properties).filter((name) => properties[name]!.type === 'integer');
  return (value) => {
    // JavaScript also converts texts such as `0x10` and a space to numbers.
    for (const name of integers) {
      const text = (value as Record<string, unknown>)[name];
      if (typeof text === 'string' && !wholeNumber.test(text)) throw invalid(name, `${name} must be an integer.`);
    }
    const errors = check(value);
    if (errors.length === 0) return value;
    throw refusal(faultsIn(errors, 'The query', { parameters: Object.keys(properties) }));
  };
}

/**
 * The faults that errors of the validator are, one for each field.
 * @param whole the name of the whole value in sentences
 * @param options.parameters the names of the query parameters; left out for bodies
 */
export function faultsIn(
  errors: readonly ErrorObject[],
  whole: string,
  { parameters, most = maxFaults }: { parameters?: readonly string[]; most?: number } = {},
): Fault[] {
  const faults = new Map<string, Fault>();
  // For an object that may be null, only faults within the object are reported, not that it is not null.
  const within = (path: string) =>
    errors.some(
      ({ instancePath, keyword }) =>
        instancePath.startsWith(`${path}/`) || (instancePath === path && (keyword === 'required' || keyword === 'additionalProperties')),
    );
  for (const error of errors) {
    // The error of the name itself says more.
    if (error.keyword === 'propertyNames') continue;
    if ((error.keyword === 'anyOf' || error.params.type === 'null') && within(error.instancePath)) continue;
    const fault = describe(error, whole, parameters);
    if (!faults.has(fault.field)) faults.set(fault.field, fault);
    if (faults.size >= most) break;
  }
  return [...faults.values()];
}

/** 400 with the faults; the first one is the `detail`. */
function refusal(faults: readonly Fault[]): ServiceError {
  const list = faults.slice(0, maxFaults);
  const first = list[0] ?? { field: '', detail: 'The request is not valid.' };
  return new ServiceError('VALIDATION_ERROR', first.detail, { field: first.field === '' ? null : first.field, faults: list });
}

/** Translates an error of the validator into a dotted path and a sentence. */
function describe(error: ErrorObject, whole: string, parameters?: readonly string[]): Fault {
  const { instancePath, keyword, params, parentSchema } = error;
  const path = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (keyword === 'required') {
    const field = [...path, params.missingProperty].join('.');
    const { example } = (parentSchema as SchemaShape).properties?.[params.missingProperty] ?? {};
    const hint = example === undefined || parameters ? '' : `, for example ${JSON.stringify(example)}`;
    return { field, detail: `${field} is required${hint}.` };
  }
  if (keyword === 'additionalProperties') {
    const field = [...path, params.additionalProperty].join('.');
    if (parameters !== undefined)
      return { field, detail: `${field} is not a parameter of this request; it takes ${parameters.join(', ')}.` };
    const known = Object.keys((parentSchema as SchemaShape).properties ?? {});
    const holder = path.length === 0 ? 'it' : path.join('.');
    return { field, detail: `${field} is not a field of this request; ${holder} takes ${known.join(', ') || 'no fields'}.` };
  }
  if (error.propertyName !== undefined) {
    const field = [...path, error.propertyName].join('.');
    return { field, detail: `The name of ${field} ${predicateOf(error)}.` };
  }
  const field = path.join('.');
  return { field, detail: `${field === '' ? whole : field} ${predicateOf(error)}.` };
}

/** What is wrong with a value, as the end of a sentence. */
function predicateOf({ keyword, params, message, data, schema }: ErrorObject): string | undefined {
  switch (keyword) {
    case 'enum':
      return `must be one of ${(schema as unknown[]).join(', ')}`;
    case 'type':
      if (params.type === 'integer' && typeof data === 'number') return 'must be a whole number';
      return `must be ${article(String(params.type))}, not ${typeName(data)}`;
    case 'minLength':
    case 'minItems':
      return params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} ${units[keyword]}`;
    case 'maxLength':
    case 'maxItems':
      return `can have at most ${params.limit} ${units[keyword]}`;
    case 'minimum':
      return `must be at least ${params.limit}`;
    case 'maximum':
      return `must be at most ${params.limit}`;
    case 'not':
    case 'false schema':
      return "can't be set";
    case 'format':
      return `must be ${formats[String(params.format)] ?? `a ${params.format}`}`;
    case 'pattern':
      return 'has a character that is not allowed';
    default:
      return message;
  }
}

const units = { minLength: 'characters', maxLength: 'characters', minItems: 'items', maxItems: 'items' };

const formats: Record<string, string> = { timestamp: 'an ISO 8601 date or date-time', uuid: 'a UUID' };

function article(type: string): string {
  const names = type.split(',').map((one) => (/^[aio]/.test(one) ? `an ${one}` : `a ${one}`));
  return names.join(' or ').replace('a null', 'null');
}

function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  return article(typeof value);
}

/** The parts of a JSON schema that are read here and where answers are sent. */
export interface SchemaShape {
  type?: string;
  properties?: Record<string, SchemaShape>;
  additionalProperties?: unknown;
  required?: string[];
  items?: SchemaShape;
  anyOf?: SchemaShape[];
  example?: unknown;
}

type Dropper = (value: unknown) => void;

/** Creates a function that removes, in place, all optional fields with the value null that the schema describes. */
function nullDropper(shape: SchemaShape): Dropper | undefined {
  if (shape.type === 'array' && shape.items !== undefined) {
    const inner = nullDropper(shape.items);
    if (inner === undefined) return undefined;
    return (value) => {
      if (Array.isArray(value)) for (const item of value) inner(item);
    };
  }
  if (shape.properties === undefined) return undefined;
  const fields = Object.entries(shape.properties).map(([name, property]) => ({
    name,
    droppable: !shape.required?.includes(name) && property.type !== undefined && property.type !== 'null',
    inner: nullDropper(property),
  }));
  return (value) => {
    if (typeof value !== 'object' || value === null) return;
    const object = value as Record<string, unknown>;
    for (const { name, droppable, inner } of fields) {
      const item = object[name];
      if (item === null && droppable) delete object[name];
      else if (item !== undefined && inner !== undefined) inner(item);
    }
  };
}
