import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';

import { conditions } from '../../../src/fallback/model/chain.ts';
import type { Attempt, TestResult } from '../../../src/fallback/model/test.ts';
import { fakeReaction } from '../../../src/fallback/providers/fake.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { conditionOf, traitsOf } from '../../../src/fallback/rules/conditions.ts';
import { providerErrors } from '../../../src/fallback/rules/provider-errors.ts';
import { routingOf } from '../../../src/fallback/rules/routing.ts';
import { exportChain } from '../../../src/fallback/rules/targets/export.ts';
import { freePort } from '../../../src/kit/free-port.ts';
import { startFallback, type TestFallback } from '../../support/fallback.ts';
import {
  answering,
  answeringAnthropic,
  type Behaviour,
  cutting,
  dripping,
  failing,
  flooding,
  hanging,
  resetting,
  stalling,
  startProvider,
  status,
  streaming,
} from '../../support/providers.ts';
import { closed } from '../../support/socket.ts';

const key = 'fake-secret-value-1234567890';
const environment = {
  FAKE_KEY: key,
  OTHER_KEY: 'x',
  SERVICE_API_KEYS: '',
  SERVICE_LIVE_ALLOW: '127.0.0.1, [::1]',
  SERVICE_LIVE_KEYS: 'FAKE_KEY@127.0.0.1',
};

/** A service that may call real providers. */
const startLive = (t: TestContext, more: Parameters<typeof startFallback>[1] = {}) =>
  startFallback(t, { flags: { allowLive: 'true' }, environment, ...more });

type Providers = { name: string; model_id: string; api_base: string; [field: string]: unknown }[];

/** Runs a live test of one prompt on a chain of these providers. */
async function live(service: TestFallback, providers: Providers, fallback_rules: object[] = [], request: object = {}): Promise<TestResult> {
  const body = { name: 'live', providers: providers.map((one) => ({ timeout_ms: 5000, ...one })), fallback_rules };
  const chain = await service.call('POST', '/chains', { body });
  assert.equal(chain.status, 201, chain.text);
  const answer = await service.call('POST', `/chains/${chain.body.id}/test`, { body: { mode: 'live', prompt_count: 1, ...request } });
  assert.equal(answer.status, 201, answer.text);
  assert.equal(answer.body.status, 'completed', answer.text);
  return answer.body;
}

interface Case {
  name: string;
  does: Behaviour;
  condition: Attempt['condition'];
  code: number | null;
  error: string;
  timeout_ms?: number;
  stream?: boolean;
  limits?: { first_token_ms?: number; idle_ms?: number };
}

const chunk = (content: string, finish_reason: string | null = null) =>
  JSON.stringify({ choices: [{ delta: { content }, finish_reason }] });

const cases: Case[] = [
  { name: '429', does: failing(429, 'rate_limit_exceeded'), condition: 'rate_limit', code: 429, error: 'HTTP 429 rate_limit_exceeded' },
  {
    name: '429 of a used-up quota',
    does: failing(429, 'insufficient_quota'),
    condition: 'quota_exceeded',
    code: 429,
    error: 'HTTP 429 insufficient_quota',
  },
  { name: '402', does: status(402), condition: 'quota_exceeded', code: 402, error: 'HTTP 402' },
  { name: '500', does: status(500, 'broken', {}), condition: 'server_error', code: 500, error: 'HTTP 500' },
  { name: '502', does: status(502), condition: 'server_error', code: 502, error: 'HTTP 502' },
  { name: '503', does: status(503), condition: 'server_error', code: 503, error: 'HTTP 503' },
  { name: '529', does: failing(529, 'overloaded_error'), condition: 'server_error', code: 529, error: 'HTTP 529 overloaded_error' },
  { name: '408', does: status(408), condition: 'timeout', code: 408, error: 'HTTP 408' },
  { name: '504', does: status(504), condition: 'timeout', code: 504, error: 'HTTP 504' },
  { name: '401', does: failing(401, 'invalid_api_key'), condition: 'auth_error', code: 401, error: 'HTTP 401 invalid_api_key' },
  { name: '403', does: status(403), condition: 'auth_error', code: 403, error: 'HTTP 403' },
  { name: '404', does: failing(404, 'model_not_found'), condition: 'model_not_found', code: 404, error: 'HTTP 404 model_not_found' },
  {
    name: 'a 404 that names the model',
    does: status(404, { detail: 'The deployment m is gone.' }),
    condition: 'model_not_found',
    code: 404,
    error: 'HTTP 404',
  },
  {
    name: 'a 404 without the model',
    does: status(404, { detail: 'Unknown path.' }),
    condition: 'invalid_request',
    code: 404,
    error: 'HTTP 404',
  },
  {
    name: 'a field that is named',
    does: status(400, { error: { message: 'No.', param: 'tools' } }),
    condition: 'unsupported_request',
    code: 400,
    error: 'HTTP 400',
  },
  {
    name: 'a list of fields',
    does: status(422, { detail: [{ type: 'extra_forbidden', loc: ['body', 'store'], msg: 'Extra inputs are not permitted' }] }),
    condition: 'unsupported_request',
    code: 422,
    error: 'HTTP 422 extra_forbidden',
  },
  { name: 'a reset', does: resetting, condition: 'connection_error', code: null, error: 'connection_reset' },
  { name: 'a hang', does: hanging, condition: 'timeout', code: null, error: 'no answer in time', timeout_ms: 60 },
  {
    name: 'a slow start',
    does: (response, request) => void setTimeout(() => answering()(response, request), 3000).unref(),
    condition: 'timeout',
    code: null,
    error: 'no answer in time',
    timeout_ms: 60,
  },
  { name: 'a byte now and then', does: dripping, condition: 'timeout', code: null, error: 'no answer in time', timeout_ms: 60 },
  { name: 'a body without end', does: flooding, condition: 'invalid_response', code: 200, error: 'too_large' },
  { name: 'a cut body', does: cutting, condition: 'invalid_response', code: 200, error: 'the answer was cut' },
  {
    name: 'broken JSON',
    does: status(200, '{"choices":['),
    condition: 'invalid_response',
    code: 200,
    error: 'the answer is malformed',
  },
  { name: 'JSON without an answer', does: status(200, {}), condition: 'invalid_response', code: 200, error: 'the answer has no content' },
  { name: 'an empty answer', does: answering(' '), condition: 'invalid_response', code: 200, error: 'the answer is empty' },
  {
    name: 'a finish reason that holds back',
    does: answering('', 'content_filter'),
    condition: 'content_filter',
    code: 200,
    error: 'blocked by a content filter',
  },
  {
    name: 'a content filter',
    does: failing(400, 'content_filter'),
    condition: 'content_filter',
    code: 400,
    error: 'HTTP 400 content_filter',
  },
  {
    name: 'a context that is too long',
    does: failing(400, 'context_length_exceeded'),
    condition: 'context_length',
    code: 400,
    error: 'HTTP 400 context_length_exceeded',
  },
  { name: '413', does: status(413), condition: 'context_length', code: 413, error: 'HTTP 413' },
  {
    name: 'a stream that is cut',
    does: streaming([chunk('rea'), chunk('dy', 'stop')], { cut: true }),
    condition: 'interrupted',
    code: 200,
    error: 'the stream was cut',
    stream: true,
  },
  {
    name: 'a stream that ends without saying so',
    does: streaming([chunk('ready')]),
    condition: 'interrupted',
    code: 200,
    error: 'the stream was cut',
    stream: true,
  },
  {
    name: 'a stream that is cut before its content',
    does: streaming([chunk('')], { cut: true }),
    condition: 'invalid_response',
    code: 200,
    error: 'the answer was cut',
    stream: true,
  },
  {
    name: 'an error after the content of a stream',
    does: streaming([chunk('rea'), '{"error":{"message":"x"}}', '[DONE]']),
    condition: 'interrupted',
    code: 200,
    error: 'the stream has an error',
    stream: true,
  },
  {
    name: 'a malformed part behind the content of a stream',
    does: streaming([chunk('rea'), '{"choices":', '[DONE]']),
    condition: 'interrupted',
    code: 200,
    error: 'the stream has an error',
    stream: true,
  },
  {
    name: 'a stream without content in time',
    does: stalling([chunk('')]),
    condition: 'first_token_timeout',
    code: null,
    error: 'no content in time',
    stream: true,
    limits: { first_token_ms: 60 },
  },
  {
    name: 'a stream without a head in time',
    does: hanging,
    condition: 'first_token_timeout',
    code: null,
    error: 'no content in time',
    stream: true,
    limits: { first_token_ms: 60 },
  },
  {
    name: 'a stream that stalls after a tool call began',
    does: stalling([JSON.stringify({ choices: [{ delta: { tool_calls: [{ index: 0, function: { name: 'f' } }] } }] })]),
    condition: 'interrupted',
    code: 200,
    error: 'the stream stalled',
    stream: true,
    limits: { first_token_ms: 4000, idle_ms: 60 },
  },
  {
    name: 'an error in a stream',
    does: streaming(['{"error":{"message":"x"}}', '[DONE]']),
    condition: 'invalid_response',
    code: 200,
    error: 'the answer is malformed',
    stream: true,
  },
  {
    name: 'a stream blocked by a content filter',
    does: streaming([chunk('', 'content_filter'), '[DONE]']),
    condition: 'content_filter',
    code: 200,
    error: 'blocked by a content filter',
    stream: true,
  },
];

describe('A provider that fails', () => {
  test('in any of these ways is called once, gets its condition, and fails over to the next [F10]', async (t) => {
    const service = await startLive(t);
    const backup = await startProvider(t);
    for (const { name, does, condition, code, error, timeout_ms = 5000, stream = false, limits = {} } of cases) {
      const primary = await startProvider(t, does);
      const asked = backup.seen.length;
      backup.does(stream ? streaming([chunk('ready', 'stop'), '[DONE]']) : answering());
      const result = await live(
        service,
        [
          { name: 'primary', model_id: 'm', api_base: primary.base, timeout_ms, api_key_env: 'FAKE_KEY', ...limits },
          { name: 'backup', model_id: 'm', api_base: backup.base },
        ],
        [{ condition: 'any', action: 'failover' }],
        { stream },
      );
      const [first, second] = result.results[0]!.attempts;
      assert.deepEqual([first!.condition, first!.status_code, first!.error, first!.action], [condition, code, error, 'failover'], name);
      assert.equal(first!.injected, false);
      assert.deepEqual([second!.provider, second!.condition, second!.status_code], ['backup', null, 200], name);
      assert.equal(result.results[0]!.served_by, 'backup', name);
      // A request that is given up after 60 ms may not have been sent yet.
      assert.ok(
        primary.seen.length === 1 || (primary.seen.length === 0 && (timeout_ms < 5000 || limits.first_token_ms === 60)),
        `${name}: asked once`,
      );
      assert.equal(backup.seen.length, asked + 1, name);
      assert.ok(!JSON.stringify(result).includes(key));
    }
  });

  test('before anything is sent has its cause: refused, unknown name, TLS, an address that is not public [F34]', async (t) => {
    const resolve = async (name: string) => {
      if (name === 'inside.example.com') return [{ address: '10.1.2.3', family: 4 }];
      throw new Error('no such name');
    };
    const service = await startLive(t, { dependencies: { resolve } });
    const plain = await startProvider(t);
    for (const [api_base, error] of [
      [`http://127.0.0.1:${await freePort()}/v1`, 'connection_refused'],
      ['https://nowhere.example.com/v1', 'dns_error'],
      [`https://127.0.0.1:${plain.port}/v1`, 'tls_error'],
      ['https://inside.example.com/v1', 'address_refused'],
      ['http://10.0.0.1/v1', 'address_refused'],
      ['http://169.254.169.254/v1', 'address_refused'],
    ] as const) {
      const result = await live(service, [{ name: 'a', model_id: 'm', api_base }]);
      const [attempt] = result.results[0]!.attempts;
      assert.deepEqual([attempt!.condition, attempt!.status_code, attempt!.error], ['connection_error', null, error], api_base);
      assert.equal(result.verdict, 'fail');
    }
    assert.equal(plain.seen.length, 0);
  });

  test('by redirecting is not followed, and the key is not sent elsewhere [F10]', async (t) => {
    const service = await startLive(t);
    const elsewhere = await startProvider(t);
    const provider = await startProvider(t);
    for (const code of [301, 302, 307, 308]) {
      provider.does(status(code, {}, { location: `${elsewhere.base}/chat/completions` }));
      const result = await live(service, [{ name: 'a', model_id: 'm', api_base: provider.base, api_key_env: 'FAKE_KEY' }]);
      const [attempt] = result.results[0]!.attempts;
      assert.deepEqual([attempt!.condition, attempt!.status_code, attempt!.error], ['invalid_response', code, 'redirect_refused']);
    }
    assert.equal(elsewhere.seen.length, 0);
  });

  test('with Retry-After is called again after that time, up to max_wait_ms [F18]', async (t) => {
    const service = await startLive(t);
    const provider = await startProvider(t);
    for (const [header, wait] of [
      ['60', 30],
      ['Wed, 01 Jan 2031 00:00:00 GMT', 30],
      ['-1', 1],
      ['abc', 1],
      ['0', 1],
    ] as const) {
      provider.does(failing(429, 'rate_limit_exceeded', { 'retry-after': header }), answering());
      const rules = [{ condition: 'rate_limit', action: 'retry', wait_ms: 1, max_wait_ms: 30, backoff: 'constant' }];
      const result = await live(service, [{ name: 'a', model_id: 'm', api_base: provider.base }], rules);
      assert.equal(result.results[0]!.attempts[0]!.wait_ms, wait, header);
      assert.equal(result.results[0]!.retries_used, 1);
      assert.equal(result.verdict, 'pass');
    }
  });
});

describe('The verdict of real calls', () => {
  const rules = [{ condition: 'any', action: 'failover' }];
  const denied = failing(401, 'invalid_api_key');
  const overloaded = failing(500, 'overloaded');

  test('is at most partial if a provider that was called never answered, and fail if that is the first or its key is refused [F43]', async (t) => {
    const service = await startLive(t);
    const cases: [Behaviour[], string, string | null][] = [
      [[answering(), hanging, hanging], 'pass', null],
      [[overloaded, answering(), hanging], 'fail', 'p0 was called 3 times and never answered, because of server_error.'],
      [
        [denied, denied, answering()],
        'fail',
        'p0 was called 3 times and never answered, because of auth_error. p1 was called 3 times and never answered, because of auth_error.',
      ],
    ];
    for (const [behaviours, verdict, detail] of cases) {
      const providers = await Promise.all(behaviours.map((does) => startProvider(t, does)));
      const chain = providers.map(({ base }, place) => ({ name: `p${place}`, model_id: 'm', api_base: base }));
      const result = await live(service, chain, rules, { prompt_count: 3 });
      const found = result.checks.find(({ name }) => name === 'providers_answer')!;
      assert.deepEqual([result.verdict, found.passed], [verdict, detail === null]);
      if (detail !== null) assert.equal(found.detail, detail);
      assert.equal(result.success_count, 3);
    }
  });

  test('counts a backup only by the calls that a drill really made, and an answer after a refusal as an answer [F43]', async (t) => {
    const service = await startLive(t);
    const [first, second, third] = [await startProvider(t, answering()), await startProvider(t), await startProvider(t)];
    const chain = [first, second, third].map(({ base }, place) => ({ name: `p${place}`, model_id: 'm', api_base: base }));
    const faults = [{ provider: 'p0', condition: 'connection_error' }];
    const drill = async (does: Behaviour[]) => {
      second.does(...does);
      const { verdict, checks } = await live(service, chain, rules, { mode: 'drill', faults, prompt_count: 2 });
      return [verdict, checks.find(({ name }) => name === 'providers_answer')!];
    };
    const silent = { name: 'providers_answer', passed: false, advisory: true };
    assert.deepEqual(await drill([overloaded]), [
      'partial',
      { ...silent, detail: 'p1 was called 2 times and never answered, because of server_error.' },
    ]);
    assert.deepEqual(await drill([denied]), [
      'fail',
      { ...silent, advisory: false, detail: 'p1 was called 2 times and never answered, because of auth_error.' },
    ]);
    assert.equal((await drill([denied, answering()]))[0], 'pass');
    assert.equal(first.seen.length, 0);
  });
});

describe('A call', () => {
  test('on a reused connection that breaks is not repeated: the provider may have answered already [F56]', async (t) => {
    const service = await startLive(t);
    const provider = await startProvider(t, failing(429, 'rate_limit_exceeded'), resetting, answering());
    const backup = await startProvider(t);
    const rules = [{ condition: 'rate_limit', action: 'retry', wait_ms: 1, backoff: 'constant' }];
    const chain = [provider, backup].map(({ base }, place) => ({ name: `p${place}`, model_id: 'm', api_base: base }));
    const { results } = await live(service, chain, rules);
    assert.deepEqual(
      results[0]!.attempts.map(({ provider: name, condition, error }) => [name, condition, error]),
      [
        ['p0', 'rate_limit', 'HTTP 429 rate_limit_exceeded'],
        ['p0', 'connection_error', 'connection_reset'],
        ['p1', null, null],
      ],
    );
    assert.deepEqual([provider.seen.length, provider.connections(), backup.seen.length], [2, 1, 1]);
  });

  test("to OpenAI's API has the model, the prompt and the key of its variable, and its cost is read [F31]", async (t) => {
    const service = await startLive(t);
    const provider = await startProvider(t);
    const result = await live(
      service,
      [
        {
          name: 'a',
          model_id: 'openai/gpt-4o',
          api_base: provider.base,
          api_key_env: 'FAKE_KEY',
          max_tokens: 7,
          input_cost_per_1m: 1,
          output_cost_per_1m: 2,
        },
      ],
      [],
      { prompts: ['Say hello.'] },
    );
    const [seen] = provider.seen;
    assert.equal(seen!.path, '/v1/chat/completions');
    assert.equal(seen!.headers.authorization, `Bearer ${key}`);
    assert.deepEqual(seen!.body, { model: 'gpt-4o', messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 7 });
    assert.equal(result.mode, 'live');
    assert.equal(result.preset, null);
    assert.deepEqual(result.assumptions, []);
    assert.equal(result.cost_usd.total, (12 + 3 * 2) / 1_000_000);
  });

  test('uses the prompts in turn [F26]', async (t) => {
    const service = await startLive(t);
    const provider = await startProvider(t);
    const prompts = ['one', 'two'];
    await live(service, [{ name: 'a', model_id: 'm', api_base: provider.base }], [], { prompt_count: 3, prompts });
    assert.deepEqual(provider.seen.map(({ body }) => body.messages[0].content).sort(), ['one', 'one', 'two']);
  });

  test('without a variable has no key [F6]', async (t) => {
    const service = await startLive(t);
    const provider = await startProvider(t);
    await live(service, [{ name: 'a', model_id: 'openai/gpt-4o', api_base: provider.base }]);
    assert.equal(provider.seen[0]!.headers.authorization, undefined);
  });

  test("to Anthropic's API goes to messages with its own headers [F31]", async (t) => {
    const service = await startLive(t);
    const provider = await startProvider(t, answeringAnthropic());
    const result = await live(service, [{ name: 'a', model_id: 'anthropic/claude', api_base: provider.base, api_key_env: 'FAKE_KEY' }]);
    const [seen] = provider.seen;
    assert.equal(result.success_count, 1);
    assert.equal(seen!.path, '/v1/messages');
    assert.equal(seen!.headers['x-api-key'], key);
    assert.equal(seen!.headers.authorization, undefined);
    assert.equal(seen!.headers['anthropic-version'], '2023-06-01');
    assert.equal(seen!.body.model, 'claude');
    assert.equal(typeof seen!.body.max_tokens, 'number');
  });

  test('may request a stream, of either API, which the result names [F49, F135]', async (t) => {
    const service = await startLive(t);
    const openai = await startProvider(
      t,
      streaming([chunk('rea'), chunk('dy', 'stop'), '{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}', '[DONE]']),
    );
    const event = (type: string, more: object = {}) => [type, JSON.stringify({ type, ...more })] as const;
    const anthropic = await startProvider(
      t,
      streaming([
        event('message_start', { message: { usage: { input_tokens: 5 } } }),
        event('ping'),
        event('content_block_delta', { delta: { type: 'text_delta', text: 'ready' } }),
        event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
        event('message_stop'),
      ]),
    );
    const price = { input_cost_per_1m: 1, output_cost_per_1m: 1 };
    for (const [fake, model_id, endpoint] of [
      [openai, 'openai/gpt-4o', 'chat'],
      [anthropic, 'anthropic/claude', 'messages'],
    ] as const) {
      const result = await live(service, [{ name: 'a', model_id, api_base: fake.base, ...price }], [], { stream: true });
      assert.equal(result.success_count, 1, model_id);
      assert.deepEqual(result.results[0]!.request, { endpoint, stream: true, shape: null });
      assert.equal(fake.seen[0]!.body.stream, true);
      assert.equal(result.cost_usd.total, 7 / 1_000_000);
    }
  });
});

describe('A key', () => {
  const refusals: [string, object, RegExp][] = [
    [
      'leaves for no host that it was not named for',
      { api_key_env: 'OTHER_KEY' },
      /OTHER_KEY may not be sent to 127\.0\.0\.1:\d+: SERVICE_LIVE_KEYS/,
    ],
    ['is never one of the service’s own variables', { api_key_env: 'SERVICE_API_KEYS' }, /SERVICE_API_KEYS is a setting of this service/],
    ['must be set where the service runs', { api_key_env: 'FAKE_KEY_2' }, /FAKE_KEY_2, the api_key_env of a, is not set/],
  ];
  for (const [name, provider, message] of refusals) {
    test(name, async (t) => {
      const grants = `${environment.SERVICE_LIVE_KEYS}, FAKE_*@127.0.0.1, SERVICE_*@127.0.0.1`;
      const service = await startLive(t, { environment: { ...environment, SERVICE_LIVE_KEYS: grants } });
      const fake = await startProvider(t);
      const body = { name: 'c', providers: [{ name: 'a', model_id: 'm', api_base: fake.base, ...provider }] };
      const chain = await service.call('POST', '/chains', { body });
      for (const mode of ['live', 'drill']) {
        const answer = await service.call('POST', `/chains/${chain.body.id}/test`, { body: { mode } });
        assert.equal(answer.status, 400);
        assert.equal(answer.body.field, 'providers.0.api_key_env');
        assert.match(answer.body.detail, message);
      }
      assert.equal(fake.seen.length, 0);
      assert.deepEqual((await service.call('GET', `/test-results/${chain.body.id}`)).body, []);
    });
  }

  test('echoed by a provider appears neither in the result nor in the log [F34]', async (t) => {
    const service = await startLive(t);
    const fake = await startProvider(t, status(401, { error: { code: key, message: `Incorrect API key provided: ${key}` } }));
    const result = await live(service, [{ name: 'a', model_id: 'm', api_base: fake.base, api_key_env: 'FAKE_KEY' }]);
    assert.equal(result.results[0]!.attempts[0]!.error, 'HTTP 401');
    assert.ok(!`${JSON.stringify(result)}${service.logs.join('')}`.includes(key));
  });
});

describe('A drill', () => {
  test('injects its faults in front of chosen providers and calls the others [F31]', async (t) => {
    const service = await startLive(t);
    const [primary, backup] = [await startProvider(t), await startProvider(t)];
    const providers = [
      { name: 'primary', model_id: 'm', api_base: primary.base },
      { name: 'backup', model_id: 'm', api_base: backup.base },
    ];
    const drill = { mode: 'drill', prompt_count: 3, preset: 'primary_down' };
    const served = await live(service, providers, [], drill);
    assert.equal(served.verdict, 'pass');
    assert.equal(served.mode, 'drill');
    assert.deepEqual(
      served.results.map(({ attempts }) => attempts.map(({ provider, injected }) => [provider, injected])),
      Array.from({ length: 3 }, () => [
        ['primary', true],
        ['backup', false],
      ]),
    );
    assert.equal(primary.seen.length, 0);
    assert.equal(backup.seen.length, 3);
    backup.does(failing(401, 'invalid_api_key'));
    const lost = await live(service, providers, [], drill);
    assert.equal(lost.verdict, 'fail');
    assert.equal(lost.failure_count, 3);
    assert.deepEqual(
      lost.results.map(({ error }) => error),
      ['auth_error', 'auth_error', 'auth_error'],
    );
  });

  test('does not wait for injected faults, unless they have a latency [F39]', async (t) => {
    const service = await startLive(t);
    const backup = await startProvider(t);
    const providers = [
      { name: 'primary', model_id: 'm', api_base: backup.base, timeout_ms: 600_000 },
      { name: 'backup', model_id: 'm', api_base: backup.base },
    ];
    const drill = async (fault: object) => {
      const faults = [{ provider: 'primary', condition: 'timeout', ...fault }];
      return (await live(service, providers, [], { mode: 'drill', faults })).results[0]!.attempts[0]!;
    };
    // Waiting for the timeout would take ten minutes.
    const plain = await drill({});
    assert.deepEqual([plain.condition, plain.injected], ['timeout', true]);
    const slow = await drill({ condition: 'server_error', latency_ms: 50 });
    assert.equal(slow.condition, 'server_error');
    // Timers use another clock and whole milliseconds.
    assert.ok(slow.latency_ms >= 48, `${slow.latency_ms}`);
  });
});

describe('A test with real calls', () => {
  test('ends a prompt at its deadline, whatever hangs [F26]', async (t) => {
    const service = await startLive(t);
    const provider = await startProvider(t, hanging);
    const result = await live(service, [{ name: 'a', model_id: 'm', api_base: provider.base }], [], { deadline_ms: 50 });
    assert.deepEqual([result.results[0]!.error, result.results[0]!.success], ['timeout', false]);
    assert.ok(result.results[0]!.latency_ms < 5000);
  });

  test('aborts its calls when it is cancelled', async (t) => {
    const service = await startLive(t);
    const called = Promise.withResolvers<Socket>();
    const provider = await startProvider(t, (response) => called.resolve(response.socket!));
    const body = { name: 'c', providers: [{ name: 'a', model_id: 'm', api_base: provider.base, timeout_ms: 600_000 }] };
    const chain = await service.call('POST', '/chains', { body });
    const started = await service.call('POST', `/chains/${chain.body.id}/test`, {
      body: { mode: 'live' },
      headers: { prefer: 'respond-async' },
    });
    assert.equal(started.status, 202);
    const socket = await called.promise;
    assert.equal(socket.destroyed, false);
    const cancelled = await service.call('DELETE', `/test-results/${started.body.id}`);
    assert.equal(cancelled.status, 200);
    assert.deepEqual([cancelled.body.status, cancelled.body.progress], ['cancelled', { done: 0, total: 5 }]);
    await closed(socket);
  });
});

describe('An error as a provider publishes it', () => {
  test('is recognized by its status and its words in live tests [F104]', async (t) => {
    const service = await startLive(t);
    const provider = await startProvider(t);
    for (const { kinds, condition, status: code, body } of providerErrors) {
      provider.does(status(code, JSON.stringify(body), { 'content-type': 'application/json' }));
      const result = await live(service, [{ name: 'a', model_id: 'm', api_base: provider.base }]);
      assert.equal(result.results[0]!.error, condition, `${kinds[0]} ${code} ${JSON.stringify(body)}`);
    }
  });

  test('is recognized by exported modules as well [F104]', () => {
    const chain = define({ name: 'one', providers: [{ name: 'a', model_id: 'm' }] });
    const { content } = exportChain('ai-sdk', { chain, routing: routingOf(chain), prefer: 'failover' });
    const part = content.slice(content.indexOf('const signs'), content.indexOf('/** Throws if an answer is empty'));
    const conditionOf = new Function(`${part}; return conditionOf;`)() as (failure: object) => string;
    for (const { condition, status: code, body } of providerErrors)
      assert.equal(conditionOf({ status: code, words: JSON.stringify(body) }), condition, JSON.stringify(body));
  });

  test('of a stream of a fake provider comes before or after its content, in each protocol [F133]', () => {
    for (const protocol of ['chat', 'messages', 'responses'] as const) {
      const react = (condition: 'first_token_timeout' | 'interrupted', status_code: number | null) => {
        const fault = { condition, status_code, retry_after_ms: null };
        const reaction = fakeReaction({ kind: 'any', endpoint: protocol, provider: 'p0', model: 'm', stream: true, tool: null }, fault);
        if (typeof reaction === 'string') throw new Error(`A stream has a head: ${reaction}`);
        return [
          reaction.status,
          reaction.then,
          reaction.body.includes('p0 answers.'),
          /\[DONE\]|message_stop|response\.completed/.test(reaction.body),
        ];
      };
      assert.deepEqual(react('first_token_timeout', null), [200, 'silence', false, false], protocol);
      assert.deepEqual(react('interrupted', 200), [200, 'cut', true, false], protocol);
    }
  });

  test('of a fake provider is one of its condition, for every kind and status [F104]', () => {
    const kinds = new Set(providerErrors.flatMap((one) => one.kinds));
    for (const kind of [...kinds, 'unknown'])
      for (const condition of conditions)
        for (const code of traitsOf[condition].statuses) {
          if (code === null || code < 300) continue;
          const fault = { condition, status_code: code, retry_after_ms: null };
          const endpoint = kind === 'anthropic' ? 'messages' : 'chat';
          const call = { kind, provider: 'a', model: 'm', stream: false, tool: null };
          const reaction = fakeReaction({ ...call, endpoint }, fault);
          if (typeof reaction === 'string') continue;
          assert.equal(reaction.status, code);
          assert.equal(conditionOf(code, reaction.body), condition, `${kind} ${code} ${reaction.body}`);
          const byMessages = fakeReaction({ ...call, endpoint: 'messages' }, fault);
          if (kind === 'unknown' && typeof byMessages !== 'string') assert.match(byMessages.body, /^\{"type":"error"/);
        }
  });
});
