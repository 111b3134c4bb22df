import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { stringify } from 'yaml';

import { type ChainRequest, type Condition, conditions } from '../../../src/fallback/model/chain.ts';
import type { Finding } from '../../../src/fallback/model/finding.ts';
import { detectFormat } from '../../../src/fallback/model/targets.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { usualStatus } from '../../../src/fallback/rules/conditions.ts';
import { createEngine, decide, initialPosition } from '../../../src/fallback/rules/engine.ts';
import { routingOf } from '../../../src/fallback/rules/routing.ts';
import { exportChain } from '../../../src/fallback/rules/targets/export.ts';
import { importChain } from '../../../src/fallback/rules/targets/import.ts';
import { threeProviders } from '../../support/chains.ts';
import { shareFallback, startFallback, type TestFallback } from '../../support/fallback.ts';

const send = (service: TestFallback, format: string, content: unknown, more: Record<string, unknown> = {}) =>
  service.call('POST', `/import?format=${format}`, { body: { content, ...more } });

const litellm = {
  model_list: [
    { model_name: 'main', litellm_params: { model: 'openai/gpt-4o', api_key: 'os.environ/OPENAI_API_KEY', timeout: 12.5 } },
    { model_name: 'unused', litellm_params: { model: 'openai/gpt-4.1' } },
    { model_name: 'last', litellm_params: { model: 'groq/llama', api_key: 'os.environ/GROQ_API_KEY', mode: 'chat' } },
    { model_name: 'second', litellm_params: { model: 'anthropic/claude-sonnet-4-5', api_key: 'sk-ant-secret-of-somebody' } },
  ],
  litellm_settings: { num_retries: 0, fallbacks: [{ main: ['second', 'last'] }] },
  router_settings: { retry_policy: { RateLimitErrorRetries: 2 }, routing_strategy: 'simple-shuffle' },
  general_settings: { master_key: 'sk-master' },
};

const portkey = {
  strategy: { mode: 'fallback', on_status_codes: [429, 500, 503] },
  targets: [
    {
      provider: 'openai',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: as Portkey's files refer to variables
      api_key: '${OPENAI_API_KEY}',
      override_params: { model: 'gpt-4o' },
      request_timeout: 5000,
      retry: { attempts: 2, on_status_codes: [429] },
    },
    { provider: 'mistral-ai', virtual_key: 'abc', override_params: { model: 'mistral-large' } },
  ],
};

describe('POST /import', () => {
  test('201: json and yaml, in content or as the body itself, return the chain and its location [F75]', async () => {
    const service = await shareFallback();
    const { name } = threeProviders;
    const yaml = stringify(threeProviders);
    const answers = [
      await send(service, 'json', threeProviders),
      await send(service, 'json', JSON.stringify(threeProviders)),
      await send(service, 'yaml', yaml),
      await service.call('POST', '/import', { body: threeProviders }),
      await service.call('POST', '/import?format=yaml', { raw: yaml, headers: { 'content-type': 'application/yaml' } }),
      await service.call('POST', '/import?format=yaml', {
        raw: yaml,
        headers: { 'content-type': 'text/plain; charset=utf-8', 'x-requested-with': 'test' },
      }),
    ];
    for (const { status, body, headers, text } of answers) {
      assert.equal(status, 201, text);
      assert.deepEqual([body.chain.name, body.chain.providers.length, body.findings], [name, 3, []]);
      const found = await service.call('GET', String(headers.location));
      assert.deepEqual([found.status, found.body, found.headers.etag], [200, body.chain, headers.etag]);
    }
  });

  test('201: a chain as returned by the service can be imported unchanged [F78]', async () => {
    const service = await shareFallback();
    const { body: chain } = await service.call('POST', '/chains', { body: threeProviders });
    const { status, body } = await send(service, 'json', chain);
    assert.equal(status, 201);
    assert.notEqual(body.chain.id, chain.id);
    assert.deepEqual(body.chain.providers, chain.providers);
    assert.deepEqual(
      body.findings.map(({ field }: { field: string }) => field),
      ['id', 'version', 'created_at', 'updated_at', 'warnings'],
    );
  });

  test('201: LiteLLM: the first group names the chain and fallbacks its order; findings list what was not imported, and no key is stored [F75, F78]', async () => {
    const service = await shareFallback();
    const { status, body, text } = await send(service, 'litellm', stringify(litellm));
    assert.equal(status, 201, text);
    const { chain, findings } = body;
    assert.equal(chain.name, 'main');
    assert.deepEqual(
      chain.providers.map(({ name, model_id, provider, api_key_env, timeout_ms }: Record<string, unknown>) => [
        name,
        model_id,
        provider,
        api_key_env,
        timeout_ms,
      ]),
      [
        ['main', 'gpt-4o', 'openai', 'OPENAI_API_KEY', 12_500],
        ['second', 'claude-sonnet-4-5', 'anthropic', null, 30_000],
        ['last', 'llama', 'groq', 'GROQ_API_KEY', 30_000],
      ],
    );
    assert.deepEqual(
      chain.fallback_rules.map(({ condition, action, max_retries }: Record<string, unknown>) => [condition, action, max_retries]),
      [
        // LiteLLM takes 429 for a rate limit, whatever its code.
        ['quota_exceeded', 'retry', 2],
        ['rate_limit', 'retry', 2],
        ['interrupted', 'fail', null],
        ['any', 'failover', null],
      ],
    );
    const fields = findings.map(({ kind, field }: Record<string, unknown>) => `${kind} ${field}`);
    for (const finding of [
      'left_out general_settings',
      'left_out model_list.1',
      'left_out model_list.2.litellm_params.mode',
      'key_left_out model_list.3.litellm_params.api_key',
      'left_out router_settings.routing_strategy',
    ])
      assert.ok(fields.includes(finding), `${finding}: ${fields.join(', ')}`);
    assert.ok(!text.includes('sk-ant') && !text.includes('sk-master'));
    assert.ok(!service.logs.join('').includes('sk-ant'));
  });

  test('201: LiteLLM: the chain starts at the group that has fallbacks and is not itself a fallback, wherever it is in the file [F75]', async () => {
    const service = await shareFallback();
    const model_list = ['last', 'second', 'main'].map((model_name) => ({
      model_name,
      litellm_params: { model: `openai/${model_name}` },
    }));
    const circle = [{ second: ['main'] }, { main: ['last', 'second'] }];
    for (const settings of [
      { router_settings: { fallbacks: [{ second: ['last'] }, { main: ['second'] }] } },
      { litellm_settings: { default_fallbacks: ['second', 'last'] } },
      { litellm_settings: { fallbacks: [{ '*': ['second', 'last'] }] } },
    ]) {
      const { status, body, text } = await send(service, 'litellm', { model_list, ...settings });
      assert.equal(status, 201, text);
      assert.equal(body.chain.name, 'main');
      assert.deepEqual(
        body.chain.providers.map(({ model_id }: { model_id: string }) => model_id),
        ['main', 'second', 'last'],
      );
      assert.deepEqual(
        body.findings.filter(({ kind }: { kind: string }) => kind === 'left_out'),
        [],
      );
    }
    const round = await send(service, 'litellm', { model_list, router_settings: { fallbacks: circle } });
    assert.deepEqual([round.status, round.body.candidates], [400, ['last', 'second', 'main']]);
  });

  test('400: LiteLLM with several chains names where each starts, and group chooses one [F75]', async () => {
    const service = await shareFallback();
    const model_list = ['a', 'b', 'c'].map((model_name) => ({ model_name, litellm_params: { model: `openai/${model_name}` } }));
    const body = { content: { model_list, router_settings: { fallbacks: [{ a: ['c'] }, { b: ['c'] }] } } };
    const refused = await service.call('POST', '/import?format=litellm', { body });
    assert.deepEqual(
      [refused.status, refused.body.field, refused.body.detail],
      [400, 'group', 'The file has several chains; name the first model of one of them as group: a, b and c.'],
    );
    assert.deepEqual(refused.body.candidates, ['a', 'b', 'c']);
    const chosen = await service.call('POST', '/import?format=litellm&group=b', { body });
    assert.deepEqual([chosen.status, chosen.body.chain.name], [201, 'b']);
    const unknown = await service.call('POST', '/import?format=litellm&group=x', { body });
    assert.deepEqual([unknown.status, unknown.body.detail], [400, 'group names no model_name of the file; it has a, b and c.']);
    assert.equal((await service.call('POST', '/import?format=json&group=b', { body })).body.field, 'group');
  });

  test('201: Portkey: targets in order, statuses as rules, and the given name [F75]', async () => {
    const service = await shareFallback();
    const { status, body, text } = await send(service, 'portkey', portkey, { name: 'mine' });
    assert.equal(status, 201, text);
    assert.equal(body.chain.name, 'mine');
    assert.deepEqual(
      body.chain.providers.map(({ provider, timeout_ms }: Record<string, unknown>) => [provider, timeout_ms]),
      [
        ['openai', 5000],
        ['mistral', 30_000],
      ],
    );
    assert.ok(body.findings.some(({ field }: { field: string }) => field === 'targets.1.virtual_key'));
    const { body: routing } = await service.call('GET', `/chains/${body.chain.id}/routing`);
    const [first] = routing.providers;
    const decision = (condition: string) => first.decisions.find((known: { condition: string }) => known.condition === condition);
    assert.deepEqual([decision('rate_limit').max_retries, decision('rate_limit').next_provider], [2, 'mistral-large']);
    assert.equal(decision('server_error').next_provider, 'mistral-large');
    assert.equal(decision('auth_error').next_provider, null);
    const unnamed = await send(service, 'portkey', portkey);
    assert.equal(unnamed.body.chain.name, 'imported-portkey');
  });
});

const imported = async (format: string, content: unknown) => {
  const { status, body, text } = await send(await shareFallback(), `${format}&dry_run=true`, content);
  assert.equal(status, 200, text);
  return body;
};
/** The calls of a chain whose providers all fail in this way. */
function simulatedCalls(chain: ChainRequest, condition: Condition, status_code = usualStatus(condition)): string {
  const engine = createEngine(define(chain));
  const [position, calls] = [initialPosition(engine), [chain.providers[0]!.name]];
  const failure = { condition, status_code, retry_after_ms: null };
  while (decide(engine, position, failure, { random: () => 0, elapsed_ms: 0, deadline_ms: null }).end === null)
    calls.push(chain.providers[position.provider]!.name);
  return calls.join(' ');
}

const codesOf = ({ findings }: { findings: { kind: string; field: string }[] }) => findings.map(({ kind, field }) => `${kind} ${field}`);
const rulesOf = ({ chain }: { chain: { fallback_rules: Record<string, unknown>[] } }) =>
  chain.fallback_rules.map(({ condition, action, max_retries, providers }) =>
    [condition, action, max_retries, providers].filter((value) => value !== null).join(' '),
  );

describe('?dry_run=true', () => {
  test('200: the chain, its findings and its warnings, and nothing is stored [F75]', async () => {
    const service = await shareFallback();
    const { status, body } = await send(service, 'litellm&dry_run=true', stringify(litellm));
    assert.deepEqual([status, body.chain.name, body.chain.id, body.chain.providers.length], [200, 'main', undefined, 3]);
    assert.ok(body.findings.length > 0 && body.warnings.length > 0);
    assert.equal((await service.call('GET', '/chains')).headers['x-total-count'], '0');
  });

  test('400 where an import would get 400 [F75]', async () => {
    const { status, body } = await send(await shareFallback(), 'litellm&dry_run=true', { model_list: [] });
    assert.deepEqual([status, body.field], [400, 'model_list']);
  });
});

describe('LiteLLM', () => {
  const model = (model_name: string, params: Record<string, unknown>) => ({ model_name, litellm_params: { timeout: 10, ...params } });
  const settings = { num_retries: 0 };

  test('azure, bedrock and vertex_ai keep their parameters; a secret is kept only as a reference [F79]', async () => {
    const { chain, findings } = await imported('litellm', {
      model_list: [
        model('a', {
          model: 'azure/my-gpt',
          api_base: 'os.environ/AZURE_API_BASE',
          api_key: 'os.environ/AZURE_API_KEY',
          api_version: '2024-10-21',
        }),
        model('a', {
          model: 'bedrock/anthropic.claude-v2',
          aws_region_name: 'us-east-1',
          aws_access_key_id: 'os.environ/AWS_KEY',
          aws_secret_access_key: 'x',
        }),
        model('a', { model: 'vertex_ai/gemini-2.5-pro', vertex_project: 'p', extra_headers: { 'x-team': 'a', authorization: 'Bearer x' } }),
      ],
      router_settings: settings,
    });
    assert.deepEqual(
      chain.providers.map(({ provider, model_id, params }: Record<string, unknown>) => [provider, model_id, params]),
      [
        ['azure', 'my-gpt', { api_version: '2024-10-21', api_base: 'os.environ/AZURE_API_BASE' }],
        ['bedrock', 'anthropic.claude-v2', { aws_region_name: 'us-east-1', aws_access_key_id: 'os.environ/AWS_KEY' }],
        ['vertex_ai', 'gemini-2.5-pro', { vertex_project: 'p', headers: { 'x-team': 'a' } }],
      ],
    );
    const left = codesOf({ findings }).filter((finding) => finding.startsWith('key_left_out'));
    assert.deepEqual(left, [
      'key_left_out model_list.1.litellm_params.aws_secret_access_key',
      'key_left_out model_list.2.litellm_params.extra_headers.authorization',
    ]);
  });

  test('a bare model gets the kind that LiteLLM infers, and an unknown kind is kept [F79]', async () => {
    const { chain } = await imported('litellm', {
      model_list: ['gpt-4o', 'o3', 'claude-sonnet-4-5', 'gemini-2.5-pro', 'my-cloud/llama', 'together_ai/x'].map((name) =>
        model('a', { model: name }),
      ),
      router_settings: settings,
    });
    const kinds = chain.providers.map(({ provider, model_id }: Record<string, unknown>) => `${provider} ${model_id}`);
    assert.deepEqual(kinds, [
      'openai gpt-4o',
      'openai o3',
      'anthropic claude-sonnet-4-5',
      'vertex_ai gemini-2.5-pro',
      'my-cloud my-cloud/llama',
      'together x',
    ]);
  });

  test('timeouts and retries come from the model, the group or the router, in this order [F78]', async () => {
    const body = await imported('litellm', {
      model_list: [
        model('a', { model: 'openai/a', timeout: 0.5, num_retries: 3 }),
        { model_name: 'b', litellm_params: { model: 'openai/b' } },
        model('c', { model: 'openai/c', timeout: '900' }),
      ],
      litellm_settings: { request_timeout: 20, num_retries: 1, fallbacks: [{ a: ['b'] }, { b: ['c'] }] },
      router_settings: { allowed_fails: 2, model_group_retry_policy: { b: { RateLimitErrorRetries: 4 } } },
    });
    assert.deepEqual(
      body.chain.providers.map(({ timeout_ms }: { timeout_ms: number }) => timeout_ms),
      [500, 20_000, 600_000],
    );
    assert.deepEqual(rulesOf(body), [
      // LiteLLM retries these statuses like failures of a server.
      'auth_error retry 3 a',
      'quota_exceeded retry 3 a',
      'invalid_request retry 3 a',
      'auth_error retry 1 b,c',
      'quota_exceeded retry 4 b',
      'invalid_request retry 1 b,c',
      'quota_exceeded retry 1 c',
      'rate_limit retry 4 b',
      // LiteLLM passes on a stream that breaks off.
      'interrupted fail',
      ...['auth_error', 'quota_exceeded', 'model_not_found', 'context_length', 'content_filter'].map(
        (condition) => `${condition} failover`,
      ),
      ...['unsupported_request', 'invalid_request'].map((condition) => `${condition} failover`),
      'any retry 3 a',
      'any retry 1',
    ]);
    assert.ok(codesOf(body).includes('reduced model_list.2.litellm_params.timeout'));
    assert.equal(body.chain.cooldown?.allowed_fails, 2);
  });

  test('request_timeout comes before the timeout of the router, and is the limit of streams beside it; a longer limit of streams than the timeout is a loss of streams [F165]', async () => {
    const entries = [model('a', { model: 'openai/a', timeout: 2 }), { model_name: 'b', litellm_params: { model: 'openai/b' } }];
    const read = async (request_timeout: number | undefined, routers: object, first: object = {}) => {
      const [one, other] = entries as [{ litellm_params: object }, object];
      const model_list = [{ ...one, litellm_params: { ...one.litellm_params, ...first } }, other];
      const { chain, findings } = await imported('litellm', {
        model_list,
        litellm_settings: { request_timeout },
        router_settings: { ...settings, ...routers, fallbacks: [{ a: ['b'] }] },
      });
      const limits = chain.providers.map(({ timeout_ms, first_token_ms, idle_ms }: Record<string, number>) => [
        timeout_ms,
        first_token_ms,
        idle_ms,
      ]);
      const longer = findings.flatMap(({ kind, provider, condition, loss, stream }: Finding) =>
        kind === 'timeout' ? [[provider, condition, loss, stream]] : [],
      );
      return { limits, longer };
    };
    const ofStreams = ['a', 'timeout', true, true];
    assert.deepEqual(await read(20, { timeout: 10 }), {
      limits: [
        [2000, null, null],
        [20_000, 20_000, 20_000],
      ],
      longer: [ofStreams],
    });
    assert.deepEqual(await read(20, {}), {
      limits: [
        [2000, null, null],
        [20_000, null, null],
      ],
      longer: [],
    });
    assert.deepEqual(await read(undefined, { timeout: 10 }), {
      limits: [
        [2000, null, null],
        [10_000, null, null],
      ],
      longer: [],
    });
    assert.deepEqual(await read(undefined, { timeout: 10 }, { stream_timeout: 1 }), {
      limits: [
        [2000, 1000, 1000],
        [10_000, null, null],
      ],
      longer: [],
    });
    assert.deepEqual(await read(undefined, { timeout: 10 }, { stream_timeout: 5 }), {
      limits: [
        [2000, null, null],
        [10_000, null, null],
      ],
      longer: [ofStreams],
    });
  });

  test('a loss names the versions with which it was measured, and none where it follows from what a chain can have [F108]', async () => {
    const { findings } = await imported('litellm', {
      model_list: [{ ...model('a', { model: 'unmeasured_kind/a' }), other: 1 }, model('b', { model: 'openai/b', num_retries: 500 })],
      router_settings: { num_retries: 0, fallbacks: [{ a: ['b'] }], content_policy_fallbacks: [] },
      custom_provider_map: undefined,
    });
    const of = (...kinds: string[]) => [
      ...new Set(findings.flatMap(({ kind, loss, measured }: Finding) => (kinds.includes(kind) && loss ? [measured] : []))),
    ];
    assert.deepEqual(of('left_out', 'reduced', 'errors'), [null]);
    assert.deepEqual(of('unknown_provider', 'calls'), ['LiteLLM 1.106.2 and 1.110.2']);
    const clouds = await imported('litellm', {
      model_list: [model('a', { model: 'openai/a' }), model('b', { model: 'bedrock/b' })],
      router_settings: { num_retries: 0, fallbacks: [{ a: ['b'] }] },
    });
    const ofProvider = (name: string) => [
      ...new Set(clouds.findings.flatMap(({ provider, loss, measured }: Finding) => (provider === name && loss ? [measured] : []))),
    ];
    assert.deepEqual([ofProvider('a'), ofProvider('b')], [['LiteLLM 1.106.2 and 1.110.2'], ['LiteLLM 1.106.2']]);
    // Of other kinds nothing was measured, but that LiteLLM does not know their names.
    const ofUnmeasured = findings.filter(({ provider, loss, kind }: Finding) => provider === 'a' && loss && kind !== 'unknown_provider');
    assert.deepEqual([...new Set(ofUnmeasured.map(({ measured }: Finding) => measured))], [null]);
    assert.ok(ofUnmeasured.some(({ kind }: Finding) => kind === 'stream'));
  });

  test('the limits of streams come from the model or the router, and findings of streams say what LiteLLM does otherwise at each [F134]', async () => {
    const body = await imported('litellm', {
      model_list: [model('a', { model: 'openai/a', stream_timeout: 2 }), model('b', { model: 'openai/b' })],
      router_settings: { ...settings, stream_timeout: 7, fallbacks: [{ a: ['b'] }] },
    });
    assert.deepEqual(
      body.chain.providers.map(({ first_token_ms, idle_ms }: Record<string, number>) => [first_token_ms, idle_ms]),
      [
        [2_000, 2_000],
        [7_000, 7_000],
      ],
    );
    const found = body.findings.filter(({ kind }: Finding) => kind === 'stream');
    assert.deepEqual(
      found.map(({ provider, condition, loss, stream }: Finding) => [provider, condition, loss, stream]),
      [
        ...['invalid_response', 'interrupted', 'content_filter', 'first_token_timeout'].map((condition) => ['a', condition, true, true]),
        ...['invalid_response', 'interrupted', 'first_token_timeout'].map((condition) => ['b', condition, true, true]),
      ],
    );
    assert.ok(rulesOf(body).includes('interrupted fail'));
    assert.equal(simulatedCalls(body.chain, 'first_token_timeout'), 'a b', 'without a retry');
  });

  test('a stream that breaks off ends the prompt at every model, also in a retry and at a fallback of a fallback [F134]', async () => {
    const nested = await imported('litellm', {
      model_list: ['a', 'b', 'c', 'd'].map((name) => model(name, { model: `openai/${name}` })),
      router_settings: { ...settings, fallbacks: [{ a: ['b', 'd'] }, { b: ['c'] }] },
    });
    const retried = await imported('litellm', {
      model_list: ['a', 'b', 'c'].map((name) => model('group', { model: `openai/${name}` })),
      router_settings: { ...settings, retry_policy: { AuthenticationErrorRetries: 2, DefaultRetries: 2 } },
    });
    for (const body of [nested, retried])
      assert.deepEqual(
        rulesOf(body).filter((rule) => rule.startsWith('interrupted')),
        ['interrupted fail'],
      );
  });

  test('fallbacks of one condition fail over on that one alone [F78]', async () => {
    const body = await imported('litellm', {
      model_list: ['a', 'b'].map((name) => model(name, { model: `openai/${name}` })),
      router_settings: { ...settings, context_window_fallbacks: [{ a: ['b'] }] },
    });
    assert.deepEqual([body.chain.providers.length, rulesOf(body)], [2, ['context_length failover', 'any fail']]);
  });

  const models = (...names: string[]) => names.map((name) => model(name, { model: `openai/${name}` }));
  const still = { ...settings, disable_cooldowns: true };
  /** The providers that are called if the first one fails in this way and the others with a server error. */
  const pathOf = ({ chain }: { chain: ChainRequest }, condition: Condition) => {
    const engine = createEngine(define(chain));
    const [position, calls] = [initialPosition(engine), [chain.providers[0]!.name]];
    const circumstances = { random: () => 0, elapsed_ms: 0, deadline_ms: null };
    for (let failing = condition; ; failing = calls.length > 1 ? 'server_error' : condition) {
      const failure = { condition: failing, status_code: null, retry_after_ms: null };
      if (decide(engine, position, failure, circumstances).end !== null) return calls.join(' ');
      calls.push(chain.providers[position.provider]!.name);
    }
  };
  const losses = ({ findings }: { findings: Finding[] }) =>
    findings.flatMap(({ kind, provider, condition, loss, stream }) => (loss && !stream ? [`${kind} ${provider} ${condition}`] : []));

  test('default_fallbacks are only those of groups without fallbacks', async () => {
    const router_settings = { ...still, fallbacks: [{ gpt: ['claude'] }], default_fallbacks: ['mistral'] };
    const body = await imported('litellm&group=gpt', { model_list: models('gpt', 'claude', 'mistral'), router_settings });
    assert.equal(pathOf(body, 'server_error'), 'gpt claude');
    const other = await imported('litellm&group=claude', { model_list: models('gpt', 'claude', 'mistral'), router_settings });
    assert.equal(pathOf(other, 'server_error'), 'claude mistral');
  });

  test('the retry policy of a group replaces that of the router', async () => {
    const router_settings = {
      ...still,
      fallbacks: [{ a: ['b'] }],
      retry_policy: { RateLimitErrorRetries: 3, TimeoutErrorRetries: 2 },
      model_group_retry_policy: { a: { TimeoutErrorRetries: 0 } },
    };
    const body = await imported('litellm', { model_list: models('a', 'b'), router_settings });
    assert.equal(pathOf(body, 'rate_limit'), 'a b');
    assert.equal(pathOf(body, 'timeout'), 'a b');
    assert.ok(rulesOf(body).includes('rate_limit retry 3 b') && rulesOf(body).includes('timeout retry 2 b'));
  });

  test('fallbacks for long prompts and content policies lead where LiteLLM goes, and back to the file', async () => {
    const router_settings = {
      ...still,
      fallbacks: [{ a: ['b'] }],
      context_window_fallbacks: [{ a: ['long', 'b'] }],
      content_policy_fallbacks: [{ b: ['a'] }],
    };
    const body = await imported('litellm&group=a', { model_list: models('a', 'b', 'long'), router_settings });
    assert.equal(pathOf(body, 'server_error'), 'a b');
    assert.equal(pathOf(body, 'context_length'), 'a long b');
    assert.equal(pathOf(body, 'content_filter'), 'a');
    const tooLarge = ['a', 'b', 'long'].map((name) => `status ${name} context_length`);
    assert.deepEqual(losses(body), ['withheld long content_filter', ...tooLarge, 'empty_answer null null']);
    const statusesOf = (name: string) =>
      new Set(body.findings.flatMap(({ kind, status_codes }: Finding) => (kind === name ? status_codes : [])));
    assert.deepEqual([[...statusesOf('withheld')], [...statusesOf('status')]], [[200], [413]]);
    const chain = define(body.chain);
    const { config } = exportChain('litellm', { chain, routing: routingOf(chain), prefer: 'failover' });
    const made = config as { router_settings: Record<string, unknown>; model_list: { model_name: string }[] };
    assert.deepEqual(
      made.model_list.map(({ model_name }) => model_name),
      ['a', 'b', 'long'],
    );
    assert.deepEqual(made.router_settings.fallbacks, [{ a: ['b'] }]);
    // A backup without a list of its own continues with that of the first group.
    assert.deepEqual(made.router_settings.context_window_fallbacks, [{ a: ['long', 'b'] }, { b: ['long'] }]);
    assert.deepEqual(made.router_settings.content_policy_fallbacks, [{ a: [] }]);
  });

  test('retries of a group are counted for the group; a random draw is a finding for each model and failure', async () => {
    const model_list = [...models('a', 'a', 'a', 'b')].map((one, index) => ({
      ...one,
      litellm_params: { ...one.litellm_params, model: `openai/${index}` },
    }));
    const body = await imported('litellm', { model_list, router_settings: { ...still, num_retries: 3, fallbacks: [{ a: ['b'] }] } });
    const down = simulatedCalls(body.chain, 'server_error');
    assert.equal(down, 'a a-2 a-3 a-3 b b b b');
    assert.ok(losses(body).includes('load_balanced a server_error') && losses(body).includes('load_balanced a-2 timeout'));
    assert.ok(!losses(body).some((loss) => loss.includes(' b ')));
  });

  test('models without a weight, which are drawn after those with one refuse, have a finding for each failure', async () => {
    const { findings } = await imported('litellm', {
      model_list: [
        model('a', { model: 'openai/a', weight: 1 }),
        model('a', { model: 'openai/b' }),
        model('a', { model: 'openai/c' }),
        model('d', { model: 'openai/d' }),
      ],
      router_settings: { num_retries: 1, disable_cooldowns: true, fallbacks: [{ a: ['d'] }] },
    });
    const cells = (name: string) =>
      findings.filter(({ loss, provider }: Finding) => loss && provider === name).map(({ condition }: Finding) => condition);
    for (const name of ['a-2', 'a-3']) assert.deepEqual([...new Set(cells(name))].sort(), [...conditions].sort());
  });

  test('a model that only certain failures of another lead to does what follows these', async () => {
    const { chain } = await imported('litellm', {
      model_list: [
        model('a', { model: 'openai/a', weight: 1 }),
        model('a', { model: 'openai/b' }),
        ...['d', 'e'].map((name) => model(name, { model: `openai/${name}` })),
      ],
      router_settings: { num_retries: 1, disable_cooldowns: true, fallbacks: [{ a: ['d', 'e'] }] },
    });
    const { providers } = routingOf(define(chain));
    const { action, next_provider } = providers
      .find(({ name }) => name === 'a-2')!
      .decisions.find(({ condition }) => condition === 'rate_limit')!;
    // The refusal of the first model has used the only retry.
    assert.deepEqual([action, next_provider], ['failover', 'd']);
  });

  describe('a file is read as LiteLLM reads it', () => {
    const models = (...names: string[]) => names.map((name) => model(name, { model: `openai/${name.replace('/', '-')}` }));
    const called = async (content: object, { condition = 'server_error' as Condition, group = '' } = {}) => {
      const { chain, findings } = await imported(group === '' ? 'litellm' : `litellm&group=${encodeURIComponent(group)}`, content);
      return { calls: simulatedCalls(chain, condition), said: codesOf({ findings }), findings };
    };

    test('an empty list or null in router_settings leaves what litellm_settings has', async () => {
      const { calls } = await called({
        model_list: models('a', 'b'),
        litellm_settings: { num_retries: 1, fallbacks: [{ a: ['b'] }] },
        router_settings: { num_retries: null, fallbacks: [], disable_cooldowns: true },
      });
      assert.equal(calls, 'a a b b');
    });

    test('a setting in the section where LiteLLM ignores it is not imported', async () => {
      const { calls, said } = await called(
        {
          model_list: models('a', 'b'),
          litellm_settings: { retry_policy: { RateLimitErrorRetries: 3 } },
          router_settings: { ...settings, request_timeout: 5, disable_cooldowns: true, fallbacks: [{ a: ['b'] }] },
        },
        { condition: 'rate_limit' },
      );
      assert.equal(calls, 'a b');
      assert.deepEqual(
        said.filter((one) => one.startsWith('left_out')),
        ['left_out litellm_settings.retry_policy', 'left_out router_settings.request_timeout'],
      );
    });

    test('the first map of a group counts, and the last of *, which is that of default_fallbacks', async () => {
      const fallbacks = [{ a: ['b'] }, { a: ['c'] }, { '*': ['c'] }];
      const router_settings = { ...settings, fallbacks, default_fallbacks: ['d'] };
      const content = { model_list: models('a', 'b', 'c', 'd', 'e'), router_settings };
      for (const [group, calls] of [
        ['a', 'a b'],
        ['e', 'e d'],
      ] as const) {
        const { chain } = await imported(`litellm&group=${group}`, content);
        assert.equal(simulatedCalls(chain, 'server_error'), calls);
      }
    });

    test('a group has the fallbacks of its name without the provider; those of its name with one are a loss for each failure', async () => {
      const fallbacksOf = (group: string, key: string) =>
        called({ model_list: models(group, 'b'), router_settings: { ...settings, fallbacks: [{ [key]: ['b'] }] } }, { group });
      assert.equal((await fallbacksOf('openai/gpt-4o', 'gpt-4o')).calls, 'openai/gpt-4o b');
      const { calls, findings } = await fallbacksOf('gpt-4o', 'openai/gpt-4o');
      assert.equal(calls, 'gpt-4o');
      const losses = findings.filter(({ kind, loss, provider }: Finding) => kind === 'other_name' && loss && provider === 'gpt-4o');
      assert.deepEqual(losses.map(({ condition }: Finding) => condition).sort(), [...conditions].sort());
    });

    test('a backup may be an alias or fit a pattern', async () => {
      const { calls, said } = await called({
        model_list: [...models('a', 'b'), model('any/*', { model: 'groq/*' })],
        router_settings: {
          ...settings,
          fallbacks: [{ a: ['other', 'any/llama'] }],
          model_group_alias: { other: { model: 'b', hidden: true } },
        },
      });
      assert.equal(calls, 'a b any/llama');
      assert.ok(!said.some((one) => one.startsWith('unknown_model') || one.startsWith('left_out')), said.join());
    });

    test('a model that fits a pattern only with the provider that LiteLLM infers is a finding, since it infers that of models it knows', async () => {
      const model_list = [...models('a'), model('openai/*', { model: 'openai/*' })];
      const importOf = (backup: string, group: string) =>
        imported(`litellm&group=${group}`, { model_list, router_settings: { ...still, fallbacks: [{ a: [backup] }] } });
      const inferred = (body: { findings: Finding[] }) => body.findings.filter(({ kind }) => kind === 'inferred');
      const found = inferred(await importOf('gpt-x', 'a'));
      assert.deepEqual(new Set(found.map(({ provider }) => provider)), new Set(['a']));
      assert.ok(found.some(({ condition, loss }) => condition === 'server_error' && loss));
      assert.match(found[0]!.detail, /^LiteLLM takes gpt-x for openai\/gpt-x if its own list of models has it, and refuses it otherwise;/);
      assert.deepEqual(inferred(await importOf('openai/gpt-x', 'a')), []);
      const ofFirst = inferred(await importOf('a', 'gpt-x'));
      assert.deepEqual(
        ofFirst.map(({ provider, condition, loss }) => [provider, condition, loss]),
        conditions.map((condition) => ['gpt-x', condition, true]),
      );
    });

    test('a pattern has no fallbacks, and as the first group it is a finding', async () => {
      const { calls, said } = await called({
        model_list: [model('openai/*', { model: 'openai/*' }), ...models('b')],
        router_settings: { ...settings, fallbacks: [{ 'openai/*': ['b'] }] },
      });
      assert.equal(calls, 'openai/*');
      assert.ok(said.includes('left_out router_settings.fallbacks.0.openai/*') && said.includes('pattern model_list'), said.join());
    });

    test('a group that the file lacks is that of the first default fallback, of which a finding tells', async () => {
      const { calls, findings } = await called({
        model_list: models('a', 'b', 'c'),
        router_settings: { ...settings, fallbacks: [{ a: ['typo', 'b'] }], default_fallbacks: ['c'] },
      });
      assert.equal(calls, 'a c b');
      assert.match(findings.find(({ kind }: Finding) => kind === 'unknown_model').detail, /LiteLLM then calls c\.$/);
    });

    test('a group that the file lacks is that of the first list of * with a group, though the last list of * counts otherwise', async () => {
      const { calls } = await called(
        {
          model_list: models('a', 'b', 'c'),
          router_settings: { ...settings, fallbacks: [{ '*': [] }, { '*': ['b', 'c'] }], default_fallbacks: ['typo'] },
        },
        { group: 'a' },
      );
      assert.equal(calls, 'a b');
    });

    test('of a group that is called for one that the file lacks, only the models of the lowest order are called', async () => {
      const levels = [1, 2].map((order) => model('c', { model: `openai/c-${order}`, order }));
      const { calls } = await called(
        {
          model_list: [...models('a'), ...levels],
          router_settings: { ...settings, fallbacks: [{ a: ['typo'] }], default_fallbacks: ['c'] },
        },
        { group: 'a' },
      );
      assert.equal(calls, 'a c');
    });

    test('parameters of a backup and checks before calls are losses', async () => {
      const { findings } = await called({
        model_list: models('a', 'b'),
        router_settings: { ...settings, fallbacks: [{ a: [{ model: 'b', max_tokens: 5 }] }], enable_pre_call_checks: true },
      });
      const losses = findings.filter(({ loss }: Finding) => loss);
      assert.ok(losses.some(({ field }: Finding) => field === 'router_settings.fallbacks.0.a.0'));
      for (const name of ['a', 'b'])
        assert.ok(
          losses.some(
            ({ kind, provider, condition }: Finding) => kind === 'pre_call_checks' && provider === name && condition === 'context_length',
          ),
        );
    });

    test('a map of several groups is refused as LiteLLM refuses it; of a map for long prompts the first group counts', async () => {
      const fallbacks = [{ a: ['b'], b: ['a'] }];
      const file = (name: string) => ({ model_list: models('a', 'b'), router_settings: { ...settings, [name]: fallbacks } });
      const refused = await send(await shareFallback(), 'litellm&dry_run=true', file('fallbacks'));
      assert.deepEqual([refused.status, refused.body.field], [400, 'router_settings.fallbacks.0']);
      const { said } = await called(file('context_window_fallbacks'));
      assert.ok(said.includes('left_out router_settings.context_window_fallbacks.0.b'), said.join());
    });
  });

  test('failures are retried as LiteLLM reads those of the kind of provider', async () => {
    const callsWith = async (kind: string, condition: Condition, status_code: number | null) => {
      const router_settings = { ...still, num_retries: 1, retry_policy: { BadRequestErrorRetries: 3, InternalServerErrorRetries: 2 } };
      const { chain } = await imported('litellm', { model_list: [model('a', { model: `${kind}/m` })], router_settings });
      return simulatedCalls(chain, condition, status_code).split(' ').length;
    };
    const cases: [Condition, number | null, Record<string, number>][] = [
      ['auth_error', 403, { openai: 2, anthropic: 1, bedrock: 1 }],
      ['server_error', 529, { openai: 2, anthropic: 3 }],
      ['server_error', 500, { openai: 3, azure: 2, openrouter: 2, bedrock: 2 }],
      ['server_error', 520, { openai: 2, anthropic: 2 }],
      ['quota_exceeded', 402, { openai: 1, anthropic: 4 }],
      ['invalid_request', 409, { openai: 2, gemini: 4 }],
      ['invalid_request', 415, { openai: 1, vertex_ai: 4 }],
      ['invalid_response', 200, { openai: 3, anthropic: 2, gemini: 4, deepseek: 1 }],
      ['connection_error', null, { openai: 3, azure: 2 }],
    ];
    for (const [condition, status, expected] of cases)
      for (const [kind, calls] of Object.entries(expected))
        assert.equal(await callsWith(kind, condition, status), calls, `${kind} ${condition} ${status}`);
  });

  test('a kind whose errors are unknown is a finding, and so is a setting that LiteLLM ignores', async () => {
    const model_list = [model('a', { model: 'replicate/m', max_retries: 3 })];
    const { findings } = await imported('litellm', { model_list, router_settings: still });
    const found = findings.flatMap(({ kind, provider, loss, stream }: Finding) => (stream ? [] : [[kind, provider, loss]]));
    assert.deepEqual(found, [
      ['left_out', null, false],
      ['errors', 'a', true],
    ]);
    assert.match(findings[0].detail, /max_retries is not imported, because LiteLLM's router ignores it/);
  });

  test('a key that is refused leads to the other models of its group', async () => {
    const group = (kind: string) => ['x', 'y'].map((name, weight) => model('a', { model: `${kind}/${name}`, weight: 1 - weight }));
    for (const status of [401, 403]) {
      const router_settings = { ...still, num_retries: 1, fallbacks: [{ a: ['b'] }] };
      const { chain } = await imported('litellm', { model_list: [...group('anthropic'), ...models('b')], router_settings });
      assert.match(simulatedCalls(chain, 'auth_error', status), /^a a-2 b/, String(status));
    }
  });

  test('an answer that a filter withheld goes to the caller where a group has no content_policy_fallbacks, which is a loss [F106]', async () => {
    const router_settings = { ...still, fallbacks: [{ a: ['b'] }] };
    assert.ok(losses(await imported('litellm', { model_list: models('a', 'b'), router_settings })).includes('withheld a content_filter'));
    for (const more of [{ content_policy_fallbacks: [{ a: ['b'] }] }, { default_fallbacks: ['b'] }]) {
      const body = await imported('litellm&group=a', { model_list: models('a', 'b'), router_settings: { ...router_settings, ...more } });
      assert.ok(!losses(body).includes('withheld a content_filter'), JSON.stringify(more));
    }
  });

  test('an alias is a group to start at, with the fallbacks of its own name, and a finding of the group whose fallbacks it lacks [F110]', async () => {
    const file = (fallbacks: object[]) => ({
      model_list: models('a', 'b', 'c'),
      router_settings: { ...still, fallbacks, model_group_alias: { z: 'a', y: { model: 'a', hidden: true }, x: 'nobody' } },
    });
    const own = await imported('litellm&group=z', file([{ z: ['c'] }, { a: ['b'] }]));
    assert.deepEqual([own.chain.name, pathOf(own, 'server_error')], ['z', 'a c']);
    const none = await imported('litellm&group=y', file([{ a: ['b'] }]));
    assert.deepEqual([none.chain.name, pathOf(none, 'server_error')], ['y', 'a']);
    const group = await imported('litellm&group=a', file([{ a: ['b'] }]));
    assert.match(group.findings.find(({ kind }: Finding) => kind === 'alias').detail, /^Calls of z and y, another name of a, do not have/);
    const alike = await imported('litellm&group=a', file([{ '*': ['b'] }]));
    assert.ok(!alike.findings.some(({ kind }: Finding) => kind === 'alias'));
    const service = await shareFallback();
    const unknown = await service.call('POST', '/import?format=litellm&dry_run=true&group=x', { body: { content: file([]) } });
    assert.equal(unknown.status, 400);
  });

  test('enable_weighted_failover, answers without content and the waits for Retry-After are losses, by group [F110]', async () => {
    const kinds = (settingsOf: object, ...names: string[]) =>
      imported('litellm&group=a', {
        model_list: models(...names),
        router_settings: { ...still, num_retries: 1, fallbacks: [{ a: ['b'] }], ...settingsOf },
      });
    const several = await kinds({ enable_weighted_failover: true, num_retries: 3 }, 'a', 'a', 'b');
    for (const condition of conditions)
      for (const provider of ['a', 'a-2']) assert.ok(losses(several).includes(`weighted_failover ${provider} ${condition}`), condition);
    assert.ok(!losses(several).some((loss) => loss.startsWith('weighted_failover b')));
    assert.deepEqual(
      several.findings.flatMap(({ kind, detail }: Finding) => (kind === 'waits' ? [detail.slice(0, 50)] : [])),
      ['Before each retry of b, LiteLLM waits as long as R', 'LiteLLM does not wait between calls of a, which ha'],
    );
    const single = await kinds({}, 'a', 'b');
    assert.ok(!losses(single).some((loss) => loss.startsWith('weighted_failover')));
    const empty = ({ findings }: { findings: Finding[] }) => findings.find(({ kind }) => kind === 'empty_answer')?.detail;
    assert.match(empty(single)!, /^LiteLLM returns an answer of a and b without content/);
    const refusing = { model_list: [model('a', { model: 'groq/m' })], router_settings: { ...still, num_retries: 1 } };
    assert.equal(empty(await imported('litellm', refusing)), undefined);
  });

  test('a model that is left out before its retries are over, by allowed_fails, is a loss, unless cool-downs are off [F116]', async () => {
    const cooling = async (more: object) => {
      const router_settings = { num_retries: 3, fallbacks: [{ a: ['b'] }], ...more };
      const body = await imported('litellm', { model_list: models('a', 'b'), router_settings });
      return losses(body).filter((loss) => loss === 'cooldowns a server_error' || loss === 'cooldowns a timeout');
    };
    assert.deepEqual(await cooling({ allowed_fails: 2 }), ['cooldowns a timeout', 'cooldowns a server_error']);
    assert.deepEqual(await cooling({ allowed_fails: 3 }), []);
    assert.deepEqual(await cooling({ allowed_fails_policy: { TimeoutErrorAllowedFails: 2 } }), ['cooldowns a timeout']);
    assert.deepEqual(await cooling({ allowed_fails: 2, disable_cooldowns: true }), []);
  });

  test('a group may be among its own fallbacks [F116]', async () => {
    const router_settings = { ...still, fallbacks: [{ a: ['a', 'b'] }] };
    assert.equal((await imported('litellm', { model_list: models('a', 'b'), router_settings })).chain.name, 'a');
  });

  test('a prompt that is too long for a model without context_window_fallbacks is a loss where versions of LiteLLM differ [F119]', async () => {
    const tooLong = async (more: object, orders: readonly number[] = []) => {
      const model_list = [
        ...orders.map((order) => model('a', { model: 'openai/m', order })),
        ...models(...(orders.length > 0 ? [] : ['a']), 'b', 'c'),
      ];
      const body = await imported('litellm&group=a', { model_list, router_settings: { ...still, fallbacks: [{ a: ['b'] }], ...more } });
      return losses(body).filter((loss) => loss.startsWith('too_long'));
    };
    assert.deepEqual(await tooLong({ context_window_fallbacks: [{ c: ['b'] }] }), ['too_long a context_length']);
    assert.deepEqual(await tooLong({ context_window_fallbacks: [{ a: ['c'] }] }), []);
    assert.deepEqual(await tooLong({}), []);
    assert.deepEqual(await tooLong({}, [1, 2]), ['too_long a context_length', 'too_long a-2 context_length']);
    assert.deepEqual(await tooLong({ context_window_fallbacks: [{ a: ['c'] }] }, [1, 2]), []);
  });

  test('fallbacks among the parameters of a model are a loss for each of its failures [F120]', async () => {
    const model_list = [model('a', { model: 'openai/m', fallbacks: [{ model: 'openai/x' }] }), ...models('b')];
    const found = losses(await imported('litellm', { model_list, router_settings: { ...still, fallbacks: [{ a: ['b'] }] } }));
    for (const condition of conditions) assert.ok(found.includes(`own_fallbacks a ${condition}`), condition);
    assert.ok(!found.some((loss) => loss.startsWith('own_fallbacks b')));
  });

  test('an alias of a list of groups is not imported, which is said [F120]', async () => {
    const router_settings = { ...still, model_group_alias: { all: ['a', 'b'] } };
    const { findings } = await imported('litellm', { model_list: models('a', 'b'), router_settings });
    assert.deepEqual(
      findings.flatMap(({ field, detail }: Finding) => (field?.endsWith('.all') ? [detail] : [])),
      ['router_settings.model_group_alias.all is not imported, because it does not name one group.'],
    );
  });

  test('retry_after is the least wait between retries [F106]', async () => {
    const router_settings = { ...still, num_retries: 3, retry_after: 12, fallbacks: [{ a: ['b'] }] };
    const body = await imported('litellm', { model_list: models('a', 'b'), router_settings });
    const waits = body.chain.fallback_rules.flatMap((rule: Record<string, unknown>) =>
      rule.action === 'retry' ? [[rule.wait_ms, rule.max_wait_ms, rule.backoff]] : [],
    );
    assert.ok(waits.length > 0);
    for (const wait of waits) assert.deepEqual(wait, [12_000, 12_000, 'constant'], 'jitter would make it shorter');
    const said = async (retry_after: number, num_retries: number) => {
      const settings = { ...router_settings, retry_after, num_retries };
      const { findings } = await imported('litellm', { model_list: models('a', 'b'), router_settings: settings });
      return findings.flatMap(({ field, detail }: Finding) => (field?.includes('retry_after') ? [detail] : []));
    };
    const sentence =
      "router_settings.retry_after is the least wait: LiteLLM's own waits grow to 2 s; the chain waits 1 s before each retry.";
    assert.deepEqual([await said(12, 3), await said(1, 2), await said(1, 3)], [[], [], [sentence]]);
  });

  test('a group is imported that more than 50 models follow only where a prompt begins with it, which none does [F163]', async () => {
    const model = (model_name: string, kind = 'openai') => ({ model_name, litellm_params: { model: `${kind}/${model_name}` } });
    const far = Array.from({ length: 51 }, (_, index) => `far-${index}`);
    const body = await imported('litellm', {
      model_list: [model('a'), model('b'), model('b', 'anthropic'), ...far.map((name) => model(name))],
      router_settings: { max_fallbacks: 1, num_retries: 1, fallbacks: [{ a: ['b'] }, { b: far }] },
    });
    assert.equal(body.chain.providers.length, 3);
    assert.ok(body.findings.some(({ kind }: Finding) => kind === 'unlike_models'));
  });

  test('a provider that LiteLLM does not know is never called, which is a loss for every failure [F106]', async () => {
    const model_list = [model('a', { model: 'zhipu/glm' }), ...models('b')];
    const body = await imported('litellm', { model_list, router_settings: { ...still, fallbacks: [{ a: ['b'] }] } });
    for (const condition of conditions) assert.ok(losses(body).includes(`unknown_provider a ${condition}`), condition);
  });

  test('the address of Ollama has the version in a chain and none in the file, and Gemini stays Gemini [F106]', async () => {
    const model_list = [
      model('a', { model: 'ollama/llama3.1:8b', api_base: 'http://ollama:11434' }),
      model('b', { model: 'ollama_chat/qwen3:4b', api_base: 'http://ollama:11434' }),
      model('c', { model: 'gemini/flash', api_base: 'https://gemini.example.com/v1/publishers/google', api_key: 'os.environ/G_KEY' }),
    ];
    const { chain } = await imported('litellm', { model_list, router_settings: { ...still, fallbacks: [{ a: ['b', 'c'] }] } });
    assert.deepEqual(
      chain.providers.map(({ api_base }: { api_base: string }) => api_base),
      ['http://ollama:11434/v1', 'http://ollama:11434/v1', 'https://gemini.example.com/v1/publishers/google'],
    );
    const definition = define(chain);
    const { config } = exportChain('litellm', { chain: definition, routing: routingOf(definition), prefer: 'failover' });
    assert.deepEqual(
      (config as typeof litellm).model_list.map(({ litellm_params }) => [
        litellm_params.model,
        (litellm_params as { api_base?: string }).api_base,
      ]),
      [
        ['ollama/llama3.1:8b', 'http://ollama:11434'],
        ['ollama_chat/qwen3:4b', 'http://ollama:11434'],
        ['gemini/flash', 'https://gemini.example.com/v1/publishers/google'],
      ],
    );
  });

  test('a ConfigMap, a compose file, a name in a variable and a chain of more than 50 rules are refused with a sentence about the file [F106]', async () => {
    const service = await shareFallback();
    const refused = async (content: unknown, group?: string) => {
      const { status, body } = await service.call(
        'POST',
        `/import?format=litellm&dry_run=true${group === undefined ? '' : `&group=${group}`}`,
        { body: { content } },
      );
      assert.equal(status, 400);
      return [body.field, body.detail];
    };
    assert.match(
      (await refused({ kind: 'ConfigMap', data: { 'config.yaml': 'model_list: []' } })).join(' '),
      /^data The file is a ConfigMap/,
    );
    const compose = { services: { litellm: { image: 'litellm' } } };
    assert.match((await refused(compose)).join(' '), /^services The file is a compose file/);
    // The format of such a file is not known by its text.
    assert.throws(
      () => importChain({ format: detectFormat('compose.yaml', JSON.stringify(compose)), value: compose }),
      /is a compose file/,
    );
    assert.match(
      (await refused({ model_list: [model('os.environ/NAME', { model: 'openai/m' })] })).join(' '),
      /^model_list\.0\.model_name model_list\.0\.model_name is in the variable NAME/,
    );
    assert.match((await refused({ model_list: [model('a', { model: 'os.environ/MODEL' })] })).join(' '), /in the variable MODEL/);
    const names = Array.from({ length: 10 }, (_, index) => `g${index}`);
    const policy = (retries: number) => ({
      RateLimitErrorRetries: retries,
      TimeoutErrorRetries: (retries + 1) % 10,
      AuthenticationErrorRetries: (retries + 2) % 10,
      InternalServerErrorRetries: (retries + 3) % 10,
      BadRequestErrorRetries: (retries + 4) % 10,
      NotFoundErrorRetries: (retries + 5) % 10,
    });
    const model_group_retry_policy = Object.fromEntries(names.map((name, index) => [name, policy(index)]));
    const router_settings = { model_group_retry_policy, max_fallbacks: 20, fallbacks: [{ g0: names.slice(1) }] };
    const [field, detail] = await refused({ model_list: models(...names), router_settings });
    assert.equal(field, 'content');
    assert.match(
      detail,
      /^The file treats its failures in so many ways that a chain needs \d+ rules for it, and can have at most 50; name a group/,
    );
  });

  test('with drop_params, a 422 is lost where LiteLLM calls by the client of OpenAI, which is a finding', async () => {
    const model_list = [model('a', { model: 'openai/m' }), model('b', { model: 'mistral/m' })];
    const router_settings = { ...still, fallbacks: [{ a: ['b'] }] };
    const body = await imported('litellm', { model_list, router_settings, litellm_settings: { drop_params: true } });
    assert.ok(losses(body).includes('drop_params a invalid_request'));
    assert.ok(!losses(body).includes('drop_params b invalid_request'));
  });

  test('calls that LiteLLM repeats by itself are findings of their provider', async () => {
    const model_list = [...models('a'), model('b', { model: 'anthropic/claude' }), model('c', { model: 'nvidia_nim/x' })];
    const body = await imported('litellm', { model_list, router_settings: { ...still, fallbacks: [{ a: ['b', 'c'] }] } });
    assert.deepEqual(
      losses(body).filter((loss) => loss.startsWith('repeats')),
      [
        'repeats b connection_error',
        ...['rate_limit', 'timeout', 'server_error', 'connection_error', 'quota_exceeded'].map((condition) => `repeats c ${condition}`),
      ],
    );
  });

  test('calls that LiteLLM repeats by itself count where it comes to a model again, by an alias', async () => {
    const router_settings = { ...still, num_retries: 3, model_group_alias: { d: 'b' }, fallbacks: [{ a: ['b', 'c', 'd'] }] };
    const body = await imported('litellm', { model_list: [...models('a', 'c'), model('b', { model: 'together_ai/x' })], router_settings });
    const [found] = body.findings.filter(({ kind, condition }: Finding) => kind === 'calls' && condition === 'connection_error');
    assert.equal(found.provider, 'c');
    assert.equal(
      found.detail,
      'If every model fails with connection_error, LiteLLM makes 4 calls of a, 16 calls of b and 4 calls of c; the chain makes 4 calls of a, 8 calls of b and 4 calls of c.',
    );
  });

  test('a model without order or weight beside one with it is never called', async () => {
    for (const param of ['order', 'weight', 'rpm']) {
      const model_list = [model('a', { model: 'openai/x', [param]: 1 }), model('a', { model: 'openai/y' }), ...models('b')];
      const body = await imported('litellm', { model_list, router_settings: { ...still, fallbacks: [{ a: ['b'] }] } });
      assert.equal(pathOf(body, 'server_error'), 'a b', param);
      assert.deepEqual(
        body.findings.filter(({ kind }: Finding) => kind === 'left_out').map(({ kind, field }: Finding) => `${kind} ${field}`),
        ['left_out model_list.1'],
        param,
      );
    }
  });

  test('more retries than a rule may have are reduced, with a finding', async () => {
    const router_settings = { ...still, retry_policy: { RateLimitErrorRetries: 99 } };
    const body = await imported('litellm', { model_list: models('a'), router_settings });
    assert.ok(losses(body).includes('reduced a rate_limit'));
  });
});

describe('Portkey', () => {
  test('nested, balanced and conditional strategies are one order, with findings [F78]', async () => {
    const target = (name: string) => ({ name, provider: 'openai', override_params: { model: name } });
    const body = await imported('portkey', {
      strategy: { mode: 'fallback' },
      retry: { attempts: 2, on_status_codes: [429] },
      cache: { mode: 'simple' },
      targets: [
        { strategy: { mode: 'loadbalance' }, targets: [{ ...target('a'), weight: 0.7 }, target('b')] },
        { strategy: { mode: 'conditional', conditions: [{ query: {}, then: 'c' }], default: 'd' }, targets: [target('c'), target('d')] },
      ],
    });
    assert.deepEqual(
      body.chain.providers.map(({ name }: { name: string }) => name),
      ['a', 'b', 'd'],
    );
    for (const finding of ['left_out cache', 'one_target targets.0.strategy.mode', 'left_out targets.1.strategy.mode'])
      assert.ok(codesOf(body).includes(finding), finding);
    assert.ok(rulesOf(body).includes('rate_limit retry 2'));
  });

  test('a failure is treated by the status that Portkey sees, which may be that of another condition [F78]', async () => {
    const pathFor = async (file: { strategy?: object; retry?: object }, condition: Condition, status_code: number | null) => {
      const targets = ['a', 'b'].map((name) => ({ name, provider: 'openai', override_params: { model: name }, retry: file.retry }));
      const { chain } = await imported('portkey', { strategy: { mode: 'fallback', ...file.strategy }, targets });
      return simulatedCalls(chain, condition, status_code);
    };
    const on = (...on_status_codes: number[]) => ({ on_status_codes });
    const cases: [{ strategy?: object; retry?: object }, Condition, number | null, string][] = [
      [{ strategy: on(429) }, 'quota_exceeded', 429, 'a b'],
      [{ strategy: on(429) }, 'quota_exceeded', 402, 'a'],
      [{ strategy: on(400) }, 'context_length', 400, 'a b'],
      [{ strategy: on(400) }, 'context_length', 413, 'a'],
      // A call that Portkey gives up has 408, and a failed connection 500.
      [{ strategy: on(504) }, 'timeout', null, 'a'],
      [{ strategy: on(504) }, 'timeout', 504, 'a b'],
      [{ strategy: on(503) }, 'connection_error', null, 'a'],
      [{ strategy: on(408), retry: { attempts: 1, ...on(408) } }, 'timeout', null, 'a a b b'],
      [{ strategy: on(408), retry: { attempts: 1, ...on(408) } }, 'timeout', 504, 'a'],
      [{ strategy: on(503), retry: { attempts: 1, ...on(500, 503) } }, 'server_error', 500, 'a a'],
      [{ strategy: on(503), retry: { attempts: 1, ...on(500, 503) } }, 'server_error', 503, 'a a b b'],
      [{ retry: { attempts: 1 } }, 'quota_exceeded', 429, 'a a b b'],
    ];
    for (const [file, condition, status, expected] of cases)
      assert.equal(await pathFor(file, condition, status), expected, `${JSON.stringify(file)} ${condition} ${status}`);
  });

  test('a slug of the catalog may stand before the model, and is kept for exports [F112]', async () => {
    const targets = [
      { override_params: { model: '@openai-prod/gpt-4o' } },
      { provider: '@groq-prod', override_params: { model: 'org/m' } },
    ];
    const { chain } = await imported('portkey', { strategy: { mode: 'fallback' }, targets });
    assert.deepEqual(
      chain.providers.map(({ name, model_id, provider, params }: Record<string, unknown>) => [name, model_id, provider, params]),
      [
        ['gpt-4o', 'gpt-4o', null, { virtual_key: '@openai-prod' }],
        ['org/m', 'org/m', null, { virtual_key: '@groq-prod' }],
      ],
    );
  });

  test('a provider that Portkey does not know is a loss for every failure, since the gateway refuses the whole file [F162]', async () => {
    const targets = ['openai', 'new-one'].map((provider) => ({ provider, override_params: { model: provider } }));
    const { chain, findings } = await imported('portkey', { strategy: { mode: 'fallback' }, targets });
    const said = findings.flatMap(({ kind, provider, condition, loss }: Finding) =>
      kind === 'refused_file' && loss ? [`${provider} ${condition}`] : [],
    );
    assert.deepEqual(
      said,
      ['openai', 'new-one'].flatMap((name) => conditions.map((condition) => `${name} ${condition}`)),
    );
    assert.equal(chain.providers[1].provider, 'new-one');
  });

  test('a provider that Portkey does not know is a loss as well where no prompt reaches its target [F162]', async () => {
    const target = (provider: string) => ({ name: provider, provider, override_params: { model: provider } });
    const fieldsOf = async (mode: string, ...targets: object[]) => {
      const { chain, findings } = await imported('portkey', { strategy: { mode, default: 'openai' }, targets });
      assert.deepEqual([chain.providers.length, chain.providers[0].provider], [1, 'openai']);
      return [...new Set(findings.flatMap(({ kind, field }: Finding) => (kind === 'refused_file' ? [field] : [])))];
    };
    const inner = { strategy: { mode: 'fallback' }, targets: [target('new-one')] };
    assert.deepEqual(await fieldsOf('single', target('openai'), target('new-one')), ['targets.1.provider']);
    assert.deepEqual(await fieldsOf('conditional', inner, target('openai')), ['targets.0.targets.0.provider']);
  });

  test('a loss of a circuit breaker that only documentation says names no version [F108]', async () => {
    const cb_config = { failure_threshold: 2, failure_threshold_percentage: 20 };
    const { findings } = await imported('portkey', { provider: 'openai', override_params: { model: 'a' }, cb_config });
    const measured = findings.flatMap((one: Finding) =>
      one.field?.startsWith('cb_config') ? [[one.detail.slice(0, 24), one.measured]] : [],
    );
    assert.deepEqual(measured, [
      ['cb_config.failure_thresh', null],
      ["Portkey's service has th", 'Portkey 1.15.2'],
      ["Portkey's circuit breake", null],
    ]);
  });

  test('conditions without a default call nobody, which is a loss for every failure [F112]', async () => {
    const target = (name: string) => ({ name, provider: 'openai', override_params: { model: name } });
    const file = (more: object) => ({
      strategy: { mode: 'conditional', conditions: [{ query: {}, then: 'b' }], ...more },
      targets: [target('a'), target('b')],
    });
    const { chain, findings } = await imported('portkey', file({}));
    const said = new Set(
      findings.flatMap(({ kind, provider, condition }: Finding) => (kind === 'no_default' ? [`${provider} ${condition}`] : [])),
    );
    assert.deepEqual([chain.providers.length, said], [1, new Set(conditions.map((condition) => `a ${condition}`))]);
    const named = await imported('portkey', file({ default: 'b' }));
    assert.deepEqual([named.chain.providers[0].name, named.findings.some(({ kind }: Finding) => kind === 'no_default')], ['b', false]);
  });

  test('every import says that streams fail where the dependencies are those of npm [F113]', async () => {
    const { findings } = await imported('portkey', portkey);
    assert.deepEqual(
      findings.flatMap(({ kind, loss }: Finding) => (kind === 'streams' ? [loss] : [])),
      [false],
    );
  });

  test('Retry-After of Portkey is a finding of both conditions with status 429, and unknown fields of retry and strategy are findings', async () => {
    const targets = [
      { name: 'a', provider: 'openai', retry: { attempts: 2, use_retry_after_header: true, backoff: 'none' } },
      { name: 'b', provider: 'openai' },
    ];
    const { findings } = await imported('portkey', { strategy: { mode: 'fallback', order: 'cheapest' }, targets });
    const said = findings.map(({ kind, field, condition, loss }: Finding) => `${kind} ${field} ${condition} ${loss}`);
    for (const condition of ['rate_limit', 'quota_exceeded'])
      assert.ok(said.includes(`retry_after targets.0.retry.use_retry_after_header ${condition} true`), said.join());
    for (const field of ['targets.0.retry.backoff', 'strategy.order'])
      assert.ok(
        said.some((one: string) => one.startsWith(`left_out ${field} `)),
        said.join(),
      );
  });

  test('a virtual key and a target without a model are kept for exports to Portkey [F79]', async () => {
    const service = await shareFallback();
    const targets = [
      { virtual_key: 'openai-prod' },
      { provider: 'azure-openai', azure_resource_name: 'mine', azure_deployment_id: 'gpt', azure_api_version: 'v' },
    ];
    const { body } = await send(service, 'portkey', { strategy: { mode: 'fallback' }, targets });
    const { body: made } = await service.call('POST', `/chains/${body.chain.id}/export?format=portkey`);
    const [first, second] = made.config.targets;
    assert.deepEqual([first.virtual_key, first.override_params, first.api_key], ['openai-prod', {}, undefined]);
    const { resource_name, deployment_id, api_version } = second;
    assert.deepEqual([resource_name, deployment_id, api_version], ['mine', 'gpt', 'v']);
  });
});

describe('400 with the position, and nothing is stored', () => {
  const faults: [string, string, unknown, string, RegExp][] = [
    ['broken JSON', 'json', '{"name": "a",', 'content', /^content is not valid JSON/],
    ['broken YAML', 'yaml', 'name: a\nproviders: [', 'content', /^Line 2, column \d+: /],
    ['a misspelt field', 'json', { ...threeProviders, provider: [] }, 'provider', /provider is not a field/],
    ['a chain without providers', 'yaml', 'name: a', 'providers', /providers is required/],
    [
      'a key in place of a variable',
      'json',
      { ...threeProviders, providers: [{ name: 'a', model_id: 'm', api_key_env: 'sk-abcdefghijklmnop1234' }] },
      'providers.0.api_key_env',
      /not the key itself/,
    ],
    ['a YAML list that contains itself', 'yaml', '&a [*a]', 'content', /The alias \*a is part of what it stands for/],
    ['a list', 'json', [1], 'content', /content must be an object, not a list/],
    ['nothing', 'yaml', '', 'content', /must not be empty/],
    ['a number', 'portkey', 7, 'content', /must be an object, not a number/],
    ['a YAML file for JSON', 'json', 'name: a', 'content', /not valid JSON/],
    ['LiteLLM without models', 'litellm', {}, 'model_list', /^model_list is required\.$/],
    [
      'LiteLLM with a model without a name',
      'litellm',
      { model_list: [{ litellm_params: { model: 'm' } }] },
      'model_list.0.model_name',
      / is required\.$/,
    ],
    [
      'LiteLLM with fallbacks that are no list',
      'litellm',
      { ...litellm, litellm_settings: { fallbacks: { a: ['b'] } } },
      'litellm_settings.fallbacks',
      /must be a list, not an object/,
    ],
    [
      'LiteLLM that includes other files',
      'litellm',
      { ...litellm, include: ['models.yaml'] },
      'include',
      /put their models and settings into this file/,
    ],
    ['Portkey without targets', 'portkey', { strategy: { mode: 'fallback' }, targets: [] }, 'targets', /must not be empty/],
    [
      'Portkey with a strategy alone [F112]',
      'portkey',
      { provider: 'openai', strategy: { mode: 'fallback' } },
      'targets',
      /is required; Portkey's/,
    ],
    ['Portkey without a strategy [F112]', 'portkey', { targets: portkey.targets }, 'strategy', /refuses targets without one/],
    [
      'Portkey with another mode [F112]',
      'portkey',
      { ...portkey, strategy: { mode: 'round' } },
      'strategy.mode',
      /must be one of single, fallback,/,
    ],
    ['Portkey without a mode [F112]', 'portkey', { ...portkey, strategy: {} }, 'strategy.mode', /must be one of/],
    [
      'Portkey with retries without a number [F112]',
      'portkey',
      { ...portkey, targets: [{ provider: 'openai', retry: { on_status_codes: [429] } }] },
      'targets.0.retry.attempts',
      /refuses retries without it/,
    ],
    [
      'LiteLLM with a strategy that it refuses [F112]',
      'litellm',
      { ...litellm, router_settings: { routing_strategy: 'round-robin' } },
      'router_settings.routing_strategy',
      /must be one of simple-shuffle, .*; LiteLLM does not start/,
    ],
    [
      'LiteLLM with a strategy of null [F112]',
      'litellm',
      { ...litellm, router_settings: { routing_strategy: null } },
      'router_settings.routing_strategy',
      /with null LiteLLM calls no model/,
    ],
    ...(
      [
        ['OpenAI', 'openai'],
        ['azure', 'azure-openai'],
        ['Azure-OpenAI', 'azure-openai'],
        ['gemini', 'google'],
        ['Google', 'google'],
        ['mistral', 'mistral-ai'],
      ] as const
    ).map(([name, known]): [string, string, unknown, string, RegExp] => [
      `Portkey with a provider that it spells otherwise, as ${name} [F162]`,
      'portkey',
      { ...portkey, targets: [{ provider: 'openai' }, { provider: name }] },
      'targets.1.provider',
      new RegExp(`^targets\\.1\\.provider is ${name}, which Portkey's gateway refuses; its name of this provider is ${known}\\.$`),
    ]),
    [
      'Portkey with a provider that it spells otherwise, at a target that no prompt reaches [F162]',
      'portkey',
      {
        strategy: { mode: 'single' },
        targets: [{ provider: 'openai' }, { strategy: { mode: 'single' }, targets: [{ provider: 'OpenAI' }] }],
      },
      'targets.1.targets.0.provider',
      /its name of this provider is openai/,
    ],
    [
      'Portkey with statuses that are none',
      'portkey',
      { ...portkey, strategy: { mode: 'fallback', on_status_codes: ['429'] } },
      'strategy.on_status_codes',
      /list of HTTP statuses/,
    ],
  ];
  for (const [what, format, content, field, detail] of faults) {
    test(what, async () => {
      const service = await shareFallback();
      const answer = await send(service, format, content);
      assert.equal(answer.status, 400, answer.text);
      assert.equal(answer.body.field, field);
      assert.match(answer.body.detail, detail);
      assert.equal((await service.call('GET', '/chains')).headers['x-total-count'], '0');
    });
  }

  test('an unknown member beside content', async () => {
    const answer = await send(await shareFallback(), 'json', threeProviders, { extra: 1 });
    assert.equal(answer.status, 400, answer.text);
    assert.match(answer.text, /extra is not a field/);
  });

  test('an unknown format is refused with the list', async () => {
    const service = await shareFallback();
    const { status, body } = await send(service, 'helm', {});
    assert.deepEqual([status, body.detail], [400, 'format must be one of litellm, portkey, json, yaml.']);
  });

  test('exponentially growing aliases, and a file that the parser never finishes [F81]', { timeout: 60_000 }, async (t) => {
    const service = await startFallback(t, { dependencies: { sandbox: { deadlineMs: 1_000 } } });
    const levels = Array.from({ length: 9 }, (_, level) => `l${level + 1}: &l${level + 1} [${Array(9).fill(`*l${level}`).join(', ')}]`);
    const bomb = await send(service, 'yaml', ['l0: &l0 [x]', ...levels].join('\n'));
    assert.deepEqual(
      [bomb.status, bomb.body.field, bomb.body.detail],
      [400, 'content', 'The document grows too large when its aliases are expanded.'],
    );
    const slow = await send(service, 'yaml', Array.from({ length: 60_000 }, (_, index) => `k${index}: 1`).join('\n'));
    assert.deepEqual([slow.status, slow.body.detail], [400, 'The file takes longer than 1 s.']);
    const deep = await send(service, 'yaml', `${'['.repeat(60)}${']'.repeat(60)}`);
    assert.match(deep.body.detail, /more than 50 levels deep/);
  });

  test('a file that is not UTF-8, has custom types, or is too large', async () => {
    const service = await shareFallback();
    const raw = (type: string, payload: string | Buffer) =>
      service.call('POST', '/import?format=yaml', { raw: payload, headers: { 'content-type': type, 'x-requested-with': 'test' } });
    assert.equal((await raw('application/yaml', Buffer.from([0xff, 0xfe, 0x00]))).status, 400);
    assert.equal((await raw('application/xml', '<a/>')).status, 415);
    assert.equal((await raw('text/plain', 'x'.repeat(2_000_000))).status, 413);
  });
});
