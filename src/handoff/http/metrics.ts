import { hash } from 'node:crypto';
import { Counter, Gauge, Histogram } from 'prom-client';
import type { Clock } from '../../kit/clock.ts';
import { createMetrics, databaseGauges, type Metrics } from '../../kit/http/metrics.ts';
import type { Streams } from '../../kit/http/streams.ts';
import { type Status, statuses } from '../model/common.ts';
import { openStatuses } from '../rules/packet-life.ts';
import type { Sizes } from '../store/sizes.ts';
import type { Store } from '../store/store.ts';

/** The service's metrics. */
export interface HandoffMetrics extends Metrics {
  /** Counts packets created by a tenant. */
  handedOver(tenantId: string, count: number): void;
  /** Counts a delivery attempt by its outcome: `delivered`, or the class of the failure. */
  attempted(outcome: string, seconds: number): void;
  /** Counts an invalid message from the broker. */
  relayIgnored(): void;
  /** Takes over how large the database is. */
  measured(sizes: Sizes): void;
  /** Counts a failure of what runs after a commit. */
  failedAfterCommit(): void;
}

interface MetricsParts {
  store: Store;
  streams: Pick<Streams, 'count'>;
  /** The memory that replays hold. */
  replays: { readonly bytes: number; readonly waiting: number };
  clock: Clock;
  /** Whether reading the metrics needs a token; then tenants are labelled with their ids. */
  isPrivate: boolean;
}

/** Makes the service's metrics: those of the specification, and gauges of packets, database, write queue, search index and streams. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one declaration for each metric.
export function createHandoffMetrics({ store, streams, replays, clock, isPrivate }: MetricsParts): HandoffMetrics {
  const unknown = Object.fromEntries(statuses.map((status) => [status, Number.NaN])) as Record<Status, number>;
  const counts = () => store.countByStatus().catch(() => unknown);
  let sizes: Sizes = { rows: {}, bytes: Number.NaN };
  const metrics = createMetrics([
    {
      name: 'service_packets',
      help: 'Packets, by status.',
      label: 'status',
      read: counts,
    },
    {
      name: 'service_oldest_question_age_seconds',
      help: 'Age of the oldest unanswered question; 0 without one.',
      read: () =>
        store.oldestQuestion().then(
          (asked) => (asked === undefined ? 0 : Math.max(0, (clock().getTime() - Date.parse(asked)) / 1000)),
          () => Number.NaN,
        ),
    },
    {
      name: 'service_active_packets',
      help: 'Packets that are neither completed, failed nor expired.',
      read: () => counts().then((byStatus) => openStatuses.reduce((sum, status) => sum + byStatus[status], 0)),
    },
    ...databaseGauges(store),
    {
      name: 'service_replay_bytes',
      help: 'Bytes of past events read for streams whose clients have not taken them yet.',
      read: () => replays.bytes,
    },
    { name: 'service_replays_waiting', help: 'Streams that wait for memory to read past events.', read: () => replays.waiting },
    {
      name: 'service_search_queue_length',
      help: 'Packets waiting to be indexed for search.',
      read: () => store.index.queued(1_000_000).catch(() => Number.NaN),
    },
    {
      name: 'service_webhook_queue_length',
      help: 'Deliveries to webhooks waiting for an attempt, due or not.',
      read: () => store.deliveries.waiting(1_000_000).catch(() => Number.NaN),
    },
    {
      name: 'service_table_rows',
      help: 'Rows of the database, by table, when it was last measured: every 15 minutes, from a minute after the start.',
      label: 'table',
      read: () => sizes.rows,
    },
    {
      name: 'service_database_bytes',
      help: 'Size of the database when it was last measured, with its indexes and free space.',
      read: () => sizes.bytes,
    },
  ]);
  const handoffs = new Counter({
    name: 'service_handoffs_total',
    help: 'Packets created, by tenant.',
    labelNames: ['tenant_id'],
    registers: [metrics.registry],
  });
  const nameOf = isPrivate ? (tenantId: string) => tenantId : pseudonymOf;
  const attempts = new Counter({
    name: 'service_webhook_attempts_total',
    help: 'Delivery attempts to webhooks by outcome: delivered, or the class of the failure.',
    labelNames: ['outcome'],
    registers: [metrics.registry],
  });
  const attemptSeconds = new Histogram({
    name: 'service_webhook_attempt_seconds',
    help: 'Time from the start of an attempt to the status of its answer.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [metrics.registry],
  });
  new Gauge({
    name: 'service_open_connections',
    help: 'Open streams, by protocol.',
    labelNames: ['protocol'],
    registers: [metrics.registry],
    collect() {
      for (const protocol of ['sse', 'websocket'] as const) this.set({ protocol }, streams.count(protocol));
    },
  });
  const ignored = new Counter({
    name: 'service_relay_ignored_total',
    help: 'Invalid messages from the broker.',
    registers: [metrics.registry],
  });
  const afterCommit = new Counter({
    name: 'service_after_commit_failures_total',
    help: 'Failures of what runs after a commit: the writes are stored, and events are sent later.',
    registers: [metrics.registry],
  });
  return {
    ...metrics,
    measured(measured) {
      sizes = measured;
    },
    failedAfterCommit: () => afterCommit.inc(),
    relayIgnored: () => ignored.inc(),
    handedOver: (tenantId, count) => handoffs.inc({ tenant_id: nameOf(tenantId) }, count),
    attempted(outcome, seconds) {
      attempts.inc({ outcome });
      attemptSeconds.observe(seconds);
    },
  };
}

/** A label that distinguishes tenants without revealing their ids, which have too many random bits to be guessed from a digest. */
function pseudonymOf(tenantId: string): string {
  return hash('sha256', tenantId).slice(0, 12);
}
