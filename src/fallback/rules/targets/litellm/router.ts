import type { Failing } from '../../conditions.ts';

// What LiteLLM's Router does with a call, as measured with version 1.106.2. It differs from the documentation in places.

/** A model of a file: one of its group. */
export interface Deployment {
  readonly group: string;
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

/** What LiteLLM distinguishes: the setting of retries for an error, and whether it is retried without one. */
interface ErrorClass {
  /** The names in a policy, the most specific first. */
  readonly names: readonly string[];
  readonly isRetried: boolean;
  readonly special?: 'context' | 'content';
}

/** The class of a failure. Errors without a class have only `DefaultRetries`. */
function classOf({ condition, status_code: status }: Failing): ErrorClass {
  const isRetried = status === null || status >= 500 || [403, 408, 409, 429].includes(status);
  if (condition === 'context_length' && status === 400) return { names: ['BadRequestErrorRetries'], isRetried, special: 'context' };
  if (condition === 'content_filter' && status === 400)
    return { names: ['ContentPolicyViolationErrorRetries', 'BadRequestErrorRetries'], isRetried, special: 'content' };
  if (condition === 'connection_error') return { names: ['InternalServerErrorRetries'], isRetried };
  // A cut answer can't be parsed.
  if (condition === 'invalid_response') return { names: ['InternalServerErrorRetries'], isRetried: true };
  const names: Readonly<Record<number, string>> = {
    400: 'BadRequestErrorRetries',
    401: 'AuthenticationErrorRetries',
    404: 'NotFoundErrorRetries',
    408: 'TimeoutErrorRetries',
    422: 'BadRequestErrorRetries',
    429: 'RateLimitErrorRetries',
    500: 'InternalServerErrorRetries',
    503: 'ServiceUnavailableErrorRetries',
    504: 'TimeoutErrorRetries',
  };
  const name = status === null ? 'TimeoutErrorRetries' : names[status];
  return { names: name === undefined ? [] : [name], isRetried };
}

/** Whether a model is left out after this failure, so that the same call can't use it again. */
export const coolsDown = ({ status_code }: Failing, isAlone: boolean) =>
  status_code !== null && (status_code === 401 || status_code === 404 || ((status_code === 402 || status_code === 429) && !isAlone));

/** Whether LiteLLM prefers other models of the group for the retries after this failure. */
export const isSkipped = ({ status_code }: Failing) =>
  status_code !== null && status_code >= 400 && status_code < 500 && ![408, 409, 429].includes(status_code);

/** The failure of a model; null if it answers. */
export type FailureOf<D> = (deployment: D) => Failing | null;

/**
 * The models that LiteLLM calls for one prompt to a group, in order. Of models that it draws at random, each is called once, and
 * the last one for all further retries.
 */
export function callsOf<D extends Deployment>(router: Router<D>, group: string, failureOf: FailureOf<D>): readonly D[] {
  const walk = new Walk(router, group, failureOf);
  walk.call(group, 0, null);
  return walk.calls;
}

class Walk<D extends Deployment> {
  readonly calls: D[] = [];
  readonly #router: Router<D>;
  readonly #original: string;
  readonly #failureOf: FailureOf<D>;
  readonly #attempted = new Set<string>();
  readonly #cooling = new Set<D>();

  constructor(router: Router<D>, original: string, failureOf: FailureOf<D>) {
    this.#router = router;
    this.#original = original;
    this.#failureOf = failureOf;
  }

  /** Calls a group, at one of its orders, with its fallbacks; returns whether it was served. */
  call(group: string, depth: number, order: number | null): boolean {
    const failure = this.#withRetries(group, order);
    return failure === null || this.#fallBack(group, failure, depth, order);
  }

  /** Calls the models of a group; returns the failure of the last one, or null. */
  #withRetries(group: string, order: number | null): Failing | null {
    const all = this.#router.groups.get(group) ?? [];
    const skipped = new Set<D>();
    let failure = this.#callOne(all, order, skipped);
    if (failure === null) return null;
    const { names } = classOf(failure.failing);
    const policy = this.#router.groupPolicies.get(group) ?? this.#router.policy;
    const given =
      policy === null ? undefined : [...names, 'DefaultRetries'].map((name) => policy[name]).find((count) => count !== undefined);
    // Other models of the group may have another key.
    const isRetryable = (failing: Failing) => classOf(failing).isRetried || (failing.status_code === 401 && all.length > 1);
    const own = failure.deployment?.retries ?? this.#router.retries;
    const retries = given ?? (isRetryable(failure.failing) ? own : 0);
    for (let retry = 0; retry < retries; retry += 1) {
      const next = this.#callOne(all, order, skipped);
      if (next === null) return null;
      failure = next;
      if (given === undefined && !isRetryable(failure.failing)) break;
    }
    return failure.failing;
  }

  #callOne(all: readonly D[], order: number | null, skipped: Set<D>) {
    const deployment = this.#draw(all, order, skipped);
    if (deployment === undefined) return { deployment, failing: noModel };
    this.calls.push(deployment);
    const failing = this.#failureOf(deployment);
    if (failing === null) return null;
    if (isSkipped(failing)) skipped.add(deployment);
    if (this.#router.hasCooldowns && coolsDown(failing, all.length === 1)) this.#cooling.add(deployment);
    return { deployment, failing };
  }

  /** One of the models of which LiteLLM draws one: the first that was not called yet, else the last. */
  #draw(all: readonly D[], order: number | null, skipped: ReadonlySet<D>): D | undefined {
    const ready = all.filter((one) => !this.#cooling.has(one));
    const lowest =
      order ??
      ready.reduce<number | null>((least, one) => (one.order !== null && (least === null || one.order < least) ? one.order : least), null);
    const ordered = ready.filter((one) => lowest === null || one.order === lowest);
    const fresh = ordered.filter((one) => !skipped.has(one));
    const drawn = weighed(fresh.length > 0 ? fresh : ordered);
    return drawn.find((one) => !this.calls.includes(one)) ?? drawn.at(-1);
  }

  #fallBack(group: string, failure: Failing, depth: number, order: number | null): boolean {
    const { general, contextWindow, contentPolicy, groups } = this.#router;
    const { special } = classOf(failure);
    const levels = [...new Set((groups.get(group) ?? []).flatMap((one) => one.order ?? []))].sort((one, other) => one - other);
    if (levels.length > 1 && special === undefined) {
      const later = levels.filter((level) => level > (order ?? levels[0]!)).map((level) => ({ group, order: level }));
      return this.#tryAll([...later, ...this.#listed(general, group)], group, depth);
    }
    const fallbacks = special === 'context' ? contextWindow : special === 'content' ? contentPolicy : null;
    return this.#tryAll(this.#listed(fallbacks ?? general, group), group, depth);
  }

  /** The groups after a group: its own list, else that of the group where the call began, else that of `*`. */
  #listed(fallbacks: Fallbacks, group: string): { group: string; order: number | null }[] {
    const list = fallbacks.get(group) ?? fallbacks.get(this.#original) ?? fallbacks.get('*') ?? [];
    return list.map((name) => ({ group: name, order: null }));
  }

  #tryAll(targets: readonly { group: string; order: number | null }[], failed: string, depth: number): boolean {
    if (depth >= this.#router.maxFallbacks) return false;
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

/** The failure of a call without a model, which is none of a provider. */
const noModel: Failing = { condition: 'rate_limit', status_code: 429 };

/** The models that LiteLLM draws from: if some have a weight, only these. */
export function weighed<D extends Deployment>(deployments: readonly D[]): readonly D[] {
  for (const metric of [0, 1, 2]) {
    const heavy = deployments.filter(({ weights }) => (weights[metric] ?? 0) > 0);
    if (heavy.length > 0) return heavy;
  }
  return deployments;
}
