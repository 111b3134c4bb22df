import type { Condition, Provider } from '../../model/chain.ts';
import { conditionOf, knownStatuses } from '../conditions.ts';
import { modelName } from '../kinds.ts';
import { variableOf } from '../params.ts';
import type { WarningList } from '../warning-list.ts';
import { times } from '../wording.ts';
import { addressed, hasNoKey, keyEnv } from './kind-names.ts';
import { at, type Exporter, jsonText, reactionTo, type Source, slug, slugs, warnOfUnsupportedFields } from './target.ts';

/** A provider, or a nested strategy with targets. */
type PortkeyTarget = Record<string, unknown>;

/** The model of a provider that is called with the model of each request. */
export const asRequested = 'as-requested';

/** Portkey's names of parameters. */
export const paramNamesInPortkey: Readonly<Record<string, string>> = {
  api_version: 'api_version',
  aws_region_name: 'aws_region',
  aws_access_key_id: 'aws_access_key_id',
  aws_secret_access_key: 'aws_secret_access_key',
  aws_session_token: 'aws_session_token',
  vertex_project: 'vertex_project_id',
  vertex_location: 'vertex_region',
  organization: 'openai_organization',
  virtual_key: 'virtual_key',
};

/** The host of a resource of Azure OpenAI. */
export const azureHost = /^https:\/\/([a-z0-9-]+)\.openai\.azure\.com\/?$/i;

/** The parameters by their names in Portkey; those of Azure include the resource and the deployment. */
function paramsOf(provider: Provider, index: number, warnings: WarningList): Record<string, unknown> {
  const { name, params } = provider;
  const found: Record<string, unknown> = {};
  for (const [param, value] of Object.entries(params)) {
    const variable = variableOf(value);
    const called = paramNamesInPortkey[param];
    if (called === undefined) warnings.loss('params', at(index, `params.${param}`), `${name}: Portkey's configuration has no ${param}.`);
    else found[called] = variable === undefined ? value : `\${${variable}}`;
  }
  if (provider.provider !== 'azure') return found;
  const resource = azureHost.exec(provider.api_base ?? '')?.[1];
  if (resource === undefined)
    warnings.loss(
      'api_base',
      at(index, 'api_base'),
      `${name}: Portkey calls Azure by the name of a resource, which the address does not show.`,
    );
  return { ...found, ...(resource === undefined ? {} : { resource_name: resource }), deployment_id: modelName(provider) };
}

/** The statuses with which Portkey answers failed connections. */
const connectionStatuses = [500, 503];

/**
 * A Portkey gateway configuration (header `x-portkey-config`). Portkey only considers the HTTP status; its own timeout
 * counts as 408. If providers fail over on different statuses, strategies are nested.
 * https://portkey.ai/docs/product/ai-gateway/fallbacks
 */
export const portkey: Exporter = (source, warnings) => {
  const { chain } = source;
  const names = slugs(chain.providers);
  const targets = chain.providers.map((provider, index): PortkeyTarget => {
    const retry = retryOf(source, index, warnings);
    const { kind, base } = addressed('portkey', provider, index, warnings);
    return {
      name: provider.name,
      provider: kind,
      ...(base === null || provider.provider === 'azure' ? {} : { custom_host: base }),
      ...(hasNoKey(provider) ? {} : { api_key: `\${${keyEnv(provider, index, names[index]!, warnings)}}` }),
      ...paramsOf(provider, index, warnings),
      override_params: {
        ...(provider.model_id === asRequested ? {} : { model: modelName(provider) }),
        ...(provider.max_tokens === null ? {} : { max_tokens: provider.max_tokens }),
      },
      request_timeout: provider.timeout_ms,
      ...(retry === undefined ? {} : { retry }),
    };
  });
  warnOfSharedStatuses(source, warnings);
  warnOfUnsupportedFields(source, warnings, { params: true });
  warnings.add(
    'keys_substituted',
    null,
    'Portkey does not expand references to environment variables; insert the keys where the configuration is loaded.',
  );
  const config = nest(
    targets,
    chain.providers.map((_, index) => failoverStatusesOf(source, index)),
  );
  return { filename: `${slug(chain.name)}.portkey.json`, content_type: 'application/json', config, content: jsonText(config) };
};

/** The statuses on which provider `index` fails over; undefined for all failures. */
function failoverStatusesOf(source: Source, index: number): number[] | undefined {
  const reaction = (status: number) => reactionTo(source, index, conditionOf(status), status);
  const connection = reactionTo(source, index, 'connection_error').failsOver;
  const statuses = statusesOf(source).filter((status) => reaction(status).failsOver || (connection && connectionStatuses.includes(status)));
  return statuses.length === statusesOf(source).length ? undefined : statuses;
}

/** The strategies: a single one if all providers fail over on the same statuses, otherwise each contains the rest of the chain. */
function nest(targets: PortkeyTarget[], failoverStatuses: (number[] | undefined)[], from = 0): PortkeyTarget {
  const [codes] = failoverStatuses.slice(from);
  const strategy = { mode: 'fallback', ...(codes === undefined ? {} : { on_status_codes: codes }) };
  const rest = failoverStatuses.slice(from, -1);
  if (rest.every((other) => String(other) === String(codes))) return { strategy, targets: targets.slice(from) };
  return { strategy, targets: [targets[from]!, nest(targets, failoverStatuses, from + 1)] };
}

function statusesOf({ chain }: Source): number[] {
  const named = chain.fallback_rules.flatMap(({ status_codes }) => status_codes ?? []).filter((status) => status >= 300);
  return [...new Set([...knownStatuses, ...named])].sort((a, b) => a - b);
}

/** The retries of a provider: a single number for all retried statuses. */
function retryOf(source: Source, index: number, warnings: WarningList): { attempts: number; on_status_codes: number[] } | undefined {
  const reactions = statusesOf(source).map((status) => ({ status, ...reactionTo(source, index, conditionOf(status), status) }));
  const connection = reactionTo(source, index, 'connection_error');
  const retried = reactions.filter(({ retries }) => retries > 0);
  const attempts = Math.max(connection.retries, ...reactions.map(({ retries }) => retries));
  const { name } = source.chain.providers[index]!;
  if (attempts === 0) return undefined;
  if (attempts > 5) warnings.loss('many_retries', at(index), `${name}: Portkey's hosted gateway retries at most 5 times.`);
  if (retried.some(({ retries }) => retries !== attempts)) {
    warnings.loss(
      'one_budget',
      at(index),
      `${name}: Portkey has one number of retries for all statuses; the export has the largest, ${attempts}.`,
    );
  }
  if (connection.retries !== attempts) {
    warnings.loss(
      'connection_retries',
      at(index),
      `${name}: Portkey retries a failed connection ${times(attempts)}, regardless of the status; the chain ${connection.retries === 0 ? 'never retries it' : `retries it ${times(connection.retries)}`}.`,
    );
  }
  for (const { rule } of [connection, ...retried]) warnOfWaits(rule, attempts, warnings);
  return { attempts, on_status_codes: retried.map(({ status }) => status) };
}

/** Warns that Portkey waits 1, 2, 4 ... seconds and ignores Retry-After. */
function warnOfWaits(rule: Source['chain']['fallback_rules'][number] | null, attempts: number, warnings: WarningList): void {
  if (rule === null || rule.action !== 'retry') return;
  const longest = 1000 * 2 ** (attempts - 1);
  const grows = rule.backoff === 'exponential' || attempts === 1;
  if (rule.wait_ms !== 1000 || !grows || rule.max_wait_ms! < longest || rule.respect_retry_after) {
    warnings.loss(
      'waits',
      'fallback_rules',
      "Portkey waits 1 s before the first retry and twice as long before each further one; it ignores the chain's waits and Retry-After.",
    );
  }
}

/** Warns of conditions that Portkey can't distinguish, because they share a status or have none. */
function warnOfSharedStatuses(source: Source, warnings: WarningList): void {
  const pairs: [Condition, number, string][] = [
    ['context_length', 400, 'invalid_request'],
    ['content_filter', 400, 'invalid_request'],
    ['quota_exceeded', 429, 'rate_limit'],
    ['connection_error', 500, 'server_error'],
  ];
  source.chain.providers.forEach(({ name }, index) => {
    const last = index === source.chain.providers.length - 1;
    for (const [condition, status, other] of pairs) {
      const hidden = reactionTo(source, index, condition, status);
      const seen = reactionTo(source, index, conditionOf(status), status);
      if (hidden.failsOver !== seen.failsOver || (condition !== 'connection_error' && hidden.retries !== seen.retries)) {
        const sentence = `Portkey sees only status ${status}, so it treats ${condition} like ${other}.`;
        warnings.loss('same_status', null, sentence);
      }
    }
    const broken = reactionTo(source, index, 'invalid_response');
    if (broken.retries > 0 || (broken.failsOver && !last)) {
      warnings.loss(
        'invalid_response',
        at(index),
        `${name}: Portkey returns a broken or empty answer to the caller; it never retries it or fails over.`,
      );
    }
    const filtered = reactionTo(source, index, 'content_filter');
    if (filtered.retries > 0 || (filtered.failsOver && !last)) {
      warnings.loss('content_filter', at(index), `${name}: Portkey returns an answer with the finish reason content_filter to the caller.`);
    }
  });
}
