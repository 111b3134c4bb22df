import { mkdirSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { pauseFor } from '../awaitable.ts';
import { isShared } from './database.ts';
import { sqlitePath } from './sqlite.ts';

/** How long another process is waited for, in milliseconds, and how often it is looked for. */
const patienceMs = 10_000;
const pauseMs = 100;

/** What this process holds: a connection that nobody refers to would be closed. */
const held: DatabaseSync[] = [];

/**
 * Holds a SQLite file for this process, so that no second one serves it: waits ten seconds for the process that has it to
 * end. The lock is the system's own, on a file `<path>.lock` beside it, and is kept until this process ends, however it ends.
 * Nothing is held of a database in memory or on a server.
 * @throws Error that names the process that has the file
 */
export async function holdFile(databaseUrl: string, { waitMs = patienceMs } = {}): Promise<void> {
  if (!isShared(databaseUrl) || !databaseUrl.startsWith('sqlite')) return;
  const path = sqlitePath(databaseUrl);
  mkdirSync(dirname(path), { recursive: true });
  // By another way to the same folder it is the same file.
  const lock = new DatabaseSync(`${join(realpathSync(dirname(path)), basename(path))}.lock`, { timeout: 0 });
  try {
    for (let left = waitMs; ; left -= pauseMs) {
      if (tryHold(lock)) {
        held.push(lock);
        return;
      }
      if (left <= 0) throw new Error(heldBy(path, lock));
      await pauseFor(pauseMs);
    }
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** Takes the lock and leaves our process number for others to read; false when another process has it. */
function tryHold(lock: DatabaseSync): boolean {
  try {
    lock.exec('begin immediate');
    lock.exec('create table if not exists holder (pid integer not null)');
    lock.exec('delete from holder');
    lock.prepare('insert into holder (pid) values (?)').run(process.pid);
    lock.exec('commit');
    // A transaction that never ends: it keeps others from writing, and lets them read who has begun it.
    lock.exec('begin immediate');
    return true;
  } catch (error) {
    if (((error as { errcode?: number }).errcode ?? 0) % 256 !== 5) throw error;
    if (lock.isTransaction) lock.exec('rollback');
    return false;
  }
}

function heldBy(path: string, lock: DatabaseSync): string {
  const holder = lock.prepare('select pid from holder').get() as { pid: number } | undefined;
  return `The database file ${path} is in use by process ${holder?.pid ?? 'unknown'}. Stop that one first, or give this one a file of its own.`;
}
