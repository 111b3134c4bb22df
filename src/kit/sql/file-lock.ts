import { realpathSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

import { pauseFor } from '../awaitable.ts';
import { isShared } from './database.ts';
import { createPrivately } from './file-access.ts';
import { isOwned, type Owner } from './owner.ts';
import { keepReserve } from './reserve.ts';
import { isBusy, isDiskFull, sqlitePath } from './sqlite-connection.ts';

/** How long to wait for the process that holds the file, and the pause between attempts, in milliseconds. */
const lockTimeoutMs = 10_000;
const pauseMs = 100;

/** The locks of this process: a connection without references would be garbage collected and closed. */
const held = new Set<DatabaseSync>();

/**
 * Locks a SQLite file of a service for this process, so that no second process serves it: waits ten seconds for the current holder to
 * exit. The lock is the operating system's, on a file `<path>.lock` beside the database, and lasts until this process exits
 * for any reason, or calls the function that is returned. Databases in memory and on a server are not locked.
 * @throws Error that names the process that holds the file, or when the file belongs to another program
 */
export async function holdFile(databaseUrl: string, owner: Owner, { waitMs = lockTimeoutMs } = {}): Promise<() => void> {
  if (!isShared(databaseUrl) || !databaseUrl.startsWith('sqlite')) return () => undefined;
  // Before anything is created beside a file of another program.
  await isOwned(databaseUrl, owner);
  const path = sqlitePath(databaseUrl);
  createPrivately(path);
  // A symbolic link to the file or its folder must lead to the same lock.
  const lockPath = `${realpathSync(path)}.lock`;
  createPrivately(lockPath);
  const lock = new DatabaseSync(lockPath, { timeout: 0 });
  try {
    for (let left = waitMs; ; left -= pauseMs) {
      if (tryHold(lock)) {
        held.add(lock);
        keepReserve(path);
        return () => {
          if (held.delete(lock)) lock.close();
        };
      }
      if (left <= 0) throw new Error(heldBy(path, lock));
      await pauseFor(pauseMs);
    }
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** Takes the lock and stores our process id for others to read; false when another process holds it. */
function tryHold(lock: DatabaseSync): boolean {
  try {
    writePid(lock);
    // This transaction never ends: it keeps other processes from writing, and lets them read the process id.
    lock.exec('begin immediate');
    return true;
  } catch (error) {
    if (lock.isTransaction) lock.exec('rollback');
    if (!isBusy(error)) throw error;
    return false;
  }
}

function writePid(lock: DatabaseSync): void {
  try {
    lock.exec('begin immediate');
    lock.exec('create table if not exists holder (pid integer not null)');
    lock.exec('delete from holder');
    lock.prepare('insert into holder (pid) values (?)').run(process.pid);
    lock.exec('commit');
  } catch (error) {
    // A lock needs no space.
    if (!isDiskFull(error)) throw error;
    if (lock.isTransaction) lock.exec('rollback');
  }
}

function heldBy(path: string, lock: DatabaseSync): string {
  const hasHolder = lock.prepare("select 1 from sqlite_schema where name = 'holder'").get() !== undefined;
  const holder = hasHolder ? (lock.prepare('select pid from holder').get() as { pid: number } | undefined) : undefined;
  return `The database file ${path} is in use by process ${holder?.pid ?? 'unknown'}. Stop that one first, or give this one a file of its own.`;
}
