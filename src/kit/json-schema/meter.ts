import { canonicalJson } from '../canonical-json.ts';

/** Thrown when a check needs more steps than it may take. */
export class OutOfSteps extends Error {}

/** What a subschema does on each value that it applies to. */
export interface Work {
  /** The entries of its keywords. */
  readonly entries: number;
  /** How many entries it goes through for each property of an object. */
  readonly perProperty: number;
}

/** How many characters of a text, or items of an array, take as long as an entry of a keyword. */
const widthPerStep = 8;

/** How many entries of keywords take as long as a property of a large object, whose properties V8 keeps in a table. */
export const stepsPerProperty = 20;

/** Counts the steps of a check, and ends it when it takes too many. A step takes about 10 ns. */
export class Meter {
  #left = 0;
  /** How many properties the objects of the value have: counting them takes as long as going through them. */
  #widths = new Map<object, number>();

  start(steps: number): void {
    this.#left = steps;
  }

  /** Lets go of the value that was checked, which a checker would otherwise keep until its next check. */
  forget(): void {
    this.#widths = new Map();
  }

  get left(): number {
    return this.#left;
  }

  /** @throws OutOfSteps */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new OutOfSteps();
  }

  /** Counts the work of a subschema on a value, without that of the schemas within it. @throws OutOfSteps */
  apply(entries: number, perProperty: number, value: unknown): void {
    if (typeof value === 'string' || Array.isArray(value)) this.take(entries + value.length / widthPerStep);
    else if (perProperty > 0 && typeof value === 'object' && value !== null) this.take(entries + perProperty * this.#propertiesOf(value));
    else this.take(entries);
  }

  #propertiesOf(value: object): number {
    const known = this.#widths.get(value);
    if (known !== undefined) return known;
    const width = Object.keys(value).length;
    this.take(width * stepsPerProperty);
    this.#widths.set(value, width);
    return width;
  }
}

/** Whether two JSON values are equal. Only own properties count. @throws OutOfSteps */
export function isSame(one: unknown, other: unknown, meter: Meter): boolean {
  meter.take(1);
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => isSame(item, other[index], meter));
  }
  const names = Object.keys(one);
  meter.take(names.length * stepsPerProperty);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSame(one[name as never], other[name as never], meter))
  );
}

/** The indexes of two equal items of an array; undefined if there are none. Takes time in proportion to the array's text. @throws OutOfSteps */
export function duplicatesIn(items: readonly unknown[], meter: Meter): { i: number; j: number } | undefined {
  const seen = new Map<string, number>();
  for (const [i, item] of items.entries()) {
    const text = canonicalJson(item, (cost) => meter.take(cost / widthPerStep));
    const j = seen.get(text);
    if (j !== undefined) return { i, j };
    seen.set(text, i);
  }
  return undefined;
}
