import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { maxCooldownSeconds, maxTimeoutMs } from '../../../src/fallback/model/chain.ts';
import type { Finding } from '../../../src/fallback/model/finding.ts';
import { shareFallback } from '../../support/fallback.ts';

/** A number beyond every bound, and others that no setting takes. */
const huge = 1_000_000_000;
const wrong = [-1, 1.5, '3', true];

const model = (litellm_params: object = {}) => ({ model_name: 'main', litellm_params: { model: 'openai/gpt-4o', ...litellm_params } });

const breaker = (cb_config: object) => ({ strategy: { mode: 'fallback' }, targets: [{ provider: 'openai', cb_config }] });

/** Files by the field of theirs that has a number, each with the number. */
const counts: Readonly<Record<string, readonly [format: string, fileOf: (value: unknown) => object]>> = {
  num_retries: ['litellm', (num_retries) => ({ model_list: [model()], router_settings: { num_retries } })],
  max_fallbacks: ['litellm', (max_fallbacks) => ({ model_list: [model()], router_settings: { max_fallbacks } })],
  'retry_policy.TimeoutErrorRetries': [
    'litellm',
    (TimeoutErrorRetries) => ({ model_list: [model()], router_settings: { retry_policy: { TimeoutErrorRetries } } }),
  ],
  'model_group_retry_policy.main.DefaultRetries': [
    'litellm',
    (DefaultRetries) => ({ model_list: [model()], router_settings: { model_group_retry_policy: { main: { DefaultRetries } } } }),
  ],
  'model_list.0.litellm_params.num_retries': ['litellm', (num_retries) => ({ model_list: [model({ num_retries })] })],
  'model_list.0.litellm_params.max_tokens': ['litellm', (max_tokens) => ({ model_list: [model({ max_tokens })] })],
  'targets.0.request_timeout': [
    'portkey',
    (request_timeout) => ({ strategy: { mode: 'fallback' }, targets: [{ provider: 'openai', request_timeout }] }),
  ],
  'targets.0.override_params.max_tokens': [
    'portkey',
    (max_tokens) => ({ strategy: { mode: 'fallback' }, targets: [{ provider: 'openai', override_params: { max_tokens } }] }),
  ],
  allowed_fails: ['litellm', (allowed_fails) => ({ model_list: [model()], router_settings: { allowed_fails } })],
  'allowed_fails_policy.TimeoutErrorAllowedFails': [
    'litellm',
    (TimeoutErrorAllowedFails) => ({ model_list: [model()], router_settings: { allowed_fails_policy: { TimeoutErrorAllowedFails } } }),
  ],
  'targets.0.cb_config.failure_threshold': ['portkey', (failure_threshold) => breaker({ failure_threshold })],
  'targets.0.cb_config.cooldown_interval': ['portkey', (cooldown_interval) => breaker({ cooldown_interval })],
  'targets.0.retry.attempts': [
    'portkey',
    (attempts) => ({ strategy: { mode: 'fallback' }, targets: [{ provider: 'openai', retry: { attempts } }] }),
  ],
};

describe('A number of an imported file', () => {
  for (const [field, [format, fileOf]] of Object.entries(counts)) {
    test(`${field} is reduced to a bound with a finding, and refused by its name if it is none [F101]`, async () => {
      const service = await shareFallback();
      const send = (value: unknown) => service.call('POST', `/import?format=${format}&dry_run=true`, { body: { content: fileOf(value) } });
      const { status, body, text } = await send(huge);
      assert.equal(status, 200, text);
      assert.ok(
        body.findings.some((finding: Finding) => finding.kind === 'reduced' && finding.field?.endsWith(field) && finding.loss),
        text,
      );
      for (const value of wrong) {
        const refused = await send(value);
        assert.equal(refused.status, 400, `${value}: ${refused.text}`);
        assert.ok(refused.body.field.endsWith(field), refused.text);
      }
    });
  }

  test('of seconds or of an order is taken as far as a chain goes [F101]', async () => {
    const service = await shareFallback();
    const chainOf = async (settings: object, params: object = {}) => {
      const content = {
        model_list: [model({ order: 1, ...params }), model({ model: 'openai/gpt-4o-mini', order: 2 })],
        router_settings: settings,
      };
      const { status, body, text } = await service.call('POST', '/import?format=litellm&dry_run=true', { body: { content } });
      assert.equal(status, 200, text);
      return body.chain;
    };
    const [first] = (await chainOf({}, { timeout: huge })).providers;
    assert.equal(first.timeout_ms, maxTimeoutMs);
    const waits = await chainOf({ retry_after: huge, num_retries: 1 });
    assert.match(JSON.stringify(waits), new RegExp(`"wait_ms":${maxTimeoutMs}\\b`));
    const cooled = await chainOf({ allowed_fails: 5, cooldown_time: huge });
    assert.equal(cooled.cooldown.seconds, maxCooldownSeconds);
    const usual = await chainOf({}, { weight: 1 });
    assert.deepEqual(await chainOf({}, { weight: huge }), usual);
    const namesOf = ({ providers }: { providers: { name: string }[] }) => providers.map(({ name }) => name);
    assert.deepEqual(namesOf(await chainOf({}, { order: huge })), namesOf(usual).toReversed());
  });

  test('a price beyond that of a chain is refused by its name [F101]', async () => {
    const service = await shareFallback();
    const content = { model_list: [model({ input_cost_per_token: 2 })] };
    const { status, body } = await service.call('POST', '/import?format=litellm&dry_run=true', { body: { content } });
    assert.equal(status, 400);
    assert.equal(body.field, 'model_list.0.litellm_params.input_cost_per_token');
  });
});

describe('A LiteLLM file that leads to more models than a chain has', () => {
  const files = {
    'by the orders of one group': {
      model_list: Array.from({ length: 300 }, (_, index) => model({ order: index + 1 })),
    },
    'by one list of fallbacks': {
      model_list: Array.from({ length: 300 }, (_, index) => ({ ...model(), model_name: `g${index}` })),
      router_settings: { max_fallbacks: 1000, fallbacks: [{ g0: Array.from({ length: 299 }, (_, index) => `g${index + 1}`) }] },
    },
    'by fallbacks of fallbacks': {
      model_list: Array.from({ length: 300 }, (_, index) => ({ ...model(), model_name: `g${index}` })),
      router_settings: {
        max_fallbacks: 1000,
        context_window_fallbacks: Array.from({ length: 299 }, (_, index) => ({ [`g${index}`]: [`g${index + 1}`] })),
      },
    },
    'by a group that is drawn from': { model_list: Array.from({ length: 300 }, () => model()) },
  };
  for (const [how, content] of Object.entries(files)) {
    test(`${how} is refused before they are followed [F101]`, async () => {
      const service = await shareFallback();
      const { status, body } = await service.call('POST', '/import?format=litellm', { body: { content } });
      assert.equal(status, 400);
      assert.deepEqual(
        [body.field, body.detail],
        [
          'model_list',
          'The group leads to more than 50 models of model_list, and a chain can have at most 50; name a group that leads to fewer.',
        ],
      );
    });
  }
});
