import { _, type Ajv, type SchemaValidateFunction, str } from 'ajv';

import { canonicalJson } from '../rules/canonical-json.ts';
import { type Meter, stepsPerProperty, widthPerStep } from './meter.ts';

/**
 * Gives an instance of Ajv the keywords whose own versions do not count their steps, take time that grows faster than value and schema,
 * write code for each name of a list, or calculate in binary fractions.
 */
export function addAssertions(ajv: Ajv, meter: Meter): void {
  for (const keyword of ['enum', 'const', 'uniqueItems', 'dependentRequired', 'multipleOf']) ajv.removeKeyword(keyword);
  const plain = (message: string) => ({ message, params: () => _`{}` });
  ajv.addKeyword({
    keyword: 'enum',
    schemaType: 'array',
    validate: (values: unknown[], data: unknown) => values.some((value) => isSame(value, data, meter)),
    error: plain('must be one of the values'),
  });
  ajv.addKeyword({
    keyword: 'const',
    validate: (value: unknown, data: unknown) => isSame(value, data, meter),
    error: plain('must be the value'),
  });
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    validate: (isUnique: boolean, items: unknown[]) => !isUnique || duplicatesIn(items, meter) === undefined,
    error: plain('must not contain an item twice'),
  });
  ajv.addKeyword({ keyword: 'dependentRequired', type: 'object', schemaType: 'object', errors: true, validate: dependents(meter) });
  ajv.addKeyword({
    keyword: 'multipleOf',
    type: 'number',
    schemaType: 'number',
    validate: (divisor: number, data: number) => isMultiple(data, divisor, meter),
    error: { message: ({ schema }) => str`must be a multiple of ${schema}`, params: () => _`{}` },
  });
}

/** Whether two JSON values are equal. Only own properties count. @throws OutOfSteps */
function isSame(one: unknown, other: unknown, meter: Meter): boolean {
  meter.take(1);
  if (typeof one === 'string' && typeof other === 'string') {
    if (one.length !== other.length) return false;
    meter.take(one.length / widthPerStep);
    return one === other;
  }
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => isSame(item, other[index], meter));
  }
  const { width, characters } = meter.sizeOf(one);
  if (width !== meter.sizeOf(other).width) return false;
  meter.take(width * stepsPerProperty + characters / widthPerStep);
  return Object.keys(one).every((name) => Object.hasOwn(other, name) && isSame(one[name as never], other[name as never], meter));
}

/** The indexes of two equal items of an array; undefined if there are none. Takes time in proportion to the array's text. @throws OutOfSteps */
function duplicatesIn(items: readonly unknown[], meter: Meter): { i: number; j: number } | undefined {
  const seen = new Map<string, number>();
  for (const [i, item] of items.entries()) {
    const text = canonicalJson(item, (cost) => meter.take(cost / widthPerStep));
    const j = seen.get(text);
    if (j !== undefined) return { i, j };
    seen.set(text, i);
  }
  return undefined;
}

/** `dependentRequired`: an object that has a property must have others. */
function dependents(meter: Meter): SchemaValidateFunction {
  const validate: SchemaValidateFunction = (needs: Record<string, readonly string[]>, data: object) => {
    const errors: NonNullable<typeof validate.errors> = [];
    for (const [property, names] of Object.entries(needs)) {
      if (!Object.hasOwn(data, property)) continue;
      meter.take(names.length * stepsPerProperty);
      for (const missing of names)
        if (!Object.hasOwn(data, missing))
          errors.push({ message: `must have property ${missing} when property ${property} is present`, params: { property, missing } });
    }
    validate.errors = errors;
    return errors.length === 0;
  };
  return validate;
}

/**
 * Whether a number is a multiple of another one, by the decimal digits that JSON has for them: 19.99 is a multiple of 0.01, though the
 * quotient of the nearest binary fractions is no integer. JSON Schema validation, section 6.2.1. @throws OutOfSteps
 */
function isMultiple(value: number, divisor: number, meter: Meter): boolean {
  if (!Number.isFinite(value)) return false;
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return value % divisor === 0;
  const [one, other] = [decimalOf(value), decimalOf(divisor)];
  const shift = one.exponent - other.exponent;
  meter.take(stepsPerProperty + Math.abs(shift));
  const scale = 10n ** BigInt(Math.abs(shift));
  return shift >= 0 ? (one.digits * scale) % other.digits === 0n : one.digits % (other.digits * scale) === 0n;
}

/** A number as digits and a power of ten. */
function decimalOf(value: number): { digits: bigint; exponent: number } {
  const [mantissa, power = '0'] = String(value).split('e') as [string, string?];
  const [whole, fraction = ''] = mantissa.split('.') as [string, string?];
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}
