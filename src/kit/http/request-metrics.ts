import { Counter, Histogram, type Registry } from 'prom-client';

/** The upper bounds of the latency buckets, in seconds. */
const buckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

const requestsName = 'service_requests_total';
const latencyName = 'service_request_latency_seconds';
const latencyHelp = 'Time from the first byte of a request to the last of its answer.';

interface StatusCount {
  readonly labels: { readonly method: string; readonly endpoint: string; readonly status: number };
  count: number;
}

/** The counts of one method and route pattern. */
interface RouteCounts {
  readonly labels: { readonly method: string; readonly endpoint: string };
  readonly byStatus: Map<number, StatusCount>;
  /** Has no labels, so that an observation computes no key from them. */
  latency: Histogram | undefined;
}

/**
 * The number of requests by method, route and status, and their latencies by method and route. prom-client computes a key
 * from the labels at every observation; here the series of a route are looked up by its names instead.
 */
export class RequestMetrics {
  readonly #byMethod = new Map<string, Map<string, RouteCounts>>();
  /** In the order in which they first occurred, which is the order of the text. */
  readonly #statuses: StatusCount[] = [];
  readonly #latencies: { readonly labels: RouteCounts['labels']; readonly histogram: Histogram }[] = [];

  constructor(registry: Registry) {
    const statuses = this.#statuses;
    new Counter({
      name: requestsName,
      help: 'Requests answered.',
      labelNames: ['method', 'endpoint', 'status'],
      registers: [registry],
      collect() {
        this.reset();
        for (const { labels, count } of statuses) this.inc(labels, count);
      },
    });
    // The registry only asks a metric for its name and values, which here come from a histogram for each route.
    registry.registerMetric({ name: latencyName, get: () => this.#readLatencies() } as unknown as Histogram);
  }

  /** @param seconds left out for a stream, whose duration depends on the client */
  observe(method: string, endpoint: string, status: number, seconds?: number): void {
    const counts = this.#byMethod.get(method)?.get(endpoint) ?? this.#addRoute(method, endpoint);
    const counted = counts.byStatus.get(status) ?? this.#addStatus(counts, status);
    counted.count += 1;
    if (seconds !== undefined) (counts.latency ?? this.#addLatency(counts)).observe(seconds);
  }

  #addRoute(method: string, endpoint: string): RouteCounts {
    const counts: RouteCounts = { labels: { method, endpoint }, byStatus: new Map(), latency: undefined };
    const ofMethod = this.#byMethod.get(method);
    if (ofMethod === undefined) this.#byMethod.set(method, new Map([[endpoint, counts]]));
    else ofMethod.set(endpoint, counts);
    return counts;
  }

  #addStatus({ labels, byStatus }: RouteCounts, status: number): StatusCount {
    const counted = { labels: { ...labels, status }, count: 0 };
    byStatus.set(status, counted);
    this.#statuses.push(counted);
    return counted;
  }

  #addLatency(counts: RouteCounts): Histogram {
    const histogram = new Histogram({ name: latencyName, help: latencyHelp, buckets, registers: [] });
    counts.latency = histogram;
    this.#latencies.push({ labels: counts.labels, histogram });
    return histogram;
  }

  async #readLatencies(): Promise<object> {
    const values: object[] = [];
    for (const { labels, histogram } of this.#latencies) {
      for (const value of (await histogram.get()).values) values.push({ ...value, labels: { ...value.labels, ...labels } });
    }
    return { name: latencyName, help: latencyHelp, type: 'histogram', aggregator: 'sum', values };
  }
}
