import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

import { inMemory, sqlitePath } from './sqlite-connection.ts';

/**
 * Creates the file, and folders that are missing, so that only this user can read them. SQLite gives its WAL and its shared
 * memory the permissions of the database file. Permissions of what exists stay as they are.
 */
export function createPrivately(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, 'ax', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Warnings about files of a SQLite database that other users can read; none for other databases. */
export function fileWarnings(databaseUrl: string): string[] {
  const path = sqlitePath(databaseUrl);
  if (!databaseUrl.startsWith('sqlite') || path === inMemory || process.platform === 'win32') return [];
  const readable = [path, `${path}-wal`, `${path}-shm`].filter((file) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0;
    return (mode & 0o044) !== 0;
  });
  if (readable.length === 0) return [];
  const files = readable.join(' ');
  return [`Other users of this machine can read the database and all secrets in it: run chmod 600 ${files}`];
}
