import type { ChainDefinition } from '../model/chain.ts';
import type { PromptResult, TestResult } from '../model/test.ts';

/** The figures of a result that are derived from its prompts. */
export type Figures = Pick<
  TestResult,
  | 'success_count'
  | 'failure_count'
  | 'success_rate'
  | 'fallback_count'
  | 'fallback_rate'
  | 'retry_count'
  | 'attempts_total'
  | 'latency_ms'
  | 'added_latency_ms'
  | 'cost_usd'
  | 'providers'
  | 'rules'
>;

/** The percentile of sorted values by nearest rank; `share` is from 0 to 1. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(Math.ceil(share * sorted.length) - 1, 0)]!;
}

const rounded = (value: number, digits = 3) => Math.round(value * 10 ** digits) / 10 ** digits;
const rateOf = (count: number, of: number) => (of === 0 ? null : count / of);

/** The figures of the finished prompts. */
export function figuresOf(chain: ChainDefinition, results: readonly PromptResult[]): Figures {
  const first = chain.providers[0]!.name;
  const served = results.filter(({ success }) => success);
  const fallbacks = served.filter(({ served_by }) => served_by !== first).length;
  const added = served.reduce((sum, { attempts }) => sum + attempts.at(-1)!.start_ms, 0);
  return {
    success_count: served.length,
    failure_count: results.length - served.length,
    success_rate: rateOf(served.length, results.length),
    fallback_count: fallbacks,
    fallback_rate: rateOf(fallbacks, results.length),
    retry_count: results.reduce((sum, { retries_used }) => sum + retries_used, 0),
    attempts_total: results.reduce((sum, { attempts }) => sum + attempts.length, 0),
    latency_ms: latencyOf(results.map(({ latency_ms }) => latency_ms)),
    added_latency_ms: served.length === 0 ? null : rounded(added / served.length),
    cost_usd: costOf(results),
    ...countsOf(chain, results),
  };
}

/** The counts of each provider and each rule. */
function countsOf({ providers, fallback_rules }: ChainDefinition, results: readonly PromptResult[]): Pick<Figures, 'providers' | 'rules'> {
  const counts = providers.map(({ name }) => ({ name, attempts: 0, successes: 0, failures: 0, served: 0 }));
  const byName = new Map(counts.map((provider) => [provider.name, provider]));
  const hits = fallback_rules.map(() => 0);
  for (const { attempts } of results) {
    for (const { provider, condition, rule } of attempts) {
      const count = byName.get(provider)!;
      count.attempts += 1;
      if (rule !== null) hits[rule]! += 1;
      if (condition !== null) {
        count.failures += 1;
      } else {
        // The attempt without a failure served the prompt.
        count.successes += 1;
        count.served += 1;
      }
    }
  }
  const rules = fallback_rules.map(({ condition, action }, place) => ({
    condition,
    action,
    hits: hits[place]!,
    never_hit: hits[place] === 0,
  }));
  return { providers: counts, rules };
}

function latencyOf(latencies: number[]): TestResult['latency_ms'] {
  if (latencies.length === 0) return null;
  const sorted = Float64Array.from(latencies).sort();
  const values = Array.from(sorted);
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

/** The cost of all attempts and of unusable answers; null if any of these costs is unknown. */
function costOf(results: readonly PromptResult[]): TestResult['cost_usd'] {
  let total: number | null = 0;
  let wasted: number | null = 0;
  for (const { attempts } of results) {
    for (const { cost_usd, condition } of attempts) {
      total = total === null || cost_usd === null ? null : total + cost_usd;
      if (condition !== null) wasted = wasted === null || cost_usd === null ? null : wasted + cost_usd;
    }
  }
  return {
    total: total === null || results.length === 0 ? null : rounded(total, 9),
    wasted: wasted === null || results.length === 0 ? null : rounded(wasted, 9),
  };
}
