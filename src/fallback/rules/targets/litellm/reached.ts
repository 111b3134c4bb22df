import { type Condition, conditions, maxRetries, maxTo } from '../../../model/chain.ts';
import { type FailureKind, usualStatus } from '../../conditions.ts';
import type { Concern } from '../../finding-list.ts';
import type { Cell, Row } from '../decisions.ts';
import { classOf } from './errors.ts';
import { callsOf, type Deployment, type Router, requireFewModels } from './router.ts';

/** The statuses of a condition that LiteLLM tells apart: first the usual status, then statuses that LiteLLM retries otherwise. */
const statusesOf: Readonly<Record<Condition, readonly (number | null)[]>> = {
  rate_limit: [429],
  timeout: [null],
  first_token_timeout: [null],
  server_error: [500, 503, 502, 529],
  connection_error: [null],
  interrupted: [200],
  auth_error: [401, 403, 400],
  quota_exceeded: [402, 429, 400],
  model_not_found: [404, 400],
  context_length: [400],
  content_filter: [400],
  unsupported_request: [400, 422],
  invalid_request: [400, 404, 409, 410, 422],
  invalid_response: [200],
};

/** The failures that LiteLLM tells apart: each condition as providers send it, then its other statuses. */
export const failures: readonly FailureKind[] = [
  ...conditions.map((condition) => ({ condition, status_code: statusesOf[condition][0]! })),
  ...conditions.flatMap((condition) => statusesOf[condition].slice(1).map((status_code) => ({ condition, status_code }))),
];

/** Statuses that LiteLLM treats like one of the failures. */
const equivalents: Readonly<Record<number, readonly number[]>> = { 502: [501, 505, 520, 521, 522, 523, 524], 410: [405, 406, 415, 424] };

/** The other statuses of the condition that LiteLLM treats like the status of the failure. */
export const equivalentStatuses = ({ status_code }: FailureKind): readonly number[] => equivalents[status_code ?? 0] ?? [];

/** What a finding about a failure is about: its condition, and the statuses that LiteLLM treats alike. */
export const aboutOf = (failing: FailureKind): Pick<Concern, 'condition' | 'status_codes'> => ({
  condition: failing.condition,
  ...(failing.status_code !== null && { status_codes: [failing.status_code, ...equivalentStatuses(failing)] }),
});

/** How earlier failures lead to a model. */
type Path<D> = ReadonlyMap<D, FailureKind>;

const serverError: FailureKind = failures.find(({ condition }) => condition === 'server_error')!;

/** What follows a failure of a model: its further calls, and the models after it. */
interface Outcome<D> {
  readonly failing: FailureKind;
  readonly retries: number;
  readonly next: readonly D[];
}

/** A model of the chain, and what follows its failures. */
export interface Reached<D> {
  readonly deployment: D;
  /** The failures of earlier models that lead to it. */
  readonly path: Path<D>;
  /** The models after it, if it and all of them fail with a server error. */
  readonly rest: readonly D[];
  /** Whether it is called if all models before it fail with a server error. */
  readonly isGeneral: boolean;
  readonly outcomes: readonly Outcome<D>[];
}

/**
 * The models that prompts to a group can reach: first the models in its general order, then models to which only certain failures lead.
 * @throws ServiceError 400 if a chain can't have as many providers, before anything is followed from them
 */
export function reachedFrom<D extends Deployment>(router: Router<D>, group: string): Reached<D>[] {
  const classes = failureClasses(router);
  const order = distinct(callsOf(router, group, () => serverError));
  const all = new Map<D, Reached<D>>();
  // Only the first way to a model counts.
  const seen = new Set(order);
  const waiting = order.map((deployment, index) => ({
    deployment,
    path: new Map(order.slice(0, index).map((before) => [before, serverError])) as Path<D>,
    rest: order.slice(index + 1),
    isGeneral: true,
  }));
  for (const one of waiting) {
    requireFewModels(seen.size);
    const outcomes = outcomesOf(router, group, one, classes);
    all.set(one.deployment, { ...one, outcomes });
    for (const { failing, next } of outcomes) {
      for (const [index, deployment] of next.entries()) {
        if (seen.has(deployment)) continue;
        seen.add(deployment);
        const before = next.slice(0, index).map((other) => [other, serverError] as const);
        const path = new Map([...one.path, [one.deployment, failing], ...before]);
        waiting.push({ deployment, path, rest: next.slice(index + 1), isGeneral: false });
      }
    }
  }
  return [...all.values()];
}

/** The failures in classes, each of which the router treats alike at every model. */
function failureClasses<D extends Deployment>({ groups }: Router<D>): readonly (readonly FailureKind[])[] {
  const kinds = distinct([...groups.values()].flat().map(({ kind }) => kind));
  return [...Map.groupBy(failures, (failing) => JSON.stringify(kinds.map((kind) => classOf(failing, kind)))).values()];
}

/** What follows each failure of a model. */
function outcomesOf<D extends Deployment>(
  router: Router<D>,
  group: string,
  one: { deployment: D; path: Path<D> },
  classes: readonly (readonly FailureKind[])[],
): Outcome<D>[] {
  const found = classes.flatMap((oneClass) => {
    const { retries, next } = outcomeOf(router, group, one, oneClass[0]!);
    return oneClass.map((failing) => ({ failing, retries, next }));
  });
  return found.toSorted((left, right) => failures.indexOf(left.failing) - failures.indexOf(right.failing));
}

/** What follows if a model fails in this way and all later ones with a server error; models drawn before it fail as it does. */
function outcomeOf<D extends Deployment>(
  router: Router<D>,
  group: string,
  { deployment, path }: { deployment: D; path: Path<D> },
  failing: FailureKind,
) {
  const isDrawnWith = (other: D) => other.group === deployment.group && other.order === deployment.order;
  const callsWith = (drawnBefore: FailureKind | undefined) =>
    callsOf(router, group, (one) =>
      one === deployment ? failing : ((isDrawnWith(one) && path.has(one) ? drawnBefore : undefined) ?? path.get(one) ?? serverError),
    );
  const withSame = callsWith(failing);
  // A model without a weight is only drawn after certain failures of the models with a weight.
  const calls = withSame.includes(deployment) ? withSame : callsWith(undefined);
  const first = calls.indexOf(deployment);
  const own = calls.filter((one) => one === deployment).length;
  return {
    retries: Math.max(own - 1, 0),
    next: distinct(calls.slice(first)).filter((one) => one !== deployment && !path.has(one)),
  };
}

const distinct = <T>(items: readonly T[]): T[] => [...new Set(items)];

/** The rows of the rules, for the providers of a chain in their order. */
export function rowsOf<D extends Deployment>(chain: readonly Reached<D>[], nameOf: (deployment: D) => string): Row[] {
  const order = chain.map(({ deployment }) => deployment);
  const cellOf = (
    { deployment, rest, isGeneral }: Reached<D>,
    { retries: count, next }: Outcome<D>,
    pattern: readonly Cell['next'][],
  ): Cell => {
    const retries = Math.min(count, maxRetries);
    const after = order.slice(order.indexOf(deployment) + 1);
    const isRest = sameList(next, rest);
    const follows = isGeneral ? sameList(next, after) || (isRest && sameList(next, after.slice(0, next.length))) : isRest;
    if (follows && next.length > 0) return { retries, next: 'order' };
    if (next.length > 0) return { retries, next: next.slice(0, maxTo).map(nameOf) };
    // If no provider is left, `order` and `end` mean the same; the rules are shorter with the word that the first provider has.
    const endsAnyway = isGeneral ? after.length === 0 : isRest;
    return { retries, next: endsAnyway && !pattern.includes('end') ? 'order' : 'end' };
  };
  const lead = chain[0]!;
  const first = lead.outcomes.map((outcome) => cellOf(lead, outcome, []).next);
  const usual = first[failures.indexOf(serverError)]!;
  return chain.map((one) => ({
    name: nameOf(one.deployment),
    cells: one.outcomes.flatMap((outcome, index) => {
      const cell = cellOf(one, outcome, [typeof first[index] === 'string' ? first[index] : usual]);
      return asRuleFailures(outcome.failing).map((failing) => ({ failing, cell }));
    }),
  }));
}

const sameList = <T>(one: readonly T[], other: readonly T[]) =>
  one.length === other.length && one.every((item, index) => item === other[index]);

/** The failures that rules treat like one: a prompt that is too long is one condition, whatever its status. */
function asRuleFailures({ condition, status_code: status }: FailureKind): FailureKind[] {
  if (condition === 'context_length') return [{ condition, status_code: usualStatus(condition) }];
  return [status, ...equivalentStatuses({ condition, status_code: status })].map((status_code) => ({ condition, status_code }));
}
