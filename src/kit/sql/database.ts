import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

import type { Database, DatabaseOptions } from './dialect.ts';
import { openPostgres } from './postgres.ts';
import { openSqlite } from './sqlite.ts';

/**
 * Why the text is not a valid database URL, as the end of the sentence "NAME must be ..."; undefined when it is valid.
 * Valid are `sqlite://PATH`, `sqlite::memory:` and `postgres://user:password@host:port/database`.
 */
export function databaseUrlProblem(url: string): string | undefined {
  if (url === 'sqlite::memory:' || /^postgres(ql)?:\/\/.+/.test(url)) return undefined;
  if (/^sqlite:\/\/\/\.\.?\//.test(url)) {
    return `sqlite://${url.slice('sqlite:///'.length)} for a path from the current folder (two slashes, then the path), not ${JSON.stringify(url)}`;
  }
  const absolute = /^sqlite:\/\/(\/.+)/.exec(url)?.[1];
  if (absolute !== undefined && !existsSync(dirname(absolute))) {
    return `in an existing folder, and ${dirname(absolute)} does not exist: create it, or write sqlite://.${absolute} for a path from the current folder (two slashes, then the path)`;
  }
  if (/^sqlite:\/\/.+/.test(url)) return undefined;
  return `sqlite://PATH, sqlite::memory: or postgres://user:password@host:port/database, not ${JSON.stringify(url.replace(/^(\w+:\/*).*@/, '$1...@'))}`;
}

/** Opens the database of the URL. */
export function openDatabase<Tables>(url: string, options: DatabaseOptions = {}): Database<Tables> {
  return url.startsWith('postgres') ? openPostgres<Tables>(url, options) : openSqlite<Tables>(url, options);
}

/** Opens the database of the URL for one piece of work, which may take long. */
export async function withDatabase<Tables, T>(
  url: string,
  work: (database: Database<Tables>) => Promise<T>,
  options: Pick<DatabaseOptions, 'readOnly'> = {},
): Promise<T> {
  const database = openDatabase<Tables>(url, { ...options, withoutTimeout: true });
  try {
    return await work(database);
  } catch (error) {
    throw startError(url, error);
  } finally {
    await database.close();
  }
}

/** The error of a start that failed at the database, with the database's address if it is a server. */
export function startError(url: string, error: unknown): unknown {
  const { code, message, errors } = error as { code?: unknown; message?: string; errors?: readonly Error[] };
  if (!url.startsWith('postgres') || typeof code !== 'string') return error;
  // Node reports a name with several addresses as one error without a message.
  const reason = message || errors?.map((one) => one.message).join('; ') || code;
  const hint = /unsupported startup parameter/.test(reason) ? ' Behind PgBouncer, add ?pgbouncer=true to the address.' : '';
  return new Error(`${databaseName(url)} can't be used: ${reason}${hint && `.${hint}`}`, { cause: error });
}

/** The database of the URL as people know it: the path of the file, or server and name; never a password. */
export function databaseName(url: string): string {
  if (url === 'sqlite::memory:') return 'memory';
  if (url.startsWith('sqlite')) return resolve(url.slice('sqlite://'.length));
  const { host, pathname } = new URL(url);
  return `PostgreSQL at ${host}${pathname}`;
}

/** Whether another connection, and so another thread, can open the same data. */
export function isShared(url: string): boolean {
  return url !== 'sqlite::memory:';
}
