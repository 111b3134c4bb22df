import { invalid } from '../../../kit/errors.ts';
import { type Condition, conditions, maxProviders } from '../../model/chain.ts';
import { conditionOf, knownStatuses, traitsOf } from '../conditions.ts';
import { kindNamed } from '../exports/kind-names.ts';
import { asRequested, paramNamesInPortkey } from '../exports/portkey.ts';
import { isSecret } from '../params.ts';
import type { WarningList } from '../warning-list.ts';
import { listed } from '../wording.ts';
import { readKey } from './litellm.ts';
import { leaveOutUnknown, listAt, numberAt, objectAt, type Shape, textAt, uniqueName } from './shape.ts';

/** A target with the statuses on which Portkey fails over; undefined for all failures. */
interface Target {
  shape: Shape;
  path: string;
  handover: readonly number[] | undefined;
}

/** The gateway reads the names without a prefix; its headers, and files that people have, use those with one. */
const azureNames = ['resource_name', 'deployment_id', 'api_version'];
const targetNames = [
  ...['name', 'provider', 'custom_host', 'api_key', 'override_params', 'request_timeout', 'retry', 'weight'],
  ...[...Object.values(paramNamesInPortkey), ...azureNames, ...azureNames.map((name) => `azure_${name}`)],
];
/** What targets inherit from the strategy around them. */
const inheritedNames = ['override_params', 'request_timeout', 'retry'];

/** The deepest nesting of strategies. */
const maxNesting = maxProviders;

/** Reads a Portkey gateway configuration: its strategies as one order, or a single target. */
export function readPortkey(value: unknown, findings: WarningList): Shape {
  const file = objectAt(value, 'content');
  const targets = targetsOf(file, '', null, findings);
  if (targets.length === 0) throw invalid('targets', 'No target is left to import.');
  // The last target has no successor. It is treated like the one before it, so that rules need not name providers.
  const last = targets.at(-1)!;
  targets[targets.length - 1] = { ...last, handover: targets.at(-2)?.handover };
  if (targets.length > maxProviders) listAt(targets, 'targets', maxProviders);
  const taken = new Set<string>();
  const providers = targets.map(({ shape, path }, priority) => readTarget(shape, path, priority, taken, findings));
  const rules = [...retryRules(targets, providers), ...handoverRules(targets, providers)];
  return { ...(typeof file.name === 'string' ? { name: file.name } : {}), providers, fallback_rules: rules };
}

/** The strategy around targets, with the statuses on which it goes on to the target after them; null if there is none. */
type Outer = { readonly codes: readonly number[] | undefined } | null;

/** The targets in order, including those of nested strategies. */
function targetsOf(shape: Shape, path: string, outer: Outer, findings: WarningList, depth = 0): Target[] {
  const at = (name: string) => (path === '' ? name : `${path}.${name}`);
  if (shape.targets === undefined) return [{ shape, path, handover: outer?.codes }];
  if (depth > maxNesting) throw invalid(path, `Strategies are nested more than ${maxNesting} levels deep.`);
  leaveOutUnknown(findings, shape, ['strategy', 'targets', 'name', 'weight', ...inheritedNames], path);
  const strategy = shape.strategy === undefined || shape.strategy === null ? { mode: 'single' } : objectAt(shape.strategy, at('strategy'));
  const isFallback = strategy.mode === 'fallback';
  const own = isFallback ? statusesAt(strategy.on_status_codes, at('strategy.on_status_codes')) : outer?.codes;
  const inherited = Object.fromEntries(inheritedNames.flatMap((name) => (shape[name] === undefined ? [] : [[name, shape[name]]])));
  const targets = listAt(shape.targets, at('targets'), maxProviders).map((entry) => entry);
  const chosen = chosenTargets(strategy, targets, at, findings);
  const handover = isFallback && chosen.length > 1 ? withOuter(own, outer, at('strategy'), findings) : own;
  return targets.flatMap((entry, index) => {
    if (!chosen.includes(entry)) return [];
    const inner = at(`targets.${index}`);
    // After the last target of an inner strategy, the outer strategy decides.
    const next = entry === chosen.at(-1) ? outer : { codes: handover };
    return targetsOf({ ...inherited, ...objectAt(entry, inner) }, inner, next, findings, depth + 1);
  });
}

/** The statuses on which an inner strategy or the one around it goes on; on those of the latter alone, Portkey skips the rest of the inner one. */
function withOuter(own: readonly number[] | undefined, outer: Outer, field: string, findings: WarningList): readonly number[] | undefined {
  if (own === undefined || outer === null) return own;
  const skipping = (outer.codes ?? knownStatuses).filter((status) => !own.includes(status));
  if (skipping.length === 0) return own;
  const skippedOn = conditions.filter((condition) => statusesOf(condition).some((status) => skipping.includes(status)));
  findings.add('skips', field, `On ${listed(skippedOn)}, Portkey skips the rest of this strategy; the chain tries its targets in turn.`);
  return outer.codes === undefined ? undefined : [...own, ...skipping];
}

/** The targets that a strategy may use, as far as a chain has them: all in turn, or the one of a single or conditional strategy. */
function chosenTargets(strategy: Shape, targets: readonly unknown[], at: (name: string) => string, findings: WarningList): unknown[] {
  const { mode } = strategy;
  if (mode === 'fallback') return [...targets];
  if (mode === 'loadbalance') {
    findings.add(
      'load_balanced',
      at('strategy.mode'),
      `Portkey balances the load between ${targets.length} targets; the chain tries them in turn.`,
    );
    return [...targets];
  }
  const byDefault = targets.find((target) => typeof target === 'object' && target !== null && (target as Shape).name === strategy.default);
  const chosen = (mode === 'conditional' && strategy.default !== undefined ? byDefault : undefined) ?? targets[0];
  if (mode !== 'single') {
    const why = mode === 'conditional' ? 'a chain has no conditions on requests' : `${String(mode).slice(0, 40)} is no known mode`;
    findings.add(
      'left_out',
      at('strategy.mode'),
      `Only the ${byDefault === undefined ? 'first' : 'default'} target is imported, because ${why}.`,
    );
  }
  return [chosen];
}

function statusesAt(value: unknown, field: string): readonly number[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value) || !value.every((status) => Number.isInteger(status) && status >= 100 && status <= 599)) {
    throw invalid(field, `${field} must be a list of HTTP statuses.`);
  }
  return value as number[];
}

function readTarget(shape: Shape, path: string, priority: number, taken: Set<string>, findings: WarningList): Shape {
  const at = (name: string) => (path === '' ? name : `${path}.${name}`);
  leaveOutUnknown(findings, shape, path === '' ? [...targetNames, 'strategy'] : targetNames, path);
  const slug = typeof shape.provider === 'string' && shape.provider.startsWith('@') ? shape.provider : undefined;
  const virtual = shape.virtual_key ?? slug;
  const called =
    virtual !== undefined && (shape.provider === undefined || slug !== undefined) ? null : textAt(shape.provider, at('provider'));
  const kind = called === null ? null : kindNamed('portkey', called);
  if (virtual !== undefined)
    findings.add(
      'virtual_key',
      at('virtual_key'),
      `${at('virtual_key')} is kept for exports to Portkey; only Portkey knows the provider and key behind it.`,
    );
  if (called !== null && kind === null)
    findings.add(
      'provider_kind',
      at('provider'),
      `${at('provider')} names the unknown provider ${called}; the model is imported unchanged, without a kind.`,
    );
  const parameters = shape.override_params === undefined ? {} : objectAt(shape.override_params, at('override_params'));
  leaveOutUnknown(findings, parameters, ['model', 'max_tokens'], at('override_params'));
  const deployment = kind === 'azure' ? (shape.deployment_id ?? shape.azure_deployment_id) : undefined;
  const resource = shape.resource_name ?? shape.azure_resource_name;
  const model_id = textAt(deployment ?? parameters.model ?? asRequested, at('override_params.model'));
  if (model_id === asRequested)
    findings.add(
      'model',
      at('override_params.model'),
      `${at('override_params')} has no model, so Portkey sends that of each request; set model_id for tests.`,
    );
  const params = readParams(shape, virtual, at, findings);
  const provider = {
    name: uniqueName(
      typeof shape.name === 'string' && shape.name !== '' ? shape.name : model_id === asRequested ? (called ?? String(virtual)) : model_id,
      taken,
    ),
    model_id,
    priority,
    provider: kind ?? undefined,
    api_base: shape.custom_host ?? (typeof resource === 'string' ? `https://${resource}.openai.azure.com` : undefined),
    api_key_env: readKey(shape.api_key, /^\$\{([A-Za-z_]\w*)\}$/, at('api_key'), findings),
    timeout_ms: numberAt(shape.request_timeout, at('request_timeout')),
    max_tokens: numberAt(parameters.max_tokens, at('override_params.max_tokens')),
    params: Object.keys(params).length === 0 ? undefined : params,
  };
  return Object.fromEntries(Object.entries(provider).filter(([, member]) => member !== undefined));
}

/** The parameters by their names in a chain. */
function readParams(shape: Shape, virtual: unknown, at: (name: string) => string, findings: WarningList): Record<string, unknown> {
  const params: Record<string, unknown> = virtual === undefined ? {} : { virtual_key: virtual };
  for (const [name, called] of Object.entries(paramNamesInPortkey)) {
    const value = shape[called] ?? (called === 'api_version' ? shape.azure_api_version : undefined);
    if (value === undefined || name === 'virtual_key') continue;
    const variable = /^\$\{([A-Za-z_]\w*)\}$/.exec(String(value))?.[1];
    if (variable !== undefined) params[name] = `os.environ/${variable}`;
    else if (isSecret(name, value))
      findings.add('key_left_out', at(called), `${at(called)} is not imported, because keys are never stored.`);
    else params[name] = value;
  }
  return params;
}

const statusesOf = (condition: Condition) => knownStatuses.filter((status) => conditionOf(status) === condition);

/** Groups providers with equal settings into one rule, which names them unless all are equal. */
function perProvider<T>(targets: readonly Target[], providers: readonly Shape[], read: (target: Target) => T): { of: T; named: Shape }[] {
  const groups = new Map<string, { of: T; names: unknown[] }>();
  targets.forEach((target, index) => {
    const of = read(target);
    const key = JSON.stringify(of) ?? '';
    const group = groups.get(key) ?? { of, names: [] };
    group.names.push(providers[index]!.name);
    groups.set(key, group);
  });
  return [...groups.values()].map(({ of, names }) => ({ of, named: names.length === providers.length ? {} : { providers: names } }));
}

/** The retry rules. Portkey waits 1, 2, 4 ... seconds, and retries failed connections like any other failure. */
function retryRules(targets: readonly Target[], providers: readonly Shape[]): Shape[] {
  const read = ({ shape, path, handover }: Target) => {
    if (shape.retry === undefined || shape.retry === null) return { attempts: 0, statuses: [], handover };
    const field = path === '' ? 'retry' : `${path}.retry`;
    const { attempts, on_status_codes } = objectAt(shape.retry, field);
    const statuses = statusesAt(on_status_codes, `${field}.on_status_codes`) ?? [429, 500, 502, 503, 504];
    return { attempts: numberAt(attempts, `${field}.attempts`) ?? 0, statuses, handover };
  };
  return perProvider(targets, providers, read).flatMap(({ of: { attempts, statuses, handover }, named }) => {
    if (attempts === 0) return [];
    const rule = (condition: Condition, codes: number[] = []) => ({
      condition,
      action: 'retry',
      max_retries: attempts,
      ...named,
      ...(codes.length === 0 || codes.length === statusesOf(condition).length ? {} : { status_codes: codes }),
      wait_ms: 1000,
      max_wait_ms: Math.max(10_000, 1000 * 2 ** (attempts - 1)),
      respect_retry_after: false,
      ...(failsOver(condition, handover) ? {} : { then: 'fail' }),
    });
    const retried = conditions.flatMap((condition) => {
      if (condition === 'connection_error') return [rule(condition)];
      const codes = statusesOf(condition).filter((status) => statuses.includes(status));
      return codes.length === 0 ? [] : [rule(condition, codes)];
    });
    return retried;
  });
}

/** Whether Portkey fails over on this condition, judged by its usual status. */
function failsOver(condition: Condition, handover: readonly number[] | undefined): boolean {
  if (handover === undefined) return condition !== 'invalid_response';
  if (condition === 'connection_error') return handover.includes(500);
  if (condition === 'content_filter') return handover.includes(400);
  const codes = statusesOf(condition);
  return codes.length > 0 && codes.some((status) => handover.includes(status));
}

/** The rules where Portkey's failover differs from the defaults of a chain. The last target has no successor. */
function handoverRules(targets: readonly Target[], providers: readonly Shape[]): Shape[] {
  const before = targets.slice(0, -1);
  return perProvider(before, providers.slice(0, -1), ({ handover }) => handover ?? null).flatMap(({ of, named }) => {
    const handover = of ?? undefined;
    const any = handover === undefined ? [{ condition: 'any', action: 'failover', ...named }] : [];
    const single = conditions.flatMap((condition): Shape[] => {
      const on = failsOver(condition, handover);
      if (handover === undefined) return on ? [] : [{ condition, action: 'fail', ...named }];
      const odd = statusesOf(condition).filter((status) => handover.includes(status) !== on);
      const apart = odd.length === 0 ? [] : [{ condition, action: on ? 'fail' : 'failover', ...named, status_codes: odd }];
      return on === (traitsOf[condition].byDefault === 'failover')
        ? apart
        : [...apart, { condition, action: on ? 'failover' : 'fail', ...named }];
    });
    return [...any, ...single];
  });
}
