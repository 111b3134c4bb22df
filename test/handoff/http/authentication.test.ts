import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { keyFrom } from '../../../src/handoff/rules/keys.ts';
import { adminKey, newTenant, packetRequest, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { sendRaw } from '../../support/socket.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';

/** A key of the right form that does not exist. */
const unknownKey = () => keyFrom(randomBytes(32));

/** A generated key with one changed character, so that its checksum is wrong. */
const mistypedKey = () => {
  const key = unknownKey();
  return `${key.slice(0, 20)}${key[20] === 'x' ? 'y' : 'x'}${key.slice(21)}`;
};

function assertUnauthorized({ status, body, text }: TestAnswer): void {
  assert.equal(status, 401, text);
  const { request_id, detail, ...rest } = body;
  assert.deepEqual(rest, { code: 'UNAUTHORIZED', field: null, status_code: 401 });
  assert.equal(typeof detail, 'string');
  assert.equal(typeof request_id, 'string');
}

/** A call from the given client address. */
async function callFrom(service: TestService, remoteAddress: string, key: string): Promise<number> {
  const answer = await service.handoff.app.inject({ method: 'GET', url: '/api/v1/packets', remoteAddress, headers: { 'x-api-key': key } });
  return answer.statusCode;
}

/** A request over a connection with these keys, each in a header of its own. */
const callOverSocket = (address: string, ...keys: string[]) =>
  sendRaw(
    address,
    ['GET /api/v1/packets HTTP/1.1', 'Host: x', ...keys.map((key) => `X-API-Key: ${key}`), 'Connection: close', '', ''].join('\r\n'),
  );

for (const store of stores) {
  describe(`The key of a request, on ${store.name}`, () => {
    test('401 without a key, and with an empty, wrong or mistyped key [H268]', async () => {
      const service = await shareService(store);
      for (const key of [
        null,
        '',
        'wrong',
        unknownKey(),
        mistypedKey(),
        'svc_',
        adminKey.slice(0, -1),
        `${adminKey}x`,
        adminKey.toUpperCase(),
        '\u00e9'.repeat(20),
      ]) {
        assertUnauthorized(await service.call('GET', '/packets', { key }));
      }
      assert.equal((await service.call('GET', '/packets')).status, 200);
    });

    test('401 for a wrong key takes precedence over errors of the path, the body or the resource', async () => {
      const service = await shareService(store);
      assertUnauthorized(await service.call('GET', '/packets/unknown', { key: 'wrong' }));
      assertUnauthorized(await service.call('POST', '/packets', { key: 'wrong', raw: '{broken' }));
      assertUnauthorized(await service.call('POST', '/packets', { key: 'wrong', raw: 'x', headers: { 'content-type': 'text/plain' } }));
      assertUnauthorized(await service.call('POST', '/packets', { key: 'wrong', raw: 'x'.repeat(2_000_000) }));
      assertUnauthorized(await service.call('GET', '/tenants', { key: 'wrong' }));
    });

    test('401 for a key anywhere but in the headers X-API-Key and Authorization', async () => {
      const service = await shareService(store);
      assertUnauthorized(await service.call('GET', `/packets?api_key=${adminKey}`, { key: null }));
      assertUnauthorized(await service.call('GET', `/packets?X-API-Key=${adminKey}`, { key: null }));
      assertUnauthorized(await service.call('POST', '/packets', { key: null, body: packetRequest({ api_key: adminKey }) }));
      assertUnauthorized(await service.call('GET', '/packets', { key: null, headers: { authorization: `Basic ${adminKey}` } }));
      assertUnauthorized(await service.call('GET', '/packets', { key: null, headers: { cookie: `X-API-Key=${adminKey}` } }));
    });

    test('may be a bearer token, unless X-API-Key is sent too; 401 names the scheme [H258]', async () => {
      const service = await shareService(store);
      const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
      assert.equal((await service.call('GET', '/packets', { key: null, headers: bearer(adminKey) })).status, 200);
      const created = await service.call('POST', '/packets', { key: null, headers: bearer(adminKey), body: packetRequest() });
      assert.equal(created.status, 201);
      assert.equal((await service.call('GET', '/packets', { key: adminKey, headers: bearer('wrong') })).status, 200);
      for (const [key, token] of [
        ['wrong', adminKey],
        [null, 'wrong'],
        [null, ''],
      ] as const) {
        const refused = await service.call('GET', '/packets', { key, headers: bearer(token) });
        assertUnauthorized(refused);
        assert.equal(refused.headers['www-authenticate'], 'Bearer realm="baton"');
      }
    });

    test('the keys of a deleted tenant are refused from the next request on [H207]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const second = await service.call('POST', '/keys', { key: tenant.key, body: { name: 'second' } });
      for (const key of [tenant.key, second.body.key]) assert.equal((await service.call('GET', '/packets', { key })).status, 200);
      assert.equal((await service.call('DELETE', `/tenants/${tenant.id}`)).status, 204);
      for (const key of [tenant.key, second.body.key]) assertUnauthorized(await service.call('GET', '/packets', { key }));
    });

    test('once its revocation is answered, a key is refused even among concurrent requests', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      let isRevoked = false;
      const reader = async () => {
        for (let refused = 0; refused < 3; ) {
          const wasRevoked = isRevoked;
          const { status } = await service.call('GET', '/packets', { key: tenant.key });
          if (!wasRevoked) continue;
          assert.notEqual(status, 200);
          refused += 1;
        }
      };
      const readers = Promise.all([reader(), reader(), reader(), reader()]);
      const revoked = await service.call('DELETE', `/keys/${tenant.keyId}`);
      isRevoked = true;
      await readers;
      assert.equal(revoked.status, 204);
      // The refused requests counted as wrong keys, for a minute.
      service.clock.turn(60);
      assertUnauthorized(await service.call('GET', '/packets', { key: tenant.key }));
    });
  });
}

for (const store of storesOfSeveral) {
  describe(`The keys of two instances over one database, on ${store.name}`, () => {
    let first: TestService;
    let second: TestService;
    const stops: (() => unknown)[] = [];
    before(async () => {
      const t = { after: (stop: unknown) => void stops.unshift(stop as () => unknown) };
      first = await startService(t, { store });
      second = await startService(t, { databaseUrl: first.databaseUrl, clock: first.clock });
    });
    after(async () => {
      for (const stop of stops) await stop();
    });

    test('a key created on one is valid on the other at once', async () => {
      const tenant = await newTenant(first);
      assert.equal((await second.call('GET', '/packets', { key: tenant.key })).status, 200);
    });

    test('a key revoked on one is refused by the other from the next request on [H214]', async () => {
      const tenant = await newTenant(first);
      assert.equal((await second.call('GET', '/packets', { key: tenant.key })).status, 200);
      assert.equal((await first.call('DELETE', `/keys/${tenant.keyId}`)).status, 204);
      assertUnauthorized(await second.call('GET', '/packets', { key: tenant.key }));
      assertUnauthorized(await first.call('GET', '/packets', { key: tenant.key }));
    });

    test('the keys of a tenant deleted on one are refused by the other from the next request on', async () => {
      const tenant = await newTenant(first);
      assert.equal((await second.call('GET', '/packets', { key: tenant.key })).status, 200);
      assert.equal((await first.call('DELETE', `/tenants/${tenant.id}`)).status, 204);
      assertUnauthorized(await second.call('GET', '/packets', { key: tenant.key }));
    });

    test('a change of a tenant on one applies on the other from the next request on', async () => {
      const tenant = await newTenant(first);
      assert.equal((await second.call('POST', '/packets', { key: tenant.key, body: packetRequest() })).status, 201);
      assert.equal((await first.call('PATCH', `/tenants/${tenant.id}`, { body: { handoffs_per_day: 0 } })).status, 200);
      assert.equal((await second.call('POST', '/packets', { key: tenant.key, body: packetRequest() })).status, 429);
    });

    test('both accept the same admin key, and the second start creates no other', async () => {
      assert.equal(second.handoff.adminKey, undefined);
      const keys = await second.call('GET', '/keys');
      assert.equal(keys.status, 200);
      assert.equal(keys.body.length, 1);
      assert.deepEqual((await first.call('GET', '/keys')).body, keys.body);
    });
  });
}

describe('Wrong keys', () => {
  const wrong = (service: TestService, key = 'wrong') => service.call('GET', '/packets', { key });

  test('30 per minute from one address are 401, further ones 429; valid keys from that address still work [H227]', async (t) => {
    const service = await startService(t);
    const tenant = await newTenant(service);
    for (let guess = 0; guess < 30; guess += 1) assertUnauthorized(await wrong(service, guess % 2 === 0 ? unknownKey() : mistypedKey()));
    for (const key of [unknownKey(), mistypedKey(), 'x']) {
      const refused = await wrong(service, key);
      assert.equal(refused.status, 429);
      assert.equal(refused.body.code, 'RATE_LIMITED');
      assert.equal(refused.body.field, null);
      assert.equal(refused.headers['retry-after'], '60');
      assert.deepEqual(refused.body.limit, { name: 'wrong_keys', max: 30, reset_seconds: 60 });
    }
    assert.equal((await wrong(service, tenant.key)).status, 200);
    assert.equal((await wrong(service, adminKey)).status, 200);
  });

  test('a request after Retry-After is allowed, and refused requests do not lengthen the wait', async (t) => {
    const service = await startService(t);
    for (let guess = 0; guess < 30; guess += 1) await wrong(service);
    for (let second = 0; second < 59; second += 1) {
      service.clock.turn(1);
      const refused = await wrong(service);
      assert.equal(refused.status, 429);
      assert.equal(refused.headers['retry-after'], String(59 - second));
    }
    service.clock.turn(1);
    assertUnauthorized(await wrong(service));
  });

  test('of 100 concurrent requests, exactly 30 are 401', async (t) => {
    const service = await startService(t);
    const answers = await Promise.all(Array.from({ length: 100 }, () => wrong(service, unknownKey())));
    assert.equal(answers.filter(({ status }) => status === 401).length, 30);
    assert.equal(answers.filter(({ status }) => status === 429).length, 70);
  });

  test('are counted per address [H227]', async (t) => {
    const service = await startService(t);
    for (let guess = 0; guess < 30; guess += 1) assert.equal(await callFrom(service, '198.51.100.1', 'wrong'), 401);
    assert.equal(await callFrom(service, '198.51.100.1', 'wrong'), 429);
    assert.equal(await callFrom(service, '198.51.100.2', 'wrong'), 401);
    assert.equal(await callFrom(service, '198.51.100.1', adminKey), 200);
  });

  test('a missing key is not counted as a guess and is always 401 [H258]', async (t) => {
    const service = await startService(t);
    for (let call = 0; call < 40; call += 1) assertUnauthorized(await service.call('GET', '/packets', { key: null }));
    assertUnauthorized(await wrong(service));
  });
});

describe('A key in a request', () => {
  test('two X-API-Key headers are 401, even if both are valid [H258]', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    assert.equal((await callOverSocket(address, adminKey)).status, 200);
    for (const pair of [
      [adminKey, adminKey],
      [adminKey, 'wrong'],
      ['wrong', adminKey],
    ]) {
      const { status, body, text } = await callOverSocket(address, ...pair);
      assert.deepEqual([status, body?.code], [401, 'UNAUTHORIZED'], text);
    }
  });

  test('a key of 10 KB is 401', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    for (const prefix of ['', 'svc_']) assert.equal((await callOverSocket(address, prefix + 'k'.repeat(10_240))).status, 401);
  });

  test('headers that are too large or contain NUL get only an error body [H254]', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    for (const [key, status] of [
      [`${adminKey}\0`, 400],
      ['k'.repeat(40_000), 431],
    ] as const) {
      const answer = await callOverSocket(address, key);
      assert.deepEqual([answer.status, answer.body?.status_code], [status, status], answer.text);
      assert.deepEqual(Object.keys(answer.body).slice(0, 4), ['detail', 'code', 'field', 'status_code']);
    }
  });

  test('a space after a key is stripped by HTTP', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    assert.equal((await callOverSocket(address, `${adminKey}   `)).status, 200);
  });
});
