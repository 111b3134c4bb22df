import { type Condition, conditions, type Params, type Provider } from '../../../model/chain.ts';
import { canFailWith, type FailureKind, ofStream, traitsOf } from '../../conditions.ts';
import { knownKind, modelName } from '../../kinds.ts';
import { listed, listedProviders, shortened, times, uniqueName } from '../../wording.ts';
import { addressed, hasNoKey, keyEnv, nameOfKind } from '../kind-names.ts';
import { type ExportedProvider, type Exporter, type Source, warnOfInterrupted, warnOfUnsupportedFields } from '../target.ts';
import { cooldownSettings } from './cooldowns.ts';
import { classOf } from './errors.ts';
import { groupName, isOllama, isOpenaiAt, kindNames, repeatsOf, repeatsSentence, retryNames, specialOf, specialSettings } from './names.ts';
import { equivalentStatuses, failures } from './reached.ts';

/** LiteLLM's default for the most backups it tries. */
const defaultMaxFallbacks = 5;

/**
 * A LiteLLM proxy configuration (`config.yaml`). Each provider is a separate model group, since a shared name means load
 * balancing; the order is in `fallbacks`. The retry policy belongs to the router, so all chains in a proxy share it.
 * https://docs.litellm.ai/docs/proxy/reliability
 */
export const exportLitellm: Exporter = (source) => {
  const { providers, warnings } = source;
  const groups = groupsOf(source);
  const model_list = providers.map((exported) => {
    const { provider, index } = exported;
    // A model of an unknown kind goes out as it came in.
    const isAsIs = isUnknown(provider);
    const { kind: named, base } = isAsIs ? { kind: provider.provider!, base: provider.api_base } : addressed(kindNames, exported);
    const kind = base !== null && isOpenaiAt(named, base) ? 'openai' : named;
    const litellm_params = {
      model: isAsIs ? provider.model_id : `${kind}/${modelName(provider)}`,
      ...(base === null ? {} : { api_base: addressIn(kind, base, exported) }),
      ...(hasNoKey(provider) ? {} : { api_key: `os.environ/${keyEnv(exported)}` }),
      ...paramsOf(exported),
      timeout: provider.timeout_ms / 1000,
      ...streamTimeout(exported),
      ...(provider.max_tokens === null ? {} : { max_tokens: provider.max_tokens }),
      ...price('input_cost_per_token', provider.input_cost_per_1m),
      ...price('output_cost_per_token', provider.output_cost_per_1m),
    };
    const names = { ...(provider.name === groups[index] ? {} : { display_name: provider.name }), model_id: provider.model_id };
    return { model_name: groups[index], litellm_params, model_info: names };
  });
  const kinds = providers.map(({ provider }) =>
    provider.api_base !== null && isOpenaiAt(provider.provider ?? '', provider.api_base) ? 'openai' : provider.provider,
  );
  const router_settings = { ...retrySettings(source, kinds), ...cooldownSettings(source, kinds), ...fallbacks(source, groups) };
  warnOfInterrupted(source, 'LiteLLM');
  warnOfUnsupportedFields(source, { prices: true, params: true, streams: true, cooldowns: true });
  for (const [repeats, indexes] of Map.groupBy(kinds.keys(), (index) => repeatsOf(kinds[index]!))) {
    if (repeats === undefined) continue;
    const whose = listedProviders(indexes.map((index) => providers[index]!.provider));
    warnings.loss('repeats', null, repeatsSentence(repeats, whose));
  }
  return { model_list, router_settings };
};

/** The names of the model groups: the chain's name for the first provider, which callers ask for, and those of the others. */
function groupsOf({ chain: { name: chainName, providers }, warnings }: Source): string[] {
  const taken = new Set<string>();
  return providers.map(({ name }, index) => {
    const wanted = index === 0 ? chainName : name;
    const group = uniqueName(groupName(wanted), taken);
    const said =
      index === 0
        ? `${name} is the first provider of the model ${group}, which callers ask LiteLLM for.`
        : `The model group of ${name} is called ${group} in the export, because its own name is taken or a pattern.`;
    if (group !== name) warnings.add('model_name', `providers.${index}.name`, said, group !== wanted);
    return group;
  });
}

const isUnknown = ({ provider, model_id }: Provider) =>
  provider !== null && knownKind(provider) === undefined && nameOfKind(kindNames, provider) === null && model_id.startsWith(`${provider}/`);

/** The parameters by their names in LiteLLM. */
function paramsOf({ provider, loss }: ExportedProvider): Params {
  const { headers, virtual_key, ...params } = provider.params;
  if (virtual_key !== undefined) loss('params', 'params', `${provider.name}: LiteLLM has no virtual_key.`);
  return headers === undefined ? params : { ...params, extra_headers: headers };
}

/** The address as LiteLLM expects it: of Anthropic's API without the version, since it appends `/v1/messages`. */
function addressIn(kind: string, base: string, { loss }: ExportedProvider): string {
  const plain = base.replace(/\/+$/, '');
  if (isOllama(kind)) return plain.replace(/\/v1$/, '');
  if (kind !== 'anthropic') return plain;
  if (!plain.endsWith('/v1')) loss('api_base', 'api_base', `LiteLLM calls ${plain}/v1/messages; the chain calls ${plain}/messages.`);
  return plain.replace(/\/v1$/, '');
}

/** LiteLLM has one limit for the first content of a stream and for its pauses. */
function streamTimeout({ provider: { name, first_token_ms, idle_ms }, loss }: ExportedProvider): { stream_timeout?: number } {
  if (first_token_ms !== idle_ms) {
    const has = first_token_ms === null ? 'none' : 'that of first_token_ms';
    const sentence = `${name}: LiteLLM has one stream_timeout for the first content of a stream and for its pauses; the export has ${has}.`;
    loss('stream_timeout', first_token_ms === null ? 'idle_ms' : 'first_token_ms', sentence);
  }
  return first_token_ms === null ? {} : { stream_timeout: first_token_ms / 1000 };
}

const price = (name: string, per1m: number | null) => (per1m === null ? {} : { [name]: per1m / 1_000_000 });

/** The retries: by class of error, and `num_retries` for the failures of a server that have no class. */
function retrySettings(source: Source, kinds: readonly (string | null)[]): { num_retries: number; retry_policy?: Record<string, number> } {
  const { chain, providers, warnings } = source;
  const retriesOf = (condition: Condition) => providers[0]!.reactionTo(condition).retries;
  const num_retries = retriesOf('server_error');
  const policy: Record<string, number> = {};
  for (const condition of conditions) {
    const names = retryNames[condition];
    const retries = retriesOf(condition);
    const isNamed = chain.fallback_rules.some((rule) => rule.condition === condition);
    if (retries > 0 || num_retries > 0 || isNamed) for (const name of names) policy[name] = retries;
  }
  warnOfKinds(source, kinds, { num_retries, policy });
  warnOfOneRouter(source);
  if (Object.values(policy).some((retries) => retries > 0)) {
    const sentence = 'LiteLLM chooses the waits between retries itself: from 0.5 s to 8 s, or as long as Retry-After says.';
    warnings.loss('waits', 'fallback_rules', sentence);
  }
  return Object.keys(policy).length === 0 ? { num_retries } : { num_retries, retry_policy: policy };
}

/** The failures that LiteLLM may retry otherwise than their condition says. */
const sent: readonly FailureKind[] = [
  ...failures.flatMap((failing) =>
    [failing.status_code, ...equivalentStatuses(failing)].map((status_code) => ({ condition: failing.condition, status_code })),
  ),
  { condition: 'context_length', status_code: 413 },
];

/** Warns of failures that LiteLLM retries more or less often than the chain, as it reads the failures of each kind of provider. */
function warnOfKinds(
  { providers, warnings }: Source,
  kinds: readonly (string | null)[],
  { num_retries, policy }: { num_retries: number; policy: Readonly<Record<string, number>> },
): void {
  const retried = providers.flatMap(({ provider }, index) =>
    sent.flatMap(({ condition, status_code }) => {
      if (!canFailWith(provider, condition)) return [];
      const { names, isRetried } = classOf({ condition, status_code }, kinds[index] ?? 'openai');
      const theirs = names.map((one) => policy[one]).find((count) => count !== undefined) ?? (isRetried ? num_retries : 0);
      const ours = providers[0]!.reactionTo(condition).retries;
      return theirs === ours ? [] : [{ name: provider.name, condition, status_code, theirs, ours }];
    }),
  );
  const often = (count: number) => (count === 0 ? 'never' : times(count));
  const found = [...Map.groupBy(retried, ({ name, condition, theirs }) => JSON.stringify([name, condition, theirs])).values()].map(
    (same) => ({ ...same[0]!, statuses: same.flatMap(({ status_code }) => status_code ?? []) }),
  );
  for (const group of Map.groupBy(found, ({ condition, statuses, theirs }) => JSON.stringify([condition, statuses, theirs])).values()) {
    const [{ condition, statuses, theirs, ours }] = group as [(typeof found)[number]];
    const what = statuses.length === 0 ? condition : `${condition} (${listed(shortened(statuses.map(String), 10, 'other status'))})`;
    const whose = group.length === providers.length ? '' : ` of ${listedProviders(group)}`;
    warnings.loss('retries', null, `LiteLLM retries ${what}${whose} ${often(theirs)}; the chain ${often(ours)}.`);
  }
}

/** Warns of what the router's single policy can't express: other policies of later providers and of single statuses. */
function warnOfOneRouter({ providers, routing, warnings }: Source): void {
  const first = providers[0]!;
  const unlike = providers.flatMap(({ provider, reactionTo }) => {
    const differing = conditions.filter((condition) => reactionTo(condition).retries !== first.reactionTo(condition).retries);
    return differing.length === 0 ? [] : [{ name: provider.name, on: listed(differing) }];
  });
  for (const [on, others] of Map.groupBy(unlike, (one) => one.on)) {
    const sentence = `LiteLLM has one retry policy for all providers: on ${on}, that of the first one also holds for ${listedProviders(others)}, whose own it is not.`;
    warnings.loss('one_policy', null, sentence);
  }
  const decisions = routing.providers.flatMap((one) => one.decisions);
  for (const condition of conditions) {
    const apart = decisions.flatMap(({ condition: decided, max_retries, next_provider, exceptions }) =>
      decided !== condition
        ? []
        : exceptions.filter((other) => other.max_retries !== max_retries || (other.next_provider === null) !== (next_provider === null)),
    );
    const statuses = [...new Set(apart.map(({ status_code }) => String(status_code)))];
    const sentence = `LiteLLM treats every status of ${condition} alike; the chain treats ${listed(shortened(statuses, 10, 'other status'))} differently.`;
    if (statuses.length > 0) warnings.loss('status_codes', null, sentence);
  }
}

/** The conditions with fallbacks of their own in LiteLLM. */
const special = conditions.filter((condition) => specialOf[condition] !== null);

/** The conditions of answers with status 200. */
const answered = conditions.filter((condition) => condition !== ofStream.broken && traitsOf[condition].statuses.includes(200));

/** The order of the backups. LiteLLM falls back on every other failure or never. */
function fallbacks(source: Source, groups: readonly string[]): Record<string, unknown> {
  const { providers, warnings } = source;
  const first = providers[0]!;
  const general = conditions
    .filter((condition) => !special.includes(condition))
    .map((condition) => first.onwards(condition))
    .reduce((longest, order) => (order.length > longest.length ? order : longest));
  const led = special.map((condition) => ({
    setting: specialSettings[specialOf[condition]!],
    condition,
    orders: ownOrders(source, general, condition),
  }));
  if (general.length === 0 && led.every(({ orders }) => orders.size === 0)) return {};
  const ends = endsBefore(source, general);
  if (answered.some((condition) => !ends.includes(condition))) {
    const sentence =
      'LiteLLM returns an empty answer (invalid_response), or one with the finish reason content_filter, to the caller; it never retries it or falls back on it.';
    warnings.loss('empty_answer', null, sentence);
  }
  if (ends.length > 0) warnings.loss('fail', null, `The chain ends with an error on ${listed(ends)}; LiteLLM falls back on any failure.`);
  warnOfOtherOrders(source, general);
  const named = (indexes: readonly number[]) => indexes.map((index) => groups[index]!);
  const longest = Math.max(general.length, ...led.flatMap(({ orders }) => [...orders.values()].map((order) => order.length)));
  return {
    ...(general.length === 0 ? {} : { fallbacks: [{ [groups[0]!]: named(general) }] }),
    ...Object.fromEntries(
      led.flatMap(({ setting, orders }) => {
        const maps = [...orders].map(([index, order]) => ({ [groups[index]!]: named(order) }));
        return maps.length === 0 ? [] : [[setting, maps]];
      }),
    ),
    ...(longest > defaultMaxFallbacks ? { max_fallbacks: longest } : {}),
  };
}

/**
 * The providers with an order of their own for a condition, with that order: the first one, since LiteLLM otherwise ends, and
 * others whose order is not the rest of the general one. After such an order, LiteLLM continues with the general one.
 */
function ownOrders({ providers, warnings }: Source, general: readonly number[], condition: Condition): Map<number, readonly number[]> {
  const orders = new Map<number, readonly number[]>();
  for (const { index, provider, onwards } of providers) {
    const order = onwards(condition);
    const rest = general.slice(general.indexOf(index) + 1);
    // An empty list ends the prompt; without a list, the general one would hold.
    if (
      index === 0
        ? String(order) === String(general) && order.length === 0
        : order.length === 0 || !general.includes(index) || String(order) === String(rest)
    )
      continue;
    orders.set(index, order);
    const left = rest.filter((other) => !order.includes(other)).map((other) => providers[other]!.provider.name);
    const sentence = `On ${condition} at ${provider.name} the chain ends after ${order.map((other) => providers[other]!.provider.name).join(', then ')}; LiteLLM then tries ${listed(left)}.`;
    if (index > 0 && left.length > 0) warnings.loss('to', 'fallback_rules', sentence);
  }
  return orders;
}

/** The conditions on which the chain ends at a provider after which LiteLLM has another one. */
function endsBefore({ providers }: Source, general: readonly number[]): Condition[] {
  const isSpecial = (condition: Condition) => special.includes(condition);
  return conditions.filter(
    (condition) =>
      condition !== ofStream.broken &&
      [0, ...general.slice(0, -1)].some(
        (index) => providers[index]!.onwards(condition).length === 0 && general.length > 0 && !(index === 0 && isSpecial(condition)),
      ),
  );
}

/** Warns of failovers by `to` on other conditions, for which LiteLLM has a single order. */
function warnOfOtherOrders({ providers, warnings }: Source, general: readonly number[]): void {
  for (const { provider, index, reactionTo, onwards } of providers) {
    const rest = String(general.slice(general.indexOf(index) + 1));
    const led = conditions.filter((condition) => {
      const isSpecial = special.includes(condition);
      return !isSpecial && reactionTo(condition).rule?.to != null && onwards(condition).length > 0 && String(onwards(condition)) !== rest;
    });
    const sentence = `LiteLLM has one order for every failure but context_length and content_filter; on ${listed(led)}, the chain goes from ${provider.name} to others.`;
    if (led.length > 0) warnings.loss('to', 'fallback_rules', sentence);
  }
}
