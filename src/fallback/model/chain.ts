import Type, { type Static } from 'typebox';

import { choice, Id, orNull, timestamp } from '../../kit/schemas.ts';
import { closed, exampleId, exampleTime, optional, shortName, Warning, whole } from './common.ts';

/** What can be wrong with an attempt, each a condition that a rule may name. `any` stands for all of them in a rule. */
export const conditions = [
  'rate_limit',
  'timeout',
  'server_error',
  'connection_error',
  'auth_error',
  'quota_exceeded',
  'context_length',
  'content_filter',
  'invalid_request',
  'invalid_response',
] as const;
export const ruleConditions = [...conditions, 'any'] as const;
export const actions = ['retry', 'failover', 'fail'] as const;
export const backoffs = ['constant', 'exponential'] as const;
/** What a retry rule does once its retries are used up. */
export const afterRetries = ['failover', 'fail'] as const;

export type Condition = (typeof conditions)[number];
export type RuleCondition = (typeof ruleConditions)[number];
export type Action = (typeof actions)[number];

/** What a chain may have at most. */
export const maxProviders = 50;
export const maxRules = 50;

/** The defaults of optional fields, as the chain shows them. */
export const providerDefaults = { timeout_ms: 30_000 } as const;
export const retryDefaults = {
  max_retries: 1,
  wait_ms: 500,
  backoff: 'exponential',
  max_wait_ms: 10_000,
  respect_retry_after: true,
  then: 'failover',
} as const;

const price = (what: string) => Type.Number({ minimum: 0, maximum: 1_000_000, description: `US dollars for a million ${what} tokens.` });
const metadata = Type.Record(Type.String(), Type.Unknown(), { description: 'Whatever the caller wants to keep with it.' });

const modelId = Type.String({
  minLength: 1,
  maxLength: 256,
  pattern: '^[^\\u0000-\\u0020\\u007f]*$',
  description:
    'Identifier of the model. In `kind/model` with a known kind the first part says who serves it and is not sent; any other id goes out as it is.',
  example: 'gpt-4o',
});
const kind = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: '^[a-z0-9][a-z0-9._-]*$',
  description: 'Who serves the model: `openai`, `anthropic`, `mistral`, `groq` ... Left out: read from a `kind/model` id.',
  example: 'openai',
});
const apiBase = Type.String({
  minLength: 1,
  maxLength: 2048,
  description: "An http or https URL with its version path. Left out: the kind's own.",
  example: 'https://llm.example.com/v1',
});
const apiKeyEnv = Type.String({
  minLength: 1,
  maxLength: 128,
  description: 'The name of the environment variable that holds the key, never the key. Left out: a call carries no key.',
  example: 'OPENAI_API_KEY',
});
const priority = whole(0, 1_000_000, 'Order in the chain: the lowest is the first. Left out: its place in the list.');
const timeout = whole(1, 600_000, 'How long one attempt may take. Left out: 30000.');
const maxTokens = whole(1, 1_000_000, 'The most tokens that a test asks for.');

/** A provider as a caller writes it. */
export const ProviderRequest = Type.Object(
  {
    name: shortName('Display name, unique in the chain.'),
    model_id: modelId,
    priority: optional(priority),
    provider: optional(kind),
    api_base: optional(apiBase),
    api_key_env: optional(apiKeyEnv),
    timeout_ms: optional(timeout),
    max_tokens: optional(maxTokens),
    input_cost_per_1m: optional(price('input')),
    output_cost_per_1m: optional(price('output')),
    metadata: optional(metadata),
  },
  { ...closed, description: 'One model of a chain, and how it is reached.' },
);

/** A provider as the service shows it: every field there, null where it has no value. */
export const Provider = Type.Object(
  {
    name: shortName('Display name, unique in the chain.'),
    model_id: modelId,
    priority,
    provider: orNull(kind, 'Who serves the model, given or read from `model_id`; null when neither says it.'),
    api_base: orNull(apiBase),
    api_key_env: orNull(apiKeyEnv),
    timeout_ms: timeout,
    max_tokens: orNull(maxTokens),
    input_cost_per_1m: orNull(price('input')),
    output_cost_per_1m: orNull(price('output')),
    metadata,
  },
  { ...closed, description: 'One model of a chain, and how it is reached.' },
);

const condition = choice(ruleConditions, { description: 'What went wrong; `any` is all of them.' });
const action = choice(actions, { description: 'What happens then: the same provider again, the next one, or an error to the caller.' });
const maxRetries = whole(0, 10, 'Extra attempts at the same provider, for each provider and prompt. Left out: 1 with `retry`.');
const ruleProviders = Type.Array(Type.String({ maxLength: 256 }), {
  minItems: 1,
  maxItems: maxProviders,
  description: 'The names of the providers that the rule is for. Left out: all.',
});
const statusCodes = Type.Array(whole(100, 599, 'An HTTP status.'), {
  minItems: 1,
  maxItems: 100,
  description: 'Narrows the condition to these HTTP statuses; with `any` the status alone decides.',
});
const wait = whole(0, 600_000, 'The wait before the first retry. Left out: 500.');
const backoff = choice(backoffs, { description: 'How later waits grow; `exponential`, with jitter, if left out.' });
const maxWait = whole(0, 600_000, 'The longest wait, whatever Retry-After says. Left out: 10000.');
const respectRetryAfter = Type.Boolean({ description: 'Whether Retry-After raises the wait, up to `max_wait_ms`. Left out: true.' });
const then = choice(afterRetries, { description: 'What happens once the retries are used up; `failover` if left out.' });

/** A rule as a caller writes it. */
export const RuleRequest = Type.Object(
  {
    condition,
    action,
    max_retries: optional(maxRetries),
    providers: optional(ruleProviders),
    status_codes: optional(statusCodes),
    wait_ms: optional(wait),
    backoff: optional(backoff),
    max_wait_ms: optional(maxWait),
    respect_retry_after: optional(respectRetryAfter),
    then: optional(then),
  },
  { ...closed, description: 'What happens on a condition.' },
);

/** A rule as the service shows it: every field there, null where it has no value. */
export const Rule = Type.Object(
  {
    condition,
    action,
    max_retries: orNull(maxRetries),
    providers: orNull(ruleProviders),
    status_codes: orNull(statusCodes),
    wait_ms: orNull(wait),
    backoff: orNull(backoff),
    max_wait_ms: orNull(maxWait),
    respect_retry_after: orNull(respectRetryAfter),
    then: orNull(then),
  },
  { ...closed, description: 'What happens on a condition.' },
);

const description = Type.String({ maxLength: 4096, description: 'What the chain is for.' });
const providers = Type.Array(ProviderRequest, { minItems: 1, maxItems: maxProviders });
const rules = Type.Array(RuleRequest, { maxItems: maxRules });

/** A chain as a caller writes it. */
export const ChainRequest = Type.Object(
  {
    name: shortName('Chain name; it need not be unique.'),
    description: optional(description),
    providers,
    fallback_rules: optional(rules),
    metadata: optional(metadata),
  },
  { ...closed, description: 'A chain to be kept.' },
);

/** A JSON merge patch (RFC 7396) of a chain: arrays are replaced whole, null takes a field back to its default. */
export const ChainPatch = Type.Object(
  {
    name: Type.Optional(shortName('Chain name.')),
    description: optional(description),
    providers: Type.Optional(providers),
    fallback_rules: optional(rules),
    metadata: optional(metadata),
  },
  { ...closed, description: 'What is to change: arrays whole, null for a default.' },
);

/** What a chain is made of, all defaults filled in: what the engine runs and a result keeps as its snapshot. */
const definition = {
  name: shortName('Chain name.'),
  description: orNull(description),
  providers: Type.Array(Provider, { description: 'The providers in their order.' }),
  fallback_rules: Type.Array(Rule, { description: 'The rules as they were given.' }),
  metadata,
};
export const ChainDefinition = Type.Object(definition, { ...closed, description: 'What a chain is made of, defaults filled in.' });

/** A chain as it is kept. */
export const Chain = Type.Object(
  {
    id: Id,
    ...definition,
    version: Type.Integer({ minimum: 1, description: 'Rises by one with each change.' }),
    created_at: timestamp('When it was created.'),
    updated_at: timestamp('When it last changed.'),
    warnings: Type.Array(Warning, { description: 'What the rules really do, where that may surprise.' }),
  },
  { ...closed, description: 'A chain as it is kept.' },
);

export type ProviderRequest = Static<typeof ProviderRequest>;
export type Provider = Static<typeof Provider>;
export type RuleRequest = Static<typeof RuleRequest>;
export type Rule = Static<typeof Rule>;
export type ChainRequest = Static<typeof ChainRequest>;
export type ChainPatch = Static<typeof ChainPatch>;
export type ChainDefinition = Static<typeof ChainDefinition>;
export type Chain = Static<typeof Chain>;

/** A chain to be created, for examples. */
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

const provider = { api_base: null, timeout_ms: 30_000, max_tokens: null, input_cost_per_1m: null, output_cost_per_1m: null, metadata: {} };
const rule = { providers: null, status_codes: null };

/** What a chain is made of, for examples. */
export const definitionExample: ChainDefinition = {
  name: 'production-chain',
  description: null,
  providers: [
    { ...provider, name: 'gpt-4o', model_id: 'openai/gpt-4o', priority: 0, provider: 'openai', api_key_env: 'OPENAI_API_KEY' },
    {
      ...provider,
      name: 'claude',
      model_id: 'anthropic/claude-sonnet-4-5',
      priority: 1,
      provider: 'anthropic',
      api_key_env: 'ANTHROPIC_API_KEY',
    },
  ],
  fallback_rules: [
    { ...rule, ...retryDefaults, condition: 'rate_limit', action: 'retry', max_retries: 3 },
    {
      ...rule,
      condition: 'timeout',
      action: 'failover',
      max_retries: null,
      wait_ms: null,
      backoff: null,
      max_wait_ms: null,
      respect_retry_after: null,
      then: null,
    },
  ],
  metadata: {},
};

/** A chain as it is kept, for examples. */
export const chainExample: Chain = {
  id: exampleId,
  ...definitionExample,
  version: 1,
  created_at: exampleTime,
  updated_at: exampleTime,
  warnings: [],
};
