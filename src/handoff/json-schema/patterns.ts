import { RE2JS } from 're2js';

import type { Meter } from './meter.ts';

/** The most instructions of the compiled patterns of a schema together. An instruction may take a turn for each character of a text. */
const maxPatternSize = 1000;

/** The most characters of the patterns of a schema together, each as often as it is repeated: compiling takes time in proportion to it. */
const maxPatternLength = 30_000;

/** The most times that the engine repeats anything. */
const maxRepeats = 1000;

/** The steps of one character of a text, for each instruction of the pattern. */
const stepsPerInstruction = 2;

/** About how many bytes an instruction takes, with the states that the engine keeps. */
const bytesPerInstruction = 1000;

/** A pattern that is compiled. */
interface Pattern {
  readonly size: number;
  test(text: string): boolean;
}

/** The patterns of one schema, for an engine that takes time in proportion to the text, and counts the steps. */
export class Patterns {
  readonly #meter: Meter;
  readonly #compiled = new Map<string, Pattern>();
  #length = 0;
  #size = 0;

  constructor(meter: Meter) {
    this.#meter = meter;
  }

  /** About how many bytes of memory they take. */
  get bytes(): number {
    return this.#size * bytesPerInstruction;
  }

  /** @throws Error with the reason, if the engine does not know the pattern, or the patterns are too large */
  compile(pattern: string): Pattern {
    const known = this.#compiled.get(pattern);
    if (known !== undefined) return known;
    if (/\(\?[a-z-]*[ims-]/i.test(pattern)) throw new Error('flags inside a pattern are not supported');
    this.#length += spelledOut(pattern);
    if (this.#length > maxPatternLength) throw new Error('the patterns of the schema are too long, or repeat too much');
    const expression = RE2JS.compile(RE2JS.translateRegExp(pattern));
    const size = expression.programSize();
    this.#size += size;
    if (this.#size > maxPatternSize) throw new Error('the patterns of the schema are too large, or repeat too much');
    const meter = this.#meter;
    const compiled = {
      size,
      test(text: string): boolean {
        meter.take((text.length + 1) * size * stepsPerInstruction);
        return expression.test(text);
      },
      // By this Ajv shares equal patterns.
      toString: () => pattern,
    };
    this.#compiled.set(pattern, compiled);
    return compiled;
  }

  /** What Ajv makes regular expressions with. */
  get engine(): ((pattern: string) => Pattern) & { readonly code: string } {
    // Ajv writes the code into standalone modules, which nobody asks for.
    return Object.assign((pattern: string) => this.compile(pattern), { code: 'new RegExp' });
  }
}

/** A class of Unicode has hundreds of ranges. */
const lengthOfClass = 500;

/** At most how long the pattern is with all its repetitions spelled out. The engine refuses more than 1,000 within one another. */
function spelledOut(pattern: string): number {
  let repeats = 1;
  for (const [, least, most = ''] of pattern.matchAll(/\{(\d+)(?:,(\d*))?\}/g))
    repeats = Math.min(maxRepeats, repeats * Math.max(1, Number(least), Number(most)));
  const classes = pattern.match(/\\p/gi)?.length ?? 0;
  return (pattern.length + classes * lengthOfClass) * repeats;
}
