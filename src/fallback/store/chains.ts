import { sql } from 'kysely';

import type { Awaitable } from '../../kit/awaitable.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { nameOf } from './migrations/0001-first.ts';
import { fitting } from './pages.ts';
import type { Tables } from './tables.ts';

/** A stored chain: its version and its JSON text, as returned to callers. */
export interface StoredChain {
  readonly version: number;
  readonly text: string;
}

/** The most chains and the most bytes of a page, unless its first chain alone has more. */
const maxPageChains = 500;
const maxPageBytes = 1024 * 1024;

/** The stored chains. */
export function createChainStore(database: Database<Tables>) {
  const byId = database.query<{ id: string }, StoredChain>((db, { id }) =>
    db.selectFrom('chains').select(['version', 'text']).where('id', '=', id),
  );
  return {
    find(id: string): Awaitable<StoredChain | undefined> {
      database.beginTurnReads();
      return byId.first({ id });
    },

    /**
     * A page of chains, oldest first, after an id or, with an empty one, from the start: as many as fit into a MiB, but at
     * least one. Returns their JSON, how many the page covers, and the id of the last one; undefined if there are none.
     */
    async page({ after, limit, offset }: { after: string; limit: number; offset: number }) {
      const sizes = await database.reads
        .selectFrom('chains')
        .select(['id', sql<number>`octet_length(text)`.as('bytes')])
        .where('id', '>', after)
        .orderBy('id')
        .limit(Math.min(limit, maxPageChains))
        .offset(offset)
        .execute();
      const ids = fitting(sizes, maxPageBytes);
      if (ids.length === 0) return { texts: [], count: 0, last: undefined };
      const rows = await database.reads.selectFrom('chains').select('text').where('id', 'in', ids).orderBy('id').execute();
      return { texts: rows.map(({ text }) => text), count: ids.length, last: ids.at(-1) };
    },

    /** How many chains there are, and what identifies them all in their versions: a new one has the highest id, a change a version more. */
    async state(): Promise<{ count: number; tag: string }> {
      const row = await database.reads
        .selectFrom('chains')
        .select([
          sql<number>`count(*)`.as('count'),
          sql<number>`coalesce(sum(version), 0)`.as('versions'),
          sql<string | null>`max(id)`.as('last'),
        ])
        .executeTakeFirstOrThrow();
      return { count: Number(row.count), tag: `${row.count}-${row.versions}-${row.last ?? ''}` };
    },

    /** The id of the oldest other chain with this name; undefined if there is none. */
    async namesake(name: string, id: string): Promise<string | undefined> {
      const stored = sql.raw<string>(nameOf[database.name]);
      const query = database.reads.selectFrom('chains').select('id').where(stored, '=', JSON.stringify(name)).where('id', '!=', id);
      return (await query.orderBy('id').limit(1).executeTakeFirst())?.id;
    },

    /** The findings of the import that made a chain, as JSON; undefined for an unknown chain. */
    async findings(id: string): Promise<string | undefined> {
      return (await database.reads.selectFrom('chains').select('findings').where('id', '=', id).executeTakeFirst())?.findings;
    },

    async insert(id: string, { version, text }: StoredChain, findings = '[]'): Promise<void> {
      await database.transaction((tx) => tx.insertInto('chains').values({ id, version, text, findings }).execute());
    },

    /** Replaces a chain, and its findings if they are given, if it still has the version `before`; returns whether it did. */
    async replace(id: string, before: number, { version, text }: StoredChain, findings?: string): Promise<boolean> {
      const changes = { version, text, ...(findings === undefined ? {} : { findings }) };
      const [{ numUpdatedRows } = { numUpdatedRows: 0n }] = await database.transaction((tx) =>
        tx.updateTable('chains').set(changes).where('id', '=', id).where('version', '=', before).execute(),
      );
      return numUpdatedRows > 0n;
    },

    /** The chain's rehearsal token; undefined without one or without the chain. */
    async token(id: string): Promise<string | undefined> {
      const row = await database.reads.selectFrom('chains').select('rehearsal_token').where('id', '=', id).executeTakeFirst();
      return row?.rehearsal_token ?? undefined;
    },

    /** Stores a rehearsal token, or keeps the stored one unless `replace`; returns the token, or undefined without the chain. */
    async setToken(id: string, token: string, replace: boolean): Promise<string | undefined> {
      const rehearsal_token = replace ? token : sql<string>`coalesce(rehearsal_token, ${token})`;
      const rows = await database.transaction((tx) =>
        tx.updateTable('chains').set({ rehearsal_token }).where('id', '=', id).returning('rehearsal_token').execute(),
      );
      return rows[0]?.rehearsal_token ?? undefined;
    },

    /** Deletes a chain if it still has the version; returns whether it did. */
    async remove(id: string, version: number): Promise<boolean> {
      const [{ numDeletedRows } = { numDeletedRows: 0n }] = await database.transaction((tx) =>
        tx.deleteFrom('chains').where('id', '=', id).where('version', '=', version).execute(),
      );
      return numDeletedRows > 0n;
    },
  };
}
