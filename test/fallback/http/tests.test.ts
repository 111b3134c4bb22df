import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { TestResult } from '../../../src/fallback/model/test.ts';
import { chainRequest, createChain, shareFallback, startFallback, type TestFallback } from '../../support/fallback.ts';
import { hanging, startProvider } from '../../support/providers.ts';
import { stores } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

/** Runs a test to its end. */
async function run(service: TestFallback, chainId: string, body: object = {}): Promise<TestResult> {
  const answer = await service.call('POST', `/chains/${chainId}/test`, { body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

/** Reads a result until it has ended, at first without its prompts. */
async function ended(service: TestFallback, id: string): Promise<TestResult> {
  await until(async () => (await service.call('GET', `/test-results/${id}?prompts=false`)).body.status !== 'running');
  const { status, body } = await service.call('GET', `/test-results/${id}`);
  assert.equal(status, 200);
  return body;
}

for (const store of stores) {
  describe(`Tests of chains on ${store.name}`, () => {
    test('201: a test answers with its finished result, which is found at Location [F26, F41]', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const answer = await service.call('POST', `/chains/${chain.id}/test`, { body: { prompt_count: 6, seed: 7 } });
      assert.equal(answer.status, 201);
      assert.equal(answer.headers.location, `/test-results/${answer.body.id}`);
      const { status, verdict, mode, preset, seed, prompt_count, success_count, chain_version, chain_id, progress } = answer.body;
      assert.deepEqual(
        { status, verdict, mode, preset, seed, prompt_count, success_count, chain_version, chain_id, progress },
        {
          status: 'completed',
          verdict: 'pass',
          mode: 'simulate',
          preset: 'coverage',
          seed: 7,
          prompt_count: 6,
          success_count: 6,
          chain_version: 1,
          chain_id: chain.id,
          progress: { done: 6, total: 6 },
        },
      );
      const kept = await service.call('GET', `/test-results/${answer.body.id}`);
      assert.equal(kept.status, 200);
      assert.equal(kept.text, answer.text);
    });

    test('a timeline is in the result second by second, and is stored with it [F146]', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service, { cooldown: { allowed_fails: 0, window_ms: 5000, seconds: 5 } });
      const outages = [{ provider: chain.providers[0].name, from_s: 2, to_s: 4, condition: 'server_error' }];
      const body = { seed: 7, timeline: { rate_per_minute: 60, seconds: 12, outages } };
      const result = await run(service, chain.id, body);
      const { preset, prompt_count, verdict, timeline } = result;
      assert.deepEqual([preset, prompt_count, verdict, timeline?.seconds.length, timeline?.first_back_s], [null, 12, 'pass', 12, 8]);
      assert.deepEqual((await ended(service, result.id)).timeline, timeline);
      const refused = await service.call('POST', `/chains/${chain.id}/test`, { body: { preset: 'flap', ...body } });
      assert.equal(refused.status, 400);
      assert.match(refused.text, /preset cannot be given together with timeline/);
    });

    test('without a body it has a prompt for each scene, passes, and has a seed that reproduces the result', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const answer = await service.call('POST', `/chains/${chain.id}/test`);
      assert.equal(answer.status, 201);
      const scenes = new Set(answer.body.results.map(({ scenario }: { scenario: string }) => scenario));
      assert.deepEqual([answer.body.verdict, scenes.size], ['pass', answer.body.results.length]);
      const again = await run(service, chain.id, { seed: answer.body.seed });
      const { id, started_at, completed_at, duration_ms, ...figures } = answer.body;
      assert.deepEqual({ ...again, id, started_at, completed_at, duration_ms }, { id, started_at, completed_at, duration_ms, ...figures });
    });

    test('200 with dry_run=true: the most calls that it can make; nothing is started [F27]', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const answer = await service.call('POST', `/chains/${chain.id}/test?dry_run=true`, { body: { prompts: ['one', 'two', 'three'] } });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, { mode: 'simulate', preset: 'coverage', prompt_count: 3, max_calls: 24, max_calls_per_prompt: 8 });
      assert.deepEqual((await service.call('GET', `/test-results/${chain.id}`)).body, []);
      const refused = await service.call('POST', `/chains/${chain.id}/test?dry_run=true`, { body: { mode: 'live' } });
      assert.deepEqual([refused.status, refused.body.field], [403, 'mode']);
    });

    test('with prompts has as many as there are, unless prompt_count is given [F26]', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const countOf = async (body: object) => (await run(service, chain.id, body)).prompt_count;
      const prompts = ['one', 'two', 'three'];
      assert.deepEqual([await countOf({ prompts }), await countOf({ prompts, prompt_count: 4 })], [3, 4]);
    });

    test('202 with Prefer: respond-async; the result can be read while it runs, and is complete at the end [F26]', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const answer = await service.call('POST', `/chains/${chain.id}/test`, {
        body: { prompt_count: 1000 },
        headers: { prefer: 'wait=5, respond-async' },
      });
      assert.equal(answer.status, 202);
      assert.equal(answer.headers['preference-applied'], 'respond-async');
      assert.equal(answer.body.status, 'running');
      assert.equal(answer.body.verdict, null);
      const partial = await service.call('GET', `/test-results/${answer.body.id}`);
      assert.equal(partial.status, 200);
      assert.equal(partial.body.results.length, partial.body.progress.done);
      const result = await ended(service, answer.body.id);
      assert.equal(result.status, 'completed');
      assert.deepEqual(
        result.results.map(({ index }) => index),
        Array.from({ length: 1000 }, (_, index) => index),
      );
    });

    test("a chain's id gives its results, newest first, in pages; they outlive changes and the chain [F45, F46]", async () => {
      const service = await shareFallback(store);
      const { clock } = service;
      const chain = await createChain(service);
      assert.deepEqual((await service.call('GET', `/test-results/${chain.id}`)).body, []);
      const ids: string[] = [];
      for (let index = 0; index < 3; index += 1) {
        clock.turn(1);
        ids.unshift((await run(service, chain.id)).id);
      }
      await service.call('PATCH', `/chains/${chain.id}`, { body: { name: 'renamed' } });
      await service.call('DELETE', `/chains/${chain.id}`);
      const all = await service.call('GET', `/test-results/${chain.id}`);
      assert.equal(all.status, 200);
      assert.deepEqual(
        all.body.map(({ id }: TestResult) => id),
        ids,
      );
      assert.equal(all.body[0].chain_name, 'production-chain');
      const page = await service.call('GET', `/test-results/${chain.id}?limit=1&offset=1`);
      assert.deepEqual(
        page.body.map(({ id }: TestResult) => id),
        [ids[1]],
      );
      assert.equal(page.headers['x-total-count'], '3');
      assert.equal(page.headers.link, `</test-results/${chain.id}?limit=1&offset=2>; rel="next"`);
      assert.equal(all.headers.link, undefined);
      const short = await service.call('GET', `/test-results/${chain.id}?prompts=false&limit=2`);
      assert.deepEqual(
        short.body,
        all.body.slice(0, 2).map((result: TestResult) => ({ ...result, results: [] })),
      );
      assert.equal(short.headers.link, `</test-results/${chain.id}?limit=2&offset=2&prompts=false>; rel="next"`);
      assert.deepEqual((await service.call('GET', `/test-results/${ids[0]}?prompts=false`)).body, short.body[0]);
      assert.equal((await service.call('GET', `/test-results/${ids[2]}`)).status, 200);
    });

    test("a chain's id gives its 20 newest results by default, with the total [F45]", async () => {
      const service = await shareFallback(store);
      const { clock } = service;
      const chain = await createChain(service);
      const ids: string[] = [];
      for (let index = 0; index < 21; index += 1) {
        clock.turn(1);
        ids.unshift((await run(service, chain.id, { prompt_count: 1 })).id);
      }
      const page = await service.call('GET', `/test-results/${chain.id}`);
      assert.deepEqual(
        page.body.map(({ id }: TestResult) => id),
        ids.slice(0, 20),
      );
      assert.equal(page.headers['x-total-count'], '21');
      assert.equal((await service.call('GET', `/test-results/${chain.id}?limit=201`)).status, 400);
    });

    test('a running test is cancelled by DELETE and keeps its finished prompts; an ended one gives 409 [F50]', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const { body } = await service.call('POST', `/chains/${chain.id}/test`, {
        body: { prompt_count: 1000 },
        headers: { prefer: 'respond-async' },
      });
      const cancelled = await service.call('DELETE', `/test-results/${body.id}`);
      assert.equal(cancelled.status, 200);
      assert.equal(cancelled.body.status, 'cancelled');
      assert.equal(cancelled.body.verdict, null);
      assert.ok(cancelled.body.progress.done < 1000);
      assert.equal(cancelled.body.results.length, cancelled.body.progress.done);
      assert.equal((await service.call('GET', `/test-results/${body.id}`)).text, cancelled.text);
      const again = await service.call('DELETE', `/test-results/${body.id}`);
      assert.equal(again.status, 409);
      assert.equal(again.body.code, 'CONFLICT');
    });

    test('a test uses its snapshot when its chain is changed or deleted meanwhile', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const { body } = await service.call('POST', `/chains/${chain.id}/test`, {
        body: { prompt_count: 1000 },
        headers: { prefer: 'respond-async' },
      });
      await service.call('PATCH', `/chains/${chain.id}`, { body: { providers: [{ name: 'other', model_id: 'm' }], fallback_rules: [] } });
      await service.call('DELETE', `/chains/${chain.id}`);
      const result = await ended(service, body.id);
      assert.equal(result.status, 'completed');
      assert.deepEqual(
        result.chain.providers.map(({ name }) => name),
        ['gpt-4o', 'claude'],
      );
      assert.ok(result.results.every(({ attempts }) => attempts.every(({ provider }) => provider !== 'other')));
    });

    test('of a hundred concurrent tests a few run, the others wait, and the API answers meanwhile', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const asked = Array.from({ length: 100 }, () => service.call('POST', `/chains/${chain.id}/test`, { body: { prompt_count: 20 } }));
      const metrics = await service.call('GET', '/metrics');
      assert.equal(metrics.status, 200);
      const gauge = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(metrics.text)![1]);
      assert.ok(gauge('fallback_tests_running') <= 4);
      assert.equal((await service.call('GET', `/chains/${chain.id}`)).status, 200);
      for (const answer of await Promise.all(asked)) {
        assert.equal(answer.status, 201);
        assert.equal(answer.body.status, 'completed');
      }
      assert.equal((await service.call('GET', `/test-results/${chain.id}?limit=200`)).body.length, 100);
    });

    test('a stop of the service cancels running tests and answers waiting callers', async (t) => {
      const service = await startFallback(t, { store });
      const chain = await createChain(service);
      // More than run at once, so that some of them have not ended.
      const ask = () => service.call('POST', `/chains/${chain.id}/test`, { body: { prompt_count: 1000 } });
      const asked = Promise.all(Array.from({ length: 40 }, ask));
      await until(async () => (await service.call('GET', `/test-results/${chain.id}?prompts=false`)).body.length > 0);
      await service.fallback.stop();
      const answers = await asked;
      assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201]);
      assert.ok(answers.some(({ body }) => body.status === 'cancelled'));
      const said = service.logs.map((line) => JSON.parse(line).msg).filter((msg) => msg === 'stopping' || msg === 'stopped');
      assert.deepEqual(said, ['stopping', 'stopped']);
    });

    test('the summary describes the chain in sentences, with its latest test [F25]', async () => {
      const service = await shareFallback(store);
      const chain = await createChain(service);
      const before = await service.call('GET', `/chains/${chain.id}/summary`);
      assert.equal(before.status, 200);
      assert.equal(before.body.last_test, null);
      assert.match(
        before.body.text,
        /^production-chain asks gpt-4o first and falls back to claude\. On rate_limit it retries 3 times, then fails over\./,
      );
      assert.deepEqual(before.body.conditions.with_rule, ['rate_limit', 'timeout']);
      assert.deepEqual(before.body.lossless_formats, ['langchain', 'ai-sdk', 'json', 'yaml']);
      const { primary, last_resort, provider_count, rule_count, worst_case } = before.body;
      assert.deepEqual(
        { primary, last_resort, provider_count, rule_count, worst_case },
        {
          primary: 'gpt-4o',
          last_resort: 'claude',
          provider_count: 2,
          rule_count: 2,
          worst_case: { attempts: 8, latency_ms: 300_000, first_token_ms: 300_000 },
        },
      );
      const { id } = await run(service, chain.id);
      const after = await service.call('GET', `/chains/${chain.id}/summary`);
      assert.equal(after.body.last_test.id, id);
      assert.equal(after.body.last_test.verdict, 'pass');
    });

    test('the summary and the routing are those of the current revision [F100]', async () => {
      const service = await shareFallback(store);
      const { id } = await createChain(service);
      const read = async () => {
        const [summary, routing] = await Promise.all(['summary', 'routing'].map((path) => service.call('GET', `/chains/${id}/${path}`)));
        return [summary!.body.worst_case.attempts, routing!.body.worst_case.attempts];
      };
      assert.deepEqual(await read(), [8, 8]);
      assert.deepEqual(await read(), [8, 8]);
      await service.call('PATCH', `/chains/${id}`, { body: { fallback_rules: [] } });
      assert.deepEqual(await read(), [2, 2]);
    });
  });
}

describe('The events of a test', () => {
  test('report its progress and its end; only the end for an ended test [F57]', async (t) => {
    const service = await startFallback(t);
    const chain = await createChain(service);
    const { body } = await service.call('POST', `/chains/${chain.id}/test`, {
      body: { prompt_count: 1000 },
      headers: { prefer: 'respond-async' },
    });
    const address = await service.fallback.start();
    const follow = async () => {
      const answer = await fetch(`${address}/test-results/${body.id}/events`);
      assert.equal(answer.status, 200);
      assert.match(answer.headers.get('content-type')!, /^text\/event-stream/);
      const events = (await answer.text()).split('\n\n').filter((event) => event.startsWith('event: '));
      return events.map((event) => ({
        name: event.slice(7, event.indexOf('\n')),
        data: JSON.parse(event.slice(event.indexOf('data: ') + 6)),
      }));
    };
    const events = await follow();
    assert.deepEqual([...new Set(events.slice(0, -1).map(({ name }) => name))], ['progress']);
    const { name, data } = events.at(-1)!;
    assert.equal(name, 'end');
    assert.deepEqual([data.id, data.status, data.progress, data.success_count], [body.id, 'completed', { done: 1000, total: 1000 }, 1000]);
    const again = await follow();
    assert.deepEqual(again, [{ name: 'end', data }]);
    assert.deepEqual(
      service.logs.map((line) => JSON.parse(line)).filter(({ level }) => level >= 50),
      [],
    );
  });

  test('a caller may follow a hundred tests at once, and gets 429 beyond that [F55]', async (t) => {
    const environment = { SERVICE_LIVE_ALLOW: '127.0.0.1', SERVICE_API_KEYS: 'a:key-of-a,b:key-of-b' };
    const service = await startFallback(t, { flags: { allowLive: 'true' }, environment });
    const provider = await startProvider(t, hanging);
    const headers = { 'x-api-key': 'key-of-a' };
    const providers = [{ name: 'a', model_id: 'm', api_base: provider.base }];
    const chain = await service.call('POST', '/chains', { body: { name: 'hangs', providers }, headers });
    const { body } = await service.call('POST', `/chains/${chain.body.id}/test`, {
      body: { mode: 'live' },
      headers: { ...headers, prefer: 'respond-async' },
    });
    const path = `/test-results/${body.id}/events`;
    const address = await service.fallback.start();
    const open = (key: string) => fetch(address + path, { headers: { 'x-api-key': key } });
    const streams = await Promise.all(Array.from({ length: 100 }, () => open('key-of-a')));
    assert.deepEqual([...new Set(streams.map(({ status }) => status))], [200]);
    const refused = await service.call('GET', path, { headers });
    assert.deepEqual([refused.status, refused.body.code, refused.body.limit?.name], [429, 'RATE_LIMITED', 'connections']);
    const other = await open('key-of-b');
    assert.equal(other.status, 200);
    await service.call('DELETE', `/test-results/${body.id}`, { headers });
    await Promise.all([...streams, other].map((stream) => stream.text()));
    const again = await open('key-of-a');
    assert.match(await again.text(), /^event: end\n/m);
  });
});

test('400: drill and live refuse a chain with a kind that the service cannot call, before any call; simulate tests it', async (t) => {
  const service = await startFallback(t, { flags: { allowLive: 'true' }, environment: { SERVICE_LIVE_ALLOW: '127.0.0.1' } });
  const provider = await startProvider(t);
  const kinds = ['azure', 'azure_ai', 'bedrock', 'sagemaker', 'sagemaker_chat', 'vertex_ai', 'watsonx'];
  const providers = [
    { name: 'callable', model_id: 'm', api_base: provider.base },
    ...kinds.map((kind) => ({ name: `on ${kind}`, model_id: 'm', provider: kind })),
  ];
  const chain = await createChain(service, { name: 'clouds', providers, fallback_rules: [] });
  for (const mode of ['drill', 'live']) {
    for (const query of ['', '?dry_run=true']) {
      const { status, body } = await service.call('POST', `/chains/${chain.id}/test${query}`, { body: { mode } });
      assert.deepEqual(
        [status, body.errors],
        [
          400,
          kinds.map((kind, index) => ({
            field: `providers.${index + 1}.provider`,
            detail: `on ${kind} is of kind ${kind}, which this service simulates and exports, but can't call.`,
          })),
        ],
      );
    }
  }
  assert.equal(provider.seen.length, 0);
  const simulated = await service.call('POST', `/chains/${chain.id}/test`, { body: { mode: 'simulate' } });
  assert.equal(simulated.status, 201);
});

test('400: drill and live refuse a provider whose address is in a variable, before any call, whatever the variable says [F105]', async (t) => {
  const provider = await startProvider(t);
  const environment = { SERVICE_LIVE_ALLOW: '127.0.0.1', PRIVATE_BASE: provider.base };
  const service = await startFallback(t, { flags: { allowLive: 'true' }, environment });
  const hidden = { name: 'private', model_id: 'm', provider: 'openai', params: { api_base: 'os.environ/PRIVATE_BASE' } };
  const providers = [{ name: 'callable', model_id: 'm', api_base: provider.base }, hidden];
  const chain = await createChain(service, { name: 'variables', providers, fallback_rules: [] });
  for (const mode of ['drill', 'live']) {
    const { status, body } = await service.call('POST', `/chains/${chain.id}/test`, { body: { mode } });
    const detail = 'private cannot be called, because its address is in a variable of the exported program.';
    assert.deepEqual([status, body.field, body.detail], [400, 'providers.1.api_base', detail]);
  }
  assert.equal(provider.seen.length, 0);
});

// What these requests are answered does not depend on the store.
describe('Tests of chains', () => {
  test('400 with all faults; nothing is run [F26]', async () => {
    const service = await shareFallback();
    const chain = await createChain(service);
    const cases: [object, string[]][] = [
      [{ prompt_count: 0 }, ['prompt_count']],
      [{ prompt_count: 1001 }, ['prompt_count']],
      [{ prompt_count: '5' }, ['prompt_count']],
      [{ mode: 'real', preset: 'chaos', seed: -1 }, ['mode', 'preset', 'seed']],
      [{ faults: [{ provider: 'nobody', condition: 'timeout' }] }, ['faults.0.provider']],
      [{ faults: [{ provider: 'gpt-4o', condition: 'bad_weather' }] }, ['faults.0.condition']],
      [{ prompts: [] }, ['prompts']],
      [{ promptcount: 3 }, ['promptcount']],
    ];
    for (const [body, fields] of cases) {
      const answer = await service.call('POST', `/chains/${chain.id}/test`, { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.deepEqual((answer.body.errors ?? [answer.body]).map(({ field }: { field: string }) => field).sort(), fields);
    }
    assert.deepEqual((await service.call('GET', `/test-results/${chain.id}`)).body, []);
  });

  test('drill and live are refused with 403 unless the service was started with --allow-live [F31, F33]', async () => {
    const service = await shareFallback();
    const chain = await createChain(service);
    for (const mode of ['drill', 'live']) {
      const answer = await service.call('POST', `/chains/${chain.id}/test`, { body: { mode } });
      assert.equal(answer.status, 403);
      assert.equal(answer.body.field, 'mode');
      assert.match(answer.body.detail, /--allow-live/);
    }
  });

  test('routing answers what happens if a provider fails with a condition, and refuses an incomplete question [F11, F23]', async () => {
    const service = await shareFallback();
    const chain = await createChain(service, chainRequest());
    const plain = await service.call('GET', `/chains/${chain.id}/routing`);
    assert.equal(plain.status, 200);
    assert.deepEqual(plain.body.order, ['gpt-4o', 'claude']);
    assert.equal(plain.body.providers[0].decisions.length, 14);
    assert.equal(plain.body.path, null);
    const asked = await service.call('GET', `/chains/${chain.id}/routing?provider=gpt-4o&condition=rate_limit`);
    assert.deepEqual(
      asked.body.path.map(({ provider, action }: { provider: string; action: string }) => [provider, action]),
      [
        ['gpt-4o', 'retry'],
        ['gpt-4o', 'retry'],
        ['gpt-4o', 'retry'],
        ['gpt-4o', 'failover'],
        ['claude', 'serve'],
      ],
    );
    for (const [query, field] of [
      ['provider=gpt-4o', 'condition'],
      ['condition=timeout', 'provider'],
      ['provider=nobody&condition=timeout', 'provider'],
      ['provider=gpt-4o&condition=weather', 'condition'],
      ['provider=gpt-4o&condition=timeout&status_code=429', 'status_code'],
    ]) {
      const answer = await service.call('GET', `/chains/${chain.id}/routing?${query}`);
      assert.equal(answer.status, 400, query!);
      assert.equal(answer.body.field, field);
    }
  });
});
