import { isObject } from '../../kit/json.ts';

/** How many subschemas, names and values are looked at before a check is left to the engine. */
const maxSteps = 1_000;

/** Thrown where only the engine knows. */
class Unsure extends Error {}

const unsure = new Unsure();

type Json = Readonly<Record<string, unknown>>;

const isNumber = (value: unknown): value is number => typeof value === 'number';

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  number: isNumber,
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
};

/** What says nothing about a value. */
const annotations: ReadonlySet<string> = new Set(['title', 'description', '$comment']);

/**
 * Whether a value fits a schema that the engine of contracts takes, where the common keywords of rules say so in few steps; undefined: the
 * engine must check it. The engine works in a thread, and the way there takes longer than such a check.
 */
export function quickFit(schema: unknown, value: unknown): boolean | undefined {
  try {
    return new QuickCheck().fits(schema, value);
  } catch (error) {
    if (error === unsure) return undefined;
    throw error;
  }
}

class QuickCheck {
  #left = maxSteps;

  fits(schema: unknown, value: unknown): boolean {
    this.#step();
    if (typeof schema === 'boolean') return schema;
    if (!isObject(schema)) throw unsure;
    return Object.entries(schema).every(([keyword, given]) => this.#holds(keyword, given, value));
  }

  #step(): void {
    this.#left -= 1;
    if (this.#left < 0) throw unsure;
  }

  #holds(keyword: string, given: unknown, value: unknown): boolean {
    this.#step();
    switch (keyword) {
      case 'type':
        return [given].flat().some((name) => types[name as string]!(value));
      case 'const':
        return this.#equal(given, value);
      case 'enum':
        return (given as unknown[]).some((one) => this.#equal(one, value));
      case 'allOf':
        return (given as unknown[]).every((one) => this.fits(one, value));
      case 'properties':
        return (
          !isObject(value) || Object.entries(given as Json).every(([name, one]) => !this.#has(value, name) || this.fits(one, value[name]))
        );
      case 'required':
        return !isObject(value) || (given as string[]).every((name) => this.#has(value, name));
      case 'items':
        return !Array.isArray(value) || value.every((item) => this.fits(given, item));
      case 'minItems':
        return !Array.isArray(value) || value.length >= (given as number);
      case 'minimum':
        return !isNumber(value) || value >= (given as number);
      case 'maximum':
        return !isNumber(value) || value <= (given as number);
      case 'exclusiveMinimum':
        return !isNumber(value) || value > (given as number);
      case 'exclusiveMaximum':
        return !isNumber(value) || value < (given as number);
      default:
        if (annotations.has(keyword)) return true;
        throw unsure;
    }
  }

  #has(value: Json, name: string): boolean {
    this.#step();
    // Names that every object has are the engine's.
    if (name in Object.prototype) throw unsure;
    return value[name] !== undefined;
  }

  /** Of texts, numbers, booleans and null; the rest is the engine's. */
  #equal(one: unknown, other: unknown): boolean {
    this.#step();
    if (typeof one === 'object' && one !== null && typeof other === 'object' && other !== null) throw unsure;
    return one === other;
  }
}
