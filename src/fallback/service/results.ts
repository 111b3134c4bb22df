import { readJson } from '../../kit/json.ts';
import { isId } from '../../kit/uuid.ts';
import type { LastTest } from '../model/summary.ts';
import type { StoredResult } from '../store/results.ts';
import type { Store } from '../store/store.ts';
import { joined, type ResultHead, type ResultTexts, withoutPrompts } from './record.ts';
import type { RunningTest } from './running-test.ts';

/** Creates the reads of results, as JSON: of tests that run on this instance from memory, of all others from the store. */
export function createResults({ chains, results }: Store, running: ReadonlyMap<string, RunningTest>) {
  const textsOf = (row: StoredResult): ResultTexts => running.get(row.id)?.record.texts() ?? row;

  async function stored(id: string): Promise<string | undefined> {
    const found = await results.find(id);
    return found && joined(found);
  }

  return {
    /** A result as stored; undefined if there is none. */
    stored,

    /** The current result; undefined if there is none. `prompts`: with its prompts. */
    find: async (id: string, { prompts = true } = {}): Promise<string | undefined> => {
      const texts = isId(id) ? (running.get(id)?.record.texts() ?? (await results.find(id))) : undefined;
      return texts && (prompts ? joined : withoutPrompts)(texts);
    },

    /**
     * A page of a chain's results, newest first, and their total number; undefined if no chain has this id. A page with
     * prompts ends early if its results exceed the size limit of the store.
     */
    ofChain: async (chainId: string, page: { limit: number; offset: number; prompts: boolean }) => {
      const { limit, offset, prompts } = page;
      if (!isId(chainId)) return undefined;
      const texts: string[] = [];
      for (;;) {
        const { rows, total } = await results.ofChain(chainId, { limit: limit - texts.length, offset: offset + texts.length });
        if (total === 0 && (await chains.find(chainId)) === undefined) return undefined;
        texts.push(...rows.map((row) => (prompts ? joined : withoutPrompts)(textsOf(row))));
        if (prompts || rows.length === 0 || texts.length === limit) return { texts, total };
      }
    },

    /** A summary of a chain's latest test; null if there is none. */
    async lastOf(chainId: string): Promise<LastTest | null> {
      const [row] = (await results.ofChain(chainId, { limit: 1, offset: 0 })).rows;
      if (row === undefined) return null;
      const { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at } = readJson<ResultHead>(
        textsOf(row).text,
      );
      return { id, status, mode, verdict, prompt_count, success_rate, chain_version, started_at, completed_at };
    },
  };
}
