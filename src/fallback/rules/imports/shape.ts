import { invalid, type ServiceError } from '../../../kit/errors.ts';
import type { WarningList } from '../warning-list.ts';

/** An object of a file, not validated. */
export type Shape = Readonly<Record<string, unknown>>;

/** The value as an object. @throws ServiceError 400 on `field` */
export function objectAt(value: unknown, field: string): Shape {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Shape;
  throw mismatch(value, field, 'an object');
}

/** The value as a list of 1 to `most` items. @throws ServiceError 400 on `field` */
export function listAt(value: unknown, field: string, most: number): readonly unknown[] {
  if (!Array.isArray(value)) throw mismatch(value, field, 'a list');
  if (value.length === 0) throw invalid(field, `${field} must not be empty.`);
  if (value.length > most) throw invalid(field, `${field} can have at most ${most} items.`);
  return value;
}

/** The value as a non-empty string. @throws ServiceError 400 on `field` */
export function textAt(value: unknown, field: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw value === '' ? invalid(field, `${field} must not be empty.`) : mismatch(value, field, 'a string');
}

/** The value as a number of at least `least`, or undefined. @throws ServiceError 400 on `field` */
export function numberAt(value: unknown, field: string, least = 0): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && value >= least) return value;
  throw invalid(field, `${field} must be a number of at least ${least}.`);
}

/** 400 on `field`, which is missing or has another type. */
function mismatch(value: unknown, field: string, wanted: string): ServiceError {
  return invalid(field, value === undefined ? `${field} is required.` : `${field} must be ${wanted}, not ${kindOf(value)}.`);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Adds a finding for each field of an object of the file that has no meaning in a chain. */
export function leaveOutUnknown(findings: WarningList, shape: Shape, known: readonly string[], path: string): void {
  for (const name of Object.keys(shape)) {
    if (known.includes(name)) continue;
    const field = path === '' ? name : `${path}.${name}`;
    findings.add('left_out', field, `${field} is not imported, because a chain has no such field.`);
  }
}

/** A unique name: the text itself, or with a number appended. */
export function uniqueName(wanted: string, taken: Set<string>): string {
  let name = wanted;
  for (let count = 2; taken.has(name); count += 1) name = `${wanted}-${count}`;
  taken.add(name);
  return name;
}
