import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { define, merge } from '../../../src/fallback/rules/chain.ts';
import { callAddress, modelName } from '../../../src/fallback/rules/kinds.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { chainOf, requestOf } from './chains.ts';

/** The invalid fields of a request. */
function faultFields(request: Parameters<typeof define>[0]): string[] {
  try {
    define(request);
  } catch (error) {
    assert.ok(error instanceof ServiceError);
    return error.faults.map(({ field }) => field);
  }
  return [];
}

describe('A chain', () => {
  test('has its providers by priority, by default their position, and ties keep their order [F1]', () => {
    const request = requestOf(3);
    request.providers[0]!.priority = 7;
    request.providers[2]!.priority = 1;
    assert.deepEqual(
      define(request).providers.map(({ name, priority }) => [name, priority]),
      [
        ['b', 1],
        ['c', 1],
        ['a', 7],
      ],
    );
  });

  test('has every default filled in [F4, F11]', () => {
    const chain = chainOf(
      1,
      [
        { condition: 'rate_limit', action: 'retry' },
        { condition: 'timeout', action: 'failover' },
      ],
      { api_base: null },
    );
    assert.deepEqual(chain.providers[0], {
      name: 'a',
      model_id: 'model-0',
      priority: 0,
      provider: null,
      api_base: null,
      api_key_env: null,
      first_token_ms: null,
      idle_ms: null,
      timeout_ms: 30_000,
      max_tokens: null,
      input_cost_per_1m: null,
      output_cost_per_1m: null,
      cooldown: null,
      params: {},
      metadata: {},
    });
    const none = { providers: null, status_codes: null };
    assert.deepEqual(chain.fallback_rules, [
      {
        ...none,
        condition: 'rate_limit',
        action: 'retry',
        max_retries: 1,
        wait_ms: 500,
        backoff: 'exponential',
        max_wait_ms: 10_000,
        respect_retry_after: true,
        then: 'failover',
        to: null,
      },
      {
        ...none,
        condition: 'timeout',
        action: 'failover',
        max_retries: null,
        wait_ms: null,
        backoff: null,
        max_wait_ms: null,
        respect_retry_after: null,
        then: null,
        to: null,
      },
    ]);
  });

  test('derives the kind from a known prefix, which is not sent; any other id is sent unchanged [F4]', () => {
    const cases = [
      ['openai/gpt-4o', null, 'openai', 'gpt-4o'],
      ['meta-llama/llama-3', null, null, 'meta-llama/llama-3'],
      ['openai/gpt-oss-120b', 'groq', 'groq', 'openai/gpt-oss-120b'],
      ['groq/groq/compound', null, 'groq', 'groq/compound'],
      ['gpt-4o', 'openai', 'openai', 'gpt-4o'],
      ['constructor/x', null, null, 'constructor/x'],
    ] as const;
    for (const [model_id, kind, expected, sent] of cases) {
      const [provider] = define({ name: 'c', providers: [{ name: 'a', model_id, provider: kind }] }).providers;
      assert.equal(provider!.provider, expected, model_id);
      assert.equal(modelName(provider!), sent, model_id);
    }
  });

  test('that was read can be sent back unchanged', () => {
    const chain = chainOf(3, [{ condition: 'any', action: 'retry', providers: ['b'] }], { model_id: 'openai/gpt-4o' });
    assert.deepEqual(define(chain), chain);
    assert.deepEqual(merge(chain, { providers: chain.providers, fallback_rules: chain.fallback_rules }), chain);
  });

  test('is called below its base: chat/completions, or messages at Anthropic [F34]', () => {
    const chain = define({
      name: 'c',
      providers: [
        { name: 'a', model_id: 'anthropic/claude', api_base: 'http://127.0.0.1:9/v1/' },
        { name: 'b', model_id: 'groq/llama' },
        { name: 'c', model_id: 'llama' },
      ],
    });
    assert.deepEqual(
      chain.providers.map((provider) => callAddress(provider)),
      ['http://127.0.0.1:9/v1/messages', 'https://api.groq.com/openai/v1/chat/completions', null],
    );
  });

  test('is refused with all faults at once, each with its field [F1]', () => {
    const request = requestOf(3, [{ condition: 'any', action: 'fail', providers: ['a', 'z'] }]);
    request.providers[1]!.name = 'a';
    request.providers[0]!.api_base = 'ftp://x';
    request.providers[2]!.api_key_env = 'MY KEY';
    assert.deepEqual(faultFields(request), [
      'providers.0.api_base',
      'providers.1.name',
      'providers.2.api_key_env',
      'fallback_rules.0.providers.1',
    ]);
  });

  test('accepts any http or https base with its version path, also local ones, and nothing else [F5]', () => {
    const faulty = [
      '',
      'x',
      'ftp://h/v1',
      'https:/h',
      'javascript:alert(1)',
      'https://u:p@h/v1',
      'https://h/v1?x=1',
      'https://h/v1#x',
      'http://h:0/',
    ];
    for (const api_base of faulty) assert.deepEqual(faultFields(requestOf(1, [], { api_base })), ['providers.0.api_base'], api_base);
    for (const api_base of ['http://127.0.0.1:8080/v1', 'https://llm.example.com', 'http://[::1]:1/v1/'])
      assert.deepEqual(faultFields(requestOf(1, [], { api_base })), [], api_base);
  });

  test('refuses a key instead of its variable, and never quotes it [F6]', () => {
    const keys = [
      'sk-abcdefghijklmnopqrstuvwxyz',
      'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
      'gsk_0123456789abcdef',
      'AIzaSyA1234567890abcdefghijk',
      'hf_abcdefghijkl',
      '0123456789abcdef0123456789abcdef',
      'a94a8fe5ccb19ba61c4c0873d391e987982fbbd3',
    ];
    for (const api_key_env of keys) {
      assert.throws(
        () => define(requestOf(1, [], { api_key_env })),
        (error: ServiceError) => error.field === 'providers.0.api_key_env' && !error.message.includes(api_key_env),
        api_key_env,
      );
    }
    for (const api_key_env of ['OPENAI_API_KEY', 'my_key', 'AZURE_OPENAI_API_KEY_EASTUS2_PRODUCTION', '_K'])
      assert.deepEqual(faultFields(requestOf(1, [], { api_key_env })), [], api_key_env);
  });

  test('a merge patch replaces whole arrays, merges metadata, and null means the default', () => {
    const chain = merge(chainOf(2, [{ condition: 'any', action: 'fail' }]), { description: 'x', metadata: { a: { b: 1, c: 2 }, d: 3 } });
    const patched = merge(chain, { description: null, fallback_rules: null, metadata: { a: { b: null }, d: 4 } });
    assert.equal(chain.description, 'x');
    assert.equal(patched.description, null);
    assert.deepEqual(patched.fallback_rules, []);
    assert.deepEqual(patched.metadata, { a: { c: 2 }, d: 4 });
    assert.throws(
      () =>
        merge(chain, {
          providers: [
            { name: 'z', model_id: 'm' },
            { name: 'z', model_id: 'm' },
          ],
        }),
      /providers\.1\.name/,
    );
  });
});
