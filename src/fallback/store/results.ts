import { sql } from 'kysely';

import type { Database } from '../../kit/sql/dialect.ts';
import type { Tables } from './tables.ts';

/** The status of a result that runs; every other one is an end. */
const running = 'running';

/** A result as it is kept. */
export interface StoredResult {
  readonly id: string;
  readonly status: string;
  /** The result in JSON; while it runs, without its prompts. */
  readonly text: string;
  /** While it runs: its prompts that are done, in JSON, in their order. */
  readonly prompts: readonly string[];
}

/** A prompt that is done: its place in the test, and what became of it in JSON. */
export interface DonePrompt {
  readonly position: number;
  readonly text: string;
}

/** The results of tests. They outlive their chains. */
export function createResultStore(database: Database<Tables>) {
  async function promptsOf(id: string, status: string): Promise<string[]> {
    if (status !== running) return [];
    const rows = await database.reads.selectFrom('test_prompts').select('text').where('result_id', '=', id).orderBy('position').execute();
    return rows.map(({ text }) => text);
  }
  const whole = async (rows: readonly { id: string; status: string; text: string }[]): Promise<StoredResult[]> =>
    Promise.all(rows.map(async (row) => ({ ...row, prompts: await promptsOf(row.id, row.status) })));

  return {
    /** Keeps a result that begins to run. */
    async begin({ id, chainId, text }: { id: string; chainId: string; text: string }): Promise<void> {
      await database.transaction((tx) => tx.insertInto('test_results').values({ id, chain_id: chainId, status: running, text }).execute());
    },

    /** Keeps prompts that are done, and the result as it is with them. */
    async addPrompts(id: string, prompts: readonly DonePrompt[], text: string): Promise<void> {
      if (prompts.length === 0) return;
      await database.transaction(async (tx) => {
        await tx
          .insertInto('test_prompts')
          .values(prompts.map(({ position, text: prompt }) => ({ result_id: id, position, text: prompt })))
          .execute();
        await tx.updateTable('test_results').set({ text }).where('id', '=', id).where('status', '=', running).execute();
      });
    },

    /** Keeps a result that has ended, whole: in place of what was kept while it ran, or as it is where nothing was. */
    async end({ id, chainId, status, text }: { id: string; chainId: string; status: string; text: string }): Promise<void> {
      await database.transaction(async (tx) => {
        await tx
          .insertInto('test_results')
          .values({ id, chain_id: chainId, status, text })
          .onConflict((conflict) => conflict.column('id').doUpdateSet({ status, text }))
          .execute();
        await tx.deleteFrom('test_prompts').where('result_id', '=', id).execute();
      });
    },

    async find(id: string): Promise<StoredResult | undefined> {
      const row = await database.reads.selectFrom('test_results').select(['id', 'status', 'text']).where('id', '=', id).executeTakeFirst();
      return row && (await whole([row]))[0];
    },

    /** A page of a chain's results, newest first, and how many there are. */
    async ofChain(chainId: string, { limit, offset }: { limit: number; offset: number }): Promise<{ rows: StoredResult[]; total: number }> {
      const rows = await database.reads
        .selectFrom('test_results')
        .select(['id', 'status', 'text'])
        .where('chain_id', '=', chainId)
        .orderBy('id', 'desc')
        .limit(limit)
        .offset(offset)
        .execute();
      const { count } = await database.reads
        .selectFrom('test_results')
        .select(sql<number>`count(*)`.as('count'))
        .where('chain_id', '=', chainId)
        .executeTakeFirstOrThrow();
      return { rows: await whole(rows), total: Number(count) };
    },

    /** Results that were running when the program that ran them ended, with the prompts that were done. */
    async running(): Promise<(StoredResult & { readonly chainId: string })[]> {
      const rows = await database.reads
        .selectFrom('test_results')
        .select(['id', 'chain_id', 'status', 'text'])
        .where('status', '=', running)
        .orderBy('id')
        .execute();
      return Promise.all(
        rows.map(async ({ chain_id, ...row }) => ({ ...row, chainId: chain_id, prompts: await promptsOf(row.id, row.status) })),
      );
    },
  };
}
