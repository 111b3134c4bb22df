import type { ChainDefinition, ChainRequest } from '../src/fallback/model/chain.ts';
import type { Export } from '../src/fallback/model/export.ts';
import type { ExportFormat } from '../src/fallback/model/targets.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { routingOf } from '../src/fallback/rules/routing.ts';
import { exportChain } from '../src/fallback/rules/targets/export.ts';
import type { Behaviour, Fakes } from './fakes.ts';

type Rules = NonNullable<ChainRequest['fallback_rules']>;

/** The timeout of providers if none hangs, in milliseconds; long enough for a busy machine. */
const usualTimeoutMs = 30_000;
/** The timeout if a provider hangs, which the test waits for. */
const hangingTimeoutMs = 3_000;

/** Whether a provider hangs in a scene. */
export const hangs = (behaviours: readonly Behaviour[]) => behaviours.some((behaviour) => behaviour?.way === 'hang');

/** A chain of three fake providers: OpenAI, Anthropic, and an OpenAI-compatible one. `hanging` selects the timeout. */
export function chainOf(fakes: Fakes, fallback_rules: Rules, { hanging = false } = {}): ChainDefinition {
  const timeout_ms = hanging ? hangingTimeoutMs : usualTimeoutMs;
  return define({
    name: 'production-chain',
    providers: [
      { name: 'gpt-4o', model_id: 'openai/gpt-4o', api_base: fakes.base(0), api_key_env: 'OPENAI_API_KEY', timeout_ms },
      { name: 'claude', model_id: 'anthropic/claude-sonnet-4-5', api_base: fakes.base(1), api_key_env: 'ANTHROPIC_API_KEY', timeout_ms },
      { name: 'llama', model_id: 'llama-3.3-70b', provider: 'openai', api_base: fakes.base(2), api_key_env: 'LLAMA_API_KEY', timeout_ms },
    ],
    fallback_rules,
  });
}

/** Exports the chain to a format. */
export function exported(chain: ChainDefinition, format: ExportFormat, prefer: 'failover' | 'retry' = 'failover'): Export {
  return exportChain(format, { chain, routing: routingOf(chain), prefer });
}

/** Short waits for tests. */
export const quick = { wait_ms: 1, max_wait_ms: 5, respect_retry_after: false } as const;

/** Sets of rules that cover retries by condition, by status, for one provider, and failures that end the chain. */
export const ruleSets: Readonly<Record<string, Rules>> = {
  defaults: [],
  'retry rate limits, hand over time-outs': [
    { condition: 'rate_limit', action: 'retry', max_retries: 3, ...quick },
    { condition: 'timeout', action: 'failover' },
  ],
  'retry anything once': [{ condition: 'any', action: 'retry', max_retries: 1, ...quick }],
  'end on some': [
    { condition: 'auth_error', action: 'fail' },
    { condition: 'server_error', action: 'retry', max_retries: 2, then: 'fail', ...quick },
    { condition: 'invalid_request', action: 'failover' },
  ],
  'by status and by provider': [
    { condition: 'server_error', action: 'retry', max_retries: 2, status_codes: [503], ...quick },
    { condition: 'timeout', action: 'retry', max_retries: 1, providers: ['gpt-4o'], ...quick },
    { condition: 'any', action: 'fail', status_codes: [404] },
  ],
};

/** The name of a scene in the messages of tests. */
export const nameOf = (behaviours: readonly Behaviour[]) =>
  behaviours
    .map((behaviour) => (behaviour === undefined ? 'ok' : `${behaviour.way}${behaviour.times === undefined ? '' : ` x${behaviour.times}`}`))
    .join(', ');
