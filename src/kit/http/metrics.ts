import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, Registry } from 'prom-client';

import type { Awaitable } from '../awaitable.ts';
import { RequestMetrics } from './request-metrics.ts';

/** A gauge that is read when the metrics are requested. */
interface GaugeOptions {
  name: string;
  help: string;
  /** The value, or with a label a value for each of its values. NaN if it is currently unknown, which is then left out. */
  read: () => Awaitable<number | Readonly<Record<string, number>> | readonly Sample[]>;
  label?: string;
  /** The names of the labels of samples, which are different ones at each reading. */
  labels?: readonly string[];
}

/** A value of a gauge with several labels. */
interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const isSamples = (value: object): value is readonly Sample[] => Array.isArray(value);

/** The metrics of a program. */
export type Metrics = ReturnType<typeof createMetrics>;

/** The gauges of a database: whether it answers, and how many writes wait for their commit. */
export function databaseGauges({ ping, waiting }: { ping: () => Promise<void>; waiting: () => number }): GaugeOptions[] {
  return [
    {
      name: 'service_database_up',
      help: 'Whether the database answers: 1 or 0.',
      read: () =>
        ping().then(
          () => 1,
          () => 0,
        ),
    },
    { name: 'service_write_queue_length', help: 'Writes that wait for their commit.', read: waiting },
  ];
}

/** Gauges of the process, with the names that Prometheus client libraries give them. */
const processGauges: readonly GaugeOptions[] = [
  { name: 'process_resident_memory_bytes', help: 'Resident memory of the process.', read: () => process.memoryUsage.rss() },
  { name: 'nodejs_heap_size_used_bytes', help: 'Used heap of the main thread.', read: () => process.memoryUsage().heapUsed },
  { name: 'nodejs_heap_size_total_bytes', help: 'Reserved heap of the main thread.', read: () => process.memoryUsage().heapTotal },
  {
    name: 'nodejs_external_memory_bytes',
    help: 'Memory outside the heap that the objects of the main thread hold, such as buffers.',
    read: () => process.memoryUsage().external,
  },
];

/** Request counters, latencies, event-loop lag, memory and processor time of the process, and the given gauges, in Prometheus text format. */
export function createMetrics(gauges: readonly GaugeOptions[]) {
  const registry = new Registry();
  const registers = [registry];
  const requests = new RequestMetrics(registry);
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  const lagGauge: GaugeOptions = {
    name: 'service_event_loop_lag_seconds',
    help: 'The 99th percentile of the event loop delay since the last reading.',
    read() {
      const seconds = lag.count === 0 ? 0 : lag.percentile(99) / 1e9;
      lag.reset();
      return seconds;
    },
  };
  for (const { name, help, label, labels: labelNames = label === undefined ? [] : [label], read } of [
    ...gauges,
    lagGauge,
    ...processGauges,
  ]) {
    new Gauge({
      name,
      help,
      registers,
      labelNames: [...labelNames],
      async collect() {
        const value = await read();
        if (typeof value === 'object' && isSamples(value)) this.reset();
        const values: readonly Sample[] =
          typeof value === 'number'
            ? [{ labels: {}, value }]
            : isSamples(value)
              ? value
              : Object.entries(value).map(([labelValue, each]) => ({ labels: { [label!]: labelValue }, value: each }));
        for (const { labels, value: known } of values) {
          if (Number.isNaN(known)) this.remove(labels);
          else this.set(labels, known);
        }
      },
    });
  }
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time of the process, in seconds.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  return {
    registry,
    /** Counts a finished request by method, route pattern (never the raw path) and status. */
    observe: (method: string, endpoint: string, status: number, seconds?: number) => requests.observe(method, endpoint, status, seconds),
    stop: () => lag.disable(),
  };
}
