import { readFileSync } from 'node:fs';

// Schemas of exports: those that the targets publish, and one of the fields of Bifrost's `config.json` that exports use, based
// on its documentation (docs.getbifrost.ai).

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

/**
 * The published schemas of the objects of an Envoy AI Gateway export, by group, version and kind. As `kubectl` does, they
 * refuse unknown fields.
 */
export const envoySchemas = strict(
  JSON.parse(readFileSync(new URL('published/envoy-ai-gateway.json', import.meta.url), 'utf8')),
) as Readonly<Record<string, Schema>>;

/** A schema in which each object refuses fields that it does not name, unless it says otherwise. */
function strict(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strict);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, strict(member)]);
  const schema = Object.fromEntries(members) as Schema;
  const { properties, additionalProperties } = schema;
  // Objects of Kubernetes itself, such as `metadata`, have no properties here.
  if (schema.type !== 'object' || properties === undefined || additionalProperties !== undefined) return schema;
  return { ...schema, additionalProperties: false };
}
