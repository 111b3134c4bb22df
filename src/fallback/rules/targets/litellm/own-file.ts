import { defined } from '../../../../kit/defined.ts';
import { isObject } from '../../../../kit/json.ts';
import { FindingList, type Reason } from '../../finding-list.ts';
import { isAzure, knownKind } from '../../kinds.ts';
import { variableOf } from '../../params.ts';
import { isOutside } from '../../rehearsal.ts';
import { listed } from '../../wording.ts';
import { fakeAddress, type RedirectedFile, type RedirectOptions, rehearsalKey } from '../gateway.ts';
import { kindNamed } from '../kind-names.ts';
import { Section } from '../section.ts';
import { cooldownMsOf } from './cooldowns.ts';
import { classOf } from './errors.ts';
import { customProviders, type NamedEntry, namedEntries } from './import.ts';
import { kindNames, nativeKinds } from './names.ts';
import { failures } from './reached.ts';

type Fields = Record<string, unknown>;

/** Sections that take no part in routing, and may reach other systems. */
const keptSections = new Set(['model_list', 'router_settings', 'litellm_settings']);

/** Settings that would send the prompts, the failures or the state of a rehearsal to other systems. */
const outward = /callback|custom_provider_map|^cache|^redis|alert|^s3_|^langfuse|^datadog|guardrail/;

/** Parameters of a deployment that are no address and no key, besides those whose value is neither a secret nor a reference. */
const accounts =
  /^(aws_|vertex_|gcs_|azure_ad_|s3_)|^(api_base|base_url|api_key|organization|tenant_id|client_id|client_secret|credential\w*|litellm_credential_name|region_name|watsonx_\w+)$/;

/** Limits of a deployment, which LiteLLM counts across requests. */
const limits = new Set(['rpm', 'tpm', 'max_parallel_requests', 'max_budget', 'budget_duration']);

const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {});

/**
 * Leads the deployments of a LiteLLM configuration to the fake providers below `base`. Groups, fallbacks and settings stay
 * as they are, except for `disable_cooldowns` unless `keepState`, and for what would reach other systems.
 * @param value the parsed file, which an import has accepted
 */
export function redirectFile(value: unknown, base: string, { keepState, ...called }: RedirectOptions): RedirectedFile {
  const whole = fieldsOf(value);
  const notes: string[] = [];
  const custom = customProviders(whole);
  const ofModules = new Set<string>();
  const named = withCalledNames(value, called).map((one) => {
    const parameters = fieldsOf(one.entry.litellm_params);
    const model = String(parameters.model);
    const [prefix = ''] = model.split('/');
    if (!custom.has(String(parameters.custom_llm_provider ?? prefix))) return one;
    ofModules.add(one.name);
    const played = { ...parameters, model: `openai/${model.slice(model.indexOf('/') + 1)}`, custom_llm_provider: undefined };
    return { ...one, entry: { ...one.entry, litellm_params: defined(played) } };
  });
  const kept = named.filter(({ entry }) => !isLeftOut(entry));
  const left = named.filter((one) => !kept.includes(one)).map(({ name }) => name);
  if (left.length > 0) notes.push(`Left out, because their protocols can't be redirected to fake providers: ${listed(left)}.`);
  const replaced = kept.filter(({ entry }) => isReplaced(modelOf(fieldsOf(entry.litellm_params))));
  const asOpenai = kept.filter((one) => replaced.includes(one) || ofModules.has(one.name)).map(({ name }) => name);
  if (asOpenai.length > 0)
    notes.push(`Rehearsed by OpenAI's protocol, because LiteLLM calls them by one that fake providers don't have: ${listed(asOpenai)}.`);
  const missing = new Set(named.map(({ group }) => group).filter((group) => !kept.some((one) => one.group === group)));
  const file: Fields = {};
  const omitted = Object.keys(whole).filter((section) => !keptSections.has(section));
  for (const section of ['litellm_settings', 'router_settings']) {
    const settings = fieldsOf(whole[section]);
    omitted.push(...Object.keys(settings).flatMap((name) => (outward.test(name) ? [`${section}.${name}`] : [])));
    const kept = Object.entries(settings).filter(([name]) => !outward.test(name));
    file[section] = withoutGroups(settingsWithoutAccounts(Object.fromEntries(kept)), missing);
  }
  if (omitted.length > 0) notes.push(`Left out of the file for the rehearsal: ${listed(omitted)}.`);
  if (!keepState) {
    file.router_settings = { ...fieldsOf(file.router_settings), disable_cooldowns: true };
    notes.push('Cool-downs are switched off (disable_cooldowns), so that scenes do not disturb one another; --keep-state keeps them.');
  }
  const isLimited = ({ entry }: { entry: Fields }) =>
    [entry, fieldsOf(entry.litellm_params)].some((fields) => Object.keys(fields).some((name) => limits.has(name)));
  const limited = kept.some(isLimited);
  if (limited && !keepState)
    notes.push('Limits of deployments (rpm, tpm) are left out, so that scenes do not use up those of others; --keep-state keeps them.');
  file.model_list = kept.map(({ entry, name }) => {
    const unlimited = (fields: Fields) => Object.fromEntries(Object.entries(fields).filter(([field]) => keepState || !limits.has(field)));
    return { ...unlimited(entry), litellm_params: redirect(unlimited(fieldsOf(entry.litellm_params)), base, name) };
  });
  const sizes = Map.groupBy(kept, ({ entry, group }) => `${group} ${String(fieldsOf(entry.litellm_params).order ?? '')}`);
  const groups = new Map(
    [...sizes].flatMap(([key, members]) => (members.length > 1 ? members.map(({ name }) => [name, key] as const) : [])),
  );
  const reasons = replaced.flatMap(({ entry, name }) => readOtherwise(name, modelOf(fieldsOf(entry.litellm_params)).kind ?? 'openai'));
  return {
    file,
    groups,
    weights: weightsOf(kept),
    ...(keepState && { cooldownMs: cooldownMsOf({ ...fieldsOf(file.litellm_settings), ...fieldsOf(file.router_settings) }) }),
    reasons,
    models: new Map(kept.map(({ name, model }) => [name, model])),
    notes,
  };
}

/** A file in which the models without a timeout have one; null if all have one. LiteLLM would wait for over an hour and a half. */
export function withTimeouts(value: unknown, ms: number): Fields | null {
  const whole = fieldsOf(value);
  const isSet = (fields: unknown, name: string) => (fieldsOf(fields)[name] ?? null) !== null;
  if (isSet(whole.router_settings, 'timeout') || isSet(whole.litellm_settings, 'request_timeout')) return null;
  const isWithout = (entry: unknown) => isObject(entry) && isObject(entry.litellm_params) && !isSet(entry.litellm_params, 'timeout');
  const entries: unknown[] = Array.isArray(whole.model_list) ? whole.model_list : [];
  if (!entries.some(isWithout)) return null;
  const limited = (entry: unknown) =>
    isWithout(entry) ? { ...fieldsOf(entry), litellm_params: { ...fieldsOf(fieldsOf(entry).litellm_params), timeout: ms / 1000 } } : entry;
  return { ...whole, model_list: entries.map(limited) };
}

/** How often LiteLLM draws each deployment: by the first of these parameters that one of its group has, else each as often. */
function weightsOf(kept: readonly Named[]): Map<string, number> {
  return new Map(
    [...Map.groupBy(kept, ({ group }) => group).values()].flatMap((members) => {
      const parameters = members.map(({ entry }) => fieldsOf(entry.litellm_params));
      const by = ['weight', 'rpm', 'tpm'].find((name) => parameters.some((fields) => typeof fields[name] === 'number'));
      return members.map(({ name }, index) => [name, by === undefined ? 1 : Number(parameters[index]![by] ?? 0)] as const);
    }),
  );
}

/** A deployment, and the name of the provider that an import makes of it. */
interface Named {
  readonly entry: Fields;
  readonly group: string;
  readonly name: string;
  /** The model that callers name. */
  readonly model: string;
}

/** The deployments, and for those with a pattern one for each provider that is taken from it, as LiteLLM does with the names of calls. */
function withCalledNames(value: unknown, { providers, group }: Pick<RedirectOptions, 'providers' | 'group'>): Named[] {
  const entries = namedEntries(new Section(value, '', new FindingList()), group);
  return [...Map.groupBy(entries, ({ index }) => index).values()].flatMap(([written, ...called]) => {
    const model = String(written!.fields.model_name);
    const named = { entry: { ...written!.fields }, group: model, name: written!.name, model };
    const [first, ...others] = called.filter(({ name }) => providers.includes(name));
    if (first === undefined) return [named];
    const modelOfCall = ({ fields }: NamedEntry) => String(fields.model_name);
    return [
      { ...named, name: first.name, model: modelOfCall(first) },
      // LiteLLM calls one address for all names that fit, so that further ones get entries of their own.
      ...others.map((other) => ({ entry: { ...other.fields }, group: modelOfCall(other), name: other.name, model: modelOfCall(other) })),
    ];
  });
}

/** The failures that LiteLLM reads otherwise at the kind of a provider than at OpenAI's, by whose protocol it is rehearsed. */
function readOtherwise(provider: string, kind: string): Reason[] {
  const unlike = failures.filter((failing) => JSON.stringify(classOf(failing, kind)) !== JSON.stringify(classOf(failing, 'openai')));
  return [...new Set(unlike.map(({ condition }) => condition))].map((condition) => ({
    detail: `LiteLLM reads ${condition} of the kind ${kind} otherwise than that of OpenAI, by whose protocol ${provider} is rehearsed.`,
    loss: true,
    provider,
    condition,
  }));
}

/** The kind of a deployment and the name of its model. */
interface Model {
  readonly kind: string | null;
  readonly model: string;
}

function modelOf({ model, custom_llm_provider: given }: Fields): Model {
  const id = String(model);
  const slash = id.indexOf('/');
  const prefix = id.slice(0, Math.max(slash, 0));
  const kind = typeof given === 'string' ? kindNamed(kindNames, given) : kindNamed(kindNames, prefix);
  return kind !== null && prefix !== '' ? { kind, model: id.slice(slash + 1) } : { kind, model: id };
}

const isLeftOut = ({ litellm_params }: Fields) => isOutside({ provider: modelOf(fieldsOf(litellm_params)).kind });

const isAnthropic = ({ kind, model }: Model) => kind === 'anthropic' || (kind === null && /^claude/.test(model));

/**
 * Whether LiteLLM calls a model by a protocol that fake providers don't have. A model without a prefix has the kind that
 * LiteLLM infers from its name; both inferred protocols are known.
 */
const isReplaced = ({ kind }: Model): boolean =>
  kind !== null && !isAzure(kind) && (knownKind(kind) === undefined || nativeKinds.has(kind));

function redirect(parameters: Fields, base: string, name: string): Fields {
  const called = modelOf(parameters);
  const address = fakeAddress(base, name);
  const plain = withoutAccounts(parameters, (text) => (variableOf(text) === undefined ? text : rehearsalKey));
  const redirected = isReplaced(called) ? { model: `openai/${called.model}`, custom_llm_provider: undefined } : {};
  const own = { api_base: isAzure(called.kind) || isAnthropic(called) ? address : `${address}/v1`, api_key: rehearsalKey };
  // What LiteLLM calls within each call of the deployment has the address of the deployment.
  const fallbacks = Array.isArray(plain.fallbacks) && {
    fallbacks: plain.fallbacks.map((one: unknown) => (isObject(one) ? { ...one, ...own } : one)),
  };
  return defined({ ...plain, ...redirected, ...fallbacks, ...own });
}

/** Fields without addresses and keys at any depth, and with what `mapped` makes of the other values. */
function withoutAccounts(fields: Fields, mapped: (value: unknown) => unknown): Fields {
  const cleaned = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(cleaned) : isObject(value) ? withoutAccounts(value, mapped) : mapped(value);
  // A list is one of fallbacks, whose group may have any name.
  const kept = Object.entries(fields).filter(([name, value]) => !accounts.test(name) || Array.isArray(value));
  return Object.fromEntries(kept.map(([name, value]) => [name, cleaned(value)]));
}

/** Settings of LiteLLM without addresses and keys; the aliases of groups are no fields. */
function settingsWithoutAccounts({ model_group_alias: aliases, ...settings }: Fields): Fields {
  return defined({ ...withoutAccounts(settings, (value) => value), model_group_alias: aliases });
}

/** Settings without the fallbacks from and to groups that have no deployment any more. */
function withoutGroups(settings: Fields, missing: ReadonlySet<string>): Fields {
  if (missing.size === 0) return settings;
  const isThere = (group: unknown) => !missing.has(String(isObject(group) ? group.model : group));
  const present = (value: unknown) => (Array.isArray(value) ? value.filter(isThere) : value);
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => {
      if (!/fallbacks$/.test(name) || !Array.isArray(value)) return [name, value];
      if (name === 'default_fallbacks') return [name, present(value)];
      const maps = value
        .filter(isObject)
        .map((map) => Object.entries(map).flatMap(([group, to]) => (missing.has(group) ? [] : [[group, present(to)] as const])));
      return [name, maps.filter((pairs) => pairs.length > 0).map((pairs) => Object.fromEntries(pairs))];
    }),
  );
}
