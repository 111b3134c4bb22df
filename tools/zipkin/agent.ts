import { context, propagation, type Span, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';

import { type CreateRequest, createHandoffClient } from '../../src/client.ts';
import { traceparentOf } from '../../src/kit/trace-context.ts';
import { Contexts, traceContext } from '../../test/support/otel.ts';

/** Registers OpenTelemetry for the program of an agent, which exports to `OTEL_EXPORTER_OTLP_ENDPOINT`. */
export function registerTracing(agent: string): TracerProvider {
  const url = `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`;
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': agent }),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url }), scheduledDelayMillis: 200 })],
  });
  trace.setGlobalTracerProvider(provider);
  context.setGlobalContextManager(new Contexts());
  propagation.setGlobalPropagator(traceContext);
  return provider;
}

/** The header by which a request continues the trace of a span; instrumentation of `fetch` would send it by itself. */
export function headersOf(span: Span): { traceparent: string } {
  const { traceId, spanId } = span.spanContext();
  return { traceparent: traceparentOf({ traceId, spanId, isSampled: true }) };
}

/** A packet from one agent to another. */
export const packetFrom = (source: string, target: string, summary: string): CreateRequest => ({
  metadata: { source_agent: { id: source, name: source, framework: 'scripted' }, target_agent: { id: target, name: target } },
  context: { summary },
});

/** `node agent.ts NAME`: the resolver asks a person and hands over to the bookkeeper, which completes. Ends at SIGTERM. */
async function main(agent: string): Promise<void> {
  const provider = registerTracing(agent);
  const client = createHandoffClient({ baseUrl: process.env.SERVICE_URL!, apiKey: process.env.SERVICE_API_KEY! });
  await client.work(agent, async ({ packet, ask }) => {
    if (agent !== 'resolver') return;
    await ask('Refund the second charge of order 4711?', { options: ['Approve', 'Refuse'], responder: 'dana' });
    const body = packetFrom(agent, 'bookkeeper', 'Pay the second charge of order 4711 back.');
    await client.chainPacket({ params: { id: packet.id }, headers: headersOf(trace.getActiveSpan()!), body });
  });
  await provider.shutdown();
}

const [name] = process.argv.slice(2);
if (import.meta.main) await main(name ?? 'resolver');
