import type { Database } from './dialect.ts';
import { openPostgres } from './postgres.ts';
import { type Execute, openSqlite } from './sqlite.ts';

/**
 * Why the text is no database address, as the end of the sentence "NAME must be ..."; undefined when it is one.
 * Known are `sqlite://PATH`, `sqlite::memory:` and `postgres://user:password@host:port/database`.
 */
export function databaseUrlProblem(url: string): string | undefined {
  if (url === 'sqlite::memory:' || /^postgres(ql)?:\/\/.+/.test(url)) return undefined;
  if (/^sqlite:\/\/\/\.\.?\//.test(url)) {
    return `sqlite://${url.slice('sqlite:///'.length)} for a path from the current folder (two slashes, then the path), not ${JSON.stringify(url)}`;
  }
  if (/^sqlite:\/\/.+/.test(url)) return undefined;
  return `sqlite://PATH, sqlite::memory: or postgres://user:password@host:port/database, not ${JSON.stringify(url.replace(/^(\w+:\/*).*@/, '$1...@'))}`;
}

/** Opens the database that the address names. `executeElsewhere` runs SQLite's long reads on another thread. */
export function openDatabase<Tables>(url: string, executeElsewhere?: Execute): Database<Tables> {
  return url.startsWith('postgres') ? openPostgres<Tables>(url) : openSqlite<Tables>(url, { executeElsewhere });
}

/** Whether another connection (and so another thread) can open the same data. */
export function isShared(url: string): boolean {
  return url !== 'sqlite::memory:';
}
