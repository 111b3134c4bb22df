import type { Clock } from '../clock.ts';
import type { Database } from './dialect.ts';

/** How long a write that found no space keeps `ping` failing, in milliseconds: a small write may succeed where others fail. */
const failingMs = 10_000;

const noSpace = 'The disk of the database is full: reads are answered, writes get 503, and so does /ready, until there is space again.';

/** A database that knows whether its writes find space. */
export interface WatchedDatabase<Tables> extends Database<Tables> {
  /** Tries a write; returns a warning for the operator if it found no space. */
  spaceWarnings: () => Promise<string[]>;
}

/** The database, whose `ping` also fails while writes fail because the disk is full. */
export function watchSpace<Tables>(database: Database<Tables>, clock: Clock): WatchedDatabase<Tables> {
  let lastFailure: { readonly at: number; readonly error: unknown } | undefined;

  async function watched<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (database.isFull(error)) lastFailure = { at: clock().getTime(), error };
      throw error;
    }
  }

  return {
    ...database,
    transaction: (work) => watched(() => database.transaction(work)),
    write: (work, options) => watched(() => database.write(work, options)),
    async ping() {
      await database.ping();
      if (lastFailure === undefined) return;
      const age = clock().getTime() - lastFailure.at;
      if (age >= 0 && age < failingMs) throw lastFailure.error;
      await watched(database.tryWrite);
      lastFailure = undefined;
    },
    async spaceWarnings() {
      try {
        await watched(database.tryWrite);
        return [];
      } catch (error) {
        if (database.isFull(error)) return [noSpace];
        throw error;
      }
    },
  };
}
