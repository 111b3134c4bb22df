import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, test } from 'node:test';

import { makeAdminKey } from '../../src/handoff/maintenance.ts';
import { readHandoffSettings } from '../../src/handoff/settings.ts';
import { adminKey, newTenant, startService } from '../support/service.ts';
import { shareService } from '../support/shared.ts';
import { storesOfSeveral } from '../support/stores.ts';

for (const store of storesOfSeveral) {
  describe(`A service whose admin keys are all revoked, on ${store.name}`, () => {
    test('creates a new admin key at the next start and does not restore a revoked one [H187]', async (t) => {
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
      // Its SERVICE_ADMIN_KEY is the revoked one.
      assert.equal(third.handoff.warnings.length, 1);
    });

    test('creates a new admin key if the only one left belongs to a deleted tenant', async (t) => {
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

  describe(`SERVICE_ADMIN_KEY for a database that has keys, on ${store.name}`, () => {
    test('causes a warning at the start, unless it is one of the admin keys [H187]', async (t) => {
      const service = await shareService(store);
      assert.deepEqual(service.handoff.warnings, []);
      const again = await startService(t, { databaseUrl: service.databaseUrl });
      assert.deepEqual(again.handoff.warnings, []);
      const { key } = await newTenant(service);
      for (const other of ['another-admin-key-0123456789', key]) {
        const next = await startService(t, { databaseUrl: service.databaseUrl, settings: { SERVICE_ADMIN_KEY: other } });
        assert.equal(next.handoff.adminKey, undefined);
        assert.equal(next.handoff.warnings.length, 1);
        assert.match(next.handoff.warnings[0]!, /^SERVICE_ADMIN_KEY was ignored: .*service-cli admin-key/);
        assert.ok(!next.handoff.warnings[0]!.includes(other));
      }
    });
  });

  describe(`An admin key created directly in the database, on ${store.name}`, () => {
    test('works at once in a running service, and is in the audit log [H190]', async () => {
      const service = await shareService(store);
      const key = await makeAdminKey(readHandoffSettings({ environment: { SERVICE_DATABASE_URL: service.databaseUrl } }));
      assert.equal((await service.call('GET', '/tenants', { key })).status, 200);
      const { body: keys } = await service.call('GET', '/keys', { key });
      assert.deepEqual(
        keys.map(({ name, admin }: { name: string; admin: boolean }) => [name, admin]),
        [
          ['first admin key', true],
          ['admin key made at the database', true],
        ],
      );
      const [entry] = (await service.call('GET', '/audit', { key })).body.entries;
      assert.deepEqual([entry.action, entry.resource, entry.actor], ['created', 'api_key', 'system:admin-key']);
      assert.ok(!JSON.stringify(entry).includes(key));
    });

    test('is refused for a database on which no service was started, and creates nothing there [H190]', async (t) => {
      const { url, drop } = await store.open();
      t.after(() => drop());
      const made = () => makeAdminKey(readHandoffSettings({ environment: { SERVICE_DATABASE_URL: url } }));
      const problem = url.startsWith('sqlite')
        ? /^There is no database of the handoff service at \/\S+: /
        : /^There is no database of the handoff service at PostgreSQL at \S+: /;
      for (let time = 0; time < 2; time += 1) await assert.rejects(made, ({ message }: Error) => problem.test(message));
      if (url.startsWith('sqlite')) assert.ok(!existsSync(url.slice('sqlite://'.length)));
    });
  });
}
