/** Thrown when a check needs more steps than it may take. */
export class OutOfSteps extends Error {}

/** What a subschema does on each value that it applies to. */
export interface Work {
  /** The entries of its keywords. */
  readonly entries: number;
  /** How many entries it goes through for each property of an object. */
  readonly perProperty: number;
  /** How often it reads the names of all properties of an object. */
  readonly scans: number;
  /** How often it measures a text. */
  readonly lengths: number;
}

/** How many characters of a text, items of an array or errors in a list take as long as an entry of a keyword. */
export const widthPerStep = 8;

/** How many entries of keywords take as long as a property of a large object, whose properties V8 keeps in a table. */
export const stepsPerProperty = 20;

/** How many properties an object has, and how many characters their names have together. */
interface Size {
  readonly width: number;
  readonly characters: number;
}

/** Counts the steps of a check before they are taken, and ends it when they are too many. A step takes about 10 ns. */
export class Meter {
  #left = 0;
  /** The sizes of the objects of the value: measuring one takes as long as going through it. */
  #sizes = new Map<object, Size>();
  #at: unknown;

  start(steps: number): void {
    this.#left = steps;
    this.#at = undefined;
  }

  /** Lets go of the value that was checked, which a checker would otherwise keep until its next check. */
  forget(): void {
    this.#sizes = new Map();
    this.#at = undefined;
  }

  get left(): number {
    return this.#left;
  }

  /** The object, array or text of the value that a subschema was applied to last. */
  get at(): unknown {
    return this.#at;
  }

  /** @throws OutOfSteps */
  take(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new OutOfSteps();
  }

  /**
   * Counts the work of a subschema on a value, without that of the schemas within it.
   * @param copied how many errors it copies
   * @throws OutOfSteps
   */
  apply(entries: number, perProperty: number, scans: number, lengths: number, value: unknown, copied: number): void {
    let steps = entries + copied / widthPerStep;
    if (typeof value === 'string') {
      this.#at = value;
      steps += (lengths * value.length) / widthPerStep;
    } else if (typeof value === 'object' && value !== null) {
      this.#at = value;
      if (Array.isArray(value)) steps += value.length / widthPerStep;
      else if (perProperty > 0) {
        const { width, characters } = this.sizeOf(value);
        steps += perProperty * width + (scans * characters) / widthPerStep;
      }
    }
    this.take(steps);
  }

  /** The size of an object, which is measured once. @throws OutOfSteps */
  sizeOf(value: object): Size {
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    const names = Object.keys(value);
    this.take(names.length * stepsPerProperty);
    const size = { width: names.length, characters: names.reduce((sum, name) => sum + name.length, 0) };
    this.#sizes.set(value, size);
    return size;
  }
}
