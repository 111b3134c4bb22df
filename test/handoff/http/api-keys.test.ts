import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';

import { looksLikeKey } from '../../../src/handoff/rules/keys.ts';
import { claimant } from '../../support/life.ts';
import { adminKey, createPacket, newTenant, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';

const shownInLists = [
  'id',
  'name',
  'tier',
  'prefix',
  'admin',
  'created_at',
  'expires_at',
  'scopes',
  'agents',
  'responder',
  'sees',
  'queues',
];
const unrestricted = { scopes: ['read', 'work', 'respond', 'manage'], agents: null, responder: null, sees: 'all', queues: null };

/** Creates a key, by default with the admin key in its tenant. */
const createKey = (service: TestService, body: Record<string, unknown>, key?: string): Promise<TestAnswer> =>
  service.call('POST', '/keys', { body, ...(key === undefined ? {} : { key }) });

const namesOf = ({ body }: TestAnswer): string[] => body.map(({ name }: { name: string }) => name);
const statusesOf = (answers: readonly TestAnswer[]) => answers.map(({ status }) => status).toSorted();

/** Every value of every table as text, read directly from the database. */
async function dump(databaseUrl: string): Promise<string> {
  if (databaseUrl.startsWith('sqlite')) {
    const database = new DatabaseSync(databaseUrl.slice('sqlite://'.length), { readOnly: true });
    const tables = database.prepare("select name from sqlite_master where type = 'table' and name not like 'search_index%'").all();
    const rows = tables.map(({ name }) => JSON.stringify(database.prepare(`select * from ${name}`).all()));
    database.close();
    return rows.join('\n');
  }
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows: tables } = await client.query("select tablename from pg_tables where schemaname = 'public'");
  const texts: string[] = [];
  for (const { tablename } of tables) texts.push(JSON.stringify((await client.query(`select * from ${tablename}`)).rows));
  await client.end();
  return texts.join('\n');
}

for (const store of stores) {
  describe(`POST /keys on ${store.name}`, () => {
    test('201: the key is shown once, has the documented form, and works at once [H199]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service, { tier: 'pro' });
      const made = await createKey(service, { name: 'ci', tier: 'free' }, tenant.key);
      assert.equal(made.status, 201);
      assert.deepEqual(Object.keys(made.body).toSorted(), [...shownInLists, 'key'].toSorted());
      const { id, key, ...rest } = made.body;
      assert.match(key, /^svc_[0-9A-Za-z]{49}$/);
      assert.ok(looksLikeKey(key));
      assert.deepEqual(rest, {
        name: 'ci',
        tier: 'free',
        prefix: key.slice(0, 8),
        admin: false,
        created_at: '2026-03-01T09:30:00.000Z',
        expires_at: null,
        ...unrestricted,
      });
      const listed = await service.call('GET', '/keys', { key });
      assert.equal(listed.status, 200);
      assert.deepEqual(
        listed.body.find((one: { id: string }) => one.id === id),
        { id, ...rest },
      );
    });

    test("the tier defaults to the tenant's tier and may be lower, but not higher [H194]", async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service, { tier: 'pro' });
      assert.equal((await createKey(service, { name: 'default' }, tenant.key)).body.tier, 'pro');
      assert.equal((await createKey(service, { name: 'same', tier: 'pro' }, tenant.key)).body.tier, 'pro');
      assert.equal((await createKey(service, { name: 'below', tier: 'free' }, tenant.key)).body.tier, 'free');
      const above = await createKey(service, { name: 'above', tier: 'business' }, tenant.key);
      assert.equal(above.status, 400);
      assert.equal(above.body.code, 'VALIDATION_ERROR');
      assert.equal(above.body.field, 'tier');
      assert.deepEqual(namesOf(await service.call('GET', '/keys', { key: tenant.key })), ['first', 'default', 'same', 'below']);
    });

    test('X-RateLimit-Tier is the tier of the key [H202]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service, { tier: 'pro' });
      const below = await createKey(service, { name: 'below', tier: 'free' }, tenant.key);
      assert.equal((await service.call('GET', '/packets', { key: below.body.key })).headers['x-ratelimit-tier'], 'free');
      assert.equal((await service.call('GET', '/packets', { key: tenant.key })).headers['x-ratelimit-tier'], 'pro');
    });

    test('403: only an admin key may create admin keys, or keys for another tenant [H194]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const other = await newTenant(service);
      for (const body of [
        { name: 'x', admin: true },
        { name: 'x', tenant_id: other.id },
        { name: 'x', tenant_id: tenant.id },
      ]) {
        const refused = await createKey(service, body, tenant.key);
        assert.equal(refused.status, 403);
        assert.equal(refused.body.code, 'FORBIDDEN');
        assert.equal(refused.body.status_code, 403);
      }
      assert.equal((await createKey(service, { name: 'x', admin: false }, tenant.key)).status, 201);

      const admin = await createKey(service, { name: 'second admin', admin: true, tenant_id: tenant.id });
      assert.equal(admin.status, 201);
      assert.equal(admin.body.admin, true);
      assert.equal((await service.call('GET', '/tenants', { key: admin.body.key })).status, 200);
      // An admin key works in its own tenant like any other.
      assert.deepEqual(namesOf(await service.call('GET', '/keys', { key: admin.body.key })), ['first', 'x', 'second admin']);
    });

    test('404 for an unknown or deleted tenant', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      await service.call('DELETE', `/tenants/${tenant.id}`);
      const deleted = await createKey(service, { name: 'x', tenant_id: tenant.id });
      assert.equal(deleted.status, 404);
      const unknown = await createKey(service, { name: 'x', tenant_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' });
      assert.equal(unknown.status, 404);
      assert.equal(deleted.body.detail, unknown.body.detail);
    });

    test('20 parallel creates with max_api_keys 5 leave exactly 5 keys; the others are 409 [H205]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service, { max_api_keys: 5 });
      const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => createKey(service, { name: `key ${index}` }, tenant.key)));
      assert.deepEqual(statusesOf(answers), [...Array(4).fill(201), ...Array(16).fill(409)]);
      for (const { body } of answers.filter(({ status }) => status === 409)) assert.equal(body.code, 'CONFLICT');
      assert.equal((await service.call('GET', '/keys', { key: tenant.key })).body.length, 5);
    });

    test('a revoked key does not count towards max_api_keys; an admin key does', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service, { max_api_keys: 2 });
      const second = await createKey(service, { name: 'second', admin: true, tenant_id: tenant.id });
      assert.equal(second.status, 201);
      assert.equal((await createKey(service, { name: 'third', tenant_id: tenant.id })).status, 409);
      assert.equal((await service.call('DELETE', `/keys/${second.body.id}`)).status, 204);
      assert.equal((await createKey(service, { name: 'third' }, tenant.key)).status, 201);
    });

    test("an admin key works in its own tenant like any other key, and sees no other tenant's packets [H194]", async () => {
      const service = await shareService(store);
      const { id: tenant_id, key: plain } = await newTenant(service);
      const made = await service.call('POST', '/keys', { body: { name: 'admin', admin: true, tenant_id } });
      assert.equal(made.status, 201);
      const { key } = made.body;
      const { id: ofDefault } = await createPacket(service);
      const { id } = await createPacket(service, {}, key);
      assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: claimant, key: plain })).status, 200);
      const listed = await service.call('GET', '/packets', { key });
      assert.equal(listed.status, 200);
      assert.deepEqual(
        listed.body.packets.map((packet: { id: string; status: string }) => [packet.id, packet.status]),
        [[id, 'claimed']],
      );
      assert.equal((await service.call('GET', `/packets/${ofDefault}`, { key })).status, 404);
      assert.equal((await service.call('GET', '/tenants', { key })).status, 200);
    });
  });

  describe(`GET /keys on ${store.name}`, () => {
    test("200: the tenant's keys, oldest first, without their values and without revoked keys [H72, H199]", async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const values = [tenant.key];
      for (const name of ['b', 'a', 'c']) {
        service.clock.turn(1);
        values.push((await createKey(service, { name }, tenant.key)).body.key);
      }
      const before = await service.call('GET', '/keys', { key: tenant.key });
      assert.deepEqual(namesOf(before), ['first', 'b', 'a', 'c']);
      await service.call('DELETE', `/keys/${before.body[1].id}`, { key: tenant.key });
      for (const path of ['/keys', `/tenants/${tenant.id}/keys`]) {
        const listed = await service.call('GET', path, path === '/keys' ? { key: tenant.key } : {});
        assert.equal(listed.status, 200);
        assert.deepEqual(namesOf(listed), ['first', 'a', 'c']);
        for (const key of listed.body) assert.deepEqual(Object.keys(key).toSorted(), shownInLists.toSorted());
        for (const value of values) assert.ok(!listed.text.includes(value));
      }
    });

    test('keys created in the same millisecond are listed in order of creation', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      for (let index = 0; index < 10; index += 1) await createKey(service, { name: `${9 - index}` }, tenant.key);
      assert.deepEqual(namesOf(await service.call('GET', '/keys', { key: tenant.key })).join(' '), 'first 9 8 7 6 5 4 3 2 1 0');
    });
  });

  describe(`DELETE /keys/{id} on ${store.name}`, () => {
    test('204 once; then 404, as for an unknown or invalid id', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const made = await createKey(service, { name: 'ci' }, tenant.key);
      const revoke = (id: string) => service.call('DELETE', `/keys/${id}`, { key: tenant.key });
      const done = await revoke(made.body.id);
      assert.equal(done.status, 204);
      assert.equal(done.text, '');
      for (const id of [made.body.id, '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b', 'x']) {
        const refused = await revoke(id);
        assert.equal(refused.status, 404);
        assert.equal(refused.body.code, 'NOT_FOUND');
      }
    });

    test('of 10 concurrent revocations of one key, one is 204, the others are 404, and the trail has one entry', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const made = await createKey(service, { name: 'ci' }, tenant.key);
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => service.call('DELETE', `/keys/${made.body.id}`, { key: tenant.key })),
      );
      assert.deepEqual(statusesOf(answers), [204, ...Array(9).fill(404)]);
      const audit = await service.call('GET', '/audit?action=deleted', { key: tenant.key });
      assert.equal(audit.body.total, 1);
    });

    test('an admin key can revoke the key of any tenant [H194]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      assert.equal((await service.call('DELETE', `/keys/${tenant.keyId}`)).status, 204);
      assert.equal((await service.call('GET', '/keys', { key: tenant.key })).status, 401);
    });

    test('the last admin key may be deleted, even by itself: it is 401 from then on, and other keys still work', async (t) => {
      const service = await startService(t, { store });
      const { key } = await newTenant(service);
      const [own] = (await service.call('GET', '/keys')).body;
      assert.equal(own.admin, true);
      assert.equal((await service.call('DELETE', `/keys/${own.id}`)).status, 204);
      assert.equal((await service.call('GET', '/tenants')).status, 401);
      assert.equal((await service.call('GET', '/packets', { key })).status, 200);
      assert.equal((await service.call('GET', '/tenants', { key })).status, 403);
    });
  });
}

for (const store of storesOfSeveral) {
  test(`A key is stored as a digest alone, on ${store.name} [H199]`, async () => {
    const service = await shareService(store);
    const tenant = await newTenant(service);
    const made = await service.call('POST', '/keys', {
      key: tenant.key,
      body: { name: 'a name to be found' },
      headers: { 'idempotency-key': 'once' },
    });
    assert.equal(made.status, 201);
    const text = await dump(service.databaseUrl);
    assert.ok(text.includes('a name to be found'));
    for (const key of [adminKey, service.key, tenant.key, made.body.key]) {
      assert.ok(!text.includes(key));
      // Nor enough of the key to guess the rest.
      assert.ok(!text.includes(key.slice(0, 12)) && !text.includes(key.slice(-12)));
    }
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('POST /keys', () => {
  const store = stores[0]!;

  test('400 names the field: a missing or empty name, an unknown tier, an unknown field', async () => {
    const service = await shareService(store);
    for (const [body, field] of [
      [{}, 'name'],
      [{ name: '' }, 'name'],
      [{ name: 7 }, 'name'],
      [{ name: 'ci', tier: 'gold' }, 'tier'],
      [{ name: 'ci', admin: 'yes' }, 'admin'],
      [{ name: 'ci', tenant_id: 'acme' }, 'tenant_id'],
      [{ name: 'ci', key: 'mine' }, 'key'],
      [{ name: 'ci', id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' }, 'id'],
      [{ name: 'ci', created_at: '2020-01-01T00:00:00Z' }, 'created_at'],
    ] as const) {
      const refused = await createKey(service, body);
      assert.equal(refused.status, 400, JSON.stringify(body));
      assert.equal(refused.body.field, field);
    }
    assert.equal((await service.call('GET', '/keys')).body.length, 1);
  });
});
