import { invalid, type ServiceError } from '../../../kit/errors.ts';
import type { ExportWarning } from '../exports/target.ts';

/** An object of a file, whatever is in it. */
export type Shape = Readonly<Record<string, unknown>>;

/** The value as an object, or 400 on `field`. */
export function objectAt(value: unknown, field: string): Shape {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Shape;
  throw mismatch(value, field, 'an object');
}

/** The value as a list of at most `most` items, or 400 on `field`. */
export function listAt(value: unknown, field: string, most: number): readonly unknown[] {
  if (!Array.isArray(value)) throw mismatch(value, field, 'a list');
  if (value.length === 0) throw invalid(field, `${field} must not be empty.`);
  if (value.length > most) throw invalid(field, `${field} can have at most ${most} items.`);
  return value;
}

/** The value as a text with something in it, or 400 on `field`. */
export function textAt(value: unknown, field: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw value === '' ? invalid(field, `${field} must not be empty.`) : mismatch(value, field, 'a text');
}

/** The value as a number of `least` or more, undefined where there is none, or 400 on `field`. */
export function numberAt(value: unknown, field: string, least = 0): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && value >= least) return value;
  throw invalid(field, `${field} must be a number of at least ${least}.`);
}

/** 400 on `field`, which is missing or of another kind. */
function mismatch(value: unknown, field: string, wanted: string): ServiceError {
  return invalid(field, value === undefined ? `${field} is required.` : `${field} must be ${wanted}, not ${kindOf(value)}.`);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value === 'string' ? 'text' : typeof value}`;
}

/** What was read differently from how it was written, or left out. */
export class Findings {
  readonly list: ExportWarning[] = [];

  add(code: string, field: string | null, detail: string): void {
    this.list.push({ code, field, detail });
  }

  /** Names the members of a file that say nothing to a chain. */
  leftOut(shape: Shape, known: readonly string[], path: string): void {
    for (const name of Object.keys(shape)) {
      if (known.includes(name)) continue;
      const field = path === '' ? name : `${path}.${name}`;
      this.add('left_out', field, `${field} has no place in a chain and is left out.`);
    }
  }
}

/** The name that isn't taken yet: the text itself, or with a number behind it. */
export function uniqueName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let count = 2; taken.has(name); count += 1) name = `${wanted}-${count}`;
  taken.add(name);
  return name;
}
