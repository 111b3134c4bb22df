import { _, type Code, type KeywordCxt } from 'ajv';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import { type Fault, short } from '../../kit/errors.ts';
import { errorsOf, faultsIn } from '../../kit/http/validate.ts';
import { addAssertions } from './assertions.ts';
import { inspect, maxSchemaBytes, stepKeyword } from './inspect.ts';
import { Meter, OutOfSteps } from './meter.ts';
import { Patterns } from './patterns.ts';
import { pathOf } from './place.ts';

/** How many steps a check may take. A value of 64 KB needs some ten thousand; this many take about 20 ms. */
export const maxSteps = 2_000_000;

/** The most faults that a check lists. */
const maxFaults = 100;

/** The most errors that faults are made of, and the most characters of their paths together. */
const maxErrors = 5 * maxFaults;
const maxPathCharacters = 100_000;

/** Longer lists of required properties are gone through; shorter ones are spelled out in the code, which is faster. */
const longestSpelledOut = 8;

/** What a check found: its faults, if it ended. */
export interface Checked {
  readonly faults: readonly Fault[];
  /** Whether it ended before it knew, since it needed more than `maxSteps`. */
  readonly ranOut: boolean;
  /** Where it was then: the path of the part of the value, or empty. */
  readonly field: string;
  readonly steps: number;
}

/** A schema that values can be checked against, in a bounded number of steps. */
export interface Checker {
  /** @param whole the name of the whole value in sentences */
  check(value: unknown, whole?: string): Checked;
  /** About how many bytes of memory it takes. */
  readonly bytes: number;
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
  const { prepared, subschemas, refersToRoot, faults } = inspect(schema, field);
  if (faults.length > 0) return { faults };
  const wrong = metaFaults(schema, field);
  if (wrong.length > 0) return { faults: wrong };
  const meter = new Meter();
  const patterns = new Patterns(meter);
  const fault = textFault(subschemas, patterns);
  if (fault !== undefined) return { faults: [fault] };
  try {
    return { checker: new CompiledSchema({ prepared, meter, patterns, refersToRoot }) };
  } catch (error) {
    return { faults: [{ field, detail: `${field} can't be compiled: ${(error as Error).message}.` }] };
  }
}

/** A schema that was inspected, and what its checks count and match with. */
interface Inspected {
  readonly prepared: object;
  readonly meter: Meter;
  readonly patterns: Patterns;
  readonly refersToRoot: boolean;
}

/** About how many bytes an instance of Ajv takes, and how many each character of the code that it writes. */
const bytesOfCompiler = 100_000;
const bytesPerCharacter = 5;

/** A schema compiled twice: a value's first fault is found sooner without the others, and most values have none. */
class CompiledSchema implements Checker {
  readonly #schema: Inspected;
  readonly #isValid: ValidateFunction;
  #all: ValidateFunction | undefined;
  #bytes: number;

  constructor(schema: Inspected) {
    this.#schema = schema;
    this.#bytes = schema.patterns.bytes;
    this.#isValid = this.#compiled(false);
  }

  check(value: unknown, whole = 'The value'): Checked {
    return check(value, whole, this.#schema.meter, this.#isValid, () => (this.#all ??= this.#compiled(true)));
  }

  get bytes(): number {
    return this.#bytes;
  }

  #compiled(allErrors: boolean): ValidateFunction {
    this.#bytes += bytesOfCompiler;
    return compile(this.#schema, allErrors, (characters) => {
      this.#bytes += bytesPerCharacter * characters;
    });
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

/** Compiles a schema. An instance of Ajv keeps what it has compiled, so each schema has its own. */
function compile(
  { prepared, meter, patterns, refersToRoot }: Inspected,
  allErrors: boolean,
  onCode: (characters: number) => void,
): ValidateFunction {
  const ajv = new Ajv2020({
    allErrors,
    meta: false,
    validateSchema: false,
    strict: false,
    verbose: true,
    logger: false,
    inlineRefs: false,
    ownProperties: true,
    loopRequired: longestSpelledOut,
    code: {
      regExp: patterns.engine,
      optimize: false,
      process(code) {
        onCode(code.length);
        return code;
      },
    },
    formats: formatsFor(meter),
  });
  addAssertions(ajv, meter);
  ajv.addKeyword({
    keyword: stepKeyword,
    schemaType: 'object',
    before: '$ref',
    code: (cxt) => countSteps(cxt, meter, allErrors && !refersToRoot),
  });
  return ajv.compile(prepared);
}

/** Counts the steps of a subschema before its other keywords, and ends a list of faults that is long enough. */
function countSteps({ gen, data, schema, parentSchema, it }: KeywordCxt, meter: Meter, mayEnd: boolean): void {
  const counted = gen.scopeValue('obj', { ref: meter });
  const { entries, perProperty, scans, lengths } = schema;
  // A reference copies the errors that were found before it.
  const copied: Code | number = parentSchema.$ref === undefined ? 0 : _`errors`;
  gen.code(_`${counted}.apply(${entries}, ${perProperty}, ${scans}, ${lengths}, ${data}, ${copied})`);
  // Elsewhere an error may be that of a branch, whose siblings may be satisfied.
  if (!mayEnd || it.compositeRule || it.schemaEnv !== it.schemaEnv.root) return;
  const enough = gen.scopeValue('func', { ref: endWith });
  gen.if(_`errors >= ${maxErrors}`, () => gen.code(_`${enough}(vErrors)`));
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
function check(value: unknown, whole: string, meter: Meter, isValid: ValidateFunction, findAll: () => ValidateFunction): Checked {
  const first = run(value, meter, isValid);
  if ('ranOutAt' in first) return { faults: [], ranOut: true, field: first.ranOutAt, steps: maxSteps };
  const steps = maxSteps - Math.max(0, meter.left);
  if (first.errors.length === 0) return { faults: [], ranOut: false, field: '', steps };
  const all = runAll(value, meter, findAll());
  const errors = 'ranOutAt' in all || all.errors.length === 0 ? first.errors : all.errors;
  const faults = faultsIn(reported(errors).map(worded), whole, { most: maxFaults });
  return { faults, ranOut: false, field: '', steps: steps + maxSteps - Math.max(0, meter.left) };
}

/** The first errors, as long as their paths are not too long together: one may be as long as the value. */
function reported(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  let characters = 0;
  const end = errors.findIndex(({ instancePath }) => {
    characters += instancePath.length;
    return characters > maxPathCharacters;
  });
  return errors.slice(0, Math.min(maxErrors, end === -1 ? maxErrors : Math.max(1, end)));
}

/**
 * Finds all errors. Code that Ajv 8 makes to find all of them fails for some alternatives with properties, such as
 * `{patternProperties, oneOf: [{anyOf: [{properties}]}]}`; the first error is known then, and no others are listed.
 */
function runAll(value: unknown, meter: Meter, isValid: ValidateFunction): ReturnType<typeof run> {
  try {
    return run(value, meter, isValid);
  } catch (error) {
    if (error instanceof TypeError) return { errors: [] };
    throw error;
  }
}

function run(value: unknown, meter: Meter, isValid: ValidateFunction): { errors: readonly ErrorObject[] } | { ranOutAt: string } {
  meter.start(maxSteps);
  try {
    return { errors: errorsOf(isValid, value) };
  } catch (error) {
    if (error instanceof EnoughFaults) return error;
    // A chain of references may call itself deeper than the stack.
    if (error instanceof OutOfSteps || error instanceof RangeError) return { ranOutAt: pathOf(meter.at, value) ?? '' };
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
  if (keyword === 'format')
    return { ...error, keyword: 'matches', message: `must be ${/^[aeiou]/.test(params.format) ? 'an' : 'a'} ${params.format}` };
  return error;
}

const quoted = (text: string) => short(text, maxQuoted);
