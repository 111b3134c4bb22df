import { isLoopback } from '../../kit/loopback.ts';
import { duration, plural } from '../../kit/wording.ts';
import { type ChainDefinition, conditions, type Provider, type Rule } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import { canFailWith, isStatusOf, ofStream, traitsOf } from './conditions.ts';
import { createEngine, type Engine, type Ruling } from './engine.ts';
import { isOwnVariable } from './key-grants.ts';
import { apiBase, foreignKind, kinds, knownKind, usualKey } from './kinds.ts';
import { defaulted, reachable, worstCase } from './reach.ts';
import { WarningList } from './warning-list.ts';
import { listed, listedProviders } from './wording.ts';

/** Chains whose prompts can take longer than this get a warning. */
const slowMs = 120_000;

/** Warnings about surprising effects of a chain's rules, in the order of its fields. */
export function warningsOf(chain: ChainDefinition, engine: Engine = createEngine(chain)): Warning[] {
  const warnings = new WarningList();
  warnOfProviders(chain.providers, warnings);
  const reached = reachable(engine);
  warnOfOrder(chain, reached, warnings);
  for (const [index, rule] of chain.fallback_rules.entries()) warnOfFields(rule, `fallback_rules.${index}`, warnings);
  for (const index of chain.fallback_rules.keys()) warnOfIdleRule(chain, index, reached, warnings);
  const withoutRule = defaulted(engine).filter((condition) => traitsOf[condition].common);
  const does = chain.providers.length > 1 ? 'the next provider is tried at once' : 'the prompt fails';
  if (withoutRule.length > 0) warnings.add('no_rule', 'fallback_rules', `There is no rule for ${listed(withoutRule)}; ${does}.`);
  const { attempts, latency_ms } = worstCase(engine);
  const worst = `${duration(latency_ms)} and ${plural(attempts, 'attempt')}`;
  if (latency_ms > slowMs)
    warnings.add('slow_worst_case', null, `One prompt can take up to ${worst}; shorter timeouts or fewer retries reduce that.`);
  return warnings.items;
}

/** Warns of providers, with one warning for all of which the same is true. */
function warnOfProviders(providers: readonly Provider[], warnings: WarningList): void {
  const all = providers.flatMap((provider, index) =>
    warningsOfProvider(provider).map(({ code, field, say }) => ({ code, field: `providers.${index}.${field}`, say, name: provider.name })),
  );
  for (const group of Map.groupBy(all, ({ code, say }) => `${code} ${say('')}`).values()) {
    const [{ code, field, say }] = group as [(typeof all)[number]];
    warnings.add(code, field, say(listedProviders(group)));
  }
}

interface ProviderWarning {
  readonly code: string;
  readonly field: string;
  /** The sentence about the named providers, one or several. */
  readonly say: (names: string) => string;
}

function warningsOfProvider(provider: Provider): ProviderWarning[] {
  const { provider: kind, api_base, api_key_env: variable } = provider;
  const found: ProviderWarning[] = [];
  const warn = (code: string, field: string, say: ProviderWarning['say']) => found.push({ code, field, say });
  const foreign = foreignKind(kind);
  if (foreign !== undefined)
    warn(
      'not_callable',
      'provider',
      (names) => `Drill and live tests can't call ${names}: the kind ${kind} is only simulated and exported.`,
    );
  const usual = usualKey(kind, api_base);
  if (usual !== null && variable === null)
    warn(
      'no_key',
      'api_key_env',
      (names) => `Without api_key_env, calls of ${names} have no key; the usual variable of ${kind} is ${usual}.`,
    );
  const known = `Known kinds: ${Object.keys(kinds).join(', ')}.`;
  if (kind !== null && knownKind(kind) === undefined && foreign === undefined)
    warn('unknown_kind', 'provider', (names) => `${kind} is not a known kind, so calls of ${names} use OpenAI's protocol. ${known}`);
  if (apiBase(provider) === null && foreign === undefined)
    warn('no_address', 'api_base', (names) => `Without a known kind or an api_base, ${names} can be simulated, but not called.`);
  for (const field of ['first_token_ms', 'idle_ms'] as const)
    if (provider[field] !== null && provider[field] >= provider.timeout_ms)
      warn('unused_field', field, (names) => `${field} of ${names} has no effect, because timeout_ms is not longer.`);
  const own = `${variable} is a setting of this service and is never sent to a provider; name another variable.`;
  if (variable !== null && isOwnVariable(variable)) warn('own_variable', 'api_key_env', () => own);
  const { protocol, hostname } = new URL(api_base ?? 'https://localhost');
  if (variable !== null && protocol === 'http:' && !isLoopback(hostname))
    warn('plain_http', 'api_base', (names) => `Keys would be sent unencrypted to ${names}; use https.`);
  return found;
}

function warnOfOrder({ providers, fallback_rules }: ChainDefinition, reached: Reached, warnings: WarningList): void {
  if (providers.length === 1)
    warnings.add('no_backup', 'providers', `${providers[0]!.name} is the only provider, so there is nothing to fall back to.`);
  for (const [index, { name, priority }] of providers.entries()) {
    const before = providers[index - 1];
    const sentence = `${before?.name} and ${name} have the same priority ${priority}; they are tried in the order of the list.`;
    if (before?.priority === priority) warnings.add('priority_tie', `providers.${index}.priority`, sentence);
  }
  const [base, ...others] = new Set(providers.map(apiBase));
  if (providers.length > 1 && others.length === 0 && typeof base === 'string') {
    const sentence = `Every provider is called at ${new URL(base).host}; an outage there takes the whole chain down.`;
    warnings.add('shared_host', 'providers', sentence);
  }
  const why = fallback_rules.some(({ to }) => to !== null)
    ? 'no failure leads to it'
    : 'every failure of a provider before it ends the prompt';
  for (const [index, rulings] of reached.entries())
    if (rulings.length === 0)
      warnings.add('unreachable_provider', `providers.${index}`, `${providers[index]!.name} is never tried, because ${why}.`);
}

const retryFields = ['max_retries', 'wait_ms', 'backoff', 'max_wait_ms', 'respect_retry_after', 'then'] as const;

/** Warns of unused or contradictory fields of a rule. */
function warnOfFields(rule: Rule, at: string, warnings: WarningList): void {
  const { condition, action, max_retries, wait_ms, max_wait_ms, status_codes, then, providers, to } = rule;
  const warn = (code: string, field: string, detail: string) => warnings.add(code, `${at}.${field}`, detail);
  const warnOnce = (code: string, detail: string) => {
    if (!warnings.items.some((known) => known.code === code && known.detail === detail)) warn(code, 'action', detail);
  };
  if (action !== 'retry') {
    for (const field of retryFields.filter((name) => rule[name] !== null))
      warn('unused_field', field, `${field} has no effect with the action ${action}; only retry uses it.`);
  } else {
    if (max_retries === 0)
      warn('no_retries', 'max_retries', `With max_retries 0 this rule never retries; its "then" (${then}) applies at once.`);
    else if (condition !== 'any' && !traitsOf[condition].retryHelps)
      warnOnce('hopeless_retry', `After ${condition} the same call usually fails again, so retries only cost time.`);
    if (wait_ms! > max_wait_ms!)
      warn('wait_cut', 'wait_ms', `wait_ms is longer than max_wait_ms, so every wait is cut to ${duration(max_wait_ms!)}.`);
  }
  if (condition === ofStream.broken && action !== 'fail')
    warn('sent_twice', 'action', 'After interrupted the caller already has a part of the answer; the next attempt sends all of it again.');
  if (to !== null && (action === 'fail' || (action === 'retry' && then === 'fail')))
    warn('unused_field', 'to', 'to has no effect, because the rule never fails over.');
  const own = to?.filter((name) => providers?.includes(name)) ?? [];
  if (own.length > 0) warn('own_target', 'to', `${listed(own)} can't be tried after itself, so to skips it.`);
  if (status_codes === null || condition === 'any') return;
  const foreign = status_codes.filter((status) => !isStatusOf(condition, status));
  if (foreign.length > 0 && foreign.length < status_codes.length)
    warn('foreign_status', 'status_codes', `${condition} never has status ${listed(foreign)}.`);
}

/** Warns of a rule that can never apply. `reached` has the rulings of each provider that prompts can reach. */
function warnOfIdleRule({ providers, fallback_rules }: ChainDefinition, index: number, reached: Reached, warnings: WarningList): void {
  if (reached.some((rulings) => rulings.some((found) => found.rule === index))) return;
  const rule = fallback_rules[index]!;
  const { condition, status_codes } = rule;
  const at = `fallback_rules.${index}`;
  const isPossible = (status: number) => conditions.some((one) => (condition === 'any' || condition === one) && isStatusOf(one, status));
  if (status_codes?.some(isPossible) === false) {
    const what = condition === 'any' ? 'A failure' : condition;
    const sentence = `${what} never has status ${listed(status_codes)}, so this rule can never fire.`;
    warnings.add('impossible_rule', `${at}.status_codes`, sentence);
    return;
  }
  if (condition !== 'any' && !providers.some((one) => (rule.providers?.includes(one.name) ?? true) && canFailWith(one, condition))) {
    const sentence = `No provider of this rule has first_token_ms, so ${condition} never happens and this rule can never fire.`;
    warnings.add('impossible_rule', `${at}.condition`, sentence);
    return;
  }
  const own = reached.filter((rulings, provider) => rulings.length > 0 && (rule.providers?.includes(providers[provider]!.name) ?? true));
  const earlier = new Set(own.flat().flatMap((found) => (found.rule !== null && covers(rule, found) ? [found.rule] : [])));
  const names = [...earlier].sort((one, other) => one - other).map((other) => `fallback_rules.${other}`);
  const decide = names.length > 1 ? 'decide' : 'decides';
  const why = own.length === 0 ? 'its providers are never tried' : `${listed(names)} always ${decide} before it`;
  warnings.add('shadowed_rule', at, `This rule can never fire, because ${why}.`);
}

type Reached = ReturnType<typeof reachable>;

/** Whether a rule covers a case, even if another rule decides it. */
function covers({ condition, status_codes }: Rule, found: Ruling): boolean {
  if (condition !== 'any' && condition !== found.condition) return false;
  return status_codes === null || (found.status_code !== null && status_codes.includes(found.status_code));
}
