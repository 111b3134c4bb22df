import { isObject, readJson } from '../json.ts';
import { beginningOf } from '../wording.ts';
import type { Values } from './dialect.ts';
import type { ExportHeader, TableHeader } from './export.ts';
import type { TableShape } from './shape.ts';
import { lastNumber, type Tenancy } from './tenancy.ts';

/** The error of a line of an exported file. `what` completes a sentence. */
export const faultAt = (line: number, what: string): Error => new Error(`Line ${line} of the file: ${what}.`);

const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= lastNumber;
const areTexts = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every((item) => typeof item === 'string');

/** A value as a sentence quotes it. */
const quoted = (value: unknown): string => beginningOf(String(JSON.stringify(value)), 60);

function parsed(text: string, line: number): unknown {
  try {
    return readJson(text);
  } catch {
    throw faultAt(line, 'it is not JSON');
  }
}

/** The first line of a file. @throws Error that says what is wrong with it */
export function headerIn(text: string): ExportHeader {
  const header = parsed(text, 1);
  if (!isObject(header)) throw faultAt(1, 'it must be an object');
  const { version, migrations, rows, last, tenant } = header;
  if (version !== 1) throw new Error('The file was written by a newer version; use that version.');
  if (!areTexts(migrations)) throw faultAt(1, 'migrations must be a list of names');
  for (const [name, counts] of Object.entries({ rows, last })) {
    if (!isObject(counts)) throw faultAt(1, `${name} must be an object with a number for each table`);
    for (const [table, count] of Object.entries(counts))
      if (!isCount(count)) throw faultAt(1, `${name}.${table} must be a whole number up to ${lastNumber}, not ${quoted(count)}`);
  }
  if (tenant !== undefined && !(isObject(tenant) && typeof tenant.id === 'string' && isCount(tenant.number)))
    throw faultAt(1, 'tenant must have an id and a number');
  return header as unknown as ExportHeader;
}

/** What the lines of a file are checked against. */
interface Expected {
  readonly header: ExportHeader;
  readonly tables: readonly TableShape[];
  readonly tenancy: Tenancy | undefined;
}

/** Checks the lines after the first one, in their order. */
export class LineReader {
  readonly #expected: Expected;
  /** The numbers of rows that were read, by table. */
  readonly #read = new Map<string, number>();
  /** The tenants of the file, by number and by id. */
  readonly #numbers = new Set<unknown>();
  readonly #ids = new Set<unknown>();
  #shape: TableShape | undefined;
  #columns: readonly string[] = [];
  #line = 1;

  /** @throws Error when the header lacks the last number of a table */
  constructor(expected: Expected) {
    this.#expected = expected;
    const { header, tables } = expected;
    const unnumbered = tables.find(({ name, numbered }) => numbered !== undefined && header.last[name] === undefined);
    if (unnumbered !== undefined) throw faultAt(1, `last lacks the table ${unnumbered.name}`);
  }

  /** The number of the line that was read last. */
  get line(): number {
    return this.#line;
  }

  /** Reads the next line: a row of the current table, or the beginning of the next one. @throws Error that names the line */
  next(text: string): { readonly row: Values } | { readonly shape: TableShape; readonly columns: readonly string[] } {
    this.#line += 1;
    const value = parsed(text, this.#line);
    if (Array.isArray(value)) return { row: this.#row(value) };
    if (!isObject(value) || typeof value.table !== 'string' || !areTexts(value.columns))
      throw this.#fault('it is neither a row nor the beginning of a table');
    return this.#begin(value as unknown as TableHeader);
  }

  /** @throws Error when the rows are not as many as the first and the last line say, or a table is missing */
  end(total: number): void {
    const { header, tables } = this.#expected;
    for (const { name } of tables) if (!this.#read.has(name)) throw new Error(`The file lacks the table ${name}.`);
    for (const [name, count] of this.#read)
      if (header.rows[name] !== count)
        throw faultAt(1, `rows.${name} is ${header.rows[name] ?? 'missing'}, but the file has ${count} rows of ${name}`);
    const sum = [...this.#read.values()].reduce((one, other) => one + other, 0);
    if (sum !== total) throw faultAt(this.#line + 1, `it counts ${total} rows, but the file has ${sum}`);
  }

  #fault(what: string): Error {
    return faultAt(this.#line, what);
  }

  #begin({ table, columns }: TableHeader) {
    const shape = this.#expected.tables.find(({ name }) => name === table);
    if (shape === undefined) throw this.#fault(`${quoted(table)} is no table of its version`);
    if (this.#read.has(table)) throw this.#fault(`the table ${table} has begun before`);
    const missing = shape.columns.find((column) => !columns.includes(column));
    if (missing !== undefined) throw this.#fault(`the table ${table} lacks the column ${missing}`);
    const unknown = columns.find((column, index) => !shape.columns.includes(column) || columns.indexOf(column) !== index);
    if (unknown !== undefined) throw this.#fault(`the table ${table} has no column ${quoted(unknown)}, or has it already`);
    if (columns.some((column, index) => column !== shape.columns[index])) throw this.#fault(`the columns of ${table} are in another order`);
    this.#shape = shape;
    this.#columns = columns;
    this.#read.set(table, 0);
    return { shape, columns };
  }

  #row(values: readonly unknown[]): Values {
    const shape = this.#shape;
    if (shape === undefined) throw this.#fault('a row comes before the first table');
    const columns = this.#columns;
    if (values.length !== columns.length)
      throw this.#fault(`the row has ${values.length} values, but ${shape.name} has ${columns.length} columns`);
    for (const [index, value] of values.entries()) {
      const column = columns[index]!;
      const type = shape.texts.includes(column) ? 'string' : 'number';
      if (value !== null && typeof value !== type)
        throw this.#fault(`${shape.name}.${column} must be a ${type === 'string' ? 'text' : 'number'}, not ${quoted(value)}`);
      if (typeof value === 'number' && !(Number.isInteger(value) && Math.abs(value) <= lastNumber))
        throw this.#fault(`${shape.name}.${column} is ${quoted(value)}, which is no whole number up to ${lastNumber}`);
    }
    const valueIn = (column: string) => values[columns.indexOf(column)];
    this.#check(shape, valueIn);
    for (const column of columns) this.#checkNumbers(`${shape.name}.${column}`, valueIn(column));
    this.#read.set(shape.name, this.#read.get(shape.name)! + 1);
    return values as Values;
  }

  /** Requires that the row belongs to a tenant of the file, and has a number that the database has assigned. */
  #check({ name, columns, numbered }: TableShape, valueIn: (column: string) => unknown): void {
    const { header, tenancy } = this.#expected;
    if (numbered !== undefined) this.#requireAssigned(`${name}.${numbered}`, valueIn(numbered), header.last[name]!);
    if (tenancy === undefined) return;
    if (name === tenancy.table) {
      if (header.tenant !== undefined && header.tenant.id !== valueIn('id'))
        throw this.#fault('it is another tenant than the first line names');
      this.#numbers.add(valueIn('number'));
      this.#ids.add(valueIn('id'));
      return;
    }
    const byId = tenancy.byId[name];
    const column = byId ?? 'tenant';
    if (byId === undefined && !columns.includes(column)) return;
    if (!(byId === undefined ? this.#numbers : this.#ids).has(valueIn(column)))
      throw this.#fault(`${name}.${column} is ${quoted(valueIn(column))}, which is no tenant of the file`);
  }

  /** Requires that the numbers of rows of another table are such that the database has assigned, so that none is of another tenant. */
  #checkNumbers(path: string, value: unknown): void {
    const { header, tenancy } = this.#expected;
    if (value === null || tenancy === undefined) return;
    const table = tenancy.references[path];
    if (table !== undefined) this.#requireAssigned(path, value, header.last[table]!);
    const listed = tenancy.lists[path];
    if (listed === undefined) return;
    for (const item of listIn(value) ?? [undefined]) this.#requireAssigned(path, item, header.last[listed]!);
  }

  /** Requires a number that the database has assigned. */
  #requireAssigned(path: string, value: unknown, last: number): void {
    if (typeof value !== 'number') throw this.#fault(`${path} must have numbers of rows`);
    if (value > last) throw this.#fault(`${path} is ${quoted(value)}, above the last number, ${last}`);
    if (!Number.isInteger(value) || value < 1) throw this.#fault(`${path} is ${quoted(value)}, which is no number of a row`);
  }
}

/** The items of a list in JSON; undefined when it is none. */
function listIn(value: unknown): readonly unknown[] | undefined {
  try {
    const items: unknown = readJson(value as string);
    return Array.isArray(items) ? items : undefined;
  } catch {
    return undefined;
  }
}
