import { eachInTurn } from '../../kit/awaitable.ts';
import type { ErasureService } from '../service/erasures.ts';
import type { Store } from '../store/store.ts';

/** The most erasures that one round advances, and the most steps of each. */
const roundSize = 20;

/** How often to look for erasures that another instance accepted, and for packets whose retention is over. */
const everyMs = 1000;
const retentionEveryMs = 60_000;

interface EraserDependencies {
  store: Pick<Store, 'erasures'>;
  erasures: Pick<ErasureService, 'step' | 'retain' | 'retaining'>;
  now: () => number;
}

/**
 * Makes the job that carries out erasures, and erases packets whose retention is over, in bounded steps. A round returns the
 * milliseconds until the next one.
 */
export function createEraser({ store, erasures, now }: EraserDependencies): () => Promise<number> {
  let retainedAt = Number.NEGATIVE_INFINITY;

  /** A round of erasures; returns whether there may be more. */
  const erase = () =>
    store.erasures.open(roundSize, (open) =>
      eachInTurn(open, async ({ tenant, id }) => {
        for (let step = 0; step < roundSize && !(await erasures.step(tenant, id)); step += 1);
      }),
    );

  /** A round of retention, if it is time for one; returns whether there may be more. */
  async function retain(): Promise<boolean> {
    if (now() - retainedAt < retentionEveryMs && now() >= retainedAt) return false;
    const more = (await eachInTurn(await erasures.retaining(), ({ number, days }) => erasures.retain(number, days))).includes(true);
    if (!more) retainedAt = now();
    return more;
  }

  return async () => ((await eachInTurn([erase, retain], (part) => part())).includes(true) ? 0 : everyMs);
}
