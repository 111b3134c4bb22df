import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import type { JWTPayload } from 'jose';

import { a2a, a2aRequest, messageOf } from '../../support/a2a.ts';
import { looking } from '../../support/consistency.ts';
import { connectTo } from '../../support/databases.ts';
import { databaseInMemory } from '../../support/faults.ts';
import { asPerson, cookiesOf, dana, publicUrl, signIn, signInSettings, startIssuer, type TestIssuer } from '../../support/issuer.ts';
import { question } from '../../support/life.ts';
import { mcpRequest } from '../../support/mcp.ts';
import { createPacket, startService, TestClock, type TestService } from '../../support/service.ts';
import { inMemory, numbersTo, type TestStore } from '../../support/store.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';
import { listenTo, openEvents, openSocket } from '../../support/streams.ts';
import { until } from '../../support/until.ts';

interface Started {
  readonly service: TestService;
  readonly issuer: TestIssuer;
  readonly clock: TestClock;
}

async function start(
  t: TestContext,
  { store = inMemory, settings = {} }: { store?: TestStore; settings?: Record<string, string> } = {},
): Promise<Started> {
  const clock = new TestClock();
  const issuer = await startIssuer(t, clock);
  const service = await startService(t, { store, clock, settings: { ...signInSettings(issuer), ...settings } });
  return { service, issuer, clock };
}

async function asking(service: TestService, hitl: object = question): Promise<string> {
  const { id } = await createPacket(service, { hitl });
  await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
  return id;
}

describe('A person who signs in', () => {
  for (const store of stores)
    test(`answers as that person, which history and audit log say, until signing out, on ${store.name} [H514]`, async (t) => {
      const { service, issuer } = await start(t, { store });
      const id = await asking(service);
      const back = await signIn(service, issuer, dana, '/console/inbox');
      assert.deepEqual([back.status, back.headers.location], [302, `${publicUrl}/console/inbox`], back.text);
      const [session, begun] = back.headers['set-cookie'] as unknown as string[];
      // The tenant's id, and 256 random bits.
      assert.match(session!, /^baton-session=[\da-f-]{36}\.[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/);
      assert.match(begun!, /^baton-sign-in-[\w-]+=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax$/, 'what the sign-in needed goes');
      const call = asPerson(service, cookiesOf(back));
      const own = await call('GET', '/keys/self');
      assert.deepEqual(
        [own.status, own.body.kind, own.body.name, own.body.responder, own.body.scopes],
        [200, 'session', 'dana@example.com', 'dana@example.com', ['read', 'work', 'respond', 'manage']],
      );
      const asMia = await call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'mia' } });
      assert.deepEqual([asMia.status, asMia.body.field], [403, 'responded_by'], asMia.text);
      const answered = await call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana@example.com' } });
      assert.equal(answered.status, 200, answered.text);
      const { events } = (await service.call('GET', `/packets/${id}/history`)).body;
      const { actor, key_id, details } = events.at(-1);
      assert.deepEqual(
        [actor, key_id, details.person, details.verified],
        ['human:dana@example.com', null, { subject: 'dana', issuer: issuer.issuer, name: 'dana@example.com' }, true],
      );
      const { entries } = (await service.call('GET', '/audit')).body;
      const entry = entries.find(({ resource }: { resource: string }) => resource === 'session');
      assert.deepEqual([entry.action, entry.actor, entry.details.person.subject], ['created', 'human:dana@example.com', 'dana']);

      for (const person of ['dana@example.com', 'dana']) {
        const { body } = await service.call('GET', `/audit?person=${person}`);
        assert.deepEqual(
          body.entries.map(({ action }: { action: string }) => action),
          ['hitl_responded', 'created'],
        );
        const { text } = await service.call('GET', `/audit/export?person=${person}`);
        assert.equal(text.trimEnd().split('\n').length, 4);
      }
      assert.equal((await service.call('GET', '/audit?person=dan')).body.total, 0);

      const { sessions } = (await call('GET', '/sessions')).body;
      assert.deepEqual(
        sessions.map(({ person, current }: { person: string; current: boolean }) => [person, current]),
        [['dana@example.com', true]],
      );
      const out = await service.call('POST', '//sign-out', {
        key: null,
        headers: { cookie: cookiesOf(back), origin: publicUrl, 'x-requested-with': 'baton' },
      });
      assert.equal(out.status, 200, out.text);
      assert.match(out.body.url, new RegExp(`^${issuer.issuer}/end\\?post_logout_redirect_uri=.*signed-out.*id_token_hint=`));
      assert.match(String(out.headers['set-cookie']), /^baton-session=; Max-Age=0/);
      assert.equal((await call('GET', '/keys/self')).status, 401);
    });

  test('may do what the groups may do, and nobody more than read and answer by default', async (t) => {
    const { service, issuer } = await start(t, { settings: { SERVICE_OIDC_RIGHTS: '' } });
    const call = asPerson(service, cookiesOf(await signIn(service, issuer, { ...dana, groups: ['ops', 'admins'] })));
    assert.deepEqual((await call('GET', '/keys/self')).body.scopes, ['read', 'respond']);
    const refused = await call('POST', '/keys', { body: { name: 'k' } });
    assert.deepEqual([refused.status, refused.body.detail], [403, 'This needs the right manage; you have read, respond.']);
    const others = await start(t);
    const admin = asPerson(others.service, cookiesOf(await signIn(others.service, others.issuer, { ...dana, groups: ['admins'] })));
    assert.equal((await admin('GET', '/tenants')).status, 200);
    const key = await admin('POST', '/keys', { body: { name: 'k', scopes: ['read'] } });
    assert.equal(key.status, 201, key.text);
    const { entries } = (await others.service.call('GET', '/audit')).body;
    assert.deepEqual([entries[0].resource, entries[0].actor], ['api_key', 'human:dana@example.com']);
  });

  for (const store of stores)
    test(`needs a name that the provider has verified, that shows all its signs, and that belongs to nobody else, on ${store.name} [H447]`, async (t) => {
      const { service, issuer } = await start(t, { store });
      const unverified = await signIn(service, issuer, { ...dana, email_verified: false });
      assert.equal(unverified.status, 403);
      assert.match(unverified.text, /SERVICE_OIDC_NAME_CLAIM/);
      const hidden = await signIn(service, issuer, { ...dana, sub: 'somebody else', email: 'dana\u200b@example.com' });
      assert.equal(hidden.status, 403);
      assert.match(hidden.text, /signs that do not show/);
      assert.equal((await signIn(service, issuer)).status, 302);
      const other = { ...dana, sub: 'somebody else', email: 'DANA@example.com' };
      const refused = await signIn(service, issuer, other);
      assert.equal(refused.status, 403);
      assert.match(refused.text, /belongs to somebody else/);
      assert.equal((await service.call('POST', '/people/Dana@example.com/release')).status, 200);
      assert.equal((await signIn(service, issuer, other)).status, 302);
      assert.equal((await signIn(service, issuer)).status, 403, 'the first one no longer has the name');
      const atOnce = await Promise.all(
        ['one', 'two', 'three'].map((sub) => signIn(service, issuer, { ...dana, sub, email: 'new@example.com' })),
      );
      assert.deepEqual(atOnce.map(({ status }) => status).toSorted(), [302, 403, 403], 'one of those who come at once gets the name');
    });

  for (const store of stores)
    test(`has the name, the groups, the tenant and the times that the settings say, on ${store.name} [H553]`, async (t) => {
      const { service, issuer, clock } = await start(t, {
        store,
        settings: {
          SERVICE_OIDC_NAME_CLAIM: 'preferred_username',
          SERVICE_OIDC_GROUPS_CLAIM: 'realm_access.roles',
          SERVICE_OIDC_GROUP_PREFIX: 'sso:',
          SERVICE_OIDC_RIGHTS: '{"sso:ops": ["read", "work"]}',
          SERVICE_OIDC_TENANT: 'Acme',
          SERVICE_SESSION_HOURS: '1',
          SERVICE_SESSION_IDLE_MINUTES: '20',
        },
      });
      const claims = { sub: 'dana', preferred_username: 'Dana', realm_access: { roles: ['ops'] } };
      const refused = async (sentence: RegExp) => {
        const { status, text } = await signIn(service, issuer, claims);
        assert.deepEqual([status, sentence.test(text)], [403, true], text);
      };
      await refused(/There is no tenant &quot;Acme&quot;/);
      const make = async () => (await service.call('POST', '/tenants', { body: { name: 'Acme' } })).body.id;
      const id = await make();
      const back = await signIn(service, issuer, claims);
      assert.match(String(back.headers['set-cookie']), /baton-session=\S+; Max-Age=3600;/, back.text);
      const call = asPerson(service, cookiesOf(back));
      const { body: own } = await call('GET', '/keys/self');
      assert.deepEqual([own.name, own.tenant.id, own.scopes], ['Dana', id, ['read', 'work']]);
      for (const [name, status] of [
        ['sso:ops', 400],
        ['idp:ops', 201],
      ] as const)
        assert.equal((await service.call('PUT', `/groups/${name}`, { body: { members: [] } })).status, status, name);
      for (let times = 0; times < 3; times += 1) {
        clock.turn(20 * 60 - 1);
        assert.equal((await call('GET', '/keys/self')).status, 200);
      }
      clock.turn(3);
      assert.equal((await call('GET', '/keys/self')).status, 401, 'after an hour');
      const idle = asPerson(service, cookiesOf(await signIn(service, issuer, claims)));
      clock.turn(20 * 60);
      assert.equal((await idle('GET', '/keys/self')).status, 401, 'after twenty minutes without a request');
      await make();
      await refused(/Several tenants are called &quot;Acme&quot;/);
    });

  for (const store of stores)
    test(`is source of what the person asked, also with a key in the same name, on ${store.name} [H516]`, async (t) => {
      const { service, issuer } = await start(t, { store });
      const call = asPerson(service, cookiesOf(await signIn(service, issuer)));
      const { id } = await createPacket(service, { hitl: { ...question, exclude_source: true } });
      const asked = await call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
      assert.equal(asked.status, 200, asked.text);
      const body = { response: 'Yes', responded_by: 'dana@example.com' };
      assert.equal((await call('POST', `/packets/${id}/respond`, { body })).status, 403);
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'd', responder: 'Dana@example.com' } });
      const byKey = await service.call('POST', `/packets/${id}/respond`, {
        key: key.key,
        body: { ...body, responded_by: 'Dana@example.com' },
      });
      assert.equal(byKey.status, 403, byKey.text);
      const mia = asPerson(service, cookiesOf(await signIn(service, issuer, { ...dana, sub: 'mia', email: 'mia@example.com' })));
      const byMia = await mia('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'mia@example.com' } });
      assert.equal(byMia.status, 200, byMia.text);
    });

  test('has the budget of one key in the tenant, with all sessions', async (t) => {
    const { service, issuer } = await start(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '2' } });
    const cookies = [cookiesOf(await signIn(service, issuer)), cookiesOf(await signIn(service, issuer))];
    const answers = [];
    for (const cookie of [...cookies, ...cookies]) answers.push(await asPerson(service, cookie)('GET', '/packets'));
    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers['x-ratelimit-remaining'], headers['x-ratelimit-tier']]),
      [
        [200, '1', 'business'],
        [200, '0', 'business'],
        [429, '0', 'business'],
        [429, '0', 'business'],
      ],
    );
    assert.equal((await service.call('GET', '/packets')).status, 200, 'a key has its own');
  });

  test('writes only from a page of the service, and where a key is sent, the key decides [H510]', async (t) => {
    const { service, issuer } = await start(t);
    const cookie = cookiesOf(await signIn(service, issuer));
    const send = (headers: Record<string, string>) =>
      service.call('POST', '/packets', { key: null, body: {}, headers: { cookie, ...headers } });
    const own = { origin: publicUrl, 'x-requested-with': 'baton' };
    for (const headers of [
      {},
      { origin: publicUrl },
      { 'x-requested-with': 'baton' },
      { ...own, origin: 'http://evil.example' },
      { ...own, 'x-requested-with': 'other' },
      { ...own, origin: 'null' },
    ] as Record<string, string>[]) {
      const refused = await send(headers);
      assert.equal(refused.status, 403, JSON.stringify(headers));
      assert.match(refused.body.detail, /X-Requested-With/);
    }
    assert.equal((await send(own)).status, 400, 'admitted');
    for (const headers of [{}, { origin: 'http://evil.example' }, { 'sec-fetch-site': 'cross-site' }] as Record<string, string>[])
      for (const path of ['//events', '//ws']) {
        const refused = await service.call('GET', path, { key: null, headers: { cookie, ...headers } });
        assert.equal(refused.status, 403, `${path} ${JSON.stringify(headers)}`);
      }
    const withKey = await service.call('GET', '/keys/self', { headers: { cookie } });
    assert.equal(withKey.body.kind, 'key');
    assert.equal((await service.call('GET', '/keys/self', { key: 'wrong', headers: { cookie } })).status, 401);
    assert.equal(
      (await service.call('POST', '//mcp', { key: null, body: {}, headers: { cookie, ...own } })).status,
      401,
      'programs have no sessions',
    );
    const foreign = await service.call('GET', '/packets', { key: null, headers: { cookie, origin: 'http://evil.example' } });
    assert.equal(foreign.headers['access-control-allow-credentials'], undefined);
    const signOut = await service.call('POST', '//sign-out', { key: null, headers: { cookie, origin: 'http://evil.example' } });
    assert.equal(signOut.status, 403);
    assert.equal((await service.call('GET', '/keys/self', { key: null, headers: { cookie } })).status, 200);
    assert.equal(
      (await service.call('GET', '/keys/self', { key: null, headers: { cookie: `${cookie}; ${cookie}` } })).status,
      401,
      'two cookies',
    );
  });
});

describe('A sign-in', () => {
  test('ends only in the browser that began it, once, within ten minutes, and returns to own pages alone', async (t) => {
    const { service, issuer, clock } = await start(t);
    const begin = async () => {
      const begun = await service.call('GET', '//sign-in', { key: null });
      return { begun, cookie: cookiesOf(begun), sent: issuer.authorize(String(begun.headers.location), dana) };
    };
    const back = (sent: URLSearchParams, cookie?: string) =>
      service.call('GET', `//sign-in/callback?${sent}`, { key: null, headers: cookie === undefined ? {} : { cookie } });
    const { begun, cookie, sent } = await begin();
    const address = new URL(String(begun.headers.location));
    assert.deepEqual(
      [
        address.searchParams.get('code_challenge_method'),
        address.searchParams.get('redirect_uri'),
        address.searchParams.get('response_type'),
      ],
      ['S256', `${publicUrl}/sign-in/callback`, 'code'],
    );
    for (const name of ['state', 'nonce']) assert.match(address.searchParams.get(name)!, /^[\w-]{43}$/, `256 random bits as ${name}`);
    assert.equal((await back(sent)).status, 400, 'another browser');
    const other = await begin();
    assert.equal((await back(sent, other.cookie)).status, 400, 'the cookie of another sign-in');
    const mixed = new URLSearchParams(sent);
    mixed.set('code', other.sent.get('code')!);
    assert.equal((await back(mixed, cookie)).status, 400, 'the code of another sign-in');
    const fresh = await begin();
    assert.equal((await back(fresh.sent, fresh.cookie)).status, 302);
    assert.equal((await back(fresh.sent, fresh.cookie)).status, 400, 'the code again');
    const foreign = await signIn(service, issuer, { ...dana, nonce: 'of another sign-in' } as JWTPayload);
    assert.deepEqual([foreign.status, /does not belong to this sign-in/.test(foreign.text)], [400, true], 'the nonce of another sign-in');
    const late = await begin();
    clock.turn(601);
    assert.equal((await back(late.sent, late.cookie)).status, 400, 'after ten minutes');
    const denied = await begin();
    const answer = await back(
      new URLSearchParams({ error: 'access_denied', state: denied.sent.get('state')!, iss: issuer.issuer }),
      denied.cookie,
    );
    assert.equal(answer.status, 400);
    assert.match(answer.text, /did not let you in/);
    for (const path of [
      'https://evil.example/',
      '//evil.example/',
      '/\\evil.example',
      'javascript:alert(1)',
      '/ok\r\nset-cookie: a=b',
      'console',
      '/%5cevil',
    ])
      assert.match(
        String((await signIn(service, issuer, dana, path)).headers.location),
        /^http:\/\/127\.0\.0\.1:8080\/(console|%5cevil)$/,
        path,
      );
  });

  for (const store of stores)
    test(`ends the session that the browser had, whosever it was, and no other browser's, on ${store.name} [H572]`, async (t) => {
      const { service, issuer } = await start(t, { store });
      const [first, elsewhere] = [cookiesOf(await signIn(service, issuer)), cookiesOf(await signIn(service, issuer))];
      const mia = { ...dana, sub: 'mia', email: 'mia@example.com', sid: 'session-of-mia' };
      const second = cookiesOf(await signIn(service, issuer, mia, '/console', [first]));
      const nameOf = async (cookie: string) => (await asPerson(service, cookie)('GET', '/keys/self')).body.name;
      assert.deepEqual(await Promise.all([first, elsewhere, second].map(nameOf)), [undefined, dana.email, mia.email]);
      const { entries } = (await service.call('GET', '/audit')).body;
      const ended = entries.find(({ resource, action }: Record<string, string>) => resource === 'session' && action === 'deleted');
      assert.deepEqual([ended.details.name, ended.details.ended_by], [dana.email, 'another sign-in']);
      // A sign-in that fails ends nothing.
      const begun = await service.call('GET', '//sign-in', { key: null });
      const headers = { cookie: `${second}; ${cookiesOf(begun)}` };
      assert.equal((await service.call('GET', '//sign-in/callback?code=x&state=y', { key: null, headers })).status, 400);
      assert.equal(await nameOf(second), mia.email);
    });

  test('leaves a browser that has begun many of them requests that are small enough', async (t) => {
    const { service } = await start(t);
    const jar = new Map<string, string>();
    const path = encodeURIComponent('/console?'.padEnd(2048, 'x'));
    for (let index = 0; index < 20; index += 1) {
      const cookie = [...jar].map((pair) => pair.join('=')).join('; ');
      const begun = await service.call('GET', `//sign-in?return_to=${path}`, { key: null, headers: { cookie } });
      assert.equal(begun.status, 302, begun.text);
      for (const set of [begun.headers['set-cookie'] ?? []].flat().map(String)) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set)!;
        if (value === '') jar.delete(name);
        else jar.set(name, value);
      }
      // Node takes 16 KiB of headers.
      assert.ok([...jar].join().length < 8192, `${[...jar].join().length} characters of cookies`);
    }
  });

  test('asks for the usual scopes, and for offline_access where the provider announces it, or for those of the settings', async (t) => {
    for (const [setting, metadata, scope] of [
      ['', {}, 'openid profile email'],
      ['', { scopes_supported: ['openid', 'offline_access'] }, 'openid profile email offline_access'],
      ['openid groups', { scopes_supported: ['openid', 'offline_access'] }, 'openid groups'],
    ] as const) {
      const { service, issuer } = await start(t, { settings: { SERVICE_OIDC_SCOPES: setting } });
      issuer.metadata = metadata;
      const { headers } = await service.call('GET', '//sign-in', { key: null });
      assert.equal(new URL(String(headers.location)).searchParams.get('scope'), scope);
    }
  });

  test('ends here alone where the provider has no address to end its session', async (t) => {
    const { service, issuer } = await start(t);
    issuer.metadata = { end_session_endpoint: undefined };
    const cookie = cookiesOf(await signIn(service, issuer));
    const out = await service.call('POST', '//sign-out', {
      key: null,
      headers: { cookie, origin: publicUrl, 'x-requested-with': 'baton' },
    });
    assert.deepEqual([out.status, out.body.url], [200, `${publicUrl}/signed-out`], out.text);
    assert.equal((await asPerson(service, cookie)('GET', '/keys/self')).status, 401);
  });

  test('says that the provider does not answer, and works when it does; the service is ready meanwhile', async (t) => {
    const { service, issuer, clock } = await start(t);
    issuer.state = 'down';
    const down = await service.call('GET', '//sign-in', { key: null });
    assert.equal(down.status, 503);
    assert.match(down.text, /identity provider does not answer/);
    assert.equal((await service.call('GET', '//ready', { key: null })).status, 200);
    assert.equal((await service.call('GET', '/packets')).status, 200);
    issuer.state = 'up';
    clock.turn(6);
    assert.equal((await signIn(service, issuer)).status, 302);
  });

  test('needs the provider to be found, in the background from the start, every ten seconds while that fails', async (t) => {
    const { service, issuer } = await start(t);
    const { identity } = service.handoff.runOnce;
    const asked = (at = issuer) => at.requests.get('/.well-known/openid-configuration');
    issuer.state = 'down';
    assert.deepEqual([await identity(), await identity(), asked()], [10_000, 10_000, 2], 'milliseconds until the next round');
    issuer.state = 'up';
    assert.deepEqual([await identity(), asked()], [3_600_000, 3]);
    // A request has nothing to ask any more.
    assert.equal((await service.call('GET', '//sign-in', { key: null })).status, 302);
    assert.deepEqual([await identity(), asked()], [3_600_000, 3]);
    assert.equal(service.logs.filter((line) => line.includes('"job":"identity"')).length, 2);
    const started = await start(t);
    await started.service.handoff.start();
    await until(() => asked(started.issuer) === 1);
  });

  test('over HTTPS has cookies that only this host gets', async (t) => {
    const { service, issuer } = await start(t, { settings: { SERVICE_PUBLIC_URL: 'https://baton.example.com' } });
    const begun = await service.call('GET', '//sign-in', { key: null });
    assert.match(
      String(begun.headers['set-cookie']),
      /^__Host-baton-sign-in-\S+=\S+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    );
    for (const cookie of (await signIn(service, issuer)).headers['set-cookie'] as unknown as string[])
      assert.match(cookie, /^__Host-baton-s(ession|ign-in-\S+)=.*; Path=\/.*; Secure$/);
  });
});

describe('A session', () => {
  for (const store of stores)
    test(`ends after an hour without a request, after twelve hours, and after one hour without a refresh token, on ${store.name}`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const call = asPerson(service, cookiesOf(await signIn(service, issuer)));
      clock.turn(3599);
      assert.equal((await call('GET', '/keys/self')).status, 200);
      clock.turn(3600);
      assert.equal((await call('GET', '/keys/self')).status, 401, 'idle');
      const long = asPerson(service, cookiesOf(await signIn(service, issuer)));
      for (let minutes = 0; minutes < 719; minutes += 30) {
        assert.equal((await long('GET', '/keys/self')).status, 200, `after ${minutes} minutes`);
        clock.turn(1800);
      }
      assert.equal((await long('GET', '/keys/self')).status, 401, 'after twelve hours');
      issuer.refreshes = false;
      const short = asPerson(service, cookiesOf(await signIn(service, issuer)));
      clock.turn(1800);
      assert.equal((await short('GET', '/keys/self')).status, 200);
      clock.turn(1800);
      assert.equal((await short('GET', '/keys/self')).status, 401, 'after an hour');
    });

  for (const store of stores)
    test(`loses within 15 minutes what the person lost at the provider, on ${store.name} [H511]`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const call = asPerson(service, cookiesOf(await signIn(service, issuer)));
      const change = (claims: object | undefined) => {
        for (const token of [...issuer.people.keys()]) {
          if (claims === undefined) issuer.people.delete(token);
          else issuer.people.set(token, { ...dana, ...claims });
        }
      };
      change({ groups: [] });
      assert.ok((await call('GET', '/keys/self')).body.scopes.includes('manage'));
      clock.turn(15 * 60);
      assert.deepEqual((await call('GET', '/keys/self')).body.scopes, ['read', 'respond'], 'moved to other groups');
      clock.turn(15 * 60);
      assert.equal((await call('GET', '/keys/self')).status, 200);
      issuer.state = 'down';
      clock.turn(15 * 60);
      const unknown = await call('GET', '/keys/self');
      assert.deepEqual([unknown.status, unknown.headers['retry-after']], [503, '5'], 'the provider does not answer');
      issuer.state = 'up';
      clock.turn(31);
      assert.equal((await call('GET', '/keys/self')).status, 200);
      change(undefined);
      clock.turn(15 * 60);
      assert.equal((await call('GET', '/keys/self')).status, 401, 'removed');
      assert.deepEqual((await service.call('GET', '/sessions')).body.sessions, []);
    });

  for (const store of stores)
    test(`is refreshed once for many requests at once, on ${store.name}`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const call = asPerson(service, cookiesOf(await signIn(service, issuer)));
      const before = issuer.requests.get('/token')!;
      clock.turn(15 * 60);
      const answers = await Promise.all(Array.from({ length: 20 }, () => call('GET', '/keys/self')));
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      assert.equal(issuer.requests.get('/token')! - before, 1);
    });

  for (const store of stores)
    test(`ends by the provider's logout token, by its id, and when its person is suspended, on ${store.name} [H439]`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const now = () => Math.floor(clock.read().getTime() / 1000);
      const event = 'http://schemas.openid.net/event/backchannel-logout';
      const logout = async (claims: object = {}) => {
        const usual = {
          iss: issuer.issuer,
          aud: 'baton',
          iat: now(),
          exp: now() + 120,
          jti: crypto.randomUUID(),
          events: { [event]: {} },
          sid: dana.sid,
        };
        const token = await issuer.sign({ ...usual, ...claims } as never, { typ: 'logout+jwt' });
        const headers = { 'content-type': 'application/x-www-form-urlencoded' };
        return service.call('POST', '//sign-in/back-channel-logout', {
          key: null,
          headers,
          raw: new URLSearchParams({ logout_token: token }).toString(),
        });
      };
      const open = async (claims = dana) => asPerson(service, cookiesOf(await signIn(service, issuer, claims)));
      const call = await open();
      for (const claims of [
        { aud: 'other' },
        { events: {} },
        { nonce: 'n' },
        { iss: 'http://127.0.0.1:1' },
        { sid: undefined },
        { exp: now() - 61 },
        { jti: undefined },
      ])
        assert.equal((await logout(claims)).status, 400, JSON.stringify(claims));
      assert.equal((await call('GET', '/keys/self')).status, 200);
      assert.equal((await logout({ iat: now() - 120, exp: now() })).status, 200);
      assert.equal((await call('GET', '/keys/self')).status, 401, "by a provider's clock that is two minutes behind");
      const again = await open();
      // The address of the provider had a slash at its end in the settings of that time.
      const change = "update sessions set issuer = issuer || '/'";
      if (store === inMemory) databaseInMemory().exec(change);
      else await (await connectTo(t, service.databaseUrl)).query(change);
      const behind = { sid: undefined, sub: dana.sub, jti: 'again', iat: now() - 120, exp: now() + 60 };
      assert.equal((await logout(behind)).status, 200);
      assert.equal((await again('GET', '/keys/self')).status, 401, 'by the person, though the clock of the provider is behind');
      // As of an instance whose clock is ahead.
      clock.turn(30);
      const ahead = await open();
      clock.turn(-30);
      assert.equal((await logout({ ...behind, jti: 'of another instance' })).status, 200);
      assert.equal((await ahead('GET', '/keys/self')).status, 401, 'though it began later by the clock of the instance');
      clock.turn(61);
      const later = await open();
      assert.equal((await logout(behind)).status, 200);
      assert.equal((await later('GET', '/keys/self')).status, 200, 'a token that is sent again does not end a later session');

      const mine = await open();
      const mia = await open({ ...dana, sub: 'mia', email: 'mia@example.com', groups: [], sid: 'other' });
      const { sessions } = (await mine('GET', '/sessions')).body;
      assert.equal(sessions.length, 3, 'a manager sees all');
      assert.equal((await mia('GET', '/sessions')).body.sessions.length, 1);
      const other = sessions.find(({ current }: { current: boolean }) => current).id;
      assert.equal((await mia('DELETE', `/sessions/${other}`)).status, 404);
      const { body: reader } = await service.call('POST', '/keys', { body: { name: 'reader', scopes: ['read'] } });
      for (const [method, path] of [
        ['GET', '/sessions'],
        ['DELETE', `/sessions/${other}`],
      ] as const) {
        const refused = await service.call(method, path, { key: reader.key });
        assert.deepEqual([refused.status, refused.body.code], [403, 'FORBIDDEN'], path);
      }
      const miasId = sessions.find(({ person }: { person: string }) => person === 'mia@example.com').id;
      assert.equal((await mine('DELETE', `/sessions/${miasId}`)).status, 204);
      assert.equal((await mia('GET', '/keys/self')).status, 401);

      assert.equal((await service.call('POST', '/people/DANA@example.com/suspend')).status, 200);
      assert.equal((await mine('GET', '/keys/self')).status, 401);
      const refused = await signIn(service, issuer);
      assert.deepEqual([refused.status, /suspended/.test(refused.text)], [403, true]);
      assert.equal((await service.call('POST', '/people/dana@example.com/resume')).status, 200);
      assert.equal((await signIn(service, issuer)).status, 302);
    });

  for (const store of storesOfSeveral)
    test(`is begun and known on every instance, refreshed by one of them, and ends on each, on ${store.name}`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const second = await startService(t, { databaseUrl: service.databaseUrl, clock, settings: signInSettings(issuer) });
      const either: TestService['call'] = (method, path, options) =>
        (path.startsWith('//sign-in/callback') ? service : second).call(method, path, options);
      const cookie = cookiesOf(await signIn({ call: either }, issuer));
      const statusAt = async (instance: TestService) => (await asPerson(instance, cookie)('GET', '/keys/self')).status;
      assert.equal(await statusAt(second), 200);
      const before = issuer.requests.get('/token')!;
      clock.turn(15 * 60);
      const statuses = await Promise.all([service, second, service, second].map(statusAt));
      for (const status of statuses) assert.ok(status === 200 || status === 503, String(status));
      assert.ok(statuses.includes(200));
      assert.equal(issuer.requests.get('/token')! - before, 1);
      assert.equal(await statusAt(second), 200);
      await service.call('POST', '//sign-out', { key: null, headers: { cookie, origin: publicUrl } });
      assert.equal(await statusAt(second), 401);
    });
});

describe('What is stored of a session', () => {
  for (const store of storesOfSeveral)
    test(`is the hash of its token, and the provider's tokens encrypted, on ${store.name}`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const rows = () => looking(service.databaseUrl, ({ query }) => query('select * from sessions'));
      const cookie = cookiesOf(await signIn(service, issuer));
      const token = /baton-session=([^;]+)/.exec(cookie)![1]!;
      const secretOf = (stored: object[]) => {
        const text = JSON.stringify(stored);
        for (const [what, secret] of Object.entries({
          'the token': token.split('.')[1]!,
          'the refresh token': 'refresh-',
          'the ID token': 'eyJhbGci',
        }))
          assert.ok(!text.includes(secret), `${what} is stored as it is: ${text}`);
        return (stored[0] as { sealed: string }).sealed;
      };
      const [begun] = await rows();
      assert.equal((begun as { token_hash?: string }).token_hash, hash('sha256', token));
      const first = secretOf([begun!]);
      assert.ok(first.length > 300, 'the refresh token and the ID token are in it');
      clock.turn(15 * 60);
      assert.equal((await asPerson(service, cookie)('GET', '/keys/self')).status, 200, 'it was opened and used');
      assert.notEqual(secretOf(await rows()), first);
      await service.call('POST', '//sign-out', { key: null, headers: { cookie, origin: publicUrl } });
      assert.equal(secretOf(await rows()), null, 'it goes with the end');
    });

  for (const store of storesOfSeveral)
    test(`is opened by each start with the key that the first one made, and has ended where another key is set, on ${store.name} [H409]`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const cookie = cookiesOf(await signIn(service, issuer));
      const statusAt = async (at: TestService, own = cookie) => (await asPerson(at, own)('GET', '/keys/self')).status;
      const next = (settings: Record<string, string> = {}) =>
        startService(t, { databaseUrl: service.databaseUrl, clock, settings: { ...signInSettings(issuer), ...settings } });
      const second = await next();
      clock.turn(15 * 60);
      const asked = issuer.requests.get('/token')!;
      assert.equal(await statusAt(second), 200);
      assert.equal(issuer.requests.get('/token'), asked + 1, 'with the refresh token that the first one stored');
      const other = await next({ SERVICE_SESSION_KEY: Buffer.alloc(32, 7).toString('base64') });
      assert.equal(await statusAt(other), 401);
      const { entries } = (await other.call('GET', '/audit')).body;
      assert.deepEqual([entries[0].action, entries[0].details.ended_by], ['deleted', 'another SERVICE_SESSION_KEY']);
      assert.equal(await statusAt(second), 401, 'it has ended for all');
      const fresh = cookiesOf(await signIn(other, issuer));
      clock.turn(15 * 60);
      assert.equal(await statusAt(other, fresh), 200, 'with the key of the settings');
    });

  test('is read for each cookie: one that names no open session is 401, and no wrong key [H425]', async (t) => {
    const { service, issuer } = await start(t);
    const cookie = cookiesOf(await signIn(service, issuer));
    await service.call('POST', '//sign-out', { key: null, headers: { cookie, origin: publicUrl } });
    for (let index = 0; index < 40; index += 1)
      assert.equal((await asPerson(service, cookie)('GET', '/packets')).status, 401, `request ${index}`);
    assert.equal((await service.call('GET', '/packets', { key: `svc_${'x'.repeat(49)}` })).status, 401);
  });
});

describe('A stream', () => {
  for (const store of stores)
    test(`ends with its session or token: signed out, less rights, suspended, not asked for again, expired, on ${store.name} [H573]`, async (t) => {
      const rights = '{"idp:ops": ["read", "respond"], "idp:readers": ["read"], "idp:admins": ["admin"]}';
      const { service, issuer, clock } = await start(t, { store, settings: { SERVICE_OIDC_RIGHTS: rights } });
      const address = await service.handoff.start();
      /** An open stream of each kind, with these headers. */
      const streams = async (headers: Record<string, string>) => {
        const [events, socket] = await Promise.all([listenTo(t, address, '', headers), openSocket(address, '', headers)]);
        t.after(() => socket.socket.terminate());
        return { events, socket };
      };
      const ended = async ({ events, socket }: Awaited<ReturnType<typeof streams>>, why: string) => {
        await service.handoff.runOnce.recheck();
        await events.ended;
        assert.equal((await socket.closed).code, 4001, why);
      };
      const open = async (claims: JWTPayload = dana) => {
        const cookie = cookiesOf(await signIn(service, issuer, claims));
        return { cookie, call: asPerson(service, cookie), ...(await streams({ cookie, origin: publicUrl })) };
      };
      const hears = async ({ events }: Awaited<ReturnType<typeof streams>>) => {
        await service.handoff.runOnce.recheck();
        const { id } = await createPacket(service);
        assert.equal((await events.events.next()).data.packet_id, id);
      };

      await hears(await open({ ...dana, sub: 'admin', email: 'admin@example.com', groups: ['admins'] }));

      const out = await open();
      await hears(out);
      await service.call('POST', '//sign-out', { key: null, headers: { cookie: out.cookie, origin: publicUrl } });
      await ended(out, 'signed out');

      // The groups are asked for with a request, within 15 minutes; a person may keep the session and lose the right to listen.
      const moved = await open();
      for (const token of issuer.people.keys()) issuer.people.set(token, { ...dana, groups: [] });
      clock.turn(15 * 60);
      assert.equal((await moved.call('GET', '/packets')).status, 403);
      await ended(moved, 'no group with the right');
      const refused = await openEvents(address, '', { cookie: moved.cookie, origin: publicUrl });
      assert.equal(refused.status, 403);

      const silent = await open();
      clock.turn(15 * 60);
      await hears(silent);
      clock.turn(31);
      await ended(silent, 'the provider was not asked');

      const mia = await open({ ...dana, sub: 'mia', email: 'mia@example.com', sid: 'of-mia' });
      const renamed = await open({ ...dana, sub: 'mia', email: 'mia.new@example.com', sid: 'of-mia' });
      const claims = { scope: 'baton:read', groups: ['readers'], sub: 'mia', email: 'mia@example.com', email_verified: true };
      const authorization = `Bearer ${await issuer.token(publicUrl, { claims })}`;
      const byToken = await streams({ authorization });
      await hears(byToken);
      assert.equal((await service.call('POST', '/people/mia@example.com/suspend')).status, 200);
      await ended(mia, 'suspended');
      await ended(renamed, 'suspended under another name');
      await ended(byToken, 'suspended, with a token');

      const ofProgram = {
        authorization: `Bearer ${await issuer.token(publicUrl, { claims: { scope: 'baton:read', groups: ['readers'] } })}`,
      };
      const short = await streams(ofProgram);
      // Five minutes, and one by which clocks may differ.
      clock.turn(359);
      await hears(short);
      clock.turn(1);
      await ended(short, 'the token has expired');
      assert.equal((await openEvents(address, '', ofProgram)).status, 401);

      const now = Math.floor(clock.read().getTime() / 1000);
      const known = { active: true, sub: 's', client_id: 'c', scope: 'baton:read', groups: ['readers'], aud: publicUrl, exp: now + 3600 };
      issuer.opaque.set('opaque-token', known);
      const opaque = await streams({ authorization: 'Bearer opaque-token' });
      clock.turn(31);
      issuer.state = 'down';
      await hears(opaque);
      issuer.state = 'up';
      issuer.opaque.delete('opaque-token');
      const asked = issuer.requests.get('/introspect')!;
      await service.handoff.runOnce.recheck();
      // The answer of the provider is waited for by nobody.
      await until(() => issuer.requests.get('/introspect')! > asked);
      await until(async () => (await openEvents(address, '', { authorization: 'Bearer opaque-token' })).status === 401);
      await ended(opaque, 'the provider has revoked the token');
    });

  for (const store of stores)
    test(`of A2A and of MCP, and a request that waits, ends with its token too, on ${store.name}`, async (t) => {
      const { service, issuer } = await start(t, { store });
      const address = await service.handoff.start();
      const claims = { scope: 'baton:read baton:work', sub: 'mia', email: 'mia@example.com', email_verified: true, groups: ['ops'] };
      const [forApi, forMcp] = await Promise.all([publicUrl, `${publicUrl}/mcp`].map((audience) => issuer.token(audience, { claims })));
      const { id } = await createPacket(service);
      const post = (path: string, token: string, { headers, body }: { headers: Record<string, string>; body: object }) =>
        fetch(`${address}${path}`, {
          method: 'POST',
          headers: { ...headers, authorization: `Bearer ${token}` },
          body: JSON.stringify(body),
        });
      const task = await post('/a2a', forApi!, a2aRequest('SubscribeToTask', { id }));
      const notifications = { resourceSubscriptions: [`packet://${id}`] };
      const changes = await post('/mcp', forMcp!, mcpRequest('subscriptions/listen', { notifications }, { agent: null }));
      const waits = fetch(`${address}/api/v1/packets/${id}?wait_seconds=60&until=completed`, {
        headers: { authorization: `Bearer ${forApi}` },
      });
      assert.deepEqual([task.status, changes.status], [200, 200]);
      await until(() => service.handoff.waiting() === 2);
      await service.handoff.runOnce.recheck();
      assert.equal(service.handoff.waiting(), 2, 'a valid token goes on');
      assert.equal((await service.call('POST', '/people/mia@example.com/suspend')).status, 200);
      await service.handoff.runOnce.recheck();
      assert.equal((await waits).status, 401);
      const texts = await Promise.all([task, changes].map((stream) => stream.text().catch((error: unknown) => String(error))));
      assert.doesNotMatch(texts.join(), /completed/);
      assert.equal(service.handoff.waiting(), 0);
    });
});

describe('A name that is released', () => {
  for (const store of stores)
    test(`takes no link along that was made by or for its former person, on ${store.name} [H428]`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const former = asPerson(service, cookiesOf(await signIn(service, issuer)));
      const id = await asking(service);
      const urls = [
        (await former('POST', `/packets/${id}/answer-links`, { body: {} })).body.url,
        (await service.call('POST', `/packets/${id}/answer-links`, { body: { responder: dana.email } })).body.url,
      ];
      const pages = async () =>
        Promise.all(urls.map(async (url) => (await service.call('GET', `/${new URL(url).pathname}`, { key: null })).status));
      assert.deepEqual(await pages(), [200, 200]);
      clock.turn(1);
      assert.equal((await service.call('POST', `/people/${dana.email}/release`)).status, 200);
      const [released] = (await service.call('GET', '/audit')).body.entries;
      assert.deepEqual([released.resource, released.action, released.details], ['person', 'released', { name: dana.email }]);
      const next = asPerson(service, cookiesOf(await signIn(service, issuer, { ...dana, sub: 'another dana' })));
      assert.ok(!(await pages()).includes(200));
      const { body: links } = await service.call('GET', `/packets/${id}/answer-links`);
      assert.deepEqual(
        links.map(({ status }: { status: string }) => status),
        ['revoked', 'revoked'],
      );
      clock.turn(1);
      const own = await next('POST', `/packets/${id}/answer-links`, { body: {} });
      urls.splice(0, 2, own.body.url);
      assert.deepEqual(await pages(), [200], own.text);
    });

  for (const store of stores)
    test(`is not taken again by a token that was issued, or a session that began, before, on ${store.name} [H428]`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const claims = { sub: 'dana', email: dana.email, email_verified: true, scope: 'baton:read' };
      const statusOf = async (token: string) =>
        (await service.call('GET', '/keys/self', { key: null, headers: { authorization: `Bearer ${token}` } })).status;
      const tokens = [
        await issuer.token(publicUrl, { claims }),
        await issuer.token(publicUrl, { claims: { ...claims, iat: undefined } as never }),
      ];
      assert.deepEqual(await Promise.all(tokens.map(statusOf)), [200, 200]);
      const stream = await listenTo(t, await service.handoff.start(), '', { authorization: `Bearer ${tokens[0]}` });
      const session = asPerson(service, cookiesOf(await signIn(service, issuer)));
      const release = () => service.call('POST', `/people/${dana.email}/release`);
      clock.turn(1);
      assert.equal((await release()).status, 200);
      await service.handoff.runOnce.recheck();
      await createPacket(service);
      const heard = stream.events.next().then(() => 'goes on');
      assert.equal(await Promise.race([stream.ended.then(() => 'has ended'), heard]), 'has ended');
      assert.deepEqual(await Promise.all(tokens.map(statusOf)), [401, 401]);
      assert.equal((await session('GET', '/keys/self')).status, 401);
      assert.equal((await signIn(service, issuer, { ...dana, sub: 'another dana' })).status, 302, 'who signs in next has it');
      assert.equal((await release()).status, 200);
      clock.turn(61);
      assert.equal(await statusOf(await issuer.token(publicUrl, { claims })), 200, 'a new token takes it');
    });

  for (const store of stores)
    test(`is not taken again by an earlier session that the provider is being asked about, on ${store.name} [H428]`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      const session = asPerson(service, cookiesOf(await signIn(service, issuer)));
      clock.turn(15 * 60);
      const { promise, resolve: letGo } = Promise.withResolvers<void>();
      issuer.held = promise;
      const asked = issuer.requests.get('/token')!;
      const answer = session('GET', '/keys/self');
      await until(() => issuer.requests.get('/token')! > asked);
      assert.equal((await service.call('POST', `/people/${dana.email}/release`)).status, 200);
      letGo();
      assert.equal((await answer).status, 401);
      assert.equal((await signIn(service, issuer, { ...dana, sub: 'another dana' })).status, 302, 'the name is still free');
    });

  test('while its person signs in, leaves no session open [H428]', async (t) => {
    const { service, issuer } = await start(t);
    // What a release changes, as soon as the person is stored and before the session is.
    databaseInMemory().exec(
      'create trigger released after update on people when new.subject is not null begin update people set subject = null, issuer = null where name_key = new.name_key; end',
    );
    const refused = await signIn(service, issuer);
    assert.deepEqual([refused.status, /has been released since/.test(refused.text)], [403, true], refused.text);
    databaseInMemory().exec('drop trigger released');
    assert.deepEqual((await service.call('GET', '/sessions')).body.sessions, []);
    assert.equal((await signIn(service, issuer, { ...dana, sub: 'another dana' })).status, 302);
  });
});

describe('The list of people', () => {
  for (const store of stores)
    test(`says what groups each is in, on which ways each may answer, and who was there when, in pages, on ${store.name} [H517]`, async (t) => {
      const { service, issuer, clock } = await start(t, { store });
      await signIn(service, issuer);
      for (const [path, body] of [
        ['/keys', { name: 'k', responder: 'Dana@example.com' }],
        ['/channels', { kind: 'slack', target: 'https://hooks.slack.com/services/x', responder: dana.email }],
        ['/keys', { name: 'k', responder: 'Eli' }],
      ] as const) {
        const made = await service.call('POST', path, { body });
        assert.equal(made.status, 201, made.text);
      }
      const page = async (query: string) => (await service.call('GET', `/people?${query}`)).body;
      const danas = { name: dana.email, groups: ['idp:ops'], methods: ['sign_in', 'key', 'link'] };
      const first = { ...danas, last_seen_at: clock.read().toISOString(), suspended: false };
      assert.deepEqual(await page('limit=1'), { people: [first], total: 2, limit: 1, offset: 0 });
      const second = { name: 'Eli', groups: [], methods: ['key'], last_seen_at: null, suspended: false };
      assert.deepEqual(await page('limit=1&offset=1'), { people: [second], total: 2, limit: 1, offset: 1 });
    });
});

describe('A suspended person, without any provider', () => {
  for (const store of stores)
    test(`answers on no way: keys in the name are refused until the person is resumed, on ${store.name} [H517]`, async (t) => {
      const service = await startService(t, { store });
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'd', responder: 'Dana' } });
      assert.equal((await service.call('GET', '/keys/self', { key: key.key })).status, 200);
      const suspended = await service.call('POST', '/people/dana/suspend');
      assert.deepEqual(
        [suspended.status, suspended.body],
        [200, { name: 'dana', groups: [], methods: ['key'], last_seen_at: null, suspended: true }],
        suspended.text,
      );
      assert.equal((await service.call('GET', '/keys/self', { key: key.key })).status, 401);
      const { people, total } = (await service.call('GET', '/people')).body;
      assert.deepEqual([people.length, total, people[0].suspended], [1, 1, true]);
      const { entries } = (await service.call('GET', '/audit')).body;
      assert.deepEqual([entries[0].resource, entries[0].action, entries[0].details], ['person', 'suspended', { name: 'dana' }]);
      assert.equal((await service.call('POST', '/people/DANA/resume')).status, 200);
      const [{ action, details }] = (await service.call('GET', '/audit')).body.entries;
      assert.deepEqual([action, details], ['resumed', { name: 'dana' }]);
      assert.equal((await service.call('GET', '/keys/self', { key: key.key })).status, 200);
      assert.equal((await service.call('POST', '/people/nobody/resume')).status, 404);
      const { body: other } = await service.call('POST', '/tenants', { body: { name: 'Other' } });
      const { body: foreign } = await service.call('POST', '/keys', { body: { name: 'k', tenant_id: other.id } });
      assert.deepEqual((await service.call('GET', '/people', { key: foreign.key })).body.people, []);
    });

  for (const store of stores)
    test(`answers under no typed name either, however many are suspended, on ${store.name} [H575]`, async (t) => {
      const service = await startService(t, { store });
      const many = `insert into people (tenant, name_key, name, groups, suspended_at) select tenants.number, 'a' || numbers.number, 'a' || numbers.number, '[]', 'then' from tenants, ${numbersTo(service.databaseUrl, 10_000)}`;
      if (store === inMemory) databaseInMemory().exec(many);
      else await (await connectTo(t, service.databaseUrl)).query(many);
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'Dana', scopes: ['read', 'work', 'respond'] } });
      const ids = [await asking(service, { ...question, action: { tool: 'refund', arguments: {} } }), await asking(service)];
      const links = await Promise.all(
        ids.map(async (id) => new URL((await service.call('POST', `/packets/${id}/answer-links`, { body: {} })).body.url).pathname),
      );
      const answers: [string, (id: string, link: string) => ReturnType<TestService['call']>][] = [
        [
          'a link',
          async (_, link) => {
            const digest = /name="digest" value="(\w+)"/.exec((await service.call('GET', `/${link}`, { key: null })).text)?.[1] ?? '';
            const raw = new URLSearchParams({ digest, response: 'Yes', decision: 'reject', name: ' DANA' }).toString();
            const headers = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' };
            return service.call('POST', `/${link}`, { key: null, raw, headers });
          },
        ],
        ...['', '//console/api/v1'].map((at): (typeof answers)[number] => [
          `a key ${at}`,
          (id) =>
            service.call('POST', `${at}/packets/${id}/respond`, {
              key: key.key,
              body: { ...(id === ids[0] ? { decision: 'reject' } : { response: 'Yes' }), responded_by: 'dana ' },
            }),
        ]),
      ];
      // The page of a link is the first to know of it.
      assert.equal((await service.call('POST', '/people/Dana/suspend')).status, 200);
      for (const [way, answer] of answers)
        for (const [index, id] of ids.entries()) {
          const refused = await answer(id, links[index]!);
          assert.deepEqual([refused.status, /dana is suspended here/i.test(refused.text)], [403, true], `${way}: ${refused.text}`);
        }
      const byName = await a2a(service, 'SendMessage', messageOf('Yes', { taskId: ids[1] }), { key: key.key });
      assert.match(byName.text, /Dana is suspended here/, 'over A2A a key answers under its name');
      assert.equal((await service.call('POST', '/people/Dana/resume')).status, 200);
      for (const [index, id] of ids.entries()) assert.equal((await answers[0]![1](id, links[index]!)).status, 200);
    });
});
