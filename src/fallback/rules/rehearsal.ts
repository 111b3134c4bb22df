import type { ChainDefinition, Condition, Provider, Rule } from '../model/chain.ts';
import { type CallRun, type Course, type Difference, type Expected, runsOf } from '../model/rehearsal.ts';
import type { PromptResult } from '../model/test.ts';
import { ofNoAnswer, ofStream, usualStatus } from './conditions.ts';
import { decide, type Engine, firstPosition } from './engine.ts';
import { foreignKind, isAzure, playedKind, protocolOf } from './kinds.ts';
import { faultAt, type InjectedFault, type Plan, type Scene } from './plan.ts';
import { errorOf } from './provider-errors.ts';
import { listed, shortened, times } from './wording.ts';

const markForm = /rehearsal:([0-9a-f]{16})/g;

/** A prompt with the mark by which a call belongs to it, whatever is between. */
export const marked = (prompt: string, mark: string): string => `${prompt}\n\nrehearsal:${mark}`;

/** The marks in the text of a request. */
export const marksIn = (text: string): string[] => Array.from(text.matchAll(markForm), ([, mark]) => mark!);

/** Whether a provider speaks a protocol of its own, which no fake provider has. */
export const isOutside = ({ provider }: { provider: string | null }): boolean => foreignKind(provider) !== undefined && !isAzure(provider);

/** A chain without the providers that can't be redirected to fake ones, and their names. */
export function rehearsable(chain: ChainDefinition): { chain: ChainDefinition; left: string[] } {
  const left = chain.providers.filter(isOutside).map(({ name }) => name);
  if (left.length === 0) return { chain, left };
  const stays = (name: string) => !left.includes(name);
  const fallback_rules = chain.fallback_rules.flatMap((rule): Rule[] => {
    const providers = rule.providers?.filter(stays) ?? null;
    if (providers?.length === 0) return [];
    const to = rule.to?.filter(stays) ?? null;
    // A failover that only led to providers that are left out leads nowhere.
    if (to?.length === 0) return [{ ...rule, providers, to: null, ...(rule.action === 'retry' ? { then: 'fail' } : { action: 'fail' }) }];
    return [{ ...rule, providers, to }];
  });
  return { chain: { ...chain, providers: chain.providers.filter(({ name }) => stays(name)), fallback_rules }, left };
}

/** The status with which a provider sends a condition; undefined if it is not known to have one of its own. */
const nativeStatus = (provider: Provider, condition: Condition): number | undefined =>
  (errorOf(playedKind(provider), condition) ?? errorOf(protocolOf(provider), condition))?.status;

/** The plan with the statuses of the providers themselves, for failures whose status neither a rule nor the request names. */
export function withNativeStatuses(plan: Plan, { chain }: Engine, isChosen: (fault: number) => boolean): Plan {
  const named = new Set(chain.fallback_rules.flatMap(({ status_codes }) => status_codes ?? []));
  const native = (fault: InjectedFault, index: number): InjectedFault => {
    const { condition, status_code, provider } = fault;
    if (condition === null || status_code === null || status_code !== usualStatus(condition) || isChosen(index)) return fault;
    const status = nativeStatus(chain.providers[provider]!, condition) ?? status_code;
    return named.has(status) || named.has(status_code) ? fault : { ...fault, status_code: status };
  };
  return plan.map((scene) => ({ ...scene, faults: scene.faults.map(native) }));
}

/** The balanced groups of a gateway: the name of its group for each provider that is in one. */
export type Groups = ReadonlyMap<string, string>;

/** For each provider, those that a gateway calls in no prompt in which it calls that one. */
export type Apart = ReadonlyMap<string, ReadonlySet<string>>;

/** A call and its outcome, as far as the comparison needs it. */
type Attempt = Expected['attempts'][number];

/** The calls of a prompt, and who answered. */
export interface Outcome {
  readonly attempts: readonly Attempt[];
  readonly served_by: string | null;
  readonly success: boolean;
  /** Whether the answer was streamed. */
  readonly stream?: boolean;
  /** What is wrong with what the caller got, where the calls and the end are the same, as the end of a sentence. */
  readonly fault?: string | null;
  /** Why the gateway gave no answer, in a few words. */
  readonly reason?: string | null;
  /** That the rehearsal ended the prompt, as the end of a sentence about the gateway; null if it did not. */
  readonly ended?: string | null;
}

/** What the chain does, as a result shows it. */
export const expectedOf = ({ served_by, attempts }: PromptResult): Expected => ({
  served_by,
  attempts: attempts.map(({ provider, condition }) => ({ provider, condition })),
});

/**
 * Whether a gateway did what the chain says: the same providers in the same order as often, and the same end. A provider
 * of a balanced group may stand for another of it.
 */
export function agrees(expected: Expected, actual: Outcome, groups: Groups = new Map()): boolean {
  return firstDifference(expected, actual, groups) === null;
}

/** The number of attempts until the first difference; null without one. */
export function firstDifference(expected: Expected, actual: Outcome, groups: Groups): number | null {
  const groupOf = (attempt: Attempt | undefined) => attempt && (groups.get(attempt.provider) ?? attempt.provider);
  const length = Math.max(expected.attempts.length, actual.attempts.length);
  for (let index = 0; index < length; index += 1) {
    const [said, done] = [expected.attempts[index], actual.attempts[index]];
    if (groupOf(said) !== groupOf(done)) return index;
  }
  const group = (name: string | null) => (name === null ? null : (groups.get(name) ?? name));
  const sameEnd = (expected.served_by !== null) === actual.success && group(expected.served_by) === group(actual.served_by);
  return sameEnd ? null : length;
}

/** Whether a gateway did what the chain would do without the providers that were not drawn. `apart` names, for each provider, the providers that are not called in a prompt in which it is. */
export function agreesAsDrawn(
  engine: Engine,
  { attempts, served_by, success }: Pick<PromptResult, 'attempts' | 'served_by' | 'success'>,
  apart: Apart,
) {
  const { providers } = engine.chain;
  const out = new Set(attempts.flatMap(({ provider }) => [...(apart.get(provider) ?? [])]));
  const isOut = (provider: number) => out.has(providers[provider]!.name);
  const position = firstPosition(engine, isOut);
  if (position === undefined || out.size === 0) return false;
  for (const [index, { provider, condition, status_code }] of attempts.entries()) {
    if (providers[position.provider]!.name !== provider) return false;
    const isLast = index === attempts.length - 1;
    if (condition === null) return isLast && success && served_by === provider;
    const failure = { condition, status_code, retry_after_ms: null };
    const { end } = decide(engine, position, failure, { random: () => 0, elapsed_ms: 0, deadline_ms: null, isOut });
    if (end !== null) return isLast && !success;
  }
  return false;
}

/** Whether a prompt tests something: no call should fail, or one has failed. */
export const isTested = (expected: Expected, actual: Outcome): boolean =>
  expected.attempts.every(({ condition }) => condition === null) || actual.attempts.some(({ condition }) => condition !== null);

/**
 * The failures of the calls of a balanced group, in order: the failures that the chain meets at the group's providers. A call of the
 * group fails whichever of its providers the gateway draws for it.
 */
export function failuresOfGroup(
  { scene, seed, prompt, names }: { scene: Scene; seed: number; prompt: number; names: readonly string[] },
  expected: Expected,
  isOfGroup: (provider: string) => boolean,
): (call: number) => InjectedFault | undefined {
  const counts = new Map<string, number>();
  const planned = expected.attempts.flatMap(({ provider }) => {
    const nth = counts.get(provider) ?? 0;
    counts.set(provider, nth + 1);
    return isOfGroup(provider) ? [{ provider: names.indexOf(provider), nth }] : [];
  });
  return (call) => {
    const last = planned.at(-1);
    // Calls beyond those of the chain are further calls of the provider that it called last.
    const found = planned[call] ?? (last && { ...last, nth: last.nth + call - planned.length + 1 });
    return found && faultAt(scene, { ...found, prompt }, seed);
  };
}

/** Collects the differences of the prompts of a rehearsal, equal ones together. */
export class Differences {
  readonly #groups: Groups;
  /** By sentence. */
  readonly #known = new Map<string, Difference>();

  constructor(groups: Groups = new Map()) {
    this.#groups = groups;
  }

  get items(): readonly Difference[] {
    const items = [...this.#known.values()].map((one) => (one.stream === true ? { ...one, sentence: `Streamed: ${one.sentence}` } : one));
    return items.sort((one, other) => other.prompts - one.prompts || one.first_index - other.first_index);
  }

  /** Compares a prompt; returns whether the gateway did what the chain says. `statusOf` is the status of an expected attempt. */
  compare(index: number, expected: Expected, actual: Outcome, statusOf: (attempt: number) => number | null): boolean {
    const at = firstDifference(expected, actual, this.#groups);
    const { fault = null, stream = false } = actual;
    if (at === null && fault === null) return true;
    if (at === null) this.#add(index, { ...receivedDifference(expected, actual, statusOf), stream, second: null });
    else {
      const kind = at === Math.max(expected.attempts.length, actual.attempts.length) ? 'end' : 'calls';
      for (const difference of differencesFrom(at, expected, actual, statusOf))
        this.#add(index, { ...difference, kind, stream, second: null });
    }
    return false;
  }

  #add(index: number, difference: Omit<Difference, 'prompts' | 'first_index'>): void {
    const known = this.#known.get(difference.sentence);
    if (known === undefined) {
      this.#known.set(difference.sentence, { ...difference, prompts: 1, first_index: index });
      return;
    }
    const stream = known.stream === difference.stream ? known.stream : null;
    Object.assign(known, { prompts: known.prompts + 1, first_index: Math.min(known.first_index, index), stream });
  }
}

/** A difference of what the caller got, behind the last failure. */
export function receivedDifference(expected: Expected, actual: Outcome, statusOf: StatusOf) {
  const failed = expected.attempts.findLastIndex(({ condition }) => condition !== null);
  const last = failed === -1 ? expected.attempts.length - 1 : failed;
  const { provider, condition } = expected.attempts[last]!;
  const sentence = `${failureText(provider, condition, statusOf(last))}: ${actual.fault}.`;
  const kind = actual.ended ? ('end' as const) : ('received' as const);
  return {
    provider,
    condition,
    status_code: condition === null ? null : statusOf(last),
    expected: courseOf(expected.attempts.slice(last), expected.served_by),
    actual: courseOf(actual.attempts.slice(last), actual.served_by),
    sentence,
    kind,
  };
}

type StatusOf = (attempt: number) => number | null;

/**
 * The differences behind the first `at` attempts, which are the same. If the gateway called the same providers in the
 * same order, but some providers not as often, each of these providers has a difference of its own.
 */
export function* differencesFrom(at: number, expected: Expected, actual: Outcome, statusOf: StatusOf) {
  const condition = at === 0 ? null : expected.attempts[Math.min(at, expected.attempts.length) - 1]!.condition;
  const said = runsOf(expected.attempts);
  const done = runsOf(actual.attempts);
  const hasFailed = ({ start, calls }: CallRun) => expected.attempts[start + calls - 1]!.condition !== null;
  const isSameOrder = said.length === done.length && said.every(({ provider }, run) => provider === done[run]!.provider);
  const unequal = isSameOrder && condition !== null ? said.filter((run, index) => run.calls !== done[index]!.calls && hasFailed(run)) : [];
  if (unequal.length < 2) {
    yield differenceAt(at, expected, actual, statusOf);
    return;
  }
  for (const run of unequal) {
    const { provider, start, calls } = run;
    const last = start + calls - 1;
    const { condition: failure } = expected.attempts[last]!;
    const own = courseOf(expected.attempts.slice(start), expected.served_by);
    const other = courseOf(actual.attempts.slice(done[said.indexOf(run)]!.start), actual.served_by);
    const begins = failureText(provider, failure, statusOf(last));
    const sentence = `${begins}: the chain ${chainText(own, false)}; the gateway ${gatewayText(other, own, actual)}.`;
    yield { provider, condition: failure, status_code: statusOf(last), expected: own, actual: other, sentence };
  }
}

/** The difference behind the first `at` attempts: what follows the last of them, and the calls of its provider before. */
function differenceAt(at: number, expected: Expected, actual: Outcome, statusOf: StatusOf) {
  const last = Math.max(Math.min(at, expected.attempts.length) - 1, 0);
  const { provider } = expected.attempts[last]!;
  const condition = at === 0 ? null : expected.attempts[last]!.condition;
  let start = last;
  // What led to an answer does not matter to what follows it.
  if (condition !== null) while (start > 0 && expected.attempts[start - 1]!.provider === provider) start -= 1;
  const said = courseOf(expected.attempts.slice(start), expected.served_by);
  const done = courseOf(actual.attempts.slice(start), actual.served_by);
  const begins = at === 0 ? 'At the start' : failureText(provider, condition, statusOf(last));
  const sentence = `${begins}: the chain ${chainText(said, at === 0)}; the gateway ${gatewayText(done, said, actual)}.`;
  return { provider, condition, status_code: condition === null ? null : statusOf(last), expected: said, actual: done, sentence };
}

/** Calls as a result shows them. */
export const courseOf = (attempts: readonly Attempt[], served_by: string | null): Course => ({
  calls: runsOf(attempts).map(({ provider, calls }) => ({ provider, calls })),
  served_by,
});

/** Statuses of several conditions, which a sentence names. */
const ambiguous = new Set([400, 404, 422, 429]);

function failureText(provider: string, condition: Condition | null, status: number | null): string {
  if (condition === null) return `${provider} answers`;
  if (condition === ofNoAnswer.broken) return `${provider} breaks the connection`;
  if (condition === ofStream.late) return `${provider} sends no content`;
  if (condition === ofStream.broken) return `${provider} breaks off its answer`;
  if (status === null) return `${provider} does not answer`;
  if (condition === 'content_filter' && status === 200) return `${provider} withholds its answer`;
  if (condition === ofNoAnswer.unusable) return `${provider} answers ${status} with a broken body`;
  return `${provider} answers ${status}${ambiguous.has(status) ? ` (${condition})` : ''}`;
}

function chainText({ calls, served_by }: Course, isStart: boolean): string {
  const [{ provider, calls: own }, then] = [calls[0]!, calls[1]];
  if (isStart) return `calls ${provider}`;
  const next = then !== undefined ? `goes to ${then.provider}` : served_by === provider ? `is served by ${provider}` : 'ends with an error';
  if (own > 1) return `retries ${times(own - 1)} and ${next}`;
  return then === undefined && served_by === provider ? 'ends there' : `does not retry and ${next}`;
}

/** The most runs of calls in a sentence. */
const mostRuns = 8;

function gatewayText({ calls, served_by }: Course, said: Course, { success, attempts, reason, ended }: Outcome): string {
  const runs = calls.map(({ provider, calls: count }) => `${provider} ${times(count)}`);
  const called = runs.length === 0 ? 'called nobody' : `called ${listed(shortened(runs, mostRuns, 'other provider'))}`;
  if (ended) return `${called} and ${ended}`;
  if (success && served_by === null && attempts.at(-1)?.condition === ofStream.broken)
    return `${called} and passed the broken answer on as a whole one`;
  if (success && served_by === null && attempts.at(-1)?.condition === ofStream.late)
    return `${called}, waited for the late answer and passed it on`;
  if (success && served_by === null) return `${called} and answered by itself`;
  if (success === (said.served_by !== null)) return called;
  return success ? `${called}, and ${served_by} answered` : `${called} and ended with an error${reason ? ` (${reason})` : ''}`;
}
