import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, question, unknownId } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const defaultTenantId = '00000000-0000-7000-8000-000000000001';

/** How many bytes a packet may exceed its tier's body size by, for the fields that the service adds. */
const ownBytes = 4096;

const create = (service: TestService, body: Record<string, unknown>): Promise<TestAnswer> => service.call('POST', '/tenants', { body });
const namesOf = ({ body }: TestAnswer): string[] => body.map(({ name }: { name: string }) => name);

const activePackets = async (service: TestService): Promise<number> =>
  Number(/^service_active_packets (\d+)$/m.exec((await service.call('GET', '//metrics')).text)?.[1]);

for (const store of stores) {
  describe(`POST /tenants on ${store.name}`, () => {
    test('201: the tenant, with the fields that were sent', async () => {
      const service = await shareService(store);
      const answer = await create(service, { name: 'Acme', tier: 'pro', handoffs_per_day: 40, requests_per_hour: 5000, max_api_keys: 3 });
      assert.equal(answer.status, 201);
      const { id, ...rest } = answer.body;
      const at = '2026-03-01T09:30:00.000Z';
      assert.deepEqual(rest, {
        name: 'Acme',
        tier: 'pro',
        handoffs_per_day: 40,
        requests_per_hour: 5000,
        retention_days: null,
        max_api_keys: 3,
        created_at: at,
        updated_at: at,
        deleted_at: null,
      });
      assert.match(id, /^[0-9a-f-]{36}$/);
      assert.deepEqual((await service.call('GET', `/tenants/${id}`)).body, answer.body);
    });

    test('max_api_keys defaults to 1, 5 and 25 by tier, handoffs_per_day to null [H205]', async () => {
      const service = await shareService(store);
      for (const [tier, keys] of [
        ['free', 1],
        ['pro', 5],
        ['business', 25],
      ] as const) {
        const { status, body } = await create(service, { name: tier, tier });
        assert.equal(status, 201);
        assert.deepEqual([body.tier, body.max_api_keys, body.handoffs_per_day], [tier, keys, null]);
      }
    });

    test('null for an optional field counts as left out', async () => {
      const service = await shareService(store);
      const { status, body } = await create(service, { name: 'x', tier: null, handoffs_per_day: null, max_api_keys: null });
      assert.equal(status, 201);
      assert.deepEqual([body.tier, body.handoffs_per_day, body.max_api_keys], ['free', null, 1]);
    });

    test('0 allows no keys and no packets; null means the default of the tier [H221]', async () => {
      const service = await shareService(store);
      const none = await create(service, { name: 'none', tier: 'free', handoffs_per_day: 0, max_api_keys: 0 });
      assert.equal(none.status, 201);
      assert.deepEqual([none.body.handoffs_per_day, none.body.max_api_keys], [0, 0]);
      assert.equal((await service.call('POST', '/keys', { body: { name: 'x', tenant_id: none.body.id } })).status, 409);
      assert.equal((await create(service, { name: 'tier', tier: 'free', handoffs_per_day: null })).body.handoffs_per_day, null);
    });

    test('two tenants may have the same name', async () => {
      const service = await shareService(store);
      const [one, other] = await Promise.all([create(service, { name: 'Acme' }), create(service, { name: 'Acme' })]);
      assert.deepEqual([one.status, other.status], [201, 201]);
      assert.notEqual(one.body.id, other.body.id);
    });

    test('a tenant created without a tier is free; a lower tier does not change the tiers of its keys [H202]', async () => {
      const service = await shareService(store);
      const plain = await service.call('POST', '/tenants', { body: { name: 'Plain' } });
      assert.equal(plain.status, 201);
      assert.equal(plain.body.tier, 'free');
      const { id, key } = await newTenant(service, { tier: 'pro' });
      assert.equal((await service.call('PATCH', `/tenants/${id}`, { body: { tier: 'free' } })).status, 200);
      const answer = await service.call('GET', '/keys', { key });
      assert.equal(answer.status, 200);
      assert.equal(answer.body[0].tier, 'pro');
      assert.equal(answer.headers['x-ratelimit-tier'], 'pro');
    });
  });

  describe(`GET /tenants on ${store.name}`, () => {
    test('200: every tenant that is not deleted, oldest first [H72]', async () => {
      const service = await shareService(store);
      const before = namesOf(await service.call('GET', '/tenants'));
      assert.equal(before[0], 'default');
      const made: string[] = [];
      for (const name of ['b', 'a', 'c']) made.push((await create(service, { name })).body.id);
      assert.deepEqual(namesOf(await service.call('GET', '/tenants')), [...before, 'b', 'a', 'c']);
      assert.equal((await service.call('DELETE', `/tenants/${made[1]}`)).status, 204);
      const listed = await service.call('GET', '/tenants');
      assert.equal(listed.status, 200);
      assert.deepEqual(namesOf(listed), [...before, 'b', 'c']);
    });

    test('an empty database has one tenant, default, of tier business [H187]', async (t) => {
      const service = await startService(t, { store });
      const { status, body } = await service.call('GET', '/tenants');
      assert.equal(status, 200);
      assert.deepEqual(
        body.map(({ id, name, tier }: Record<string, string>) => ({ id, name, tier })),
        [{ id: defaultTenantId, name: 'default', tier: 'business' }],
      );
    });

    test('404 for a deleted tenant, as for an unknown or invalid id, also for changes of it', async () => {
      const service = await shareService(store);
      const { body } = await create(service, { name: 'gone' });
      await service.call('DELETE', `/tenants/${body.id}`);
      for (const id of [unknownId, body.id, 'x', 'default']) {
        for (const [method, tail, changes] of [['GET'], ['GET', '/keys'], ['PATCH', '', { name: 'New' }], ['DELETE']] as const) {
          const refused = await service.call(method, `/tenants/${id}${tail ?? ''}`, { body: changes });
          assert.deepEqual([refused.status, refused.body.code], [404, 'NOT_FOUND'], `${method} ${tail}`);
        }
      }
    });
  });

  describe(`PATCH /tenants/{id} on ${store.name}`, () => {
    test('200: the given fields change, the others stay, and updated_at advances', async () => {
      const service = await shareService(store);
      const { body: before } = await create(service, { name: 'Acme', tier: 'pro', handoffs_per_day: 4, max_api_keys: 2 });
      service.clock.turn(60);
      const answer = await service.call('PATCH', `/tenants/${before.id}`, { body: { name: 'Acme Ltd' } });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, { ...before, name: 'Acme Ltd', updated_at: '2026-03-01T09:31:00.000Z' });
      const cleared = await service.call('PATCH', `/tenants/${before.id}`, {
        body: { handoffs_per_day: null, max_api_keys: 0, tier: 'free' },
      });
      assert.equal(cleared.status, 200);
      assert.deepEqual(
        [cleared.body.handoffs_per_day, cleared.body.max_api_keys, cleared.body.tier, cleared.body.name],
        [null, 0, 'free', 'Acme Ltd'],
      );
      assert.deepEqual((await service.call('GET', `/tenants/${before.id}`)).body, cleared.body);
    });

    test('of parallel changes of different fields none is lost', async () => {
      const service = await shareService(store);
      const { body: before } = await create(service, { name: 'Acme', tier: 'pro' });
      const changes = [{ name: 'New' }, { tier: 'business' }, { handoffs_per_day: 9 }, { requests_per_hour: 70 }, { max_api_keys: 8 }];
      const answers = await Promise.all(changes.map((body) => service.call('PATCH', `/tenants/${before.id}`, { body })));
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200, 200],
      );
      assert.deepEqual((await service.call('GET', `/tenants/${before.id}`)).body, {
        ...before,
        name: 'New',
        tier: 'business',
        handoffs_per_day: 9,
        requests_per_hour: 70,
        max_api_keys: 8,
      });
    });

    test('a lower max_api_keys revokes no keys and allows no more [H202]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service, { max_api_keys: 3 });
      await service.call('POST', '/keys', { key: tenant.key, body: { name: 'second' } });
      await service.call('PATCH', `/tenants/${tenant.id}`, { body: { max_api_keys: 1 } });
      assert.equal((await service.call('GET', '/keys', { key: tenant.key })).body.length, 2);
      assert.equal((await service.call('POST', '/keys', { key: tenant.key, body: { name: 'third' } })).status, 409);
    });
  });

  describe(`DELETE /tenants/{id} on ${store.name}`, () => {
    test('204 once, as a soft delete: hidden from then on, with its data kept [H207]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const before = await activePackets(service);
      const packet = await createPacket(service, {}, tenant.key);
      const answer = await service.call('DELETE', `/tenants/${tenant.id}`);
      assert.equal(answer.status, 204);
      assert.equal(answer.text, '');
      assert.equal((await service.call('DELETE', `/tenants/${tenant.id}`)).status, 404);
      assert.equal((await service.call('GET', `/packets/${packet.id}`, { key: tenant.key })).status, 401);
      // The packet still exists and is still counted.
      assert.equal(await activePackets(service), before + 1);
    });

    test('409 for the tenant default, whose keys stay valid [H207]', async () => {
      const service = await shareService(store);
      const refused = await service.call('DELETE', `/tenants/${defaultTenantId}`);
      assert.equal(refused.status, 409);
      assert.equal(refused.body.code, 'CONFLICT');
      assert.equal((await service.call('GET', `/tenants/${defaultTenantId}`)).status, 200);
    });

    test('of 10 concurrent deletes one is 204, the others are 404', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const answers = await Promise.all(Array.from({ length: 10 }, () => service.call('DELETE', `/tenants/${tenant.id}`)));
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [204, ...Array(9).fill(404)]);
    });

    test('a tenant deleted while keys are created for it is left without a valid key', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const [deleted, ...made] = await Promise.all([
        service.call('DELETE', `/tenants/${tenant.id}`),
        ...Array.from({ length: 10 }, (_, index) =>
          service.call('POST', '/keys', { body: { name: `key ${index}`, tenant_id: tenant.id } }),
        ),
      ]);
      assert.equal(deleted.status, 204);
      for (const { status, body } of made) {
        assert.ok(status === 201 || status === 404, String(status));
        if (status === 201) assert.equal((await service.call('GET', '/packets', { key: body.key })).status, 401);
      }
    });
  });

  describe(`The tier of a tenant on ${store.name}`, () => {
    test('limits the size of a packet, from the next request after a change [H202]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service, { tier: 'free' });
      const large = packetRequest({ context: { summary: 'x'.repeat(100_000) } });
      assert.equal((await service.call('POST', '/packets', { key: tenant.key, body: large })).status, 413);
      assert.equal((await service.call('PATCH', `/tenants/${tenant.id}`, { body: { tier: 'pro' } })).status, 200);
      assert.equal((await service.call('POST', '/packets', { key: tenant.key, body: large })).status, 201);
    });

    test('a packet that a lower tier no longer allows can still be claimed, put to a person, answered and completed [H54]', async () => {
      const service = await shareService(store);
      const { id: tenant, key } = await newTenant(service, { tier: 'pro' });
      const decisions = [{ id: 'long', decision: 'x'.repeat(100_000), rationale: '' }];
      const { id } = await createPacket(service, { context: { summary: 'x'.repeat(100_000) }, decisions, hitl: question }, key);
      assert.equal((await service.call('PATCH', `/tenants/${tenant}`, { body: { tier: 'free' } })).status, 200);
      const steps: [method: string, tail: string, body: object][] = [
        ['POST', '/claim', claimant],
        ['PATCH', '', { status: 'in_progress' }],
        ['PATCH', '', { status: 'awaiting_human' }],
        ['POST', '/respond', { response: 'Go on', responded_by: 'dana' }],
        ['PATCH', '', { status: 'completed' }],
      ];
      for (const [method, tail, body] of steps) {
        const answer = await service.call(method, `/packets/${id}${tail}`, { body, key });
        assert.equal(answer.status, 200, `${method} ${tail} ${answer.text.slice(0, 200)}`);
      }
      const more = { decisions: [{ id: 'more', decision: 'More', rationale: '' }] };
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: more, key })).status, 413);
      // It may shrink, even if it is still too large.
      const smaller = await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'Short.' } }, key });
      assert.equal(smaller.status, 200);
      assert.ok(Buffer.byteLength(smaller.text) > 65_536 + ownBytes);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('A tenant', () => {
  const store = stores[0]!;

  test('is not created if a field is invalid: 400 names the field', async () => {
    const service = await shareService(store);
    const before = (await service.call('GET', '/tenants')).body;
    for (const [body, field] of [
      [{ tier: 'pro' }, 'name'],
      [{ name: '' }, 'name'],
      [{ name: 'x', tier: 'gold' }, 'tier'],
      [{ name: 'x', handoffs_per_day: -1 }, 'handoffs_per_day'],
      [{ name: 'x', handoffs_per_day: 1.5 }, 'handoffs_per_day'],
      [{ name: 'x', handoffs_per_day: 1e30 }, 'handoffs_per_day'],
      [{ name: 'x', requests_per_hour: 0 }, 'requests_per_hour'],
      [{ name: 'x', max_api_keys: 2 ** 53 }, 'max_api_keys'],
      [{ name: 'x', max_api_keys: -1 }, 'max_api_keys'],
      [{ name: 'x', deleted_at: null }, 'deleted_at'],
    ] as const) {
      const refused = await create(service, body);
      assert.equal(refused.status, 400, JSON.stringify(body));
      assert.equal(refused.body.code, 'VALIDATION_ERROR');
      assert.equal(refused.body.field, field);
    }
    assert.deepEqual((await service.call('GET', '/tenants')).body, before);
  });

  test('is not changed if a field is invalid: 400 names the field', async () => {
    const service = await shareService(store);
    const { body: before } = await create(service, { name: 'Acme' });
    for (const [body, field] of [
      [{ tier: 'gold' }, 'tier'],
      [{ name: '' }, 'name'],
      [{ name: null }, 'name'],
      [{ max_api_keys: null }, 'max_api_keys'],
      [{ handoffs_per_day: -1, name: 'New' }, 'handoffs_per_day'],
    ] as const) {
      const refused = await service.call('PATCH', `/tenants/${before.id}`, { body });
      assert.equal(refused.status, 400, JSON.stringify(body));
      assert.equal(refused.body.field, field);
    }
    assert.deepEqual((await service.call('GET', `/tenants/${before.id}`)).body, before);
  });
});
