import { invalid } from '../../../../kit/errors.ts';
import { type Condition, maxProviders, maxTimeoutMs } from '../../../model/chain.ts';
import { filled, withoutNulls } from '../../chain.ts';
import { modelName } from '../../kinds.ts';
import { isSecret, paramNames, variableOf } from '../../params.ts';
import { listed, times, uniqueName } from '../../wording.ts';
import { kindNamed } from '../kind-names.ts';
import { type Draft, requireAtMost, Section } from '../section.ts';
import { type Ends, orderOf } from './fallbacks.ts';
import { kindNames, retryNames } from './names.ts';

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
  provider: Draft & { name: string };
}

/** Reads a LiteLLM proxy configuration: the chain starts at `group`, or at the one that only has fallbacks, and follows `fallbacks`. */
export function importLitellm(file: Section, group?: string): Draft {
  const { findings } = file;
  if (file.fields.include !== undefined)
    throw invalid('include', 'include names other files, which an import does not have; put their models and settings into this file.');
  file.leaveOutUnknown(['model_list', 'router_settings', 'litellm_settings']);
  const router = settingsOf(file);
  const timeout = milliseconds(router, router.get('timeout') === undefined ? 'request_timeout' : 'timeout');
  const taken = new Set<string>();
  const deployments = file.sections('model_list', 1000).map((entry, index) => readDeployment(entry, index, taken, timeout));
  const { first, order, ...ends } = orderOf(router, [...new Set(deployments.map((deployment) => deployment.group))], group);
  const found = order.flatMap((name) => deploymentsOf(name, deployments, file));
  const providers = found.map(({ provider }) => provider);
  for (const { index, group: left } of deployments.filter((deployment) => !order.includes(deployment.group))) {
    findings.add('left_out', `model_list.${index}`, `${left} is not imported, because the fallbacks of ${first} do not lead to it.`);
  }
  if (timeout === undefined && providers.some(({ timeout_ms }) => timeout_ms === undefined))
    findings.add('default', 'timeout', `No timeout is set; LiteLLM then waits up to ${usual.timeoutSeconds} s, and the chain 30 s.`);
  requireAtMost(maxProviders, providers, 'model_list');
  return {
    name: first,
    providers: providers.map((provider, priority) => ({ ...provider, priority })),
    fallback_rules: rulesOf(router, found, ends),
  };
}

/** The router's settings; `fallbacks`, `num_retries` and others may be in either section. */
function settingsOf(file: Section): Section {
  const sections = ['litellm_settings', 'router_settings'].flatMap((name) => file.optional(name) ?? []);
  for (const section of sections) section.leaveOutUnknown(routerNames);
  return new Section(Object.assign({}, ...sections.map(({ fields }) => fields)), '', file.findings);
}

/** @param timeout the timeout of models without one, in milliseconds */
function readDeployment(entry: Section, index: number, taken: Set<string>, timeout: number | undefined): Deployment {
  entry.leaveOutUnknown(['model_name', 'litellm_params', 'model_info']);
  const group = entry.text('model_name');
  const parameters = entry.section('litellm_params');
  const { display_name, model_id } = entry.optional('model_info')?.fields ?? {};
  const name = typeof display_name === 'string' && display_name !== '' ? display_name : group;
  const model = readModel(parameters, model_id);
  const { api_base } = parameters.fields;
  const address = variableOf(api_base) === undefined ? api_base : undefined;
  const params = readParams(parameters, model.provider ?? null);
  const provider = withoutNulls({
    ...model,
    api_base: model.provider === 'anthropic' && typeof address === 'string' ? anthropicBase(address) : address,
    api_key_env: parameters.keyVariable('api_key', /^os\.environ\/([A-Za-z_]\w*)$/),
    timeout_ms: milliseconds(parameters, 'timeout') ?? timeout,
    max_tokens: parameters.number('max_tokens'),
    input_cost_per_1m: per1m(parameters.number('input_cost_per_token')),
    output_cost_per_1m: per1m(parameters.number('output_cost_per_token')),
    params: filled(params),
  });
  const order = parameters.number('order') ?? null;
  return { group, index, order, retries: parameters.number('num_retries'), provider: { name: uniqueName(name, taken), ...provider } };
}

/** LiteLLM appends `/v1/messages` to the address of Anthropic's API. */
const anthropicBase = (address: string) => `${address.replace(/\/+$/, '').replace(/\/v1(\/messages)?$/, '')}/v1`;

/** A number of seconds, or its text, in milliseconds and at most ten minutes. */
function milliseconds(section: Section, name: string): number | undefined {
  const value = section.get(name);
  if (value === undefined) return undefined;
  const seconds = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  if (typeof seconds !== 'number' || !(seconds > 0)) {
    section.leaveOut(name, 'it is not a number of seconds');
    return undefined;
  }
  if (seconds > maxTimeoutMs / 1000)
    section.note('reduced', name, `is reduced to ${maxTimeoutMs / 1000} s, the longest timeout of a chain.`);
  return Math.min(Math.max(Math.round(seconds * 1000), 1), maxTimeoutMs);
}

/** The price per million tokens for a price per token, rounded to twelve digits to remove the floating-point error. */
const per1m = (price: number | undefined) => (price === undefined ? undefined : Number((price * 1_000_000).toPrecision(12)));

/** The parameters of the model's kind; others, and secrets, are findings. */
function readParams(parameters: Section, kind: string | null): Draft {
  const names = (paramNames(kind) ?? ['organization']).filter((name) => !['headers', 'virtual_key', 'api_base'].includes(name));
  parameters.leaveOutUnknown([...parameterNames, ...names]);
  const { api_base } = parameters.fields;
  const headers = parameters.get('extra_headers') ?? parameters.get('headers');
  const kept = headers === undefined ? {} : withoutSecrets(new Section(headers, parameters.at('extra_headers'), parameters.findings));
  return withoutNulls({
    ...withoutSecrets(parameters, names),
    ...(variableOf(api_base) === undefined ? {} : { api_base }),
    headers: filled(kept),
  });
}

/** The named fields; secrets are findings. */
function withoutSecrets(section: Section, names = Object.keys(section.fields)): Draft {
  const why = 'it may hold a secret and is not a reference to an environment variable';
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = section.get(name);
      if (value === undefined) return [];
      if (!isSecret(name, value) && typeof value !== 'object') return [[name, value]];
      section.leaveOut(name, why, 'key_left_out');
      return [];
    }),
  );
}

/** The kinds that LiteLLM infers from the name of a model without one (version 1.106.2). */
const inferred: readonly [RegExp, string][] = [
  [/^(ft:)?(gpt-|chatgpt-|o\d)/, 'openai'],
  [/^claude-/, 'anthropic'],
  [/^gemini-/, 'vertex_ai'],
  [/^([a-z-]+\.)?anthropic\.claude-/, 'bedrock'],
];

/** The model and its provider kind, which LiteLLM writes as `provider/model`. */
function readModel(parameters: Section, modelId: unknown): { model_id: string; provider?: string } {
  const model = parameters.text('model');
  const { custom_llm_provider: provider } = parameters.fields;
  const named = typeof provider === 'string' ? provider : model.slice(0, Math.max(model.indexOf('/'), 0));
  const guess = named === '' ? inferred.find(([pattern]) => pattern.test(model))?.[1] : undefined;
  const kind = guess ?? kindNamed(kindNames, named);
  if (kind === null) {
    const isKind = /^[a-z0-9][a-z0-9._-]{0,63}$/.test(named);
    const what = named === '' ? 'does not name a provider' : `names the unknown provider ${named}`;
    parameters.note('provider_kind', 'model', `${what}; the model is imported unchanged.`);
    return { model_id: model, ...(isKind ? { provider: named } : {}) };
  }
  const sent = model.startsWith(`${named}/`) ? model.slice(named.length + 1) : model;
  // Exports keep the chain's original spelling of the model, with or without its kind.
  const written = typeof modelId === 'string' && modelName({ model_id: modelId, provider: kind, api_base: null }) === sent ? modelId : sent;
  return { model_id: written, provider: kind };
}

function deploymentsOf(group: string, deployments: readonly Deployment[], { findings }: Section): Deployment[] {
  const found = deployments.filter((deployment) => deployment.group === group);
  if (found.length === 0) findings.add('unknown_model', 'fallbacks', `fallbacks names ${group}, which is not in model_list.`);
  if (new Set(found.map(({ order }) => order)).size < found.length) {
    const sentence = `LiteLLM balances the load between the ${found.length} models named ${group}; the chain tries them in turn.`;
    findings.add('load_balanced', 'model_list', sentence);
  }
  return found.sort(
    (one, other) => (one.order ?? Number.POSITIVE_INFINITY) - (other.order ?? Number.POSITIVE_INFINITY) || one.index - other.index,
  );
}

/** The retry rules of a policy; a refused or broken connection and a broken answer count as server errors. */
function policyRules(policy: Section | undefined, named: Draft): { rules: Draft[]; zero: Condition[] } {
  if (policy === undefined) return { rules: [], zero: [] };
  policy.leaveOutUnknown(retryNames.flatMap(([, names]) => names));
  const retries = new Map<Condition, number>();
  for (const [condition, names] of retryNames) {
    const counts = names.map((name) => policy.number(name));
    const count = Math.max(...counts.map((one) => one ?? -1));
    if (count === -1) continue;
    retries.set(condition, count);
    const sentence = `LiteLLM has ${listed(names)}; the chain retries every ${condition} ${times(count)}.`;
    if (counts.some((one) => (one ?? 0) !== count)) policy.findings.add('combined', policy.path, sentence);
  }
  const asServer = retries.get('server_error');
  if (asServer !== undefined && asServer > 0)
    for (const condition of ['connection_error', 'invalid_response'] as const) retries.set(condition, asServer);
  const rules = [...retries]
    .filter(([, count]) => count > 0)
    .map(([condition, max_retries]) => ({ condition, action: 'retry', max_retries, ...named, ...waits }));
  return { rules, zero: [...retries].filter(([, count]) => count === 0).map(([condition]) => condition) };
}

function rulesOf(router: Section, found: readonly Deployment[], { only, never }: Ends): Draft[] {
  const hasBackups = found.length > 1;
  const byGroup = router.optional('model_group_retry_policy');
  const ofGroups = Object.keys(byGroup?.fields ?? {}).flatMap((group) => {
    const providers = found.filter((deployment) => deployment.group === group).map(({ provider }) => provider.name);
    return providers.length === 0 ? [] : policyRules(byGroup?.optional(group), { providers }).rules;
  });
  const { rules, zero } = policyRules(router.optional('retry_policy'), {});
  const general = router.number('num_retries');
  const sentence = `num_retries is not set; LiteLLM then retries ${usual.retries} times, and so does the chain.`;
  if (general === undefined) router.findings.add('default', 'num_retries', sentence);
  const counts = found.map(({ retries }) => retries ?? general ?? usual.retries);
  const isRetried = (condition: Condition) => rules.some((rule) => rule.condition === condition);
  const ends = hasBackups ? 'failover' : 'fail';
  // Only these conditions fail over; all others end the chain.
  const then = only === null || !hasBackups ? {} : { then: 'fail' };
  const action = (condition: Condition) => ((only === null || only.includes(condition)) && !never.includes(condition) ? ends : 'fail');
  const most = Math.max(...counts);
  const exempt = most === 0 ? (only ?? (hasBackups ? never : [])) : notRetried;
  const single = [...new Set([...zero.filter(() => most > 0), ...exempt])].filter((condition) => !isRetried(condition));
  const last = [...new Set(counts)].map((max_retries): Draft => {
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
