import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { chainRequestExample } from '../../../src/fallback/model/chain.ts';
import { startFallback } from '../../support/fallback.ts';

describe('POST /chains/check', () => {
  test('answers like a create, and stores nothing [F20]', async (t) => {
    const service = await startFallback(t);
    const good = await service.call('POST', '/chains/check', { body: chainRequestExample });
    assert.equal(good.status, 200);
    const created = await service.call('POST', '/chains', { body: chainRequestExample });
    assert.deepEqual(good.body.warnings, created.body.warnings);
    const routing = await service.call('GET', `/chains/${created.body.id}/routing`);
    assert.deepEqual(good.body.worst_case, routing.body.worst_case);

    const bad = { name: '', providers: [], fallback_rules: [{ condition: 'sometimes', action: 'retry' }] };
    const [checked, refused] = [
      await service.call('POST', '/chains/check', { body: bad }),
      await service.call('POST', '/chains', { body: bad }),
    ];
    assert.equal(checked.status, 400);
    assert.deepEqual(checked.body.errors, refused.body.errors);
    const keyed = { name: 'a', providers: [{ name: 'a', model_id: 'm', priority: 1.5, api_key: 'a-key' }] };
    const told = (await service.call('POST', '/chains/check', { body: keyed })).body.errors.map(({ detail }: { detail: string }) => detail);
    assert.deepEqual(told, [
      'providers.0.api_key cannot be stored; give the name of the environment variable that holds the key as api_key_env.',
      'providers.0.priority must be a whole number.',
    ]);
    assert.equal((await service.call('GET', '/chains')).body.length, 1);
  });
});
