import { createHash } from 'node:crypto';
import { promises } from 'node:fs';
import { devNull } from 'node:os';
import { type Kysely, type RawBuilder, sql } from 'kysely';

import { requireData } from './backup.ts';
import { databaseName, isShared, withDatabase } from './database.ts';
import type { Database, Row, Values } from './dialect.ts';
import { writeNewFile } from './new-file.ts';
import { isOwned, type Owner } from './owner.ts';
import { type TableShape, tablesOf } from './shape.ts';
import { type OneTenant, rowsOfTenant, type Tenancy, tenantIn } from './tenancy.ts';

/** What is moved between databases: the tables of a service. */
export interface Moved extends Owner {
  /** How its rows belong to tenants; left out for a service without tenants. */
  readonly tenancy?: Tenancy;
}

/** The first line of an exported file. */
export interface ExportHeader {
  /** What the file is, and of which service. */
  readonly format: string;
  readonly version: 1;
  /** The migrations of the database, which tell what its tables are. */
  readonly migrations: readonly string[];
  /** The number of rows, by table. */
  readonly rows: Readonly<Record<string, number>>;
  /** The last number that the database assigned, by table, also if its row is gone. */
  readonly last: Readonly<Record<string, number>>;
  /** The tenant whose rows they are; left out in an export of everything. */
  readonly tenant?: OneTenant;
}

/** The line before the rows of a table, each of which is a line with an array of the values of these columns. */
export interface TableHeader {
  readonly table: string;
  readonly columns: readonly string[];
}

/** The last line: the number of rows, and the SHA-256 of everything before this line. */
export interface ClosingRecord {
  readonly end: { readonly rows: number; readonly sha256: string };
}

export const formatOf = ({ service }: Pick<Moved, 'service'>): string => `baton-${service}`;

/** Called now and then with the number of rows that are done, and their total. */
export type OnProgress = (done: number, total: number, doing: string) => void;

/** How many rows are measured at once, and about how many bytes of rows are held at once, unless one row alone has more. */
const pageRows = 1000;
const pageBytes = 1024 * 1024;

/**
 * Writes everything that a service stored in the database at the URL into a new file, one JSON text per line: a header, each
 * table with its rows in the order of their keys, and a closing record. The service may be running: it is one snapshot, and
 * delays no writer. Search indexes are left out. With `tenant`, an id, it is what belongs to that tenant. Without a file all of it
 * is only read.
 * @returns the number of rows, and of bytes
 * @throws Error when the database has no such data or was written by a newer version, or the file can't be created
 */
export async function exportTo(
  file: string | undefined,
  { databaseUrl, ...parts }: { databaseUrl: string; moved: Moved; tenant?: string | undefined; onProgress: OnProgress },
): Promise<{ rows: number; bytes: number }> {
  requireData(databaseUrl);
  if (!(await isOwned(databaseUrl, parts.moved))) throw new Error(`The database has no data of the ${parts.moved.service} service.`);
  return withDatabase<unknown, { rows: number; bytes: number }>(databaseUrl, (database) =>
    file === undefined ? writeAll(devNull, database, parts) : writeNewFile(file, (partial) => writeAll(partial, database, parts)),
  );
}

function writeAll(
  partial: string,
  database: Database<unknown>,
  { moved, tenant: id, onProgress }: { moved: Moved; tenant?: string | undefined; onProgress: OnProgress },
): Promise<{ rows: number; bytes: number }> {
  return database.snapshot(async (tx) => {
    const file = await promises.open(partial, 'w');
    try {
      const output = new Output(file);
      const header = await headerOf(tx, database.name, moved, id);
      const total = Object.values(header.rows).reduce((sum, count) => sum + count, 0);
      await output.line(JSON.stringify(header));
      let done = 0;
      for (const { table, where } of tablesOfTenant(moved, tablesAt(moved, 'The database', header.migrations), header.tenant)) {
        await output.line(JSON.stringify({ table: table.name, columns: table.columns } satisfies TableHeader));
        for await (const page of pagesOf(tx, database.name, table, where)) {
          for (const row of page) await output.line(JSON.stringify(row));
          done += page.length;
          onProgress(done, total, `exporting ${table.name}`);
        }
      }
      const bytes = await output.end((sha256) => JSON.stringify({ end: { rows: done, sha256 } } satisfies ClosingRecord));
      return { rows: done, bytes };
    } finally {
      await file.close();
    }
  });
}

/**
 * The tables of a database or file that has these migrations.
 * @param what begins the sentence of the error
 * @throws Error when a migration is unknown: of a newer version
 */
export function tablesAt({ migrations }: Moved, what: string, applied: readonly string[]): TableShape[] {
  const unknown = applied.filter((name) => !migrations.some((migration) => migration.name === name));
  if (unknown.length > 0)
    throw new Error(`${what} was written by another version, probably a newer one (it has ${unknown.join(', ')}); use that version.`);
  return tablesOf(migrations.filter(({ name }) => applied.includes(name)));
}

/** @throws Error that names the database, when the service was never started on it; nothing is created */
export async function requireService(databaseUrl: string, owner: Owner): Promise<void> {
  if (!isShared(databaseUrl)) requireData(databaseUrl);
  if (await isOwned(databaseUrl, owner)) return;
  throw new Error(
    `There is no database of the ${owner.service} service at ${databaseName(databaseUrl)}: SERVICE_DATABASE_URL or --config must name it.`,
  );
}

/** The tables of which rows are moved, with the condition of these rows: all of them, or those with rows of the tenant. */
export function tablesOfTenant(
  { tenancy }: Moved,
  tables: readonly TableShape[],
  tenant: OneTenant | undefined,
): { table: TableShape; where: RawBuilder<unknown> }[] {
  if (tenant === undefined) return tables.map((table) => ({ table, where: sql`1 = 1` }));
  return tables.flatMap((table) => {
    const where = rowsOfTenant(tenancy!, table, tenant);
    return where === undefined ? [] : [{ table, where }];
  });
}

async function headerOf(
  tx: Kysely<unknown>,
  database: Database<unknown>['name'],
  moved: Moved,
  tenantId: string | undefined,
): Promise<ExportHeader> {
  const applied = await sql<{ name: string }>`select name from ${sql.table(moved.migrationsTable)} order by name`.execute(tx);
  const migrations = applied.rows.map(({ name }) => name);
  const rows: Record<string, number> = {};
  const last: Record<string, number> = {};
  const tables = tablesAt(moved, 'The database', migrations);
  const tenant = tenantId === undefined ? undefined : await tenantIn(tx, moved.tenancy!, tenantId);
  for (const { table, where } of tablesOfTenant(moved, tables, tenant)) {
    const { name, numbered } = table;
    const counted = await sql<{ count: number }>`select count(*) as count from ${sql.table(name)} where ${where}`.execute(tx);
    rows[name] = Number(counted.rows[0]!.count);
    if (numbered !== undefined) last[name] = await lastNumber(tx, database, name, numbered);
  }
  return { format: formatOf(moved), version: 1, migrations, rows, last, ...(tenant === undefined ? {} : { tenant }) };
}

async function lastNumber(tx: Kysely<unknown>, database: Database<unknown>['name'], table: string, column: string): Promise<number> {
  if (database === 'sqlite') {
    const { rows } = await sql<{ seq: number }>`select seq from sqlite_sequence where name = ${table}`.execute(tx);
    return rows[0]?.seq ?? 0;
  }
  const { rows: named } = await sql<{ name: string }>`select pg_get_serial_sequence(${table}, ${column}) as name`.execute(tx);
  const { rows } = await sql<{
    last: number;
  }>`select case when is_called then last_value else 0 end as last from ${sql.raw(named[0]!.name)}`.execute(tx);
  return Number(rows[0]!.last);
}

/** The columns of a table's primary key: PostgreSQL's begin with the tenant, where SQLite has row numbers. */
async function keyOf(tx: Kysely<unknown>, database: Database<unknown>['name'], { name, key }: TableShape): Promise<readonly string[]> {
  if (database === 'sqlite') return key;
  const { rows } = await sql<{ column: string }>`
    select attname as column from pg_index join pg_attribute on attrelid = indrelid and attnum = any(indkey)
    where indrelid = to_regclass(quote_ident(${name})) and indisprimary order by array_position(indkey::int2[], attnum)`.execute(tx);
  return rows.map(({ column }) => column);
}

/** The rows of a table that meet the condition, in the order of its key, some at a time: their sizes are read first, so that memory is bounded. */
export async function* pagesOf(
  tx: Kysely<unknown>,
  database: Database<unknown>['name'],
  shape: TableShape,
  where: RawBuilder<unknown>,
): AsyncGenerator<Values[]> {
  const { name, columns, texts } = shape;
  const key = await keyOf(tx, database, shape);
  const table = sql.table(name);
  const refs = (names: readonly string[]) => sql.join(names.map((column) => sql.ref(column)));
  const keys = refs(key);
  const valuesOf = (row: Row) => sql`(${sql.join(key.map((column) => row[column]))})`;
  const beyond = (row: Row | undefined) => (row === undefined ? where : sql`${where} and (${keys}) > ${valuesOf(row)}`);
  const bytes = sql.join([sql`0`, ...texts.map((column) => sql`coalesce(octet_length(${sql.ref(column)}), 0)`)], sql` + `);
  let after: Row | undefined;
  for (;;) {
    const { rows: sizes } = await sql<Row>`select ${keys}, ${bytes} as bytes from ${table} where ${beyond(after)}
      order by ${keys} limit ${sql.lit(pageRows)}`.execute(tx);
    for (const last of endsOf(sizes)) {
      const { rows } = await sql<Row>`select ${refs(columns)} from ${table} where ${beyond(after)} and (${keys}) <= ${valuesOf(last)}
        order by ${keys}`.execute(tx);
      yield rows.map((row) => columns.map((column) => row[column]!));
      after = last;
    }
    if (sizes.length < pageRows) return;
  }
}

/** The last rows of parts that have about `pageBytes` each. */
function endsOf(sizes: readonly Row[]): Row[] {
  let part = 0;
  return sizes.filter((row, index) => {
    part += Number(row.bytes);
    const next = sizes[index + 1];
    const isEnd = next === undefined || part + Number(next.bytes) > pageBytes;
    if (isEnd) part = 0;
    return isEnd;
  });
}

/** A file that lines are written to, and its digest. */
class Output {
  readonly #handle: promises.FileHandle;
  readonly #digest = createHash('sha256');
  #pending: string[] = [];
  /** The characters of the pending lines. */
  #length = 0;
  /** The bytes that are written. */
  #bytes = 0;

  constructor(handle: promises.FileHandle) {
    this.#handle = handle;
  }

  async line(text: string): Promise<void> {
    this.#pending.push(text, '\n');
    this.#length += text.length;
    if (this.#length > pageBytes) await this.#flush();
  }

  /** Writes the last line, which is not part of the digest; returns the size of the file. */
  async end(closing: (sha256: string) => string): Promise<number> {
    await this.#flush();
    const last = Buffer.from(`${closing(this.#digest.digest('hex'))}\n`);
    await this.#handle.writeFile(last);
    return this.#bytes + last.length;
  }

  async #flush(): Promise<void> {
    const buffer = Buffer.from(this.#pending.join(''));
    this.#pending = [];
    this.#length = 0;
    this.#bytes += buffer.length;
    this.#digest.update(buffer);
    await this.#handle.writeFile(buffer);
  }
}
