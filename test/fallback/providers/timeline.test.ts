import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { ChainRequest } from '../../../src/fallback/model/chain.ts';
import type { Outage, TimelineRequest } from '../../../src/fallback/model/timeline.ts';
import { simulation } from '../../../src/fallback/providers/simulate.ts';
import { TimelineRun } from '../../../src/fallback/providers/timeline.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { planOf } from '../../../src/fallback/rules/plan.ts';
import { promptsOf } from '../../../src/fallback/rules/timeline.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { requestOf } from '../rules/chains.ts';

const outage = (more: Partial<Outage> = {}): Outage => ({ provider: 'a', from_s: 10, to_s: 70, condition: 'server_error', ...more });
const timelineWith = (outages: Outage[], more: Partial<TimelineRequest> = {}): TimelineRequest => ({
  rate_per_minute: 60,
  seconds: 120,
  outages,
  ...more,
});
const halfMinute = { allowed_fails: 0, window_ms: 30_000, seconds: 30 };

/** The prompts of a timeline and what it says. */
async function simulated(chain: Partial<ChainRequest>, timeline: TimelineRequest, providers = 2, signal = new AbortController().signal) {
  const engine = createEngine(define({ ...requestOf(providers, [], { input_cost_per_1m: 1, output_cost_per_1m: 1 }), ...chain }));
  const scene = planOf(engine, { timeline })[0]!;
  const run = new TimelineRun(timeline);
  assert.equal(run.timeline, null);
  const parts = { engine, transport: simulation, scene, prompt: '', seed: 7, deadlineMs: null, signal, callSignal: signal };
  const prompts = [];
  for (let index = 0; index < promptsOf(timeline); index += 1) prompts.push((await run.play({ ...parts, index }, ['hello'])).result);
  return { prompts, timeline: run.timeline! };
}

/** The seconds in which a provider failed. */
const failedIn = ({ timeline }: Awaited<ReturnType<typeof simulated>>, name = 'a') =>
  timeline.seconds.flatMap(({ second, calls }) =>
    calls.some(({ provider, condition }) => provider === name && condition !== null) ? [second] : [],
  );

describe('A simulated timeline', () => {
  test('leaves out a provider after its failures, tries it when it is back, and says when it answers again [F146]', async () => {
    const found = await simulated({ cooldown: halfMinute }, timelineWith([outage()]));
    assert.equal(found.prompts.length, 120);
    assert.deepEqual(failedIn(found), [10, 41]);
    const { seconds, only_last, first_back_s, cost } = found.timeline;
    assert.deepEqual(
      seconds.map(({ second }) => second),
      Array.from({ length: 120 }, (_, second) => second),
    );
    assert.deepEqual(seconds[10]!.calls, [
      { provider: 'a', condition: 'server_error' },
      { provider: 'b', condition: null },
    ]);
    assert.deepEqual(
      [5, 10, 20].map((second) => seconds[second]!.slow),
      [0, 1, 0],
    );
    const { out, calls } = seconds[20]!;
    assert.deepEqual([calls, out.map(({ provider }) => provider)], [[{ provider: 'b', condition: null }], ['a']]);
    assert.ok(out[0]!.until_s > 40 && out[0]!.until_s < 41);
    assert.equal(only_last.length, 1);
    assert.equal(only_last[0]!.from_s, 10);
    assert.ok(only_last[0]!.to_s > 71 && only_last[0]!.to_s < 72);
    assert.equal(first_back_s, 72);
    // Every prompt is answered once, for 400 tokens.
    assert.equal(cost, 0.048);
    assert.ok(found.prompts.every(({ success }) => success));
  });

  test('calls a provider without a cool-down each time', async () => {
    const found = await simulated({}, timelineWith([outage({ from_s: 2, to_s: 5 })], { seconds: 10 }));
    assert.deepEqual(failedIn(found), [2, 3, 4]);
    assert.deepEqual([found.timeline.only_last, found.timeline.first_back_s], [[{ from_s: 2, to_s: 5 }], 5]);
  });

  test('loses prompts without a call while all providers are left out [F142]', async () => {
    const { prompts, timeline } = await simulated(
      { cooldown: { ...halfMinute, seconds: 5 } },
      timelineWith([outage({ from_s: 1, to_s: 2 }), outage({ provider: 'b', from_s: 1, to_s: 2 })], { seconds: 10 }),
    );
    assert.deepEqual(
      timeline.seconds.map(({ failed, calls }) => `${failed} ${calls.length}`),
      ['0 1', '1 2', '1 0', '1 0', '1 0', '1 0', '1 0', '0 1', '0 1', '0 1'],
    );
    assert.deepEqual([prompts[2]!.error, prompts[2]!.attempts.length, prompts[2]!.served_by], ['rate_limit', 0, null]);
    assert.equal(timeline.first_back_s, 7);
  });

  test('lets Retry-After of an outage say how long, and ends retries that begin while others fail [F139, F142]', async () => {
    const found = await simulated(
      { cooldown: halfMinute, fallback_rules: [{ condition: 'rate_limit', action: 'retry', max_retries: 3, wait_ms: 100 }] },
      timelineWith([outage({ from_s: 1, to_s: 20, condition: 'rate_limit', retry_after_ms: 4000 })], { seconds: 20 }),
    );
    // Each time one call: the first failure leaves it out, so that it is not retried.
    assert.deepEqual(failedIn(found), [1, 6, 11, 16]);
    assert.equal(found.timeline.seconds[1]!.calls.length, 2);
    assert.equal(found.timeline.first_back_s, null);
  });

  test('knows of failures when they have happened: prompts that overlap call a provider that has not failed yet [F146]', async () => {
    const found = await simulated(
      { cooldown: halfMinute, providers: requestOf(2, [], { timeout_ms: 2500 }).providers },
      timelineWith([outage({ from_s: 0, to_s: 10, condition: 'timeout' })], { seconds: 6 }),
    );
    assert.deepEqual(failedIn(found), [0, 1, 2]);
  });

  test('is the same for the same seed, and has nothing to say of one provider alone', async () => {
    const line = timelineWith([outage()], { seconds: 30 });
    const [one, other] = [await simulated({ cooldown: halfMinute }, line, 1), await simulated({ cooldown: halfMinute }, line, 1)];
    assert.deepEqual(one.timeline, other.timeline);
    assert.deepEqual(one.timeline.only_last, []);
  });

  test('ends a simulation of many prompts when it is cancelled', async () => {
    await assert.rejects(simulated({}, timelineWith([], { rate_per_minute: 600, seconds: 60 }), 2, AbortSignal.abort()), {
      name: 'AbortError',
    });
  });

  test('has bounds, and faults that name their fields [F147]', () => {
    const engine = createEngine(define(requestOf(2)));
    const fieldsOf = (request: Parameters<typeof planOf>[1]) => {
      try {
        planOf(engine, request);
      } catch (error) {
        assert.ok(error instanceof ServiceError);
        return error.faults.map(({ field }) => field);
      }
      return [];
    };
    assert.deepEqual(fieldsOf({ timeline: timelineWith([], { rate_per_minute: 1000, seconds: 60 }) }), []);
    assert.deepEqual(fieldsOf({ timeline: timelineWith([], { rate_per_minute: 1001, seconds: 60 }) }), ['timeline.rate_per_minute']);
    const wrong = [
      outage({ provider: 'z' }),
      outage({ to_s: 10 }),
      outage({ from_s: 200, to_s: 300 }),
      outage({ condition: 'first_token_timeout' }),
    ];
    assert.deepEqual(fieldsOf({ timeline: timelineWith(wrong) }), [
      'timeline.outages.0.provider',
      'timeline.outages.1.to_s',
      'timeline.outages.2.from_s',
      'timeline.outages.3.condition',
    ]);
    assert.deepEqual(fieldsOf({ timeline: timelineWith([]), preset: 'flap', prompt_count: 3 }), ['preset', 'prompt_count']);
    for (const mode of ['drill', 'live'] as const) assert.deepEqual(fieldsOf({ mode, timeline: timelineWith([]) }), ['timeline']);
  });
});
