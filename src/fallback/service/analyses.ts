import { LRUCache } from 'lru-cache';

import type { Turns } from '../../kit/turns.ts';
import type { Chain } from '../model/chain.ts';
import type { Routing } from '../model/routing.ts';
import type { ChainSummary } from '../model/summary.ts';
import { type ExportFormat, exportFormats } from '../model/targets.ts';
import { definitionOf } from '../rules/chain.ts';
import { createEngine, type Engine } from '../rules/engine.ts';
import { routingOf } from '../rules/routing.ts';
import { summaryOf } from '../rules/summary.ts';
import { isLossless } from '../rules/targets/export.ts';

/** What is derived of one revision of a chain. */
export interface Analysis {
  readonly engine: Engine;
  readonly routing: Routing;
  /** Describes the chain without its latest test. It is made when it is first asked for. */
  readonly summary: () => Promise<Omit<ChainSummary, 'last_test'>>;
}

/** How many revisions are kept, the ones asked for last. */
const mostKept = 200;

/**
 * What is derived of chains, kept by revision, since it takes long for the largest chain. It is made in turns, so that other
 * requests wait for a part of it at most.
 */
export class Analyses {
  readonly #turns: Turns;
  readonly #kept = new LRUCache<string, Promise<Analysis>>({ max: mostKept });

  constructor(turns: Turns) {
    this.#turns = turns;
  }

  /** What is derived of a stored chain. Those who ask for the same revision share it. */
  of(chain: Chain): Promise<Analysis> {
    const key = `${chain.id} ${chain.version}`;
    const analysis = this.#kept.get(key) ?? this.#analyze(chain);
    this.#kept.set(key, analysis);
    return analysis;
  }

  async #analyze(chain: Chain): Promise<Analysis> {
    const definition = definitionOf(chain);
    await this.#turns.next(chain.id);
    const engine = createEngine(definition);
    const routing = routingOf(definition, engine);
    let summary: ReturnType<Analysis['summary']> | undefined;
    return { engine, routing, summary: () => (summary ??= this.#summarize(chain.id, engine, routing)) };
  }

  async #summarize(id: string, engine: Engine, routing: Routing): ReturnType<Analysis['summary']> {
    const lossless: ExportFormat[] = [];
    for (const format of exportFormats) {
      await this.#turns.next(id);
      if (isLossless(format, { chain: engine.chain, routing, prefer: 'failover' })) lossless.push(format);
    }
    await this.#turns.next(id);
    return summaryOf(engine, lossless);
  }
}
