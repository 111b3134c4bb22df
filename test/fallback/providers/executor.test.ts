import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { conditions, type RuleRequest } from '../../../src/fallback/model/chain.ts';
import type { TestRequest } from '../../../src/fallback/model/test.ts';
import { runPrompt } from '../../../src/fallback/providers/executor.ts';
import { simulation } from '../../../src/fallback/providers/simulate.ts';
import type { Transport } from '../../../src/fallback/providers/transport.ts';
import { canFailWith, traitsOf, usualStatus } from '../../../src/fallback/rules/conditions.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { planOf, type Scene, sceneOf } from '../../../src/fallback/rules/plan.ts';
import { pathsTo, worstCase } from '../../../src/fallback/rules/reach.ts';
import { askedPath, routingOf } from '../../../src/fallback/rules/routing.ts';
import { summaryOf } from '../../../src/fallback/rules/summary.ts';
import { chainArbitrary, chainOf } from '../rules/chains.ts';

const signal = new AbortController().signal;
const nothing: Scene = { name: 'healthy', faults: [], expects: 'served' };

/** The results of a simulated test. */
async function simulate(chain: ReturnType<typeof chainOf>, request: TestRequest, seed = 1) {
  const engine = createEngine(chain);
  const plan = planOf(engine, request);
  const run = (index: number) =>
    runPrompt({
      engine,
      transport: simulation,
      scene: sceneOf(plan, index),
      index,
      prompt: 'p',
      seed,
      deadlineMs: request.deadline_ms ?? null,
      signal,
      callSignal: signal,
    });
  return (await Promise.all(Array.from({ length: request.prompt_count ?? 5 }, (_, index) => run(index)))).map(({ result }) => result);
}

const outcomeArbitrary = fc.constantFrom(...conditions).chain((condition) =>
  fc.record({
    condition: fc.constant(condition),
    status_code: fc.constantFrom(...traitsOf[condition].statuses),
    retry_after_ms: fc.option(fc.nat({ max: 20_000 })),
  }),
);

/** A transport with the listed results in a cycle, each at the latest allowed time. */
function adversary(
  outcomes: { condition: (typeof conditions)[number]; status_code: number | null; retry_after_ms: number | null }[],
): Transport {
  return {
    mode: 'simulate',
    begin() {
      let elapsed = 0;
      let calls = 0;
      return {
        elapsed: () => elapsed,
        wait(ms) {
          elapsed += ms;
        },
        call({ provider, timeoutMs }) {
          elapsed += timeoutMs;
          const next = outcomes[calls % outcomes.length]!;
          const outcome = canFailWith(provider, next.condition) ? next : { ...next, condition: 'timeout' as const };
          calls += 1;
          return { ...outcome, injected: false, error: null, charged: false, usage: null };
        },
      };
    },
  };
}

/** The result of one prompt over a transport. */
const runOver = (engine: ReturnType<typeof createEngine>, transport: Transport, seed: number, scene = nothing) =>
  runPrompt({ engine, transport, scene, index: 0, prompt: 'p', seed, deadlineMs: null, signal, callSignal: signal });

/** The result of a prompt whose providers have the listed results in a cycle. */
const runAgainst = (engine: ReturnType<typeof createEngine>, outcomes: Parameters<typeof adversary>[0], seed = 1) =>
  runOver(engine, adversary(outcomes), seed);

describe('A simulated stream', () => {
  test('whose first content is late fails after that limit and goes to the next provider; one that breaks off ends the prompt [F130, F131]', async () => {
    const chain = chainOf(2, [], { first_token_ms: 1_200 });
    const late = await simulate(chain, { faults: [{ provider: 'a', condition: 'first_token_timeout' }], prompt_count: 1 });
    const [first, second] = late[0]!.attempts;
    assert.deepEqual(
      [first!.condition, first!.status_code, first!.latency_ms, second!.provider],
      ['first_token_timeout', null, 1_200, 'b'],
    );
    const [broken] = await simulate(chain, { faults: [{ provider: 'a', condition: 'interrupted' }], prompt_count: 1 });
    assert.deepEqual([broken!.error, broken!.attempts.length, broken!.attempts[0]!.status_code], ['interrupted', 1, 200]);
  });
});

describe('No prompt exceeds the worst case', () => {
  test('in attempts and in time, however the providers behave [F23]', async () => {
    await fc.assert(
      fc.asyncProperty(
        chainArbitrary,
        fc.array(outcomeArbitrary, { minLength: 1, maxLength: 30 }),
        fc.nat(),
        async (chain, outcomes, seed) => {
          const engine = createEngine(chain);
          const { result } = await runAgainst(engine, outcomes, seed);
          const bound = worstCase(engine);
          assert.ok(result.attempts.length <= bound.attempts, `${result.attempts.length} attempts, at most ${bound.attempts}`);
          assert.ok(result.latency_ms <= bound.latency_ms, `${result.latency_ms} ms, at most ${bound.latency_ms}`);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('until the first content, by the limit of each provider [F131]', () => {
    const engine = createEngine(
      chainOf(
        2,
        [{ condition: 'timeout', action: 'retry', max_retries: 1, wait_ms: 500, backoff: 'constant', respect_retry_after: false }],
        { timeout_ms: 10_000, first_token_ms: 2_000 },
      ),
    );
    assert.deepEqual(worstCase(engine), { attempts: 4, latency_ms: 41_000, first_token_ms: 9_000 });
    const without = createEngine(chainOf(1, [], { timeout_ms: 10_000 }));
    assert.deepEqual(worstCase(without), { attempts: 1, latency_ms: 10_000, first_token_ms: 10_000 });
    assert.match(summaryOf(engine, []).text, / 4 attempts and 41 s, 9 s until the first content of a stream\.$/);
    assert.match(summaryOf(without, []).text, / 1 attempt and 10 s\.$/);
  });

  test('which counts the Retry-After of a time-out that a provider answers', async () => {
    const rule: RuleRequest = { condition: 'timeout', action: 'retry', max_retries: 1, wait_ms: 500, respect_retry_after: true };
    const engine = createEngine(chainOf(1, [rule]));
    const { result } = await runAgainst(engine, [{ condition: 'timeout', status_code: 408, retry_after_ms: 9_000 }]);
    const { latency_ms } = worstCase(engine);
    assert.ok(result.latency_ms > 9_000 && result.latency_ms <= latency_ms, `${result.latency_ms} ms, at most ${latency_ms}`);
  });

  test('and a prompt can reach it in attempts: each rule uses all its retries, and the last failure fails over', async () => {
    const rules: RuleRequest[] = [
      { condition: 'rate_limit', action: 'retry', max_retries: 2, then: 'fail' },
      { condition: 'timeout', action: 'retry', max_retries: 1 },
    ];
    const engine = createEngine(chainOf(2, rules));
    const rate = { condition: 'rate_limit' as const, status_code: 429, retry_after_ms: 60_000 };
    const late = { condition: 'timeout' as const, status_code: null, retry_after_ms: null };
    const { result } = await runAgainst(engine, [rate, rate, late, late]);
    assert.deepEqual({ attempts: result.attempts.length }, { attempts: worstCase(engine).attempts });
  });
});

describe("Routing's answer is what the executor does", () => {
  test('for every reachable provider, every condition and every status [F23, F31]', async () => {
    await fc.assert(
      fc.asyncProperty(chainArbitrary, outcomeArbitrary, fc.nat(), fc.nat(), async (chain, { condition, status_code }, at, seed) => {
        const place = at % chain.providers.length;
        const engine = createEngine(chain);
        // The providers before it fail in a way that leads to it.
        const way = pathsTo(engine)[place];
        fc.pre(way !== undefined);
        const fault = { retry_after_ms: null, latency_ms: null, times: null, from: 0, to: 0, probability: null };
        const faults = [...way.failures.map((before) => ({ ...fault, ...before })), { ...fault, provider: place, condition, status_code }];
        const scene: Scene = { name: 'asked', faults, expects: 'either' };
        const { result } = await runOver(engine, simulation, seed, scene);
        const { path, question } = askedPath(engine, place, condition, status_code);
        const steps = result.attempts.slice(result.attempts.findIndex(({ provider }) => provider === question.provider));
        assert.deepEqual(
          steps.map(({ provider, action, rule }) => [provider, action ?? 'serve', rule]),
          path.map(({ provider, action, rule }) => [provider, action, rule]),
        );
        for (const [index, step] of steps.entries()) assert.ok(step.wait_ms <= path[index]!.wait_ms);
        assert.equal(result.served_by, question.served_by);
      }),
      { numRuns: 300 },
    );
  });

  test('and so is its table: action, retries and next provider [F11, F16, F23]', async () => {
    await fc.assert(
      fc.asyncProperty(chainArbitrary, async (chain) => {
        const engine = createEngine(chain);
        for (const { name, decisions } of routingOf(chain).providers) {
          const place = chain.providers.findIndex((provider) => provider.name === name);
          for (const { condition, max_retries, next_provider, rule, exceptions } of decisions) {
            for (const one of [{ status_code: usualStatus(condition), max_retries, next_provider, rule }, ...exceptions]) {
              const { path, question } = askedPath(engine, place, condition, one.status_code);
              const own = path.filter(({ provider }) => provider === name);
              assert.equal(own.length - 1, one.max_retries);
              assert.equal(question.served_by, one.next_provider);
              assert.equal(own[0]!.rule, one.rule);
            }
          }
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('A simulation', () => {
  const rules: RuleRequest[] = [
    { condition: 'rate_limit', action: 'retry', max_retries: 3 },
    { condition: 'timeout', action: 'failover' },
  ];

  test('gives the same prompts for the same seed, and different ones for another [F31]', async () => {
    const request: TestRequest = { prompt_count: 20, faults: [{ provider: 'a', condition: 'rate_limit', probability: 0.5 }] };
    const first = await simulate(chainOf(3, rules), request, 7);
    assert.deepEqual(await simulate(chainOf(3, rules), request, 7), first);
    assert.notDeepEqual(await simulate(chainOf(3, rules), request, 8), first);
  });

  test('retries with growing waits, then fails over to the next provider [F11]', async () => {
    const [result] = await simulate(chainOf(2, rules), { prompt_count: 1, faults: [{ provider: 'a', condition: 'rate_limit' }] });
    assert.deepEqual(
      result!.attempts.map(({ provider, status_code, condition, action, injected }) => [
        provider,
        status_code,
        condition,
        action,
        injected,
      ]),
      [
        ['a', 429, 'rate_limit', 'retry', true],
        ['a', 429, 'rate_limit', 'retry', true],
        ['a', 429, 'rate_limit', 'retry', true],
        ['a', 429, 'rate_limit', 'failover', true],
        ['b', 200, null, null, false],
      ],
    );
    const waits = result!.attempts.map(({ wait_ms }) => wait_ms);
    for (const [index, most] of [500, 1000, 2000].entries()) assert.ok(waits[index]! >= most / 2 && waits[index]! <= most, `${waits}`);
    assert.deepEqual(waits.slice(3), [0, 0]);
    assert.equal(
      result!.total_wait_ms,
      waits.reduce((sum, wait) => sum + wait),
    );
    const calls = result!.attempts.reduce((sum, { latency_ms }) => sum + latency_ms, 0);
    assert.equal(result!.latency_ms, calls + result!.total_wait_ms);
    assert.equal(result!.retries_used, 3);
    assert.equal(result!.fallback_triggered, true);
  });

  test('waits for Retry-After, up to max_wait_ms, unless the rule does not respect it [F11]', async () => {
    const waitOf = async (retry_after_ms: number, more: Partial<RuleRequest>) => {
      const chain = chainOf(2, [{ condition: 'rate_limit', action: 'retry', backoff: 'constant', wait_ms: 100, ...more }]);
      const [result] = await simulate(chain, { prompt_count: 1, faults: [{ provider: 'a', condition: 'rate_limit', retry_after_ms }] });
      return result!.attempts[0]!.wait_ms;
    };
    assert.equal(await waitOf(7000, {}), 7000);
    assert.equal(await waitOf(60_000, {}), 10_000);
    assert.equal(await waitOf(50, {}), 100);
    assert.equal(await waitOf(7000, { respect_retry_after: false }), 100);
  });

  test('counts retries separately for each rule and provider [F18]', async () => {
    const both: RuleRequest[] = [
      { condition: 'rate_limit', action: 'retry', max_retries: 1 },
      { condition: 'server_error', action: 'retry', max_retries: 1 },
    ];
    const faults = ['a', 'b'].flatMap((provider) => [
      { provider, condition: 'rate_limit' as const, times: 1 },
      { provider, condition: 'server_error' as const, times: 2 },
      { provider, condition: 'rate_limit' as const },
    ]);
    const [result] = await simulate(chainOf(2, both), { prompt_count: 1, faults });
    assert.deepEqual(
      result!.attempts.map(({ provider, condition, action }) => [provider, condition, action]),
      ['a', 'b'].flatMap((provider) => [
        [provider, 'rate_limit', 'retry'],
        [provider, 'server_error', 'retry'],
        [provider, 'rate_limit', provider === 'a' ? 'failover' : 'fail'],
      ]),
    );
    assert.equal(result!.error, 'rate_limit');
  });

  test('turns a latency beyond the provider’s timeout into a timeout, which takes exactly that time', async () => {
    const chain = chainOf(2, [], { timeout_ms: 400 });
    const faults = (more: object) => ({ prompt_count: 1, faults: [{ provider: 'a', ...more }] });
    for (const [more, condition, latency] of [
      [{ latency_ms: 401 }, 'timeout', 400],
      [{ latency_ms: 400 }, null, 400],
      [{ latency_ms: 5000, condition: 'server_error' }, 'timeout', 400],
      [{ condition: 'timeout' }, 'timeout', 400],
    ] as const) {
      const [result] = await simulate(chain, faults(more));
      assert.equal(result!.attempts[0]!.condition, condition);
      assert.equal(result!.attempts[0]!.latency_ms, latency);
    }
  });

  test('ends a prompt at its deadline with `timeout`, and starts no wait beyond it', async () => {
    const late = await simulate(chainOf(3), { prompt_count: 1, deadline_ms: 50, faults: [{ provider: 'a', condition: 'timeout' }] });
    assert.deepEqual([late[0]!.success, late[0]!.error, late[0]!.latency_ms, late[0]!.attempts.length], [false, 'timeout', 50, 1]);
    const waiting = await simulate(chainOf(3, rules), {
      prompt_count: 1,
      deadline_ms: 300,
      faults: [{ provider: 'a', condition: 'rate_limit', retry_after_ms: 5000 }],
    });
    assert.deepEqual([waiting[0]!.error, waiting[0]!.attempts.length, waiting[0]!.total_wait_ms], ['timeout', 1, 0]);
    assert.ok(waiting[0]!.latency_ms < 300);
  });

  test('has the cost of a prompt if the price is known, and null otherwise [F41]', async () => {
    const priced = chainOf(2, [], { input_cost_per_1m: 10, output_cost_per_1m: 30, max_tokens: 100 });
    const [first] = await simulate(priced, { prompt_count: 1, faults: [{ provider: 'a', condition: 'invalid_response' }] });
    const cost = (200 * 10 + 100 * 30) / 1_000_000;
    assert.deepEqual(
      first!.attempts.map(({ cost_usd }) => cost_usd),
      [cost, cost],
    );
    const [second] = await simulate(priced, { prompt_count: 1, faults: [{ provider: 'a', condition: 'rate_limit' }] });
    assert.deepEqual(
      second!.attempts.map(({ cost_usd }) => cost_usd),
      [0, cost],
    );
    const [unpriced] = await simulate(chainOf(1), { prompt_count: 1, preset: 'healthy' });
    assert.deepEqual(
      unpriced!.attempts.map(({ cost_usd }) => cost_usd),
      [null],
    );
  });
});
