import { type Action, type ChainDefinition, type Condition, conditions, type Rule } from '../model/chain.ts';
import { type Failure, type FailureKind, traitsOf } from './conditions.ts';

/** A failure of a provider and the index of the rule that decides; null for the default. */
export interface Ruling extends FailureKind {
  readonly rule: number | null;
}

/** The rules that can match a condition at a provider, by index in `fallback_rules`. */
interface Candidates {
  /** Rules with status codes, in order. They have precedence over all others. */
  readonly coded: readonly { readonly rule: number; readonly codes: ReadonlySet<number> }[];
  /** The first rule without status codes for the condition, else for `any`; null if there is none. */
  readonly plain: number | null;
}

/** A chain with precomputed rule matching. */
export interface Engine {
  readonly chain: ChainDefinition;
  /** The candidates for each condition, by provider index. */
  readonly candidates: readonly Readonly<Record<Condition, Candidates>>[];
  /** The chain's order, as provider indexes. */
  readonly order: readonly number[];
  /** The providers of each rule's `to`, as indexes; null for the chain's order. */
  readonly to: readonly (readonly number[] | null)[];
}

/** The state of a prompt: the current provider, and the retries that each rule has used there. */
export interface Position {
  provider: number;
  /** The order that the prompt follows, which a rule's `to` replaces, and the place in it from which the next provider is sought. */
  queue: readonly number[];
  next: number;
  /** The providers that were left, as far as the queue may name them again; null while the chain's own order is followed. */
  left: Set<number> | null;
  /** Used retries by rule index; empty at a provider's first attempt. */
  used: Map<number, number>;
}

/** The next step after a failure. */
export interface NextStep {
  readonly action: Action;
  /** The wait before the next attempt, in milliseconds. */
  readonly wait_ms: number;
  /** The index in `fallback_rules` of the rule that decided; null for a default. */
  readonly rule: number | null;
  /** Why the prompt ends: by a rule, with no provider left, or at the deadline. Null if it continues. */
  readonly end: 'rule' | 'exhausted' | 'deadline' | null;
}

/** The inputs of a decision besides the chain and the failure. */
export interface DecisionInputs {
  /** A random number from 0 to 1 for jitter. */
  readonly random: () => number;
  /** The time since the prompt started. */
  readonly elapsed_ms: number;
  /** The longest duration of the prompt; null for no limit. */
  readonly deadline_ms: number | null;
  /** Whether a provider is left out by its cool-down; without it none is. */
  readonly isOut?: (provider: number) => boolean;
}

/** Prepares a chain for the engine. */
export function createEngine(chain: ChainDefinition): Engine {
  const rules = chain.fallback_rules.map(({ condition, providers, status_codes }, index) => ({
    index,
    condition,
    names: providers && new Set(providers),
    codes: status_codes && new Set(status_codes),
  }));
  const candidatesOf = (provider: string, condition: Condition): Candidates => {
    const matching = rules.filter(
      (rule) => (rule.condition === condition || rule.condition === 'any') && (rule.names === null || rule.names.has(provider)),
    );
    const plain = matching.filter(({ codes }) => codes === null);
    return {
      coded: matching.flatMap(({ index, codes }) => (codes === null ? [] : [{ rule: index, codes }])),
      plain: (plain.find((rule) => rule.condition === condition) ?? plain[0])?.index ?? null,
    };
  };
  const candidates = chain.providers.map(
    ({ name }) =>
      Object.fromEntries(conditions.map((condition) => [condition, candidatesOf(name, condition)])) as Record<Condition, Candidates>,
  );
  const indexOf = new Map(chain.providers.map(({ name }, index) => [name, index]));
  return {
    chain,
    candidates,
    order: chain.providers.map((_, index) => index),
    to: chain.fallback_rules.map(({ to }) => to?.map((name) => indexOf.get(name)!) ?? null),
  };
}

/**
 * The index of the rule that decides a failure; null for the default. A rule with status codes has precedence over one by
 * condition, and that over `any`; among equals the first one decides.
 */
export function matchingRule({ candidates }: Engine, provider: number, { condition, status_code }: FailureKind): number | null {
  const { coded, plain } = candidates[provider]![condition];
  if (status_code !== null) for (const { rule, codes } of coded) if (codes.has(status_code)) return rule;
  return plain;
}

/** The longest wait of a retry rule before its `retry`-th retry (from 1), without Retry-After. */
export function longestWait({ wait_ms, backoff, max_wait_ms }: Rule, retry: number): number {
  const grown = backoff === 'exponential' ? wait_ms! * 2 ** (retry - 1) : wait_ms!;
  return Math.min(grown, max_wait_ms!);
}

/** The wait before a rule's `retry`-th retry: with exponential backoff between half and all of it, extended by Retry-After. */
function waitBefore(rule: Rule, retry: number, retryAfter: number | null, random: () => number): number {
  const longest = longestWait(rule, retry);
  const wait = rule.backoff === 'exponential' ? Math.round(longest * (0.5 + random() / 2)) : longest;
  if (!rule.respect_retry_after || retryAfter === null) return wait;
  return Math.min(Math.max(wait, retryAfter), rule.max_wait_ms!);
}

/** The initial state of a prompt, at the given provider of the chain's order. */
export function initialPosition({ order }: Engine, provider = 0): Position {
  return { provider, queue: order, next: provider + 1, left: null, used: new Map() };
}

/** The initial state of a prompt at the first provider that is not left out; undefined if all are. */
export function firstPosition(engine: Engine, isOut: (provider: number) => boolean): Position | undefined {
  const provider = engine.order.find((one) => !isOut(one));
  return provider === undefined ? undefined : initialPosition(engine, provider);
}

/** The state after the current provider is left by a failover of this rule, or by a default; undefined if no provider is left. */
export function positionAfterFailover(engine: Engine, position: Position, rule: number | null): Position | undefined {
  const next = { ...position, left: position.left === null ? null : new Set(position.left), used: new Map() };
  return advance(engine, next, rule) ? next : undefined;
}

/** The providers of a rule's `to`, by index; null for the chain's order. */
export const toOf = ({ to }: Engine, rule: number | null): readonly number[] | null => (rule === null ? null : to[rule]!);

const noneIsOut = (_: number) => false;

/** Moves to the next provider that was not left yet and is not left out, by the `to` of the rule if it has one; returns whether there is one. */
function advance(engine: Engine, position: Position, rule: number | null, isOut = noneIsOut): boolean {
  const to = toOf(engine, rule);
  if (to !== null) {
    // Along the chain's own order, the providers before the current one were left.
    position.left ??= new Set(position.queue.slice(0, position.next - 1));
    position.queue = to;
    position.next = 0;
  }
  position.left?.add(position.provider);
  while (position.next < position.queue.length) {
    const provider = position.queue[position.next]!;
    position.next += 1;
    if (position.left?.has(provider) || isOut(provider)) continue;
    position.provider = provider;
    if (position.used.size > 0) position.used.clear();
    return true;
  }
  return false;
}

/** The next step after a failed attempt. Updates `position`; otherwise pure. */
export function decide(
  engine: Engine,
  position: Position,
  failure: Failure,
  { random, elapsed_ms, deadline_ms, isOut = noneIsOut }: DecisionInputs,
): NextStep {
  const rule = matchingRule(engine, position.provider, failure);
  if (deadline_ms !== null && elapsed_ms >= deadline_ms) return { action: 'fail', wait_ms: 0, rule, end: 'deadline' };

  const found = rule === null ? null : engine.chain.fallback_rules[rule]!;
  let action: Action = found?.action ?? traitsOf[failure.condition].byDefault;
  if (rule !== null && found?.action === 'retry') {
    const used = position.used.get(rule) ?? 0;
    // A provider that is left out now is not retried.
    if (used < found.max_retries! && !isOut(position.provider)) {
      const wait_ms = waitBefore(found, used + 1, failure.status_code === null ? null : failure.retry_after_ms, random);
      // A wait that would end after the deadline is not started.
      if (deadline_ms !== null && elapsed_ms + wait_ms >= deadline_ms) return { action: 'fail', wait_ms: 0, rule, end: 'deadline' };
      position.used.set(rule, used + 1);
      return { action: 'retry', wait_ms, rule, end: null };
    }
    action = found.then!;
  }
  if (action === 'fail') return { action, wait_ms: 0, rule, end: 'rule' };
  if (!advance(engine, position, rule, isOut)) return { action: 'fail', wait_ms: 0, rule, end: 'exhausted' };
  return { action, wait_ms: 0, rule, end: null };
}
