import { invalid } from '../../../../kit/errors.ts';
import { maxProviders } from '../../../model/chain.ts';
import type { FailureKind } from '../../conditions.ts';
import { listed } from '../../wording.ts';
import type { Section } from '../section.ts';
import { classOf, coolsDown, type ErrorClass, isSkipped } from './errors.ts';
import type { Special } from './names.ts';

// What LiteLLM's Router does with a call, as measured with versions 1.106.2 and 1.110.2. It differs from the documentation in places.

/** A model of a file: one of its group. */
export interface Deployment {
  readonly group: string;
  /** Its kind of provider, on which the reading of its failures depends. */
  readonly kind: string;
  /** Models with the lowest `order` are called first; null without one. */
  readonly order: number | null;
  /** Its own number of retries. */
  readonly retries: number | undefined;
  /** Its values of what models of a group are drawn by: `weight`, else `rpm`, else `tpm`. */
  readonly weights: readonly number[];
}

/** The groups that follow a group. The key `*` stands for groups without a list of their own. */
export type Fallbacks = ReadonlyMap<string, readonly string[]>;

/** The numbers of retries by class of error, by their names in a file. */
export type Policy = Readonly<Record<string, number | undefined>>;

/** The settings of a router. */
export interface Router<D extends Deployment = Deployment> {
  readonly groups: ReadonlyMap<string, readonly D[]>;
  readonly general: Fallbacks;
  /** The group that is called instead of a group that the file does not have; null if there is none. */
  readonly byDefault: string | null;
  /** Null if the file has none for any group; then the general ones hold. */
  readonly contextWindow: Fallbacks | null;
  readonly contentPolicy: Fallbacks | null;
  readonly retries: number;
  readonly policy: Policy | null;
  readonly groupPolicies: ReadonlyMap<string, Policy>;
  readonly maxFallbacks: number;
  /** Whether a model is left out for a while after certain failures. */
  readonly hasCooldowns: boolean;
}

/** The fallbacks for a failure that has fallbacks of its own, or for all others. Without any of its own, the general ones hold. */
export const fallbacksOf = (
  { general, contextWindow, contentPolicy }: Pick<Router, 'general' | 'contextWindow' | 'contentPolicy'>,
  special: Special | null,
): Fallbacks => (special === null ? general : ({ context: contextWindow, content: contentPolicy } as const)[special]) ?? general;

/** The values of `routing_strategy`. */
const strategies: readonly unknown[] = [
  ...['simple-shuffle', 'lar1', 'least-busy', 'latency-based-routing', 'cost-based-routing'],
  ...['usage-based-routing-v2', 'usage-based-routing', 'provider-budget-routing'],
];

/** @throws ServiceError 400 for a `routing_strategy` with which LiteLLM does not start, or calls nobody */
export function requireStrategy(file: Section): void {
  const { fields, path } = file.optional('router_settings') ?? { fields: {}, path: '' };
  if (!('routing_strategy' in fields) || strategies.includes(fields.routing_strategy)) return;
  const instead = fields.routing_strategy === null ? 'with null LiteLLM calls no model' : 'LiteLLM does not start with another one';
  throw invalid(`${path}.routing_strategy`, `${path}.routing_strategy must be one of ${listed(strategies.map(String))}; ${instead}.`);
}

/** @throws ServiceError 400 if a chain can't have as many models as its group leads to */
export function requireFewModels(count: number): void {
  if (count <= maxProviders) return;
  const sentence = `The group leads to more than ${maxProviders} models of model_list, and a chain can have at most ${maxProviders}; name a group that leads to fewer.`;
  throw invalid('model_list', sentence);
}

/** The failure of a model; null if it answers. */
export type FailureOf<D> = (deployment: D) => FailureKind | null;

/**
 * The models that LiteLLM calls for one prompt to a group, in order. Of models that it draws at random, each is called once, and
 * the last one for all further retries.
 */
export function callsOf<D extends Deployment>(router: Router<D>, group: string, failureOf: FailureOf<D>): readonly D[] {
  return walked(new Walk(router, group, failureOf), group);
}

/** The first calls of `callsOf`, of as many models as a chain can have: for prompts to a group that no prompt of the chain may begin with. */
export function firstCallsOf<D extends Deployment>(router: Router<D>, group: string, failureOf: FailureOf<D>): readonly D[] {
  return walked(new Walk(router, group, failureOf, true), group);
}

function walked<D extends Deployment>(walk: Walk<D>, group: string): readonly D[] {
  walk.call(group, 0, null);
  return walk.calls;
}

/** The models of a group with the same order. */
interface Level<D> {
  readonly order: number;
  readonly models: readonly D[];
}

class Walk<D extends Deployment> {
  readonly calls: D[] = [];
  readonly #router: Router<D>;
  readonly #original: string;
  readonly #failureOf: FailureOf<D>;
  readonly #attempted = new Set<string>();
  /** The models that were called. */
  readonly #called = new Set<D>();
  readonly #cooling = new Set<D>();
  /** The levels of the groups that were called. */
  readonly #levels = new Map<readonly D[], readonly Level<D>[]>();

  /** Whether the walk ends at as many models as a chain can have; a file with more is refused otherwise. */
  readonly #isBounded: boolean;

  constructor(router: Router<D>, original: string, failureOf: FailureOf<D>, isBounded = false) {
    this.#router = router;
    this.#isBounded = isBounded;
    this.#original = original;
    this.#failureOf = failureOf;
  }

  /** Calls a group, at one of its orders, with its fallbacks; returns whether the caller has an answer, or a part of one. */
  call(group: string, depth: number, order: number | null): boolean {
    const error = this.#withRetries(group, order);
    return error === null || error.isPassedOn === true || this.#fallBack(group, error, depth, order);
  }

  /** Calls the models of a group; returns the error of the last one, or null. */
  #withRetries(group: string, order: number | null): ErrorClass | null {
    const all = modelsOf(this.#router, group);
    const skipped = new Set<D>();
    let failure = this.#callOne(all, order, skipped);
    if (failure === null) return null;
    const { names } = failure.error;
    const policy = this.#router.groupPolicies.get(group) ?? this.#router.policy;
    const given =
      policy === null ? undefined : [...names, 'DefaultRetries'].map((name) => policy[name]).find((count) => count !== undefined);
    // Other models of the group may have another key.
    const isRetryable = (error: ErrorClass) => error.isRetried || ((error.status === 401 || error.status === 403) && all.length > 1);
    const own = failure.deployment?.retries ?? this.#router.retries;
    const retries = given ?? (isRetryable(failure.error) ? own : 0);
    for (let retry = 0; retry < retries && failure.error.isPassedOn !== true && failure.error.hasBegun !== true; retry += 1) {
      const next = this.#callOne(all, order, skipped);
      if (next === null) return null;
      failure = next;
      if (given === undefined && !isRetryable(failure.error)) break;
    }
    return failure.error;
  }

  #callOne(all: readonly D[], order: number | null, skipped: Set<D>) {
    const deployment = this.#draw(all, order, skipped);
    if (deployment === undefined) return { deployment, error: noModel };
    if (this.#isBounded && this.#called.size === maxProviders && !this.#called.has(deployment)) return null;
    this.calls.push(deployment);
    this.#called.add(deployment);
    requireFewModels(this.#called.size);
    const failing = this.#failureOf(deployment);
    if (failing === null) return null;
    const error = classOf(failing, deployment.kind);
    if (isSkipped(error)) skipped.add(deployment);
    if (this.#router.hasCooldowns && coolsDown(error, all.length === 1)) this.#cooling.add(deployment);
    return { deployment, error };
  }

  /** One of the models of which LiteLLM draws one: the first that was not called yet, else the last. */
  #draw(all: readonly D[], order: number | null, skipped: ReadonlySet<D>): D | undefined {
    const isReady = (one: D) => !this.#cooling.has(one);
    const levels = this.#levelsOf(all);
    const lowest = order === null ? levels.find(({ models }) => models.some(isReady))?.models : undefined;
    const level = order === null ? (lowest ?? all) : (levels.find((one) => one.order === order)?.models ?? []);
    const ready = level.filter(isReady);
    const fresh = ready.filter((one) => !skipped.has(one));
    const drawn = weighed(fresh.length > 0 ? fresh : ready);
    return drawn.find((one) => !this.#called.has(one)) ?? drawn.at(-1);
  }

  /** The models of a group by their order, the lowest first, without those that have none. */
  #levelsOf(all: readonly D[]): readonly Level<D>[] {
    const known = this.#levels.get(all);
    if (known !== undefined) return known;
    const byOrder = Map.groupBy(all, ({ order }) => order);
    const levels = [...byOrder].flatMap(([order, models]) => (order === null ? [] : [{ order, models }]));
    levels.sort((one, other) => one.order - other.order);
    this.#levels.set(all, levels);
    return levels;
  }

  #fallBack(group: string, { special }: ErrorClass, depth: number, order: number | null): boolean {
    const { groups, general, maxFallbacks } = this.#router;
    if (depth >= maxFallbacks) return false;
    const levels = this.#levelsOf(groups.get(group) ?? []).map((level) => level.order);
    if (levels.length > 1 && special === undefined) {
      const later = levels.filter((level) => level > (order ?? levels[0]!)).map((level) => ({ group, order: level }));
      return this.#tryAll([...later, ...this.#listed(general, group)], group, depth);
    }
    return this.#tryAll(this.#listed(fallbacksOf(this.#router, special ?? null), group), group, depth);
  }

  /** The groups after a group: its own list, else the list of the group where the call began, else the list of `*`. */
  #listed(fallbacks: Fallbacks, group: string): { group: string; order: number | null }[] {
    const list = fallbacks.get(group) ?? fallbacks.get(this.#original) ?? fallbacks.get('*') ?? [];
    return list.map((name) => ({ group: name, order: null }));
  }

  #tryAll(targets: readonly { group: string; order: number | null }[], failed: string, depth: number): boolean {
    this.#attempted.add(failed);
    let deeper = depth;
    for (const { group, order } of targets) {
      const key = order === null ? group : `${group} ${order}`;
      if (this.#attempted.has(key)) continue;
      this.#attempted.add(key);
      deeper += 1;
      if (this.call(group, deeper, order)) return true;
    }
    return false;
  }
}

/** The models of a group. For a group that the file does not have, the models of the group that is called instead. */
function modelsOf<D extends Deployment>({ groups, byDefault }: Router<D>, group: string): readonly D[] {
  return groups.get(group) ?? groups.get(byDefault ?? '') ?? [];
}

/** The error of a call without a model. */
const noModel: ErrorClass = classOf({ condition: 'rate_limit', status_code: 429 }, 'openai');

/** The models that LiteLLM draws from: if some have a weight, only these. */
export function weighed<D extends Deployment>(deployments: readonly D[]): readonly D[] {
  for (const metric of [0, 1, 2]) {
    const heavy = deployments.filter(({ weights }) => (weights[metric] ?? 0) > 0);
    if (heavy.length > 0) return heavy;
  }
  return deployments;
}
