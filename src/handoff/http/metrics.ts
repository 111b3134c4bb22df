import { hash } from 'node:crypto';
import { Counter, Histogram } from 'prom-client';
import type { Clock } from '../../kit/clock.ts';
import { createMetrics, databaseGauges } from '../../kit/http/metrics.ts';
import type { Streams } from '../../kit/http/streams.ts';
import { type Status, statuses } from '../model/common.ts';
import { openStatuses } from '../rules/packet-life.ts';
import type { Waiting } from '../store/ages.ts';
import type { Sizes } from '../store/sizes.ts';
import type { Store } from '../store/store.ts';

export type HandoffMetrics = ReturnType<typeof createHandoffMetrics>;

/** The most series of a gauge whose labels name packets. */
const maxWaits = 20;

interface MetricsDependencies {
  store: Store;
  streams: Pick<Streams, 'count'>;
  /** The memory that replays hold. */
  replays: { readonly bytes: number; readonly waiting: number };
  clock: Clock;
  /** Whether reading the metrics needs a token; then tenants are labelled with their ids. */
  isPrivate: boolean;
}

/** Makes the service's metrics: those of the specification, and gauges of packets, database, write queue, search index and streams. */
// oxlint-disable-next-line baton/own-lines -- one declaration for each metric.
export function createHandoffMetrics({ store, streams, replays, clock, isPrivate }: MetricsDependencies) {
  const unknown = Object.fromEntries(statuses.map((status) => [status, Number.NaN])) as Record<Status, number>;
  const counts = () => store.packets.countByStatus().catch(() => unknown);
  const ageGauge = (name: string, help: string, since: () => Promise<Date | undefined>) => ({
    name,
    help,
    read: () =>
      since().then(
        (time) => (time === undefined ? 0 : Math.max(0, (clock().getTime() - time.getTime()) / 1000)),
        () => Number.NaN,
      ),
  });
  const nameOf = isPrivate ? (tenantId: string) => tenantId : pseudonymOf;
  /** How long packets have waited: each with who must do something, or without a token of the metrics the longest of each tenant. */
  const waitGauge = (name: string, help: string, longest: (limit: number) => Promise<Waiting[]>) => ({
    name,
    help: `${help} The ${maxWaits} that have waited longest, of all tenants.`,
    labels: isPrivate ? ['tenant_id', 'agent_id', 'responder', 'packet_id'] : ['tenant_id'],
    read: async () => {
      const waits = new Map<string, { labels: Record<string, string>; value: number }>();
      const found = await longest(maxWaits).catch(() => []);
      for (const { tenant_id, agent_id, responder, packet_id, since } of found) {
        const tenant = nameOf(tenant_id);
        const key = isPrivate ? packet_id : tenant;
        if (waits.has(key)) continue;
        const labels = { tenant_id: tenant, ...(isPrivate ? { agent_id, responder, packet_id } : {}) };
        waits.set(key, { labels, value: Math.max(0, (clock().getTime() - since.getTime()) / 1000) });
      }
      return [...waits.values()];
    },
  });
  let sizes: Sizes = { rows: {}, bytes: Number.NaN };
  const metrics = createMetrics([
    {
      name: 'service_packets',
      help: 'Packets, by status.',
      label: 'status',
      read: counts,
    },
    ageGauge('service_oldest_question_age_seconds', 'Age of the oldest unanswered question; 0 without one.', store.ages.oldestQuestion),
    ageGauge(
      'service_oldest_unclaimed_age_seconds',
      'Age of the oldest packet that nobody has claimed; 0 without one.',
      store.ages.oldestUnclaimed,
    ),
    {
      name: 'service_packets_overdue',
      help: 'Packets that are open and whose due_at has passed.',
      read: () => store.ages.countOverdue().catch(() => Number.NaN),
    },
    waitGauge('service_question_wait_seconds', 'How long a question has waited for a person.', store.ages.longestAsked),
    waitGauge('service_packet_overdue_seconds', 'For how long a packet is overdue.', store.ages.longestOverdue),
    ageGauge(
      'service_oldest_claim_without_lease_age_seconds',
      'Age of the oldest claim without a lease, which nothing ends but its holder; 0 without one.',
      store.ages.oldestUnleased,
    ),
    {
      name: 'service_active_packets',
      help: 'Packets that are neither completed, failed nor expired.',
      read: () => counts().then((byStatus) => openStatuses.reduce((sum, status) => sum + byStatus[status], 0)),
    },
    ...databaseGauges(store),
    {
      name: 'service_open_connections',
      help: 'Open streams, by protocol.',
      label: 'protocol',
      read: () => ({ sse: streams.count('sse'), websocket: streams.count('websocket') }),
    },
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
  const { registry } = metrics;
  const counter = (name: string, help: string, ...labelNames: string[]) => new Counter({ name, help, labelNames, registers: [registry] });
  const handoffs = counter('service_handoffs_total', 'Packets created, by tenant.', 'tenant_id');
  const attempts = counter(
    'service_webhook_attempts_total',
    'Delivery attempts to webhooks by outcome: delivered, or the class of the failure.',
    'outcome',
  );
  const attemptSeconds = new Histogram({
    name: 'service_webhook_attempt_seconds',
    help: 'Time from the start of an attempt to the status of its answer.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  const ignored = counter('service_relay_ignored_total', 'Invalid messages from the broker.');
  const afterCommit = counter(
    'service_after_commit_failures_total',
    'Failures of what runs after a commit: the writes are stored, and events are sent later.',
  );
  return {
    ...metrics,
    /** Takes over how large the database is. */
    measured: (measured: Sizes): void => {
      sizes = measured;
    },
    failedAfterCommit: () => afterCommit.inc(),
    relayIgnored: () => ignored.inc(),
    handedOver: (tenantId: string, count: number) => handoffs.inc({ tenant_id: nameOf(tenantId) }, count),
    /** Counts a delivery attempt by its outcome: `delivered`, or the class of the failure. */
    attempted: (outcome: string, seconds: number): void => {
      attempts.inc({ outcome });
      attemptSeconds.observe(seconds);
    },
  };
}

/** A label that distinguishes tenants without revealing their ids, which have too many random bits to be guessed from a digest. */
function pseudonymOf(tenantId: string): string {
  return hash('sha256', tenantId).slice(0, 12);
}
