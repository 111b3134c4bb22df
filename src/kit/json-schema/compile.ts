import { _, type KeywordCxt } from 'ajv';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { fullFormats } from 'ajv-formats/dist/formats.js';

import type { Fault } from '../errors.ts';
import { errorsOf, faultsIn } from '../http/validate.ts';
import { inspect, maxSchemaBytes, stepKeyword } from './inspect.ts';
import { duplicatesIn, isSame, Meter, OutOfSteps } from './meter.ts';
import { Patterns } from './patterns.ts';

/** How many steps a check may take. A packet of 64 KB needs some ten thousand; this many take about 20 ms. */
export const maxSteps = 2_000_000;

/** The most faults of a check. */
export const maxFaults = 100;

/** What a check found: its faults, if it ended. */
export interface Checked {
  readonly faults: readonly Fault[];
  /** Whether it ended before it knew, since it needed more than `maxSteps`. */
  readonly ranOut: boolean;
  readonly steps: number;
}

/** A schema that values can be checked against, in a bounded number of steps. */
export interface Checker {
  check(value: unknown): Checked;
}

/** The longest text of a format. Some of their expressions take quadratic time. */
const maxFormatLength = 1024;

/** Thrown when enough faults are found. */
class EnoughFaults extends Error {
  readonly errors: readonly ErrorObject[];

  constructor(errors: readonly ErrorObject[]) {
    super();
    this.errors = errors;
  }
}

let metaSchema: ValidateFunction | undefined;

/** What is wrong with a schema by the schema of schemas. */
function metaFaults(schema: unknown, field: string): readonly Fault[] {
  if (metaSchema === undefined) {
    const ajv = new Ajv2020({ strict: false, validateFormats: false, verbose: true });
    metaSchema = ajv.getSchema('https://json-schema.org/draft/2020-12/schema')!;
  }
  return faultsIn(errorsOf(metaSchema, schema), '').map(({ field: path, detail }) => ({
    field: path === '' ? field : `${field}.${path}`,
    detail: `${field}${path === '' ? '' : '.'}${detail.trimStart()}`,
  }));
}

/**
 * A checker of a schema of JSON Schema 2020-12, or the faults of the schema, by the path from `field`. The schema may be anybody's: nothing
 * that it refers to is fetched, and neither compiling it nor a check takes long.
 */
export function compileSchema(schema: unknown, field = 'schema'): { readonly checker: Checker } | { readonly faults: readonly Fault[] } {
  const size = Buffer.byteLength(JSON.stringify(schema));
  if (size > maxSchemaBytes)
    return { faults: [{ field, detail: `${field} has ${size} bytes as JSON; at most ${maxSchemaBytes} are allowed.` }] };
  const { prepared, subschemas, faults } = inspect(schema, field);
  if (faults.length > 0) return { faults };
  const wrong = metaFaults(schema, field);
  if (wrong.length > 0) return { faults: wrong };
  const meter = new Meter();
  const patterns = new Patterns(meter);
  const fault = textFault(subschemas, patterns);
  if (fault !== undefined) return { faults: [fault] };
  try {
    // Twice: the first fault is found sooner without the others, and most values have none.
    const isValid = compile(prepared, meter, patterns, false);
    let all: ValidateFunction | undefined;
    const findAll = () => (all ??= compile(prepared, meter, patterns, true));
    return { checker: { check: (value) => check(value, meter, isValid, findAll) } };
  } catch (error) {
    return { faults: [{ field, detail: `${field} can't be compiled: ${(error as Error).message}.` }] };
  }
}

/** The first pattern or format of a schema that can't be used, as a fault. */
function textFault(subschemas: readonly (readonly [string, Record<string, unknown>])[], patterns: Patterns): Fault | undefined {
  for (const [path, { pattern, patternProperties, format }] of subschemas) {
    if (format !== undefined && !formatNames.includes(format as string))
      return { field: `${path}.format`, detail: `${path}.format must be one of ${formatNames.join(', ')}.` };
    const own = pattern === undefined ? [] : [[`${path}.pattern`, pattern as string] as const];
    const ofNames = Object.keys(patternProperties ?? {}).map((name) => [`${path}.patternProperties.${name}`, name] as const);
    for (const [field, text] of [...own, ...ofNames]) {
      const fault = patternFault(field, text, patterns);
      if (fault !== undefined) return fault;
    }
  }
  return undefined;
}

/** Why a pattern can't be used. */
function patternFault(field: string, pattern: string, patterns: Patterns): Fault | undefined {
  try {
    patterns.compile(pattern);
    return undefined;
  } catch (error) {
    return { field, detail: `${field} can't be used: ${reasonOf(error)}. Patterns run in an engine of linear time (RE2).` };
  }
}

const reasonOf = (error: unknown) => (error as Error).message.replace(/^error parsing regexp: /, '');

/** Compiles a schema that was inspected. An instance of Ajv keeps what it has compiled, so each schema has its own. */
function compile(schema: object, meter: Meter, patterns: Patterns, allErrors: boolean): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors,
    meta: false,
    validateSchema: false,
    strict: false,
    verbose: true,
    logger: false,
    inlineRefs: false,
    ownProperties: true,
    code: { regExp: patterns.engine, optimize: false },
    formats: formatsFor(meter),
  });
  for (const keyword of ['enum', 'const', 'uniqueItems']) ajv.removeKeyword(keyword);
  ajv.addKeyword({
    keyword: stepKeyword,
    schemaType: 'object',
    before: '$ref',
    code: (cxt) => countSteps(cxt, meter),
  });
  ajv.addKeyword({
    keyword: 'enum',
    schemaType: 'array',
    validate: (values: unknown[], data: unknown) => values.some((value) => isSame(value, data, meter)),
    error: { message: 'must be one of the values', params: () => _`{}` },
  });
  ajv.addKeyword({
    keyword: 'const',
    validate: (value: unknown, data: unknown) => isSame(value, data, meter),
    error: { message: 'must be the value', params: () => _`{}` },
  });
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isUnique: boolean, items: unknown[]) => !isUnique || duplicatesIn(items, meter) === undefined,
    error: { message: 'must not contain an item twice', params: () => _`{}` },
  });
  return ajv.compile(schema);
}

/** Counts the steps of a subschema before its other keywords, and ends a check that found enough faults. */
function countSteps({ gen, data, schema }: KeywordCxt, meter: Meter): void {
  const counted = gen.scopeValue('obj', { ref: meter });
  const enough = gen.scopeValue('func', { ref: endWith });
  gen.code(_`${counted}.apply(${schema.entries}, ${schema.perProperty}, ${data})`);
  gen.if(_`errors >= ${maxFaults}`, () => gen.code(_`${enough}(vErrors)`));
}

function endWith(errors: readonly ErrorObject[]): never {
  throw new EnoughFaults(errors);
}

/** The formats that a schema may name: those of ajv-formats, except `url`, whose expression takes cubic time. */
const formatEntries = Object.entries(fullFormats).filter(([name]) => name !== 'url');
const formatNames: readonly string[] = formatEntries.map(([name]) => name);

/** The formats, which count steps. */
function formatsFor(meter: Meter) {
  return Object.fromEntries(
    formatEntries.map(([name, format]) => {
      const test = testOf(format);
      if (test === undefined) return [name, format];
      const validate = (text: string) => {
        const { length } = text;
        if (length > maxFormatLength && !isPlain.has(name)) return false;
        meter.take(isPlain.has(name) ? length / 8 : length + (length * length) / 64);
        return test(text);
      };
      return [name, { type: 'string' as const, validate }];
    }),
  );
}

/** Formats that any text has, or whose expression goes through a text once. */
const isPlain: ReadonlySet<string> = new Set(['byte', 'password', 'binary']);

/** The test of a format of texts; undefined for formats of numbers. */
function testOf(format: (typeof fullFormats)[keyof typeof fullFormats]): ((text: string) => boolean) | undefined {
  if (typeof format === 'boolean') return () => format;
  if (typeof format === 'string') return undefined;
  if (format instanceof RegExp) return (text) => format.test(text);
  if (typeof format === 'function') return format as (text: string) => boolean;
  if (format.type === 'number') return undefined;
  return testOf(format.validate as never);
}

/** Checks a value; lists all faults of one that has any, if they are found in as many steps. */
function check(value: unknown, meter: Meter, isValid: ValidateFunction, findAll: () => ValidateFunction): Checked {
  const first = run(value, meter, isValid);
  if (first === 'ran out') return { faults: [], ranOut: true, steps: maxSteps };
  const steps = maxSteps - Math.max(0, meter.left);
  if (first.length === 0) return { faults: [], ranOut: false, steps };
  const all = run(value, meter, findAll());
  const errors = all === 'ran out' || all.length === 0 ? first : all;
  const faults = faultsIn(errors.slice(0, maxFaults * 5).map(worded), 'The packet', { most: maxFaults });
  return { faults, ranOut: false, steps: steps + maxSteps - Math.max(0, meter.left) };
}

function run(value: unknown, meter: Meter, isValid: ValidateFunction): readonly ErrorObject[] | 'ran out' {
  meter.start(maxSteps);
  try {
    return errorsOf(isValid, value);
  } catch (error) {
    if (error instanceof EnoughFaults) return error.errors;
    // A chain of references may call itself deeper than the stack.
    if (error instanceof OutOfSteps || error instanceof RangeError) return 'ran out';
    throw error;
  } finally {
    meter.forget();
  }
}

/** The longest value that a sentence quotes, in characters. */
const maxQuoted = 200;

/** The error with a sentence of its own, where that of Ajv does not say what is allowed. */
function worded(error: ErrorObject): ErrorObject {
  const { keyword, schema, params } = error;
  if (keyword === 'pattern') return { ...error, keyword: 'matches', message: `must match the pattern ${quoted(params.pattern)}` };
  if (keyword === 'const') return { ...error, message: `must be ${quoted(JSON.stringify(schema))}` };
  if (keyword === 'format') return { ...error, message: `must be a ${params.format}` };
  return error;
}

const quoted = (text: string) => (text.length > maxQuoted ? `${text.slice(0, maxQuoted).toWellFormed()}...` : text);
