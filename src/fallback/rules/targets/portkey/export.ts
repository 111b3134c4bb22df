import { type Condition, conditions, type Provider, type Rule } from '../../../model/chain.ts';
import { conditionOf, conditionOfStatus, knownStatuses, ofNoAnswer, ofStream, traitsOf } from '../../conditions.ts';
import { modelName, protocolOf } from '../../kinds.ts';
import { variableOf } from '../../params.ts';
import { statusesSentBy } from '../../provider-errors.ts';
import { listed, times } from '../../wording.ts';
import { addressed, addressVariable, hasNoKey, keyEnv } from '../kind-names.ts';
import { type ExportedProvider, type Exporter, type Source, warnOfOwnOrders, warnOfUnsupportedFields } from '../target.ts';
import { asRequested, hostOf, kindNames, paramNamesInPortkey } from './names.ts';

/** A provider, or a nested strategy with targets. */
type PortkeyTarget = Record<string, unknown>;

/** The host of a resource of Azure OpenAI. */
const azureHost = /^https:\/\/([a-z0-9-]+)\.openai\.azure\.com\/?$/i;

/** The parameters by their names in Portkey; those of Azure include the resource and the deployment. */
function paramsOf({ provider, loss }: ExportedProvider): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [param, value] of Object.entries(provider.params)) {
    if (param === 'api_base') continue;
    const variable = variableOf(value);
    const called = paramNamesInPortkey[param];
    if (called === undefined) loss('params', `params.${param}`, `${provider.name}: Portkey's configuration has no ${param}.`);
    else found[called] = variable === undefined ? value : `\${${variable}}`;
  }
  if (provider.provider !== 'azure') return found;
  const resource = azureHost.exec(provider.api_base ?? '')?.[1];
  const sentence = `${provider.name}: Portkey calls Azure by the name of a resource, which the address does not show.`;
  if (resource === undefined) loss('api_base', 'api_base', sentence);
  return { ...found, ...(resource === undefined ? {} : { resource_name: resource }), deployment_id: modelName(provider) };
}

/** The status that Portkey gives a failed connection. */
const brokenStatus = 500;

/** The statuses with which Portkey answers failed connections. */
const connectionStatuses = [brokenStatus, 503];

/**
 * A Portkey gateway configuration (header `x-portkey-config`). Portkey only considers the HTTP status; its own timeout
 * counts as 408. If providers fail over on different statuses, strategies are nested.
 * https://portkey.ai/docs/product/ai-gateway/fallbacks
 */
export const exportPortkey: Exporter = (source) => {
  const statuses = statusesOf(source);
  const targets = source.providers.map((exported): PortkeyTarget => {
    const { provider } = exported;
    const retry = retryOf(exported, statuses, source);
    // Portkey knows the provider and the address behind a virtual key.
    const isVirtual = provider.params.virtual_key !== undefined && provider.provider === null && provider.api_base === null;
    const { kind, base } = isVirtual ? { kind: 'openai', base: null } : addressed(kindNames, exported);
    const variable = addressVariable(provider);
    return {
      name: provider.name,
      provider: kind,
      ...(base === null || provider.provider === 'azure' ? {} : hostOf(kind, base)),
      ...(variable === undefined ? {} : { custom_host: `\${${variable}}` }),
      ...(hasNoKey(provider) ? {} : { api_key: `\${${keyEnv(exported)}}` }),
      ...paramsOf(exported),
      override_params: {
        ...(provider.model_id === asRequested ? {} : { model: modelName(provider) }),
        ...(provider.max_tokens === null ? {} : { max_tokens: provider.max_tokens }),
      },
      request_timeout: provider.timeout_ms,
      ...(retry === undefined ? {} : { retry }),
    };
  });
  warnOfSharedStatuses(source);
  for (const exported of source.providers) warnOfAnswers(exported);
  warnOfOwnOrders(source, 'Portkey');
  warnOfUnsupportedFields(source, { params: true });
  source.warnings.add(
    'keys_substituted',
    null,
    'Portkey does not expand references to environment variables; insert the keys where the configuration is loaded.',
  );
  return nest(
    targets,
    source.providers.map((exported) => failoverStatusesOf(exported, statuses)),
  );
};

/** The statuses on which a provider fails over; undefined for all failures. */
function failoverStatusesOf({ reactionTo }: ExportedProvider, statuses: readonly number[]): number[] | undefined {
  const connection = reactionTo('connection_error').failsOver;
  const found = statuses.filter(
    (status) => reactionTo(conditionOfStatus(status), status).failsOver || (connection && connectionStatuses.includes(status)),
  );
  return found.length === statuses.length ? undefined : found;
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
function retryOf({ provider: { name }, reactionTo, loss }: ExportedProvider, statuses: readonly number[], source: Source) {
  const reactions = statuses.map((status) => ({ status, ...reactionTo(conditionOfStatus(status), status) }));
  const connection = reactionTo('connection_error');
  const retried = reactions.filter(({ retries }) => retries > 0);
  const attempts = Math.max(connection.retries, ...reactions.map(({ retries }) => retries));
  if (attempts === 0) return undefined;
  if (attempts > 5) loss('many_retries', null, `${name}: Portkey's hosted gateway retries at most 5 times.`);
  const isMixed = retried.some(({ retries }) => retries !== attempts);
  const largest = `${name}: Portkey has one number of retries for all statuses; the export has the largest, ${attempts}.`;
  if (isMixed) loss('one_budget', null, largest);
  if (connection.retries !== attempts) {
    const chain = connection.retries === 0 ? 'never retries it' : `retries it ${times(connection.retries)}`;
    const sentence = `${name}: Portkey retries a failed connection (connection_error) ${times(attempts)}, regardless of the status; the chain ${chain}.`;
    loss('connection_retries', null, sentence);
  }
  for (const { rule } of [connection, ...retried]) warnOfWaits(rule, attempts, source);
  const obeys = retried.some(({ status, rule }) => status === 429 && rule?.respect_retry_after === true);
  return { attempts, on_status_codes: retried.map(({ status }) => status), ...(obeys ? { use_retry_after_header: true } : {}) };
}

/** Warns that Portkey waits 1, 2, 4 ... seconds. */
function warnOfWaits(rule: Rule | null, attempts: number, { warnings }: Source): void {
  if (rule === null || rule.action !== 'retry') return;
  const longest = 1000 * 2 ** (attempts - 1);
  const grows = rule.backoff === 'exponential' || attempts === 1;
  if (rule.wait_ms === 1000 && grows && rule.max_wait_ms! >= longest && !rule.respect_retry_after) return;
  const sentence =
    'Portkey waits 1 s before the first retry and twice as long before each further one, not as long as the chain; it obeys Retry-After only with status 429 and below a minute.';
  warnings.loss('waits', 'fallback_rules', sentence);
}

/** The statuses with which a provider fails in a way and which Portkey takes for another condition, since it sees nothing else. */
export function sharedStatuses(provider: Provider, condition: Condition): number[] {
  if (condition === ofNoAnswer.broken) return [brokenStatus];
  const protocol = protocolOf(provider);
  const sent = statusesSentBy(provider.provider ?? protocol, condition, protocol);
  // A path that does not exist has the status of a model that does not.
  const silent = knownStatuses.filter((status) => conditionOf(status) === condition);
  return [...new Set([...sent, ...silent])].filter((status) => status >= 300 && conditionOfStatus(status) !== condition);
}

/** Warns of conditions that Portkey can't distinguish, because they share a status with others. */
function warnOfSharedStatuses({ providers, warnings }: Source): void {
  for (const condition of conditions) {
    const differing = providers.flatMap(({ provider, reactionTo }) =>
      sharedStatuses(provider, condition).flatMap((status) => {
        const hidden = reactionTo(condition, status);
        const seen = reactionTo(conditionOfStatus(status), status);
        const differs = hidden.failsOver !== seen.failsOver || (condition !== ofNoAnswer.broken && hidden.retries !== seen.retries);
        return differs ? [{ status, name: provider.name }] : [];
      }),
    );
    for (const [status, found] of Map.groupBy(differing, (one) => one.status)) {
      const whose = found.length === providers.length ? '' : ` of ${listed(found.map(({ name }) => name))}`;
      const sentence = `Portkey sees only status ${status}${whose}, so it treats ${condition} like ${conditionOfStatus(status)}.`;
      warnings.loss('same_status', null, sentence);
    }
  }
}

/** Warns of answers that Portkey returns to the caller though the chain goes on. */
function warnOfAnswers({ provider: { name }, isLast, reactionTo, loss }: ExportedProvider): void {
  const goesOn = (condition: Condition) => {
    const { retries, failsOver } = reactionTo(condition);
    return retries > 0 || (failsOver && !isLast);
  };
  for (const condition of conditions) {
    const { statuses, finishReasons } = traitsOf[condition];
    if (!statuses.includes(200) || !goesOn(condition)) continue;
    const what =
      condition === ofStream.broken
        ? `a stream that ends early (${condition})`
        : finishReasons.length === 0
          ? `a broken or empty answer (${condition})`
          : `an answer with the finish reason ${condition}`;
    loss(condition, null, `${name}: Portkey returns ${what} to the caller; it never retries it or fails over.`);
  }
}
