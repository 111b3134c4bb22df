import { checked, oneOf, whole } from './settings.ts';

/** The settings of logs, which both services have. */
export const logSettings = {
  logLevel: {
    variable: 'SERVICE_LOG_LEVEL',
    fallback: 'info',
    help: 'The lowest level that is logged.',
    parse: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
  },
  logFormat: {
    variable: 'SERVICE_LOG_FORMAT',
    fallback: undefined,
    help: 'The format of log lines; by default `pretty` on a terminal and `json` elsewhere.',
    parse: oneOf(['pretty', 'json']),
  },
} as const;

/** The settings of tracing, which both services have, by their standard names. */
export const tracingSettings = {
  otlpEndpoint: {
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    fallback: undefined,
    help: 'http://host:port of a receiver of OpenTelemetry spans (OTLP over HTTP, in JSON); by default no spans are recorded. The exporter also reads `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE`, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.',
    parse: checked((url) => (/^https?:\/\/[^?#\s]+$/.test(url) && URL.canParse(url) ? undefined : 'an http or https URL without a query')),
  },
  traceRatio: {
    variable: 'OTEL_TRACES_SAMPLER_ARG',
    fallback: '1',
    help: 'The share of traces begun here whose spans are exported, from 0 to 1. For a request with `traceparent`, that header decides.',
    parse(value: string): number {
      const share = Number(value);
      if (value.trim() === '' || !(share >= 0 && share <= 1)) throw new Error(`a number from 0 to 1, not ${JSON.stringify(value)}`);
      return share;
    },
  },
} as const;

/** The setting of how both services end. */
export const drainSettings = {
  drainSeconds: {
    variable: 'SERVICE_DRAIN_SECONDS',
    fallback: '0',
    help: 'How long a service goes on after SIGTERM or SIGINT before it stops: `/ready` answers 503 and each answer closes its connection, so that proxies turn to other instances. A second signal ends it at once. The units and the image set 5.',
    parse: whole(0, 3_600),
  },
} as const;

const checkedUrl = checked((url) =>
  /^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/.test(url) && URL.canParse(url) ? undefined : 'an http or https URL without a query',
);

/** The address at which others reach a service, without slashes at its end. `help` says what for. */
export const publicUrl = (help: string) => ({
  variable: 'SERVICE_PUBLIC_URL',
  fallback: undefined,
  help,
  parse: (url: string) => checkedUrl(url).replace(/\/+$/, ''),
});

/** The bearer token of `/metrics`. `effect` completes the sentence "If set, `/metrics` requires it as a bearer token". */
export const metricsToken = (effect: string) => ({
  variable: 'SERVICE_METRICS_TOKEN',
  fallback: undefined,
  help: `If set, \`/metrics\` requires it as a bearer token${effect}.`,
  parse: checked((token) => (/^[\x21-\x7e]+$/.test(token) ? undefined : 'visible ASCII characters without spaces')),
});
