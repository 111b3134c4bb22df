import type { Condition } from '../../model/chain.ts';
import { modelName } from '../kinds.ts';
import type { WarningList } from '../warning-list.ts';
import { listed } from '../wording.ts';
import { addressed, keyEnv } from './kind-names.ts';
import { at, type Exporter, reactionTo, type Source, slug, slugs, warnOfEnds, warnOfUnsupportedFields, yamlText } from './target.ts';

/** The settings of LiteLLM's retry policy for each condition that it distinguishes. */
const retryNames: Partial<Record<Condition, readonly string[]>> = {
  rate_limit: ['RateLimitErrorRetries'],
  timeout: ['TimeoutErrorRetries'],
  auth_error: ['AuthenticationErrorRetries'],
  invalid_request: ['BadRequestErrorRetries'],
  content_filter: ['ContentPolicyViolationErrorRetries'],
  server_error: ['InternalServerErrorRetries', 'ServiceUnavailableErrorRetries'],
};

/** Conditions without a retry count in LiteLLM, and the conditions it treats them like. */
const likened: Partial<Record<Condition, Condition | null>> = {
  quota_exceeded: 'rate_limit',
  context_length: 'invalid_request',
  connection_error: null,
  invalid_response: null,
};

/** LiteLLM's default for the most backups it tries. */
const defaultMaxFallbacks = 5;

/**
 * A LiteLLM proxy configuration (`config.yaml`). Each provider is a separate model group, since a shared name means load
 * balancing; the order is in `fallbacks`. The retry policy belongs to the router, so all chains in a proxy share it.
 * https://docs.litellm.ai/docs/proxy/reliability
 */
export const litellm: Exporter = (source, warnings) => {
  const { chain } = source;
  const names = slugs(chain.providers);
  const groups = chain.providers.map((_, index) => (index === 0 ? chain.name : `${chain.name}-${index}`));
  const model_list = chain.providers.map((provider, index) => {
    const { kind, base } = addressed('litellm', provider, index, warnings);
    const litellm_params = {
      model: `${kind}/${modelName(provider)}`,
      ...(base === null ? {} : { api_base: base }),
      api_key: `os.environ/${keyEnv(provider, index, names[index]!, warnings)}`,
      timeout: provider.timeout_ms / 1000,
      ...(provider.max_tokens === null ? {} : { max_tokens: provider.max_tokens }),
      ...price('input_cost_per_token', provider.input_cost_per_1m),
      ...price('output_cost_per_token', provider.output_cost_per_1m),
    };
    return { model_name: groups[index], litellm_params, model_info: { display_name: provider.name, model_id: provider.model_id } };
  });
  const router_settings = { num_retries: 0, ...retryPolicy(source, warnings), ...fallbacks(source, groups, warnings) };
  warnOfUnsupportedFields(source, warnings, { prices: true });
  const config = { model_list, router_settings };
  return { filename: `${slug(chain.name)}.litellm.yaml`, content_type: 'application/yaml', config, content: yamlText(config) };
};

const price = (name: string, per1m: number | null) => (per1m === null ? {} : { [name]: per1m / 1_000_000 });

function retryPolicy(source: Source, warnings: WarningList): { retry_policy?: Record<string, number> } {
  const retriesOf = (condition: Condition, index = 0) => reactionTo(source, index, condition).retries;
  const policy: Record<string, number> = {};
  for (const condition of Object.keys(retryNames) as Condition[]) {
    const retries = retriesOf(condition);
    const named = source.chain.fallback_rules.some((rule) => rule.condition === condition);
    if (retries > 0 || named) for (const name of retryNames[condition]!) policy[name] = retries;
  }
  if (retriesOf('server_error') > 0) {
    warnings.loss(
      'recent_only',
      null,
      'Older versions of LiteLLM ignore InternalServerErrorRetries and ServiceUnavailableErrorRetries, and so do not retry server errors.',
    );
  }
  if (retriesOf('auth_error') > 0) warnings.loss('auth_error', null, 'LiteLLM counts status 401 as an authentication error, but not 403.');
  for (const [condition, like] of Object.entries(likened) as [Condition, Condition | null][]) {
    if (retriesOf(condition) === (like === null ? 0 : retriesOf(like))) continue;
    const instead = like === null ? 'it is not retried' : `it is retried like ${like}`;
    warnings.loss('retries', null, `LiteLLM has no retry count for ${condition}: ${instead}.`);
  }
  warnOfOneRouter(source, warnings);
  if (Object.values(policy).some((retries) => retries > 0)) {
    warnings.loss(
      'waits',
      'fallback_rules',
      'LiteLLM chooses the waits between retries itself: from 0.5 s to 8 s, or as long as Retry-After says.',
    );
  }
  return Object.keys(policy).length === 0 ? {} : { retry_policy: policy };
}

/** Warns of what the router's single policy can't express: other policies of later providers and of single statuses. */
function warnOfOneRouter(source: Source, warnings: WarningList): void {
  source.routing.providers.forEach(({ name, decisions }, index) => {
    for (const { condition, max_retries, exceptions } of decisions) {
      if (max_retries !== reactionTo(source, 0, condition).retries) {
        warnings.loss(
          'one_policy',
          at(index),
          `LiteLLM has one retry policy for all providers: ${name} gets the policy of the first provider.`,
        );
      }
      const apart = exceptions.filter(
        (other) => other.max_retries !== max_retries || (other.next_provider === null) !== decisionEnds(source, index, condition),
      );
      if (apart.length > 0)
        warnings.loss(
          'status_codes',
          null,
          `LiteLLM treats every status of ${condition} alike; the chain treats ${statusList(apart)} differently.`,
        );
    }
  });
}

const statusList = (exceptions: readonly { status_code: number }[]) => listed(exceptions.map(({ status_code }) => String(status_code)));
const decisionEnds = (source: Source, index: number, condition: Condition) => !reactionTo(source, index, condition).failsOver;

/** The order of the backups. LiteLLM falls back on every failure or never. */
function fallbacks(source: Source, groups: string[], warnings: WarningList): Record<string, unknown> {
  const [first, ...backups] = groups;
  if (first === undefined || backups.length === 0) return {};
  const ends = source.routing.providers
    .slice(0, -1)
    .flatMap(({ decisions }) => decisions.filter(({ next_provider }) => next_provider === null).map(({ condition }) => condition));
  const all = source.routing.providers.slice(0, -1).reduce((sum, { decisions }) => sum + decisions.length, 0);
  if (ends.length === all) return {};
  if (!ends.includes('invalid_response') || !ends.includes('content_filter')) {
    const sentence =
      'LiteLLM returns an empty answer, or one with the finish reason content_filter, to the caller; it never falls back on it.';
    warnings.loss('empty_answer', null, sentence);
  }
  warnOfEnds([...new Set(ends)], 'LiteLLM falls back on any failure', warnings);
  const map = [{ [first]: backups }];
  return {
    fallbacks: map,
    ...(ends.includes('context_length') ? {} : { context_window_fallbacks: map }),
    ...(ends.includes('content_filter') ? {} : { content_policy_fallbacks: map }),
    ...(backups.length > defaultMaxFallbacks ? { max_fallbacks: backups.length } : {}),
  };
}
