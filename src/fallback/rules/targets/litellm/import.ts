import { invalid } from '../../../../kit/errors.ts';
import { duration } from '../../../../kit/wording.ts';
import { maxPrice, maxTimeoutMs, maxTokens, providerDefaults } from '../../../model/chain.ts';
import { ofWaits } from '../../../model/finding.ts';
import { filled, withoutNulls } from '../../chain.ts';
import type { FindingList } from '../../finding-list.ts';
import { modelName } from '../../kinds.ts';
import { isSecret, paramNames, variableOf } from '../../params.ts';
import { uniqueName } from '../../wording.ts';
import { withSharedCooldown } from '../cooldowns.ts';
import { rulesOf } from '../decisions.ts';
import { kindNamed } from '../kind-names.ts';
import { type Draft, Section } from '../section.ts';
import { cooldownNames, cooldownsOf } from './cooldowns.ts';
import { noteDifferences, noteInferred, noteLeftOut, notePrefixed } from './differences.ts';
import { defaultGroup, type FallbackLists, firstGroup, isEmpty, readAllFallbacks } from './fallbacks.ts';
import { aliasesOf, withOtherNames, withPatterns } from './groups.ts';
import { inferredKind, isOllama, kindNames, policyNames } from './names.ts';
import {
  noteAliases,
  noteAllowedFails,
  noteAnswers,
  noteChecks,
  noteKinds,
  noteMeasured,
  noteOwnFallbacks,
  noteRetryAfter,
  noteTooLong,
  noteUnknown,
  noteWeightedFailover,
} from './notes.ts';
import { type Reached, reachedFrom, rowsOf } from './reached.ts';
import { type Deployment, type Policy, type Router, requireFewModels, requireStrategy, weighed } from './router.ts';
import { noteStreams, possibleRows } from './streams.ts';

/** LiteLLM's waits between retries, as fields of a rule: with `retry_after`, none is shorter, and its own grow from half a second to eight. */
function waitsOf(settings: Section, retries: number): Draft {
  const least = Math.min((settings.number('retry_after', Number.MAX_SAFE_INTEGER) ?? 0) * 1000, maxTimeoutMs);
  const longest = Math.min(500 * 2 ** (retries - 1), 8_000);
  const sentence = `is the least wait: LiteLLM's own waits grow to ${duration(longest)}; the chain waits ${duration(least)} before each retry.`;
  if (least > 500 && longest > least) settings.note('waits', 'retry_after', sentence, { loss: true });
  return { wait_ms: Math.max(least, 500), max_wait_ms: Math.max(least, 8_000), ...(least > 500 && { backoff: 'constant' }) };
}

/** What LiteLLM does if a file does not say it (versions 1.106.2 and 1.110.2). */
const usual = { retries: 2, fallbacks: 5, timeoutSeconds: 6000 };

/** The most retries and fallbacks that are followed; a chain makes fewer of both. */
const mostRetries = 100;
const mostFallbacks = 1000;

/** The highest price of a token, in US dollars. */
const maxTokenPrice = maxPrice / 1_000_000;

const routerOnly = [
  ...[
    'retry_after',
    'retry_policy',
    'model_group_retry_policy',
    'timeout',
    'stream_timeout',
    'disable_cooldowns',
    'model_group_alias',
    'enable_pre_call_checks',
    'enable_weighted_failover',
  ],
];
const litellmOnly = ['request_timeout', 'drop_params'];
const routerNames = [
  ...['num_retries', 'fallbacks', 'default_fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks', 'max_fallbacks'],
  ...routerOnly,
  ...litellmOnly,
  ...cooldownNames,
];
/** What does not change the calls of providers, or only how they are counted and logged. */
const harmlessNames = [
  ...['set_verbose', 'json_logs', 'callbacks', 'success_callback', 'failure_callback', 'service_callbacks', 'turn_off_message_logging'],
  ...['redis_host', 'redis_port', 'redis_password', 'redis_url', 'num_workers', 'telemetry'],
];
const harmlessSections = [
  'general_settings',
  'environment_variables',
  'mcp_servers',
  'guardrails',
  'vector_store_registry',
  'credential_list',
];
const parameterNames = [
  ...[
    'model',
    'custom_llm_provider',
    'api_base',
    'api_key',
    'timeout',
    'stream_timeout',
    'num_retries',
    'max_retries',
    'order',
    'weight',
    'rpm',
    'tpm',
    'extra_headers',
    'headers',
  ],
  ...['max_tokens', 'input_cost_per_token', 'output_cost_per_token'],
];

/** A model of the file. */
interface FileModel extends Deployment {
  readonly index: number;
  readonly inferred: string | undefined;
  /** The provider that LiteLLM does not know; undefined for one that it knows or infers. */
  readonly unknown: string | undefined;
  /** How long LiteLLM waits for each part of a streamed answer, in milliseconds; undefined if as long as for a whole one. */
  readonly streamLimit: number | undefined;
  readonly provider: Draft & { name: string };
}

/** Reads a LiteLLM proxy configuration: the chain starts at `group`, or at the group that has fallbacks and is nobody's fallback, and follows `fallbacks`. */
export function importLitellm(file: Section, group?: string): Draft {
  const { findings } = file;
  if (file.fields.include !== undefined)
    throw invalid('include', 'include names other files, which an import does not have; put their models and settings into this file.');
  file.leaveOutUnknown(['model_list', 'router_settings', 'litellm_settings'], harmlessSections);
  const settings = settingsOf(file);
  requireStrategy(file);
  const { timeout, streamTimeout } = limitsOf(settings);
  const taken = new Set<string>();
  const custom = customProviders(file.fields);
  const { entries, aliases, lists, byDefault } = entriesOf(file, settings, group);
  const deployments = entries.map(({ entry, index, inferred }) => ({
    ...readDeployment(entry, { index, taken, timeout, streamTimeout, custom }),
    inferred,
  }));
  const router = routerOf(settings, { deployments, aliases, lists, byDefault });
  const names = [...new Set(deployments.map((one) => one.group))];
  const first = firstGroup(names, {
    aliases: [...aliases].flatMap(([alias, named]) => (names.includes(named) ? [alias] : [])),
    lists: [router.general, ...[router.contextWindow, router.contentPolicy].flatMap((list) => list ?? [])],
    wanted: group,
  });
  const reached = reachedFrom(router, first);
  const chain = withUncalledModels(router, reached);
  const providers = chain.map(({ deployment }) => deployment.provider);
  noteLeftOut(file, { deployments, chain, router, first });
  for (const { name, timeout_ms } of providers) {
    const sentence = `No timeout is set for ${name}; LiteLLM then waits up to ${usual.timeoutSeconds} s, and the chain ${providerDefaults.timeout_ms / 1000} s.`;
    if (timeout_ms === undefined) findings.add(ofWaits, 'timeout', sentence, { provider: name, condition: 'timeout', loss: true });
  }
  noteLongStreams(findings, chain);
  requireFewModels(providers.length);
  const draft = {
    name: first,
    ...providersIn(settings, { router, chain }),
    fallback_rules:
      chain.length === 1 && chain[0]!.outcomes.every(({ retries }) => retries === 0)
        ? []
        : rulesOf(
            possibleRows(rowsOf(chain, nameOf), providers),
            waitsOf(settings, Math.max(...chain.flatMap(({ outcomes }) => outcomes.map(({ retries }) => retries)))),
          ),
  };
  noteDifferences(findings, { draft, router, first, chain });
  notePrefixed(findings, { router, chain });
  noteInferred(findings, chain);
  noteKinds(settings, chain);
  noteTooLong(findings, { router, chain, first });
  noteOwnFallbacks(file, chain);
  noteAliases(settings, { aliases, router, first });
  noteAnswers(findings, chain);
  noteRetryAfter(findings, { router, chain });
  if (router.hasCooldowns) noteAllowedFails(settings, chain);
  if (settings.get('enable_weighted_failover') === true) noteWeightedFailover(settings, { router, chain });
  noteChecks(settings, chain);
  noteStreams(findings, chain);
  noteMeasured(findings, chain);
  // That LiteLLM knows no such provider is no matter of its kind.
  noteUnknown(findings, chain);
  return draft;
}

/** The time limits of models without limits of their own, in milliseconds. `request_timeout` comes before `timeout` of the router; if both are set, `request_timeout` is the limit of streams as well. */
function limitsOf(settings: Section): Pick<ReadingOptions, 'timeout' | 'streamTimeout'> {
  const request = milliseconds(settings, 'request_timeout');
  const isBoth = request !== undefined && settings.get('timeout') !== undefined;
  const timeout = request ?? milliseconds(settings, 'timeout');
  return { timeout, streamTimeout: milliseconds(settings, 'stream_timeout') ?? (isBoth ? request : undefined) };
}

/** Finds models whose streamed answers LiteLLM waits for longer than for whole ones. */
function noteLongStreams(findings: FindingList, chain: readonly Reached<FileModel>[]): void {
  for (const { streamLimit, provider } of chain.map(({ deployment }) => deployment)) {
    const { name, timeout_ms } = provider;
    if (streamLimit === undefined || typeof timeout_ms !== 'number' || streamLimit <= timeout_ms) continue;
    const sentence = `LiteLLM waits up to ${duration(streamLimit)} for each part of a streamed answer of ${name}; the chain ${duration(timeout_ms)} for the whole answer.`;
    findings.add(ofWaits, null, sentence, { provider: name, condition: 'timeout', loss: true, stream: true });
  }
}

/** The entries of the file and of the models that are called by a pattern, and the other names of groups: aliases, lists of fallbacks, the default group. */
function entriesOf(file: Section, settings: Section, group: string | undefined) {
  const aliases = aliasesOf(settings);
  const lists = readAllFallbacks(settings);
  const byDefault = defaultGroup(settings);
  const wanted = [group ?? [], byDefault ?? [], ...aliases.values(), ...lists.flatMap((list) => [...(list ?? [])].flat(2))].flat();
  const entries = file.sections('model_list', 1000).map((entry, index) => ({ entry, index }));
  return { entries: withPatterns(entries, wanted), aliases, lists, byDefault };
}

/** A model of a file, with the name of the provider that an import makes of it. */
export interface NamedEntry {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly index: number;
  readonly name: string;
}

/** The models of a file, and those that its patterns are called by. @throws ServiceError 400 */
export function namedEntries(file: Section, group: string | undefined): NamedEntry[] {
  const taken = new Set<string>();
  return entriesOf(file, settingsOf(file), group).entries.map(({ entry, index }) => {
    const { provider } = readDeployment(entry, { index, taken, timeout: undefined, streamTimeout: undefined, custom: new Set() });
    return { fields: entry.fields, index, name: provider.name };
  });
}

/** The providers of a chain, in order, and their cool-downs. */
function providersIn(settings: Section, { router, chain }: { router: Router<FileModel>; chain: readonly Reached<FileModel>[] }) {
  const models = chain.map(({ deployment }) => deployment);
  const cooldowns = router.hasCooldowns ? cooldownsOf(settings, models) : undefined;
  return withSharedCooldown(
    models.map(({ provider }, priority) => ({ ...provider, priority, ...withoutNulls({ cooldown: cooldowns?.get(provider.name) }) })),
  );
}

const nameOf = ({ provider }: FileModel) => provider.name;

/** The router of the file. */
function routerOf(
  settings: Section,
  {
    deployments,
    aliases,
    lists,
    byDefault,
  }: {
    deployments: readonly FileModel[];
    aliases: ReadonlyMap<string, string>;
    lists: FallbackLists;
    byDefault: string | null;
  },
): Router<FileModel> {
  const groups = Map.groupBy(deployments, ({ group }) => group);
  const [general, contextWindow, contentPolicy] = lists.map((list) => list && withOtherNames(list, [...groups.keys(), ...aliases.keys()]));
  // An alias hides a group of the same name.
  const aliased = [...aliases].flatMap(([alias, group]) => (groups.has(group) ? [[alias, groups.get(group)!] as const] : []));
  const retries = settings.count('num_retries', mostRetries);
  const sentence = `num_retries is not set; LiteLLM then retries ${usual.retries} times, and so does the chain.`;
  if (retries === undefined) settings.findings.add('default', 'num_retries', sentence);
  const byGroup = settings.optional('model_group_retry_policy');
  return {
    groups: new Map([...groups, ...aliased]),
    general: general ?? new Map(),
    byDefault,
    contextWindow: contextWindow ?? null,
    contentPolicy: contentPolicy ?? null,
    retries: retries ?? usual.retries,
    policy: policyOf(settings.optional('retry_policy')),
    groupPolicies: new Map(
      Object.keys(byGroup?.fields ?? {}).flatMap((group) => [[group, policyOf(byGroup?.optional(group)) ?? {}] as const]),
    ),
    maxFallbacks: settings.count('max_fallbacks', mostFallbacks) ?? usual.fallbacks,
    hasCooldowns: settings.get('disable_cooldowns') !== true,
  };
}

/** A retry policy; null if there is none. */
function policyOf(policy: Section | undefined): Policy | null {
  if (policy === undefined) return null;
  policy.leaveOutUnknown(policyNames);
  return Object.fromEntries(policyNames.map((name) => [name, policy.count(name, mostRetries)]));
}

/** The models of a chain: those that are reached, and others of their groups that LiteLLM may draw instead. */
function withUncalledModels(router: Router<FileModel>, reached: readonly Reached<FileModel>[]): Reached<FileModel>[] {
  const chain = [...reached];
  for (const one of reached) {
    const { group, order } = one.deployment;
    const level = router.groups.get(group)!.filter((other) => other.order === order);
    // Models without a weight are drawn after all those with one have refused.
    const isWeighed = chain.filter((other) => level.includes(other.deployment)).every((other) => weighed(level).includes(other.deployment));
    const undrawn = (isWeighed ? weighed(level) : level).filter((other) => !chain.some(({ deployment }) => deployment === other));
    const last = chain.findLastIndex(({ deployment }) => level.includes(deployment));
    chain.splice(last + 1, 0, ...undrawn.map((deployment) => ({ ...one, deployment, rest: [], isGeneral: false })));
  }
  return chain;
}

/**
 * The router's settings. Some settings may be in either section, others count in one section only. If both sections have a setting,
 * the value in `router_settings` counts, unless it is null or an empty list.
 */
function settingsOf(file: Section): Section {
  const fields: Record<string, unknown> = {};
  const paths: Record<string, string> = {};
  for (const [name, unread, right] of [
    ['litellm_settings', routerOnly, 'router_settings'],
    ['router_settings', litellmOnly, 'litellm_settings'],
  ] as const) {
    const section = file.optional(name);
    section?.leaveOutUnknown([...routerNames, ...unread], harmlessNames);
    for (const [field, value] of Object.entries(section?.fields ?? {})) {
      if (unread.includes(field)) section!.leaveOut(field, `LiteLLM reads it only in ${right}`);
      else if (value !== null && !(isEmpty(value) && field in fields)) {
        fields[field] = value;
        paths[field] = section!.at(field);
      }
    }
  }
  return new Section(fields, '', file.findings, paths);
}

/** What the reading of a model needs of the file: the names that are taken, and the limits of models without own ones, in milliseconds. */
interface ReadingOptions {
  readonly index: number;
  readonly taken: Set<string>;
  readonly timeout: number | undefined;
  readonly streamTimeout: number | undefined;
  /** The providers that modules of the file's own are for. */
  readonly custom: ReadonlySet<string>;
}

function readDeployment(entry: Section, { index, taken, timeout, streamTimeout, custom }: ReadingOptions): Omit<FileModel, 'inferred'> {
  entry.leaveOutUnknown(['model_name', 'litellm_params', 'model_info']);
  const group = entry.text('model_name');
  refuseVariable(entry, 'model_name');
  const parameters = entry.section('litellm_params');
  const { display_name, model_id } = entry.optional('model_info')?.fields ?? {};
  const name = typeof display_name === 'string' && display_name !== '' ? display_name : group;
  const { unknown, ...model } = readModel(parameters, model_id, custom);
  const { api_base } = parameters.fields;
  const address = variableOf(api_base) === undefined ? api_base : undefined;
  const params = readParams(parameters, model.provider ?? null);
  if (parameters.get('max_retries') !== undefined)
    parameters.leaveOut('max_retries', "LiteLLM's router ignores it; num_retries is what counts");
  const streamLimit = milliseconds(parameters, 'stream_timeout') ?? streamTimeout;
  const timeout_ms = milliseconds(parameters, 'timeout') ?? timeout;
  // The timeout of a chain holds for streams as well.
  const pace = streamLimit !== undefined && streamLimit <= (timeout_ms ?? providerDefaults.timeout_ms) ? streamLimit : undefined;
  const provider = withoutNulls({
    ...model,
    api_base: typeof address === 'string' ? versionedBase(model.provider, address) : address,
    api_key_env: parameters.keyVariable('api_key', /^os\.environ\/([A-Za-z_]\w*)$/),
    timeout_ms,
    first_token_ms: pace,
    idle_ms: pace,
    max_tokens: parameters.count('max_tokens', maxTokens),
    input_cost_per_1m: per1m(parameters.number('input_cost_per_token', maxTokenPrice)),
    output_cost_per_1m: per1m(parameters.number('output_cost_per_token', maxTokenPrice)),
    params: filled(params),
  });
  return {
    group,
    index,
    kind: model.provider ?? 'openai',
    unknown,
    streamLimit,
    order: parameters.number('order', Number.MAX_SAFE_INTEGER) ?? null,
    retries: parameters.count('num_retries', mostRetries),
    weights: ['weight', 'rpm', 'tpm'].map((name) => Number(parameters.get(name)) || 0),
    provider: { name: uniqueName(name, taken), ...provider },
  };
}

/** The address with its version: LiteLLM appends `/v1/messages` to that of Anthropic's API, and Ollama has OpenAI's protocol at `/v1`. */
function versionedBase(kind: string | undefined, address: string): string {
  if (kind !== 'anthropic' && !isOllama(kind ?? null)) return address;
  return `${address.replace(/\/+$/, '').replace(/\/v1(\/messages)?$/, '')}/v1`;
}

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

/** @throws ServiceError 400 for a name that is in a variable */
function refuseVariable(section: Section, name: string): void {
  const variable = variableOf(section.fields[name]);
  const sentence = `${section.at(name)} is in the variable ${variable}, whose value an import does not have; put the name itself into the file.`;
  if (variable !== undefined) throw invalid(section.at(name), sentence);
}

/** The names of the providers in `custom_provider_map`. */
export function customProviders({ litellm_settings: settings }: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const { custom_provider_map: map } = (settings ?? {}) as { custom_provider_map?: unknown };
  const entries: unknown[] = Array.isArray(map) ? map : [];
  return new Set(entries.map((entry) => String((entry as { provider?: unknown } | null)?.provider)));
}

/** The model and its provider kind, which LiteLLM writes as `provider/model`. */
function readModel(
  parameters: Section,
  modelId: unknown,
  custom: ReadonlySet<string>,
): { model_id: string; provider?: string; unknown?: string } {
  const model = parameters.text('model');
  refuseVariable(parameters, 'model');
  const { custom_llm_provider: provider } = parameters.fields;
  const named = typeof provider === 'string' ? provider : model.slice(0, Math.max(model.indexOf('/'), 0));
  const guess = named === '' ? inferredKind(model) : undefined;
  const kind = guess ?? kindNamed(kindNames, named);
  if (kind === null) {
    const isKind = /^[a-z0-9][a-z0-9._-]{0,63}$/.test(named);
    const isCustom = custom.has(named);
    const ofMap = `names ${named} of custom_provider_map, whose module LiteLLM calls; a chain calls it by OpenAI's protocol`;
    const what = isCustom ? ofMap : named === '' ? 'does not name a provider' : `names the unknown provider ${named}`;
    parameters.note('provider_kind', 'model', `${what}; the model is imported unchanged.`);
    return { model_id: model, ...(isKind ? { provider: named } : {}), ...(named === '' || isCustom ? {} : { unknown: named }) };
  }
  const sent = model.startsWith(`${named}/`) ? model.slice(named.length + 1) : model;
  // Exports keep the chain's original spelling of the model, with or without its kind.
  const written = typeof modelId === 'string' && modelName({ model_id: modelId, provider: kind, api_base: null }) === sent ? modelId : sent;
  return { model_id: written, provider: kind };
}
