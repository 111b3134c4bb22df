import { type ChainDefinition, type Condition, conditions, type Rule } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import { isStatusOf } from './conditions.ts';
import { createEngine, type Engine } from './engine.ts';
import { isOwnVariable } from './key-grants.ts';
import { apiBase, kinds, knownKind } from './kinds.ts';
import { type Case, casesOf, unreachable, waysToFail, worstCase } from './reach.ts';
import { duration, listed, plural } from './wording.ts';

/** Conditions that every chain encounters. */
const common: readonly Condition[] = ['rate_limit', 'timeout', 'server_error', 'connection_error'];

/** Conditions that retrying does not resolve. */
const lasting: ReadonlySet<string> = new Set(['auth_error', 'quota_exceeded', 'context_length', 'content_filter', 'invalid_request']);

/** Chains whose prompts can take longer than this get a warning. */
const slowMs = 120_000;

/** Warnings about surprising effects of a chain's rules, in the order of its fields. */
export function warningsOf(chain: ChainDefinition, engine: Engine = createEngine(chain)): Warning[] {
  return [
    ...providerWarnings(chain),
    ...orderWarnings(chain, engine),
    ...chain.fallback_rules.flatMap((rule, place) => fieldWarnings(rule, place)),
    ...firingWarnings(chain, engine),
    ...coverageWarnings(chain, engine),
    ...slowWarnings(engine),
  ];
}

const warning = (code: string, field: string | null, detail: string): Warning => ({ code, field, detail });

function providerWarnings({ providers }: ChainDefinition): Warning[] {
  return providers.flatMap((provider, place) => {
    const at = `providers.${place}`;
    const { name, provider: kind, api_base, api_key_env } = provider;
    const found: Warning[] = [];
    if (kind !== null && knownKind(kind) === undefined)
      found.push(
        warning(
          'unknown_kind',
          `${at}.provider`,
          `${kind} is not a known kind, so ${name} is called with OpenAI's protocol. Known kinds: ${Object.keys(kinds).join(', ')}.`,
        ),
      );
    if (apiBase(provider) === null)
      found.push(
        warning('no_address', `${at}.api_base`, `${name} has neither a known kind nor an api_base: it can be simulated, but not called.`),
      );
    if (api_key_env !== null && isOwnVariable(api_key_env))
      found.push(
        warning(
          'own_variable',
          `${at}.api_key_env`,
          `${api_key_env} is a setting of this service and is never sent to a provider; name another variable.`,
        ),
      );
    if (api_base !== null && api_key_env !== null && /^http:/i.test(api_base) && !/^http:\/\/(localhost|127\.|\[::1\])/i.test(api_base))
      found.push(warning('plain_http', `${at}.api_base`, `The key of ${name} would be sent unencrypted; use https.`));
    return found;
  });
}

function orderWarnings({ providers }: ChainDefinition, engine: Engine): Warning[] {
  const found: Warning[] = [];
  if (providers.length === 1)
    found.push(warning('no_backup', 'providers', `${providers[0]!.name} is the only provider, so there is nothing to fall back to.`));
  for (const [place, { name, priority }] of providers.entries()) {
    const before = providers[place - 1];
    if (before?.priority === priority)
      found.push(
        warning(
          'priority_tie',
          `providers.${place}.priority`,
          `${before.name} and ${name} have the same priority ${priority}; they are tried in the order of the list.`,
        ),
      );
  }
  const bases = new Set(providers.map((provider) => apiBase(provider)));
  const [base] = bases;
  if (providers.length > 1 && bases.size === 1 && typeof base === 'string')
    found.push(
      warning('shared_host', 'providers', `Every provider is called at ${new URL(base).host}; an outage there takes the whole chain down.`),
    );
  for (const place of unreachable(engine))
    found.push(
      warning(
        'unreachable_provider',
        `providers.${place}`,
        `${providers[place]!.name} is never tried, because every failure of a provider before it ends the prompt.`,
      ),
    );
  return found;
}

/** Warnings about unused or contradictory fields of a rule. */
function fieldWarnings(rule: Rule, place: number): Warning[] {
  const at = `fallback_rules.${place}`;
  const found: Warning[] = [];
  const { condition, action, max_retries, wait_ms, max_wait_ms, status_codes } = rule;
  if (action !== 'retry') {
    const unused = (['max_retries', 'wait_ms', 'backoff', 'max_wait_ms', 'respect_retry_after', 'then'] as const).filter(
      (field) => rule[field] !== null,
    );
    for (const field of unused)
      found.push(warning('unused_field', `${at}.${field}`, `${field} has no effect with the action ${action}; only retry uses it.`));
  } else {
    if (max_retries === 0)
      found.push(
        warning(
          'no_retries',
          `${at}.max_retries`,
          `With max_retries 0 this rule never retries; its "then" (${rule.then}) applies at once.`,
        ),
      );
    if (lasting.has(condition) && max_retries! > 0)
      found.push(
        warning('hopeless_retry', `${at}.action`, `After ${condition} the same call usually fails again, so retries only cost time.`),
      );
    if (wait_ms! > max_wait_ms!)
      found.push(
        warning('wait_cut', `${at}.wait_ms`, `wait_ms is longer than max_wait_ms, so every wait is cut to ${duration(max_wait_ms!)}.`),
      );
  }
  if (status_codes !== null && condition !== 'any') {
    const foreign = status_codes.filter((status) => !isStatusOf(condition, status));
    if (foreign.length > 0 && foreign.length < status_codes.length)
      found.push(warning('foreign_status', `${at}.status_codes`, `${condition} never has status ${listed(foreign.map(String))}.`));
  }
  return found;
}

/** Warnings about rules that can never apply. */
function firingWarnings(chain: ChainDefinition, engine: Engine): Warning[] {
  const ways = waysToFail(engine);
  const out = new Set(unreachable(engine));
  const cases = [...chain.providers.keys()].flatMap((provider) =>
    out.has(provider) ? [] : [{ provider, cases: casesOf(engine, provider, ways) }],
  );
  const firing = new Set(cases.flatMap((found) => found.cases.map(({ rule }) => rule)));
  return chain.fallback_rules.flatMap((rule, place) => {
    if (firing.has(place)) return [];
    const { condition, status_codes, providers } = rule;
    const at = `fallback_rules.${place}`;
    const possible = status_codes?.filter((status) =>
      conditions.some((one) => (condition === 'any' || condition === one) && isStatusOf(one, status)),
    );
    if (possible?.length === 0) {
      const what = condition === 'any' ? 'A failure' : condition;
      return [
        warning(
          'impossible_rule',
          `${at}.status_codes`,
          `${what} never has status ${listed(status_codes!.map(String))}, so this rule can never fire.`,
        ),
      ];
    }
    const mine = cases.filter(({ provider }) => providers === null || providers.includes(chain.providers[provider]!.name));
    if (mine.length === 0) return [warning('shadowed_rule', at, 'This rule can never fire, because its providers are never tried.')];
    const before = new Set(mine.flatMap((found) => found.cases.filter((one) => wants(rule, one)).map((one) => one.rule)));
    const names = [...before].sort((one, other) => one - other).map((other) => `fallback_rules.${other}`);
    return [
      warning(
        'shadowed_rule',
        at,
        `This rule can never fire, because ${listed(names)} always ${names.length > 1 ? 'decide' : 'decides'} before it.`,
      ),
    ];
  });
}

/** Whether a rule covers a case, even if another rule decides it. */
function wants({ condition, status_codes }: Rule, found: Case): boolean {
  if (condition !== 'any' && condition !== found.condition) return false;
  return status_codes === null || (found.status_code !== null && status_codes.includes(found.status_code));
}

/** A warning about common conditions without a rule. */
function coverageWarnings(chain: ChainDefinition, engine: Engine): Warning[] {
  const bare = defaulted(chain, engine).filter((condition) => common.includes(condition));
  if (bare.length === 0) return [];
  const does = chain.providers.length > 1 ? 'the next provider is tried at once' : 'the prompt fails';
  return [warning('no_rule', 'fallback_rules', `No rule covers every case of ${listed(bare)}; by default ${does}.`)];
}

/** The conditions that a default decides for some provider and status. */
export function defaulted(chain: ChainDefinition, engine: Engine): Condition[] {
  const ways = waysToFail(engine);
  const bare = new Set(
    [...chain.providers.keys()].flatMap((provider) =>
      casesOf(engine, provider, ways).flatMap(({ condition, rule }) => (rule === -1 ? [condition] : [])),
    ),
  );
  return conditions.filter((condition) => bare.has(condition));
}

function slowWarnings(engine: Engine): Warning[] {
  const { attempts, latency_ms } = worstCase(engine);
  if (latency_ms <= slowMs) return [];
  return [
    warning(
      'slow_worst_case',
      null,
      `One prompt can take up to ${duration(latency_ms)} and ${plural(attempts, 'attempt')}; shorter timeouts or fewer retries reduce that.`,
    ),
  ];
}
