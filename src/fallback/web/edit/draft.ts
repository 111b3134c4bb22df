import type { Chain, ChainRequest, Provider, ProviderRequest, Rule, RuleRequest } from '../../model/chain.ts';

/** A provider being edited: texts, empty for defaults. `key` identifies it while it is moved. */
export interface ProviderDraft {
  readonly key: string;
  name: string;
  model_id: string;
  provider: string;
  api_base: string;
  api_key_env: string;
  timeout_ms: string;
  max_tokens: string;
  input_cost_per_1m: string;
  output_cost_per_1m: string;
  /** Kept while the order is unchanged; null means the position in the list. */
  priority: number | null;
  /** Not editable here, but preserved. */
  metadata: Record<string, unknown>;
}

/** A rule being edited. */
export interface RuleDraft {
  readonly key: string;
  condition: string;
  action: string;
  max_retries: string;
  /** The keys of the providers that it applies to; empty means all. */
  providers: readonly string[];
  status_codes: string;
  wait_ms: string;
  backoff: string;
  max_wait_ms: string;
  respect_retry_after: boolean;
  after: string;
}

/** A chain being edited. */
export interface ChainDraft {
  name: string;
  description: string;
  providers: readonly ProviderDraft[];
  rules: readonly RuleDraft[];
  metadata: Record<string, unknown>;
}

let keys = 0;
/** A key that is unique on this page. */
export const newKey = (): string => `row-${++keys}`;

const text = (value: string | number | null | undefined): string => (value === null || value === undefined ? '' : String(value));

export const emptyProvider = (): ProviderDraft => ({
  key: newKey(),
  name: '',
  model_id: '',
  provider: '',
  api_base: '',
  api_key_env: '',
  timeout_ms: '',
  max_tokens: '',
  input_cost_per_1m: '',
  output_cost_per_1m: '',
  priority: null,
  metadata: {},
});

export const emptyRule = (): RuleDraft => ({
  key: newKey(),
  condition: 'rate_limit',
  action: 'retry',
  max_retries: '',
  providers: [],
  status_codes: '',
  wait_ms: '',
  backoff: 'exponential',
  max_wait_ms: '',
  respect_retry_after: true,
  after: 'failover',
});

/** A new chain, with empty rows for the first provider and its backup. */
export const emptyDraft = (): ChainDraft => ({
  name: '',
  description: '',
  providers: [emptyProvider(), emptyProvider()],
  rules: [],
  metadata: {},
});

const providerDraft = (provider: Provider): ProviderDraft => ({
  key: newKey(),
  name: provider.name,
  model_id: provider.model_id,
  provider: text(provider.provider),
  api_base: text(provider.api_base),
  api_key_env: text(provider.api_key_env),
  timeout_ms: text(provider.timeout_ms),
  max_tokens: text(provider.max_tokens),
  input_cost_per_1m: text(provider.input_cost_per_1m),
  output_cost_per_1m: text(provider.output_cost_per_1m),
  priority: provider.priority,
  metadata: provider.metadata,
});

const ruleDraft = (rule: Rule, providers: readonly ProviderDraft[]): RuleDraft => ({
  key: newKey(),
  condition: rule.condition,
  action: rule.action,
  max_retries: text(rule.max_retries),
  providers: providers.filter(({ name }) => rule.providers?.includes(name)).map(({ key }) => key),
  status_codes: (rule.status_codes ?? []).join(', '),
  wait_ms: text(rule.wait_ms),
  backoff: rule.backoff ?? 'exponential',
  max_wait_ms: text(rule.max_wait_ms),
  respect_retry_after: rule.respect_retry_after ?? true,
  after: rule.then ?? 'failover',
});

/** The draft of a stored chain. */
export function draftOf(chain: Chain): ChainDraft {
  const providers = chain.providers.map(providerDraft);
  return {
    name: chain.name,
    description: chain.description ?? '',
    providers,
    rules: chain.fallback_rules.map((rule) => ruleDraft(rule, providers)),
    metadata: chain.metadata,
  };
}

/** The number in a text. An invalid number stays a text, so that the service reports the fault. */
function numberOf(typed: string): number | string | null {
  if (typed.trim() === '') return null;
  const value = Number(typed);
  return Number.isFinite(value) ? value : typed;
}

const textOf = (typed: string): string | null => (typed.trim() === '' ? null : typed.trim());

function providerRequest(draft: ProviderDraft, index: number): ProviderRequest {
  return {
    name: draft.name.trim(),
    model_id: draft.model_id.trim(),
    priority: draft.priority ?? index,
    provider: textOf(draft.provider),
    api_base: textOf(draft.api_base),
    api_key_env: textOf(draft.api_key_env),
    timeout_ms: numberOf(draft.timeout_ms),
    max_tokens: numberOf(draft.max_tokens),
    input_cost_per_1m: numberOf(draft.input_cost_per_1m),
    output_cost_per_1m: numberOf(draft.output_cost_per_1m),
    metadata: draft.metadata,
  } as ProviderRequest;
}

/** The rule for a request. Retry fields are only sent with the action retry. */
export function ruleRequest(draft: RuleDraft, providers: readonly ProviderDraft[]): RuleRequest {
  const codes = draft.status_codes
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(numberOf);
  const names = providers.filter(({ key }) => draft.providers.includes(key)).map(({ name }) => name.trim());
  const retry = {
    max_retries: numberOf(draft.max_retries),
    wait_ms: numberOf(draft.wait_ms),
    backoff: draft.backoff,
    max_wait_ms: numberOf(draft.max_wait_ms),
    respect_retry_after: draft.respect_retry_after,
    then: draft.after,
  };
  return {
    condition: draft.condition,
    action: draft.action,
    providers: names.length === 0 ? null : names,
    status_codes: codes.length === 0 ? null : codes,
    ...(draft.action === 'retry' ? retry : {}),
  } as RuleRequest;
}

/** The chain for a request. */
export const requestOf = (draft: ChainDraft): ChainRequest => ({
  name: draft.name.trim(),
  description: textOf(draft.description),
  providers: draft.providers.map(providerRequest),
  fallback_rules: draft.rules.map((rule) => ruleRequest(rule, draft.providers)),
  metadata: draft.metadata,
});

/** The list with one item moved. */
export function moved<T>(items: readonly T[], from: number, to: number): T[] {
  const next = [...items];
  const [item] = next.splice(from, 1);
  if (item !== undefined) next.splice(to, 0, item);
  return next;
}

/** The draft with changed providers, whose positions become their priorities. */
export const withProviders = (draft: ChainDraft, providers: readonly ProviderDraft[]): ChainDraft => ({
  ...draft,
  providers: providers.map((provider) => ({ ...provider, priority: null })),
});

/** The draft without a provider and without the rules for that provider alone. */
export function withoutProvider(draft: ChainDraft, key: string): ChainDraft {
  const rules = draft.rules
    .map((rule) => ({ ...rule, providers: rule.providers.filter((other) => other !== key) }))
    .filter(({ providers }, index) => providers.length > 0 || draft.rules[index]!.providers.length === 0);
  const providers = draft.providers.filter((provider) => provider.key !== key);
  return withProviders({ ...draft, rules }, providers);
}

/** The list with the item of this key changed. */
export const changed = <T extends { key: string }>(items: readonly T[], key: string, changes: Partial<T>): T[] =>
  items.map((item) => (item.key === key ? { ...item, ...changes } : item));
