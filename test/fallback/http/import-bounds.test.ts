import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { Finding } from '../../../src/fallback/model/finding.ts';
import { shareFallback } from '../../support/fallback.ts';

/** A number beyond every bound, and others that no setting takes. */
const huge = 1_000_000_000;
const wrong = [-1, 1.5, '3', true];

const model = (litellm_params: object = {}) => ({ model_name: 'main', litellm_params: { model: 'openai/gpt-4o', ...litellm_params } });

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
