import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { describe, type TestContext, test } from 'node:test';

import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

import { createHandoffClient } from '../src/client.ts';
import { chainRequest, startFallback } from './support/fallback.ts';
import { question, unknownId } from './support/life.ts';
import { Contexts, traceContext } from './support/otel.ts';
import { failing, startProvider } from './support/providers.ts';
import { startReceiver, type TestReceiver } from './support/receiver.ts';
import { adminKey, createPacket, packetRequest, startService, type TestService } from './support/service.ts';
import { stores } from './support/stores.ts';
import { until } from './support/until.ts';
import { register, startHooked } from './support/webhooks.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const callerSpan = 'b7ad6b7169203331';
const traceparent = `00-${traceId}-${callerSpan}-01`;

const lines = (service: { logs: string[] }, msg: string) => service.logs.map((line) => JSON.parse(line)).filter((line) => line.msg === msg);

/** A span as OTLP sends it, with its attributes and those of its resource as objects. */
interface Exported {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly code: number;
  readonly startTimeUnixNano: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: Record<string, unknown>;
  readonly resource: Record<string, unknown>;
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into messages of every shape.
const valuesOf = (list: any[]): Record<string, unknown> => Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]]));

/** The spans that a receiver got, oldest first. */
function exported({ posts }: TestReceiver): Exported[] {
  return posts
    .filter(({ path, headers }) => path === '/otlp/v1/traces' && headers['content-type'] === 'application/json')
    .flatMap(({ body }) => JSON.parse(body).resourceSpans)
    .flatMap(({ resource, scopeSpans }) =>
      // biome-ignore lint/suspicious/noExplicitAny: as above.
      scopeSpans.flatMap(({ spans }: any) =>
        // biome-ignore lint/suspicious/noExplicitAny: as above.
        spans.map((span: any) => ({
          ...span,
          code: span.status.code,
          attributes: valuesOf(span.attributes),
          resource: valuesOf(resource.attributes),
        })),
      ),
    );
}

const endpointOf = ({ url }: TestReceiver) => url.replace('/hook', '/otlp');

test('the packages of OpenTelemetry are loaded only if spans are exported', async (t) => {
  const loaded: string[] = [];
  const hooks = registerHooks({
    load(url, context, next) {
      loaded.push(url);
      return next(url, context);
    },
  });
  t.after(() => hooks.deregister());
  const isLoaded = () => loaded.some((url) => url.includes('@opentelemetry/sdk-trace'));
  await startService(t);
  await startFallback(t);
  assert.ok(!isLoaded());
  await startService(t, { settings: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' } });
  assert.ok(isLoaded());
});

test('log lines about a request have the trace and span of its traceparent, also those of failures and of streams', async (t) => {
  const service = await startService(t);
  const fallback = await startFallback(t);
  await service.call('GET', `/packets/${unknownId}`, { headers: { traceparent } });
  await service.call('GET', '/packets', { headers: { traceparent: traceparent.toUpperCase() } });
  await fallback.call('GET', '/chains', { headers: { traceparent } });
  const [refused, without] = lines(service, 'request');
  assert.deepEqual([refused.trace_id, refused.span_id, refused.code], [traceId, callerSpan, 'NOT_FOUND']);
  assert.ok(!('trace_id' in without) && !('span_id' in without));
  assert.equal(lines(fallback, 'request')[0].trace_id, traceId);

  const address = await service.handoff.start();
  const abort = new AbortController();
  const stream = await fetch(`${address}/events`, { headers: { 'x-api-key': adminKey, traceparent }, signal: abort.signal });
  assert.equal(stream.status, 200);
  const ended = service.logged('"msg":"stream"');
  abort.abort();
  await ended;
  assert.equal(lines(service, 'stream')[0].trace_id, traceId);
});

for (const store of stores) {
  describe(`Traces of webhooks on ${store.name}`, () => {
    test('every attempt of a delivery continues the trace of the request that caused the event', async (t) => {
      const receiver = await startReceiver(t, 500, 500, 204);
      const service = await startHooked(t, { store });
      await register(service, receiver.url);
      const body = packetRequest();
      // Units of one group have their own traces.
      const [traced, plain] = await Promise.all([
        service.call('POST', '/packets', { body, headers: { traceparent, tracestate: 'vendor=1' } }),
        service.call('POST', '/packets', { body }),
      ]);
      assert.deepEqual([traced.status, plain.status], [201, 201]);
      for (const seconds of [0, 2, 10]) {
        service.clock.turn(seconds);
        await service.handoff.runOnce.deliver();
      }
      const attempts = Map.groupBy(receiver.posts, (post) => JSON.parse(post.body).data?.id ?? JSON.parse(post.body).packet_id);
      const sent = (id: string) => attempts.get(id)!.map(({ headers }) => headers.traceparent);
      assert.deepEqual(new Set(sent(traced.body.id)), new Set([traceparent]));
      assert.deepEqual(new Set(sent(plain.body.id)), new Set([undefined]));
      assert.ok(sent(traced.body.id).length + sent(plain.body.id).length >= 4);
      assert.ok(receiver.posts.every(({ headers }) => headers.tracestate === undefined));
    });
  });
}

for (const store of stores) {
  describe(`The trace of a packet on ${store.name}`, () => {
    const tracestate = 'vendor=1,other="a\\b"';

    test('is that of the request that created it, kept by every change and answered by a claim in header and body [H636]', async (t) => {
      const service = await startService(t, { store });
      const body = packetRequest();
      const forged = { ...body, metadata: { ...(body.metadata as object), trace: { traceparent: 'forged' } } };
      const { body: packet, status } = await service.call('POST', '/packets', { body: forged, headers: { traceparent, tracestate } });
      assert.equal(status, 201);
      const trace = { traceparent, tracestate };
      assert.deepEqual(packet.metadata.trace, trace);
      const patched = await service.call('PATCH', `/packets/${packet.id}`, {
        body: { metadata: { tags: ['a'], trace: { traceparent: 'x' } } },
      });
      assert.deepEqual(patched.body.metadata.trace, trace);
      const claimed = await service.call('POST', '/packets/claim-next', { body: { agent_id: 'a', target_agent: '*' } });
      assert.equal(claimed.status, 200);
      assert.deepEqual([claimed.headers.traceparent, claimed.headers.tracestate], [traceparent, tracestate]);
      assert.deepEqual(claimed.body.metadata.trace, trace);
    });

    test('is absent without a valid traceparent, and no text of the packet takes its place', async (t) => {
      const service = await startService(t, { store });
      const own = { trace: { traceparent } };
      const body = packetRequest();
      const metadata = body.metadata as { source_agent: object; target_agent: object };
      const sent = { ...body, metadata: { ...metadata, source_agent: { ...metadata.source_agent, metadata: own } } };
      for (const headers of [{}, { traceparent: 'none' }, { tracestate }]) {
        const { body: packet } = await service.call('POST', '/packets', { body: sent, headers: headers as Record<string, string> });
        assert.equal('trace' in packet.metadata, false);
        const claimed = await service.call('POST', `/packets/${packet.id}/claim`, { body: { agent_id: 'a' } });
        assert.equal(claimed.status, 200);
        assert.equal(claimed.headers.traceparent, undefined);
      }
    });
  });
}

test('over MCP the trace is in _meta, over A2A in the headers [H636]', async (t) => {
  const service = await startService(t);
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {}, traceparent };
  const call = {
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: 'hand_over', arguments: { target_agent: 'b', summary: 'Go on', agent_id: 'a' }, _meta: meta },
  };
  const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' };
  const handed = await service.call('POST', '//mcp', { body: call, headers: { ...headers, 'mcp-name': 'hand_over' } });
  assert.equal(handed.status, 200, handed.text);
  const message = {
    ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
    params: {
      message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'Go on' }], metadata: { target_agent: 'b' } },
      configuration: { returnImmediately: true },
    },
  };
  const sent = await service.call('POST', '//a2a', { body: message, headers: { 'a2a-version': '1.0', 'x-agent-id': 'a', traceparent } });
  assert.equal(sent.status, 200, sent.text);
  const { packets } = (await service.call('GET', '/packets')).body;
  assert.deepEqual(
    packets.map(({ metadata }: { metadata: { trace?: object } }) => metadata.trace),
    [{ traceparent }, { traceparent }],
    sent.text,
  );
});

/** Starts both services with an exporter, and a receiver of spans. */
async function startTraced(t: TestContext, settings: Record<string, string> = {}) {
  const collector = await startReceiver(t, (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: endpointOf(collector), ...settings };
  return { collector, environment };
}

describe('With OTEL_EXPORTER_OTLP_ENDPOINT', () => {
  test('the spans of a claim and of a completion link to the trace that the packet came with', async (t) => {
    const { collector, environment } = await startTraced(t);
    const service = await startService(t, { settings: environment });
    const { id } = (await service.call('POST', '/packets', { body: packetRequest(), headers: { traceparent } })).body;
    await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' } });
    await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } });
    await service.handoff.stop();
    const links = exported(collector).map(({ name, links = [] }) => [name, links.map((link) => `${link.traceId} ${link.spanId}`)]);
    assert.deepEqual(links, [
      ['POST /api/v1/packets', []],
      ['POST /api/v1/packets/:id/claim', [`${traceId} ${callerSpan}`]],
      ['PATCH /api/v1/packets/:id', [`${traceId} ${callerSpan}`]],
    ]);
  });

  test('an answer by a page or by a key is a span in the trace of the packet, from the question on, and its request links there [H431]', async (t) => {
    const { collector, environment } = await startTraced(t);
    const service = await startService(t, { settings: { ...environment, SERVICE_PUBLIC_URL: 'http://handoff.test' } });
    const asked = service.clock.read().toISOString();
    for (const way of ['page', 'key']) {
      const body = packetRequest({ hitl: { ...question, options: ['Yes'] } });
      const { id } = (await service.call('POST', '/packets', { body, headers: { traceparent } })).body;
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } })).status, 200);
      if (way === 'key') {
        await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } });
        continue;
      }
      const link = await service.call('POST', `/packets/${id}/answer-links`, { body: { responder: 'dana' } });
      assert.equal(link.status, 201, link.text);
      const path = `/${new URL(link.body.url).pathname}`;
      const [digest = ''] = /(?<=name="digest" value=")[0-9a-f]+/.exec((await service.call('GET', path, { key: null })).text) ?? [];
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const raw = String(new URLSearchParams({ digest, response: 'Yes' }));
      assert.equal((await service.call('POST', path, { key: null, raw, headers })).status, 200);
    }
    await service.handoff.stop();
    const spans = exported(collector);
    const answers = spans.filter(({ name }) => ['POST /answer/:token', 'POST /api/v1/packets/:id/respond'].includes(name));
    assert.deepEqual(
      answers.map(({ links = [] }) => links.map((link) => `${link.traceId} ${link.spanId}`)),
      Array(2).fill([`${traceId} ${callerSpan}`]),
    );
    const questions = spans.filter(({ name }) => name === 'question');
    assert.deepEqual(
      questions.map((span) => [span.traceId, span.parentSpanId, span.kind, span.links?.map(({ spanId }) => spanId)]),
      answers.map(({ spanId }) => [traceId, callerSpan, 1, [spanId]]),
    );
    for (const { startTimeUnixNano } of questions) assert.equal(Number(BigInt(startTimeUnixNano) / 1_000_000n), Date.parse(asked));
  });

  test('each request has a server span by the semantic conventions, and each attempt of a webhook a client span in its trace', async (t) => {
    const { collector, environment } = await startTraced(t);
    const receiver = await startReceiver(t);
    const service = await startHooked(t, { settings: environment });
    await register(service, receiver.url);
    service.logs.length = 0;
    const made = await service.call('POST', '/packets', { body: packetRequest(), headers: { traceparent } });
    await service.call('GET', `/packets/${made.body.id}?api_key=${adminKey}`);
    await service.handoff.runOnce.deliver();
    await service.handoff.stop();

    const spans = exported(collector).filter(({ name }) => !name.includes('hooks'));
    const [create, get, attempt] = spans.toSorted((one, other) => one.kind - other.kind) as [Exported, Exported, Exported];
    assert.equal(spans.length, 3);
    assert.equal(create.name, 'POST /api/v1/packets');
    assert.deepEqual([create.traceId, create.parentSpanId, create.kind, create.code], [traceId, callerSpan, 2, 0]);
    const line = lines(service, 'request')[0];
    assert.deepEqual(create.attributes, {
      'http.request.method': 'POST',
      'http.route': '/api/v1/packets',
      'http.response.status_code': 201,
      'baton.request_id': line.request_id,
      'baton.tenant_id': line.tenant_id,
    });
    // The log names the service's own span.
    assert.deepEqual([line.trace_id, line.span_id], [traceId, create.spanId]);
    assert.deepEqual([create.resource['service.name'], typeof create.resource['service.instance.id']], ['baton-handoff', 'string']);

    assert.equal(get.name, 'GET /api/v1/packets/:id');
    assert.notEqual(get.traceId, traceId);
    assert.equal(get.parentSpanId, undefined);

    assert.deepEqual([attempt.name, attempt.kind, attempt.traceId, attempt.parentSpanId], ['POST', 3, traceId, create.spanId]);
    assert.deepEqual(
      attempt.links?.map((link) => [link.traceId, link.spanId]),
      [[traceId, create.spanId]],
      'it links to what caused it',
    );
    const { hostname, port } = new URL(receiver.url);
    assert.deepEqual(attempt.attributes, {
      'http.request.method': 'POST',
      'http.response.status_code': 204,
      'server.address': hostname,
      'server.port': Number(port),
    });
    assert.equal(receiver.posts[0]!.headers.traceparent, `00-${traceId}-${attempt.spanId}-01`);
    const text = collector.posts.map(({ body }) => body).join('');
    for (const hidden of [adminKey, made.body.id, 'api_key', '/hook'])
      assert.ok(!text.replace(/"POST \/api\/v1\/hooks"|"\/api\/v1\/hooks"/g, '').includes(hidden), hidden);
  });

  test('a failed request has a span with an error, a stream one that ends with it, and the fallback service has spans too', async (t) => {
    const { collector, environment } = await startTraced(t);
    const service = await startService(t, { settings: environment });
    const address = await service.handoff.start();
    const abort = new AbortController();
    await fetch(`${address}/events`, { headers: { 'x-api-key': adminKey, traceparent }, signal: abort.signal });
    const ended = service.logged('"msg":"stream"');
    abort.abort();
    await ended;
    const fallback = await startFallback(t, { environment });
    await fallback.call('POST', '/chains', { body: chainRequest(), headers: { traceparent } });
    // An address that nothing mounts has no route.
    await fallback.call('GET', '/nowhere');
    await service.handoff.stop();
    await fallback.fallback.stop();
    const spans = exported(collector);
    const named = (name: string) => spans.find((span) => span.name === name)!;
    assert.deepEqual(named('GET /events').attributes['http.response.status_code'], 200);
    assert.equal(named('POST /chains').resource['service.name'], 'baton-fallback');
    assert.equal(named('POST /chains').traceId, traceId);
    assert.equal(named('GET').attributes['http.response.status_code'], 404);
    assert.ok(!('http.route' in named('GET').attributes));
  });

  test('each call of a provider has a client span in the trace of the request that started the test, and sends no traceparent', async (t) => {
    const { collector, environment } = await startTraced(t);
    const provider = await startProvider(t, failing(500, 'server_error'));
    const flags = { allowLive: 'true' };
    const fallback = await startFallback(t, { flags, environment: { ...environment, SERVICE_LIVE_ALLOW: '127.0.0.1' } });
    const providers = [{ name: 'a', model_id: 'm', api_base: provider.base }];
    const chain = await fallback.call('POST', '/chains', { body: { name: 'one', providers, fallback_rules: [] } });
    const run = await fallback.call('POST', `/chains/${chain.body.id}/test`, {
      body: { mode: 'live', prompt_count: 1, prompts: ['a secret prompt'] },
      headers: { traceparent },
    });
    assert.equal(run.status, 201, run.text);
    await fallback.fallback.stop();
    const calls = exported(collector).filter(({ kind }) => kind === 3);
    assert.equal(calls.length, provider.seen.length);
    assert.ok(calls.length > 0 && provider.seen.every(({ headers }) => headers.traceparent === undefined));
    for (const call of calls) {
      assert.deepEqual([call.traceId, call.code], [traceId, 2]);
      assert.deepEqual([call.attributes['error.type'], call.attributes['server.port']], ['500', provider.port]);
    }
    assert.ok(!collector.posts.some(({ body }) => body.includes('secret')));
  });

  test('a trace that its caller does not record is not recorded, and OTEL_TRACES_SAMPLER_ARG is the share of the others', async (t) => {
    const { collector, environment } = await startTraced(t, { OTEL_TRACES_SAMPLER_ARG: '0' });
    const service = await startService(t, { settings: environment });
    await service.call('GET', '/packets');
    await service.call('GET', '/agents', { headers: { traceparent: traceparent.replace(/01$/, '00') } });
    await service.call('GET', '/keys', { headers: { traceparent } });
    await service.handoff.stop();
    assert.deepEqual(
      exported(collector).map(({ name }) => name),
      ['GET /api/v1/keys'],
    );
    // Its lines name the trace nevertheless.
    assert.equal(lines(service, 'request')[1].trace_id, traceId);
  });

  test('a receiver of spans that hangs, refuses or is gone delays no request and no stop, is logged once, and gets bounded bodies', async (t) => {
    const hanging = await startReceiver(t, () => undefined);
    const refusing = await startReceiver(t, 400);
    const start = (endpoint: string) => startService(t, { settings: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } });
    const services: TestService[] = [
      await start(endpointOf(hanging)),
      await start(endpointOf(refusing)),
      await start('http://127.0.0.1:9'),
    ];
    for (const [at, service] of services.entries()) {
      // More than may wait, where they wait for the answer to the first export.
      const count = at === 0 ? 3000 : 600;
      for (let index = 0; index < count; index += 1) await service.handoff.app.inject({ method: 'GET', url: '/health' });
      await createPacket(service);
    }
    await Promise.all(services.map(({ handoff }) => handoff.stop()));
    const warnings = (service: TestService) => lines(service, 'spans could not be exported');
    assert.equal(warnings(services[1]!).length, 1);
    assert.ok(hanging.posts.length > 0);
    // One export before the stop, then no more than may wait.
    assert.ok(exported(hanging).length <= 512 + 2048, String(exported(hanging).length));
  });
});

test('OTEL_TRACES_SAMPLER_ARG and OTEL_EXPORTER_OTLP_ENDPOINT are checked at the start', async (t) => {
  for (const [name, value] of [
    ['OTEL_TRACES_SAMPLER_ARG', '2'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'localhost:4318'],
  ] as const) {
    await assert.rejects(startService(t, { settings: { [name]: value } }), new RegExp(`${name} must be`));
  }
});

test('A worker starts the span of its work below the request that created the packet, where OpenTelemetry is registered', async (t) => {
  // Loaded here, since a test above tells whether the service loads it.
  const { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } = await import('@opentelemetry/sdk-trace');
  const exporter = new InMemorySpanExporter();
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
  context.setGlobalContextManager(new Contexts());
  propagation.setGlobalPropagator(traceContext);
  t.after(() => {
    for (const api of [trace, context, propagation]) api.disable();
  });
  const service = await startService(t);
  const client = createHandoffClient({ baseUrl: await service.handoff.start(), apiKey: adminKey });
  const ids: string[] = [];
  for (const summary of ['done', 'refused'])
    ids.push((await service.call('POST', '/packets', { body: packetRequest({ context: { summary } }), headers: { traceparent } })).body.id);
  const stopping = new AbortController();
  const inside: (string | undefined)[] = [];
  const { target_agent } = (await service.call('GET', `/packets/${ids[0]}`)).body.metadata;
  const working = client.work(
    target_agent.id,
    async ({ packet }) => {
      await Promise.resolve();
      inside.push(trace.getActiveSpan()?.spanContext().traceId);
      if (packet.context.summary === 'refused') throw new RangeError('No such order');
    },
    { signal: stopping.signal, onError: () => undefined },
  );
  await until(async () => (await service.call('GET', '/packets?status=created,claimed')).body.total === 0);
  stopping.abort();
  await working;
  const spans = exporter.getFinishedSpans().filter(({ instrumentationScope }) => instrumentationScope.name === 'baton-client');
  assert.deepEqual(inside, [traceId, traceId]);
  assert.deepEqual(
    spans.map(({ name, kind, parentSpanContext, attributes, status }) => [
      name,
      kind,
      parentSpanContext?.spanId,
      attributes['baton.packet.id'],
      status.code,
    ]),
    [
      [`work ${target_agent.id}`, SpanKind.CONSUMER, callerSpan, ids[0], SpanStatusCode.UNSET],
      [`work ${target_agent.id}`, SpanKind.CONSUMER, callerSpan, ids[1], SpanStatusCode.ERROR],
    ],
  );
});
