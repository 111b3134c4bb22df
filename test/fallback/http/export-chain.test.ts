import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { exportFormats } from '../../../src/fallback/model/targets.ts';
import { threeProviders } from '../../support/chains.ts';
import { createChain, shareFallback, startFallback } from '../../support/fallback.ts';

describe('POST /chains/{id}/export', () => {
  test('200: every format, with its file name, text and losses [F67]', async () => {
    const service = await shareFallback();
    const { id } = await createChain(service, { ...threeProviders });
    for (const format of exportFormats) {
      const { status, body } = await service.call('POST', `/chains/${id}/export?format=${format}`);
      assert.equal(status, 200, format);
      assert.deepEqual(Object.keys(body), ['format', 'filename', 'content_type', 'config', 'content', 'lossless', 'warnings']);
      assert.equal(body.format, format);
      assert.equal(body.lossless, ['langchain', 'ai-sdk', 'json', 'yaml'].includes(format), format);
      assert.equal(body.lossless, !body.warnings.some(({ loss }: { loss: boolean }) => loss));
      for (const warning of body.warnings) assert.deepEqual(Object.keys(warning), ['code', 'field', 'detail', 'loss']);
    }
  });

  test('the minimal chain of the specification is exported to LiteLLM', async () => {
    const service = await shareFallback();
    const { id } = await createChain(service);
    const { status, body } = await service.call('POST', `/chains/${id}/export?format=litellm`);
    assert.equal(status, 200);
    assert.equal(body.config.model_list[0].litellm_params.api_key, 'os.environ/OPENAI_API_KEY');
    assert.equal(body.config.router_settings.retry_policy.RateLimitErrorRetries, 3);
  });

  test('without a format it is json: the body that creates the chain [F67]', async () => {
    const service = await shareFallback();
    const { id, name, providers } = await createChain(service, { ...threeProviders });
    const { status, body } = await service.call('POST', `/chains/${id}/export`);
    assert.equal(status, 200);
    assert.deepEqual([body.format, body.config.name, body.config.providers.length], ['json', name, providers.length]);
    assert.deepEqual(JSON.parse(body.content), body.config);
    const again = await service.call('POST', '/chains', { raw: body.content });
    assert.equal(again.status, 201);
    assert.deepEqual(again.body.providers, providers);
  });

  test('raw=true returns only the text, as a download [F67]', async () => {
    const service = await shareFallback();
    const { id } = await createChain(service, { name: 'Ünï: "chain"/..', providers: threeProviders.providers });
    for (const format of exportFormats) {
      const path = `/chains/${id}/export?format=${format}`;
      const { body } = await service.call('POST', path);
      const { status, text, headers } = await service.call('POST', `${path}&raw=true`);
      assert.equal(status, 200);
      assert.equal(text, body.content);
      assert.equal(headers['content-type'], `${body.content_type}; charset=utf-8`);
      assert.equal(headers['content-disposition'], `attachment; filename="${body.filename}"`);
      assert.match(body.filename, /^n-chain\./);
    }
  });

  test('prefer=retry retries if a target has a single number of retries [F71]', async () => {
    const service = await shareFallback();
    const { id } = await createChain(service, { ...threeProviders });
    const retries = async (query: string) => {
      const { body } = await service.call('POST', `/chains/${id}/export?format=bifrost${query}`);
      return body.config.providers.openai.network_config.max_retries;
    };
    assert.deepEqual([await retries(''), await retries('&prefer=retry')], [0, 3]);
  });

  test('400: an unknown format is refused with the list [F67]', async () => {
    const service = await shareFallback();
    const { id } = await createChain(service);
    const { status, body } = await service.call('POST', `/chains/${id}/export?format=nginx`);
    assert.deepEqual([status, body.field, body.detail], [400, 'format', `format must be one of ${exportFormats.join(', ')}.`]);
  });
});

test('a read-only label may export and render, but not import', async (t) => {
  const service = await startFallback(t, { environment: { SERVICE_API_KEYS: 'reader:look-only-key,team:all-of-it-key' } });
  const write = { 'x-api-key': 'all-of-it-key' };
  const read = { 'x-api-key': 'look-only-key' };
  const created = await service.call('POST', '/chains', { body: threeProviders, headers: write });
  const { id } = created.body;
  assert.equal((await service.call('POST', `/chains/${id}/export`, { headers: read })).status, 200);
  const rendered = await service.call('POST', '/export-template', { body: { chain_id: id, template: 'x' }, headers: read });
  assert.equal(rendered.status, 200);
  assert.equal((await service.call('POST', '/import', { body: { content: threeProviders }, headers: read })).status, 403);
});
