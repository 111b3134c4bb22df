import type { Packet } from '../model/packet.ts';

interface Span {
  setStatus(status: { code: number; message?: string }): unknown;
  recordException(error: unknown): void;
  end(): void;
}

/** What a worker uses of OpenTelemetry's API 1. Programs that trace have registered it under this symbol; the client does not depend on it. */
interface Registered {
  readonly trace?: {
    getTracer(name: string): {
      startActiveSpan<T>(name: string, options: object, context: unknown, work: (span: Span) => T): T;
    };
  };
  readonly context?: { active(): unknown };
  readonly propagation?: { extract(context: unknown, carrier: object, getter: object): unknown };
}
const registered = Symbol.for('opentelemetry.js.api.1');

const getter = {
  keys: (carrier: object) => Object.keys(carrier),
  get: (carrier: Readonly<Record<string, string>>, key: string) => carrier[key],
};

/** The kind of a span for work that was handed over: CONSUMER. And the status of one that failed: ERROR. */
const kind = 4;
const failed = 2;

/**
 * Works on a packet in a span of the program's OpenTelemetry, below the request that created the packet; without it, it only works.
 * @param errorOf what the work threw; undefined: nothing
 */
export function inSpan<T>(agentId: string, { id, metadata }: Packet, work: () => Promise<T>, errorOf: (result: T) => unknown): Promise<T> {
  const { trace, context, propagation } = (globalThis as { [registered]?: Registered })[registered] ?? {};
  if (trace === undefined || context === undefined || propagation === undefined) return work();
  const parent = propagation.extract(context.active(), metadata.trace ?? {}, getter);
  const options = { kind, attributes: { 'baton.packet.id': id, 'baton.agent.id': agentId } };
  return trace.getTracer('baton-client').startActiveSpan(`work ${agentId}`, options, parent, async (span) => {
    try {
      const result = await work();
      const error = errorOf(result);
      if (error !== undefined) {
        span.recordException(error instanceof Error ? error : String(error));
        span.setStatus({ code: failed });
      }
      return result;
    } finally {
      span.end();
    }
  });
}
