import { existsSync, statfsSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { fullCode, isDiskFull } from './sqlite-connection.ts';

/** The size of the reserve, and the free space without which none is made, in bytes. */
const reserveBytes = 128 * 1024;
const enoughBytes = 16 * 1024 * 1024;

/** The free space below which a disk is full: less than a large row takes. */
const neededBytes = 1024 * 1024;

const reserveOf = (path: string): string => `${path}.reserve`;

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path));
  return bavail * bsize;
}

/** Requires that the disk of a database has space for a write. @throws Error like SQLite's */
export function requireSpace(path: string): void {
  if (freeBytes(path) < neededBytes) throw Object.assign(new Error('database or disk is full'), { errcode: fullCode });
}

/** Keeps some space beside a database for the next start: SQLite needs it to open the file, also to read it. */
export function keepReserve(path: string): void {
  if (freeBytes(path) >= enoughBytes && !existsSync(reserveOf(path)))
    writeFileSync(reserveOf(path), Buffer.alloc(reserveBytes), { mode: 0o600 });
}

/** Opens the database at a path. If the disk is full, it gives up the reserve and tries again. */
export function openWithReserve<T>(path: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!isDiskFull(error) || !existsSync(reserveOf(path))) throw error;
    unlinkSync(reserveOf(path));
    return open();
  }
}
