import assert from 'node:assert/strict';
import { stripTypeScriptTypes } from 'node:module';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseAllDocuments, parse as parseYaml } from 'yaml';

import { type ChainRequest, type Condition, providerDefaults } from '../../../src/fallback/model/chain.ts';
import type { Finding } from '../../../src/fallback/model/finding.ts';
import { type ExportFormat, exportFormats, importFormats } from '../../../src/fallback/model/targets.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { kinds } from '../../../src/fallback/rules/kinds.ts';
import { routingOf } from '../../../src/fallback/rules/routing.ts';
import { exportChain } from '../../../src/fallback/rules/targets/export.ts';
import { importChain } from '../../../src/fallback/rules/targets/import.ts';
import { nameOfKind } from '../../../src/fallback/rules/targets/kind-names.ts';
import { sharedStatuses } from '../../../src/fallback/rules/targets/portkey/export.ts';
import { kindNames } from '../../../src/fallback/rules/targets/portkey/names.ts';
import { findingsOfExport } from '../../../src/fallback/rules/targets/rehearsal.ts';
import { templateChain } from '../../../src/fallback/rules/templates.ts';
import { anyChain, plainChain, threeProviders } from '../../support/chains.ts';
import { runs } from '../../support/runs.ts';
import { roughWords } from './chains.ts';

function exported(request: ChainRequest, format: ExportFormat, prefer: 'failover' | 'retry' = 'failover') {
  const chain = define(request);
  return exportChain(format, { chain, routing: routingOf(chain), prefer });
}

/** The chain of three providers with additional or changed fields. */
const chainWith = (more: Partial<ChainRequest>): ChainRequest => ({ ...threeProviders, ...more });

const codes = ({ warnings }: { warnings: readonly { code: string }[] }) => warnings.map(({ code }) => code);

/** The parsed value of a file. */
const readBack = (format: ExportFormat, content: string): unknown =>
  format === 'yaml' || format === 'litellm' ? parseYaml(content) : JSON.parse(content);

describe('Every export', () => {
  for (const format of exportFormats) {
    test(`${format}: it never fails, reports its losses, and is lossless only without losses [F69]`, () => {
      fc.assert(
        fc.property(anyChain, fc.constantFrom('failover' as const, 'retry' as const), (request, prefer) => {
          const made = exported(request, format, prefer);
          assert.equal(made.format, format);
          assert.match(made.filename, /^[a-z0-9-]+\.[a-z.-]+$/);
          for (const { detail } of made.warnings) {
            assert.match(detail, /^[^\n]+\.$/);
            assert.doesNotMatch(detail, roughWords);
          }
          assert.equal(made.lossless, !made.warnings.some(({ loss }) => loss));
        }),
        { numRuns: runs(30) },
      );
    });
  }

  for (const format of importFormats) {
    test(`${format}: an import of a lossless export gives the same chain [F70]`, () => {
      const isOurs = format === 'json' || format === 'yaml';
      let lossless = 0;
      fc.assert(
        fc.property(isOurs ? anyChain : plainChain, (request) => {
          const chain = define(request);
          const made = exported(request, format);
          if (!made.lossless) return;
          lossless += 1;
          const { request: back } = importChain({
            format,
            value: readBack(format, made.content),
            name: format === 'portkey' ? chain.name : undefined,
          });
          assert.deepEqual(define(back as ChainRequest), chain);
        }),
        // In the formats of others one plain chain of ten is lossless, and hardly any other.
        { numRuns: runs(isOurs ? 25 : 200) },
      );
      assert.ok(lossless > 5, `only ${lossless} were lossless`);
    });

    test(`${format}: the text contains the configuration`, () => {
      fc.assert(
        fc.property(anyChain, (request) => {
          const made = exported(request, format);
          assert.deepEqual(readBack(format, made.content), JSON.parse(JSON.stringify(made.config)));
        }),
        { numRuns: runs(30) },
      );
    });
  }

  test('a format that is code is lossless, and its configuration is its text [F70]', () => {
    for (const format of ['langchain', 'ai-sdk'] as const) {
      const made = exported(threeProviders, format);
      assert.deepEqual([made.lossless, made.config === made.content, made.content_type], [true, true, 'text/javascript']);
    }
  });

  test('json and yaml are always lossless', () => {
    fc.assert(
      fc.property(anyChain, fc.constantFrom('json' as const, 'yaml' as const), (request, format) => {
        const made = exported(request, format);
        assert.deepEqual([made.lossless, made.warnings], [true, []]);
      }),
    );
  });

  test('a key is only a reference to its variable [F67]', () => {
    const references: Record<string, RegExp> = {
      litellm: /os\.environ\/LLAMA_API_KEY/,
      portkey: /\$\{LLAMA_API_KEY\}/,
      bifrost: /env\.LLAMA_API_KEY/,
      'envoy-ai-gateway': /name: llama-api-key/,
      langchain: /process\.env\["LLAMA_API_KEY"\]/,
      'ai-sdk': /process\.env\["LLAMA_API_KEY"\]/,
    };
    for (const [format, reference] of Object.entries(references))
      assert.match(exported(threeProviders, format as ExportFormat).content, reference);
  });

  test('a provider without a variable gets the variable of its kind, with a warning [F67, F69]', () => {
    const request = chainWith({ providers: [{ name: 'one', model_id: 'openai/gpt-4o' }] });
    for (const format of ['litellm', 'portkey', 'bifrost', 'envoy-ai-gateway', 'langchain', 'ai-sdk'] as const) {
      const made = exported(request, format);
      assert.match(made.content, /OPENAI_API_KEY|openai-api-key/);
      assert.ok(codes(made).includes('key_assumed'), format);
      // Only where an import gives another chain, it is a loss.
      assert.equal(made.lossless, format === 'langchain' || format === 'ai-sdk', format);
    }
  });

  test('a provider without a kind is exported as openai, with a warning [F69]', () => {
    const request = chainWith({ providers: [{ name: 'one', model_id: 'some-model', api_key_env: 'KEY' }] });
    for (const format of ['litellm', 'portkey', 'bifrost', 'envoy-ai-gateway', 'langchain', 'ai-sdk'] as const) {
      const made = exported(request, format);
      assert.ok(codes(made).includes('provider_kind'), format);
    }
    assert.match(exported(request, 'litellm').content, /model: openai\/some-model/);
  });

  test('a parameter of a provider of a cloud that the target does not have is a loss [F69]', () => {
    const params = { aws_region_name: 'eu-west-1', organization: 'o' };
    const request = chainWith({ providers: [{ name: 'one', model_id: 'm', provider: 'bedrock', params }], fallback_rules: [] });
    for (const format of ['bifrost', 'envoy-ai-gateway'] as const) {
      const sentences = exported(request, format).warnings.map(({ detail }) => detail);
      assert.ok(
        sentences.some((one) => /^one: .* has no organization\.$/.test(one)),
        sentences.join('\n'),
      );
    }
  });

  test('litellm: names of model groups stay; one that is taken or a pattern changes, with a warning of both names', () => {
    const provider = (name: string, model: string) => ({ name, model_id: `openai/${model}`, api_key_env: 'KEY' });
    const request = chainWith({
      name: 'main',
      providers: [provider('gpt', 'gpt-4o'), provider('claude', 'b'), provider('main', 'c'), provider('any*', 'd')],
    });
    const { config, warnings } = exported(request, 'litellm');
    const { model_list } = config as { model_list: { model_name: string }[] };
    const named = warnings.filter(({ code }) => code === 'model_name').map(({ field, detail, loss }) => ({ field, detail, loss }));
    assert.deepEqual(
      model_list.map(({ model_name }) => model_name),
      ['main', 'claude', 'main-2', 'any-'],
    );
    const changed = (name: string, group: string) =>
      `The model group of ${name} is called ${group} in the export, because its own name is taken or a pattern.`;
    assert.deepEqual(named, [
      { field: 'providers.0.name', detail: 'gpt is the first provider of the model main, which callers ask LiteLLM for.', loss: false },
      { field: 'providers.2.name', detail: changed('main', 'main-2'), loss: true },
      { field: 'providers.3.name', detail: changed('any*', 'any-'), loss: true },
    ]);
  });

  test('names with any characters are escaped in code', () => {
    const name = '"]}); process.exit(1); //\u2028`x`';
    const request = chainWith({ name, providers: [{ name, model_id: 'openai/gpt-4o', api_key_env: 'KEY' }], fallback_rules: [] });
    for (const format of ['langchain', 'ai-sdk'] as const) {
      const made = exported(request, format);
      assert.ok(made.content.includes(`export const name = ${JSON.stringify(name).replace('\u2028', '\\u2028')};\n`), format);
      // Throws for what is not code, and changes what is not plain JavaScript.
      assert.equal(stripTypeScriptTypes(made.content), made.content, format);
    }
  });
});

test('Exported code waits as long as Retry-After says, at most as long as its rule allows, and not at all if that ignores it', () => {
  for (const format of ['langchain', 'ai-sdk'] as const) {
    const [code] = /^function waitOf\(.*?^\}$.*?^function retryAfterMs\(.*?^\}$/ms.exec(exported(threeProviders, format).content)!;
    const wait = new Function('rule', 'value', `${code}; return waitOf(rule, 0, retryAfterMs(value));`);
    const rule = { backoff: 'constant', waitMs: 100, maxWaitMs: 30_000, respectRetryAfter: true };
    assert.deepEqual(
      [undefined, '0', '2', ' 2 ', '30', '31', '99999', 'soon', '-5'].map((value) => wait(rule, value)),
      [100, 100, 2000, 2000, 30_000, 30_000, 30_000, 100, 100],
      format,
    );
    assert.equal(wait({ ...rule, respectRetryAfter: false }, '2'), 100);
  }
});

describe('LiteLLM', () => {
  test('has a group for each provider, the order in fallbacks, and the retries in the router policy', () => {
    const { config } = exported(threeProviders, 'litellm');
    assert.deepEqual(config, {
      model_list: [
        {
          model_name: 'production-chain',
          litellm_params: { model: 'openai/gpt-4o', api_key: 'os.environ/OPENAI_API_KEY', timeout: 30 },
          model_info: { display_name: 'gpt-4o', model_id: 'openai/gpt-4o' },
        },
        {
          model_name: 'claude',
          litellm_params: { model: 'anthropic/claude-sonnet-4-5', api_key: 'os.environ/ANTHROPIC_API_KEY', timeout: 30 },
          model_info: { model_id: 'anthropic/claude-sonnet-4-5' },
        },
        {
          model_name: 'llama',
          litellm_params: {
            model: 'openai/llama-3.3-70b',
            api_base: 'https://llm.example.com/v1',
            api_key: 'os.environ/LLAMA_API_KEY',
            timeout: 30,
          },
          model_info: { model_id: 'llama-3.3-70b' },
        },
      ],
      router_settings: {
        num_retries: 0,
        retry_policy: { RateLimitErrorRetries: 3, TimeoutErrorRetries: 0 },
        disable_cooldowns: true,
        fallbacks: [{ 'production-chain': ['claude', 'llama'] }],
        context_window_fallbacks: [{ 'production-chain': ['claude', 'llama'] }],
        // The chain ends on content_filter; without a list, LiteLLM would use the other fallbacks.
        content_policy_fallbacks: [{ 'production-chain': [] }],
      },
    });
  });

  test('a failure that ends the chain is a warning, since its fallbacks fire on any', () => {
    const { warnings } = exported(threeProviders, 'litellm');
    assert.deepEqual(
      warnings.filter(({ code }) => code === 'fail').map(({ detail }) => detail),
      ['The chain ends with an error on content_filter and invalid_request; LiteLLM falls back on any failure.'],
    );
  });

  test('a warning of retries names the providers of whose kind it is true', () => {
    const rule = { condition: 'any' as const, action: 'retry' as const, max_retries: 1 };
    const { warnings } = exported(chainWith({ fallback_rules: [rule] }), 'litellm');
    const said = warnings.filter(({ code }) => code === 'retries').map(({ detail }) => detail);
    assert.ok(said.includes('LiteLLM retries auth_error (403) of claude never; the chain once.'), said.join('\n'));
  });

  test("statuses that it can't distinguish are one warning, and so are fields that an import changes", () => {
    const rule = { condition: 'any' as const, action: 'retry' as const, status_codes: [500] };
    const { warnings } = exported(chainWith({ fallback_rules: [rule] }), 'litellm');
    assert.deepEqual(
      warnings.filter(({ code }) => code === 'status_codes').map(({ detail }) => detail.slice(0, 89)),
      ['LiteLLM treats every status of server_error alike; the chain treats 501, 502, 503, 505, 5'],
    );
    const providers = Array.from({ length: 7 }, (_, index) => ({ name: `p${index}`, model_id: 'openai/gpt-4o' }));
    const differs = exported(chainWith({ providers }), 'litellm').warnings.find(({ code }) => code === 'import_differs');
    assert.match(differs!.detail, /^Importing this file gives a chain that differs in ([^ ,]+, ){3}[^ ,]+ and \d+ other fields\.$/);
  });

  test('has max_fallbacks for more than five backups, since it tries five by default', () => {
    const providers = Array.from({ length: 8 }, (_, index) => ({ name: `p${index}`, model_id: 'openai/gpt-4o', api_key_env: 'KEY' }));
    const { config } = exported(chainWith({ providers }), 'litellm') as { config: { router_settings: { max_fallbacks?: number } } };
    assert.equal(config.router_settings.max_fallbacks, 7);
  });
});

describe('The limits of streams in an export', () => {
  const limited = (limits: object) => chainWith({ providers: [{ name: 'a', model_id: 'openai/m', api_key_env: 'K', ...limits }] });

  test('are stream_timeout of LiteLLM if both are the same, and else a loss [F134]', () => {
    const timeoutOf = (limits: object) => {
      const { config, warnings } = exported(limited(limits), 'litellm') as {
        config: { model_list: { litellm_params: { stream_timeout?: number } }[] };
        warnings: { code: string; loss: boolean }[];
      };
      const [warning] = warnings.filter(({ code }) => code === 'stream_timeout');
      return [config.model_list[0]!.litellm_params.stream_timeout, warning?.loss];
    };
    assert.deepEqual(timeoutOf({}), [undefined, undefined]);
    assert.deepEqual(timeoutOf({ first_token_ms: 1500, idle_ms: 1500 }), [1.5, undefined]);
    assert.deepEqual(timeoutOf({ first_token_ms: 1500 }), [1.5, true]);
    assert.deepEqual(timeoutOf({ idle_ms: 1500 }), [undefined, true]);
  });

  test('are beside what the gateway was measured to do with streams, which is no loss [F160, F168]', () => {
    const streams = (format: ExportFormat) => exported(threeProviders, format).warnings.filter(({ code }) => code === 'streams');
    assert.ok(streams('litellm').some(({ detail }) => detail.includes('LiteLLM passes a streamed refusal')));
    assert.ok(streams('litellm').every(({ loss }) => !loss));
    assert.deepEqual([streams('bifrost').length, streams('portkey').length], [0, 2]);
    assert.ok(streams('portkey').some(({ detail }) => detail.startsWith("Portkey's request_timeout limits the time until the status")));
  });

  test('name in a rehearsal the versions with which they were measured, and warnings none, which follow from the format [F108]', () => {
    const measured = (format: 'litellm' | 'portkey') => {
      const found = findingsOfExport(format, { chain: define(threeProviders), prefer: 'failover' });
      const isOfStreams = ({ kind, stream }: Finding) => kind === 'stream' || stream === true;
      return [found.filter(isOfStreams), found.filter((one) => !isOfStreams(one))].map((some) => [
        ...new Set(some.map((one) => one.measured)),
      ]);
    };
    assert.deepEqual(measured('portkey'), [['Portkey 1.15.2'], [null]]);
    assert.deepEqual(measured('litellm'), [['LiteLLM 1.106.2 and 1.110.2'], [null]]);
  });

  test('are a loss wherever the target has none, as is an attempt after a stream that was interrupted [F134]', () => {
    const rule = { condition: 'interrupted', action: 'failover' };
    for (const format of ['portkey', 'openrouter', 'langchain', 'ai-sdk', 'bifrost', 'envoy-ai-gateway'] as const) {
      const { lossless, warnings } = exported(limited({ first_token_ms: 1500, idle_ms: 2500 }), format);
      assert.equal(lossless, false, format);
      assert.ok(
        warnings.some(({ detail, loss }) => loss && detail.includes('first_token_ms and idle_ms')),
        format,
      );
      const goesOn = exported({ ...threeProviders, fallback_rules: [rule] } as ChainRequest, format).warnings;
      // The module for LangChain never streams.
      if (format !== 'langchain')
        assert.ok(
          goesOn.some(({ detail, loss }) => loss && detail.includes('interrupted')),
          format,
        );
    }
  });
});

describe('Portkey', () => {
  test('lists the statuses of every condition that is failed over or retried', () => {
    const { config } = exported(threeProviders, 'portkey') as {
      config: { strategy: { on_status_codes: number[] }; targets: { retry: unknown }[] };
    };
    for (const status of [401, 402, 403, 404, 408, 413, 429, 500, 502, 503, 504, 529])
      assert.ok(config.strategy.on_status_codes.includes(status), String(status));
    for (const status of [400, 422]) assert.ok(!config.strategy.on_status_codes.includes(status), String(status));
    for (const { retry } of config.targets) assert.deepEqual(retry, { attempts: 3, on_status_codes: [429], use_retry_after_header: true });
  });

  test('providers with different failover statuses are in nested strategies', () => {
    const request = chainWith({ fallback_rules: [{ condition: 'auth_error', action: 'fail', providers: ['gpt-4o'] }] });
    const { config } = exported(request, 'portkey') as {
      config: { strategy: { on_status_codes: number[] }; targets: { strategy?: { on_status_codes: number[] }; targets?: unknown[] }[] };
    };
    assert.equal(config.targets.length, 2);
    assert.ok(!config.strategy.on_status_codes.includes(401));
    assert.ok(config.targets[1]!.strategy!.on_status_codes.includes(401));
    assert.equal(config.targets[1]!.targets!.length, 2);
  });

  test('warns of a failure whose status other failures have, by what the kind of the provider sends [F114]', () => {
    const shared = (provider: string | null, condition: Condition) =>
      sharedStatuses({ ...providerDefaults, name: 'a', model_id: 'm', provider }, condition);
    const cases: [string | null, Condition, number[]][] = [
      [null, 'quota_exceeded', [429]],
      ['openai', 'quota_exceeded', [429]],
      ['anthropic', 'quota_exceeded', [400]],
      ['deepseek', 'quota_exceeded', []],
      ['gemini', 'auth_error', [400]],
      ['openai', 'auth_error', []],
      ['openai', 'context_length', [400]],
      ['openai', 'invalid_request', [404]],
      ['openai', 'connection_error', [500]],
      ['openai', 'rate_limit', []],
    ];
    for (const [kind, condition, statuses] of cases) assert.deepEqual(shared(kind, condition), statuses, `${kind} ${condition}`);
    const providers = [
      { name: 'a', model_id: 'openai/m' },
      { name: 'b', model_id: 'anthropic/m' },
      { name: 'c', model_id: 'openai/m' },
      { name: 'd', model_id: 'anthropic/m' },
    ];
    const said = exported(
      { name: 'c', providers, fallback_rules: [{ condition: 'quota_exceeded', action: 'fail' }] },
      'portkey',
    ).warnings.flatMap(({ code, detail }) => (code === 'same_status' && detail.includes('quota_exceeded') ? [detail] : []));
    assert.deepEqual(said, ['Portkey sees only status 429 of a and c, so it treats quota_exceeded like rate_limit.']);
  });

  test('warns that it also retries failed connections', () => {
    assert.ok(codes(exported(threeProviders, 'portkey')).includes('connection_retries'));
  });
});

describe('An address in an export for Portkey', () => {
  const reached = (kind: string, api_base: string) => {
    const { config } = exported(
      { name: 'one', providers: [{ name: 'a', model_id: 'm', provider: kind, api_base, api_key_env: 'K' }] },
      'portkey',
    );
    const { provider, custom_host } = (config as { targets: Record<string, unknown>[] }).targets[0]!;
    return [provider, custom_host];
  };

  test('is without the version for kinds to which Portkey appends it, and comes back with it [F103]', () => {
    for (const [kind, called] of Object.entries({
      deepseek: 'deepseek',
      openrouter: 'openrouter',
      together: 'together-ai',
      ollama: 'ollama',
    }))
      assert.deepEqual(reached(kind, 'https://llm.example.com/api/v1'), [called, 'https://llm.example.com/api'], kind);
    const chain = { name: 'one', providers: [{ name: 'a', model_id: 'm', provider: 'deepseek', api_base: 'https://llm.example.com/v1' }] };
    const { request } = importChain({ format: 'portkey', value: exported(chain, 'portkey').config });
    assert.equal((request as ChainRequest).providers[0]!.api_base, 'https://llm.example.com/v1');
  });

  test('is whole for other kinds, and one of openai where Portkey would call another path or protocol [F103]', () => {
    assert.deepEqual(reached('groq', 'https://llm.example.com/v1'), ['groq', 'https://llm.example.com/v1']);
    assert.deepEqual(reached('gemini', 'https://llm.example.com/v1'), ['openai', 'https://llm.example.com/v1']);
    assert.deepEqual(reached('cohere', 'https://llm.example.com/v1'), ['openai', 'https://llm.example.com/v1']);
    assert.deepEqual(reached('deepseek', 'https://llm.example.com/other'), ['openai', 'https://llm.example.com/other']);
  });
});

describe('OpenRouter', () => {
  test('has the primary in model and its backups in models', () => {
    const { config } = exported(threeProviders, 'openrouter');
    assert.deepEqual(config, {
      model: 'openai/gpt-4o',
      models: ['anthropic/claude-sonnet-4-5', 'openai/llama-3.3-70b'],
      provider: { allow_fallbacks: true },
      messages: [{ role: 'user', content: '{{prompt}}' }],
    });
  });

  test('keeps the first four of a longer chain, with a warning', () => {
    const providers = Array.from({ length: 6 }, (_, index) => ({ name: `p${index}`, model_id: `vendor/m${index}` }));
    const made = exported(chainWith({ providers }), 'openrouter') as {
      config: { models: string[] };
      warnings: { code: string; detail: string }[];
    };
    assert.deepEqual(made.config.models, ['vendor/m1', 'vendor/m2', 'vendor/m3']);
    assert.match(made.warnings.find(({ code }) => code === 'too_long')!.detail, /p4 and p5 are left out/);
  });
});

describe('Targets with one number of retries', () => {
  for (const format of ['bifrost', 'envoy-ai-gateway'] as const) {
    test(`${format}: a chain with both retries and failovers fails over, or retries with prefer=retry; both add a warning [F71]`, () => {
      const failing = exported(threeProviders, format, 'failover');
      const retrying = exported(threeProviders, format, 'retry');
      const [first, second] =
        format === 'bifrost'
          ? [/"max_retries": 0/, /"max_retries": 3/]
          : [/numRetries: 2\n/, /numAttemptsPerPriority: 4\n\s*numRetries: 11\n/];
      assert.match(failing.content, first);
      assert.match(retrying.content, second);
      for (const made of [failing, retrying]) assert.ok(codes(made).includes('one_budget'));
    });
  }

  test('Envoy: every document is a manifest, and each provider has its backend, key and TLS', () => {
    const documents = parseAllDocuments(exported(threeProviders, 'envoy-ai-gateway').content).map(
      (document) => document.toJS() as { kind: string },
    );
    const kinds = documents.map(({ kind }) => kind);
    assert.deepEqual(kinds.slice(0, 4), ['GatewayClass', 'Gateway', 'AIGatewayRoute', 'BackendTrafficPolicy']);
    for (const kind of ['AIServiceBackend', 'BackendSecurityPolicy', 'Backend', 'BackendTLSPolicy'])
      assert.equal(kinds.filter((one) => one === kind).length, 3);
  });
});

describe('No key is sent to a host that nobody named', () => {
  const vendors = Object.values(kinds).map(({ api_base }) => new URL(api_base).host);
  const addresses = fc.oneof(
    fc.constant({ params: { api_base: 'os.environ/PRIVATE_BASE' } }),
    fc.constant({ api_base: 'https://private.example.com/v1' }),
    fc.constant({}),
  );
  const provider = fc.record({ kind: fc.constantFrom(null, 'homemade', ...Object.keys(kinds)), address: addresses });

  /** Whether the chain names the host of a kind: by the kind itself, without another address. */
  const named = (request: ChainRequest): Set<string> =>
    new Set(
      request.providers.flatMap(({ provider: kind, api_base, params }) => {
        const isElsewhere = api_base !== undefined || params?.api_base !== undefined;
        const own = typeof kind === 'string' && !isElsewhere ? kinds[kind]?.api_base : undefined;
        return own === undefined ? [] : [new URL(own).host];
      }),
    );

  /** Asserts that no export of a chain and no call of the template for curl has the host of a kind that the chain does not name. */
  function assertNamed(request: ChainRequest): void {
    const chain = define(request);
    const texts = exportFormats.map((format) => exported(request, format).content);
    const { providers } = templateChain(chain, routingOf(chain)) as { providers: { call: { url: string } }[] };
    const allowed = named(request);
    for (const text of [...texts, ...providers.map(({ call }) => call.url)])
      for (const host of vendors.filter((one) => !allowed.has(one))) assert.ok(!text.includes(host), `${host} in ${text}`);
  }

  test('in any export and in the template for curl, whatever kinds and addresses a chain has [F105]', () => {
    fc.assert(
      fc.property(fc.array(provider, { minLength: 1, maxLength: 4 }), (list) => {
        const request: ChainRequest = {
          name: 'keys',
          providers: list.map(({ kind, address }, index) => ({
            name: `p${index}`,
            model_id: 'm',
            api_key_env: `PRIVATE_KEY_${index}`,
            ...(kind === null ? {} : { provider: kind }),
            ...address,
          })),
        };
        assertNamed(request);
        // Where a target knows the host of a kind by itself, an entry with a key and another address has that address.
        const { model_list } = exported(request, 'litellm').config as { model_list: { litellm_params: Record<string, string> }[] };
        const { targets } = exported(request, 'portkey').config as { targets: Record<string, string>[] };
        for (const [index, { kind, address }] of list.entries()) {
          const isNamed = kind !== null && kind !== 'homemade' && Object.keys(address).length === 0;
          if (isNamed) continue;
          const { api_base } = model_list[index]!.litellm_params;
          assert.ok(api_base !== undefined, JSON.stringify(model_list[index]));
          assert.ok(targets[index]!.custom_host !== undefined, JSON.stringify(targets[index]));
        }
      }),
    );
  });

  const foreign = ['bedrock', 'vertex_ai', 'watsonx', 'zhipu', 'homemade'];
  const some = <T extends object>(...parts: T[]) => fc.constantFrom<object>({}, ...parts);
  const imported: Record<'litellm' | 'portkey', fc.Arbitrary<object>> = {
    litellm: fc
      .record({
        kind: fc.constantFrom(...foreign, ...Object.keys(kinds)),
        address: some({ api_base: 'os.environ/PRIVATE_BASE' }, { api_base: 'https://private.example.com/v1' }),
        key: some({ api_key: 'os.environ/PRIVATE_KEY' }, { api_key: 'sk-written' }, { litellm_credential_name: 'stored' }),
      })
      .map(({ kind, address, key }) => ({ model_name: 'a', litellm_params: { model: `${kind}/m`, ...address, ...key } })),
    portkey: fc
      .record({
        provider: some(
          { provider: '@slug' },
          { virtual_key: 'stored' },
          // Names that Portkey has in another spelling are refused.
          ...[...foreign, ...Object.keys(kinds)].map((kind) => ({ provider: nameOfKind(kindNames, kind) ?? kind })),
        ),
        address: some({ custom_host: 'https://private.example.com/v1' }),
        key: some({ api_key: `\${PRIVATE_KEY}` }, { api_key: 'sk-written' }, { virtual_key: 'other' }),
      })
      .filter(({ provider, key }) => Object.keys(provider).length > 0 || 'virtual_key' in key)
      .map(({ provider, address, key }) => ({ ...provider, ...address, ...key, override_params: { model: 'm' } })),
  };
  for (const [format, entries] of Object.entries(imported))
    test(`in any export of a file for ${format}, whatever kinds, addresses and keys it has or lacks [F105]`, () => {
      fc.assert(
        fc.property(fc.array(entries, { minLength: 1, maxLength: 4 }), (list: object[]) => {
          const value = format === 'litellm' ? { model_list: list } : { strategy: { mode: 'fallback' }, targets: list };
          const { request } = importChain({ format: format as 'litellm' | 'portkey', value });
          assertNamed(request as ChainRequest);
        }),
      );
    });
});
