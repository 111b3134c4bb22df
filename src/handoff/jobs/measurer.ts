import type { Sizes } from '../store/sizes.ts';
import type { Store } from '../store/store.ts';

/** How often the database is measured, in milliseconds: counting the rows of a large one takes seconds. */
const everyMs = 15 * 60_000;

/** Makes the job that measures the database for the metrics. A round returns the milliseconds until the next. */
export function createMeasurer(store: Pick<Store, 'measure'>, onMeasured: (sizes: Sizes) => void): () => Promise<number> {
  return async () => {
    onMeasured(await store.measure());
    return everyMs;
  };
}
