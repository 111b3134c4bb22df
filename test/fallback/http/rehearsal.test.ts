import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, describe, type TestContext, test } from 'node:test';

import type { Finding } from '../../../src/fallback/model/finding.ts';
import type { TestResult } from '../../../src/fallback/model/test.ts';
import { createChain, shareFallback, startFallback, type TestFallback } from '../../support/fallback.ts';
import { type Flaw, startGateway, type TestGateway } from '../../support/gateway.ts';
import { startProvider, status } from '../../support/providers.ts';
import { stores } from '../../support/stores.ts';

const rules = [
  { condition: 'server_error', action: 'retry', max_retries: 2, wait_ms: 0 },
  { condition: 'rate_limit', action: 'retry', max_retries: 1, wait_ms: 0 },
  // The gateway of the tests sees only statuses.
  { condition: 'quota_exceeded', action: 'retry', max_retries: 1, wait_ms: 0, status_codes: [429] },
  { condition: 'context_length', action: 'fail', status_codes: [400] },
];
const providers = [
  { name: 'gpt-4o', model_id: 'openai/gpt-4o', timeout_ms: 3_000 },
  { name: 'claude', model_id: 'anthropic/claude-sonnet-4-5', timeout_ms: 3_000 },
  { name: 'Llama 3/70b', model_id: 'llama-3.3-70b', api_base: 'https://llm.example.com/v1', timeout_ms: 3_000 },
];

/** How long the gateway waits for parts of a stream, in milliseconds: long enough that no healthy part is late on a busy machine. */
const limitMs = 1_500;

/** The service of a suite, and its address. */
let service: TestFallback;
let origin: string;

/** Starts a service on a socket, with rehearsals allowed, for the tests of a suite. */
function startForSuite(): void {
  const stops: (() => unknown)[] = [];
  before(async () => {
    const environment = { SERVICE_LIVE_ALLOW: '127.0.0.1', GATEWAY_KEY: 'sk-gateway', SERVICE_LIVE_KEYS: 'GATEWAY_KEY@127.0.0.1' };
    service = await startFallback(
      { after: (stop) => void stops.push(stop as () => unknown) },
      { flags: { allowLive: 'true' }, environment },
    );
    origin = await service.fallback.start();
  });
  after(async () => {
    for (const stop of stops) await stop();
  });
}

async function tokenOf(id: string, on: TestFallback = service): Promise<string> {
  return (await on.call('GET', `/chains/${id}/rehearsal-token`)).body.token;
}

/** A chain, and a gateway that does what the chain says, except for its flaw. */
async function rehearsed(
  t: TestContext,
  flaw?: Flaw,
  changes: Record<string, unknown> = {},
): Promise<{ id: string; gateway: TestGateway }> {
  const { id } = await createChain(service, { name: 'rehearsed', providers, fallback_rules: rules, ...changes });
  const base = `${origin}/rehearsal/${await tokenOf(id)}`;
  const retries = new Map([...[500, 502, 503, 529].map((code) => [code, 2] as const), [429, 1]]);
  const upstreams = providers.map(({ name }) => ({
    base: `${base}/${encodeURIComponent(name)}/v1`,
    retries,
    firstTokenMs: limitMs,
    idleMs: limitMs,
    protocol: name === 'claude' ? ('anthropic' as const) : ('openai' as const),
    ...(changes.cooldown === undefined ? {} : { cooldownMs: 60_000 }),
  }));
  return { id, gateway: await startGateway(t, upstreams, flaw) };
}

async function rehearse(id: string, { url }: Pick<TestGateway, 'url'>, more: Record<string, unknown> = {}): Promise<TestResult> {
  const { gateway = {}, ...fields } = more as { gateway?: object };
  const body = { mode: 'rehearsal', gateway: { url, ...gateway }, seed: 1, ...fields };
  const answer = await service.call('POST', `/chains/${id}/test`, { body });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

const failing = (provider: string, condition: string, more = {}) => ({ provider, condition, ...more });

describe('A rehearsal', () => {
  startForSuite();

  test('of a gateway that does what the chain says agrees in every prompt, with the calls that it made [F62]', async (t) => {
    const { id, gateway } = await rehearsed(t);
    const result = await rehearse(id, gateway);
    assert.deepEqual(result.differences, []);
    assert.deepEqual(result.agreement, {
      prompts: result.prompt_count,
      agreeing: result.prompt_count,
      differing: 0,
      not_tested: 0,
      sent_again: 0,
      stray_calls: 0,
    });
    assert.equal(result.error, null);
    // The chain, and so the gateway, returns a refused request to the caller.
    assert.equal(result.verdict, 'lost_as_ruled');
    assert.ok(result.prompt_count > 4, 'as many prompts as the plan has scenes');
    for (const { agrees, expected, attempts, served_by } of result.results) {
      assert.equal(agrees, true);
      assert.deepEqual(
        attempts.map(({ provider, condition }) => ({ provider, condition })),
        expected!.attempts,
      );
      assert.equal(served_by, expected!.served_by);
    }
  });

  const flaws: readonly (readonly [Flaw, object, Record<string, unknown>])[] = [
    [
      'one retry too few',
      failing('gpt-4o', 'server_error'),
      {
        provider: 'gpt-4o',
        condition: 'server_error',
        sentence: 'gpt-4o answers 500: the chain retries 2 times and goes to claude; the gateway called gpt-4o 2 times and claude once.',
      },
    ],
    [
      'wrong order',
      failing('gpt-4o', 'auth_error'),
      {
        provider: 'gpt-4o',
        condition: 'auth_error',
        sentence: 'gpt-4o answers 401: the chain does not retry and goes to claude; the gateway called gpt-4o once and Llama 3/70b once.',
      },
    ],
    [
      'swallowed 429',
      failing('gpt-4o', 'rate_limit'),
      {
        provider: 'gpt-4o',
        condition: 'rate_limit',
        sentence:
          'gpt-4o answers 429 (rate_limit): the chain retries once and goes to claude; the gateway called gpt-4o once and answered by itself.',
      },
    ],
    [
      'second call after success',
      failing('gpt-4o', 'server_error', { times: 1 }),
      { provider: 'gpt-4o', condition: null, sentence: 'gpt-4o answers: the chain ends there; the gateway called gpt-4o 2 times.' },
    ],
    ['call after the answer', failing('gpt-4o', 'auth_error'), { provider: 'claude', condition: null }],
  ];
  const limited = { providers: providers.map((one) => ({ ...one, first_token_ms: limitMs, idle_ms: limitMs })) };
  const streamed: readonly (readonly [Flaw, Record<string, unknown>, Record<string, unknown>])[] = [
    [
      'retries after content',
      { faults: [failing('gpt-4o', 'interrupted', { times: 1 })] },
      {
        kind: 'calls',
        condition: 'interrupted',
        sentence:
          'Streamed: gpt-4o breaks off its answer: the chain does not retry and ends with an error; the gateway called gpt-4o 2 times, and gpt-4o answered.',
      },
    ],
    [
      'duplicates text',
      { preset: 'healthy' },
      { kind: 'received', condition: null, sentence: 'Streamed: gpt-4o answers: the caller got 4 parts of the text more than once.' },
    ],
    [
      'swallows an error event',
      { faults: [failing('gpt-4o', 'interrupted', { error_event: true })] },
      {
        kind: 'end',
        condition: 'interrupted',
        sentence:
          'Streamed: gpt-4o breaks off its answer: the chain does not retry and ends with an error; the gateway called gpt-4o once and passed the broken answer on as a whole one.',
      },
    ],
    [
      'drops tools',
      { preset: 'healthy', request: { stream: true, tools: true } },
      {
        kind: 'received',
        condition: null,
        sentence: 'Streamed: gpt-4o answers: the caller got no call of a tool, since the gateway did not pass the tools on.',
      },
    ],
    [
      'ignores first_token_ms',
      { faults: [failing('gpt-4o', 'first_token_timeout')] },
      {
        kind: 'calls',
        condition: 'first_token_timeout',
        sentence:
          'Streamed: gpt-4o sends no content: the chain does not retry and goes to claude; the gateway called gpt-4o once, waited for the late answer and passed it on.',
      },
    ],
  ];
  for (const [flaw, test_, named] of streamed) {
    test(`names the fault of a gateway that streams: ${flaw} [F136, F158]`, async (t) => {
      const { id, gateway } = await rehearsed(t, flaw, limited);
      const result = await rehearse(id, gateway, { request: { stream: true }, prompt_count: 1, ...test_ });
      assert.equal(result.verdict, 'differs');
      assert.equal(result.differences!.length, 1);
      for (const [field, value] of Object.entries(named)) assert.equal(result.differences![0]![field as 'sentence'], value);
      assert.equal(result.differences![0]!.stream, true);
    });
  }

  const outage = { rate_per_minute: 240, seconds: 3, outages: [{ provider: 'gpt-4o', from_s: 0, to_s: 3, condition: 'auth_error' }] };
  const cooled = { cooldown: { allowed_fails: 0, window_ms: 60_000, seconds: 60 } };

  test('with outages sends its prompts in time, and the memory of a gateway agrees with the cool-downs of the chain [F122, F123]', async (t) => {
    const { id, gateway } = await rehearsed(t, undefined, cooled);
    const result = await rehearse(id, gateway, { timeline: outage });
    assert.deepEqual([result.error, result.differences], [null, []]);
    assert.deepEqual([result.preset, result.prompt_count, result.agreement!.agreeing], [null, 12, 12]);
    assert.equal(result.verdict, 'pass');
    const { seconds, first_back_s, outages } = result.timeline!;
    // How many prompts begin before the first failure is known depends on the machine.
    assert.ok(seconds.some(({ calls }) => calls.some(({ provider, condition }) => provider === 'gpt-4o' && condition === 'auth_error')));
    assert.ok(seconds.some(({ out }) => out.some(({ provider }) => provider === 'gpt-4o')));
    assert.deepEqual([seconds.reduce((sum, { failed }) => sum + failed, 0), first_back_s], [0, null]);
    assert.deepEqual([outages, result.expected_timeline!.outages], [outage.outages, outage.outages]);
    assert.deepEqual(result.expected_timeline!.seconds[0]!.calls[0], { provider: 'gpt-4o', condition: 'auth_error' });
    assert.ok(result.results.every(({ tested }) => tested === undefined));
  });

  test('with outages names the second, the provider and the reason of a gateway that forgets a cool-down [F123]', async (t) => {
    const { id, gateway } = await rehearsed(t, 'forgets a cool-down', cooled);
    const result = await rehearse(id, gateway, { timeline: outage });
    assert.equal(result.verdict, 'differs');
    const [found, ...others] = result.differences!;
    assert.equal(others.length, 0);
    assert.deepEqual([found!.provider, found!.condition, found!.kind], ['gpt-4o', 'auth_error', 'cooldown']);
    assert.ok(found!.second! >= 0 && found!.prompts >= 1);
    assert.match(
      found!.sentence,
      /^At [0-3](\.\d)? s, the gateway called gpt-4o, which the chain leaves out until 6[0-3](\.\d)? s since its auth_error at [0-3](\.\d)? s\.$/,
    );
  });

  test('with outages has a connection for each of the 64 prompts that may be open [F122]', async (t) => {
    const { id } = await createChain(service, { name: 'many', providers, fallback_rules: rules });
    const waiting = new Set<ServerResponse>();
    let most = 0;
    const gateway = await startProvider(t, (response) => {
      most = Math.max(most, waiting.add(response).size);
      response.on('close', () => waiting.delete(response));
      if (most === 64) for (const one of waiting) one.writeHead(500).end();
    });
    const timeline = { rate_per_minute: 6000, seconds: 1, outages: [] };
    await rehearse(id, { url: gateway.base }, { timeline, gateway: { timeout_ms: 5_000 } });
    assert.equal(most, 64);
  });

  test('with outages of conditions of streams needs a stream, and prompts of several shapes are used in turn [F122]', async (t) => {
    const { id, gateway } = await rehearsed(t, undefined, limited);
    const timeline = { ...outage, seconds: 1, rate_per_minute: 60, outages: [{ ...outage.outages[0], to_s: 1, condition: 'interrupted' }] };
    const body = { mode: 'rehearsal', gateway: { url: gateway.url }, timeline };
    const refused = await service.call('POST', `/chains/${id}/test`, { body });
    assert.equal(refused.status, 400, refused.text);
    assert.equal(refused.body.field, 'timeline.outages.0.condition');
    const planned = (request: object, condition = 'interrupted') => {
      const outages = [{ ...timeline.outages[0], condition }];
      return service.call('POST', `/chains/${id}/test?dry_run=true`, { body: { ...body, request, timeline: { ...timeline, outages } } });
    };
    // A failure of streams would hit the whole answers of the other prompts.
    const mixed = await planned({ stream: 'both' });
    assert.deepEqual(
      [mixed.status, mixed.body.detail],
      [400, 'timeline.outages.0.condition is interrupted, which only a streamed answer can have; let all prompts stream (stream: true).'],
    );
    assert.equal((await planned({ stream: true })).status, 200);
    assert.equal((await planned({ stream: 'both' }, 'server_error')).status, 200);
  });

  test('says that faults of streams mean nothing to the whole answers of a test [F133]', async (t) => {
    const { id, gateway } = await rehearsed(t);
    const faults = [{ provider: 'gpt-4o', after_chunks: 1, times: 1 }];
    const assumed = async (request: object) => (await rehearse(id, gateway, { faults, request, prompt_count: 1 })).assumptions;
    const sentence = 'A whole answer has no parts, so that faults.0 mean nothing to the prompts without a stream.';
    assert.deepEqual(await assumed({ stream: false }), [sentence]);
    assert.deepEqual(await assumed({ stream: true }), []);
    const { assumptions } = await rehearse(id, gateway, {
      faults: [failing('gpt-4o', 'interrupted')],
      request: { stream: 'both' },
      prompt_count: 2,
    });
    assert.deepEqual(assumptions, [sentence]);
  });

  test('plays the first scenes of each of many shapes, says so, and expects no call of a tool that a request forbids [F137, F157]', async (t) => {
    const { id, gateway } = await rehearsed(t);
    const tools = [{ type: 'function', function: { name: 'f' } }];
    const shape = (length: number) => ({ messages: [{ role: 'user', content: 'a'.repeat(length + 1) }], tools, tool_choice: 'none' });
    const requests = Array.from({ length: 200 }, (_, length) => shape(length));
    const body = { mode: 'rehearsal', gateway: { url: gateway.url }, request: { requests } };
    const { body: started } = await service.call('POST', `/chains/${id}/test`, { body, headers: { prefer: 'respond-async' } });
    assert.equal(started.prompt_count, 1000);
    assert.match(
      started.assumptions.join(),
      /^The scenes of all shapes are \d+, and a test has at most 1000 prompts: of each shape, only the first scenes are played\.$/,
    );
    await service.call('DELETE', `/test-results/${started.id}`);
    const { assumptions, differences } = await rehearse(id, gateway, { request: { requests: requests.slice(0, 1) } });
    assert.deepEqual([assumptions, differences], [[], []]);
  });

  test('of a gateway that streams as the chain says agrees in every way in which a stream can go wrong, with and without streams [F135]', async (t) => {
    const { id, gateway } = await rehearsed(t, undefined, limited);
    const result = await rehearse(id, gateway, { preset: 'streams', request: { stream: 'both', tools: true } });
    assert.deepEqual([result.differences, result.error], [[], null]);
    // Nine ways, a refusal and two refused requests for each provider, and a healthy answer of each kind.
    assert.deepEqual([result.prompt_count, result.agreement!.agreeing, result.verdict], [38, 38, 'lost_as_ruled']);
    const shapes = result.results.map(({ request }) => request!);
    assert.equal(shapes.filter(({ stream }) => !stream).length, 1);
    for (const { request, received, success } of result.results) {
      assert.deepEqual([request!.endpoint, request!.shape], ['chat', null]);
      assert.equal(received!.duplicated, 0);
      if (success)
        assert.deepEqual([received!.tool_calls, received!.finish_reason], [[{ name: 'get_weather', valid: true }], 'tool_calls']);
    }
    const cut = result.results.find(({ scenario }) => scenario.endsWith('gpt-4o: cut within a tool call'))!;
    assert.deepEqual([cut.success, cut.received!.tool_calls], [false, [{ name: 'get_weather', valid: false }]]);
  });

  /** A gateway that passes each call on to the first provider, by the API by which it was called. */
  async function passing(t: TestContext, token: string) {
    const gateway = await startProvider(t, async (response) => {
      const { path, body } = gateway.seen.at(-1)!;
      const answer = await post(`${origin}/rehearsal/${token}/gpt-4o${path}`, JSON.stringify(body));
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type')! }).end(await answer.text());
    });
    return gateway;
  }

  const asked = { images: true, reasoning: 'low', response_format: true, max_tokens: 77 } as const;
  const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
  const bodies = {
    chat: [
      '"reasoning_effort":"low"',
      '"max_tokens":77',
      '"response_format":{"type":"json_schema"',
      '"name":"f"',
      '"image_url":{"url":"data:',
    ],
    messages: [
      '"budget_tokens":1024',
      '"max_tokens":2048',
      '"output_config":{"format":{"type":"json_schema"',
      '"name":"f"',
      '"type":"image"',
    ],
    responses: ['"reasoning":{"effort":"low"}', '"max_output_tokens":77', '"format":{"type":"json_schema"', '"name":"f"', '"input_image"'],
  } as const;
  for (const endpoint of ['chat', 'messages', 'responses'] as const)
    test(`calls a gateway by ${endpoint} with all that a request can have, whole and streamed, and says what came back [F135]`, async (t) => {
      const { id } = await createChain(service, { name: 'passed on', providers, fallback_rules: [] });
      const gateway = await passing(t, await tokenOf(id));
      const rehearsing = async (request: object) => {
        const shape = { stream: 'both', endpoint, ...request };
        const { results, differences } = await rehearse(id, { url: gateway.base }, { preset: 'healthy', request: shape });
        assert.deepEqual(differences, []);
        assert.deepEqual(
          results.map((one) => one.request),
          [true, false].map((stream) => ({ endpoint, stream, shape: null })),
        );
        return results.map(({ received }) => received!);
      };
      for (const received of await rehearsing({ ...asked, tools: [tool] }))
        assert.deepEqual([received.status, received.tool_calls, received.error], [200, [{ name: 'f', valid: true }], null]);
      for (const { body } of gateway.seen) for (const part of bodies[endpoint]) assert.ok(JSON.stringify(body).includes(part), part);
      const [streamed, whole] = await rehearsing({});
      assert.doesNotMatch(JSON.stringify(gateway.seen.at(-1)!.body), /image/);
      assert.deepEqual([streamed!.text_chunks, whole!.text_chunks, streamed!.lost, whole!.lost], [4, 1, 0, 0]);
      assert.ok(streamed!.time_to_first_token_ms! >= 0 && whole!.time_to_first_token_ms === null);
      assert.ok(streamed!.finish_reason !== null && streamed!.model !== null);
    });

  test('whose healthy streamed answer fails has one difference with its reason, and tests no other stream of it [F135]', async (t) => {
    const { id } = await rehearsed(t);
    const failing = await startProvider(t, status(500));
    const { agreement, differences, verdict } = await rehearse(id, { url: failing.base }, { preset: 'streams', request: { stream: true } });
    assert.equal(verdict, 'differs');
    assert.deepEqual([failing.seen.length, differences!.length, agreement!.differing], [1, 1, 1]);
    assert.equal(agreement!.not_tested, agreement!.prompts - 1);
    assert.match(differences![0]!.sentence, /^Streamed: .* the gateway called nobody and ended with an error \(HTTP 500\)\.$/);
  });

  test('has fakes that refuse what their kind does not take, with its status and its error [F138]', async (t) => {
    const own = [{ name: 'gpt-4o', model_id: 'openai/gpt-4o' }, providers[1]!];
    const { id } = await createChain(service, { name: 'refusing', providers: own, fallback_rules: [] });
    const gateway = await passing(t, await tokenOf(id));
    const requests = [{ messages: [{ role: 'user', content: 'a' }], top_k: 1 }];
    const { results } = await rehearse(id, { url: gateway.base }, { preset: 'healthy', request: { requests, endpoint: 'chat' } });
    const { attempts, received } = results[0]!;
    assert.deepEqual([attempts[0]!.condition, attempts[0]!.status_code, received!.status], ['unsupported_request', 400, 400]);
  });

  for (const [flaw, fault, named] of flaws) {
    test(`names a gateway's fault: ${flaw} [F61]`, async (t) => {
      const { id, gateway } = await rehearsed(t, flaw);
      const result = await rehearse(id, gateway, { faults: [fault], prompt_count: 1 });
      assert.equal(result.verdict, 'differs');
      assert.equal(result.agreement!.differing, 1);
      assert.equal(result.differences!.length, 1);
      const [difference] = result.differences!;
      for (const [field, value] of Object.entries(named)) assert.equal(difference![field as 'sentence'], value);
      assert.deepEqual([difference!.prompts, difference!.first_index], [1, 0]);
    });
  }

  test('refuses a header of the gateway whose name or value no header can have, by a sentence that names it [F61]', async (t) => {
    const { id, gateway } = await rehearsed(t);
    for (const [name, value, detail] of [
      ['a\nb', 'x', 'The name of gateway.headers.a\nb has a character that is not allowed.'],
      ['', 'x', 'The name of gateway.headers. has a character that is not allowed.'],
      ['a', 'x\n', 'gateway.headers.a has a character that is not allowed.'],
    ] as const) {
      const body = { mode: 'rehearsal', gateway: { url: gateway.url, headers: { [name]: value } } };
      const answer = await service.call('POST', `/chains/${id}/test`, { body });
      assert.deepEqual([answer.status, answer.body.detail], [400, detail]);
    }
  });

  test('uses a new connection for each prompt, since a gateway may close an idle one at any time [F117]', async (t) => {
    const { id, gateway } = await rehearsed(t, 'resets reused connections');
    const { error, agreement, prompt_count } = await rehearse(id, gateway);
    assert.equal(error, null);
    assert.equal(agreement!.agreeing, prompt_count);
  });

  test('sends a scene again that differs and took long, since a busy machine may only be slow, and no other [F118]', async (t) => {
    const limits = (timeout_ms: number) => ({ providers: providers.map((one) => ({ ...one, timeout_ms })) });
    for (const [timeout, differing, sent] of [
      [150, 0, 2],
      [3_000, 1, 1],
    ] as const) {
      const { id, gateway } = await rehearsed(t, 'gives up its first call', limits(timeout));
      const { agreement, results, attempts_total } = await rehearse(id, gateway, { preset: 'healthy', prompt_count: 1 });
      assert.deepEqual(
        [agreement!.differing, agreement!.sent_again, gateway.seen.length, attempts_total],
        [differing, 1 - differing, sent, 1],
      );
      assert.equal(results[0]!.served_by, differing === 0 ? 'gpt-4o' : 'claude');
    }
  });

  test('sends no scene again that it ended itself, and none if the gateway keeps its state [F118]', async (t) => {
    // A cut behind content is a matter of time.
    const plan = { faults: [{ provider: 'gpt-4o', after_chunks: 1 }], request: { stream: true }, prompt_count: 1 };
    const { id } = await createChain(service, { name: 'ended', providers, fallback_rules: rules });
    const hanging = await startProvider(t, () => undefined);
    const ended = await rehearse(id, { url: hanging.base }, { ...plan, gateway: { timeout_ms: 50 } });
    assert.deepEqual([ended.agreement!.differing, hanging.seen.length], [1, 1]);
    const keeping = await startFallback(t, {
      flags: { allowLive: 'true' },
      environment: { SERVICE_LIVE_ALLOW: '127.0.0.1' },
      dependencies: { rehearsal: { keepsState: true } },
    });
    const kept = await createChain(keeping, { name: 'kept', providers, fallback_rules: rules });
    for (const [on, chain, sent] of [
      [keeping, kept.id, 1],
      [service, id, 3],
    ] as const) {
      const failing = await startProvider(t, status(500));
      const body = { mode: 'rehearsal', gateway: { url: failing.base }, seed: 1, ...plan };
      const { body: result } = await on.call('POST', `/chains/${chain}/test`, { body });
      assert.deepEqual([result.agreement.differing, result.agreement.sent_again, failing.seen.length], [1, 0, sent]);
    }
  });

  test('draws the faults with a probability for the gateway as for the simulation [F59]', async (t) => {
    const { id, gateway } = await rehearsed(t);
    const faults = [failing('gpt-4o', 'server_error', { probability: 0.5 })];
    const result = await rehearse(id, gateway, { faults, prompt_count: 40 });
    assert.equal(result.verdict, 'pass');
    const numbers = new Set(result.results.map(({ attempts }) => attempts.length));
    assert.ok(numbers.size > 2, `prompts of ${[...numbers]} calls`);
  });

  test('whose gateway cannot be used differs, with the reason [F63]', async (t) => {
    const { id } = await rehearsed(t);
    const reasons: [string, ReturnType<typeof startProvider>, string][] = [
      ['garbage', startProvider(t, status(200, 'hello')), "The gateway's answer can't be used: the answer is malformed."],
      [
        'a redirect',
        startProvider(t, status(302, {}, { location: origin })),
        'The gateway answered with a redirect (HTTP 302), which is not followed.',
      ],
      [
        'its own error',
        startProvider(t, status(404, { error: { code: 'no_model' } })),
        'The gateway called nobody and answered HTTP 404 no_model.',
      ],
    ];
    for (const [name, starting, reason] of reasons) {
      const { base } = await starting;
      const result = await rehearse(id, { url: base }, { prompt_count: 1 });
      assert.deepEqual([result.status, result.verdict, result.error], ['completed', 'differs', reason], name);
    }
    const result = await rehearse(id, { url: 'http://127.0.0.1:9/v1' }, { prompt_count: 1 });
    assert.deepEqual([result.verdict, result.error], ['differs', 'The gateway could not be called: connection_refused.']);
  });

  test('sends the key and the headers that are given, with the configuration for Portkey', async (t) => {
    const { id, gateway } = await rehearsed(t);
    const given = { api_key_env: 'GATEWAY_KEY', headers: { 'x-portkey-config': '{config}', 'x-tenant': 'a' } };
    const result = await rehearse(id, gateway, { prompt_count: 1, gateway: given });
    assert.equal(result.agreement!.agreeing, 1);
    const { authorization, 'x-tenant': tenant, 'x-portkey-config': config } = gateway.seen[0]!;
    assert.deepEqual([authorization, tenant], ['Bearer sk-gateway', 'a']);
    const { targets } = JSON.parse(String(config));
    const token = await tokenOf(id);
    assert.deepEqual(
      targets.map((target: Record<string, unknown>) => [target.custom_host, target.api_key]),
      providers.map(({ name }) => [`http://localhost:80/rehearsal/${token}/${encodeURIComponent(name)}/v1`, 'rehearsal']),
    );
  });

  test('has what the export that runs does otherwise, not what the import found of the file [F65]', async (t) => {
    const { gateway } = await rehearsed(t);
    const model_list = providers.map(({ name, model_id }) => ({ model_name: name, litellm_params: { model: model_id, timeout: 3 } }));
    const content = { model_list, router_settings: { enable_pre_call_checks: true, fallbacks: [{ 'gpt-4o': ['claude'] }] } };
    const { chain, findings } = (await service.call('POST', '/import?format=litellm', { body: { content } })).body;
    const ofImport = new Set(findings.map(({ detail }: Finding) => detail));
    const labels = async (more: object) => {
      const { findings: found } = await rehearse(chain.id, gateway, { prompt_count: 1, gateway: more });
      assert.ok(found.every(({ condition, loss }) => condition !== null && loss));
      if (found.length > 0) assert.ok(found.some(({ detail, stream }) => stream === undefined && !ofImport.has(detail)));
      return ['LiteLLM', 'Portkey'].filter((label) => found.some(({ detail }) => detail.includes(label)));
    };
    assert.deepEqual(await labels({}), []);
    assert.deepEqual(await labels({ export_format: 'litellm' }), ['LiteLLM']);
    assert.deepEqual(await labels({ headers: { 'x-portkey-config': '{config}' } }), ['Portkey']);
    assert.deepEqual(await labels({ export_format: 'portkey' }), ['Portkey']);
  });

  test('is refused where it may not run', async (t) => {
    const { id, gateway } = await rehearsed(t);
    const refused = async (body: object, on = service, chain = id) => {
      const { status: code, body: answer } = await on.call('POST', `/chains/${chain}/test`, { body });
      return [code, answer.field, answer.detail];
    };
    const { url } = gateway;
    assert.deepEqual((await refused({ mode: 'rehearsal' })).slice(0, 2), [400, 'gateway']);
    assert.deepEqual((await refused({ mode: 'simulate', gateway: { url } })).slice(0, 2), [400, 'gateway']);
    assert.deepEqual((await refused({ mode: 'rehearsal', gateway: { url: 'http://10.0.0.1/v1' } })).slice(0, 2), [400, 'gateway.url']);
    assert.deepEqual((await refused({ mode: 'rehearsal', gateway: { url, api_key_env: 'OTHER_KEY' } })).slice(0, 2), [
      400,
      'gateway.api_key_env',
    ]);
    assert.deepEqual((await refused({ mode: 'rehearsal', gateway: { url, headers: { Host: 'x' } } })).slice(0, 2), [
      400,
      'gateway.headers.Host',
    ]);
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`x-${index}`, 'a']));
    assert.equal((await refused({ mode: 'rehearsal', gateway: { url, headers: many } }))[0], 400);
    const closed = await shareFallback();
    const { id: other } = await createChain(closed);
    assert.deepEqual((await refused({ mode: 'rehearsal', gateway: { url } }, closed, other)).slice(0, 2), [403, 'mode']);
    const { body: foreign } = await service.call('POST', '/chains', {
      body: { name: 'foreign', providers: [{ name: 'bedrock', model_id: 'bedrock/claude' }] },
    });
    assert.deepEqual((await refused({ mode: 'rehearsal', gateway: { url } }, service, foreign.id))[0], 400);
  });

  test('leaves out providers that cannot be redirected, by name', async (t) => {
    const mixed = [...providers, { name: 'bedrock', model_id: 'bedrock/claude' }];
    const only = [{ condition: 'timeout', action: 'fail', providers: ['bedrock'] }];
    const { id, gateway } = await rehearsed(t, undefined, { providers: mixed, fallback_rules: [...rules, ...only] });
    const result = await rehearse(id, gateway);
    assert.equal(result.verdict, 'lost_as_ruled');
    assert.deepEqual(result.assumptions, [
      "bedrock is left out of the rehearsal, because its protocol can't be redirected to a fake provider.",
    ]);
    assert.deepEqual(
      result.chain.providers.map(({ name }) => name),
      providers.map(({ name }) => name),
    );
  });

  test('can be planned without a call, followed, and cancelled; only one of a chain runs at a time', async (t) => {
    const { id } = await rehearsed(t);
    const hanging = await startProvider(t, () => undefined);
    const body = { mode: 'rehearsal', gateway: { url: hanging.base } };
    const plan = await service.call('POST', `/chains/${id}/test?dry_run=true`, { body });
    assert.deepEqual([plan.status, plan.body.mode, hanging.seen.length], [200, 'rehearsal', 0]);
    const started = await service.call('POST', `/chains/${id}/test`, { body, headers: { prefer: 'respond-async' } });
    assert.equal(started.status, 202);
    assert.deepEqual(started.body.agreement, { prompts: 0, agreeing: 0, differing: 0, not_tested: 0, sent_again: 0, stray_calls: 0 });
    const second = await service.call('POST', `/chains/${id}/test`, { body });
    assert.deepEqual([second.status, second.body.code], [409, 'CONFLICT']);
    const ended = await service.call('DELETE', `/test-results/${started.body.id}`);
    assert.deepEqual([ended.status, ended.body.status, ended.body.verdict], [200, 'cancelled', null]);
    const third = await service.call('POST', `/chains/${id}/test`, { body, headers: { prefer: 'respond-async' } });
    assert.equal(third.status, 202);
    await service.call('DELETE', `/test-results/${third.body.id}`);
  });
});

/** Runs a rehearsal of one prompt with `faults`; `act` is the gateway, which gets the request's body and the base of the fakes. */
async function acted(
  t: TestContext,
  faults: object[],
  act: (body: string, base: string) => Promise<unknown>,
  more: object = {},
): Promise<TestResult> {
  const { id } = await rehearsed(t);
  const base = `${origin}/rehearsal/${await tokenOf(id)}`;
  let acting: Promise<unknown> | undefined;
  const gateway = await startProvider(t, (response) => {
    const { body } = gateway.seen.at(-1)!;
    acting = act(JSON.stringify(body), base).finally(() => response.writeHead(500).end('{}'));
  });
  const result = await rehearse(
    id,
    { url: gateway.base },
    { prompt_count: 1, ...(faults.length === 0 ? { preset: 'healthy' } : { faults }), ...more },
  );
  assert.ok(acting, 'the gateway was called');
  await acting;
  return result;
}

const post = (url: string, body: string) => fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });

describe('Fake providers', () => {
  startForSuite();

  test('answer 503 while no rehearsal of the chain runs', async () => {
    const { id } = await createChain(service);
    for (const token of [await tokenOf(id), '0'.repeat(32)]) {
      const answer = await service.call('POST', `/rehearsal/${token}/gpt-4o/v1/chat/completions`, { body: {} });
      assert.deepEqual([answer.status, answer.body.code], [503, 'REHEARSAL_NOT_RUNNING']);
    }
  });

  test('answer each failure with the status, the code and the headers of the provider [F59]', async (t) => {
    const cases: [object, number, RegExp, string | null][] = [
      [failing('gpt-4o', 'rate_limit', { retry_after_ms: 1500 }), 429, /"code":"rate_limit_exceeded"/, '2'],
      [failing('gpt-4o', 'quota_exceeded', { status_code: 429 }), 429, /"code":"insufficient_quota"/, null],
      [failing('gpt-4o', 'context_length', { status_code: 400 }), 400, /"code":"context_length_exceeded"/, null],
      [failing('gpt-4o', 'content_filter'), 400, /"code":"content_policy_violation"/, null],
      [failing('claude', 'server_error', { status_code: 529 }), 529, /"type":"overloaded_error"/, null],
      [failing('claude', 'rate_limit'), 429, /"type":"rate_limit_error"/, null],
      [failing('claude', 'auth_error'), 401, /"type":"authentication_error"/, null],
      [failing('gpt-4o', 'invalid_response'), 200, /^\{"id":[^}]*$/, null],
    ];
    for (const [fault, code, form, retryAfter] of cases) {
      const { provider } = fault as { provider: string };
      let got: [number, string | null, string] | undefined;
      await acted(t, [fault], async (body, base) => {
        const path = provider === 'claude' ? 'messages' : 'chat/completions';
        const answer = await post(`${base}/${provider}/${path}`, body);
        got = [answer.status, answer.headers.get('retry-after'), await answer.text()];
      });
      assert.deepEqual(got!.slice(0, 2), [code, retryAfter]);
      assert.match(got![2], form);
    }
  });

  test('break off a stream after its content, if the rehearsal streams, and a gateway that ends there agrees [F133]', async (t) => {
    let text = '';
    const result = await acted(
      t,
      [failing('gpt-4o', 'interrupted')],
      async (body, base) => {
        const answer = await post(`${base}/gpt-4o/chat/completions`, body);
        const decoder = new TextDecoder();
        await assert.rejects(async () => {
          for await (const part of answer.body!) text += decoder.decode(part);
        });
      },
      { stream: true },
    );
    assert.match(text, /gpt-4o answers\./);
    assert.deepEqual(
      result.results[0]!.attempts.map(({ provider, condition, status_code }) => [provider, condition, status_code]),
      [['gpt-4o', 'interrupted', 200]],
    );
    assert.equal(result.agreement!.agreeing, 1);
  });

  test('answer with their name and a usage, whole and streamed, on every path of the three APIs, and close the connection [F117]', async (t) => {
    const chat = ['chat/completions', 'v1/chat/completions', 'openai/deployments/gpt/chat/completions?api-version=2024-10-21'];
    for (const path of [...chat, 'messages', 'v1/messages', 'responses', 'v1/responses']) {
      for (const stream of [false, true]) {
        let text = '';
        const result = await acted(t, [], async (body, base) => {
          const { messages, ...others } = JSON.parse(body);
          // Each API has a field of its own for the prompt, and the provider refuses those of others.
          const prompt = path.endsWith('responses') ? { input: messages[0].content } : { messages };
          const answer = await post(`${base}/gpt-4o/${path}`, JSON.stringify({ ...others, ...prompt, stream }));
          text = await answer.text();
          assert.equal(answer.headers.get('connection'), 'close');
        });
        assert.match(text, /gpt-4o answers\./, `${path} ${stream}`);
        assert.match(text, path.endsWith('messages') ? /"output_tokens":6/ : /"total_tokens":18/);
        assert.match(text, stream ? /three\./ : /gpt-4o answers\. One, two, three\./);
        assert.equal(text.includes('data: '), stream);
        assert.equal(result.attempts_total, 1);
      }
    }
    await acted(t, [], async (_, base) => {
      const answer = await fetch(`${base}/gpt-4o/v1/models`);
      assert.deepEqual([answer.status, ((await answer.json()) as { object: string }).object], [200, 'list']);
    });
  });

  test('count an unknown provider in its prompt, and a call without a known mark as stray', async (t) => {
    const result = await acted(t, [], async (body, base) => {
      assert.equal((await post(`${base}/${encodeURIComponent('no/one')}/v1/chat/completions`, body)).status, 404);
      assert.equal((await post(`${base}/gpt-4o/v1/embeddings`, body)).status, 404);
      assert.equal((await post(`${base}/gpt-4o/v1/chat/completions`, '{"messages": []}')).status, 200);
    });
    assert.deepEqual(
      result.results[0]!.attempts.map(({ provider, status_code, condition }) => [provider, status_code, condition]),
      [
        ['no/one', 404, 'invalid_request'],
        ['gpt-4o', 404, 'invalid_request'],
      ],
    );
    assert.equal(result.agreement!.stray_calls, 1);
    assert.equal(result.verdict, 'differs');
  });

  test('take bodies of 1 MiB and 64 calls at a time, and count no other', async (t) => {
    const ends = new AbortController();
    const result = await acted(t, [failing('gpt-4o', 'timeout')], async (body, base) => {
      const url = `${base}/gpt-4o/v1/chat/completions`;
      assert.equal((await post(url, body.padEnd(1024 * 1024 + 1))).status, 413);
      const calls = Array.from({ length: 65 }, () => fetch(url, { method: 'POST', body, signal: ends.signal }));
      // The others get no answer.
      assert.equal((await Promise.race(calls)).status, 503);
      ends.abort();
      await Promise.allSettled(calls);
    });
    assert.equal(result.attempts_total, 64);
  });

  test('need no key and no quota of requests, and their token reaches no log', async (t) => {
    const guarded = await startFallback(t, {
      flags: { allowLive: 'true', rateLimit: '10/hour' },
      environment: { SERVICE_LIVE_ALLOW: '127.0.0.1', SERVICE_API_KEYS: 'key-of-a-test' },
    });
    const at = await guarded.fallback.start();
    const headers = { 'x-api-key': 'key-of-a-test' };
    const { body: chain } = await guarded.call('POST', '/chains', { body: { name: 'c', providers: providers.slice(0, 1) }, headers });
    const { body: made } = await guarded.call('GET', `/chains/${chain.id}/rehearsal-token`, { headers });
    const gateway = await startProvider(t, (response) => {
      const { body } = gateway.seen.at(-1)!;
      const url = `${at}/rehearsal/${made.token}/gpt-4o/v1/chat/completions`;
      const once = () => post(url, JSON.stringify(body));
      void Promise.all(Array.from({ length: 20 }, once)).then(async ([answer]) => {
        response.writeHead(answer!.status, { 'content-type': 'application/json' }).end(await answer!.text());
      });
    });
    const request = { mode: 'rehearsal', gateway: { url: gateway.base }, preset: 'healthy', prompt_count: 1 };
    const { status: code, body: result } = await guarded.call('POST', `/chains/${chain.id}/test`, { body: request, headers });
    assert.equal(code, 201);
    assert.equal(result.attempts_total, 20);
    const metrics = await guarded.call('GET', '/metrics', { headers });
    assert.ok(guarded.logs.some((line) => line.includes('/rehearsal/:token/:provider/*')));
    for (const text of [...guarded.logs, metrics.text]) assert.ok(!text.includes(made.token));
  });
});

for (const store of stores) {
  describe(`Rehearsal tokens on ${store.name}`, () => {
    test('stay the same until a new one is made, and are different for each chain [F58]', async () => {
      const on = await shareFallback(store);
      const [one, other] = [await createChain(on), await createChain(on)];
      const first = await on.call('GET', `/chains/${one.id}/rehearsal-token`);
      assert.equal(first.status, 200);
      assert.match(first.body.token, /^[0-9a-f]{32}$/);
      assert.equal(first.body.base, `http://localhost:80/rehearsal/${first.body.token}`);
      assert.equal(await tokenOf(one.id, on), first.body.token);
      assert.notEqual(await tokenOf(other.id, on), first.body.token);
      const renewed = await on.call('POST', `/chains/${one.id}/rehearsal-token`);
      assert.equal(renewed.status, 201);
      assert.notEqual(renewed.body.token, first.body.token);
      assert.equal(await tokenOf(one.id, on), renewed.body.token);
    });
  });
}

describe('POST /chains/{id}/export?rehearsal=true', () => {
  const mixed = [
    ...providers,
    { name: 'azure', model_id: 'azure/dep', api_base: 'https://r.openai.azure.com', params: { api_version: '2024-10-21' } },
    { name: 'bedrock', model_id: 'bedrock/claude' },
  ];

  test('200: every address leads to the fake providers and every key is the literal, in five formats', async () => {
    const on = await shareFallback();
    const keyed = mixed.map((provider) => ({ ...provider, api_key_env: 'A_REAL_KEY' }));
    const { id } = await createChain(on, { name: 'c', providers: keyed, fallback_rules: [] });
    const token = await tokenOf(id, on);
    for (const format of ['litellm', 'portkey', 'json', 'langchain', 'ai-sdk']) {
      const { status: code, body } = await on.call(
        'POST',
        `/chains/${id}/export?format=${format}&rehearsal=true&rehearsal_base=http://10.1.2.3:8000`,
      );
      assert.equal(code, 200, format);
      const { content } = body as { content: string };
      assert.doesNotMatch(content, /A_REAL_KEY|os\.environ|process\.env|\$\{[A-Za-z]+_KEY|openai\.azure\.com|llm\.example/, format);
      assert.match(content, /rehearsal/);
      for (const name of ['gpt-4o', 'claude', 'Llama%203%2F70b', 'azure']) {
        assert.ok(content.includes(`http://10.1.2.3:8000/rehearsal/${token}/${name}`), `${format} ${name}`);
      }
      assert.ok(!content.includes('/bedrock'), format);
      const left = body.warnings.filter((warning: { code: string }) => warning.code === 'left_out');
      assert.deepEqual(
        left.map(({ loss }: { loss: boolean }) => loss),
        [true],
      );
    }
    const json = await on.call('POST', `/chains/${id}/export?format=json&rehearsal=true`);
    assert.equal(json.body.config.providers[0].api_key_env, 'rehearsal');
    assert.equal(json.body.config.providers[0].api_base, `http://localhost:80/rehearsal/${token}/gpt-4o/v1`);
  });

  test('400 for a format without addresses to replace, naming the five, and for a base without rehearsal', async () => {
    const on = await shareFallback();
    const { id } = await createChain(on);
    for (const format of ['openrouter', 'bifrost', 'envoy-ai-gateway', 'yaml']) {
      const { status: code, body } = await on.call('POST', `/chains/${id}/export?format=${format}&rehearsal=true`);
      assert.deepEqual([code, body.field], [400, 'format']);
      assert.match(body.detail, /litellm, portkey, langchain, ai-sdk and json/);
    }
    const { status: code, body } = await on.call('POST', `/chains/${id}/export?rehearsal_base=http://a`);
    assert.deepEqual([code, body.field], [400, 'rehearsal_base']);
    for (const base of ['http://1.2.3.256', 'http://a:99999']) {
      const { status, text } = await on.call('POST', `/chains/${id}/export?rehearsal=true&rehearsal_base=${base}`);
      assert.equal(status, 400, text);
      assert.match(text, /rehearsal_base must be a URL/);
    }
  });

  test('switches the cool-downs of LiteLLM off with a note, and keeps them with keep_state [F159]', async () => {
    const on = await shareFallback();
    const cooldown = { allowed_fails: 1, window_ms: 60_000, seconds: 30 };
    const { id } = await createChain(on, { name: 'c', providers, fallback_rules: [], cooldown });
    const settings = async (query: string) => {
      const { body } = await on.call('POST', `/chains/${id}/export?format=litellm&rehearsal=true${query}`);
      const { disable_cooldowns, allowed_fails } = body.config.router_settings;
      assert.equal(body.content.includes('disable_cooldowns: true'), disable_cooldowns === true);
      const notes = body.warnings.filter(({ code }: { code: string }) => code === 'no_cooldowns');
      return [disable_cooldowns, allowed_fails, notes.map(({ detail }: { detail: string }) => /keep_state=true keeps/.test(detail))];
    };
    assert.deepEqual(await settings(''), [true, 1, [true]]);
    assert.deepEqual(await settings('&keep_state=true'), [undefined, 1, []]);
    const { status: code, body } = await on.call('POST', `/chains/${id}/export?format=litellm&keep_state=true`);
    assert.deepEqual([code, body.field], [400, 'keep_state']);
  });

  test('leads to SERVICE_PUBLIC_URL if that is set', async (t) => {
    const on = await startFallback(t, { environment: { SERVICE_PUBLIC_URL: 'https://chains.example.com/base/' } });
    const { id } = await createChain(on);
    const { body } = await on.call('POST', `/chains/${id}/export?format=json&rehearsal=true`);
    assert.match(body.config.providers[0].api_base, /^https:\/\/chains\.example\.com\/base\/rehearsal\/[0-9a-f]{32}\/gpt-4o\/v1$/);
  });
});
