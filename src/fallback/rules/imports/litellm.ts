import { invalid } from '../../../kit/errors.ts';
import { type Condition, maxProviders } from '../../model/chain.ts';
import { kindNamed } from '../exports/kind-names.ts';
import { modelName } from '../kinds.ts';
import type { WarningList } from '../warning-list.ts';
import { listed, plural } from '../wording.ts';
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

const routerNames = [
  'num_retries',
  'retry_policy',
  'fallbacks',
  'default_fallbacks',
  'context_window_fallbacks',
  'content_policy_fallbacks',
  'max_fallbacks',
  'disable_cooldowns',
];
const parameterNames = ['model', 'api_base', 'api_key', 'timeout', 'max_tokens', 'input_cost_per_token', 'output_cost_per_token'];

/** A model of the file with its group. */
interface Deployment {
  group: string;
  index: number;
  provider: Shape;
}

/** Reads a LiteLLM proxy configuration: the chain starts at `group`, or at the one that only has fallbacks, and follows `fallbacks`. */
export function readLitellm(value: unknown, findings: WarningList, group?: string): Shape {
  const file = objectAt(value, 'content');
  leaveOutUnknown(findings, file, ['model_list', 'router_settings', 'litellm_settings'], '');
  const taken = new Set<string>();
  const deployments = listAt(file.model_list, 'model_list', 1000).map((entry, index) => readDeployment(entry, index, taken, findings));
  const router = settingsOf(file, findings);
  const fallbacks = readFallbacks(router.fallbacks, 'fallbacks', router.default_fallbacks);
  const first = firstGroup([...new Set(deployments.map((deployment) => deployment.group))], fallbacks, group);
  const order = orderFrom(first, fallbacks);
  for (const name of ['context_window_fallbacks', 'content_policy_fallbacks']) {
    if (router[name] !== undefined && String(orderFrom(first, readFallbacks(router[name], name))) !== String(order)) {
      findings.add(
        'left_out',
        name,
        `${name} has a different order from fallbacks; a chain has a single order, so the order of fallbacks is used.`,
      );
    }
  }
  const providers = order.flatMap((group) => providersOf(group, deployments, findings));
  const left = deployments.filter(({ group }) => !order.includes(group));
  for (const { index, group } of left) {
    findings.add('left_out', `model_list.${index}`, `${group} is not imported, because the fallbacks of ${first} do not lead to it.`);
  }
  if (providers.length > maxProviders) listAt(providers, 'model_list', maxProviders);
  return {
    name: first,
    providers: providers.map((provider, priority) => ({ ...provider, priority })),
    fallback_rules: rulesOf(router, providers.length > 1, findings),
  };
}

/** The router's settings; `fallbacks` and `num_retries` may be in either section. */
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

function readDeployment(entry: unknown, index: number, taken: Set<string>, findings: WarningList): Deployment {
  const path = `model_list.${index}`;
  const { model_name, litellm_params, model_info, ...others } = objectAt(entry, path);
  leaveOutUnknown(findings, others, [], path);
  const group = textAt(model_name, `${path}.model_name`);
  const at = `${path}.litellm_params`;
  const parameters = objectAt(litellm_params, at);
  leaveOutUnknown(findings, parameters, parameterNames, at);
  const info = model_info === undefined || model_info === null ? {} : objectAt(model_info, `${path}.model_info`);
  const timeout = numberAt(parameters.timeout, `${at}.timeout`);
  const name = typeof info.display_name === 'string' && info.display_name !== '' ? info.display_name : group;
  const provider = {
    name: uniqueName(name, taken),
    ...readModel(textAt(parameters.model, `${at}.model`), info.model_id, `${at}.model`, findings),
    api_base: parameters.api_base,
    api_key_env: readKey(parameters.api_key, /^os\.environ\/([A-Za-z_]\w*)$/, `${at}.api_key`, findings),
    timeout_ms: timeout === undefined ? undefined : Math.round(timeout * 1000),
    max_tokens: numberAt(parameters.max_tokens, `${at}.max_tokens`),
    input_cost_per_1m: per1m(numberAt(parameters.input_cost_per_token, `${at}.input_cost_per_token`)),
    output_cost_per_1m: per1m(numberAt(parameters.output_cost_per_token, `${at}.output_cost_per_token`)),
  };
  return { group, index, provider: Object.fromEntries(Object.entries(provider).filter(([, member]) => member !== undefined)) };
}

/** The price per million tokens for a price per token, rounded to twelve digits to remove the floating-point error. */
const per1m = (price: number | undefined) => (price === undefined ? undefined : Number((price * 1_000_000).toPrecision(12)));

/** The model and its provider kind, which LiteLLM writes as `provider/model`. */
function readModel(model: string, modelId: unknown, field: string, findings: WarningList): { model_id: string; provider?: string } {
  const end = model.indexOf('/');
  const prefix = model.slice(0, Math.max(end, 0));
  const kind = kindNamed('litellm', prefix);
  if (kind === null) {
    findings.add(
      'provider_kind',
      field,
      `${field} ${prefix === '' ? 'does not name a provider' : `names the unknown provider ${prefix}`}; the model is imported unchanged, without a kind.`,
    );
    return { model_id: model };
  }
  const sent = model.slice(end + 1);
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

/** LiteLLM's key for the fallbacks of groups that have none of their own; `default_fallbacks` is another spelling of it. */
const anyGroup = '*';

/** Reads `fallbacks`: a list of maps, each from a group to the groups that are tried after it. */
function readFallbacks(value: unknown, field: string, ofOthers?: unknown): Map<string, string[]> {
  const map = new Map<string, string[]>();
  if (ofOthers !== undefined && ofOthers !== null) {
    const groups = listAt(ofOthers, 'default_fallbacks', 1000);
    map.set(
      anyGroup,
      groups.map((backup, index) => textAt(backup, `default_fallbacks.${index}`)),
    );
  }
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return map;
  listAt(value, field, 1000).forEach((entry, index) => {
    for (const [group, backups] of Object.entries(objectAt(entry, `${field}.${index}`))) {
      const path = `${field}.${index}.${group}`;
      map.set(
        group,
        listAt(backups, path, 1000).map((backup, position) => textAt(backup, `${path}.${position}`)),
      );
    }
  });
  return map;
}

/** The fallbacks of a group: its own, or those of all groups without their own. */
const fallbacksOf = (group: string, fallbacks: ReadonlyMap<string, string[]>): readonly string[] =>
  fallbacks.get(group) ?? fallbacks.get(anyGroup) ?? [];

/**
 * The group where the chain starts: the wanted one, or the only one that has fallbacks and is nobody's fallback. Without any
 * fallbacks it is the first of the file.
 * @throws ServiceError 400 with the candidates if there are several, or the wanted one is unknown
 */
function firstGroup(groups: readonly string[], fallbacks: ReadonlyMap<string, string[]>, wanted: string | undefined): string {
  if (wanted !== undefined) {
    if (groups.includes(wanted)) return wanted;
    throw invalid('group', `group names no model_name of the file; it has ${shownGroups(groups)}.`);
  }
  const leading = groups.filter((group) => fallbacksOf(group, fallbacks).some((backup) => backup !== group));
  const backups = new Set([...fallbacks.values()].flat());
  const candidates = leading.filter((group) => !backups.has(group));
  if (candidates.length > 1)
    throw invalid('group', `The file has several chains; name the first model of one of them as group: ${shownGroups(candidates)}.`);
  // In a circle of fallbacks, every group is somebody's fallback.
  return candidates[0] ?? leading[0] ?? groups[0]!;
}

/** The first of the groups for a message. */
const shownGroups = (groups: readonly string[]) =>
  listed(groups.length > 20 ? [...groups.slice(0, 20), plural(groups.length - 20, 'other group')] : groups);

/** The groups in order; the backups of a backup follow it. Each group occurs once, so that cycles end. */
function orderFrom(first: string, fallbacks: ReadonlyMap<string, string[]>): string[] {
  const order = new Set([first]);
  // The iteration of a set includes entries that are added during it.
  for (const group of order) for (const backup of fallbacksOf(group, fallbacks)) order.add(backup);
  return [...order];
}

function providersOf(group: string, deployments: readonly Deployment[], findings: WarningList): Shape[] {
  const found = deployments.filter((deployment) => deployment.group === group);
  if (found.length === 0) findings.add('unknown_model', 'fallbacks', `fallbacks names ${group}, which is not in model_list.`);
  if (found.length > 1) {
    findings.add(
      'load_balanced',
      'model_list',
      `LiteLLM balances the load between the ${found.length} models named ${group}; the chain tries them in turn.`,
    );
  }
  return found.map(({ provider }) => provider);
}

function rulesOf(router: Shape, hasBackups: boolean, findings: WarningList): Shape[] {
  const policy = router.retry_policy === undefined || router.retry_policy === null ? {} : objectAt(router.retry_policy, 'retry_policy');
  leaveOutUnknown(
    findings,
    policy,
    policyNames.map(([name]) => name),
    'retry_policy',
  );
  const retries = new Map<Condition, number>();
  for (const [name, condition] of policyNames) {
    const count = numberAt(policy[name], `retry_policy.${name}`);
    if (count !== undefined) retries.set(condition, Math.max(count, retries.get(condition) ?? 0));
  }
  const general = numberAt(router.num_retries, 'num_retries');
  if (general === undefined)
    findings.add(
      'default',
      'num_retries',
      'num_retries is not set; how often LiteLLM then retries depends on its version, so no retries are imported for it.',
    );
  const rules: Shape[] = [...retries]
    .filter(([, count]) => count > 0)
    .map(([condition, max_retries]) => ({ condition, action: 'retry', max_retries, ...waits }));
  if (general !== undefined && general > 0) {
    const exempt = hasBackups ? 'failover' : 'fail';
    for (const [condition, count] of retries) if (count === 0) rules.push({ condition, action: exempt });
    rules.push({ condition: 'any', action: 'retry', max_retries: general, ...waits });
  } else if (hasBackups) rules.push({ condition: 'any', action: 'failover' });
  return rules;
}
