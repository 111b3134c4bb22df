import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';

import { settledWithin } from '../awaitable.ts';
import { describeCause } from '../errors.ts';
import type { Span, SpanEnd, TraceContext, Tracer } from '../trace-context.ts';

/** The most spans that wait for the receiver; further ones are dropped. */
const maxWaiting = 2048;

/** The most spans of one export. One export runs at a time. */
const batchSize = 512;

/** The longest time that a span waits for others, in milliseconds. */
const delayMs = 2_000;

/** The timeout of an export with its repeats, in milliseconds. */
const exportMs = 10_000;

/** How long a stop waits for the last exports, in milliseconds. */
const lastExportsMs = 2_000;

interface OtlpOptions {
  /** The base address of an OTLP/HTTP receiver; spans are sent to `v1/traces` below it. */
  endpoint: string;
  /** The share of the traces begun here that are recorded, from 0 to 1. A trace begun elsewhere brings its decision along. */
  ratio: number;
  service: string;
  version: string;
  /** Distinguishes the instances of a service. */
  instance: string;
  /** Gets a warning at the first failed export after one that succeeded. */
  logger: { warn(fields: object, message: string): void };
}

/**
 * Creates a tracer that exports by OTLP/HTTP in JSON. Nothing waits for an export: while a receiver is slow or gone,
 * the spans beyond the limit are lost. The exporter itself reads the standard variables for headers and certificates.
 */
export function createOtlpTracer({ endpoint, ratio, logger, ...parts }: OtlpOptions): Tracer {
  const url = `${endpoint.replace(/\/$/, '')}/v1/traces`;
  const exporter = reporting(new OTLPTraceExporter({ url, timeoutMillis: exportMs }), (error) =>
    logger.warn({ err: describeCause(error) }, 'spans could not be exported'),
  );
  const attributes = { 'service.name': parts.service, 'service.version': parts.version, 'service.instance.id': parts.instance };
  const provider = new TracerProvider({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
    resource: resourceFromAttributes(attributes).merge(detectResources({ detectors: [envDetector] })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: maxWaiting,
        maxExportBatchSize: batchSize,
        scheduledDelayMillis: delayMs,
        exportTimeoutMillis: exportMs,
      }),
    ],
  });
  const tracer = provider.getTracer('baton', parts.version);

  return {
    begin(kind, parent) {
      const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContextOf(parent));
      const span = tracer.startSpan(kind, { kind: kind === 'server' ? SpanKind.SERVER : SpanKind.CLIENT }, context);
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        context: { traceId, spanId, isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0 },
        link: (other) => {
          span.addLink({ context: spanContextOf(other) });
        },
        record(of, { name, from }) {
          const below = trace.setSpanContext(ROOT_CONTEXT, spanContextOf(of));
          tracer.startSpan(name, { startTime: from, links: [{ context: span.spanContext() }] }, below).end();
        },
        end({ name, attributes: given, failed }: SpanEnd) {
          span.updateName(name);
          span.setAttributes(given as Attributes);
          if (failed) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      } satisfies Span;
    },
    async stop() {
      // A failed export has been reported.
      await settledWithin(lastExportsMs, provider.shutdown());
    },
  };
}

function spanContextOf({ traceId, spanId, isSampled }: TraceContext) {
  return { traceId, spanId, traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE, isRemote: true };
}

/** An exporter that reports its first failure after a success: one log line for a receiver that is gone, not one per export. */
function reporting(exporter: SpanExporter, onFailure: (error: unknown) => void): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        // 0 is success.
        const failed = result.code !== 0;
        if (failed && !isFailing) onFailure(result.error ?? new Error('The receiver of spans refused them.'));
        isFailing = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
