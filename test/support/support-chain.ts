/** A realistic request for a chain. */
export const supportChain = {
  name: 'support-answers',
  description: 'Answers of the support desk: quality first, then speed, then our own machines',
  providers: [
    {
      name: 'claude-sonnet',
      model_id: 'anthropic/claude-sonnet-4-5',
      api_key_env: 'ANTHROPIC_API_KEY',
      timeout_ms: 20_000,
      input_cost_per_1m: 3,
      output_cost_per_1m: 15,
    },
    {
      name: 'gpt-4o',
      model_id: 'openai/gpt-4o',
      api_key_env: 'OPENAI_API_KEY',
      timeout_ms: 20_000,
      input_cost_per_1m: 2.5,
      output_cost_per_1m: 10,
    },
    {
      name: 'mistral-large',
      model_id: 'mistral/mistral-large-latest',
      api_key_env: 'MISTRAL_API_KEY',
      timeout_ms: 15_000,
      input_cost_per_1m: 2,
      output_cost_per_1m: 6,
    },
    {
      name: 'own-llama',
      model_id: 'llama-3.3-70b',
      api_base: 'https://llm.example.com/v1',
      timeout_ms: 30_000,
      input_cost_per_1m: 0,
      output_cost_per_1m: 0,
    },
  ],
  fallback_rules: [
    { condition: 'rate_limit', action: 'retry', max_retries: 2, wait_ms: 400 },
    { condition: 'timeout', action: 'failover' },
    { condition: 'server_error', action: 'retry', max_retries: 1 },
    { condition: 'content_filter', action: 'fail' },
  ],
};
