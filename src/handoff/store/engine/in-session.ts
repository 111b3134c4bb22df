import type { Database, WriteOptions } from '../../../kit/sql/dialect.ts';
import { postgresSession } from './postgres-session.ts';
import type { Session } from './session.ts';
import { Calls, sqliteSession } from './sqlite-session.ts';

/** Runs work in a session of a write transaction: see `Database.write`. */
export function inSession<T>(
  database: Pick<Database<unknown>, 'write' | 'charactersPerTurn'>,
  work: (session: Session) => Promise<T>,
  options?: WriteOptions,
): Promise<T> {
  return database.write(async (tx) => {
    if (tx.name === 'postgres') return work(postgresSession(tx));
    const calls = new Calls();
    try {
      const result = await work(sqliteSession(tx, calls, database.charactersPerTurn));
      if (calls.unfinished !== undefined) await calls.unfinished;
      return result;
    } finally {
      calls.end();
    }
  }, options);
}
