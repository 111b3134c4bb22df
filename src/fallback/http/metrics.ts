import { createMetrics, databaseGauges, type Metrics } from '../../kit/http/metrics.ts';
import type { TestService } from '../service/tests.ts';
import type { Store } from '../store/store.ts';

/** The service's metrics: requests, the database, and chains that are kept and tests in hand. */
export function createFallbackMetrics(store: Store, tests: Pick<TestService, 'counts'>): Metrics {
  return createMetrics([
    { name: 'fallback_chains', help: 'Chains that are kept.', read: () => store.chains.count().catch(() => Number.NaN) },
    { name: 'fallback_tests_running', help: 'Tests that run.', read: () => tests.counts().running },
    { name: 'fallback_tests_waiting', help: 'Tests that wait for their turn.', read: () => tests.counts().waiting },
    ...databaseGauges(store),
  ]);
}
