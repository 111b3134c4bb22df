import { invalid } from '../../../../kit/errors.ts';
import { type Condition, conditions, maxProviders, maxRetries, maxTimeoutMs, maxTokens, providerDefaults } from '../../../model/chain.ts';
import { ofWaits } from '../../../model/finding.ts';
import { filled, withoutNulls } from '../../chain.ts';
import { isStatusOf, knownStatuses, ofNoAnswer, ofStream, traitsOf, usualStatus } from '../../conditions.ts';
import { isSecret } from '../../params.ts';
import { listed, times, uniqueName } from '../../wording.ts';
import { withSharedCooldown } from '../cooldowns.ts';
import { kindNamed, nameOfKind } from '../kind-names.ts';
import { type Draft, requireAtMost, Section, textAt } from '../section.ts';
import { breakerAround, breakerOf } from './breaker.ts';
import { addressAt, asRequested, kindNames, paramNamesInPortkey } from './names.ts';
import { noteStreams } from './streams.ts';

/** A target with the statuses on which Portkey fails over; undefined for all failures. */
interface Target {
  section: Section;
  /** The strategies around the target that draw one of their targets for each prompt, the outermost first, each with the drawn target in which this target is. */
  draws: readonly Draw[];
  /** The path of the strategy that draws this target; null if none does. */
  balancedBy: string | null;
  failoverStatuses: readonly number[] | undefined;
  /** What Portkey does otherwise than a chain if it fails with these conditions. */
  differences: readonly Difference[];
}

/** A strategy that draws one of its targets, by its path, and the index of a target. */
interface Draw {
  readonly strategy: string;
  readonly target: number;
}

interface Difference {
  readonly kind: string;
  readonly field: string;
  readonly sentence: string;
  readonly conditions: readonly Condition[];
}

/** The gateway reads the names without a prefix; its headers, and files that people have, use those with one. */
const azureNames = ['resource_name', 'deployment_id', 'api_version'];
const targetNames = [
  ...['name', 'provider', 'custom_host', 'api_key', 'override_params', 'request_timeout', 'retry', 'weight', 'cb_config'],
  ...[...Object.values(paramNamesInPortkey), ...azureNames, ...azureNames.map((name) => `azure_${name}`)],
];
/** What targets inherit from the strategy around them. */
const inheritedNames = ['override_params', 'request_timeout', 'retry'];

/** The deepest nesting of strategies. */
const maxNesting = maxProviders;

/** What Portkey's gateway does with streams where its dependencies are those that npm resolves, and what prevents it. */
const streams =
  "Portkey's gateway 1.15.2 answers every streamed request with 500 if it is installed with @hono/node-server 1.14.4 or later, as npm does; with 1.13.8 (overrides of package.json) it streams.";

/** Reads a Portkey gateway configuration: its strategies as one order, or a single target. */
export function importPortkey(file: Section): Draft {
  const unknown = [...unknownProviders(file.fields)];
  const targets = targetsOf(file, null);
  if (targets.length === 0) throw invalid('targets', 'No target is left to import.');
  // The last target has no successor. It is treated like the one before it, so that rules need not name providers.
  const last = targets.at(-1)!;
  targets[targets.length - 1] = { ...last, failoverStatuses: targets.at(-2)?.failoverStatuses };
  requireAtMost(maxProviders, targets, 'targets');
  const taken = new Set<string>();
  const providers = targets.map(({ section }, priority): Draft => ({ ...readTarget(section, priority, taken), ...breakerOf(section) }));
  const rules = [...retryRules(targets, providers), ...failoverRules(targets, providers)];
  for (const [index, { differences, section }] of targets.entries()) {
    const provider = String(providers[index]!.name);
    for (const { kind, field, sentence, conditions: concerned } of [...differences, ...retryDifferences(section)])
      for (const condition of concerned)
        file.findings.add(kind, field, sentence, { provider, condition, loss: true, ...(kind === 'reduced' && { measured: false }) });
  }
  for (const { name, timeout_ms } of providers) {
    const sentence = `No request_timeout is set for ${String(name)}; Portkey then waits without an end, and the chain ${providerDefaults.timeout_ms / 1000} s.`;
    if (timeout_ms === undefined)
      file.findings.add(ofWaits, 'request_timeout', sentence, { provider: String(name), condition: 'timeout', loss: true });
  }
  noteUnknown(file, unknown, providers);
  file.findings.add('streams', null, streams);
  noteStreams(
    file.findings,
    providers.map(({ name, provider, timeout_ms }) => ({
      name: String(name),
      kind: typeof provider === 'string' ? provider : null,
      isTimed: timeout_ms !== undefined,
    })),
  );
  const { name } = file.fields;
  return { ...(typeof name === 'string' ? { name } : {}), ...withSharedCooldown(providers), fallback_rules: rules };
}

/** A target by the name of its provider. */
export interface NamedTarget extends Pick<Target, 'balancedBy' | 'draws'> {
  readonly name: string;
  readonly path: string;
}

/** The targets of a file in order. @throws ServiceError 400 */
export function namedTargets(file: Section): NamedTarget[] {
  const taken = new Set<string>();
  return targetsOf(file, null).map(({ section, balancedBy, draws }, priority) => ({
    name: String(readTarget(section, priority, taken).name),
    path: section.path,
    balancedBy,
    draws,
  }));
}

/** The strategy around targets, with the statuses on which it goes on to the target after them; null if there is none. */
type Outer = { readonly codes: readonly number[] | undefined } | null;

/** The targets in order, including those of nested strategies. */
function targetsOf(
  section: Section,
  outer: Outer,
  depth = 0,
  around: readonly Difference[] = [],
  { draws, balancedBy }: Pick<Target, 'draws' | 'balancedBy'> = { draws: [], balancedBy: null },
): Target[] {
  const { fields, path, findings } = section;
  if (fields.targets === undefined) {
    if (fields.strategy !== undefined)
      throw invalid(section.at('targets'), `${section.at('targets')} is required; Portkey's gateway fails with a strategy alone.`);
    return [{ section, draws, balancedBy, failoverStatuses: outer?.codes, differences: around }];
  }
  if (depth > maxNesting) throw invalid(path, `Strategies are nested more than ${maxNesting} levels deep.`);
  section.leaveOutUnknown(['strategy', 'targets', 'name', 'weight', 'cb_config', ...inheritedNames]);
  const strategy = section.optional('strategy');
  if (strategy === undefined)
    throw invalid(section.at('strategy'), `${section.at('strategy')} is required; Portkey's gateway refuses targets without one.`);
  requireMode(strategy);
  strategy.leaveOutUnknown(['mode', 'on_status_codes', 'default', 'conditions', 'cb_config']);
  const isFallback = strategy.fields.mode === 'fallback';
  const own = isFallback ? statusesAt(strategy) : outer?.codes;
  const inherited = Object.fromEntries(inheritedNames.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])));
  const breaker = breakerAround(section, strategy);
  const targets = section.list('targets', maxProviders);
  const chosen = chosenTargets(strategy, targets);
  const { codes, differences: skips } = isFallback && chosen.length > 1 ? withOuter(own, outer, strategy) : { codes: own, differences: [] };
  const differences = [...around, ...drawnOf(strategy, targets.length), ...withoutDefault(strategy, targets)];
  const balancing = strategy.fields.mode === 'loadbalance' && targets.length > 1 ? strategy.path : null;
  return targets.flatMap((entry, index) => {
    if (!chosen.includes(entry)) return [];
    const inner = section.at(`targets.${index}`);
    const { fields: given } = new Section(entry, inner, findings);
    const at = given.cb_config === undefined ? breaker.paths : {};
    const target = new Section({ ...inherited, ...breaker.fields, ...given }, inner, findings, at);
    const drawn = { draws: balancing === null ? draws : [...draws, { strategy: balancing, target: index }], balancedBy: balancing };
    // After the last target of an inner strategy the outer strategy decides, and that target is never skipped.
    return entry === chosen.at(-1)
      ? targetsOf(target, outer, depth + 1, differences, drawn)
      : targetsOf(target, { codes }, depth + 1, [...differences, ...skips], drawn);
  });
}

/** The statuses on which an inner strategy or the outer strategy around it goes on. On a status of the outer strategy alone, Portkey skips the remaining targets of the inner one. */
function withOuter(
  own: readonly number[] | undefined,
  outer: Outer,
  { path }: Section,
): { codes: readonly number[] | undefined; differences: Difference[] } {
  if (own === undefined || outer === null) return { codes: own, differences: [] };
  const skipping = (outer.codes ?? knownStatuses).filter((status) => !own.includes(status));
  if (skipping.length === 0) return { codes: own, differences: [] };
  const skippedOn = conditions.filter((condition) => statusesOf(condition).some((status) => skipping.includes(status)));
  const sentence = `On ${listed(skippedOn)}, Portkey skips the rest of this strategy; the chain tries its targets in turn.`;
  const codes = outer.codes === undefined ? undefined : [...own, ...skipping];
  return { codes, differences: [{ kind: 'skips', field: path, sentence, conditions: skippedOn }] };
}

/** What Portkey does with the targets between which it balances the load: each prompt goes to one of them. */
function drawnOf(strategy: Section, count: number): Difference[] {
  if (strategy.fields.mode !== 'loadbalance' || count < 2) return [];
  const sentence = `Portkey sends each prompt to one of ${count} targets, drawn by weight, and to no other of them; the chain tries them in turn.`;
  return [{ kind: 'one_target', field: strategy.at('mode'), sentence, conditions }];
}

/** The modes of a strategy. */
const modes: readonly unknown[] = ['single', 'fallback', 'loadbalance', 'conditional'];

/** @throws ServiceError 400 for a mode that Portkey's gateway refuses */
function requireMode(strategy: Section): void {
  const field = strategy.at('mode');
  if (!modes.includes(strategy.fields.mode))
    throw invalid(field, `${field} must be one of ${listed(modes.map(String))}; Portkey's gateway refuses others.`);
}

/** A provider that Portkey does not know, with the path of its field. */
interface Unknown {
  readonly called: string;
  readonly field: string;
}

/**
 * The providers that Portkey does not know, of all targets, also of those that no prompt can reach: it refuses the whole configuration.
 * @throws ServiceError 400 for one that it spells otherwise
 */
function* unknownProviders({ provider: called, targets }: Draft, path = '', depth = 0): Generator<Unknown> {
  const field = path === '' ? 'provider' : `${path}.provider`;
  if (typeof called === 'string' && !isSlug(called) && kindNamed(kindNames, called) === null) {
    requireSpelling(field, called);
    yield { called, field };
  }
  if (!Array.isArray(targets) || depth > maxNesting) return;
  for (const [index, target] of targets.entries())
    if (typeof target === 'object' && target !== null)
      yield* unknownProviders(target as Draft, path === '' ? `targets.${index}` : `${path}.targets.${index}`, depth + 1);
}

/** Finds that Portkey refuses the configuration. */
function noteUnknown({ findings }: Section, unknown: readonly Unknown[], providers: readonly Draft[]): void {
  for (const { called, field } of unknown) {
    const sentence = `Portkey's gateway 1.15.2 does not know the provider ${called}, so it refuses the configuration with status 400 and calls nobody; the chain calls its targets.`;
    for (const { name } of providers)
      for (const condition of conditions) findings.add('refused_file', field, sentence, { provider: String(name), condition, loss: true });
  }
}

/** @throws ServiceError 400 for a name of a provider that Portkey has in another spelling, and refuses in this one */
function requireSpelling(field: string, called: string): void {
  const lower = called.toLowerCase();
  const meant = kindNames.known.has(lower) ? lower : nameOfKind(kindNames, lower);
  if (meant !== null && meant !== called)
    throw invalid(field, `${field} is ${called}, which Portkey's gateway refuses; its name of this provider is ${meant}.`);
}

/** What Portkey does with requests that fit no condition, if a strategy has no default. */
function withoutDefault(strategy: Section, targets: readonly unknown[]): Difference[] {
  if (strategy.fields.mode !== 'conditional' || targets.some((target) => isNamed(target, strategy.fields.default))) return [];
  const sentence = `Portkey answers 400 to a request that fits none of the conditions, and calls nobody, since no target is the default; the chain calls the first target.`;
  return [{ kind: 'no_default', field: strategy.at('default'), sentence, conditions }];
}

const isNamed = (target: unknown, name: unknown) =>
  name !== undefined && typeof target === 'object' && target !== null && (target as Draft).name === name;

/** The retries of a target. @throws ServiceError 400 */
function attemptsOf(retry: Section): number {
  const attempts = retry.count('attempts', Number.MAX_SAFE_INTEGER);
  if (attempts === undefined)
    throw invalid(retry.at('attempts'), `${retry.at('attempts')} is required; Portkey's gateway refuses retries without it.`);
  return attempts;
}

/** What Portkey does otherwise with retries: more of them, and it gives up if Retry-After is a minute or more. */
function retryDifferences(section: Section): Difference[] {
  const retry = section.optional('retry');
  if (retry === undefined) return [];
  retry.leaveOutUnknown(['attempts', 'on_status_codes', 'use_retry_after_header']);
  const most = `Portkey retries ${times(attemptsOf(retry))}; the chain at most ${times(maxRetries)}.`;
  const reduced: Difference = { kind: 'reduced', field: retry.at('attempts'), sentence: most, conditions };
  return [...(attemptsOf(retry) > maxRetries ? [reduced] : []), ...retryAfterDifferences(retry)];
}

/** The conditions whose failures may have the status with which Portkey obeys Retry-After. */
const limited = conditions.filter((condition) => isStatusOf(condition, 429));

function retryAfterDifferences(retry: Section): Difference[] {
  if (retry.get('use_retry_after_header') !== true) return [];
  const sentence =
    'Portkey obeys Retry-After with status 429 and waits no other time; it stops its retries if that is a minute or more. The chain then waits a minute.';
  return [{ kind: 'retry_after', field: retry.at('use_retry_after_header'), sentence, conditions: limited }];
}

/** The targets that a strategy may use, as far as a chain has them: all in turn, or the one of a single or conditional strategy. */
function chosenTargets(strategy: Section, targets: readonly unknown[]): readonly unknown[] {
  const { mode, default: name } = strategy.fields;
  if (mode === 'fallback' || mode === 'loadbalance') return targets;
  const byDefault = mode === 'conditional' ? targets.find((target) => isNamed(target, name)) : undefined;
  const chosen = byDefault ?? targets[0];
  const sentence = `Only the ${byDefault === undefined ? 'first' : 'default'} target is imported, because a chain has no conditions on requests.`;
  if (mode !== 'single') strategy.findings.add('left_out', strategy.at('mode'), sentence);
  return [chosen];
}

/** The `on_status_codes` of a strategy or of retries. @throws ServiceError 400 */
function statusesAt(section: Section): readonly number[] | undefined {
  const value = section.get('on_status_codes');
  const isStatus = (status: unknown) => Number.isInteger(status) && (status as number) >= 100 && (status as number) <= 599;
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every(isStatus)) return [...new Set(value as number[])];
  const field = section.at('on_status_codes');
  throw invalid(field, `${field} must be a list of HTTP statuses.`);
}

function readTarget(section: Section, priority: number, taken: Set<string>): Draft {
  const { fields } = section;
  section.leaveOutUnknown(section.path === '' ? [...targetNames, 'strategy'] : targetNames);
  const parameters = new Section(
    fields.override_params === undefined ? {} : fields.override_params,
    section.at('override_params'),
    section.findings,
  );
  const { slug, model } = cataloged(fields.provider, parameters.get('model'));
  const virtual = fields.virtual_key ?? slug;
  const called = virtual !== undefined && (fields.provider === undefined || slug !== undefined) ? null : section.text('provider');
  const kind = called === null ? null : kindNamed(kindNames, called);
  if (virtual !== undefined)
    section.note('virtual_key', 'virtual_key', 'is kept for exports to Portkey; only Portkey knows the provider and key behind it.');
  if (called !== null && kind === null)
    section.note('provider_kind', 'provider', `names the unknown provider ${called}; the model is imported unchanged.`);
  // The name is kept: a chain without a kind is exported as one of OpenAI's.
  const isKind = called !== null && /^[a-z0-9][a-z0-9._-]{0,63}$/.test(called);
  parameters.leaveOutUnknown(['model', 'max_tokens']);
  const deployment = kind === 'azure' ? (fields.deployment_id ?? fields.azure_deployment_id) : undefined;
  const resource = fields.resource_name ?? fields.azure_resource_name;
  const model_id = textAt(deployment ?? model ?? asRequested, parameters.at('model'));
  const asks = `${parameters.path} has no model, so Portkey sends that of each request; set model_id for tests.`;
  if (model_id === asRequested) section.findings.add('model', parameters.at('model'), asks);
  const params = readParams(section, virtual);
  const usualName = model_id === asRequested ? (called ?? String(virtual)) : model_id;
  return withoutNulls({
    name: uniqueName(typeof fields.name === 'string' && fields.name !== '' ? fields.name : usualName, taken),
    model_id,
    priority,
    provider: kind ?? (isKind ? called : null),
    api_base: hostAt(fields.custom_host, called) ?? (typeof resource === 'string' ? `https://${resource}.openai.azure.com` : undefined),
    api_key_env: section.keyVariable('api_key', variableReference),
    timeout_ms: section.count('request_timeout', maxTimeoutMs),
    max_tokens: parameters.count('max_tokens', maxTokens),
    params: filled(params),
  });
}

/** Whether a provider is one of Portkey's catalog, which only Portkey's service knows. */
export const isSlug = (provider: string): boolean => provider.startsWith('@');

/** The slug of a provider in Portkey's catalog, which the target has or its model begins with (`@slug/model`), and the model without the slug. */
function cataloged(provider: unknown, model: unknown): { slug: string | undefined; model: unknown } {
  if (typeof provider === 'string' && isSlug(provider)) return { slug: provider, model };
  const [, slug, name] = typeof model === 'string' && provider === undefined ? (/^(@[^/]+)\/(.+)$/.exec(model) ?? []) : [];
  return slug === undefined ? { slug, model } : { slug, model: name };
}

/** The address with its version path that Portkey calls. */
const hostAt = (host: unknown, kind: string | null): unknown => (typeof host === 'string' && kind !== null ? addressAt(kind, host) : host);

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

/**
 * The statuses of a condition as Portkey sees them, the usual one first. A call that it gave up has 408, and a failed connection
 * 500. It decides by the status alone, so that a status of several conditions is treated alike.
 */
function statusesOf(condition: Condition): number[] {
  const [usual, ...others] = traitsOf[condition].statuses;
  if (usual === null && others.length === 0) return [500];
  return traitsOf[condition].statuses.flatMap((status) => (status !== null && knownStatuses.includes(status) ? [status] : []));
}

/** Groups providers with equal settings into one rule, which names them unless all are equal. */
function perProvider<T>(targets: readonly Target[], providers: readonly Draft[], read: (target: Target) => T): { of: T; named: Draft }[] {
  const settings = targets.map(read);
  const groups = Map.groupBy(settings.keys(), (index) => JSON.stringify(settings[index]));
  return [...groups.values()].map((indexes) => ({
    of: settings[indexes[0]!]!,
    named: indexes.length === providers.length ? {} : { providers: indexes.map((index) => providers[index]!.name) },
  }));
}

/** The conditions of an imported chain: Portkey has no limit for the first content of a stream. */
const known = conditions.filter((condition) => condition !== ofStream.late);

/** The statuses that Portkey retries if a file names none (version 1.15.2). */
const defaultStatuses = [429, 500, 502, 503, 504];

/** The retry rules. Portkey waits 1, 2, 4 ... seconds, and retries failed connections like any other failure. */
function retryRules(targets: readonly Target[], providers: readonly Draft[]): Draft[] {
  const read = ({ section, failoverStatuses }: Target) => {
    const retry = section.optional('retry');
    if (retry === undefined) return { statuses: [], attempts: 0, obeys: false, failoverStatuses };
    const statuses = statusesAt(retry) ?? defaultStatuses;
    return {
      statuses,
      attempts: Math.min(attemptsOf(retry), maxRetries),
      obeys: retry.get('use_retry_after_header') === true,
      failoverStatuses,
    };
  };
  return perProvider(targets, providers, read).flatMap(({ of: { attempts, statuses, obeys, failoverStatuses }, named }) => {
    if (attempts === 0) return [];
    const rule = (condition: Condition, codes: readonly number[]): Draft => ({
      condition,
      action: 'retry',
      max_retries: attempts,
      ...named,
      ...(codes.length === 0 ? {} : { status_codes: codes }),
      wait_ms: 1000,
      ...(obeys && statusesOf(condition).includes(429)
        ? { max_wait_ms: 60_000, respect_retry_after: true }
        : { max_wait_ms: Math.max(10_000, 1000 * 2 ** (attempts - 1)), respect_retry_after: false }),
      ...(isOn(codes[0] ?? statusesOf(condition)[0]!, failoverStatuses) ? {} : { then: 'fail' }),
    });
    return known.flatMap((condition): Draft[] => {
      if (condition === ofNoAnswer.broken) return [rule(condition, [])];
      const all = statusesOf(condition);
      const retried = all.filter((status) => statuses.includes(status));
      // A call without an answer in time has no status of its own in a chain, so that only a rule without statuses is about it.
      const isSilent = usualStatus(condition) === null && retried.includes(408);
      const usual = retried.filter((status) => isOn(status, failoverStatuses) === isOn(all[0]!, failoverStatuses));
      const other = retried.filter((status) => !usual.includes(status));
      const others = isSilent ? all.filter((status) => !retried.includes(status)) : [];
      return [
        ...(usual.length === 0
          ? []
          : [rule(condition, isSilent || (usual.length === all.length && !isAlsoAnswer(condition)) ? [] : usual)]),
        ...(other.length === 0 ? [] : [rule(condition, other)]),
        ...others.map((status) => ({
          condition,
          action: isOn(status, failoverStatuses) ? 'failover' : 'fail',
          ...named,
          status_codes: [status],
        })),
      ];
    });
  });
}

/** Whether an answer with status 200 can have the condition: Portkey takes an answer that a filter withheld for a success. */
const isAlsoAnswer = (condition: Condition): boolean => usualStatus(condition) !== 200 && traitsOf[condition].statuses.includes(200);

/** Whether Portkey fails over on a status. */
const isOn = (status: number, failoverStatuses: readonly number[] | undefined) =>
  failoverStatuses === undefined || failoverStatuses.includes(status);

/** Whether Portkey fails over on this condition, judged by its usual status. It returns an unusable answer to the caller. */
const failsOver = (condition: Condition, failoverStatuses: readonly number[] | undefined): boolean =>
  usualStatus(condition) !== 200 && isOn(statusesOf(condition)[0]!, failoverStatuses);

/** The rules where Portkey's failover differs from the defaults of a chain. The last target has no successor. */
function failoverRules(targets: readonly Target[], providers: readonly Draft[]): Draft[] {
  const before = targets.slice(0, -1);
  return perProvider(before, providers.slice(0, -1), ({ failoverStatuses }) => failoverStatuses ?? null).flatMap(({ of, named }) => {
    const failoverStatuses = of ?? undefined;
    const any = failoverStatuses === undefined ? [{ condition: 'any', action: 'failover', ...named }] : [];
    const single = known.flatMap((condition): Draft[] => {
      const on = failsOver(condition, failoverStatuses);
      const answered = on && isAlsoAnswer(condition) ? [{ condition, action: 'fail', ...named, status_codes: [200] }] : [];
      if (failoverStatuses === undefined) return on ? answered : [{ condition, action: 'fail', ...named }];
      const odd = statusesOf(condition).filter((status) => failoverStatuses.includes(status) !== on);
      const apart = odd.length === 0 ? [] : [{ condition, action: on ? 'fail' : 'failover', ...named, status_codes: odd }];
      return on === (traitsOf[condition].byDefault === 'failover')
        ? [...answered, ...apart]
        : [...answered, ...apart, { condition, action: on ? 'failover' : 'fail', ...named }];
    });
    return [...any, ...single];
  });
}
