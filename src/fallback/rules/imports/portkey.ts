import { invalid } from '../../../kit/errors.ts';
import { type Condition, conditions, maxProviders } from '../../model/chain.ts';
import { conditionOf, knownStatuses, traitsOf } from '../conditions.ts';
import { kindNamed } from '../exports/kind-names.ts';
import type { WarningList } from '../warning-list.ts';
import { readKey } from './litellm.ts';
import { leaveOutUnknown, listAt, numberAt, objectAt, type Shape, textAt, uniqueName } from './shape.ts';

/** A target with the statuses on which Portkey fails over; undefined for all failures. */
interface Target {
  shape: Shape;
  path: string;
  handover: readonly number[] | undefined;
}

const targetNames = ['name', 'provider', 'custom_host', 'api_key', 'override_params', 'request_timeout', 'retry'];

/** The deepest nesting of strategies. */
const maxNesting = maxProviders;

/** Reads a Portkey gateway configuration with the strategy `fallback`, or with a single target. */
export function readPortkey(value: unknown, findings: WarningList): Shape {
  const file = objectAt(value, 'content');
  const targets = targetsOf(file, '', undefined, findings);
  // The last target has no successor. It is treated like the one before it, so that rules need not name providers.
  const last = targets.at(-1)!;
  targets[targets.length - 1] = { ...last, handover: targets.at(-2)?.handover };
  if (targets.length > maxProviders) listAt(targets, 'targets', maxProviders);
  const taken = new Set<string>();
  const providers = targets.map(({ shape, path }, priority) => readTarget(shape, path, priority, taken, findings));
  const rules = [...retryRules(targets, providers), ...handoverRules(targets, providers)];
  return { ...(typeof file.name === 'string' ? { name: file.name } : {}), providers, fallback_rules: rules };
}

/** The targets in order, including those of nested strategies. */
function targetsOf(shape: Shape, path: string, outer: readonly number[] | undefined, findings: WarningList, depth = 0): Target[] {
  const at = (name: string) => (path === '' ? name : `${path}.${name}`);
  if (shape.targets === undefined) return [{ shape, path, handover: outer }];
  if (depth > maxNesting) throw invalid(path, `Strategies are nested more than ${maxNesting} levels deep.`);
  leaveOutUnknown(findings, shape, ['strategy', 'targets', 'name'], path);
  const strategy = objectAt(shape.strategy, at('strategy'));
  if (strategy.mode !== 'fallback' && strategy.mode !== 'single') {
    throw invalid(
      at('strategy.mode'),
      `${at('strategy.mode')} must be fallback or single; a chain has an order, but neither weights nor conditions.`,
    );
  }
  const handover = statusesAt(strategy.on_status_codes, at('strategy.on_status_codes'));
  const targets = listAt(shape.targets, at('targets'), maxProviders);
  return targets.flatMap((entry, index) => {
    const inner = at(`targets.${index}`);
    // After the last target of an inner strategy, the outer strategy decides.
    const next = index === targets.length - 1 ? outer : handover;
    return targetsOf(objectAt(entry, inner), inner, next, findings, depth + 1);
  });
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
  const called = textAt(shape.provider, at('provider'));
  const kind = kindNamed('portkey', called);
  if (kind === null)
    findings.add(
      'provider_kind',
      at('provider'),
      `${at('provider')} names the unknown provider ${called}; the model is imported unchanged, without a kind.`,
    );
  const parameters = objectAt(shape.override_params, at('override_params'));
  leaveOutUnknown(findings, parameters, ['model', 'max_tokens'], at('override_params'));
  const model_id = textAt(parameters.model, at('override_params.model'));
  const provider = {
    name: uniqueName(typeof shape.name === 'string' && shape.name !== '' ? shape.name : model_id, taken),
    model_id,
    priority,
    provider: kind ?? undefined,
    api_base: shape.custom_host,
    api_key_env: readKey(shape.api_key, /^\$\{([A-Za-z_]\w*)\}$/, at('api_key'), findings),
    timeout_ms: numberAt(shape.request_timeout, at('request_timeout')),
    max_tokens: numberAt(parameters.max_tokens, at('override_params.max_tokens')),
  };
  return Object.fromEntries(Object.entries(provider).filter(([, member]) => member !== undefined));
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
