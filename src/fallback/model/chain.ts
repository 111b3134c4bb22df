import Type, { type Static } from 'typebox';

import { choice, described, Id, orNull, record, timestamp } from '../../kit/schemas.ts';
import { eachOptional, eachOrNull, exampleId, exampleTime, optional, shortName, Warning, whole } from './common.ts';

/** The ways an attempt can fail. Rules refer to them; in a rule `any` stands for all of them. */
export const conditions = [
  'rate_limit',
  'timeout',
  'first_token_timeout',
  'server_error',
  'connection_error',
  'interrupted',
  'auth_error',
  'quota_exceeded',
  'model_not_found',
  'context_length',
  'content_filter',
  'unsupported_request',
  'invalid_request',
  'invalid_response',
] as const;
export const ruleConditions = [...conditions, 'any'] as const;
export const actions = ['retry', 'failover', 'fail'] as const;
export const backoffs = ['constant', 'exponential'] as const;
/** What a retry rule does when its retries are used up. */
export const afterRetries = ['failover', 'fail'] as const;

export type Condition = (typeof conditions)[number];
export type RuleCondition = (typeof ruleConditions)[number];
export type Action = (typeof actions)[number];

/** The limits of a chain. */
export const maxProviders = 50;
export const maxRules = 50;
export const maxTo = 20;
export const maxRetries = 10;
export const maxTimeoutMs = 600_000;
export const maxTokens = 1_000_000;
export const maxAllowedFails = 1000;
export const maxWindowMs = 3_600_000;
export const maxCooldownSeconds = 86_400;
/** The highest price of a million tokens, in US dollars. */
export const maxPrice = 1_000_000;

/** The defaults of optional fields; those of `priority` and `provider` depend on the position and the model. */
export const providerDefaults = {
  priority: 0,
  provider: null,
  api_base: null,
  api_key_env: null,
  timeout_ms: 30_000,
  first_token_ms: null,
  idle_ms: null,
  max_tokens: null,
  input_cost_per_1m: null,
  output_cost_per_1m: null,
  cooldown: null,
  params: {},
  metadata: {},
};
/** The defaults of a rule with the action `retry`. */
export const retryDefaults = {
  max_retries: 1,
  wait_ms: 500,
  backoff: 'exponential',
  max_wait_ms: 10_000,
  respect_retry_after: true,
  then: 'failover',
} as const;

const price = (what: string) => Type.Number({ minimum: 0, maximum: maxPrice, description: `US dollars for a million ${what} tokens.` });
const cooldownFields = {
  allowed_fails: whole(0, maxAllowedFails, 'The failures within the window that are allowed; after one more the provider is left out.'),
  window_ms: whole(1, maxWindowMs, 'How long failures are counted, from the first one on.'),
  seconds: whole(1, maxCooldownSeconds, 'How long the provider is left out. A `Retry-After` of the failure replaces it.'),
};
const cooldownConditions = Type.Array(choice(conditions, { description: 'A failure.' }), {
  minItems: 1,
  maxItems: conditions.length,
  description: 'The failures that count. Default: those that are not about the request itself.',
});

/** A cool-down in a request. */
const CooldownRequest = described('After how many failures a provider is left out, and for how long, also for later prompts.', {
  ...cooldownFields,
  conditions: optional(cooldownConditions),
});

/** A cool-down in a response: `conditions` is null for the default. */
export const Cooldown = described('After how many failures a provider is left out, and for how long, also for later prompts.', {
  ...cooldownFields,
  conditions: orNull(cooldownConditions),
});
const ownCooldown = "The cool-down of this provider, instead of the chain's.";
const chainCooldown = 'The cool-down of all providers that have none of their own.';

const metadata = record(Type.Unknown(), { description: 'Arbitrary data of the caller.' });
const named = {
  name: shortName('Display name, unique in the chain.'),
  model_id: Type.String({
    minLength: 1,
    maxLength: 256,
    pattern: '^[^\\x00-\\x20\\x7f]*$',
    description:
      'Identifier of the model. In `kind/model` with a known kind, the first part is the provider kind and is not sent; any other id is sent unchanged.',
    example: 'gpt-4o',
  }),
};
const providerFields = {
  priority: whole(0, 1_000_000, 'Order in the chain, lowest first. Default: the position in the list.'),
  provider: Type.String({
    minLength: 1,
    maxLength: 64,
    pattern: '^[a-z0-9][a-z0-9._-]*$',
    description: 'The provider kind: `openai`, `anthropic`, `mistral`, `groq` ... Default: derived from a `kind/model` id.',
    example: 'openai',
  }),
  api_base: Type.String({
    minLength: 1,
    maxLength: 2048,
    description: 'An http or https URL with its version path. Default: that of the kind.',
    example: 'https://llm.example.com/v1',
  }),
  api_key_env: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'The name of the environment variable that holds the key, never the key itself. Without it, calls have no key.',
    example: 'OPENAI_API_KEY',
  }),
  timeout_ms: whole(1, maxTimeoutMs, `The timeout of an attempt. Default: ${providerDefaults.timeout_ms}.`),
  first_token_ms: whole(
    1,
    maxTimeoutMs,
    'How long a streamed answer may take until its first content; then `first_token_timeout`. Default: no limit.',
  ),
  idle_ms: whole(1, maxTimeoutMs, 'How long a streamed answer may pause after its first content; then `interrupted`. Default: no limit.'),
  max_tokens: whole(1, maxTokens, 'The token limit of requests in tests.'),
  input_cost_per_1m: price('input'),
  output_cost_per_1m: price('output'),
  params: record(Type.Union([Type.String({ maxLength: 2048 }), Type.Number(), Type.Boolean(), record(Type.String({ maxLength: 2048 }))]), {
    maxProperties: 50,
    propertyNames: Type.String({ maxLength: 64 }),
    description:
      'Parameters of the kind for exports, by their names in LiteLLM: `api_version`, `aws_region_name`, `vertex_project`, `organization`, `headers` ... A secret only as a reference `os.environ/NAME`.',
    example: { api_version: '2024-10-21' },
  }),
  metadata,
};
const {
  provider: kind,
  api_base,
  api_key_env,
  first_token_ms,
  idle_ms,
  max_tokens,
  input_cost_per_1m,
  output_cost_per_1m,
} = providerFields;

/** A provider in a request. */
export const ProviderRequest = described('One model of a chain, and how it is reached.', {
  ...named,
  ...eachOptional(providerFields),
  cooldown: Type.Optional(orNull(CooldownRequest, ownCooldown)),
});

/** A provider in a response: all fields, null if they have no value. */
export const Provider = described('One model of a chain, and how it is reached.', {
  ...named,
  ...providerFields,
  ...eachOrNull({ api_base, api_key_env, first_token_ms, idle_ms, max_tokens, input_cost_per_1m, output_cost_per_1m }),
  cooldown: orNull(Cooldown, ownCooldown),
  provider: orNull(kind, 'The provider kind, given or derived from `model_id`; null if unknown.'),
});

const condition = choice(ruleConditions, { description: 'The failure; `any` stands for all.' });
const action = choice(actions, { description: 'What happens then: retry the provider, fail over to the next one, or return an error.' });
const ruleFields = {
  max_retries: whole(
    0,
    maxRetries,
    `Extra attempts at the same provider, per provider and prompt. Default: ${retryDefaults.max_retries} with \`retry\`.`,
  ),
  providers: Type.Array(Type.String({ maxLength: 256 }), {
    minItems: 1,
    maxItems: maxProviders,
    description: 'The names of the providers that the rule applies to. Default: all.',
  }),
  status_codes: Type.Array(whole(100, 599, 'An HTTP status.'), {
    minItems: 1,
    maxItems: 100,
    description: 'Restricts the condition to these HTTP statuses; with `any` only the status counts.',
  }),
  wait_ms: whole(0, 600_000, `The wait before the first retry. Default: ${retryDefaults.wait_ms}.`),
  backoff: choice(backoffs, { description: 'How later waits grow. Default: `exponential`, with jitter.' }),
  max_wait_ms: whole(0, 600_000, `The longest wait, also with Retry-After. Default: ${retryDefaults.max_wait_ms}.`),
  respect_retry_after: Type.Boolean({ description: 'Whether Retry-After extends the wait, up to `max_wait_ms`. Default: true.' }),
  then: choice(afterRetries, { description: 'What happens when the retries are used up. Default: `failover`.' }),
  to: Type.Array(Type.String({ maxLength: 256 }), {
    minItems: 1,
    maxItems: maxTo,
    description:
      "The providers that are tried on a failover, in this order, instead of the chain's; after the last one the prompt fails. A provider that has been left is not called again.",
  }),
};

/** The optional fields of a rule that has none of them. */
export const ruleDefaults = Object.fromEntries(Object.keys(ruleFields).map((name) => [name, null])) as Record<
  keyof typeof ruleFields,
  null
>;

/** A rule in a request. */
export const RuleRequest = described('What happens on a condition.', { condition, action, ...eachOptional(ruleFields) });

/** A rule in a response: all fields, null if they have no value. */
export const Rule = described('What happens on a condition.', { condition, action, ...eachOrNull(ruleFields) });

const description = Type.String({ maxLength: 4096, description: 'What the chain is for.' });
const providers = Type.Array(ProviderRequest, { minItems: 1, maxItems: maxProviders });
const rules = Type.Array(RuleRequest, { maxItems: maxRules });

/** A chain in a request. */
export const ChainRequest = described('A chain to create.', {
  name: shortName('Chain name; it need not be unique.'),
  description: optional(description),
  providers,
  fallback_rules: optional(rules),
  cooldown: Type.Optional(orNull(CooldownRequest, chainCooldown)),
  metadata: optional(metadata),
});

/** A JSON merge patch (RFC 7396) of a chain: arrays are replaced as a whole, null resets a field to its default. */
export const ChainPatch = described('The fields to change: arrays as a whole, null for the default.', {
  name: Type.Optional(shortName('Chain name.')),
  description: optional(description),
  providers: Type.Optional(providers),
  fallback_rules: optional(rules),
  cooldown: Type.Optional(orNull(CooldownRequest, chainCooldown)),
  metadata: optional(metadata),
});

/** A chain's definition with all defaults: the input of the engine and the snapshot in a result. */
const definition = {
  name: shortName('Chain name.'),
  description: orNull(description),
  providers: Type.Array(Provider, { description: 'The providers in order.' }),
  fallback_rules: Type.Array(Rule, { description: 'The rules as given.' }),
  cooldown: orNull(Cooldown, chainCooldown),
  metadata,
};
export const ChainDefinition = described("A chain's definition, with all defaults.", definition);

export const Chain = described('A stored chain.', {
  id: Id,
  ...definition,
  version: Type.Integer({ minimum: 1, description: 'Rises by one with each change.' }),
  created_at: timestamp('When it was created.'),
  updated_at: timestamp('When it last changed.'),
  warnings: Type.Array(Warning, { description: 'What the rules actually do, where that may surprise.' }),
});

export type Cooldown = Static<typeof Cooldown>;
export type Params = Static<typeof providerFields.params>;
export type ProviderRequest = Static<typeof ProviderRequest>;
export type Provider = Static<typeof Provider>;
export type RuleRequest = Static<typeof RuleRequest>;
export type Rule = Static<typeof Rule>;
export type ChainRequest = Static<typeof ChainRequest>;
export type ChainPatch = Static<typeof ChainPatch>;
export type ChainDefinition = Static<typeof ChainDefinition>;
export type Chain = Static<typeof Chain>;

/** An example of a create request. */
export const chainRequestExample = {
  name: 'production-chain',
  providers: [
    { name: 'gpt-4o', model_id: 'openai/gpt-4o', priority: 0, api_key_env: 'OPENAI_API_KEY' },
    { name: 'claude', model_id: 'anthropic/claude-sonnet-4-5', priority: 1, api_key_env: 'ANTHROPIC_API_KEY' },
  ],
  fallback_rules: [
    { condition: 'rate_limit', action: 'retry', max_retries: 3 },
    { condition: 'timeout', action: 'failover' },
  ],
} as const;

/** An example of a definition: that of the request. */
export const definitionExample: ChainDefinition = {
  name: chainRequestExample.name,
  description: null,
  providers: chainRequestExample.providers.map(({ name, model_id, ...given }) => ({
    name,
    model_id,
    ...providerDefaults,
    ...given,
    provider: model_id.split('/')[0]!,
  })),
  fallback_rules: chainRequestExample.fallback_rules.map(({ condition, action, ...given }) => ({
    condition,
    action,
    ...ruleDefaults,
    ...(action === 'retry' ? retryDefaults : {}),
    ...given,
  })),
  cooldown: null,
  metadata: {},
};

/** An example of a stored chain. */
export const chainExample: Chain = {
  id: exampleId,
  ...definitionExample,
  version: 1,
  created_at: exampleTime,
  updated_at: exampleTime,
  warnings: [],
};

/** The schemas of chains that the API description names. */
export const chainSchemas = {
  Cooldown,
  CooldownRequest,
  Provider,
  ProviderRequest,
  Rule,
  RuleRequest,
  Chain,
  ChainDefinition,
  ChainRequest,
  ChainPatch,
};
