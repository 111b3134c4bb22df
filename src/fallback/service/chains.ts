import type { Awaitable } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import { conflict, notFound } from '../../kit/errors.ts';
import { entityTagOf, requireMatch } from '../../kit/etag.ts';
import type { NewId } from '../../kit/id.ts';
import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import { isId } from '../../kit/uuid.ts';
import type { Chain, ChainDefinition, ChainPatch, ChainRequest } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import type { Finding } from '../model/finding.ts';
import type { ChainCheck, Routing, RoutingQuery } from '../model/routing.ts';
import { define, merge } from '../rules/chain.ts';
import { answeredRouting, routingOf } from '../rules/routing.ts';
import { warningsOf } from '../rules/warnings.ts';
import type { StoredChain } from '../store/chains.ts';
import type { Store } from '../store/store.ts';
import { Analyses, type Analysis } from './analyses.ts';

/** The most attempts of a change while other requests change the same chain. */
const maxAttempts = 20;

interface ChainServiceDependencies {
  store: Store;
  clock: Clock;
  newId: NewId;
  turns: Turns;
}

export type ChainService = ReturnType<typeof createChainService>;

/** The operations on chains: longer than a screen because there are many; each of them is short. */
export function createChainService({ store: { chains }, clock, newId, turns }: ChainServiceDependencies) {
  const analyses = new Analyses(turns);

  async function stored(id: string): Promise<StoredChain> {
    const found = isId(id) ? await chains.find(id) : undefined;
    if (found === undefined) throw notFound('chain');
    return found;
  }

  /** The chain as an object. @throws ServiceError 404 if there is none */
  const get = async (id: string): Promise<Chain> => readJson((await stored(id)).text) as Chain;

  /** The findings of the import that made the chain. @throws ServiceError 404 if there is none */
  async function findings(id: string): Promise<Finding[]> {
    const found = isId(id) ? await chains.findings(id) : undefined;
    if (found === undefined) throw notFound('chain');
    return readJson(found) as Finding[];
  }

  /** Applies `change` to the stored chain, and retries if another request has changed it meanwhile. */
  async function changeStored<T>(
    id: string,
    ifMatch: string | undefined,
    change: (before: StoredChain) => Promise<T | undefined>,
  ): Promise<T> {
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      const before = await stored(id);
      requireMatch(ifMatch, entityTagOf(before.version), 'chain');
      const changed = await change(before);
      if (changed !== undefined) return changed;
    }
    throw conflict('Other requests keep changing this chain; try again.');
  }

  /** A chain as stored and returned, with fields in the documented order. */
  async function shown(
    definition: ChainDefinition,
    { id, ...stamps }: Pick<Chain, 'id' | 'version' | 'created_at' | 'updated_at'>,
  ): Promise<Chain> {
    const namesake = await chains.namesake(definition.name, id);
    return { id, ...definition, ...stamps, warnings: [...warningsOf(definition), ...(namesake === undefined ? [] : [sameName(namesake)])] };
  }

  return {
    /** Creates a chain. @throws ServiceError 400 with all faults */
    async create(request: ChainRequest, findings: readonly Finding[] = []): Promise<{ id: string } & StoredChain> {
      const now = clock();
      const at = now.toISOString();
      const id = newId(now);
      const chain = await shown(define(request), { id, version: 1, created_at: at, updated_at: at });
      const text = JSON.stringify(chain);
      await chains.insert(id, { version: 1, text }, JSON.stringify(findings));
      return { id, version: 1, text };
    },

    state: () => chains.state(),

    /** The JSON of chains, oldest first, in pages of at most a MiB unless one chain has more. Without a limit all chains. */
    pages: (range: { limit?: number | undefined; offset: number }) => pagesOf(chains, range),

    /** The stored chain, or undefined. */
    find: (id: string): Awaitable<StoredChain | undefined> => (isId(id) ? chains.find(id) : undefined),

    get,

    /** The chain's decisions, and the answer to the query's question. @throws ServiceError 404, or 400 for an incomplete question */
    async routing(id: string, query: RoutingQuery): Promise<Routing> {
      const { engine, routing } = await analyses.of(await get(id));
      return answeredRouting(engine, routing, query, await findings(id));
    },

    /** What is derived of the chain. @throws ServiceError 404 */
    analysis: async (id: string): Promise<Analysis> => analyses.of(await get(id)),

    findings,

    /** The warnings and the worst case of a chain, which is not stored. @throws ServiceError 400 with all faults */
    check(request: ChainRequest): ChainCheck {
      const { warnings, worst_case } = routingOf(define(request));
      return { warnings, worst_case };
    },

    /** Applies a merge patch (RFC 7396); the result is validated like a new chain. */
    patch: (id: string, patch: ChainPatch, ifMatch?: string): Promise<StoredChain> =>
      changeStored(id, ifMatch, async (before) => {
        const chainBefore = readJson(before.text) as Chain;
        const version = before.version + 1;
        const { created_at } = chainBefore;
        const chain = await shown(merge(chainBefore, patch), { id, version, created_at, updated_at: clock().toISOString() });
        const changed = { version, text: JSON.stringify(chain) };
        const isSame = (['providers', 'fallback_rules'] as const).every(
          (field) => JSON.stringify(chain[field]) === JSON.stringify(chainBefore[field]),
        );
        // The findings are about other providers or rules now.
        return (await chains.replace(id, before.version, changed, isSame ? undefined : '[]')) ? changed : undefined;
      }),

    /** Deletes a chain. The results of its tests are kept. */
    async remove(id: string, ifMatch?: string): Promise<void> {
      await changeStored(id, ifMatch, async ({ version }) => (await chains.remove(id, version)) || undefined);
    },
  };
}

async function* pagesOf(
  chains: Store['chains'],
  { limit = Number.MAX_SAFE_INTEGER, offset }: { limit?: number | undefined; offset: number },
): AsyncGenerator<string[], void> {
  let [after, left, skipped] = ['', limit, offset];
  while (left > 0) {
    const { texts, count, last } = await chains.page({ after, limit: left, offset: skipped });
    if (last === undefined) return;
    if (texts.length > 0) yield texts;
    [after, left, skipped] = [last, left - count, 0];
  }
}

/** The warning of a chain that was saved while another had its name. */
const sameName = (id: string): Warning => ({
  code: 'same_name',
  field: 'name',
  detail: `Another chain, ${id}, had the same name when this one was saved.`,
  loss: false,
});
