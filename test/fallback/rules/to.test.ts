import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { Condition, RuleRequest } from '../../../src/fallback/model/chain.ts';
import { faultsOf } from '../../../src/fallback/rules/chain.ts';
import { createEngine, decide, initialPosition } from '../../../src/fallback/rules/engine.ts';
import { planOf } from '../../../src/fallback/rules/plan.ts';
import { worstCase } from '../../../src/fallback/rules/reach.ts';
import { answeredRouting, routingOf } from '../../../src/fallback/rules/routing.ts';
import { summaryOf } from '../../../src/fallback/rules/summary.ts';
import { exportChain } from '../../../src/fallback/rules/targets/export.ts';
import { importChain } from '../../../src/fallback/rules/targets/import.ts';
import { warningsOf } from '../../../src/fallback/rules/warnings.ts';
import { chainOf, requestOf } from './chains.ts';

/** The providers that are called, as a text such as `a d`, if they fail in these ways one after the other. */
function called(rules: RuleRequest[], failures: readonly Condition[], count = 4): string {
  const engine = createEngine(chainOf(count, rules));
  const position = initialPosition(engine);
  const calls = [position.provider];
  for (const condition of failures) {
    const failure = { condition, status_code: null, retry_after_ms: null };
    const { end } = decide(engine, position, failure, { random: () => 1, elapsed_ms: 0, deadline_ms: null });
    if (end !== null) return `${names(calls)} end`;
    calls.push(position.provider);
  }
  return names(calls);
}
const names = (calls: readonly number[]) => calls.map((index) => 'abcdef'[index]).join(' ');

const long: RuleRequest = { condition: 'context_length', action: 'failover', to: ['d'], providers: ['a'] };

describe('A rule with to', () => {
  test('names the providers that are tried instead of those of the chain; after the last one the prompt fails [F11]', () => {
    assert.equal(called([long], ['context_length', 'server_error', 'server_error']), 'a d end');
    assert.equal(called([long], ['server_error', 'server_error']), 'a b c');
    assert.equal(called([{ ...long, to: ['d', 'b'] }], ['context_length', 'timeout', 'timeout']), 'a d b end');
  });

  test('holds for what comes after retries [F11]', () => {
    const rule: RuleRequest = { condition: 'rate_limit', action: 'retry', max_retries: 1, to: ['c'] };
    assert.equal(called([rule], ['rate_limit', 'rate_limit', 'server_error']), 'a a c end');
  });

  test('of a provider replaces what would come after it, and no provider that was left is called again [F11]', () => {
    const rules: RuleRequest[] = [long, { condition: 'timeout', action: 'failover', to: ['a', 'b', 'c'], providers: ['d'] }];
    assert.equal(called(rules, ['context_length', 'timeout', 'server_error', 'server_error']), 'a d b c end');
    assert.equal(called([{ condition: 'any', action: 'failover', to: ['b', 'a', 'c'] }], ['timeout', 'timeout', 'timeout']), 'a b c end');
  });

  test('must name providers of the chain [F11]', () => {
    const request = requestOf(2, [{ condition: 'timeout', action: 'failover', to: ['b', 'z'] }]);
    assert.deepEqual(
      faultsOf(request).map(({ field }) => field),
      ['fallback_rules.0.to.1'],
    );
  });

  test('is shown by routing, the worst case and the summary', () => {
    const chain = chainOf(4, [long, { condition: 'any', action: 'fail', providers: ['c'] }]);
    const engine = createEngine(chain);
    const { providers, path } = answeredRouting(engine, routingOf(chain), { provider: 'a', condition: 'context_length' }, []);
    const nextOf = (provider: number, condition: string) =>
      providers[provider]!.decisions.find((decision) => decision.condition === condition)!.next_provider;
    assert.deepEqual(
      [nextOf(0, 'context_length'), nextOf(0, 'timeout'), nextOf(2, 'timeout'), nextOf(3, 'timeout')],
      ['d', 'b', null, null],
    );
    assert.deepEqual(
      path!.map(({ provider }) => provider),
      ['a', 'd'],
    );
    // Either a, b and c are called, or a and d.
    assert.equal(worstCase(engine).attempts, 3);
    assert.match(summaryOf(engine, []).text, /On context_length of a it fails over to d at once\./);
    assert.deepEqual(
      warningsOf(chain).filter(({ code }) => code === 'unreachable_provider'),
      [],
    );
  });

  test('is exercised by the default plan', () => {
    const engine = createEngine(chainOf(4, [long]));
    const scene = planOf(engine, {}).find(({ name }) => name === 'context_length at a, lasting')!;
    assert.equal(scene.expects, 'served');
    assert.deepEqual(
      planOf(createEngine(chainOf(4, [{ ...long, condition: 'any' }])), { preset: 'cascade' }).map(({ faults }) => faults.length),
      [1],
    );
  });

  test('that names its own provider, or never fails over, is a warning [F11]', () => {
    const codes = (rule: Partial<RuleRequest>) =>
      warningsOf(chainOf(2, [{ condition: 'timeout', action: 'failover', to: ['b'], ...rule }])).map(({ code }) => code);
    assert.ok(codes({ providers: ['b'] }).includes('own_target'));
    assert.ok(!codes({}).includes('own_target'));
    assert.ok(codes({ action: 'fail' }).includes('unused_field'));
  });

  test('becomes the fallbacks for that condition in LiteLLM, code in LangChain, and a loss elsewhere', () => {
    const rules: RuleRequest[] = [long, { condition: 'any', action: 'failover' }, { condition: 'any', action: 'fail', providers: ['c'] }];
    const chain = chainOf(4, rules);
    const made = (format: Parameters<typeof exportChain>[0]) =>
      exportChain(format, { chain, routing: routingOf(chain), prefer: 'failover' });
    const { router_settings } = made('litellm').config as { router_settings: Record<string, unknown> };
    assert.deepEqual(router_settings.context_window_fallbacks, [{ [chain.name]: ['d'] }]);
    assert.match(made('langchain').content, /\{ action: "failover", to: \["d"\] \}/);
    for (const format of ['portkey', 'openrouter', 'bifrost', 'envoy-ai-gateway', 'ai-sdk'] as const)
      assert.ok(
        made(format).warnings.some(({ code, loss }) => code === 'to' && loss),
        format,
      );
    assert.equal(made('json').lossless, true);
    const { request } = importChain({ format: 'json', value: made('json').config });
    assert.deepEqual((request as { fallback_rules: RuleRequest[] }).fallback_rules[0]!.to, ['d']);
  });
});
