import { type Kysely, type RawBuilder, sql } from 'kysely';
import { readJson } from '../json.ts';

import type { Database, Values } from './dialect.ts';
import type { TableShape } from './shape.ts';

/** How the rows of a service belong to its tenants, so that those of one can be moved alone. */
export interface Tenancy {
  /** The table of tenants, which have an `id` and a `number`. */
  readonly table: string;
  /** The tables that name a tenant by its id, with the column that does. A column `tenant` has its number; a table with neither is of no tenant. */
  readonly byId: Readonly<Record<string, string>>;
  /** The columns with row numbers of another table, as `table.column`, and that table; with `lists` as JSON arrays. */
  readonly references: Readonly<Record<string, string>>;
  readonly lists: Readonly<Record<string, string>>;
  /** The columns that give rights outside a tenant, as `table.column`, and the value that rows of a tenant have where it is moved alone. */
  readonly outside: Readonly<Record<string, number>>;
}

/** A tenant by its id, and by its number in one database. */
export interface OneTenant {
  readonly id: string;
  readonly number: number;
}

/** @throws Error when there is no such tenant */
export async function tenantIn(tx: Kysely<unknown>, { table }: Tenancy, id: string): Promise<OneTenant> {
  const { rows } = await sql<{ number: number }>`select number from ${sql.table(table)} where id = ${id}`.execute(tx);
  if (rows[0] === undefined) throw new Error(`The database has no tenant with the id ${id}.`);
  return { id, number: Number(rows[0].number) };
}

/** The condition of a tenant's rows in a table; undefined when the table is of no tenant. */
export function rowsOfTenant(
  { table, byId }: Tenancy,
  { name, columns }: TableShape,
  { id, number }: OneTenant,
): RawBuilder<unknown> | undefined {
  if (name === table) return sql`number = ${number}`;
  if (byId[name] !== undefined) return sql`${sql.ref(byId[name])} = ${id}`;
  return columns.includes('tenant') ? sql`tenant = ${number}` : undefined;
}

/** New row numbers for the rows of a tenant: what is added to the old ones, by table, and the tenant's own. */
interface NewNumbers {
  readonly tenant: OneTenant;
  readonly added: Readonly<Record<string, number>>;
}

/**
 * The gap between the last number that a PostgreSQL database assigned and the first of an import: a running service may
 * assign some between the two statements that reserve the numbers of the import.
 */
const gap = 1_000_000;

/** Reserves numbers that the database assigns to no other row. `last`: the last numbers of the database that the rows come from, by table. */
export async function reserveNumbers(
  tx: Kysely<unknown>,
  database: Database<unknown>['name'],
  {
    tenancy,
    tables,
    tenant,
    last,
  }: { tenancy: Tenancy; tables: readonly TableShape[]; tenant: OneTenant; last: Readonly<Record<string, number>> },
): Promise<NewNumbers> {
  const added: Record<string, number> = {};
  let number = 0;
  for (const { name, numbered } of tables) {
    if (numbered === undefined) continue;
    const isTenants = name === tenancy.table;
    const wanted = isTenants ? 1 : last[name]!;
    const before = await (database === 'sqlite' ? reserveInSqlite(tx, name, wanted) : reserveInPostgres(tx, name, numbered, wanted));
    if (isTenants) number = before + 1;
    else added[name] = before;
  }
  return { tenant: { id: tenant.id, number }, added };
}

/**
 * The most numbers of a table that a file of one tenant reserves, and the last number that any import assigns. Later rows get
 * higher ones, up to the last that JavaScript and both databases count with exactly (2^53 - 1).
 */
const maxReserved = 2 ** 40;
export const lastNumber = 2 ** 52;

/** Requires that a database which has assigned numbers up to `before` may reserve `count`. */
function requireRoom(table: string, before: number, count: number): void {
  if (count > maxReserved || before + count > lastNumber)
    throw new Error(`The database has no room for the numbers of ${table} in the file, which go up to ${count}.`);
}

/** Returns the number before the first reserved one. */
async function reserveInSqlite(tx: Kysely<unknown>, table: string, count: number): Promise<number> {
  const { rows } = await sql<{ seq: number }>`select seq from sqlite_sequence where name = ${table}`.execute(tx);
  const before = rows[0]?.seq ?? 0;
  requireRoom(table, before, count);
  await sql`delete from sqlite_sequence where name = ${table}`.execute(tx);
  await sql`insert into sqlite_sequence (name, seq) values (${table}, ${before + count})`.execute(tx);
  return before;
}

async function reserveInPostgres(tx: Kysely<unknown>, table: string, column: string, count: number): Promise<number> {
  const sequence = sql`pg_get_serial_sequence(${table}, ${column})`;
  const { rows } = await sql<{ next: number }>`select nextval(${sequence}) as next`.execute(tx);
  const next = Number(rows[0]!.next);
  // One number is reserved already.
  if (count === 1) return next - 1;
  const before = next + gap;
  requireRoom(table, before, count);
  await sql`select setval(${sequence}, ${before + count}::bigint)`.execute(tx);
  return before;
}

/** Returns the function that gives a row of a table its new numbers. */
export function renumberer(
  { table, byId, references, lists, outside }: Tenancy,
  { name, numbered }: Pick<TableShape, 'name' | 'numbered'>,
  columns: readonly string[],
  { tenant, added }: NewNumbers,
): (values: Values) => Values {
  const plus = (of: string) => (value: unknown) => (value === null ? null : (value as number) + added[of]!);
  const changeOf = (column: string): ((value: unknown) => unknown) | undefined => {
    const path = `${name}.${column}`;
    if (name === table) return column === 'number' ? () => tenant.number : undefined;
    if (outside[path] !== undefined) return () => outside[path];
    if (column === 'tenant' && byId[name] === undefined) return () => tenant.number;
    if (column === numbered) return plus(name);
    if (references[path] !== undefined) return plus(references[path]);
    const list = lists[path];
    if (list === undefined) return undefined;
    return (value) => (value === null ? null : JSON.stringify((readJson(value as string) as number[]).map((item) => plus(list)(item))));
  };
  const changes = columns.map(changeOf);
  return (values) => values.map((value, index) => changes[index]?.(value) ?? value) as unknown as Values;
}
