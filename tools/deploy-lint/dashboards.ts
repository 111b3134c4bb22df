import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Dashboard, Panel } from '@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen';

// Writes the Grafana dashboards in deploy/grafana/dashboards; with --check it only compares them. The types are Grafana's own.
const folder = fileURLToPath(new URL('../../deploy/grafana/dashboards/', import.meta.url));

interface Chart {
  title: string;
  /** What the figure says, and from when on it is a reason to look. */
  description: string;
  unit: string;
  /** Queries by their legends, which may name labels. */
  queries: Readonly<Record<string, string>>;
}

const datasource = { type: 'prometheus', uid: 'prometheus' };

function panel({ title, description, unit, queries }: Chart, index: number): Panel {
  return {
    id: index + 1,
    type: 'timeseries',
    title,
    description,
    datasource,
    gridPos: { x: (index % 2) * 12, y: Math.floor(index / 2) * 8, w: 12, h: 8 },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: Object.entries(queries).map(([legendFormat, expr], at) => ({
      refId: String.fromCharCode(65 + at),
      datasource,
      expr,
      legendFormat,
    })),
  };
}

function dashboard(uid: string, title: string, charts: readonly Chart[]): Dashboard {
  return {
    uid,
    title,
    tags: ['baton'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'browser',
    panels: charts.map(panel),
  };
}

/** The charts of what both services measure. */
const common = (job: string): Chart[] => [
  {
    title: 'Requests',
    description: 'Answered requests per second, by class of status.',
    unit: 'reqps',
    queries: {
      '2xx and 3xx': `sum(rate(service_requests_total{job="${job}",status=~"[23].."}[$__rate_interval]))`,
      '4xx': `sum(rate(service_requests_total{job="${job}",status=~"4.."}[$__rate_interval]))`,
      '5xx': `sum(rate(service_requests_total{job="${job}",status=~"5.."}[$__rate_interval]))`,
    },
  },
  {
    title: 'Latency',
    description: '50 % and 99 % of requests are faster. Requests that wait for work or a test are slow by design and are not included.',
    unit: 's',
    queries: Object.fromEntries(
      [0.5, 0.99].map((quantile) => [
        `${quantile * 100} %`,
        `histogram_quantile(${quantile}, sum by (le) (rate(service_request_latency_seconds_bucket{job="${job}",endpoint!~".*(claim-next|/test|/mcp|/packets/:id)|/a2a.*|/rehearsal/.*"}[$__rate_interval])))`,
      ]),
    ),
  },
  {
    title: 'Event loop delay',
    description: '99th percentile since the last reading. Above 0.25 s, requests wait for one another.',
    unit: 's',
    queries: { '{{instance}}': `service_event_loop_lag_seconds{job="${job}"}` },
  },
  {
    title: 'Writes waiting',
    description: 'Writes that wait for their commit. If the number grows, writes arrive faster than the database commits them.',
    unit: 'short',
    queries: { '{{instance}}': `service_write_queue_length{job="${job}"}` },
  },
  {
    title: 'Database',
    description: '1 while the database answers.',
    unit: 'short',
    queries: { '{{instance}}': `service_database_up{job="${job}"}` },
  },
  {
    title: 'Memory',
    description: 'Resident memory of each instance.',
    unit: 'bytes',
    queries: { '{{instance}}': `process_resident_memory_bytes{job="${job}"}` },
  },
  {
    title: 'Processor time',
    description: 'Processor time of each instance; 1 is a whole core.',
    unit: 'percentunit',
    queries: { '{{instance}}': `rate(process_cpu_seconds_total{job="${job}"}[$__rate_interval])` },
  },
];

const dashboards = {
  'handoff.json': dashboard('baton-handoff', 'Baton: handoff packet service', [
    {
      title: 'Packets by status',
      description: 'Packets of all tenants that are not yet completed, failed or expired.',
      unit: 'short',
      queries: { '{{status}}': 'max by (status) (service_packets{job="handoff",status=~"created|claimed|in_progress|awaiting_human"})' },
    },
    {
      title: 'Packets created',
      description: 'Per second, by tenant; tenants have pseudonyms unless /metrics needs a token.',
      unit: 'short',
      queries: { '{{tenant_id}}': 'topk(10, sum by (tenant_id) (rate(service_handoffs_total{job="handoff"}[$__rate_interval])))' },
    },
    {
      title: 'Oldest unfinished work',
      description:
        'How long the oldest unanswered question has waited for a person, the oldest unclaimed packet for an agent, and how old the oldest claim without a lease is.',
      unit: 's',
      queries: {
        question: 'max(service_oldest_question_age_seconds{job="handoff"})',
        'unclaimed packet': 'max(service_oldest_unclaimed_age_seconds{job="handoff"})',
        'claim without a lease': 'max(service_oldest_claim_without_lease_age_seconds{job="handoff"})',
      },
    },
    {
      title: 'Questions that wait',
      description:
        'How long open questions have waited, the longest ten, by who asked and who is asked. Agents and responders need a token of /metrics (SERVICE_METRICS_TOKEN); above an hour there is an alert.',
      unit: 's',
      queries: {
        '{{agent_id}} asks {{responder}} ({{tenant_id}})':
          'topk(10, max by (tenant_id, agent_id, responder, packet_id) (service_question_wait_seconds{job="handoff"}))',
      },
    },
    {
      title: 'Overdue packets',
      description:
        'For how long open packets are overdue, the longest ten, by whom they are for; five minutes after due_at there is an alert.',
      unit: 's',
      queries: {
        '{{agent_id}} ({{tenant_id}})': 'topk(10, max by (tenant_id, agent_id, packet_id) (service_packet_overdue_seconds{job="handoff"}))',
      },
    },
    {
      title: 'Number of overdue packets',
      description: 'Open packets of all tenants whose due_at has passed.',
      unit: 'short',
      queries: { packets: 'max(service_packets_overdue{job="handoff"})' },
    },
    {
      title: 'Attempts of webhook deliveries',
      description: 'Per second, by outcome.',
      unit: 'short',
      queries: { '{{outcome}}': 'sum by (outcome) (rate(service_webhook_attempts_total{job="handoff"}[$__rate_interval]))' },
    },
    {
      title: 'Webhook deliveries waiting',
      description: 'Deliveries that wait, due or not.',
      unit: 'short',
      queries: { deliveries: 'max(service_webhook_queue_length{job="handoff"})' },
    },
    {
      title: 'Open streams',
      description: 'By protocol.',
      unit: 'short',
      queries: { '{{protocol}}': 'sum by (protocol) (service_open_connections{job="handoff"})' },
    },
    {
      title: 'Packets to index',
      description: 'A search indexes them first.',
      unit: 'short',
      queries: { packets: 'max(service_search_queue_length{job="handoff"})' },
    },
    ...common('handoff'),
  ]),
  'fallback.json': dashboard('baton-fallback', 'Baton: fallback chain service', [
    {
      title: 'Tests',
      description: 'Running and waiting tests of chains.',
      unit: 'short',
      queries: { running: 'fallback_tests_running{job="fallback"}', waiting: 'fallback_tests_waiting{job="fallback"}' },
    },
    { title: 'Chains', description: 'Stored chains.', unit: 'short', queries: { chains: 'max(fallback_chains{job="fallback"})' } },
    ...common('fallback'),
  ]),
};

for (const [file, board] of Object.entries(dashboards)) {
  const text = `${JSON.stringify(board, null, 2)}\n`;
  if (!process.argv.includes('--check')) writeFileSync(folder + file, text);
  else if (readFileSync(folder + file, 'utf8') !== text) {
    console.error(`deploy/grafana/dashboards/${file} is not what dashboards.ts writes; run npm --prefix tools/deploy-lint run dashboards.`);
    process.exitCode = 1;
  }
}
