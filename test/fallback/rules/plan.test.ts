import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { conditions, type RuleRequest } from '../../../src/fallback/model/chain.ts';
import type { TestRequest } from '../../../src/fallback/model/test.ts';
import { runPrompt } from '../../../src/fallback/providers/executor.ts';
import { simulation } from '../../../src/fallback/providers/simulate.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { faultAt, planOf, promptCountOf, sceneOf } from '../../../src/fallback/rules/plan.ts';
import { percentile, Tally } from '../../../src/fallback/rules/statistics.ts';
import { judge } from '../../../src/fallback/rules/verdict.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { chainArbitrary, chainOf, roughWords } from './chains.ts';

const rules: RuleRequest[] = [
  { condition: 'rate_limit', action: 'retry', max_retries: 3 },
  { condition: 'timeout', action: 'failover' },
];

/** The names of a plan's scenes. */
const scenes = (count: number, request: TestRequest, of = rules) =>
  planOf(createEngine(chainOf(count, of)), request).map(({ name }) => name);

/** The verdict of a simulated test. */
async function run(chain: ReturnType<typeof chainOf>, request: TestRequest) {
  const engine = createEngine(chain);
  const plan = planOf(engine, request);
  const { signal } = new AbortController();
  const done = await Promise.all(
    Array.from({ length: request.prompt_count ?? plan.length }, (_, index) =>
      runPrompt({
        engine,
        transport: simulation,
        scene: sceneOf(plan, index),
        index,
        prompt: 'p',
        seed: 3,
        deadlineMs: request.deadline_ms ?? null,
        signal,
        callSignal: signal,
      }),
    ),
  );
  const preset = request.faults === undefined ? (request.preset ?? 'coverage') : null;
  const tally = new Tally(chain);
  for (const one of done) tally.add(one);
  return { ...judge({ engine, mode: 'simulate', preset, tally, slackMs: 0 }), figures: tally.figures(), done };
}

describe('A plan', () => {
  test('for whole answers gets to later providers by failures that whole answers have', () => {
    const retried = conditions.map(
      (condition): RuleRequest =>
        condition === 'first_token_timeout' ? { condition, action: 'failover' } : { condition, action: 'retry', max_retries: 2 },
    );
    const plan = planOf(createEngine(chainOf(2, retried, { first_token_ms: 1000 })), { mode: 'rehearsal', request: { stream: false } });
    assert.equal(plan[0]!.name, 'all but b down');
  });

  test('covers every rule, the defaults and the last provider, the most informative scenes first [F38]', () => {
    assert.deepEqual(scenes(3, {}), [
      'all but c down',
      'rate_limit at a, lasting',
      'timeout at a, lasting',
      'server_error at a, without a rule',
      'rate_limit at a, recovering',
      'healthy',
    ]);
  });

  test('of a rehearsal also has each other condition at the first provider, since a gateway may tell them apart [F38]', () => {
    const more = scenes(3, { mode: 'rehearsal' }).filter((name) => !scenes(3, {}).includes(name));
    assert.deepEqual(
      more,
      [
        ...['connection_error', 'auth_error', 'quota_exceeded', 'model_not_found', 'context_length', 'content_filter'],
        ...['unsupported_request', 'invalid_request', 'invalid_response'],
      ].map((condition) => `${condition} at a, lasting`),
    );
  });

  test('of a rehearsal has failures of streams only if it streams, and a late first content only where a limit is set [F133]', () => {
    const streamed = (limits: object) => {
      const plan = planOf(createEngine(chainOf(2, [], limits)), { mode: 'rehearsal', stream: true });
      return plan.flatMap(({ name, faults }) => (faults.some(({ inStream }) => inStream) ? [name.slice('stream of a: '.length)] : []));
    };
    const always = [
      ...['an error event before its content', 'a malformed part before its content', 'cut behind content'],
      ...['without its final event', 'an error event behind content', 'a malformed part behind content'],
    ];
    assert.deepEqual(streamed({}), always);
    assert.deepEqual(streamed({ first_token_ms: 500 }), ['silent before its content', ...always]);
    assert.deepEqual(streamed({ idle_ms: 500 }), [...always, 'silent behind content']);
    const rule = { condition: 'interrupted', action: 'failover' } as const;
    const whole = planOf(createEngine(chainOf(2, [rule], { first_token_ms: 500 })), { mode: 'rehearsal' });
    assert.ok(whole.every(({ faults }) => faults.every(({ condition }) => condition !== 'interrupted')));
    const refused = (faults: { provider: string; condition: 'first_token_timeout' | 'interrupted' }[]) => () =>
      planOf(createEngine(chainOf(2)), { mode: 'rehearsal', faults });
    assert.throws(refused([{ provider: 'a', condition: 'interrupted' }]), /only a streamed answer can have; set stream/);
    assert.throws(refused([{ provider: 'a', condition: 'first_token_timeout' }]), /has no first_token_ms/);
  });

  test('of a rehearsal with streams also has the scenes of rules for them that the first provider does not have already [F133]', () => {
    const rules: RuleRequest[] = [
      { condition: 'interrupted', action: 'retry', max_retries: 1 },
      { condition: 'first_token_timeout', action: 'failover', providers: ['b'] },
    ];
    const plan = planOf(createEngine(chainOf(3, rules, { first_token_ms: 500 })), { mode: 'rehearsal', stream: true });
    const names = plan.map(({ name }) => name);
    assert.deepEqual(
      names.filter((name) => /interrupted|first_token/.test(name)),
      ['first_token_timeout at b, lasting', 'interrupted at a, recovering'],
    );
    const drill = () => planOf(createEngine(chainOf(2)), { mode: 'drill', faults: [{ provider: 'a', condition: 'interrupted' }] });
    assert.throws(drill, /only a streamed answer can have; set stream/);
  });

  test('has the scenes of several shapes in turn, and without a preset each shape as often [F157]', () => {
    const requests = ['a', 'bb', 'ccc'].map((content) => ({ messages: [{ role: 'user', content }] }));
    const engine = createEngine(chainOf(2));
    const shapes = (request: TestRequest) => planOf(engine, request).map(({ name, shape }) => [name, shape!.index]);
    const planned = shapes({ mode: 'rehearsal', preset: 'primary_down', request: { requests } });
    const names = planOf(engine, { preset: 'primary_down' }).map(({ name }) => name);
    assert.deepEqual(
      planned,
      names.flatMap((name) => [0, 1, 2].map((index) => [name, index])),
    );
    const faults = [{ provider: 'a', condition: 'timeout' as const }];
    const counts = (request: TestRequest) => promptCountOf(request, planOf(engine, request));
    assert.deepEqual(
      [
        counts({ mode: 'live', request: { requests } }),
        counts({ mode: 'rehearsal', faults, request: { stream: 'both' } }),
        counts({ mode: 'rehearsal', faults }),
      ],
      [6, 6, 5],
    );
  });

  test("fails other providers until a rule's provider is reached, and omits rules that can never apply", () => {
    const more: RuleRequest[] = [
      { condition: 'server_error', action: 'fail', providers: ['b'], status_codes: [503] },
      { condition: 'rate_limit', action: 'fail' },
    ];
    assert.deepEqual(
      scenes(2, {}, [...rules, ...more]).filter((name) => name.includes('lasting')),
      ['rate_limit at a, lasting', 'timeout at a, lasting', 'server_error (503) at b, lasting'],
    );
  });

  test('of a preset matches its name [F38]', () => {
    assert.deepEqual(scenes(3, { preset: 'healthy' }), ['healthy']);
    assert.deepEqual(scenes(3, { preset: 'primary_down' }), [
      'a is down: connection_error',
      'a is down: server_error',
      'a is down: timeout',
    ]);
    assert.deepEqual(scenes(3, { preset: 'cascade' }), ['the first 2 providers are down', 'the first provider is down']);
    assert.deepEqual(scenes(3, { preset: 'flap' }), ['a is down for a while', 'a fails once', 'a is up again']);
    assert.deepEqual(scenes(3, { preset: 'blackout' }), ['every provider is down']);
    assert.deepEqual(scenes(3, { mode: 'live' }), ['healthy']);
  });

  test('of faults applies them to their calls and prompts [F39, F59]', () => {
    const faults = [
      { provider: 'a', condition: 'timeout' as const, times: 2, from: 1, to: 3 },
      { provider: 'a', condition: 'rate_limit' as const, probability: 0.5 },
    ];
    const [scene] = planOf(createEngine(chainOf(2)), { faults });
    const met = (nth: number, prompt: number, seed = 1, provider = 0) => faultAt(scene!, { provider, nth, prompt }, seed)?.condition;
    assert.equal(met(0, 1), 'timeout');
    assert.equal(met(1, 3), 'timeout');
    assert.equal(met(0, 1, 1, 1), undefined);
    const drawn = Array.from({ length: 400 }, (_, seed) => met(2, 1, seed));
    assert.deepEqual(new Set(drawn), new Set(['rate_limit', undefined]));
    const failed = drawn.filter((condition) => condition === 'rate_limit').length;
    assert.ok(failed > 150 && failed < 250, `${failed} of 400 draws with a probability of 0.5`);
    assert.deepEqual(
      Array.from({ length: 400 }, (_, seed) => met(2, 1, seed)),
      drawn,
      'the same seed draws the same',
    );
  });

  test('that is invalid is refused with all faults [F39]', () => {
    const request: TestRequest = {
      preset: 'flap',
      mode: 'live',
      prompt_count: 3,
      faults: [
        { provider: 'z' },
        { provider: 'a', condition: 'rate_limit', status_code: 500 },
        { provider: 'a', latency_ms: 1, status_code: 500, from: 2, to: 1 },
        { provider: 'a', condition: 'connection_error', status_code: 500, from: 3 },
      ],
    };
    assert.throws(
      () => planOf(createEngine(chainOf(1)), request),
      (error: ServiceError) => {
        assert.deepEqual(
          error.faults.map(({ field }) => field),
          [
            'faults',
            'preset',
            'preset',
            'faults.0.provider',
            'faults.0.condition',
            'faults.1.status_code',
            'faults.2.status_code',
            'faults.2.to',
            'faults.3.status_code',
            'faults.3.from',
          ],
        );
        return error instanceof ServiceError;
      },
    );
  });
});

describe('A verdict', () => {
  const verdicts: [string, number, RuleRequest[], TestRequest, string][] = [
    ['pass: all served, and every rule fired', 3, rules, {}, 'pass'],
    ['partial: all served, but some rules never fired', 3, rules, { prompt_count: 1 }, 'partial'],
    ['lost_as_ruled: lost as a rule says', 2, [{ condition: 'rate_limit', action: 'fail' }], {}, 'lost_as_ruled'],
    ['lost_as_ruled: every provider was down by the plan', 3, rules, { preset: 'blackout', prompt_count: 2 }, 'lost_as_ruled'],
    ['fail: there is no backup', 1, rules, {}, 'fail'],
    ['fail: a deadline was over', 2, rules, { prompt_count: 1, deadline_ms: 1 }, 'fail'],
    ['pass: a healthy run, which proves little', 1, rules, { preset: 'healthy', prompt_count: 2 }, 'pass'],
    [
      'lost_as_ruled: the faults given left nobody',
      1,
      rules,
      { prompt_count: 1, faults: [{ provider: 'a', condition: 'server_error' }] },
      'lost_as_ruled',
    ],
  ];
  test('states the number of served prompts in a correct sentence', async () => {
    const saidOf = async (count: number, request: TestRequest) => (await run(chainOf(count, rules), request)).checks[0]!.detail;
    assert.equal(await saidOf(1, { preset: 'healthy', prompt_count: 1 }), 'The prompt was served.');
    assert.equal(await saidOf(1, { preset: 'healthy', prompt_count: 2 }), 'All 2 prompts were served.');
    assert.equal(await saidOf(1, { preset: 'blackout', prompt_count: 1 }), 'The prompt was lost.');
    assert.equal(await saidOf(1, { preset: 'flap', prompt_count: 3 }), '2 of 3 prompts were lost.');
  });

  for (const [name, count, of, request, expected] of verdicts) {
    test(name, async () => {
      const { verdict, checks } = await run(chainOf(count, of), request);
      assert.equal(verdict, expected, JSON.stringify(checks));
    });
  }

  test('lost_as_ruled: the streams of every provider went wrong, and the last one leaves no other [F156]', async () => {
    const { verdict, done } = await run(chainOf(2, [], { first_token_ms: 500 }), { preset: 'streams' });
    assert.equal(verdict, 'lost_as_ruled');
    assert.ok(done.some(({ end }) => end === 'exhausted'));
    const names = done.map(({ scene: { name } }) => name);
    for (const condition of ['model_not_found', 'unsupported_request'])
      assert.deepEqual(
        names.filter((name) => name.includes(condition)),
        ['a', 'b'].map((name) => `${condition} at ${name}, lasting`),
      );
    // So does a rule that only the last provider has.
    const ofLast = chainOf(2, [{ condition: 'rate_limit', action: 'retry', providers: ['b'] }]);
    assert.equal((await run(ofLast, {})).verdict, 'lost_as_ruled');
  });

  test('of the coverage plan confirms that every rule that can apply did, for any chain [F43]', async () => {
    await fc.assert(
      fc.asyncProperty(chainArbitrary, async (chain) => {
        const { checks } = await run(chain, {});
        assert.deepEqual(
          checks.filter(({ name, passed }) => !passed && (name === 'rules_exercised' || name === 'bounded')),
          [],
        );
        for (const { detail } of checks) assert.doesNotMatch(detail, roughWords);
      }),
      { numRuns: 100 },
    );
  });
});

describe('Figures', () => {
  test('are derived from the prompts [F44]', async () => {
    const { figures, done } = await run(chainOf(2, rules), {
      prompt_count: 4,
      faults: [{ provider: 'a', condition: 'rate_limit', from: 0, to: 1 }],
    });
    const results = done.map(({ result }) => result);
    assert.equal(figures.success_count, 4);
    assert.equal(figures.fallback_count, 2);
    assert.equal(figures.fallback_rate, 0.5);
    assert.equal(figures.retry_count, 6);
    assert.equal(figures.attempts_total, 12);
    assert.deepEqual(figures.providers, [
      { name: 'a', attempts: 10, successes: 2, failures: 8, served: 2 },
      { name: 'b', attempts: 2, successes: 2, failures: 0, served: 2 },
    ]);
    assert.deepEqual(figures.rules, [
      { condition: 'rate_limit', action: 'retry', hits: 8, never_hit: false },
      { condition: 'timeout', action: 'failover', hits: 0, never_hit: true },
    ]);
    const latencies = results.map(({ latency_ms }) => latency_ms).sort((one, other) => one - other);
    assert.equal(figures.latency_ms!.min, latencies[0]);
    assert.equal(figures.latency_ms!.p50, latencies[1]);
    assert.equal(figures.latency_ms!.max, latencies[3]);
    const added = results.map(({ attempts }) => attempts.at(-1)!.start_ms);
    assert.equal(figures.added_latency_ms, added.reduce((sum, ms) => sum + ms) / 4);
    assert.deepEqual(figures.cost_usd, { total: null, wasted: 0 });
  });

  test('without a prompt are null or zero', () => {
    const figures = new Tally(chainOf(1)).figures();
    assert.equal(figures.success_rate, null);
    assert.equal(figures.latency_ms, null);
    assert.deepEqual(figures.cost_usd, { total: null, wasted: null });
  });

  test('use percentiles by nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
    assert.deepEqual(
      [0.5, 0.9, 0.95, 0.99].map((share) => percentile(hundred, share)),
      [50, 90, 95, 99],
    );
    assert.equal(percentile([7], 0.99), 7);
  });
});
