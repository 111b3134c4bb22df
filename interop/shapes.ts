/** The shapes of files that people have published, reduced to what decides calls: groups, orders, weights, settings. */
interface Shape {
  /** Where such a file was found. */
  readonly source: string;
  /** The groups of its models in order, each with the parameters that decide routing. */
  readonly models: readonly (readonly [group: string, parameters?: Readonly<Record<string, unknown>>])[];
  readonly router_settings?: Readonly<Record<string, unknown>>;
  readonly litellm_settings?: Readonly<Record<string, unknown>>;
  /** Other sections of the file. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** The group to start at, if the file has several. */
  readonly group?: string;
}

const docs = 'BerriAI/litellm, docs/my-website/docs/proxy/reliability.md';

/** Files of LiteLLM by what is special about them. */
export const litellmShapes: Readonly<Record<string, Shape>> = {
  'tiers with fallbacks of fallbacks and usage-based routing': {
    source: 'a guide on local and cloud models',
    models: [
      ['fast', { rpm: 60, timeout: 30 }],
      ['smart', { rpm: 30, timeout: 120 }],
      ['cloud', { rpm: 200 }],
      ['heavy', { rpm: 60 }],
    ],
    router_settings: { routing_strategy: 'usage-based-routing', num_retries: 2, timeout: 30, allowed_fails: 3, cooldown_time: 60 },
    litellm_settings: {
      fallbacks: [{ fast: ['smart', 'cloud'] }, { smart: ['cloud'] }, { cloud: ['heavy'] }],
      context_window_fallbacks: [{ fast: ['smart', 'heavy'] }, { smart: ['heavy'] }],
      ...{ num_retries: 2, request_timeout: 30, allowed_fails: 3, cooldown_time: 60 },
    },
  },
  'three hosts of one model, and fallbacks for long prompts': {
    source: docs,
    models: [['z'], ['z'], ['z'], ['small'], ['long']],
    litellm_settings: {
      ...{ num_retries: 3, request_timeout: 10, allowed_fails: 3 },
      fallbacks: [{ z: ['small'] }],
      context_window_fallbacks: [{ z: ['long'] }, { small: ['long'] }],
    },
  },
  'one group by requests per minute, with an alias': {
    source: docs,
    models: [
      ['gpt', { rpm: 6 }],
      ['gpt', { rpm: 6 }],
      ['gpt', { rpm: 1440 }],
    ],
    router_settings: { routing_strategy: 'simple-shuffle', model_group_alias: { other: 'gpt' }, num_retries: 2, timeout: 30 },
  },
  'orders before fallbacks': {
    source: 'a guide to LiteLLM',
    models: [['gpt', { order: 1 }], ['gpt', { order: 2 }], ['claude'], ['long']],
    router_settings: {
      fallbacks: [{ gpt: ['claude'] }],
      context_window_fallbacks: [{ gpt: ['long'] }],
      ...{ num_retries: 3, timeout: 60 },
    },
  },
  'fallbacks in no section': {
    source: 'a guide to a proxy for Claude',
    models: [['sonnet'], ['haiku']],
    router_settings: { routing_strategy: 'latency-based-routing', num_retries: 3 },
    litellm_settings: { set_verbose: false, drop_params: true },
    more: { fallbacks: [{ sonnet: ['haiku'] }] },
  },
  'regions of one model, a strategy in the wrong section, and fallbacks to groups that are missing': {
    source: 'a guide on Vertex AI',
    models: [['pro'], ['pro'], ['pro'], ['preview']],
    litellm_settings: {
      routing_strategy: 'latency-based-routing',
      fallbacks: [{ pro: ['flash'] }, { preview: ['pro', 'flash'] }],
      context_window_fallbacks: [{ pro: ['flash'] }],
    },
    group: 'preview',
  },
  'a group among its own fallbacks': {
    source: 'a guide on agents',
    models: [['reason', { rpm: 1000, tpm: 4000000 }], ['reason', { rpm: 1000, tpm: 4000000 }], ['code', { rpm: 300 }], ['local']],
    router_settings: {
      ...{ routing_strategy: 'latency-based-routing', num_retries: 3, timeout: 30, retry_after: 2, allowed_fails: 2, cooldown_time: 60 },
      fallbacks: [{ reason: ['reason', 'code', 'local'] }],
    },
  },
  'a policy of retries by a name, in a section where it does not count': {
    source: 'angga13142/claude-code, specs/001-llm-gateway-config/docs/fallback-retry.md',
    models: [['a'], ['b']],
    litellm_settings: { num_retries: 3, retry_policy: 'fixed_delay', retry_after: 5, fallbacks: [{ a: ['b'] }] },
  },
  'hidden aliases with retries of their own': {
    source: 'a generator of configurations for local tiers',
    models: [['t/a', { timeout: 60 }], ['t/b']],
    router_settings: {
      ...{ num_retries: 1, disable_cooldowns: true, fallbacks: [] },
      model_group_alias: { a: { model: 't/a', hidden: true }, b: { model: 't/b', hidden: true } },
      model_group_retry_policy: { 't/a': { TimeoutErrorRetries: 0 }, a: { TimeoutErrorRetries: 0 } },
    },
    group: 'a',
  },
  'fallbacks for long prompts alone, checked before the call': {
    source: docs,
    models: [['small'], ['large'], ['claude']],
    router_settings: { enable_pre_call_checks: true },
    litellm_settings: { context_window_fallbacks: [{ small: ['large', 'claude'] }] },
  },
  'fallbacks for refused content alone': {
    source: docs,
    models: [['small'], ['claude']],
    litellm_settings: { content_policy_fallbacks: [{ small: ['claude'] }] },
  },
  'default fallbacks beside others': {
    source: docs,
    models: [['a'], ['b'], ['last']],
    litellm_settings: { num_retries: 2, request_timeout: 10, fallbacks: [{ a: ['b'] }], default_fallbacks: ['last'] },
    group: 'a',
  },
  'allowed failures by their kind': {
    source: 'notes on a router of many keys',
    models: [['glm', { rpm: 1 }], ['glm', { rpm: 1 }], ['glm', { rpm: 1 }], ['spare']],
    router_settings: {
      ...{ num_retries: 3, cooldown_time: 30, routing_strategy: 'latency-based-routing' },
      routing_strategy_args: { lowest_latency_buffer: 0.1 },
      allowed_fails_policy: { AuthenticationErrorAllowedFails: 0, RateLimitErrorAllowedFails: 3, TimeoutErrorAllowedFails: 2 },
      fallbacks: [{ glm: ['spare'] }],
    },
  },
  'latency, and a wait between retries': {
    source: 'a guide to LiteLLM',
    models: [['a'], ['a'], ['b']],
    router_settings: {
      ...{ routing_strategy: 'latency-based-routing', routing_strategy_args: { ttl: 60 }, allowed_fails: 3, cooldown_time: 60 },
      ...{ num_retries: 2, timeout: 90, retry_after: 5, fallbacks: [{ a: ['b'] }] },
    },
  },
};
