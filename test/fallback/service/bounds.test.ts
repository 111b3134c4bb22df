import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import type { RuleRequest } from '../../../src/fallback/model/chain.ts';
import type { TestRequest, TestResult } from '../../../src/fallback/model/test.ts';
import { simulation } from '../../../src/fallback/providers/simulate.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { planOf } from '../../../src/fallback/rules/plan.ts';
import { runTest } from '../../../src/fallback/service/runs.ts';
import { createTestService } from '../../../src/fallback/service/tests.ts';
import { openStore } from '../../../src/fallback/store/store.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { hanging, startProvider } from '../../support/providers.ts';
import { TestClock } from '../../support/service.ts';
import { inMemory } from '../../support/store.ts';
import { testServiceParts } from '../../support/test-service.ts';

const clock = new TestClock().read;

/** Two rules with the most retries: with 50 providers a prompt makes up to 1,050 calls. */
const retrying = (['rate_limit', 'server_error'] as const).map(
  (condition): RuleRequest => ({ condition, action: 'retry', max_retries: 10, wait_ms: 0, max_wait_ms: 0 }),
);

/** The largest chain and plan that requests allow: every provider uses up the retries of both rules. */
function largest(nameOf: (index: number) => string = (index) => `provider-${index}`, model_id = 'm') {
  const names = Array.from({ length: 50 }, (_, index) => nameOf(index));
  const chain = {
    name: 'largest',
    providers: names.map((name) => ({ name, model_id, api_base: 'http://127.0.0.1:1/v1' })),
    fallback_rules: retrying,
  };
  const faults = names.flatMap((provider) => [
    { provider, condition: 'rate_limit' as const, times: 10 },
    { provider, condition: 'server_error' as const },
  ]);
  return { chain, faults };
}

/** A test service in memory. It may call providers on this machine. */
async function opened(t: TestContext) {
  const { url, drop } = await inMemory.open();
  const store = await openStore({ databaseUrl: url, clock });
  const parts = testServiceParts(store);
  const tests = createTestService(parts);
  t.after(async () => {
    await tests.stop();
    await store.close();
    await drop();
  });
  return { tests, chains: parts.chains };
}

describe('A test', () => {
  test('that could make more than 100,000 calls is refused in every mode, with the figures and the most prompts that it can have [F27]', async (t) => {
    const { tests, chains } = await opened(t);
    const { chain, faults } = largest();
    const { id } = await chains.create(chain);
    const refused = (error: unknown) => {
      assert.ok(error instanceof ServiceError);
      assert.deepEqual([error.code, error.field], ['VALIDATION_ERROR', 'prompt_count']);
      assert.equal(
        error.message,
        'prompt_count 1000 allows up to 1050000 calls, 1050 for each prompt, and a test may make at most 100000; with this chain prompt_count can be at most 95.',
      );
      return true;
    };
    for (const request of [{ faults }, { mode: 'drill' as const, faults }, { mode: 'live' as const }]) {
      await assert.rejects(tests.start(id, { ...request, prompt_count: 1000 }), refused);
      await assert.rejects(tests.plan(id, { ...request, prompt_count: 1000 }, ''), refused);
    }
    const plan = await tests.plan(id, { mode: 'drill', faults, prompt_count: 95 }, '');
    assert.deepEqual(plan, { mode: 'drill', preset: null, prompt_count: 95, max_calls: 99_750, max_calls_per_prompt: 1050 });
  });

  test('shows the first 100 calls of a prompt and counts the others; its figures include all of them [F27]', async (t) => {
    const { tests, chains } = await opened(t);
    const { chain, faults } = largest();
    const { id } = await chains.create(chain);
    const result = JSON.parse(await (await tests.start(id, { faults, prompt_count: 2, seed: 1 })).ended) as TestResult;
    assert.deepEqual([result.status, result.attempts_total, result.retry_count], ['completed', 2100, 2000]);
    assert.deepEqual(
      result.results.map(({ attempts, attempts_omitted, retries_used }) => [attempts.length, attempts_omitted, retries_used]),
      [
        [100, 950, 1000],
        [100, 950, 1000],
      ],
    );
    assert.deepEqual(
      result.rules.map(({ hits }) => hits),
      [1000, 1100],
    );
    assert.deepEqual(result.providers.at(-1), { name: 'provider-49', attempts: 42, successes: 0, failures: 42, served: 0 });
  });

  test('shows calls for at most 16 MiB of its prompts, however long their names are [F27]', async (t) => {
    const { tests, chains } = await opened(t);
    const { chain, faults } = largest((index) => `${index}${'\u{1f600}'.repeat(250)}`, '\u{1f600}'.repeat(256));
    const { id } = await chains.create(chain);
    const text = await (await tests.start(id, { faults, prompt_count: 95, seed: 1 })).ended;
    const bytes = Buffer.byteLength(text);
    assert.ok(bytes > 16 * 2 ** 20 && bytes < 18 * 2 ** 20, `${bytes} bytes`);
    const { results, attempts_total } = JSON.parse(text) as TestResult;
    assert.equal(
      results.reduce((sum, { attempts, attempts_omitted = 0 }) => sum + attempts.length + attempts_omitted, 0),
      attempts_total,
    );
    assert.deepEqual([results[0]!.attempts.length, results[94]!.attempts.length, results[94]!.attempts_omitted], [100, 0, 1050]);
  });

  test('yields to other work after each prompt that simulates more than 500 calls', async () => {
    const { chain, faults } = largest();
    const engine = createEngine(define(chain));
    const request: TestRequest = { faults, prompt_count: 20 };
    let turn = 0;
    let isDone = false;
    const counting = (async () => {
      for (; !isDone; turn += 1) await new Promise(setImmediate);
    })();
    const callsOfTurns = new Map<number, number>();
    await runTest({
      engine,
      plan: planOf(engine, request),
      transport: simulation,
      count: 20,
      prompts: ['p'],
      seed: 1,
      deadlineMs: null,
      signal: new AbortController().signal,
      callSignal: new AbortController().signal,
      onDone: ({ result }) => void callsOfTurns.set(turn, (callsOfTurns.get(turn) ?? 0) + result.attempts.length),
    });
    isDone = true;
    await counting;
    assert.deepEqual([...new Set(callsOfTurns.values())], [1050]);
  });

  test('waits only while the chains and prompts of its caller and of all callers fit into memory; otherwise it gets 503 [F27]', async (t) => {
    const { tests, chains } = await opened(t);
    const provider = await startProvider(t, hanging);
    const { id } = await chains.create({ name: 'small', providers: [{ name: 'a', model_id: 'm', api_base: provider.base }] });
    const request: TestRequest = { mode: 'live', prompt_count: 1, prompts: Array.from({ length: 31 }, () => 'x'.repeat(32_768)) };
    const held = [];
    for (let index = 0; index < 16; index += 1) held.push(await tests.start(id, request, 'a'));
    await assert.rejects(tests.start(id, request, 'a'), { code: 'SERVICE_UNAVAILABLE', message: /as many large tests as it can/ });
    assert.deepEqual(tests.counts(), { running: 3, waiting: 13 });
    const other = await tests.start(id, request, 'b');
    await tests.cancel(held.pop()!.id);
    const later = await tests.start(id, request, 'a');
    for (const started of [...held, other, later]) await tests.cancel(started.id);
  });
});
