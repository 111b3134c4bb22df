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

  /** A round of retention; returns whether there may be more. */
  async function retain(): Promise<boolean> {
    let hasMore = false;
    for (const { number, days } of await erasures.retaining()) if ((await erasures.retain(number, days)) > 0) hasMore = true;
    return hasMore;
  }

  return async () => {
    const open = await store.erasures.open(roundSize);
    for (const { tenant, id } of open) for (let step = 0; step < roundSize && !(await erasures.step(tenant, id)); step += 1);
    const isTime = now() - retainedAt >= retentionEveryMs || now() < retainedAt;
    const hasMore = isTime && (await retain());
    if (isTime && !hasMore) retainedAt = now();
    return open.length > 0 || hasMore ? 0 : everyMs;
  };
}
