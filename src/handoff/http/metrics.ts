import { Counter } from 'prom-client';

import { createMetrics, databaseGauges, type Metrics } from '../../kit/http/metrics.ts';
import type { Status } from '../model/common.ts';
import type { Store } from '../store/store.ts';

const open: readonly Status[] = ['created', 'claimed', 'in_progress', 'awaiting_human'];

/** The service's metrics. */
export interface HandoffMetrics extends Metrics {
  /** Counts packets handed over by a tenant. */
  handedOver(tenantId: string, count: number): void;
}

/** The specified metrics, and gauges of the database, the writes that wait and the search index. */
export function createHandoffMetrics(store: Store): HandoffMetrics {
  const metrics = createMetrics([
    {
      name: 'service_active_packets',
      help: 'Packets that are neither completed, failed nor expired.',
      read: () => store.countInStatuses(open).catch(() => Number.NaN),
    },
    ...databaseGauges(store),
    {
      name: 'service_search_queue_length',
      help: 'Packets that wait to be indexed for search.',
      read: () => store.index.queued(1_000_000).catch(() => Number.NaN),
    },
  ]);
  const handoffs = new Counter({
    name: 'service_handoffs_total',
    help: 'Packets created, by tenant.',
    labelNames: ['tenant_id'],
    registers: [metrics.registry],
  });
  return { ...metrics, handedOver: (tenantId, count) => handoffs.inc({ tenant_id: tenantId }, count) };
}
