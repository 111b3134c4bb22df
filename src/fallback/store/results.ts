import { type Kysely, sql } from 'kysely';

import { lowestIdAt } from '../../kit/id.ts';
import { countOf } from '../../kit/sql/count.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { fitting } from './pages.ts';
import type { Tables } from './tables.ts';

/** The status of a running test; all others are final. */
const running = 'running';

const columns = ['id', 'status', 'text', 'prompts'] as const;

/** The most old results that a transaction deletes, so that other writes need not wait long. */
const pruneTogether = 200;

/** The most bytes of one page of results, unless its first result alone has more. */
const maxPageBytes = 16 * 1024 * 1024;

/** A page of a chain's results. */
export interface ResultPage {
  readonly limit: number;
  readonly offset: number;
  /** The size limit of the page in bytes; by default 16 MiB. */
  readonly maxBytes?: number;
}

/** A stored result. */
export interface StoredResult {
  readonly id: string;
  readonly status: string;
  /** The result as JSON, without its prompts. */
  readonly text: string;
  /** The finished prompts as a JSON list, in order. */
  readonly prompts: string;
}

/** A finished prompt: its index in the test and its result as JSON. */
export interface DonePrompt {
  readonly position: number;
  readonly text: string;
}

export interface EndedResult {
  readonly id: string;
  readonly chainId: string;
  readonly status: string;
  readonly text: string;
  /** Its prompts, as a JSON list. */
  readonly prompts: string;
  /** How many of the chain's newest results to keep; 0: all. */
  readonly keep?: number;
  /** Ends the test only if its lease has expired at this time. */
  readonly unlessLeasedAt?: Date | undefined;
}

/** The stored results of tests, which outlive their chains: one short function for each query, so longer than a screen. */
export function createResultStore(database: Database<Tables>) {
  /** While a test runs, its prompts have rows of their own. */
  async function promptsOf({ id, status, prompts }: StoredResult): Promise<string> {
    if (status !== running) return prompts;
    const rows = await database.reads.selectFrom('test_prompts').select('text').where('result_id', '=', id).orderBy('position').execute();
    return `[${rows.map(({ text }) => text).join(',')}]`;
  }
  const whole = async <R extends StoredResult>(rows: readonly R[]) =>
    Promise.all(rows.map(async (row) => ({ ...row, prompts: await promptsOf(row) })));
  const head = (id: string): Promise<Omit<StoredResult, 'prompts'> | undefined> =>
    database.reads.selectFrom('test_results').select(['id', 'status', 'text']).where('id', '=', id).executeTakeFirst();

  return {
    /** Stores the result of a starting test, with the lease of its instance. */
    async begin({ id, chainId, text, leaseUntil }: { id: string; chainId: string; text: string; leaseUntil: Date }): Promise<void> {
      const row = { id, chain_id: chainId, status: running, text, lease_until: leaseUntil.toISOString() };
      await database.transaction((tx) => tx.insertInto('test_results').values(row).execute());
    },

    /** Stores finished prompts and the updated result; does nothing if the test has ended. */
    async addPrompts(id: string, prompts: readonly DonePrompt[], text: string): Promise<void> {
      if (prompts.length === 0) return;
      await database.transaction(async (tx) => {
        const [updated] = await tx.updateTable('test_results').set({ text }).where('id', '=', id).where('status', '=', running).execute();
        if (updated?.numUpdatedRows !== 1n) return;
        await tx
          .insertInto('test_prompts')
          .values(prompts.map(({ position, text: prompt }) => ({ result_id: id, position, text: prompt })))
          .execute();
      });
    },

    /** Renews the leases of running tests; returns those still running, and whether a cancellation was requested. */
    async renew(ids: readonly string[], leaseUntil: Date): Promise<{ id: string; cancel: boolean }[]> {
      const rows = await database.transaction((tx) =>
        tx
          .updateTable('test_results')
          .set({ lease_until: leaseUntil.toISOString() })
          .where('id', 'in', ids)
          .where('status', '=', running)
          .returning(['id', 'cancel_requested'])
          .execute(),
      );
      return rows.map(({ id, cancel_requested }) => ({ id, cancel: cancel_requested === 1 }));
    },

    /** Requests the cancellation of a test from its instance; false if the test is not running. */
    async requestCancel(id: string): Promise<boolean> {
      const [updated] = await database.transaction((tx) =>
        tx.updateTable('test_results').set({ cancel_requested: 1 }).where('id', '=', id).where('status', '=', running).execute(),
      );
      return updated?.numUpdatedRows === 1n;
    },

    /**
     * Stores the whole result of an ended test, replacing what was stored while it ran. Returns false and changes nothing
     * if the test has already ended.
     */
    async end({ id, chainId, status, text, prompts, keep = 0, unlessLeasedAt }: EndedResult): Promise<boolean> {
      return database.transaction(async (tx) => {
        const [{ numInsertedOrUpdatedRows } = { numInsertedOrUpdatedRows: 0n }] = await tx
          .insertInto('test_results')
          .values({ id, chain_id: chainId, status, text, prompts })
          .onConflict((conflict) => {
            const update = conflict.column('id').doUpdateSet({ status, text, prompts }).where('test_results.status', '=', running);
            if (unlessLeasedAt === undefined) return update;
            return update.where(sql`coalesce(test_results.lease_until, '')`, '<', unlessLeasedAt.toISOString());
          })
          .execute();
        if (numInsertedOrUpdatedRows !== 1n) return false;
        await tx.deleteFrom('test_prompts').where('result_id', '=', id).execute();
        if (keep > 0) await deleteBeyond(tx, chainId, keep);
        return true;
      });
    },

    /** A stored result without its prompts. */
    head,

    async find(id: string): Promise<StoredResult | undefined> {
      const row = await database.reads.selectFrom('test_results').select(columns).where('id', '=', id).executeTakeFirst();
      return row && (await whole([row]))[0];
    },

    /**
     * A page of a chain's results, newest first, and their total number. It ends early, after at least one result, if its
     * results exceed the size limit.
     */
    async ofChain(chainId: string, page: ResultPage): Promise<{ rows: StoredResult[]; total: number }> {
      const ids = await fittingIds(database.reads, chainId, page);
      const rows =
        ids.length === 0
          ? []
          : await database.reads.selectFrom('test_results').select(columns).where('id', 'in', ids).orderBy('id', 'desc').execute();
      const total = await countOf(database.reads.selectFrom('test_results').where('chain_id', '=', chainId));
      return { rows: await whole(rows), total };
    },

    /**
     * Running tests whose lease has expired at `now`, with their finished prompts: their instance has died. Without a time
     * all running tests, for a database that no other instance can have open.
     */
    async orphans(now: Date | undefined): Promise<(StoredResult & { readonly chain_id: string })[]> {
      const query = database.reads
        .selectFrom('test_results')
        .select(['chain_id', ...columns])
        .where('status', '=', running);
      const without = now === undefined ? query : query.where(sql`coalesce(lease_until, '')`, '<', now.toISOString());
      return whole(await without.orderBy('id').execute());
    },

    /** Deletes a batch of ended results that started before a time; returns whether there may be more. */
    async prune(before: Date): Promise<boolean> {
      const deleted = await database.transaction((tx) =>
        tx
          .deleteFrom('test_results')
          .where('id', 'in', (db) =>
            db
              .selectFrom('test_results')
              .select('id')
              .where('id', '<', lowestIdAt(before))
              .where('status', '<>', running)
              .orderBy('id')
              .limit(pruneTogether),
          )
          .executeTakeFirst(),
      );
      return Number(deleted.numDeletedRows) === pruneTogether;
    },
  };
}

/** The ids of a page's results, as many of them as fit. */
async function fittingIds(
  reads: Kysely<Tables>,
  chainId: string,
  { limit, offset, maxBytes = maxPageBytes }: ResultPage,
): Promise<string[]> {
  const prompts = sql`(select sum(octet_length(text)) from test_prompts where result_id = test_results.id)`;
  const rows = await reads
    .selectFrom('test_results')
    .select(['id', sql<number>`octet_length(text) + octet_length(prompts) + coalesce(${prompts}, 0)`.as('bytes')])
    .where('chain_id', '=', chainId)
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  return fitting(rows, maxBytes);
}

/** Deletes a chain's results except the newest ones and running tests. */
async function deleteBeyond(tx: Kysely<Tables>, chainId: string, keep: number): Promise<void> {
  await tx
    .deleteFrom('test_results')
    .where('chain_id', '=', chainId)
    .where('status', '<>', running)
    .where('id', '<', (db) =>
      db
        .selectFrom('test_results')
        .select('id')
        .where('chain_id', '=', chainId)
        .orderBy('id', 'desc')
        .limit(1)
        .offset(keep - 1),
    )
    .execute();
}
