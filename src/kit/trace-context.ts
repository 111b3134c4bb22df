/** A span of a trace, as W3C Trace Context names it. */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits. */
  readonly spanId: string;
  /** Whether the one that began the trace records it. */
  readonly isSampled: boolean;
}

/** The fields of version 00. A later version may add more after another hyphen. */
const form = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/**
 * Reads a `traceparent` header; undefined for one that is not valid, which is treated like none.
 * Source: W3C Trace Context, 3.2 and 4.3 (https://www.w3.org/TR/trace-context/).
 */
export function parseTraceparent(header: string | readonly string[] | undefined): TraceContext | undefined {
  if (typeof header !== 'string') return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = form.exec(header) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The `traceparent` header of version 00 for a span. */
export function traceparentOf({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`;
}

/** The headers of a trace that are kept and passed on (W3C Trace Context, 3). */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** The most characters of `tracestate` that are kept: what everybody should pass on (W3C Trace Context, 3.3.1.5). */
const maxStateLength = 512;

/** The trace that headers, or fields with these names, carry; undefined without a valid `traceparent`. A state that is too long is dropped. */
export function traceHeadersOf(fields: object): TraceHeaders | undefined {
  const { traceparent, tracestate } = fields as { readonly traceparent?: unknown; readonly tracestate?: unknown };
  const context = typeof traceparent === 'string' ? parseTraceparent(traceparent) : undefined;
  if (context === undefined) return undefined;
  const isKept = typeof tracestate === 'string' && tracestate.length <= maxStateLength && /^[\x20-\x7e]+$/.test(tracestate);
  return { traceparent: traceparentOf(context), ...(isKept ? { tracestate } : {}) };
}

/** The fields of a log line about a request. */
export function traceFields(trace: TraceContext | undefined): { trace_id: string | undefined; span_id: string | undefined } {
  return { trace_id: trace?.traceId, span_id: trace?.spanId };
}

/** How a span ended. */
export interface SpanEnd {
  /** Of few distinct values, such as a method and a route's pattern. */
  readonly name: string;
  /** By the names of the semantic conventions; undefined values are left out. */
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  readonly failed: boolean;
}

/** A span of this service that has not ended yet. */
export interface Span {
  readonly context: TraceContext;
  /** Says that the work of another span led to this one. */
  link(other: TraceContext): void;
  /** Records a span of another trace, from a moment until now, which links to this one. */
  record(parent: TraceContext, span: { readonly name: string; readonly from: Date }): void;
  end(how: SpanEnd): void;
}

/** Records spans and exports them. */
export interface Tracer {
  /** Begins a span: of a request to this service, or of one to another server. Without a parent it begins a trace. */
  begin(kind: 'server' | 'client', parent: TraceContext | undefined): Span;
  /** Exports the spans that wait, for a bounded time, and stops. */
  stop(): Promise<void>;
}

/** The methods that spans name; others become `_OTHER` (OpenTelemetry semantic conventions, HTTP). */
const methods = new Set(['CONNECT', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE']);

/** The end of the span of an HTTP request. `route` is the pattern of its path. */
export function httpSpanEnd(
  method: string,
  { route, status, failure, more = {} }: { route?: string; status?: number; failure?: string | undefined; more?: SpanEnd['attributes'] },
): SpanEnd {
  const known = methods.has(method);
  return {
    name: `${known ? method : 'HTTP'}${route === undefined ? '' : ` ${route}`}`,
    attributes: {
      'http.request.method': known ? method : '_OTHER',
      'http.route': route,
      'http.response.status_code': status,
      'error.type': failure,
      ...more,
    },
    failed: failure !== undefined,
  };
}
