import { sql } from 'kysely';

import type { Awaitable } from '../../kit/awaitable.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import type { Tables } from './tables.ts';

/** A stored chain: its version and its JSON text, as returned to callers. */
export interface StoredChain {
  readonly version: number;
  readonly text: string;
}

/** The stored chains. */
export function createChainStore(database: Database<Tables>) {
  const byId = database.query<{ id: string }, StoredChain>((db, { id }) =>
    db.selectFrom('chains').select(['version', 'text']).where('id', '=', id),
  );
  return {
    find(id: string): Awaitable<StoredChain | undefined> {
      database.beginView();
      return byId.first({ id });
    },

    /** The texts of a page, oldest first, and the total number of chains. Without a limit all chains. */
    async list({ limit, offset }: { limit?: number | undefined; offset: number }): Promise<{ texts: string[]; total: number }> {
      const rows = await database.reads
        .selectFrom('chains')
        .select('text')
        .orderBy('id')
        .limit(limit ?? Number.MAX_SAFE_INTEGER)
        .offset(offset)
        .execute();
      return { texts: rows.map(({ text }) => text), total: await countAll(database) };
    },

    count: () => countAll(database),

    async insert(id: string, { version, text }: StoredChain): Promise<void> {
      await database.transaction((tx) => tx.insertInto('chains').values({ id, version, text }).execute());
    },

    /** Replaces a chain if it still has the version `before`; returns whether it did. */
    async replace(id: string, before: number, { version, text }: StoredChain): Promise<boolean> {
      const [{ numUpdatedRows } = { numUpdatedRows: 0n }] = await database.transaction((tx) =>
        tx.updateTable('chains').set({ version, text }).where('id', '=', id).where('version', '=', before).execute(),
      );
      return numUpdatedRows > 0n;
    },

    /** Deletes a chain if it still has the version, or any version if that is undefined; returns whether it did. */
    async remove(id: string, version: number | undefined): Promise<boolean> {
      const [{ numDeletedRows } = { numDeletedRows: 0n }] = await database.transaction((tx) => {
        const query = tx.deleteFrom('chains').where('id', '=', id);
        return (version === undefined ? query : query.where('version', '=', version)).execute();
      });
      return numDeletedRows > 0n;
    },
  };
}

async function countAll(database: Database<Tables>): Promise<number> {
  const row = await database.reads.selectFrom('chains').select(sql<number>`count(*)`.as('count')).executeTakeFirstOrThrow();
  return Number(row.count);
}
