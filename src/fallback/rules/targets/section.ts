import { invalid, type ServiceError } from '../../../kit/errors.ts';
import type { Concern, FindingList } from '../finding-list.ts';

/** An object of an imported file, whose fields are read one by one. Errors and findings name the path of the field. */
export class Section {
  readonly fields: Readonly<Record<string, unknown>>;
  /** Its dotted path; empty for the whole file. */
  readonly path: string;
  readonly findings: FindingList;
  /** The paths of fields that come from other objects of the file. */
  readonly #paths: Readonly<Record<string, string>>;

  /** @throws ServiceError 400 on the path if the value is not an object */
  constructor(value: unknown, path: string, findings: FindingList, paths: Readonly<Record<string, string>> = {}) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw mismatch(value, path || 'content', 'an object');
    this.fields = value as Section['fields'];
    this.path = path;
    this.findings = findings;
    this.#paths = paths;
  }

  /** The path of a field. */
  at(name: string | number): string {
    return this.#paths[name] ?? (this.path === '' ? String(name) : `${this.path}.${name}`);
  }

  /** A field's value; null is the same as none. */
  get(name: string): unknown {
    return this.fields[name] ?? undefined;
  }

  /** A field that is an object. @throws ServiceError 400 */
  section(name: string): Section {
    return new Section(this.fields[name], this.at(name), this.findings);
  }

  /** A field that may be left out or null, and otherwise is an object. @throws ServiceError 400 */
  optional(name: string): Section | undefined {
    return this.get(name) === undefined ? undefined : this.section(name);
  }

  /** A field that is a list of 1 to `most` items. @throws ServiceError 400 */
  list(name: string, most: number): readonly unknown[] {
    const value = this.fields[name];
    const field = this.at(name);
    if (!Array.isArray(value)) throw mismatch(value, field, 'a list');
    if (value.length === 0) throw invalid(field, `${field} must not be empty.`);
    requireAtMost(most, value, field);
    return value;
  }

  /** A field that is a list of objects. @throws ServiceError 400 */
  sections(name: string, most: number): Section[] {
    return this.list(name, most).map((item, index) => new Section(item, `${this.at(name)}.${index}`, this.findings));
  }

  /** A field that is a non-empty string. @throws ServiceError 400 */
  text(name: string): string {
    return textAt(this.fields[name], this.at(name));
  }

  /** A field that is a number from 0 to `most`, or undefined. @throws ServiceError 400 */
  number(name: string, most: number): number | undefined {
    const value = this.get(name);
    if (value === undefined || (typeof value === 'number' && value >= 0 && value <= most)) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? 'of at least 0' : `from 0 to ${most}`;
    throw invalid(this.at(name), `${this.at(name)} must be a number ${range}.`);
  }

  /** A field that is a whole number of at least 0, or undefined; one above `most` is reduced to it, with a finding. @throws ServiceError 400 */
  count(name: string, most: number): number | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
      throw invalid(this.at(name), `${this.at(name)} must be a whole number of at least 0.`);
    if (value > most) this.note('reduced', name, `is reduced to ${most}.`, { loss: true, measured: false });
    return Math.min(value, most);
  }

  /** The variable that a field refers to as a key. A key itself is never imported or quoted. */
  keyVariable(name: string, reference: RegExp): string | undefined {
    const value = this.get(name);
    const variable = typeof value === 'string' ? reference.exec(value)?.[1] : undefined;
    const why = 'it is not a reference to an environment variable and keys are never stored. Set api_key_env to the name of a variable';
    if (value !== undefined && variable === undefined) this.leaveOut(name, why, 'key_left_out');
    return variable;
  }

  /** Adds a finding whose sentence begins with the path of the field. */
  note(kind: string, name: string, rest: string, concern?: Concern): void {
    this.findings.add(kind, this.at(name), `${this.at(name)} ${rest}`, concern);
  }

  /** Adds the finding that a field is not imported. */
  leaveOut(name: string, why: string, kind = 'left_out', concern?: Concern): void {
    this.note(kind, name, `is not imported, because ${why}.`, concern);
  }

  /** Adds a finding for each field that has no meaning in a chain. It is a loss unless it is known not to change the calls. */
  leaveOutUnknown(known: readonly string[], harmless: readonly string[] = []): void {
    for (const name of Object.keys(this.fields)) {
      const loss = !harmless.includes(name);
      if (!known.includes(name)) this.leaveOut(name, 'a chain has no such field', 'left_out', { loss, measured: false });
    }
  }
}

/** The value as a non-empty string. @throws ServiceError 400 on `field` */
export function textAt(value: unknown, field: string): string {
  if (typeof value === 'string' && value !== '') return value;
  throw value === '' ? invalid(field, `${field} must not be empty.`) : mismatch(value, field, 'a string');
}

/** @throws ServiceError 400 on `field` for a list of more items */
export function requireAtMost(most: number, items: readonly unknown[], field: string): void {
  if (items.length > most) throw invalid(field, `${field} can have at most ${most} items.`);
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

/** A provider or a rule for a chain request, not validated yet. */
export type Draft = Readonly<Record<string, unknown>>;

/** Reads a file; the chain starts at `group`, if the format has groups. @throws ServiceError 400 with the invalid field */
export type Importer = (file: Section, group?: string) => Draft;
