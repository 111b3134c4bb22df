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

    test('an admin key of a deleted tenant manages nothing any more, so the next start makes a new one', async (t) => {
      const service = await startService(t, { store });
      const [{ id: first }] = (await service.call('GET', '/keys')).body;
      const tenant = (await service.call('POST', '/tenants', { body: { name: 'Acme', tier: 'business' } })).body;
      const made = await service.call('POST', '/keys', { body: { name: 'theirs', tenant_id: tenant.id, admin: true } });
      assert.equal(made.status, 201);
      const { key } = made.body;
      assert.equal((await service.call('DELETE', `/keys/${first}`, { key })).status, 204);
      assert.equal((await service.call('DELETE', `/tenants/${tenant.id}`, { key })).status, 204);

      const next = await startService(t, { databaseUrl: service.databaseUrl });
      const shown = next.handoff.adminKey;
      assert.match(shown ?? '', /^svc_/);
      assert.equal((await next.call('GET', '/tenants', { key })).status, 401);
      assert.equal((await next.call('GET', '/tenants', { key: shown ?? null })).status, 200);
    });
  });
}
