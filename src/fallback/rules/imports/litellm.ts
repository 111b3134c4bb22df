import { invalid } from '../../../kit/errors.ts';
import { type Condition, maxProviders, maxTimeoutMs } from '../../model/chain.ts';
import { kindNamed } from '../exports/kind-names.ts';
import { modelName } from '../kinds.ts';
import { isSecret, paramNames, variableOf } from '../params.ts';
import type { WarningList } from '../warning-list.ts';
import { listed, times } from '../wording.ts';
import { type Ends, orderOf } from './litellm-fallbacks.ts';
import { leaveOutUnknown, listAt, numberAt, objectAt, type Shape, textAt, uniqueName } from './shape.ts';

/** The entries of LiteLLM's retry policy, in the order of their rules in a chain. */
const policyNames: readonly [string, Condition][] = [
  ['RateLimitErrorRetries', 'rate_limit'],
  ['TimeoutErrorRetries', 'timeout'],
  ['AuthenticationErrorRetries', 'auth_error'],
  ['BadRequestErrorRetries', 'invalid_request'],
  ['NotFoundErrorRetries', 'invalid_request'],
  ['ContentPolicyViolationErrorRetries', 'content_filter'],
  ['InternalServerErrorRetries', 'server_error'],
  ['ServiceUnavailableErrorRetries', 'server_error'],
];

/** LiteLLM's waits between retries, as fields of a rule. */
const waits = { wait_ms: 500, max_wait_ms: 8_000 };

/** What LiteLLM does if a file does not say it (version 1.106.2). */
const usual = { retries: 2, timeoutSeconds: 6000 };

/** The conditions that `num_retries` does not hold for. */
const notRetried: readonly Condition[] = ['auth_error', 'quota_exceeded', 'context_length', 'content_filter', 'invalid_request'];

const routerNames = [
  ...['num_retries', 'retry_policy', 'model_group_retry_policy', 'timeout', 'request_timeout'],
  ...['fallbacks', 'default_fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks', 'max_fallbacks', 'disable_cooldowns'],
];
const parameterNames = [
  ...['model', 'custom_llm_provider', 'api_base', 'api_key', 'timeout', 'num_retries', 'order', 'extra_headers', 'headers'],
  ...['max_tokens', 'input_cost_per_token', 'output_cost_per_token'],
];

/** A model of the file with its group. */
interface Deployment {
  group: string;
  index: number;
  /** Its place among the models of its group; null if LiteLLM may choose any. */
  order: number | null;
  /** Its own number of retries. */
  retries: number | undefined;
  provider: Shape & { name: string };
}

/** Reads a LiteLLM proxy configuration: the chain starts at `group`, or at the one that only has fallbacks, and follows `fallbacks`. */
export function readLitellm(value: unknown, findings: WarningList, group?: string): Shape {
  const file = objectAt(value, 'content');
  if (file.include !== undefined)
    throw invalid('include', 'include names other files, which an import does not have; put their models and settings into this file.');
  leaveOutUnknown(findings, file, ['model_list', 'router_settings', 'litellm_settings'], '');
  const router = settingsOf(file, findings);
  const timeout = secondsAt(
    router.timeout ?? router.request_timeout,
    router.timeout === undefined ? 'request_timeout' : 'timeout',
    findings,
  );
  const taken = new Set<string>();
  const deployments = listAt(file.model_list, 'model_list', 1000).map((entry, index) =>
    readDeployment(entry, index, { taken, timeout, findings }),
  );
  const { first, order, ...ends } = orderOf(router, [...new Set(deployments.map((deployment) => deployment.group))], group, findings);
  const found = order.flatMap((name) => deploymentsOf(name, deployments, findings));
  const providers = found.map(({ provider }) => provider);
  for (const { index, group: left } of deployments.filter((deployment) => !order.includes(deployment.group))) {
    findings.add('left_out', `model_list.${index}`, `${left} is not imported, because the fallbacks of ${first} do not lead to it.`);
  }
  if (timeout === undefined && providers.some(({ timeout_ms }) => timeout_ms === undefined))
    findings.add('default', 'timeout', `No timeout is set; LiteLLM then waits up to ${usual.timeoutSeconds} s, and the chain 30 s.`);
  if (providers.length > maxProviders) listAt(providers, 'model_list', maxProviders);
  return {
    name: first,
    providers: providers.map((provider, priority) => ({ ...provider, priority })),
    fallback_rules: rulesOf(router, found, ends, findings),
  };
}

/** The router's settings; `fallbacks`, `num_retries` and others may be in either section. */
function settingsOf(file: Shape, findings: WarningList): Shape {
  const found: Record<string, unknown> = {};
  for (const section of ['litellm_settings', 'router_settings']) {
    if (file[section] === undefined || file[section] === null) continue;
    const settings = objectAt(file[section], section);
    leaveOutUnknown(findings, settings, routerNames, section);
    Object.assign(found, settings);
  }
  return found;
}

interface Reading {
  taken: Set<string>;
  /** The timeout of models without one, in milliseconds. */
  timeout: number | undefined;
  findings: WarningList;
}

function readDeployment(entry: unknown, index: number, { taken, timeout, findings }: Reading): Deployment {
  const path = `model_list.${index}`;
  const { model_name, litellm_params, model_info, ...others } = objectAt(entry, path);
  leaveOutUnknown(findings, others, [], path);
  const group = textAt(model_name, `${path}.model_name`);
  const at = `${path}.litellm_params`;
  const parameters = objectAt(litellm_params, at);
  const info = model_info === undefined || model_info === null ? {} : objectAt(model_info, `${path}.model_info`);
  const name = typeof info.display_name === 'string' && info.display_name !== '' ? info.display_name : group;
  const model = readModel(textAt(parameters.model, `${at}.model`), parameters.custom_llm_provider, info.model_id, `${at}.model`, findings);
  const params = readParams(parameters, model.provider ?? null, at, findings);
  const address = variableOf(parameters.api_base) === undefined ? parameters.api_base : undefined;
  const provider = {
    ...model,
    api_base: model.provider === 'anthropic' && typeof address === 'string' ? anthropicBase(address) : (address ?? undefined),
    api_key_env: readKey(parameters.api_key, /^os\.environ\/([A-Za-z_]\w*)$/, `${at}.api_key`, findings),
    timeout_ms: secondsAt(parameters.timeout, `${at}.timeout`, findings) ?? timeout,
    max_tokens: numberAt(parameters.max_tokens, `${at}.max_tokens`),
    input_cost_per_1m: per1m(numberAt(parameters.input_cost_per_token, `${at}.input_cost_per_token`)),
    output_cost_per_1m: per1m(numberAt(parameters.output_cost_per_token, `${at}.output_cost_per_token`)),
    params: Object.keys(params).length === 0 ? undefined : params,
  };
  const present = Object.fromEntries(Object.entries(provider).filter(([, member]) => member !== undefined));
  return {
    group,
    index,
    order: numberAt(parameters.order, `${at}.order`) ?? null,
    retries: numberAt(parameters.num_retries, `${at}.num_retries`),
    provider: { name: uniqueName(name, taken), ...present },
  };
}

/** LiteLLM appends `/v1/messages` to the address of Anthropic's API. */
const anthropicBase = (address: string) => `${address.replace(/\/+$/, '').replace(/\/v1(\/messages)?$/, '')}/v1`;

/** A number of seconds, or its text, in milliseconds and at most ten minutes. */
function secondsAt(value: unknown, field: string, findings: WarningList): number | undefined {
  if (value === undefined || value === null) return undefined;
  const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof seconds !== 'number' || !(seconds > 0)) {
    findings.add('left_out', field, `${field} is not imported, because it is not a number of seconds.`);
    return undefined;
  }
  if (seconds > maxTimeoutMs / 1000)
    findings.add('reduced', field, `${field} is reduced to ${maxTimeoutMs / 1000} s, the longest timeout of a chain.`);
  return Math.min(Math.max(Math.round(seconds * 1000), 1), maxTimeoutMs);
}

/** The price per million tokens for a price per token, rounded to twelve digits to remove the floating-point error. */
const per1m = (price: number | undefined) => (price === undefined ? undefined : Number((price * 1_000_000).toPrecision(12)));

/** The parameters of the model's kind; others, and secrets, are findings. */
function readParams(parameters: Shape, kind: string | null, at: string, findings: WarningList): Record<string, unknown> {
  const names = (paramNames(kind) ?? ['organization']).filter(
    (name) => name !== 'headers' && name !== 'virtual_key' && name !== 'api_base',
  );
  leaveOutUnknown(findings, parameters, [...parameterNames, ...names], at);
  const params: Record<string, unknown> = {};
  const take = (into: Record<string, unknown>, name: string, value: unknown, field: string) => {
    if (value === undefined || value === null) return;
    if (isSecret(name, value) || typeof value === 'object')
      findings.add(
        'key_left_out',
        field,
        `${field} is not imported, because it may hold a secret and is not a reference to an environment variable.`,
      );
    else into[name] = value;
  };
  for (const name of names) take(params, name, parameters[name], `${at}.${name}`);
  if (variableOf(parameters.api_base) !== undefined) params.api_base = parameters.api_base;
  const headers = parameters.extra_headers ?? parameters.headers;
  if (headers !== undefined && headers !== null) {
    const kept: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(objectAt(headers, `${at}.extra_headers`)))
      take(kept, name, value, `${at}.extra_headers.${name}`);
    if (Object.keys(kept).length > 0) params.headers = kept;
  }
  return params;
}

/** The kinds that LiteLLM infers from the name of a model without one (version 1.106.2). */
const inferred: readonly [RegExp, string][] = [
  [/^(ft:)?(gpt-|chatgpt-|o\d)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'vertex_ai'],
  [/^([a-z-]+\.)?anthropic\.claude-/, 'bedrock'],
];

/** The model and its provider kind, which LiteLLM writes as `provider/model`. */
function readModel(
  model: string,
  provider: unknown,
  modelId: unknown,
  field: string,
  findings: WarningList,
): { model_id: string; provider?: string } {
  const named = typeof provider === 'string' ? provider : model.slice(0, Math.max(model.indexOf('/'), 0));
  const guess = named === '' ? inferred.find(([pattern]) => pattern.test(model))?.[1] : undefined;
  const kind = guess ?? kindNamed('litellm', named);
  if (kind === null) {
    const isKind = /^[a-z0-9][a-z0-9._-]{0,63}$/.test(named);
    findings.add(
      'provider_kind',
      field,
      `${field} ${named === '' ? 'does not name a provider' : `names the unknown provider ${named}`}; the model is imported unchanged.`,
    );
    return { model_id: model, ...(isKind ? { provider: named } : {}) };
  }
  const sent = model.startsWith(`${named}/`) ? model.slice(named.length + 1) : model;
  // Exports keep the chain's original spelling of the model, with or without its kind.
  const written = typeof modelId === 'string' && modelName({ model_id: modelId, provider: kind, api_base: null }) === sent ? modelId : sent;
  return { model_id: written, provider: kind };
}

/** The variable of a key reference. A key itself is never imported or quoted. */
export function readKey(value: unknown, reference: RegExp, field: string, findings: WarningList): string | undefined {
  if (value === undefined || value === null) return undefined;
  const [, name] = typeof value === 'string' ? (reference.exec(value) ?? []) : [];
  if (name === undefined)
    findings.add(
      'key_left_out',
      field,
      `${field} is not imported, because it is not a reference to an environment variable and keys are never stored. Set api_key_env to the name of a variable.`,
    );
  return name;
}

function deploymentsOf(group: string, deployments: readonly Deployment[], findings: WarningList): Deployment[] {
  const found = deployments.filter((deployment) => deployment.group === group);
  if (found.length === 0) findings.add('unknown_model', 'fallbacks', `fallbacks names ${group}, which is not in model_list.`);
  if (new Set(found.map(({ order }) => order)).size < found.length) {
    findings.add(
      'load_balanced',
      'model_list',
      `LiteLLM balances the load between the ${found.length} models named ${group}; the chain tries them in turn.`,
    );
  }
  return found.sort(
    (one, other) => (one.order ?? Number.POSITIVE_INFINITY) - (other.order ?? Number.POSITIVE_INFINITY) || one.index - other.index,
  );
}

/** The retry rules of a policy; a refused or broken connection and a broken answer count as server errors. */
function policyRules(value: unknown, field: string, named: Shape, findings: WarningList): { rules: Shape[]; zero: Condition[] } {
  if (value === undefined || value === null) return { rules: [], zero: [] };
  const policy = objectAt(value, field);
  leaveOutUnknown(
    findings,
    policy,
    policyNames.map(([name]) => name),
    field,
  );
  const retries = new Map<Condition, number>();
  for (const [name, condition] of policyNames) {
    const count = numberAt(policy[name], `${field}.${name}`);
    if (count !== undefined) retries.set(condition, Math.max(count, retries.get(condition) ?? 0));
  }
  for (const [condition, count] of retries) {
    const names = policyNames.flatMap(([name, of]) => (of === condition ? [name] : []));
    if (names.some((name) => (policy[name] ?? 0) !== count))
      findings.add('combined', field, `LiteLLM has ${listed(names)}; the chain retries every ${condition} ${times(count)}.`);
  }
  const asServer = retries.get('server_error');
  if (asServer !== undefined && asServer > 0)
    for (const condition of ['connection_error', 'invalid_response'] as const) retries.set(condition, asServer);
  const rules = [...retries]
    .filter(([, count]) => count > 0)
    .map(([condition, max_retries]) => ({ condition, action: 'retry', max_retries, ...named, ...waits }));
  return { rules, zero: [...retries].filter(([, count]) => count === 0).map(([condition]) => condition) };
}

function rulesOf(router: Shape, found: readonly Deployment[], { only, never }: Ends, findings: WarningList): Shape[] {
  const hasBackups = found.length > 1;
  const byGroup = router.model_group_retry_policy ?? undefined;
  const ofGroups = Object.entries(byGroup === undefined ? {} : objectAt(byGroup, 'model_group_retry_policy')).flatMap(([group, policy]) => {
    const providers = found.filter((deployment) => deployment.group === group).map(({ provider }) => provider.name);
    return providers.length === 0 ? [] : policyRules(policy, `model_group_retry_policy.${group}`, { providers }, findings).rules;
  });
  const { rules, zero } = policyRules(router.retry_policy, 'retry_policy', {}, findings);
  const general = numberAt(router.num_retries, 'num_retries');
  if (general === undefined)
    findings.add('default', 'num_retries', `num_retries is not set; LiteLLM then retries ${usual.retries} times, and so does the chain.`);
  const counts = found.map(({ retries }) => retries ?? general ?? usual.retries);
  const isRetried = (condition: Condition) => rules.some((rule) => rule.condition === condition);
  const ends = hasBackups ? 'failover' : 'fail';
  // Only these conditions fail over; all others end the chain.
  const then = only === null || !hasBackups ? {} : { then: 'fail' };
  const action = (condition: Condition) => ((only === null || only.includes(condition)) && !never.includes(condition) ? ends : 'fail');
  const most = Math.max(...counts);
  const exempt = most === 0 ? (only ?? (hasBackups ? never : [])) : notRetried;
  const single = [...new Set([...zero.filter(() => most > 0), ...exempt])].filter((condition) => !isRetried(condition));
  const last = [...new Set(counts)].map((max_retries): Shape => {
    const names = found.filter((_, index) => counts[index] === max_retries).map(({ provider }) => provider.name);
    const named = names.length === found.length ? {} : { providers: names };
    if (max_retries > 0) return { condition: 'any', action: 'retry', max_retries, ...named, ...waits, ...then };
    return { condition: 'any', action: only === null ? ends : 'fail', ...named };
  });
  return [
    ...[...ofGroups, ...rules].map((rule) => ({ ...rule, ...(action(rule.condition as Condition) === 'fail' ? then : {}) })),
    ...single.map((condition) => ({ condition, action: action(condition) })),
    ...(most === 0 && !hasBackups ? [] : last),
  ];
}
