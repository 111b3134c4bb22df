import { invalid } from '../../../../kit/errors.ts';
import { type Condition, conditions, maxProviders } from '../../../model/chain.ts';
import { filled, withoutNulls } from '../../chain.ts';
import { conditionOf, knownStatuses, traitsOf } from '../../conditions.ts';
import { isSecret } from '../../params.ts';
import { listed, uniqueName } from '../../wording.ts';
import { kindNamed } from '../kind-names.ts';
import { type Draft, requireAtMost, Section, textAt } from '../section.ts';
import { asRequested, kindNames, paramNamesInPortkey } from './names.ts';

/** A target with the statuses on which Portkey fails over; undefined for all failures. */
interface Target {
  section: Section;
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
export function importPortkey(file: Section): Draft {
  const targets = targetsOf(file, null);
  if (targets.length === 0) throw invalid('targets', 'No target is left to import.');
  // The last target has no successor. It is treated like the one before it, so that rules need not name providers.
  const last = targets.at(-1)!;
  targets[targets.length - 1] = { ...last, handover: targets.at(-2)?.handover };
  requireAtMost(maxProviders, targets, 'targets');
  const taken = new Set<string>();
  const providers = targets.map(({ section }, priority) => readTarget(section, priority, taken));
  const rules = [...retryRules(targets, providers), ...handoverRules(targets, providers)];
  const { name } = file.fields;
  return { ...(typeof name === 'string' ? { name } : {}), providers, fallback_rules: rules };
}

/** The strategy around targets, with the statuses on which it goes on to the target after them; null if there is none. */
type Outer = { readonly codes: readonly number[] | undefined } | null;

/** The targets in order, including those of nested strategies. */
function targetsOf(section: Section, outer: Outer, depth = 0): Target[] {
  const { fields, path, findings } = section;
  if (fields.targets === undefined) return [{ section, handover: outer?.codes }];
  if (depth > maxNesting) throw invalid(path, `Strategies are nested more than ${maxNesting} levels deep.`);
  section.leaveOutUnknown(['strategy', 'targets', 'name', 'weight', ...inheritedNames]);
  const strategy = section.optional('strategy') ?? new Section({ mode: 'single' }, section.at('strategy'), findings);
  const isFallback = strategy.fields.mode === 'fallback';
  const own = isFallback ? statusesAt(strategy) : outer?.codes;
  const inherited = Object.fromEntries(inheritedNames.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])));
  const targets = section.list('targets', maxProviders);
  const chosen = chosenTargets(strategy, targets);
  const handover = isFallback && chosen.length > 1 ? withOuter(own, outer, strategy) : own;
  return targets.flatMap((entry, index) => {
    if (!chosen.includes(entry)) return [];
    const inner = section.at(`targets.${index}`);
    // After the last target of an inner strategy, the outer strategy decides.
    const next = entry === chosen.at(-1) ? outer : { codes: handover };
    const { fields: given } = new Section(entry, inner, findings);
    return targetsOf(new Section({ ...inherited, ...given }, inner, findings), next, depth + 1);
  });
}

/** The statuses on which an inner strategy or the one around it goes on; on those of the latter alone, Portkey skips the rest of the inner one. */
function withOuter(own: readonly number[] | undefined, outer: Outer, { path, findings }: Section): readonly number[] | undefined {
  if (own === undefined || outer === null) return own;
  const skipping = (outer.codes ?? knownStatuses).filter((status) => !own.includes(status));
  if (skipping.length === 0) return own;
  const skippedOn = conditions.filter((condition) => statusesOf(condition).some((status) => skipping.includes(status)));
  findings.add('skips', path, `On ${listed(skippedOn)}, Portkey skips the rest of this strategy; the chain tries its targets in turn.`);
  return outer.codes === undefined ? undefined : [...own, ...skipping];
}

/** The targets that a strategy may use, as far as a chain has them: all in turn, or the one of a single or conditional strategy. */
function chosenTargets(strategy: Section, targets: readonly unknown[]): readonly unknown[] {
  const { mode, default: name } = strategy.fields;
  const balanced = `Portkey balances the load between ${targets.length} targets; the chain tries them in turn.`;
  if (mode === 'loadbalance') strategy.findings.add('load_balanced', strategy.at('mode'), balanced);
  if (mode === 'fallback' || mode === 'loadbalance') return targets;
  const byDefault = targets.find((target) => typeof target === 'object' && target !== null && (target as Draft).name === name);
  const chosen = (mode === 'conditional' && name !== undefined ? byDefault : undefined) ?? targets[0];
  const why = mode === 'conditional' ? 'a chain has no conditions on requests' : `${String(mode).slice(0, 40)} is not a known mode`;
  const sentence = `Only the ${byDefault === undefined ? 'first' : 'default'} target is imported, because ${why}.`;
  if (mode !== 'single') strategy.findings.add('left_out', strategy.at('mode'), sentence);
  return [chosen];
}

/** The `on_status_codes` of a strategy or of retries. @throws ServiceError 400 */
function statusesAt(section: Section): readonly number[] | undefined {
  const value = section.get('on_status_codes');
  const isStatus = (status: unknown) => Number.isInteger(status) && (status as number) >= 100 && (status as number) <= 599;
  if (value === undefined || (Array.isArray(value) && value.every(isStatus))) return value;
  const field = section.at('on_status_codes');
  throw invalid(field, `${field} must be a list of HTTP statuses.`);
}

function readTarget(section: Section, priority: number, taken: Set<string>): Draft {
  const { fields } = section;
  section.leaveOutUnknown(section.path === '' ? [...targetNames, 'strategy'] : targetNames);
  const slug = typeof fields.provider === 'string' && fields.provider.startsWith('@') ? fields.provider : undefined;
  const virtual = fields.virtual_key ?? slug;
  const called = virtual !== undefined && (fields.provider === undefined || slug !== undefined) ? null : section.text('provider');
  const kind = called === null ? null : kindNamed(kindNames, called);
  if (virtual !== undefined)
    section.note('virtual_key', 'virtual_key', 'is kept for exports to Portkey; only Portkey knows the provider and key behind it.');
  if (called !== null && kind === null)
    section.note('provider_kind', 'provider', `names the unknown provider ${called}; the model is imported unchanged, without a kind.`);
  const parameters = new Section(
    fields.override_params === undefined ? {} : fields.override_params,
    section.at('override_params'),
    section.findings,
  );
  parameters.leaveOutUnknown(['model', 'max_tokens']);
  const deployment = kind === 'azure' ? (fields.deployment_id ?? fields.azure_deployment_id) : undefined;
  const resource = fields.resource_name ?? fields.azure_resource_name;
  const model_id = textAt(deployment ?? parameters.get('model') ?? asRequested, parameters.at('model'));
  const asks = `${parameters.path} has no model, so Portkey sends that of each request; set model_id for tests.`;
  if (model_id === asRequested) section.findings.add('model', parameters.at('model'), asks);
  const params = readParams(section, virtual);
  const usualName = model_id === asRequested ? (called ?? String(virtual)) : model_id;
  return withoutNulls({
    name: uniqueName(typeof fields.name === 'string' && fields.name !== '' ? fields.name : usualName, taken),
    model_id,
    priority,
    provider: kind,
    api_base: fields.custom_host ?? (typeof resource === 'string' ? `https://${resource}.openai.azure.com` : undefined),
    api_key_env: section.keyVariable('api_key', variableReference),
    timeout_ms: section.number('request_timeout'),
    max_tokens: parameters.number('max_tokens'),
    params: filled(params),
  });
}

/** A reference to an environment variable, as our exports write it. */
const variableReference = /^\$\{([A-Za-z_]\w*)\}$/;

/** The parameters by their names in a chain. */
function readParams(section: Section, virtual: unknown): Draft {
  const params: Record<string, unknown> = virtual === undefined ? {} : { virtual_key: virtual };
  for (const [name, called] of Object.entries(paramNamesInPortkey)) {
    const value = section.fields[called] ?? (called === 'api_version' ? section.fields.azure_api_version : undefined);
    if (value === undefined || name === 'virtual_key') continue;
    const variable = variableReference.exec(String(value))?.[1];
    if (variable === undefined && isSecret(name, value)) section.leaveOut(called, 'keys are never stored', 'key_left_out');
    else params[name] = variable === undefined ? value : `os.environ/${variable}`;
  }
  return params;
}

const statusesOf = (condition: Condition) => knownStatuses.filter((status) => conditionOf(status) === condition);

/** Groups providers with equal settings into one rule, which names them unless all are equal. */
function perProvider<T>(targets: readonly Target[], providers: readonly Draft[], read: (target: Target) => T): { of: T; named: Draft }[] {
  const settings = targets.map(read);
  const groups = Map.groupBy(settings.keys(), (index) => JSON.stringify(settings[index]));
  return [...groups.values()].map((indexes) => ({
    of: settings[indexes[0]!]!,
    named: indexes.length === providers.length ? {} : { providers: indexes.map((index) => providers[index]!.name) },
  }));
}

/** The retry rules. Portkey waits 1, 2, 4 ... seconds, and retries failed connections like any other failure. */
function retryRules(targets: readonly Target[], providers: readonly Draft[]): Draft[] {
  const read = ({ section, handover }: Target) => {
    const retry = section.optional('retry');
    if (retry === undefined) return { statuses: [], attempts: 0, handover };
    return { statuses: statusesAt(retry) ?? [429, 500, 502, 503, 504], attempts: retry.number('attempts') ?? 0, handover };
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
    return conditions.flatMap((condition) => {
      if (condition === 'connection_error') return [rule(condition)];
      const codes = statusesOf(condition).filter((status) => statuses.includes(status));
      return codes.length === 0 ? [] : [rule(condition, codes)];
    });
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
function handoverRules(targets: readonly Target[], providers: readonly Draft[]): Draft[] {
  const before = targets.slice(0, -1);
  return perProvider(before, providers.slice(0, -1), ({ handover }) => handover ?? null).flatMap(({ of, named }) => {
    const handover = of ?? undefined;
    const any = handover === undefined ? [{ condition: 'any', action: 'failover', ...named }] : [];
    const single = conditions.flatMap((condition): Draft[] => {
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
