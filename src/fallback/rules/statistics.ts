import type { ChainDefinition, Condition } from '../model/chain.ts';
import type { Attempt, PromptResult, TestProgress, TestResult } from '../model/test.ts';
import type { NextStep } from './engine.ts';
import type { Scene } from './plan.ts';

/** The percentile of sorted values by nearest rank; `share` is from 0 to 1. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)]!;
}

const rounded = (value: number, digits = 3) => Math.round(value * 10 ** digits) / 10 ** digits;
const rateOf = (count: number, of: number) => (of === 0 ? null : count / of);

/** A finished prompt. */
export interface FinishedPrompt {
  readonly result: PromptResult;
  /** Why the prompt ended; null if it was served. */
  readonly end: NextStep['end'];
  readonly scene: Scene;
}

/** A finished prompt, without the details of its attempts. */
export interface PromptOutcome
  extends Pick<PromptResult, 'index' | 'success' | 'served_by' | 'latency_ms'>,
    Omit<FinishedPrompt, 'result'> {
  readonly attempts: number;
}

/** The calls of a provider without an injected failure or delay, and its usable answers to all calls. */
interface Reach {
  calls: number;
  answers: number;
  /** How often each condition occurred. */
  readonly failures: Map<Condition, number>;
}

/** Counts finished prompts, so that the details of their attempts need not be kept. */
export class Tally {
  /** The finished prompts, in the order in which they finished. */
  readonly prompts: PromptOutcome[] = [];
  /** How the providers were reached, by name. */
  readonly reached: ReadonlyMap<string, Reach>;
  readonly #first: string;
  readonly #providers: Map<string, TestResult['providers'][number]>;
  readonly #rules: Omit<TestResult['rules'][number], 'never_hit'>[];
  readonly #counts = { success_count: 0, failure_count: 0, fallback_count: 0, retry_count: 0, attempts_total: 0 };
  readonly #cost: { total: number | null; wasted: number | null } = { total: 0, wasted: 0 };
  #addedMs = 0;

  constructor({ providers, fallback_rules }: ChainDefinition) {
    this.#first = providers[0]!.name;
    this.#providers = new Map(providers.map(({ name }) => [name, { name, attempts: 0, successes: 0, failures: 0, served: 0 }]));
    this.reached = new Map(providers.map(({ name }) => [name, { calls: 0, answers: 0, failures: new Map() }]));
    this.#rules = fallback_rules.map(({ condition, action }) => ({ condition, action, hits: 0 }));
  }

  add({ result, end, scene }: FinishedPrompt): void {
    const { index, success, served_by, latency_ms, retries_used, attempts } = result;
    const counts = this.#counts;
    counts.attempts_total += attempts.length;
    counts.retry_count += retries_used;
    if (success) {
      counts.success_count += 1;
      this.#addedMs += attempts.at(-1)?.start_ms ?? 0;
      if (served_by !== this.#first) counts.fallback_count += 1;
    } else counts.failure_count += 1;
    this.prompts.push({ index, success, served_by, latency_ms, attempts: attempts.length, end, scene });
    for (const attempt of attempts) this.#addAttempt(attempt, served_by);
  }

  #addAttempt({ provider, condition, rule, injected, cost_usd }: Attempt, served: string | null): void {
    const figures = this.#providers.get(provider);
    const reached = this.reached.get(provider);
    // A gateway may call a provider that the chain does not have.
    if (figures === undefined || reached === undefined) return;
    figures.attempts += 1;
    if (!injected) reached.calls += 1;
    if (rule !== null) this.#rules[rule]!.hits += 1;
    this.#cost.total = sumOf(this.#cost.total, cost_usd);
    if (condition === null) {
      // In a chain the attempt without a failure serves the prompt; a gateway may call further providers.
      figures.successes += 1;
      if (provider === served) figures.served += 1;
      reached.answers += 1;
      return;
    }
    figures.failures += 1;
    this.#cost.wasted = sumOf(this.#cost.wasted, cost_usd);
    if (!injected) reached.failures.set(condition, (reached.failures.get(condition) ?? 0) + 1);
  }

  /** The counts that progress events have. */
  get progress(): Pick<TestProgress, 'success_count' | 'failure_count' | 'fallback_count'> {
    const { success_count, failure_count, fallback_count } = this.#counts;
    return { success_count, failure_count, fallback_count };
  }

  figures() {
    const { success_count, failure_count, fallback_count, retry_count, attempts_total } = this.#counts;
    const done = this.prompts.length;
    const costOf = (cost: number | null) => (cost === null || done === 0 ? null : rounded(cost, 9));
    return {
      success_count,
      failure_count,
      success_rate: rateOf(success_count, done),
      fallback_count,
      fallback_rate: rateOf(fallback_count, done),
      retry_count,
      attempts_total,
      latency_ms: latencyOf(this.prompts.map(({ latency_ms }) => latency_ms)),
      added_latency_ms: success_count === 0 ? null : rounded(this.#addedMs / success_count),
      cost_usd: { total: costOf(this.#cost.total), wasted: costOf(this.#cost.wasted) },
      providers: [...this.#providers.values()],
      rules: this.#rules.map((rule) => ({ ...rule, never_hit: rule.hits === 0 })),
    };
  }
}

/** A sum that is unknown as soon as one of its parts is. */
const sumOf = (sum: number | null, part: number | null) => (sum === null || part === null ? null : sum + part);

function latencyOf(latencies: number[]): TestResult['latency_ms'] {
  if (latencies.length === 0) return null;
  const values = latencies.toSorted((one, other) => one - other);
  return {
    min: values[0]!,
    avg: rounded(values.reduce((sum, value) => sum + value, 0) / values.length),
    p50: percentile(values, 0.5),
    p90: percentile(values, 0.9),
    p95: percentile(values, 0.95),
    p99: percentile(values, 0.99),
    max: values.at(-1)!,
  };
}
