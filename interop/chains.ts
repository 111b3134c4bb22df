import type { ChainDefinition, ChainRequest } from '../src/fallback/model/chain.ts';
import type { Export, ExportFormat } from '../src/fallback/model/export.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { exportChain } from '../src/fallback/rules/exports/export.ts';
import { routingOf } from '../src/fallback/rules/routing.ts';
import type { Behaviour, Fakes } from './fakes.ts';

type Rules = NonNullable<ChainRequest['fallback_rules']>;

/** How long a provider may take where none hangs, in milliseconds: longer than a busy machine does. */
const patientMs = 30_000;
/** How long one may take where one hangs, which a test waits for. */
const silentMs = 1_000;

/** Whether a provider hangs in a scene. */
export const hangs = (behaviours: readonly Behaviour[]) => behaviours.some((behaviour) => behaviour?.way === 'hang');

/** A chain of three fake providers: OpenAI, Anthropic, and an OpenAI-compatible one; for scenes in which one hangs, or not. */
export function chainOf(fakes: Fakes, fallback_rules: Rules, { hanging = false } = {}): ChainDefinition {
  const timeout_ms = hanging ? silentMs : patientMs;
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

/** The chain in a format of others. */
export function exported(chain: ChainDefinition, format: ExportFormat, prefer: 'failover' | 'retry' = 'failover'): Export {
  return exportChain(format, { chain, routing: routingOf(chain), prefer });
}

/** Waits that a test can bear. */
export const quick = { wait_ms: 1, max_wait_ms: 5, respect_retry_after: false } as const;

/** Rules that use what rules can do: retries of one condition, by status, without an end, for one provider. */
export const ruleSets: Readonly<Record<string, Rules>> = {
  defaults: [],
  'retry rate limits, hand over time-outs': [
    { condition: 'rate_limit', action: 'retry', max_retries: 3, ...quick },
    { condition: 'timeout', action: 'failover' },
  ],
  'retry anything once': [{ condition: 'any', action: 'retry', max_retries: 1, ...quick }],
  'end on some': [
    { condition: 'auth_error', action: 'fail' },
    // biome-ignore lint/suspicious/noThenProperty: the field's name on the wire; nobody awaits a rule
    { condition: 'server_error', action: 'retry', max_retries: 2, then: 'fail', ...quick },
    { condition: 'invalid_request', action: 'failover' },
  ],
  'by status and by provider': [
    { condition: 'server_error', action: 'retry', max_retries: 2, status_codes: [503], ...quick },
    { condition: 'timeout', action: 'retry', max_retries: 1, providers: ['gpt-4o'], ...quick },
    { condition: 'any', action: 'fail', status_codes: [404] },
  ],
};

/** How a scene is named in a test. */
export const told = (behaviours: readonly Behaviour[]) =>
  behaviours
    .map((behaviour) => (behaviour === undefined ? 'ok' : `${behaviour.way}${behaviour.times === undefined ? '' : ` x${behaviour.times}`}`))
    .join(', ');
