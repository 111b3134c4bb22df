import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { newTenant, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const isLetIn = async (service: TestService, key: string) => (await service.call('GET', '/packets', { key })).status;
const rotate = (service: TestService, id: string, key: string, body?: unknown) =>
  service.call('POST', `/keys/${id}/rotate`, { key, ...(body === undefined ? {} : { body }) });

for (const store of stores) {
  describe(`Rotating a key on ${store.name}`, () => {
    test('201: a new key with the same name, tier and rights; the old key stays valid for the overlap and then expires [H213]', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service, { tier: 'pro' });
      const answer = await rotate(service, keyId, key, { overlap_seconds: 60 });
      assert.equal(answer.status, 201);
      const { id, key: newKey, prefix, scopes: _, agents: __, responder: ___, sees: ____, queues: _____, ...rest } = answer.body;
      assert.deepEqual(rest, { name: 'first', tier: 'pro', admin: false, created_at: '2026-03-01T09:30:00.000Z', expires_at: null });
      assert.notEqual(id, keyId);
      assert.equal(prefix, newKey.slice(0, 8));

      const listed = await service.call('GET', '/keys', { key: newKey });
      assert.equal(listed.status, 200);
      assert.deepEqual(
        listed.body.map((one: { id: string; expires_at: string | null }) => [one.id, one.expires_at]),
        [
          [keyId, '2026-03-01T09:31:00.000Z'],
          [id, null],
        ],
      );
      service.clock.turn(59.999);
      assert.deepEqual([await isLetIn(service, key), await isLetIn(service, newKey)], [200, 200]);
      service.clock.turn(0.001);
      assert.deepEqual([await isLetIn(service, key), await isLetIn(service, newKey)], [401, 200]);
      const later = await service.call('GET', '/keys', { key: newKey });
      assert.deepEqual(
        later.body.map((one: { id: string }) => one.id),
        [id],
      );
      assert.equal((await service.call('DELETE', `/keys/${keyId}`, { key: newKey })).status, 404);
    });

    test('the overlap is an hour by default; with 0 the old key expires at once [H213]', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service);
      const first = await rotate(service, keyId, key);
      assert.equal(first.status, 201);
      const [old] = (await service.call('GET', '/keys', { key })).body;
      assert.equal(old.expires_at, '2026-03-01T10:30:00.000Z');
      const second = await rotate(service, first.body.id, first.body.key, { overlap_seconds: 0 });
      assert.equal(second.status, 201);
      assert.equal(await isLetIn(service, first.body.key), 401);
      assert.equal(await isLetIn(service, second.body.key), 200);
    });

    test('the old and the new key count as one: a free tenant, which may have one key, can rotate it but not create another [H213]', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service, { tier: 'free' });
      const { status, body } = await rotate(service, keyId, key);
      assert.equal(status, 201);
      const other = await service.call('POST', '/keys', { key: body.key, body: { name: 'other' } });
      assert.equal(other.status, 409);
    });

    test('the old and the new key count as one against the limit per minute, however often the key is rotated [H213]', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '5' } });
      const { key, keyId } = await newTenant(service);
      const first = await rotate(service, keyId, key);
      assert.equal(first.status, 201);
      const second = await rotate(service, first.body.id, first.body.key);
      assert.equal(second.status, 201);
      assert.equal(second.headers['x-ratelimit-remaining'], '3');
      const keys = [key, first.body.key, second.body.key];
      for (const one of keys) assert.equal(await isLetIn(service, one), 200);
      for (const one of keys) {
        const { status, body } = await service.call('GET', '/packets', { key: one });
        assert.equal(status, 429);
        assert.deepEqual(body.limit, { name: 'minute', max: 5, reset_seconds: 60 });
      }
    });

    test('409 for a key that was already rotated, with the time at which it expires [H213]', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service);
      assert.equal((await rotate(service, keyId, key)).status, 201);
      const again = await rotate(service, keyId, key);
      assert.equal(again.status, 409);
      assert.match(again.body.detail, /expires at 2026-03-01T10:30:00\.000Z/);
      assert.equal((await service.call('GET', '/keys', { key })).body.length, 2);
    });

    test('of two concurrent rotations one succeeds [H213]', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service);
      const answers = await Promise.all([rotate(service, keyId, key), rotate(service, keyId, key)]);
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409]);
    });

    test('403: only an admin key may rotate an admin key, and the new key is an admin key [H213]', async () => {
      const service = await shareService(store);
      const [{ id }] = (await service.call('GET', '/keys')).body;
      const plain = (await service.call('POST', '/keys', { body: { name: 'plain' } })).body.key;
      assert.equal((await rotate(service, id, plain)).status, 403);
      const { status, body } = await rotate(service, id, service.key, { overlap_seconds: 0 });
      assert.equal(status, 201);
      assert.equal(body.admin, true);
      assert.equal((await service.call('GET', '/tenants', { key: service.key })).status, 401);
      assert.equal((await service.call('GET', '/tenants', { key: body.key })).status, 200);
    });

    test('the audit log records which key replaced which', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service);
      const { body } = await rotate(service, keyId, key);
      const [entry] = (await service.call('GET', '/audit', { key: body.key })).body.entries;
      assert.deepEqual([entry.action, entry.resource, entry.actor], ['rotated', 'api_key', `key:${keyId}`]);
      const { key_id, new_key_id, expires_at } = entry.details;
      assert.deepEqual([key_id, new_key_id, expires_at], [keyId, body.id, '2026-03-01T10:30:00.000Z']);
      assert.ok(!JSON.stringify(entry).includes(body.key));
    });

    test('a repeat with the same Idempotency-Key is 409 and creates no second key: a key is shown once', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service);
      const once = () => service.call('POST', `/keys/${keyId}/rotate`, { key, headers: { 'idempotency-key': 'once' } });
      assert.equal((await once()).status, 201);
      assert.equal((await once()).status, 409);
      assert.equal((await service.call('GET', '/keys', { key })).body.length, 2);
    });
  });

  describe(`max_api_keys on ${store.name}`, () => {
    test('follows the tier until it is set [H205]', async () => {
      const service = await shareService(store);
      const create = async (body: object) => (await service.call('POST', '/tenants', { body: { name: 'x', ...body } })).body;
      const patch = async (id: string, body: object) => {
        const answer = await service.call('PATCH', `/tenants/${id}`, { body });
        assert.equal(answer.status, 200);
        return answer.body.max_api_keys;
      };
      const left = await create({ tier: 'free' });
      assert.equal(left.max_api_keys, 1);
      assert.equal(await patch(left.id, { tier: 'pro' }), 5);
      assert.equal(await patch(left.id, { tier: 'business' }), 25);
      assert.equal(await patch(left.id, { max_api_keys: 7 }), 7);
      assert.equal(await patch(left.id, { tier: 'free' }), 7);
      const set = await create({ tier: 'free', max_api_keys: 1 });
      assert.equal(await patch(set.id, { tier: 'pro' }), 1);
      const both = await create({ tier: 'free' });
      assert.equal(await patch(both.id, { tier: 'pro', max_api_keys: 3 }), 3);
      assert.equal((await service.call('GET', `/tenants/${both.id}`)).body.max_api_keys, 3);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('POST /keys/{id}/rotate', () => {
  const store = stores[0]!;

  test('400: the overlap must be 0 to 604800 seconds', async () => {
    const service = await shareService(store);
    const { key, keyId } = await newTenant(service);
    for (const [body, field] of [
      [{ overlap_seconds: -1 }, 'overlap_seconds'],
      [{ overlap_seconds: 604_801 }, 'overlap_seconds'],
    ] as const) {
      const answer = await rotate(service, keyId, key, body);
      assert.equal(answer.status, 400);
      assert.equal(answer.body.field, field);
    }
    assert.equal((await service.call('GET', '/keys', { key })).body.length, 1);
  });
});
