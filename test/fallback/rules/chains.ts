import fc from 'fast-check';

import {
  actions,
  type ChainDefinition,
  type ChainRequest,
  conditions,
  type ProviderRequest,
  type RuleRequest,
} from '../../../src/fallback/model/chain.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { traitsOf } from '../../../src/fallback/rules/conditions.ts';

/** A definition with providers a, b, c ... and the given rules. */
export function chainOf(count: number, rules: RuleRequest[] = [], provider: Partial<ProviderRequest> = {}): ChainDefinition {
  return define(requestOf(count, rules, provider));
}

/** A request for such a chain. */
export function requestOf(count: number, rules: RuleRequest[] = [], provider: Partial<ProviderRequest> = {}): ChainRequest {
  const providers = Array.from({ length: count }, (_, index) => ({
    name: String.fromCharCode(97 + index),
    model_id: `model-${index}`,
    api_base: `https://${String.fromCharCode(97 + index)}.example.com/v1`,
    ...provider,
  }));
  return { name: 'chain', providers, fallback_rules: rules };
}

/** What no sentence for a caller has: a plural of one, a long duration in milliseconds or seconds, an end of dots. */
export const roughWords = /\b1 (attempts|times|retries|prompts|seconds)\b|\b\d{4,}(\.\d+)? m?s\b|\.\.$/;

const statuses = [...new Set(conditions.flatMap((condition) => traitsOf[condition].statuses.filter((status) => status !== null)))];
const someStatus = fc.oneof(fc.constantFrom(200, 400, 401, 408, 413, 429, 500, 502, 503, 504, 529), fc.constantFrom(...statuses));

const ruleArbitrary = (names: readonly string[]) =>
  fc.record(
    {
      condition: fc.constantFrom(...conditions, 'any' as const),
      action: fc.constantFrom(...actions),
      max_retries: fc.nat({ max: 4 }),
      providers: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }),
      status_codes: fc.uniqueArray(someStatus, { minLength: 1, maxLength: 3 }),
      wait_ms: fc.nat({ max: 3000 }),
      backoff: fc.constantFrom('constant' as const, 'exponential' as const),
      max_wait_ms: fc.nat({ max: 5000 }),
      respect_retry_after: fc.boolean(),
      then: fc.constantFrom('failover' as const, 'fail' as const),
      to: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }),
    },
    { requiredKeys: ['condition', 'action'] },
  );

/** Chains of one to five providers with up to eight rules. */
export const chainArbitrary: fc.Arbitrary<ChainDefinition> = fc.integer({ min: 1, max: 5 }).chain((count) => {
  const names = Array.from({ length: count }, (_, index) => String.fromCharCode(97 + index));
  return fc
    .record({
      rules: fc.array(ruleArbitrary(names), { maxLength: 8 }),
      timeouts: fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: count, maxLength: count }),
      limits: fc.array(fc.option(fc.integer({ min: 1, max: 60_000 })), { minLength: count, maxLength: count }),
    })
    .map(({ rules, timeouts, limits }) =>
      define({
        name: 'chain',
        providers: names.map((name, index) => ({ name, model_id: 'm', timeout_ms: timeouts[index]!, first_token_ms: limits[index]! })),
        fallback_rules: rules,
      }),
    );
});
