import { isId } from '../../kit/id.ts';
import type { LastTest } from '../model/summary.ts';
import type { StoredResult } from '../store/results.ts';
import type { Store } from '../store/store.ts';
import { headOf, storedText, withoutPrompts } from './record.ts';
import type { RunningTest } from './running-test.ts';

/** Creates the reads of results, as JSON: of tests that run on this instance from memory, of all others from the store. */
export function createResults({ chains, results }: Store, running: ReadonlyMap<string, RunningTest>) {
  const textOf = (row: StoredResult): string => running.get(row.id)?.record.text() ?? storedText(row);

  async function stored(id: string): Promise<string | undefined> {
    const found = await results.find(id);
    return found && storedText(found);
  }

  return {
    /** A result as stored; undefined if there is none. */
    stored,

    /** The current result; undefined if there is none. */
    find: async (id: string): Promise<string | undefined> => (isId(id) ? (running.get(id)?.record.text() ?? stored(id)) : undefined),

    /**
     * A page of a chain's results, newest first, and their total number; undefined if no chain has this id. A page with
     * prompts ends early if its results exceed the size limit of the store.
     */
    async ofChain(chainId: string, page: { limit: number; offset: number; prompts: boolean }) {
      const { limit, offset, prompts } = page;
      if (!isId(chainId)) return undefined;
      const texts: string[] = [];
      for (;;) {
        const { rows, total } = await results.ofChain(chainId, { limit: limit - texts.length, offset: offset + texts.length });
        if (total === 0 && (await chains.find(chainId)) === undefined) return undefined;
        texts.push(...rows.map((row) => (prompts ? textOf(row) : withoutPrompts(textOf(row)))));
        if (prompts || rows.length === 0 || texts.length === limit) return { texts, total };
      }
    },

    /** A summary of a chain's latest test; null if there is none. */
    async lastOf(chainId: string): Promise<LastTest | null> {
      const [row] = (await results.ofChain(chainId, { limit: 1, offset: 0 })).rows;
      if (row === undefined) return null;
      const { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at } = headOf(textOf(row));
      return { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at };
    },
  };
}
