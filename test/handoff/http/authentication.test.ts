import assert from 'node:assert/strict';
import { randomBytes, randomFillSync } from 'node:crypto';
import { request } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { keyFrom } from '../../../src/handoff/rules/keys.ts';
import { createKeyService, defaultTenantId } from '../../../src/handoff/service/keys.ts';
import { openStore } from '../../../src/handoff/store/store.ts';
import type { Awaitable } from '../../../src/kit/awaitable.ts';
import { createIds } from '../../../src/kit/id.ts';
import { adminCaller } from '../../support/caller.ts';
import { adminKey, newTenant, packetRequest, startService, type TestAnswer, TestClock, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import type { TestStore } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';

/** A key of the right form that does not exist. */
const unknownKey = () => keyFrom(randomBytes(32));

/** An access service with its own store, its first key, and a way to delay the result of one read. */
async function openAccess(t: Pick<TestContext, 'after'>, testStore: TestStore) {
  const { url, drop } = await testStore.open('handoff');
  const clock = new TestClock().read;
  const newId = createIds();
  const store = await openStore({ databaseUrl: url, clock, newId });
  t.after(async () => {
    await store.close();
    await drop();
  });
  const held: Partial<Record<'keyByHash' | 'version', { reached(): void; gate: Promise<void> }>> = {};
  async function answerOf<T>(name: keyof typeof held, found: Awaitable<T>): Promise<T> {
    const value = await found;
    const hold = held[name];
    delete held[name];
    hold?.reached();
    await hold?.gate;
    return value;
  }
  const access = createKeyService({
    store: {
      ...store,
      keys: {
        ...store.keys,
        byHash: (hash) => answerOf('keyByHash', store.keys.byHash(hash)),
        version: () => answerOf('version', store.keys.version()),
      },
    },
    clock,
    newId,
    random: (bytes) => void randomFillSync(bytes),
  });
  const key = (await access.bootstrap(undefined)).createdKey!;
  const [first] = await store.keys.of(defaultTenantId, clock());
  const caller = { ...adminCaller, key_id: first!.id };
  /** Delays the result of the next read of this name until `release`; `begun` resolves when the read has started. */
  function hold(name: keyof typeof held): { begun: Promise<void>; release(): void } {
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    held[name] = { reached: reached.resolve, gate: gate.promise };
    return { begun: reached.promise, release: gate.resolve };
  }
  return { access, caller, key, hold };
}

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

/** A call over a real connection with raw header lines. */
async function callOverSocket(address: string, headers: Record<string, string | string[]>): Promise<{ status: number; body: string }> {
  return await new Promise((resolve, reject) => {
    const sent = request(`${address}/api/v1/packets`, { headers }, (answer) => {
      let body = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk) => {
        body += chunk;
      });
      answer.on('end', () => resolve({ status: answer.statusCode!, body }));
    });
    sent.on('error', reject);
    sent.end();
  });
}

/** The answer to bytes that no HTTP client would send. */
async function sendBytes(address: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(address);
  return await new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    socket.setEncoding('utf8');
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
}

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
      let revoked = false;
      const reader = async () => {
        for (let call = 0; call < 30; call += 1) {
          const wasRevoked = revoked;
          const { status } = await service.call('GET', '/packets', { key: tenant.key });
          if (wasRevoked) assert.notEqual(status, 200);
        }
      };
      const readers = Promise.all([reader(), reader(), reader(), reader()]);
      assert.equal((await service.call('DELETE', `/keys/${tenant.keyId}`)).status, 204);
      revoked = true;
      await readers;
      // The refused requests counted as wrong keys, for a minute.
      service.clock.turn(60);
      assertUnauthorized(await service.call('GET', '/packets', { key: tenant.key }));
    });

    test('a key that was looked up before its revocation is not cached after it', async (t) => {
      const { access, caller, key, hold } = await openAccess(t, store);
      const looking = hold('keyByHash');
      const early = access.authenticate(key);
      await looking.begun;
      await access.revokeKey(caller, caller.key_id);
      // This call clears the cache; the earlier lookup ends afterwards.
      assert.equal(await access.authenticate(unknownKey()), undefined);
      looking.release();
      await early;
      assert.equal(await access.authenticate(key), undefined);
    });

    test('a request after a revocation does not share a lookup that began before it', async (t) => {
      const { access, caller, key, hold } = await openAccess(t, store);
      assert.notEqual(await access.authenticate(key), undefined);
      const looking = hold('version');
      const early = access.authenticate(key);
      await looking.begun;
      await access.revokeKey(caller, caller.key_id);
      const late = access.authenticate(key);
      looking.release();
      await early;
      assert.equal(await late, undefined);
    });

    test('on one connection each request is judged by its own key, and a revoked key is refused at the next', async (t) => {
      const { access, caller, key } = await openAccess(t, store);
      const connection = {};
      assert.equal((await access.authenticate(key, connection))?.key_id, caller.key_id);
      const last = key.at(-1) === '0' ? '1' : '0';
      for (const other of [unknownKey(), `${key.slice(0, -1)}${last}`, `${key}x`, key.slice(0, -1), '']) {
        assert.equal(await access.authenticate(other, connection), undefined);
        assert.equal((await access.authenticate(key, connection))?.key_id, caller.key_id);
      }
      await access.revokeKey(caller, caller.key_id);
      assert.equal(await access.authenticate(key, connection), undefined);
    });

    test('a key with a wrong checksum is refused without a database lookup [H199]', async () => {
      const opened = await store.open('handoff');
      const clock = new TestClock();
      const newId = createIds();
      const data = await openStore({ databaseUrl: opened.url, clock: clock.read, newId });
      const access = createKeyService({
        store: data,
        clock: clock.read,
        newId,
        random: (bytes) => void randomBytes(bytes.length).copy(bytes),
      });
      assert.equal(await access.authenticate(unknownKey()), undefined);
      await data.close();
      // A lookup in the closed database would fail.
      await assert.rejects(async () => access.authenticate(unknownKey()));
      for (const key of [mistypedKey(), 'svc_', `${unknownKey()}x`, unknownKey().slice(0, -1), 'x'.repeat(10_240), ''])
        assert.equal(await access.authenticate(key), undefined);
      await opened.drop();
    });
  });
}

for (const store of stores.filter(({ name }) => name !== 'SQLite in memory')) {
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
    assert.equal((await callOverSocket(address, { 'X-API-Key': adminKey })).status, 200);
    for (const pair of [
      [adminKey, adminKey],
      [adminKey, 'wrong'],
      ['wrong', adminKey],
    ]) {
      const { status, body } = await callOverSocket(address, { 'X-API-Key': pair });
      assert.equal(status, 401, body);
      assert.equal(JSON.parse(body).code, 'UNAUTHORIZED');
    }
  });

  test('a key of 10 KB is 401', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    assert.equal((await callOverSocket(address, { 'X-API-Key': 'k'.repeat(10_240) })).status, 401);
    assert.equal((await callOverSocket(address, { 'X-API-Key': `svc_${'k'.repeat(10_240)}` })).status, 401);
  });

  test('headers that are too large or contain NUL get only an error body [H254]', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    const nul = await sendBytes(address, `GET /api/v1/packets HTTP/1.1\r\nHost: x\r\nX-API-Key: ${adminKey}\0\r\n\r\n`);
    assert.match(nul, /^HTTP\/1\.1 400 /);
    const large = await sendBytes(address, `GET /api/v1/packets HTTP/1.1\r\nHost: x\r\nX-API-Key: ${'k'.repeat(40_000)}\r\n\r\n`);
    assert.match(large, /^HTTP\/1\.1 431 /);
    for (const text of [nul, large]) {
      const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n')));
      assert.deepEqual(Object.keys(body).slice(0, 4), ['detail', 'code', 'field', 'status_code']);
      assert.equal(body.status_code, Number(text.slice(9, 12)));
    }
  });

  test('a space after a key is stripped by HTTP', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    const answer = await sendBytes(
      address,
      `GET /api/v1/packets HTTP/1.1\r\nHost: x\r\nX-API-Key: ${adminKey}   \r\nConnection: close\r\n\r\n`,
    );
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });
});
