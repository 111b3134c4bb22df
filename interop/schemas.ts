/**
 * Schemas of the fields that the exports use, based on the documentation of Bifrost (docs.getbifrost.ai, config.json) and
 * the API references of Envoy AI Gateway, Envoy Gateway and the Kubernetes Gateway API. They refuse unknown fields.
 */

type Schema = Record<string, unknown>;

const closed = (properties: Record<string, Schema>, optional: readonly string[] = []): Schema => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
});
const text: Schema = { type: 'string', minLength: 1 };
const count = (minimum: number): Schema => ({ type: 'integer', minimum });
const list = (items: Schema, minItems = 1): Schema => ({ type: 'array', items, minItems });
const dictionary = (values: Schema): Schema => ({ type: 'object', minProperties: 1, additionalProperties: values });

const bifrostKey = closed({
  name: text,
  value: { type: 'string', pattern: '^env\\.[A-Za-z_][A-Za-z0-9_]*$' },
  models: list(text),
  weight: { type: 'number', minimum: 0 },
});
const bifrostProvider = closed(
  {
    keys: list(bifrostKey),
    network_config: closed(
      {
        base_url: { type: 'string', pattern: '^https?://' },
        allow_private_network: { type: 'boolean' },
        default_request_timeout_in_seconds: count(1),
        max_retries: count(0),
        retry_backoff_initial: count(0),
        retry_backoff_max: count(0),
      },
      ['base_url', 'allow_private_network', 'retry_backoff_initial', 'retry_backoff_max'],
    ),
    custom_provider_config: closed({
      base_provider_type: { enum: ['openai', 'anthropic', 'bedrock', 'cohere', 'gemini', 'replicate'] },
      allowed_requests: { type: 'object', additionalProperties: { type: 'boolean' } },
    }),
  },
  ['custom_provider_config'],
);

/** The part of a Bifrost `config.json` that exports use. */
export const bifrostSchema: Schema = closed({
  $schema: { const: 'https://www.getbifrost.ai/schema' },
  providers: dictionary(bifrostProvider),
  governance: closed({
    routing_rules: list(
      closed({
        id: text,
        name: text,
        enabled: { type: 'boolean' },
        cel_expression: text,
        targets: { ...list(closed({ provider: text, model: text, weight: { const: 1 } })), maxItems: 1 },
        fallbacks: list({ type: 'string', pattern: '^[^/]+/.+' }, 0),
        scope: { enum: ['global', 'team', 'customer', 'virtual_key'] },
        priority: count(0),
      }),
    ),
  }),
});

/** A Kubernetes name: a label of RFC 1123. */
const label: Schema = { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 };
const duration: Schema = { type: 'string', pattern: '^([0-9]{1,8}(h|m|s|ms)){1,4}$' };
const metadata = closed({ name: label, namespace: label }, ['namespace']);
const manifest = (apiVersion: string, kind: string, spec: Schema): Schema =>
  closed({ apiVersion: { const: apiVersion }, kind: { const: kind }, metadata, spec });
const target = (group: string, kind: string) => ({
  ...list(closed({ group: { const: group }, kind: { const: kind }, name: label })),
  maxItems: 16,
});
const secretRef = closed({ name: label, namespace: label });
const port: Schema = { type: 'integer', minimum: 1, maximum: 65_535 };

/** The manifests of an Envoy AI Gateway export, by kind. */
export const envoySchemas: Readonly<Record<string, Schema>> = {
  GatewayClass: manifest(
    'gateway.networking.k8s.io/v1',
    'GatewayClass',
    closed({ controllerName: { const: 'gateway.envoyproxy.io/gatewayclass-controller' } }),
  ),
  Gateway: manifest(
    'gateway.networking.k8s.io/v1',
    'Gateway',
    closed({ gatewayClassName: label, listeners: list(closed({ name: label, protocol: { const: 'HTTP' }, port })) }),
  ),
  AIGatewayRoute: manifest(
    'aigateway.envoyproxy.io/v1beta1',
    'AIGatewayRoute',
    closed({
      parentRefs: list(closed({ name: label, kind: { const: 'Gateway' }, group: { const: 'gateway.networking.k8s.io' } })),
      rules: list(
        closed({
          matches: list(closed({ headers: list(closed({ type: { const: 'Exact' }, name: { const: 'x-ai-eg-model' }, value: text })) })),
          backendRefs: { ...list(closed({ name: label, modelNameOverride: text, priority: count(0) })), maxItems: 128 },
        }),
      ),
    }),
  ),
  BackendTrafficPolicy: manifest(
    'gateway.envoyproxy.io/v1alpha1',
    'BackendTrafficPolicy',
    closed({
      targetRefs: target('gateway.networking.k8s.io', 'HTTPRoute'),
      retry: closed({
        numAttemptsPerPriority: count(1),
        numRetries: count(0),
        perRetry: closed({ timeout: duration, backOff: closed({ baseInterval: duration, maxInterval: duration }) }),
        retryOn: closed(
          {
            httpStatusCodes: { ...list({ type: 'integer', minimum: 100, maximum: 599 }), uniqueItems: true },
            triggers: list({
              enum: ['5xx', 'gateway-error', 'reset', 'connect-failure', 'retriable-4xx', 'refused-stream', 'retriable-status-codes'],
            }),
          },
          ['httpStatusCodes'],
        ),
      }),
    }),
  ),
  AIServiceBackend: manifest(
    'aigateway.envoyproxy.io/v1beta1',
    'AIServiceBackend',
    closed({
      schema: closed({ name: { enum: ['OpenAI', 'Anthropic'] }, prefix: { type: 'string', pattern: '^/' } }, ['prefix']),
      backendRef: closed({ name: label, kind: { const: 'Backend' }, group: { const: 'gateway.envoyproxy.io' } }),
    }),
  ),
  BackendSecurityPolicy: manifest('aigateway.envoyproxy.io/v1beta1', 'BackendSecurityPolicy', {
    oneOf: [
      closed({
        targetRefs: target('aigateway.envoyproxy.io', 'AIServiceBackend'),
        type: { const: 'APIKey' },
        apiKey: closed({ secretRef }),
      }),
      closed({
        targetRefs: target('aigateway.envoyproxy.io', 'AIServiceBackend'),
        type: { const: 'AnthropicAPIKey' },
        anthropicAPIKey: closed({ secretRef }),
      }),
    ],
  }),
  Backend: manifest(
    'gateway.envoyproxy.io/v1alpha1',
    'Backend',
    closed({
      endpoints: list({
        oneOf: [closed({ fqdn: closed({ hostname: text, port }) }), closed({ ip: closed({ address: text, port }) })],
      }),
    }),
  ),
  BackendTLSPolicy: manifest(
    'gateway.networking.k8s.io/v1alpha3',
    'BackendTLSPolicy',
    closed({
      targetRefs: target('gateway.envoyproxy.io', 'Backend'),
      validation: closed({ wellKnownCACertificates: { const: 'System' }, hostname: text }),
    }),
  ),
};
