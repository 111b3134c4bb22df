import { type Kysely, sql } from 'kysely';

import { hasFile } from './backup.ts';
import { databaseName, withDatabase } from './database.ts';
import type { Database } from './dialect.ts';
import type { Migration } from './migrate.ts';

/** A service, by what it leaves in its database: the table of its applied migrations. */
export interface Owner {
  readonly service: string;
  readonly migrations: readonly Migration[];
  readonly migrationsTable: string;
}

/**
 * Whether the service was started on the database, which is only read. Services may share a server's database, but not a file.
 * @throws Error when it is a SQLite file of another program, which opening it for writes would change
 */
export async function isOwned(databaseUrl: string, owner: Owner): Promise<boolean> {
  const { service, migrationsTable } = owner;
  if (!hasFile(databaseUrl)) return false;
  return withDatabase<unknown, boolean>(
    databaseUrl,
    async ({ name, reads }) => {
      if (name === 'postgres') return (await presentTables(reads, name, [migrationsTable])).length > 0;
      if (await hasFirst(reads, owner)) return true;
      const { rows } = await sql`select 1 from sqlite_schema limit 1`.execute(reads);
      if (rows.length === 0) return false;
      throw new Error(
        `There is no database of the ${service} service at ${databaseName(databaseUrl)}, but a file of another program, which was left as it is.`,
      );
    },
    { readOnly: true },
  );
}

/** Whether the first migration is recorded. Other programs may have a table of the same name. */
async function hasFirst(reads: Kysely<unknown>, { migrations, migrationsTable }: Owner): Promise<boolean> {
  const { rows: columns } = await sql`select 1 from pragma_table_info(${migrationsTable}) where name = 'name'`.execute(reads);
  if (columns.length === 0) return false;
  const { rows } = await sql`select 1 from ${sql.table(migrationsTable)} where name = ${migrations[0]!.name}`.execute(reads);
  return rows.length > 0;
}

/** Which of the tables a database has. */
export async function presentTables(tx: Kysely<unknown>, database: Database<unknown>['name'], names: readonly string[]): Promise<string[]> {
  const given = sql.join(names);
  const { rows } =
    database === 'sqlite'
      ? await sql<{ name: string }>`select name from sqlite_schema where type = 'table' and name in (${given})`.execute(tx)
      : await sql<{
          name: string;
        }>`select name from unnest(array[${given}]::text[]) name where to_regclass(quote_ident(name)) is not null`.execute(tx);
  return rows.map(({ name }) => name);
}
