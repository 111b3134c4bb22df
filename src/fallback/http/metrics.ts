import { createMetrics, databaseGauges, type Metrics } from '../../kit/http/metrics.ts';
import type { TestService } from '../service/tests.ts';
import type { Store } from '../store/store.ts';

/** Creates the service's metrics: requests, database, chains, and tests. */
export function createFallbackMetrics(store: Store, tests: Pick<TestService, 'counts'>): Metrics {
  return createMetrics([
    {
      name: 'fallback_chains',
      help: 'Stored chains.',
      read: () =>
        store.chains.state().then(
          ({ count }) => count,
          () => Number.NaN,
        ),
    },
    { name: 'fallback_tests_running', help: 'Running tests.', read: () => tests.counts().running },
    { name: 'fallback_tests_waiting', help: 'Waiting tests.', read: () => tests.counts().waiting },
    ...databaseGauges(store),
  ]);
}
