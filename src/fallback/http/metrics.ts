import { createMetrics, databaseGauges, type Metrics } from '../../kit/http/metrics.ts';
import type { Store } from '../store/store.ts';

/** The service's metrics: requests, the database, and how many chains are kept. */
export function createFallbackMetrics(store: Store): Metrics {
  return createMetrics([
    { name: 'fallback_chains', help: 'Chains that are kept.', read: () => store.chains.count().catch(() => Number.NaN) },
    ...databaseGauges(store),
  ]);
}
