/** What is read of an export by OTLP in JSON. */
export interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[];
  }[];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
}

/** The kinds of Zipkin by those of OTLP; Zipkin has none for internal spans. */
const kinds: Readonly<Record<number, string>> = { 2: 'SERVER', 3: 'CLIENT', 4: 'PRODUCER', 5: 'CONSUMER' };

const textOf = ({ value }: Attribute): string => String(Object.values(value)[0]);

/** The spans of an export as Zipkin takes them: https://opentelemetry.io/docs/specs/otel/trace/sdk_exporters/zipkin/ */
export function zipkinSpansOf({ resourceSpans }: OtlpRequest): object[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = resource.attributes.find(({ key }) => key === 'service.name');
    const localEndpoint = { serviceName: service === undefined ? 'unknown_service' : textOf(service) };
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, attributes }) => ({
        traceId,
        id: spanId,
        ...(parentSpanId ? { parentId: parentSpanId } : {}),
        name,
        ...(kinds[kind] === undefined ? {} : { kind: kinds[kind] }),
        timestamp: Number(BigInt(startTimeUnixNano) / 1000n),
        duration: Math.max(1, Number((BigInt(endTimeUnixNano) - BigInt(startTimeUnixNano)) / 1000n)),
        localEndpoint,
        tags: Object.fromEntries(attributes.map((attribute) => [attribute.key, textOf(attribute)])),
      })),
    );
  });
}
