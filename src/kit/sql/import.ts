import { createHash } from 'node:crypto';
import { createReadStream, promises } from 'node:fs';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Clock } from '../clock.ts';
import { readJson } from '../json.ts';
import { requireData } from './backup.ts';
import { isShared, withDatabase } from './database.ts';
import type { Database, Values } from './dialect.ts';
import {
  type ClosingRecord,
  type ExportHeader,
  formatOf,
  type Moved,
  type OnProgress,
  pagesOf,
  tablesAt,
  tablesOfTenant,
} from './export.ts';
import { holdFile } from './file-lock.ts';
import { faultAt, headerIn, LineReader } from './import-file.ts';
import { lockForMigration, migrateWithin } from './migrate.ts';
import { presentTables } from './owner.ts';
import { type TableShape, tablesOf } from './shape.ts';
import { type OneTenant, renumberer, reserveNumbers, type Tenancy } from './tenancy.ts';

/** How many rows, and about how many characters of them, one statement inserts. */
const batchRows = 1000;
const batchLength = 1024 * 1024;

/** How much of the end of a file is searched for its closing record. */
const closingBytes = 4096;

interface Import {
  readonly databaseUrl: string;
  readonly moved: Moved;
  readonly clock: Clock;
  readonly onProgress: OnProgress;
  /** Completes what the file does not have, such as search indexes, in the transaction of the import; of one tenant by its number. */
  readonly complete?: (tx: Kysely<unknown>, tenant: number | undefined) => Promise<void>;
  /** Does after the commit what a service would also do when it starts. */
  readonly afterwards?: (database: Database<unknown>) => Promise<void>;
}

/**
 * Reads a file that `exportTo` wrote into the empty database at the URL, in one transaction: all of it or nothing. The file is
 * compared with its digest before, and the rows of each table with those of the file afterwards. A file of an earlier version
 * is migrated. A file of one tenant is read into a database that may have others.
 * @returns the number of rows, and the tenant's id
 * @throws Error when the file is damaged or of another kind or a newer version, or the database has tables of the service or
 *   the tenant already
 */
export async function importFrom(file: string, parts: Import): Promise<{ rows: number; tenant: string | undefined }> {
  const { databaseUrl, moved, afterwards } = parts;
  if (!isShared(databaseUrl)) requireData(databaseUrl);
  const release = await holdFile(databaseUrl, moved, { waitMs: 0 });
  try {
    return await withDatabase<unknown, { rows: number; tenant: string | undefined }>(databaseUrl, async (database) => {
      const imported = await readAll(file, database, parts);
      await afterwards?.(database);
      return imported;
    });
  } finally {
    release();
  }
}

async function readAll(file: string, database: Database<unknown>, parts: Import): Promise<{ rows: number; tenant: string | undefined }> {
  const { moved } = parts;
  const { end, length } = await verified(file, moved);
  const tenant = await database.transaction(async (tx) => {
    if (database.name === 'postgres') await lockForMigration(tx);
    const lines = linesOf(file, length);
    const header = headerIn((await lines.next()).value as string);
    if (header.tenant === undefined) await requireEmpty(tx, database, moved);
    const tables = tablesAt(moved, 'The file', header.migrations);
    const source = { database, header, tables, lines, total: end.rows };
    await (header.tenant === undefined ? readEverything(tx, source, parts) : readTenant(tx, source, parts, header.tenant));
    // The planner knows nothing of new tables until they are analyzed.
    if (database.name === 'postgres') for (const { name } of tables) await sql`analyze ${sql.table(name)}`.execute(tx);
    return header.tenant?.id;
  });
  return { rows: end.rows, tenant };
}

/** An opened file, and the database that it is read into. */
interface Source {
  readonly database: Database<unknown>;
  readonly header: ExportHeader;
  readonly tables: readonly TableShape[];
  readonly lines: AsyncGenerator<string>;
  /** The number of rows that the last line counts. */
  readonly total: number;
}

async function readEverything(tx: Kysely<unknown>, source: Source, { moved, clock, onProgress, complete }: Import): Promise<void> {
  const { database, header, tables } = source;
  const to = { clock, table: moved.migrationsTable };
  await migrateWithin(tx, database, { ...to, migrations: moved.migrations.filter(({ name }) => header.migrations.includes(name)) });
  await load(tx, {
    ...source,
    tables: tablesOfTenant(moved, tables, undefined),
    tenancy: moved.tenancy,
    renumbererOf: () => (values) => values,
    onProgress,
  }).catch((error: unknown) => {
    throw database.isDuplicate(error) ? new Error('The file has a row twice.', { cause: error }) : error;
  });
  for (const table of tables) await numberFrom(tx, database, table, header.last[table.name]);
  await migrateWithin(tx, database, { ...to, migrations: moved.migrations });
  await complete?.(tx, undefined);
}

/** Reads the rows of one tenant into a database that may have others, with new row numbers. */
async function readTenant(
  tx: Kysely<unknown>,
  source: Source,
  { moved, clock, onProgress, complete }: Import,
  tenant: OneTenant,
): Promise<void> {
  const { database, header, tables } = source;
  const { tenancy, migrations, migrationsTable: table } = moved;
  if (tenancy === undefined) throw new Error(`The ${moved.service} service has no tenants.`);
  // Its rows are added to tables as they are now, so no migration could change them alone.
  if (header.migrations.length !== migrations.length)
    throw new Error(
      'The file of a tenant was written by an earlier version: start this version on its database, and export the tenant again.',
    );
  await migrateWithin(tx, database, { clock, table, migrations });
  const { rows } = await sql`select id from ${sql.table(tenancy.table)} where id = ${tenant.id}`.execute(tx);
  if (rows.length > 0) throw new Error(`The database has the tenant ${tenant.id} already, deleted or not.`);
  const numbers = await reserveNumbers(tx, database.name, { tenancy, tables, tenant, last: header.last });
  try {
    await load(tx, {
      ...source,
      tables: tablesOfTenant(moved, tables, numbers.tenant),
      tenancy,
      renumbererOf: (shape, columns) => renumberer(tenancy, shape, columns, numbers),
      onProgress,
    });
  } catch (error) {
    throw database.isDuplicate(error) ? new Error('The database has a row with an id of the file already.', { cause: error }) : error;
  }
  await complete?.(tx, numbers.tenant.number);
}

/** The closing record, and the length of what is before it. @throws Error when the file is not whole, as it was written */
async function verified(file: string, moved: Moved): Promise<{ end: ClosingRecord['end']; length: number }> {
  const damaged = new Error(`${file} is truncated or was changed: it does not end with its own digest. Export it again.`);
  const handle = await promises.open(file).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${file} can't be read (${error.code}).`, { cause: error });
  });
  try {
    const { size } = await handle.stat();
    const tail = Buffer.alloc(Math.min(size, closingBytes));
    await handle.read(tail, 0, tail.length, size - tail.length);
    const start = tail.lastIndexOf(10, tail.length - 2) + 1;
    const length = size - tail.length + start;
    const digest = createHash('sha256');
    let first: Buffer | undefined;
    if (length > 0)
      for await (const chunk of createReadStream(file, { end: length - 1 }) as AsyncIterable<Buffer>) {
        first ??= chunk;
        digest.update(chunk);
      }
    const format = formatOf(moved);
    if (first?.subarray(0, format.length + 20).includes(`"${format}"`) !== true)
      throw new Error(`${file} is not an export of the ${moved.service} service.`);
    const end = closingIn(tail.subarray(start).toString());
    if (end === undefined || end.sha256 !== digest.digest('hex')) throw damaged;
    return { end, length };
  } finally {
    await handle.close();
  }
}

function closingIn(line: string): ClosingRecord['end'] | undefined {
  try {
    return line.endsWith('\n') ? (readJson(line) as Partial<ClosingRecord>).end : undefined;
  } catch {
    return undefined;
  }
}

/** The lines of the first `length` bytes of a file. */
async function* linesOf(file: string, length: number): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  for await (const chunk of createReadStream(file, { end: length - 1, highWaterMark: batchLength }) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      yield Buffer.concat([...rest, chunk.subarray(start, end)]).toString();
      rest = [];
      start = end + 1;
    }
    rest.push(chunk.subarray(start));
  }
}

/** @throws Error when the database has a table of the service, also an empty one */
async function requireEmpty(
  tx: Kysely<unknown>,
  database: Database<unknown>,
  { service, migrations, migrationsTable }: Moved,
): Promise<void> {
  const [found] = await presentTables(tx, database.name, [migrationsTable, ...tablesOf(migrations).map(({ name }) => name)]);
  if (found === undefined) return;
  throw new Error(
    `The database is not empty: it has the table ${found} of the ${service} service. Import into a new database in which no service was started.`,
  );
}

interface Load extends Omit<Source, 'tables'> {
  /** The tables, with the condition of the rows that are read into them. */
  readonly tables: readonly { table: TableShape; where: RawBuilder<unknown> }[];
  readonly tenancy: Tenancy | undefined;
  /** The function that gives a row of a table its new numbers. */
  readonly renumbererOf: (shape: TableShape, columns: readonly string[]) => (values: Values) => Values;
  readonly onProgress: OnProgress;
}

/** A digest of rows in any order, since the databases have them in different orders: the sum of their digests. */
class RowsDigest {
  sum = 0n;

  add(row: string): void {
    this.sum += BigInt(`0x${createHash('sha256').update(row).digest('hex')}`);
  }
}

/** A table whose rows are being read. */
interface ReadTable {
  readonly shape: TableShape;
  readonly where: RawBuilder<unknown>;
  readonly columns: readonly string[];
  readonly digest: RowsDigest;
  readonly renumber: (values: Values) => Values;
}

/** A row with its new numbers. @throws Error when a list of numbers is none */
function renumbered({ shape, renumber }: ReadTable, row: Values, line: number): Values {
  try {
    return renumber(row);
  } catch {
    throw faultAt(line, `a list of numbers in ${shape.name} can't be read`);
  }
}

/** Inserts the rows of all tables, and compares each table with what was read. */
async function load(tx: Kysely<unknown>, { database, tables, tenancy, header, lines, total, renumbererOf, onProgress }: Load) {
  const file = new LineReader({ header, tables: tables.map(({ table }) => table), tenancy });
  let done = 0;
  let current: ReadTable | undefined;
  let batch: Values[] = [];
  let length = 0;
  async function flush(): Promise<void> {
    if (current === undefined || batch.length === 0) return;
    const { shape, columns } = current;
    await insert(tx, database.name, shape.name, columns, batch).catch((error: Error) => {
      if (database.isDuplicate(error) || database.isUnavailable(error)) throw error;
      throw faultAt(file.line, `${shape.name}: the database refuses it or a row before it (${error.message})`);
    });
    done += batch.length;
    onProgress(done, Math.max(done, total), `importing ${shape.name}`);
    batch = [];
    length = 0;
  }
  async function finish(): Promise<void> {
    await flush();
    if (current === undefined) return;
    const { shape, where, digest } = current;
    const stored = new RowsDigest();
    for await (const page of pagesOf(tx, database.name, shape, where)) for (const row of page) stored.add(JSON.stringify(row));
    if (stored.sum !== digest.sum) throw new Error(`The rows of ${shape.name} were not stored as they are in the file.`);
  }
  for await (const line of lines) {
    const read = file.next(line);
    if ('row' in read) {
      const row = renumbered(current!, read.row, file.line);
      current!.digest.add(JSON.stringify(row));
      batch.push(row);
      length += line.length;
      if (batch.length >= batchRows || length >= batchLength) await flush();
      continue;
    }
    await finish();
    const { shape, columns } = read;
    const { where } = tables.find(({ table }) => table === shape)!;
    current = { shape, where, columns, renumber: renumbererOf(shape, columns), digest: new RowsDigest() };
    // The file has the rows that migrations insert too.
    await sql`delete from ${sql.table(shape.name)} where ${where}`.execute(tx);
  }
  await finish();
  file.end(total);
}

async function insert(
  tx: Kysely<unknown>,
  database: Database<unknown>['name'],
  name: string,
  columns: readonly string[],
  rows: readonly Values[],
): Promise<void> {
  const table = sql.table(name);
  const json = JSON.stringify(rows.map((values) => Object.fromEntries(columns.map((column, index) => [column, values[index]]))));
  const names = sql.join(columns.map((column) => sql.ref(column)));
  const values = sql.join(columns.map((column) => sql`value ->> ${sql.lit(column)}`));
  const rowsOf =
    database === 'sqlite'
      ? sql`select ${values} from json_each(${json})`
      : sql`select ${names} from json_populate_recordset(null::${table}, ${json}::json)`;
  await sql`insert into ${table} (${names}) ${rowsOf}`.execute(tx);
}

/** Makes the database assign numbers after the last one that it was assigned where it comes from. */
async function numberFrom(
  tx: Kysely<unknown>,
  database: Database<unknown>,
  { name, numbered }: TableShape,
  last: number | undefined,
): Promise<void> {
  if (numbered === undefined || last === undefined || last === 0) return;
  if (database.name === 'postgres') {
    await sql`select setval(pg_get_serial_sequence(${name}, ${numbered}), ${last}::bigint)`.execute(tx);
    return;
  }
  await sql`delete from sqlite_sequence where name = ${name}`.execute(tx);
  await sql`insert into sqlite_sequence (name, seq) values (${name}, ${last})`.execute(tx);
}
