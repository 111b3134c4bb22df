import { statSync } from 'node:fs';

import { databaseName, isShared } from './database.ts';
import { writeNewFile } from './new-file.ts';
import { SqliteConnection, sqlitePath } from './sqlite-connection.ts';

/**
 * Copies a SQLite database into a new file, as it is at this moment, and returns the size of the copy in bytes. A service may
 * write to the database meanwhile and is not delayed: the copy is one read. It has no free pages, and so nothing deleted.
 * @throws Error with a sentence for the operator, when the database is another one, or damaged, or the file can't be written
 */
export async function backUp(databaseUrl: string, file: string): Promise<number> {
  if (databaseUrl.startsWith('postgres'))
    throw new Error(
      `Only SQLite databases can be copied. Back up PostgreSQL with its own program: pg_dump --format=custom --file=${file} "$URL"`,
    );
  requireData(databaseUrl);
  const path = sqlitePath(databaseUrl);
  await writeNewFile(file, (partial) => {
    copy(path, partial);
    check(partial);
  });
  return statSync(file).size;
}

/** Whether the file of a SQLite database exists, and is no folder; true for other databases. */
export const hasFile = (databaseUrl: string): boolean =>
  !databaseUrl.startsWith('sqlite') || statSync(sqlitePath(databaseUrl), { throwIfNoEntry: false })?.isDirectory() === false;

/** @throws Error when the URL names a database in memory, or a file that does not exist */
export function requireData(databaseUrl: string): void {
  if (!isShared(databaseUrl)) throw new Error('A database in memory belongs to the process that opened it.');
  if (!hasFile(databaseUrl)) throw new Error(`There is no database file ${databaseName(databaseUrl)}.`);
}

function copy(path: string, target: string): void {
  let source: SqliteConnection | undefined;
  try {
    source = new SqliteConnection(path, { readOnly: true });
    source.run('vacuum into ?', [target]);
  } catch (error) {
    throw new Error(`The database file ${path} can't be copied: ${(error as Error).message}.`, { cause: error });
  } finally {
    source?.close();
  }
}

/** @throws Error when the copy is damaged, because its disk or the database is */
function check(file: string): void {
  const copied = new SqliteConnection(file, { readOnly: true });
  try {
    const [first] = copied.all('pragma quick_check(1)', []);
    if (first?.quick_check !== 'ok') throw new Error(`The copy is damaged: ${String(first?.quick_check)}`);
  } finally {
    copied.close();
  }
}
