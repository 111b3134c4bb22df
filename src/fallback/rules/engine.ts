import { type Action, type ChainDefinition, type Condition, conditions, type Rule } from '../model/chain.ts';
import type { Outcome } from './conditions.ts';

/** The action if no rule matches. */
export const defaultAction = (condition: Condition): 'failover' | 'fail' =>
  condition === 'invalid_request' || condition === 'content_filter' ? 'fail' : 'failover';

/** The rules that can match a condition at a provider, by index in `fallback_rules`. */
interface Candidates {
  /** Rules with status codes, in order. They have precedence over all others. */
  readonly coded: readonly { readonly rule: number; readonly codes: ReadonlySet<number> }[];
  /** The first rule without status codes for the condition, else for `any`; -1 if there is none. */
  readonly plain: number;
}

/** A chain with precomputed rule matching. */
export interface Engine {
  readonly chain: ChainDefinition;
  /** The candidates for each condition, by provider index. */
  readonly candidates: readonly Readonly<Record<Condition, Candidates>>[];
}

/** The state of a prompt: the current provider, and the retries that each rule has used there. */
export interface Position {
  provider: number;
  /** Used retries by rule index; empty at a provider's first attempt. */
  used: Map<number, number>;
}

/** The next step after a failure. */
export interface Next {
  readonly action: Action;
  /** The wait before the next attempt, in milliseconds. */
  readonly wait_ms: number;
  /** The index in `fallback_rules` of the rule that decided; null for a default. */
  readonly rule: number | null;
  /** Why the prompt ends: by a rule, with no provider left, or at the deadline. Null if it continues. */
  readonly end: 'rule' | 'exhausted' | 'deadline' | null;
}

/** The inputs of a decision besides the chain and the failure. */
export interface Circumstances {
  /** A random number from 0 to 1 for jitter. */
  readonly random: () => number;
  /** The time since the prompt started. */
  readonly elapsed_ms: number;
  /** The longest duration of the prompt; null for no limit. */
  readonly deadline_ms: number | null;
}

/** Prepares a chain for the engine. */
export function createEngine(chain: ChainDefinition): Engine {
  const rules = chain.fallback_rules.map(({ condition, providers, status_codes }) => ({
    condition,
    names: providers === null ? null : new Set(providers),
    codes: status_codes === null ? null : new Set(status_codes),
  }));
  const candidatesOf = (provider: string, condition: Condition): Candidates => {
    const matching = rules.map(
      (rule) => (rule.condition === condition || rule.condition === 'any') && (rule.names === null || rule.names.has(provider)),
    );
    const coded = rules.flatMap(({ codes }, rule) => (matching[rule] && codes !== null ? [{ rule, codes }] : []));
    const plain = rules.findIndex(({ codes, ...rule }, index) => matching[index] && codes === null && rule.condition === condition);
    const any = rules.findIndex(({ codes, ...rule }, index) => matching[index] && codes === null && rule.condition === 'any');
    return { coded, plain: plain === -1 ? any : plain };
  };
  const candidates = chain.providers.map(
    ({ name }) =>
      Object.fromEntries(conditions.map((condition) => [condition, candidatesOf(name, condition)])) as Record<Condition, Candidates>,
  );
  return { chain, candidates };
}

/**
 * The index of the rule that decides a failure; -1 for the default. A rule with status codes has precedence over one by
 * condition, and that over `any`; among equals the first one decides.
 */
export function matchingRule(engine: Engine, provider: number, condition: Condition, status: number | null): number {
  const { coded, plain } = engine.candidates[provider]![condition];
  if (status !== null) for (const { rule, codes } of coded) if (codes.has(status)) return rule;
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

/** The initial state of a prompt, at the given provider. */
export function startAt(provider = 0): Position {
  return { provider, used: new Map() };
}

/** The next step after a failed attempt. Updates `position`; otherwise pure. */
export function next(engine: Engine, position: Position, outcome: Outcome, { random, elapsed_ms, deadline_ms }: Circumstances): Next {
  const condition = outcome.condition!;
  const place = matchingRule(engine, position.provider, condition, outcome.status_code);
  const rule = place === -1 ? null : place;
  if (deadline_ms !== null && elapsed_ms >= deadline_ms) return { action: 'fail', wait_ms: 0, rule, end: 'deadline' };

  const found = place === -1 ? undefined : engine.chain.fallback_rules[place]!;
  let action: Action = found?.action ?? defaultAction(condition);
  if (found?.action === 'retry') {
    const used = position.used.get(place) ?? 0;
    if (used < found.max_retries!) {
      const wait_ms = waitBefore(found, used + 1, outcome.status_code === null ? null : outcome.retry_after_ms, random);
      // A wait that would end after the deadline is not started.
      if (deadline_ms !== null && elapsed_ms + wait_ms >= deadline_ms) return { action: 'fail', wait_ms: 0, rule, end: 'deadline' };
      position.used.set(place, used + 1);
      return { action: 'retry', wait_ms, rule, end: null };
    }
    action = found.then!;
  }
  if (action === 'fail') return { action, wait_ms: 0, rule, end: 'rule' };
  if (position.provider + 1 >= engine.chain.providers.length) return { action: 'fail', wait_ms: 0, rule, end: 'exhausted' };
  position.provider += 1;
  if (position.used.size > 0) position.used.clear();
  return { action, wait_ms: 0, rule, end: null };
}
