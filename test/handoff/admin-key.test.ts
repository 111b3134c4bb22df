import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { adminKey, startService } from '../support/service.ts';
import { stores } from '../support/stores.ts';

for (const store of stores.filter(({ name }) => name !== 'SQLite in memory')) {
  describe(`a service whose admin keys are all revoked, on ${store.name}`, () => {
    test('the next start makes a new one and does not bring a revoked one back', async (t) => {
      const service = await startService(t, { store });
      const [{ id }] = (await service.call('GET', '/keys')).body;
      assert.equal((await service.call('DELETE', `/keys/${id}`)).status, 204);
      assert.equal((await service.call('GET', '/keys')).status, 401);

      const next = await startService(t, { databaseUrl: service.databaseUrl });
      const shown = next.handoff.adminKey;
      assert.match(shown ?? '', /^svc_/);
      assert.equal((await next.call('GET', '/keys', { key: adminKey })).status, 401);
      assert.equal((await next.call('GET', '/tenants', { key: shown ?? null })).status, 200);

      const third = await startService(t, { databaseUrl: service.databaseUrl });
      assert.equal(third.handoff.adminKey, undefined);
    });
  });
}
