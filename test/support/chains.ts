import fc from 'fast-check';

import { actions, afterRetries, backoffs, type ChainRequest, type Condition, ruleConditions } from '../../src/fallback/model/chain.ts';

/** A request for a chain of three providers: OpenAI, Anthropic, and an OpenAI-compatible one with its own URL. */
export const threeProviders: ChainRequest = {
  name: 'production-chain',
  providers: [
    { name: 'gpt-4o', model_id: 'openai/gpt-4o', api_key_env: 'OPENAI_API_KEY' },
    { name: 'claude', model_id: 'anthropic/claude-sonnet-4-5', api_key_env: 'ANTHROPIC_API_KEY' },
    { name: 'llama', model_id: 'llama-3.3-70b', provider: 'openai', api_base: 'https://llm.example.com/v1', api_key_env: 'LLAMA_API_KEY' },
  ],
  fallback_rules: [
    { condition: 'rate_limit', action: 'retry', max_retries: 3 },
    { condition: 'timeout', action: 'failover' },
  ],
};

/** Names with characters that have a meaning in other formats. */
const anyName = fc.oneof(
  fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme-ascii' }),
  fc.constantFrom(
    'production chain',
    'ünï "quoted"',
    "it's",
    '$HOME $(id)',
    '{{ x }}',
    '- yes',
    '*a',
    '# no',
    '1e3',
    'null',
    '</script>',
    'a\u2028b',
  ),
);
const variable = fc.option(fc.constantFrom('OPENAI_API_KEY', 'KEY_2', 'backup_key'), { nil: undefined });
const price = fc.option(fc.constantFrom(0, 0.1, 0.15, 2.5, 3, 15.25), { nil: undefined });

const cooldown = fc.record(
  {
    allowed_fails: fc.integer({ min: 0, max: 5 }),
    window_ms: fc.constantFrom(5000, 60_000),
    seconds: fc.constantFrom(5, 60),
    conditions: fc.constantFrom<Condition[]>(['server_error'], ['rate_limit', 'timeout']),
  },
  { requiredKeys: ['allowed_fails', 'window_ms', 'seconds'] },
);

const provider = fc.record(
  {
    model_id: fc.constantFrom(
      'gpt-4o',
      'openai/gpt-4o',
      'anthropic/claude-sonnet-4-5',
      'llama-3.3-70b',
      'meta-llama/llama-3.3-70b',
      'x:y z'.replace(' ', '-'),
    ),
    provider: fc.option(fc.constantFrom('openai', 'anthropic', 'mistral', 'nvidia', 'azure', 'bedrock', 'vertex_ai', 'own-kind'), {
      nil: undefined,
    }),
    api_base: fc.option(fc.constantFrom('https://llm.example.com/v1', 'http://127.0.0.1:9000/openai/v1', 'https://[2001:db8::1]:8443/v1'), {
      nil: undefined,
    }),
    api_key_env: variable,
    cooldown: fc.option(cooldown, { nil: undefined, freq: 1 }),
    timeout_ms: fc.option(fc.constantFrom(1, 1500, 30_000, 600_000), { nil: undefined }),
    max_tokens: fc.option(fc.constantFrom(1, 4096), { nil: undefined }),
    input_cost_per_1m: price,
    output_cost_per_1m: price,
    metadata: fc.option(fc.constantFrom({}, { team: 'a' }), { nil: undefined }),
  },
  { requiredKeys: ['model_id'] },
);

const rule = fc.record(
  {
    condition: fc.constantFrom(...ruleConditions),
    action: fc.constantFrom(...actions),
    max_retries: fc.integer({ min: 0, max: 4 }),
    status_codes: fc.uniqueArray(fc.constantFrom(400, 408, 413, 429, 451, 500, 503, 529), { minLength: 1, maxLength: 3 }),
    wait_ms: fc.constantFrom(0, 500, 1000),
    backoff: fc.constantFrom(...backoffs),
    max_wait_ms: fc.constantFrom(0, 8000, 10_000, 20_000),
    respect_retry_after: fc.boolean(),
    then: fc.constantFrom(...afterRetries),
  },
  { requiredKeys: ['condition', 'action'] },
);

/** Generates any valid chain, with and without optional fields, and with names that contain special characters. */
export const anyChain: fc.Arbitrary<ChainRequest> = fc
  .record({
    name: anyName,
    description: fc.option(fc.constantFrom('', 'two\nlines'), { nil: undefined }),
    providers: fc.array(provider, { minLength: 1, maxLength: 6 }),
    names: fc.uniqueArray(anyName, { minLength: 6, maxLength: 6 }),
    fallback_rules: fc.array(rule, { maxLength: 5 }),
    scoped: fc.boolean(),
    cooldown: fc.option(cooldown, { nil: undefined }),
    metadata: fc.option(fc.constantFrom({}, { deep: { list: [1, null, 'x'] } }), { nil: undefined }),
  })
  .map(({ names, providers, fallback_rules, scoped, ...chain }) => ({
    ...present(chain),
    name: chain.name,
    providers: providers.map((one, index) => ({ ...(present(one) as typeof one), name: names[index]! })),
    fallback_rules: fallback_rules.map((one, index) => (scoped && index === 0 ? { ...one, providers: [names[0]!] } : one)),
  })) as fc.Arbitrary<ChainRequest>;

/** A chain that LiteLLM and Portkey can represent exactly: without delays, and with the same reaction to every failure. */
export const plainChain: fc.Arbitrary<ChainRequest> = fc
  .record({
    name: fc.constantFrom('plain', 'ünï "quoted"'),
    models: fc.array(fc.constantFrom('gpt-4o', 'gpt-4.1', 'o3'), { minLength: 1, maxLength: 4 }),
    fallback_rules: fc.constantFrom(
      [{ condition: 'any', action: 'failover' }],
      [
        { condition: 'context_length', action: 'fail' },
        { condition: 'invalid_response', action: 'fail' },
      ],
      [],
    ),
  })
  .map(({ name, models, fallback_rules }) => ({
    name,
    providers: models.map((model_id, index) => ({ name: `p${index}`, model_id, provider: 'openai', api_key_env: 'OPENAI_API_KEY' })),
    fallback_rules: fallback_rules as ChainRequest['fallback_rules'] & object,
  }));

const present = <T extends object>(value: T): Partial<T> =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as Partial<T>;
