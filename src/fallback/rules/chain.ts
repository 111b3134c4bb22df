import { type Fault, faultOf, invalidRequest } from '../../kit/errors.ts';
import { isObject } from '../../kit/json.ts';
import {
  type ChainDefinition,
  type ChainPatch,
  type ChainRequest,
  type Cooldown,
  type Params,
  type Provider,
  type ProviderRequest,
  providerDefaults,
  type Rule,
  type RuleRequest,
  retryDefaults,
  ruleDefaults,
} from '../model/chain.ts';
import { looksLikeKey } from './key-grants.ts';
import { kindOfModel } from './kinds.ts';
import { paramFaults } from './params.ts';

/** The definition of a create request, with defaults. @throws ServiceError 400 with all faults beyond the schema */
export function define(request: ChainRequest): ChainDefinition {
  const faults = faultsOf(request);
  if (faults.length > 0) throw invalidRequest(faults);
  const providers = request.providers.map(defineProvider);
  return {
    name: request.name,
    description: request.description ?? null,
    // The sort is stable: ties keep their order.
    providers: providers.sort((one, other) => one.priority - other.priority),
    fallback_rules: (request.fallback_rules ?? []).map(defineRule),
    cooldown: defineCooldown(request.cooldown),
    metadata: request.metadata ?? {},
  };
}

/** The definition of a chain, without the fields that the service adds. */
export const definitionOf = ({ name, description, providers, fallback_rules, cooldown, metadata }: ChainDefinition): ChainDefinition => ({
  name,
  description,
  providers,
  fallback_rules,
  cooldown,
  metadata,
});

function defineProvider(request: ProviderRequest, index: number): Provider {
  const { name, model_id, cooldown, ...given } = request;
  const defaults = { ...providerDefaults, priority: index, provider: kindOfModel(model_id) };
  return { name, model_id, ...defaults, ...withoutNulls(given), cooldown: defineCooldown(cooldown) };
}

const defineCooldown = (given: ProviderRequest['cooldown']): Cooldown | null =>
  given ? { ...given, conditions: given.conditions ?? null } : null;

function defineRule(request: RuleRequest): Rule {
  const { condition, action } = request;
  return { condition, action, ...ruleDefaults, ...(action === 'retry' ? retryDefaults : {}), ...withoutNulls(request) };
}

/** The fields that have a value. */
export const withoutNulls = <T extends object>(value: T) =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null && member !== undefined)) as {
    [Name in keyof T]?: NonNullable<T[Name]>;
  };

/** The fields; undefined if there are none. */
export const filled = <T extends object>(fields: T): T | undefined => (Object.keys(fields).length === 0 ? undefined : fields);

/** The definition after a merge patch (RFC 7396), validated like a new one. */
export function merge(definition: ChainDefinition, patch: ChainPatch): ChainDefinition {
  const metadata = patch.metadata === undefined ? definition.metadata : mergeJson(definition.metadata, patch.metadata);
  const cooldown = patch.cooldown === undefined ? definition.cooldown : mergeJson(definition.cooldown, patch.cooldown);
  return define({
    ...definition,
    ...patch,
    cooldown: cooldown as ChainRequest['cooldown'] & object,
    metadata: metadata as Record<string, unknown> | null,
  });
}

/** MergePatch of RFC 7396: objects are merged, null removes, everything else replaces. */
function mergeJson(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergeJson(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

/**
 * The faults of a chain request beyond its schema, each with its dotted field. Parts that violate the schema are skipped,
 * so that both kinds of faults can be reported together.
 */
export function faultsOf(request: unknown): Fault[] {
  const { providers, fallback_rules } = isObject(request) ? request : {};
  const names = new Map<string, number>();
  const list = Array.isArray(providers) ? providers : [];
  const rules = Array.isArray(fallback_rules) ? fallback_rules : [];
  return [
    ...list.flatMap((provider, index) => providerFaults(provider, index, names)),
    ...rules.flatMap((rule, index) => ruleFaults(rule, index, names)),
  ];
}

/** @param names the providers so far, by name, to which this one is added */
function providerFaults(provider: unknown, index: number, names: Map<string, number>): Fault[] {
  if (!isObject(provider)) return [];
  const faults: Fault[] = [];
  const at = `providers.${index}`;
  const { name, model_id, api_base, api_key_env, params } = provider;
  // The schema refuses an empty name.
  if (typeof name === 'string' && name !== '') {
    const first = names.get(name);
    if (first === undefined) names.set(name, index);
    else faults.push(faultOf(`${at}.name`, `is already the name of providers.${first}; names must be unique in a chain.`));
  }
  if ('api_key' in provider)
    faults.push(faultOf(`${at}.api_key`, 'cannot be stored; give the name of the environment variable that holds the key as api_key_env.'));
  const base = typeof api_base === 'string' ? addressFault(api_base) : undefined;
  if (base !== undefined) faults.push(faultOf(`${at}.api_base`, base));
  if (isObject(params)) {
    const kind = provider.provider ?? (typeof model_id === 'string' ? kindOfModel(model_id) : null);
    faults.push(...paramFaults(typeof kind === 'string' ? kind : null, params as Params, at));
  }
  const key = typeof api_key_env === 'string' ? variableFault(api_key_env) : undefined;
  if (key !== undefined) faults.push(faultOf(`${at}.api_key_env`, key));
  return faults;
}

function ruleFaults(rule: unknown, index: number, names: ReadonlyMap<string, number>): Fault[] {
  if (!isObject(rule)) return [];
  const known = [...names.keys()].slice(0, 10).join(', ');
  return ['providers', 'to'].flatMap((field) => {
    const list = Array.isArray(rule[field]) ? rule[field] : [];
    return list.flatMap((name: unknown, position) =>
      typeof name !== 'string' || names.has(name)
        ? []
        : [faultOf(`fallback_rules.${index}.${field}.${position}`, `names no provider of this chain; its providers are ${known}.`)],
    );
  });
}

/** The fault of an API base URL, as the end of a sentence. */
function addressFault(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text)) return 'must be an http or https URL, such as https://llm.example.com/v1.';
  if (url.username !== '' || url.password !== '')
    return 'must not contain a user or a password; name the environment variable of the key in api_key_env.';
  if (text.includes('?') || text.includes('#')) return 'must end with its path, without a query or a fragment.';
  if (/\s/.test(text)) return 'must not contain spaces.';
  if (url.port === '0') return 'must not use port 0.';
  return undefined;
}

/** The fault of a variable's name, as the end of a sentence. It does not quote the name, which may be a secret. */
function variableFault(text: string): string | undefined {
  if (looksLikeKey(text)) return 'must be the name of an environment variable, such as OPENAI_API_KEY, not the key itself.';
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(text))
    return 'must be the name of an environment variable: letters, digits and underscores, and no digit at its start.';
  return undefined;
}
