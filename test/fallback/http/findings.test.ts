import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createChain, shareFallback } from '../../support/fallback.ts';
import { stores } from '../../support/stores.ts';

const file = `model_list:
  - model_name: gpt
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY, mode: chat }
  - model_name: claude
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_key: os.environ/ANTHROPIC_API_KEY }
litellm_settings:
  num_retries: 2
  fallbacks: [{ gpt: [claude] }]
`;

interface Finding {
  readonly stream?: true;
  kind: string;
  field: string | null;
  line: number | null;
  provider: string | null;
  condition: string | null;
  loss: boolean;
  status_codes?: number[];
}

for (const store of stores) {
  describe(`GET /chains/{id}/findings on ${store.name}`, () => {
    async function imported() {
      const service = await shareFallback(store);
      const { status, body } = await service.call('POST', '/import?format=litellm', {
        raw: file,
        headers: { 'content-type': 'application/yaml' },
      });
      assert.equal(status, 201);
      return { service, id: body.chain.id as string, findings: body.findings as Finding[] };
    }

    test('200: the findings of the import as an array, each with its line [F77]', async () => {
      const { service, id, findings } = await imported();
      const { status, body } = await service.call('GET', `/chains/${id}/findings`);
      assert.equal(status, 200);
      assert.deepEqual(body, findings);
      const left = findings.find(({ field }) => field === 'model_list.0.litellm_params.mode')!;
      assert.deepEqual([left.kind, left.line, left.loss], ['left_out', 3, true]);
      for (const { stream, status_codes, ...finding } of findings) {
        assert.ok((stream === undefined || stream === true) && (status_codes === undefined || status_codes.every(Number.isInteger)));
        assert.deepEqual(Object.keys(finding), ['kind', 'field', 'line', 'detail', 'provider', 'condition', 'loss', 'measured']);
      }
    });

    test('they stay when the name changes, and go when the providers or rules change [F77]', async () => {
      const { service, id } = await imported();
      await service.call('PATCH', `/chains/${id}`, { body: { name: 'renamed' } });
      assert.notDeepEqual((await service.call('GET', `/chains/${id}/findings`)).body, []);
      await service.call('PATCH', `/chains/${id}`, { body: { fallback_rules: [] } });
      assert.deepEqual((await service.call('GET', `/chains/${id}/findings`)).body, []);
    });

    test('a created chain has none', async () => {
      const service = await shareFallback(store);
      const { id } = await createChain(service);
      assert.deepEqual((await service.call('GET', `/chains/${id}/findings`)).body, []);
    });

    test('routing and results show them beside the failures that they concern [F77]', async () => {
      const { service, id, findings } = await imported();
      const routing = (await service.call('GET', `/chains/${id}/routing`)).body;
      const shown = (provider: string, condition: string) => {
        const { decisions } = routing.providers.find(({ name }: { name: string }) => name === provider);
        return decisions.find((one: { condition: string }) => one.condition === condition).findings as Finding[];
      };
      assert.deepEqual(
        shown('claude', 'connection_error').map(({ kind }) => kind),
        ['repeats'],
      );
      assert.deepEqual(shown('gpt', 'connection_error'), []);
      // No timeout is set, which is a finding about the time-outs of every provider.
      for (const provider of ['gpt', 'claude']) assert.deepEqual(shown(provider, 'timeout')[0]!.field, 'timeout');
      const concerning = findings.filter(({ kind, condition }) => condition !== null || kind === 'cooldowns');
      assert.ok(concerning.some(({ kind }) => kind === 'cooldowns'));
      const result = (await service.call('POST', `/chains/${id}/test`, { body: {} })).body;
      assert.deepEqual(result.findings, concerning);
    });
  });
}
