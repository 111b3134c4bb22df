import { readJson } from '../../../kit/json.ts';
import { counted } from '../../../kit/web/format.ts';
import {
  type ChainRequest,
  type Condition,
  type Params,
  type ProviderRequest,
  type RuleRequest,
  retryDefaults,
} from '../../model/chain.ts';
import { listed } from '../../rules/wording.ts';

/** A field that a rule always has in a draft. */
type RuleField<Name extends keyof RuleRequest> = NonNullable<RuleRequest[Name]>;

const providerTexts = ['provider', 'api_base', 'api_key_env'] as const;
const providerNumbers = ['timeout_ms', 'first_token_ms', 'idle_ms', 'max_tokens', 'input_cost_per_1m', 'output_cost_per_1m'] as const;
const providerFields = ['name', 'model_id', ...providerTexts, ...providerNumbers] as const;
const cooldownNumbers = ['allowed_fails', 'window_ms', 'seconds'] as const;
const retryNumbers = ['max_retries', 'wait_ms', 'max_wait_ms'] as const;

/** A provider being edited: texts, empty for defaults. `key` identifies it while it is moved. */
export interface ProviderDraft extends Record<(typeof providerFields)[number], string> {
  readonly key: string;
  /** Kept while the order is unchanged; null means the position in the list. */
  priority: number | null;
  /** The parameters as JSON; empty for none. */
  params: string;
  /** Not editable here, but preserved. */
  metadata: Record<string, unknown>;
  cooldown: CooldownDraft;
}

/** A cool-down being edited: texts; all empty for none. */
export interface CooldownDraft extends Record<(typeof cooldownNumbers)[number], string> {
  /** The failures that count; empty for the usual ones. */
  conditions: readonly Condition[];
}

/** A rule being edited. */
export interface RuleDraft extends Record<(typeof retryNumbers)[number], string> {
  readonly key: string;
  condition: RuleRequest['condition'];
  action: RuleRequest['action'];
  /** The keys of the providers that it applies to; empty means all. */
  providers: readonly string[];
  /** The keys of the providers of a failover, in order; empty means the chain's order. */
  to: readonly string[];
  status_codes: string;
  backoff: RuleField<'backoff'>;
  respect_retry_after: boolean;
  after: RuleField<'then'>;
}

/** A chain being edited. */
export interface ChainDraft {
  name: string;
  description: string;
  providers: readonly ProviderDraft[];
  rules: readonly RuleDraft[];
  cooldown: CooldownDraft;
  /** Not editable here, but preserved. */
  metadata: Record<string, unknown>;
}

let keys = 0;
/** A key that is unique on this page. */
const newKey = (): string => `row-${++keys}`;

/** An object with the value of each name. */
const valuesOf = <Name extends string, T>(names: readonly Name[], read: (name: Name) => T) =>
  Object.fromEntries(names.map((name) => [name, read(name)])) as Record<Name, T>;

const text = (value: string | number | null | undefined): string => (value === null || value === undefined ? '' : String(value));

const cooldownDraft = (cooldown: ChainRequest['cooldown']): CooldownDraft => ({
  ...valuesOf(cooldownNumbers, (name) => text(cooldown?.[name])),
  conditions: cooldown?.conditions ?? [],
});

/** The cool-down for a request; null if all its fields are empty. */
function cooldownRequest(draft: CooldownDraft): ChainRequest['cooldown'] & (object | null) {
  if (cooldownNumbers.every((name) => draft[name].trim() === '') && draft.conditions.length === 0) return null;
  // What is missing is refused by the service, which names its field.
  const given = cooldownNumbers.filter((name) => draft[name].trim() !== '');
  const numbers = valuesOf(given, (name) => numberOf(draft[name])) as Record<(typeof cooldownNumbers)[number], number>;
  return { ...numbers, conditions: draft.conditions.length === 0 ? null : [...draft.conditions] };
}

const providerDraft = (provider: ProviderRequest): ProviderDraft => ({
  key: newKey(),
  ...valuesOf(providerFields, (name) => text(provider[name])),
  priority: provider.priority ?? null,
  params: Object.keys(provider.params ?? {}).length === 0 ? '' : JSON.stringify(provider.params, null, 2),
  metadata: provider.metadata ?? {},
  cooldown: cooldownDraft(provider.cooldown),
});

const ruleDraft = (rule: RuleRequest, providers: readonly ProviderDraft[]): RuleDraft => ({
  key: newKey(),
  condition: rule.condition,
  action: rule.action,
  ...valuesOf(retryNumbers, (name) => text(rule[name])),
  providers: providers.filter(({ name }) => rule.providers?.includes(name)).map(({ key }) => key),
  to: (rule.to ?? []).flatMap((name) => providers.find((provider) => provider.name === name)?.key ?? []),
  status_codes: (rule.status_codes ?? []).join(', '),
  backoff: rule.backoff ?? retryDefaults.backoff,
  respect_retry_after: rule.respect_retry_after ?? retryDefaults.respect_retry_after,
  after: rule.then ?? retryDefaults.then,
});

const blankProvider = { name: '', model_id: '' };

export const emptyProvider = (): ProviderDraft => providerDraft(blankProvider);

export const emptyRule = (): RuleDraft => ruleDraft({ condition: 'rate_limit', action: 'retry' }, []);

/** A new chain, with empty rows for the first provider and its backup. */
export const emptyDraft = (): ChainDraft => draftOf({ name: '', providers: [blankProvider, blankProvider] });

/** The draft of a chain. */
export function draftOf(chain: ChainRequest): ChainDraft {
  const providers = chain.providers.map(providerDraft);
  return {
    name: chain.name,
    description: chain.description ?? '',
    providers,
    rules: (chain.fallback_rules ?? []).map((rule) => ruleDraft(rule, providers)),
    cooldown: cooldownDraft(chain.cooldown),
    metadata: chain.metadata ?? {},
  };
}

/** A text in place of a value of another type. The service refuses it, and names its field. */
const refused = (typed: string) => typed as never;

/** The number in a text. An invalid number stays a text, so that the service reports the fault. */
export function numberOf(typed: string): number | null {
  if (typed.trim() === '') return null;
  const value = Number(typed);
  return Number.isFinite(value) ? value : refused(typed);
}

const textOf = (typed: string): string | null => (typed.trim() === '' ? null : typed.trim());

/** The object in a text. A text that is not JSON stays a text, so that the service reports the fault. */
function paramsOf(typed: string): Params {
  if (typed.trim() === '') return {};
  try {
    return readJson(typed);
  } catch {
    return refused(typed);
  }
}

const providerRequest = (draft: ProviderDraft, index: number): ProviderRequest => ({
  name: draft.name.trim(),
  model_id: draft.model_id.trim(),
  priority: draft.priority ?? index,
  ...valuesOf(providerTexts, (name) => textOf(draft[name])),
  ...valuesOf(providerNumbers, (name) => numberOf(draft[name])),
  params: paramsOf(draft.params),
  metadata: draft.metadata,
  cooldown: cooldownRequest(draft.cooldown),
});

/** Whether a rule can fail over. */
export const failsOver = ({ action, after }: Pick<RuleDraft, 'action' | 'after'>) =>
  action === 'failover' || (action === 'retry' && after === 'failover');

/** The rule for a request. Retry fields are only sent with the action retry. */
export function ruleRequest(draft: RuleDraft, providers: readonly ProviderDraft[]): RuleRequest {
  const codes = draft.status_codes
    .split(/[\s,]+/)
    .filter(Boolean)
    .flatMap((code) => numberOf(code) ?? []);
  const names = providers.filter(({ key }) => draft.providers.includes(key)).map(({ name }) => name.trim());
  const to = draft.to.flatMap((key) => providers.find((provider) => provider.key === key)?.name.trim() ?? []);
  const retry = {
    ...valuesOf(retryNumbers, (name) => numberOf(draft[name])),
    backoff: draft.backoff,
    respect_retry_after: draft.respect_retry_after,
    then: draft.after,
  };
  return {
    condition: draft.condition,
    action: draft.action,
    providers: names.length === 0 ? null : names,
    status_codes: codes.length === 0 ? null : codes,
    to: to.length === 0 || !failsOver(draft) ? null : to,
    ...(draft.action === 'retry' ? retry : {}),
  };
}

/** The chain for a request. */
export const requestOf = (draft: ChainDraft): ChainRequest => ({
  name: draft.name.trim(),
  description: textOf(draft.description),
  providers: draft.providers.map(providerRequest),
  fallback_rules: draft.rules.map((rule) => ruleRequest(rule, draft.providers)),
  cooldown: cooldownRequest(draft.cooldown),
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
    .map((rule) => ({ ...rule, providers: rule.providers.filter((other) => other !== key), to: rule.to.filter((other) => other !== key) }))
    .filter(({ providers }, index) => providers.length > 0 || draft.rules[index]!.providers.length === 0);
  const providers = draft.providers.filter((provider) => provider.key !== key);
  return withProviders({ ...draft, rules }, providers);
}

/** What becomes of the rules if a provider is removed, as sentences that number the rules that are left. */
export function removalNotes(draft: ChainDraft, key: string): string[] {
  const nameOf = (one: string) => draft.providers.find((provider) => provider.key === one)?.name.trim() ?? '';
  const name = nameOf(key) === '' ? 'this provider' : nameOf(key);
  const { rules } = withoutProvider(draft, key);
  const lost = draft.rules.length - rules.length;
  const removed = `${counted(lost, 'rule')} for ${name} alone ${lost === 1 ? 'was' : 'were'} also removed.`;
  const changes = rules.flatMap((rule, index) => {
    const before = draft.rules.find((one) => one.key === rule.key)!;
    if (!before.to.includes(key) || !failsOver(before)) return [];
    return rule.to.length === 0
      ? [`Rule ${index + 1} led to ${name} alone; it now goes on in the order of the chain.`]
      : [`Rule ${index + 1} no longer leads to ${name}, only to ${listed(rule.to.map(nameOf))}.`];
  });
  return [...(lost > 0 ? [removed] : []), ...changes];
}

/** The list with the item of this key changed. */
export const changed = <T extends { key: string }>(items: readonly T[], key: string, changes: Partial<T>): T[] =>
  items.map((item) => (item.key === key ? { ...item, ...changes } : item));
