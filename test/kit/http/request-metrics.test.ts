import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Counter, Histogram, Registry } from 'prom-client';

import { RequestMetrics } from '../../../src/kit/http/request-metrics.ts';

/** Method, route, status and seconds of requests; a stream has no seconds. */
const requests: readonly (readonly [string, string, number, number?])[] = [
  ['GET', '/packets/:id', 200, 0.0004],
  ['POST', '/packets', 201, 0.003],
  ['GET', '/packets/:id', 404, 0.0005],
  ['GET', '/events', 200],
  ['POST', '/packets/:id', 200, 12],
  ['GET', '/packets/:id', 200, 0.02],
  ['GET', 'a "quoted"\\ route', 200, 0.3],
];

test('The metrics of requests have the bytes that a counter and a histogram of prom-client with the same labels give.', async () => {
  const expected = new Registry();
  const registers = [expected];
  const labelNames = ['method', 'endpoint'];
  const counter = new Counter({
    name: 'service_requests_total',
    help: 'Requests answered.',
    labelNames: [...labelNames, 'status'],
    registers,
  });
  const histogram = new Histogram({
    name: 'service_request_latency_seconds',
    help: 'Time from the first byte of a request to the last of its answer.',
    labelNames,
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  });
  const actual = new Registry();
  const metrics = new RequestMetrics(actual);

  for (const [method, endpoint, status, seconds] of requests) {
    metrics.observe(method, endpoint, status, seconds);
    counter.inc({ method, endpoint, status });
    if (seconds !== undefined) histogram.observe({ method, endpoint }, seconds);
    // Reading the metrics in between changes no later reading.
    assert.equal(await actual.metrics(), await expected.metrics());
  }
  assert.match(await actual.metrics(), /service_requests_total\{method="GET",endpoint="\/packets\/:id",status="200"\} 2/);
});
