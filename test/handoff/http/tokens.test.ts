import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { exportSPKI } from 'jose';
import { Provider } from '../../../src/handoff/identity/provider.ts';
import { messageOf } from '../../support/a2a.ts';
import {
  asPerson,
  cookiesOf,
  dana,
  signIn,
  signInSettings,
  startIssuer,
  type TestIssuer,
  type TokenRequest,
} from '../../support/issuer.ts';
import { question } from '../../support/life.ts';
import { mcp } from '../../support/mcp.ts';
import {
  adminKey,
  createPacket,
  packetRequest,
  startService,
  type TestAnswer,
  TestClock,
  type TestService,
} from '../../support/service.ts';
import { inMemory, type TestStore } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';
import { listenTo } from '../../support/streams.ts';

const publicUrl = 'http://127.0.0.1:8080';

/** The settings with which people sign in. */
const signIns = { SERVICE_OIDC_CLIENT_ID: 'baton', SERVICE_OIDC_CLIENT_SECRET: 'a-secret' };

interface Started {
  readonly service: TestService;
  readonly issuer: TestIssuer;
  readonly clock: TestClock;
  /** Calls the API with a token. */
  readonly as: (method: string, path: string, token: string, options?: object) => ReturnType<TestService['call']>;
  /** A token for the API, with these scopes. */
  readonly token: (scope?: string, request?: TokenRequest) => Promise<string>;
}

async function start(
  t: TestContext,
  { store = inMemory, settings = {} }: { store?: TestStore; settings?: Record<string, string> } = {},
): Promise<Started> {
  const clock = new TestClock();
  const issuer = await startIssuer(t, clock);
  const service = await startService(t, {
    store,
    clock,
    settings: {
      SERVICE_OIDC_ISSUER: issuer.issuer,
      SERVICE_PUBLIC_URL: publicUrl,
      SERVICE_OIDC_GROUPS_CLAIM: 'groups',
      SERVICE_OIDC_RIGHTS: '{"*": ["read", "respond"], "idp:agents": ["read", "work", "respond", "manage"]}',
      ...settings,
    },
  });
  return {
    service,
    issuer,
    clock,
    as: (method, path, token, { headers, ...options }: { headers?: object } = {}) =>
      service.call(method, path, { key: null, headers: { authorization: `Bearer ${token}`, ...headers }, ...options }),
    token: (scope = 'baton:read baton:work', { claims, ...request } = {}) =>
      issuer.token(publicUrl, { claims: { scope, groups: ['agents'], ...claims }, ...request }),
  };
}

const inMcp = (service: TestService, token: string, method: string, params: Record<string, unknown> = {}) =>
  mcp(service, method, params, { key: null, agent: null, headers: { authorization: `Bearer ${token}` } });

describe('A token of the identity provider', () => {
  for (const store of stores)
    test(`is admitted where keys are, with its scopes cut down to the rights of its groups, on ${store.name}`, async (t) => {
      const { service, as, token } = await start(t, { store });
      const created = await as('POST', '/packets', await token(), {
        body: packetRequest({
          metadata: { source_agent: { id: 'connector', name: 'c', framework: 'x' }, target_agent: { id: 'b', name: 'b' } },
        }),
      });
      assert.equal(created.status, 201, created.text);
      const history = await service.call('GET', `/packets/${created.body.id}/history`);
      const { actor, key_id } = history.body.events[0];
      assert.deepEqual([actor, key_id], ['agent:connector', null]);

      const own = await as('GET', '/keys/self', await token('baton:read baton:work baton:manage openid'));
      assert.deepEqual(
        [own.status, own.body.kind, own.body.id, own.body.scopes, own.body.agents, own.body.admin],
        [200, 'token', null, ['read', 'work', 'manage'], ['connector'], false],
      );
      const without = await as('GET', '/keys/self', await token('baton:read baton:work', { claims: { groups: [] } }));
      assert.deepEqual(without.body.scopes, ['read']);
      const named = await as('GET', '/keys/self', await token('baton:read', { claims: { agent_id: 'resolver' } }));
      assert.deepEqual(named.body.agents, ['resolver']);
      const nameless = { client_id: undefined, email: 'dana@example.com', email_verified: true } as unknown as TokenRequest['claims'];
      const ofPerson = await as('GET', '/keys/self', await token('baton:read', { claims: nameless! }));
      assert.deepEqual([ofPerson.status, ofPerson.body.agents], [200, ['dana@example.com']], ofPerson.text);
      const other = await as('GET', '/packets', await token(), { headers: { 'x-agent-id': 'other' } });
      assert.equal(other.status, 403, other.text);
    });

  for (const store of stores)
    test(`with the claim agent_id sees what is that agent's, and manages nothing, on ${store.name} [H568]`, async (t) => {
      const { service, issuer, as, token } = await start(t, { store });
      const between = (source: string, target: string) =>
        packetRequest({
          metadata: { source_agent: { id: source, name: source, framework: 'x' }, target_agent: { id: target, name: target } },
        });
      const [mine, other] = await Promise.all(
        [between('a', 'helper'), between('a', 'b')].map(async (body) => (await service.call('POST', '/packets', { body })).body),
      );
      const scope = 'baton:read baton:work baton:respond baton:manage';
      const own = await token(scope, { claims: { agent_id: 'helper' } });
      const person = await token(scope, { claims: { agent_id: 'helper', email: 'dana@example.com', email_verified: true } });
      for (const one of [own, person]) {
        const self = (await as('GET', '/keys/self', one)).body;
        assert.deepEqual([self.sees, self.agents, self.queues, self.scopes.includes('manage')], ['own', ['helper'], ['helper'], false]);
        assert.equal((await as('GET', `/packets/${mine.id}`, one)).status, 200);
        const [hidden, unknown] = await Promise.all(
          [other.id, '00000000-0000-7000-8000-00000000ffff'].map((id) => as('GET', `/packets/${id}`, one)),
        );
        assert.deepEqual([hidden!.status, hidden!.body.detail], [404, unknown!.body.detail]);
        const { packets, total } = (await as('GET', '/packets', one)).body;
        assert.deepEqual([packets.map(({ id }: { id: string }) => id), total], [[mine.id], 1]);
        assert.equal((await as('GET', '/stats', one)).body.work.created, 1);
        assert.equal((await as('GET', '/audit', one)).status, 403);
        const claim = await as('POST', '/packets/claim-next', one, { body: { agent_id: 'helper', target_agent: 'b' } });
        assert.deepEqual([claim.status, claim.body.field], [403, 'target_agent'], claim.text);
      }
      const atMcp = await issuer.token(`${publicUrl}/mcp`, { claims: { scope, groups: ['agents'], agent_id: 'helper' } });
      const found = await inMcp(service, atMcp, 'tools/call', { name: 'find_packets', arguments: {} });
      const tasks = await as('GET', '//a2a/tasks', own, { headers: { 'a2a-version': '1.0' } });
      const headers = { authorization: `Bearer ${own}` };
      const events = await listenTo(t, await service.handoff.start(), '', headers);
      const unseen = await service.call('POST', '/packets', { body: between('a', 'b') });
      const seen = await service.call('POST', '/packets', { body: between('a', 'helper') });
      assert.equal((await events.events.next()).data.packet_id, seen.body.id);
      for (const { text } of [found, tasks]) assert.deepEqual([text.includes(mine.id), text.includes(other.id)], [true, false], text);
      assert.ok(!events.text().includes(unseen.body.id));
      const all = await token(scope);
      assert.equal((await as('GET', `/packets/${other.id}`, all)).status, 200, 'the client is its agent');
      for (const agent_id of [['helper'], '', 5, null, 'x'.repeat(256), 'a\0b']) {
        const answer = await as('GET', '/packets', await token(scope, { claims: { agent_id } as never }));
        assert.deepEqual([answer.status, /agent_id .*no name/.test(answer.text)], [401, true], JSON.stringify(agent_id));
      }
    });

  for (const store of stores)
    test(`of a person who is suspended under any name is refused, and so is its sign-in, on ${store.name} [H426]`, async (t) => {
      const { service, as, token, issuer } = await start(t, { store, settings: signIns });
      const scope = 'baton:read baton:work';
      const unnamed = () => token(scope, { claims: { sub: dana.sub } });
      const renamed = { ...dana, email: 'dana.new@example.com' };
      const call = asPerson(service, cookiesOf(await signIn(service, issuer)));
      const later = asPerson(service, cookiesOf(await signIn(service, issuer, renamed)));
      const { id } = await createPacket(service, { hitl: question });
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } })).status, 200);
      const { body: link } = await later('POST', `/packets/${id}/answer-links`, { body: {} });
      const page = () => service.call('GET', `/${new URL(link.url).pathname}`, { key: null });
      const held = await unnamed();
      assert.deepEqual([(await as('GET', '/packets', held)).status, (await page()).status], [200, 200]);
      assert.equal((await service.call('POST', '/people/dana@example.com/suspend')).status, 200);
      assert.equal((await call('GET', '/packets')).status, 401);
      assert.equal((await later('GET', '/packets')).status, 401, 'the session under the other name');
      for (const one of [held, await unnamed(), await token(scope, { claims: { ...renamed } as never })]) {
        const refused = await as('GET', '/packets', one);
        assert.deepEqual([refused.status, /dana(\.new)?@example\.com is suspended/.test(refused.text)], [401, true], refused.text);
      }
      const again = await signIn(service, issuer, renamed);
      assert.deepEqual([again.status, /suspended/.test(again.text)], [403, true]);
      assert.equal((await page()).status, 404, 'the link that the person made');
      service.clock.turn(15 * 60);
      assert.equal((await later('GET', '/packets')).status, 401, 'at its refresh');
      assert.equal((await as('GET', '/packets', await token(scope))).status, 200, 'another person');
      assert.equal((await service.call('POST', '/people/dana@example.com/resume')).status, 200);
      assert.equal((await as('GET', '/packets', await unnamed())).status, 200);
      assert.equal((await signIn(service, issuer, renamed)).status, 302);
    });

  test("is its person's like a sign-in, with or without a slash behind the issuer, and by introspection that names none [H427]", async (t) => {
    const clock = new TestClock();
    const issuer = await startIssuer(t, clock);
    const settings = { ...signInSettings(issuer), SERVICE_OIDC_ISSUER: `${issuer.issuer}/` };
    const service = await startService(t, { clock, settings });
    const now = Math.floor(clock.read().getTime() / 1000);
    const claims = { scope: 'baton:read', sub: dana.sub, email: dana.email, email_verified: true };
    const opaque = { active: true, aud: publicUrl, client_id: 'c', exp: now + 300, ...claims };
    issuer.opaque.set('opaque-of-dana', opaque);
    issuer.opaque.set('opaque-of-another', { ...opaque, iss: 'https://elsewhere.example' });
    const as = (token: string) => service.call('GET', '/keys/self', { key: null, headers: { authorization: `Bearer ${token}` } });
    assert.equal((await as('opaque-of-dana')).status, 200, 'the first under the name');
    assert.equal((await signIn(service, issuer)).status, 302);
    assert.equal((await as(await issuer.token(publicUrl, { claims }))).status, 200);
    const other = await as('opaque-of-another');
    assert.deepEqual([other.status, /another issuer/.test(other.text)], [401, true], other.text);
    const { body } = await service.call('GET', '//.well-known/oauth-protected-resource', { key: null });
    assert.deepEqual(body.authorization_servers, [issuer.issuer], 'as the provider spells it');
  });

  test('answers under the name of its person, and only where it has one [H515]', async (t) => {
    const { service, as, token } = await start(t);
    const { id } = await createPacket(service, { hitl: question });
    await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
    const answer = { body: { response: 'Yes', responded_by: 'dana@example.com' } };
    const program = await as('POST', `/packets/${id}/respond`, await token('baton:respond'), answer);
    assert.equal(program.status, 403, program.text);
    const claims = { email: 'Dana@example.com', email_verified: true };
    const inOtherName = await as('POST', `/packets/${id}/respond`, await token('baton:respond', { claims }), {
      body: { response: 'Yes', responded_by: 'mia' },
    });
    assert.equal(inOtherName.status, 403, inOtherName.text);
    const itself = await as(
      'POST',
      `/packets/${id}/respond`,
      await token('baton:respond', { claims: { ...claims, sub: 'connector' } }),
      answer,
    );
    assert.equal(itself.status, 403, 'a token that a program got for itself has no person');
    const given = await as('POST', `/packets/${id}/respond`, await token('baton:respond', { claims }), {
      body: { response: 'Yes', responded_by: 'Dana@example.com' },
    });
    assert.equal(given.status, 200, given.text);
    const { events } = (await service.call('GET', `/packets/${id}/history`)).body;
    const { details } = events.at(-1);
    assert.deepEqual([details.person.name, details.person.subject, details.verified], ['Dana@example.com', 'subject-1', true]);
    const people = await service.call('GET', '/people');
    assert.deepEqual(
      people.body.people.map(({ name }: { name: string }) => name),
      ['Dana@example.com'],
    );
    const impostor = await as('GET', '/keys/self', await token('baton:read', { claims: { ...claims, sub: 'subject-2' } }));
    assert.deepEqual([impostor.status, /belongs to somebody else/.test(impostor.text)], [401, true]);
    const released = await service.call('POST', '/people/dana@example.com/release');
    assert.equal(released.status, 200, released.text);
    // More than the clocks may differ.
    service.clock.turn(61);
    assert.equal((await as('GET', '/keys/self', await token('baton:read', { claims: { ...claims, sub: 'subject-2' } }))).status, 200);
    assert.equal((await service.call('POST', '/people/dana@example.com/suspend')).status, 200);
    assert.equal((await as('GET', '/keys/self', await token('baton:read', { claims: { ...claims, sub: 'subject-2' } }))).status, 401);
  });

  test('is refused for another audience, issuer, type or time, as an ID token, and with a forged signature', async (t) => {
    const { as, token, issuer, service } = await start(t, { settings: { SERVICE_OIDC_CLIENT_ID: 'baton' } });
    const other = await startIssuer(t, service.clock);
    const now = Math.floor(service.clock.read().getTime() / 1000);
    const usual = { iss: issuer.issuer, aud: publicUrl, sub: 's', client_id: 'c', iat: now, exp: now + 300, scope: 'baton:read' };
    const hmac = async () => {
      const secret = await exportSPKI(issuer.key().publicKey);
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const signed = `${part({ alg: 'HS256', kid: issuer.key().kid, typ: 'at+jwt' })}.${part(usual)}`;
      return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
    };
    const none = `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${Buffer.from(JSON.stringify(usual)).toString('base64url')}.`;
    const foreignKey = other.key();
    const cases: Record<string, [string, RegExp]> = {
      'another audience': [await issuer.token('http://127.0.0.1:9'), /another audience/],
      'the audience of /mcp': [await issuer.token(`${publicUrl}/mcp`), /another audience/],
      'no audience': [await issuer.sign({ ...usual, aud: undefined } as never), /another audience/],
      'another issuer': [await token('baton:read', { claims: { iss: other.issuer } }), /not valid/],
      'a key of another issuer': [await token('baton:read', { key: foreignKey }), /not valid/],
      'a key of another issuer under our kid': [await issuer.sign(usual, { kid: issuer.key().kid }, foreignKey), /not valid/],
      'a key in the header': [await issuer.sign(usual, { kid: undefined as never, jku: `${other.issuer}/jwks` }, foreignKey), /not valid/],
      HMAC: [await hmac(), /not valid/],
      none: [none, /not valid/],
      'a critical header': [
        await issuer.sign(usual, { crit: ['exp'], exp: 1 } as never).catch(() => 'eyJhbGciOiJSUzI1NiIsImNyaXQiOlsieCJdLCJ4IjoxfQ.e30.AA'),
        /not valid/,
      ],
      expired: [await token('baton:read', { claims: { exp: now - 61 } }), /has expired/],
      'not yet valid': [await token('baton:read', { claims: { nbf: now + 61 } }), /not valid yet/],
      'without an end': [await issuer.sign({ ...usual, exp: undefined } as never), /claim exp/],
      'type JWT': [await token('baton:read', { header: { typ: 'JWT' } }), /of the type .*jwt/],
      'with a nonce': [await token('baton:read', { claims: { nonce: 'n' } }), /ID token/],
      'with the hash of an access token': [await token('baton:read', { claims: { at_hash: 'h' } }), /ID token/],
      'for the client': [await issuer.sign({ ...usual, aud: [publicUrl, 'baton'] }), /ID token/],
    };
    for (const [name, [value, sentence]] of Object.entries(cases)) {
      const answer = await as('GET', '/packets', value);
      assert.equal(answer.status, 401, `${name}: ${answer.text}`);
      assert.match(answer.text, sentence, name);
      assert.match(
        String(answer.headers['www-authenticate']),
        /^Bearer realm="baton".*resource_metadata="http:\/\/127\.0\.0\.1:8080\/\.well-known\/oauth-protected-resource"/,
        name,
      );
    }
    const forMcp = await issuer.token(`${publicUrl}/mcp`, { claims: { scope: 'baton:read' } });
    for (const [method, path] of [
      ['GET', '//events'],
      ['GET', '//ws'],
      ['POST', '//a2a'],
    ] as const) {
      const answer = await as(method, path, forMcp, method === 'GET' ? {} : { body: {} });
      assert.deepEqual([answer.status, /another audience/.test(answer.text)], [401, true], `${path}: ${answer.text}`);
    }
    for (const leeway of [{ exp: now - 59 }, { nbf: now + 59 }, { aud: `${publicUrl}/` }]) {
      const answer = await as('GET', '/packets', await token('baton:read', { claims: leeway }));
      assert.equal(answer.status, 200, `${JSON.stringify(leeway)}: ${answer.text}`);
    }
  });

  test('of the type JWT, or for a further audience, is taken where the settings say so', async (t) => {
    const { as, issuer, service } = await start(t, {
      settings: { SERVICE_OIDC_TOKEN_TYPES: 'at+jwt,JWT', SERVICE_OIDC_AUDIENCE: 'api://baton' },
    });
    for (const typ of ['JWT', undefined, 'at+jwt']) {
      const token = await issuer.token('api://baton', { claims: { scope: 'baton:read' }, header: { typ } });
      assert.equal((await as('GET', '/packets', token)).status, 200, String(typ));
      assert.equal((await inMcp(service, token, 'tools/list')).status, 200, String(typ));
    }
  });

  for (const store of stores)
    test(`names its tenant by id or by a name that is the only one, on ${store.name} [H512]`, async (t) => {
      const { as, token, service } = await start(t, { store, settings: { SERVICE_OIDC_TENANT_CLAIM: 'org' } });
      const make = async () => (await service.call('POST', '/tenants', { body: { name: 'Acme', tier: 'pro' } })).body.id;
      const first = await make();
      const named = await as('GET', '/keys/self', await token('baton:read', { claims: { org: 'Acme' } }));
      assert.deepEqual([named.status, named.body.tenant.id], [200, first]);
      const second = await make();
      // What a token stands for is kept for half a minute.
      service.clock.turn(31);
      const by = async (org: unknown) => as('GET', '/keys/self', await token('baton:read', { claims: { org } as never }));
      assert.match((await by('Acme')).text, /Several tenants are called/);
      assert.equal((await by(second)).body.tenant.id, second);
      assert.match((await by('Nobody')).text, /no tenant/);
      assert.match((await by(undefined)).text, /no claim org/);
      await service.call('DELETE', `/tenants/${second}`);
      assert.equal((await by(second)).status, 401);
    });

  test('makes 10,000 unknown keys one look-up a minute, and a rotated key is found', async (t) => {
    const { as, token, issuer, clock } = await start(t);
    assert.equal((await as('GET', '/packets', await token())).status, 200);
    const old = issuer.key();
    const valid = await token();
    const [, payload, signature] = valid.split('.');
    const provider = new Provider(
      { issuer: issuer.issuer, clientId: undefined, clientSecret: undefined, scopes: undefined, tokenTypes: ['at+jwt'], publicUrl },
      clock.read,
    );
    assert.notEqual(await provider.accessToken(valid, [publicUrl]), undefined);
    clock.turn(61);
    const known = issuer.requests.get('/jwks')!;
    for (let index = 0; index < 10_000; index += 1) {
      const header = Buffer.from(JSON.stringify({ alg: 'RS256', typ: 'at+jwt', kid: `unknown-${index}` })).toString('base64url');
      assert.equal(await provider.accessToken(`${header}.${payload}.${signature}`, [publicUrl]), undefined);
    }
    assert.equal(issuer.requests.get('/jwks')! - known, 1);
    await issuer.rotate();
    clock.turn(61);
    const fresh = await as('GET', '/packets', await token());
    assert.equal(fresh.status, 200, fresh.text);
    clock.turn(61);
    const withdrawn = await as('GET', '/packets', await token('baton:read', { key: old }));
    assert.equal(withdrawn.status, 401, 'a key that the provider has withdrawn');
  });

  test('does not count as a wrong key when it is signed, and a forged one does, with the challenge on the 429 too', async (t) => {
    const { as, token, issuer, service } = await start(t);
    const signed: [string, number][] = [
      [await token('baton:read', { claims: { exp: 1 } }), 401],
      [await issuer.token('http://127.0.0.1:9'), 401],
      [await token('openid'), 403],
    ];
    for (const [one, status] of signed)
      for (let index = 0; index < 31; index += 1) assert.equal((await as('GET', '/packets', one)).status, status);
    const [header, payload] = (await token()).split('.');
    const forged = `${header}.${payload}.AAAA`;
    for (let index = 0; index < 30; index += 1) assert.equal((await as('GET', '/packets', forged)).status, 401);
    const few = await start(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '1' } });
    const valid = await few.token();
    const first = await few.as('GET', '/packets', valid);
    assert.deepEqual([first.status, first.headers['www-authenticate']], [200, undefined]);
    const quota = await start(t);
    const { id } = (await quota.service.call('GET', '/keys/self')).body.tenant;
    await quota.service.call('PATCH', `/tenants/${id}`, { body: { handoffs_per_day: 0 } });
    const ownMetadata = {
      metadata: { source_agent: { id: 'connector', name: 'c', framework: 'x' }, target_agent: { id: 'b', name: 'b' } },
    };
    const limited = {
      'a forged token': as('GET', '/packets', forged),
      'a wrong key': service.call('GET', '/packets', { key: `svc_${'x'.repeat(49)}` }),
      'a wrong key at /mcp': service.call('POST', '//mcp', { key: 'wrong', body: {} }),
      'a valid token': few.as('GET', '/packets', valid),
      'the daily quota': quota.as('POST', '/packets', await quota.token(), { body: packetRequest(ownMetadata) }),
      'the daily quota at A2A': quota.as('POST', '//a2a/message:send', await quota.token(), {
        body: messageOf('Hello', { messageId: 'm' }),
        headers: { 'a2a-version': '1.0' },
      }),
    };
    for (const [name, answer] of Object.entries(limited)) {
      const { status, headers } = await answer;
      assert.deepEqual([status, /resource_metadata=/.test(String(headers['www-authenticate']))], [429, true], name);
    }
    assert.equal((await as('GET', '/packets', await token())).status, 200);
    assert.equal(issuer.requests.get('/introspect'), undefined);
  });

  for (const store of stores)
    test(`that is opaque is introspected and remembered for 30 seconds, and no key ever goes there, on ${store.name}`, async (t) => {
      const { as, issuer, clock, service } = await start(t, {
        store,
        settings: { SERVICE_OIDC_CLIENT_ID: 'baton', SERVICE_OIDC_CLIENT_SECRET: 'a-secret' },
      });
      const now = Math.floor(clock.read().getTime() / 1000);
      issuer.opaque.set('opaque-token-1', { active: true, sub: 's', client_id: 'c', scope: 'baton:read', aud: publicUrl, exp: now + 300 });
      for (let index = 0; index < 5; index += 1) assert.equal((await as('GET', '/packets', 'opaque-token-1')).status, 200);
      assert.equal(issuer.requests.get('/introspect'), 1);
      issuer.opaque.delete('opaque-token-1');
      clock.turn(29);
      assert.equal((await as('GET', '/packets', 'opaque-token-1')).status, 200);
      clock.turn(2);
      assert.equal((await as('GET', '/packets', 'opaque-token-1')).status, 401);
      assert.equal(issuer.requests.get('/introspect'), 2);

      const { body: key } = await service.call('POST', '/keys', { body: { name: 'k' } });
      await service.call('DELETE', `/keys/${key.id}`);
      assert.equal((await as('GET', '/packets', key.key)).status, 401);
      assert.equal((await as('GET', '/packets', `svc_${'x'.repeat(49)}`)).status, 401);
      const { body: admin } = await service.call('POST', '/keys', { body: { name: 'a', admin: true } });
      const { id } = (await service.call('GET', '/keys/self')).body;
      assert.equal((await service.call('DELETE', `/keys/${id}`, { key: admin.key })).status, 204);
      assert.equal((await as('GET', '/packets', adminKey)).status, 401, 'a revoked key that the operator has chosen');
      assert.equal((await service.call('GET', '/packets', { key: 'opaque-token-2' })).status, 401, 'X-API-Key');
      assert.equal((await service.call('GET', '//events?api_key=opaque-token-3', { key: null })).status, 401, 'api_key');
      assert.equal(issuer.requests.get('/introspect'), 2, 'no key went to the provider');
      for (let index = 0; index < 60; index += 1) await as('GET', '/packets', `guess-${index}`);
      assert.ok(issuer.requests.get('/introspect')! <= 32, `${issuer.requests.get('/introspect')} guesses went to the provider`);
    });

  test('that is opaque is a wrong key where the provider announces no introspection', async (t) => {
    const { as, issuer } = await start(t, { settings: signIns });
    issuer.metadata = { introspection_endpoint: undefined };
    issuer.opaque.set('opaque-token-1', { active: true, sub: 's', client_id: 'c', scope: 'baton:read', aud: publicUrl });
    assert.equal((await as('GET', '/packets', 'opaque-token-1')).status, 401);
    assert.equal(issuer.requests.get('/introspect'), undefined);
  });

  test('waits for a slow provider, while requests with keys do not', async (t) => {
    const { as, token, issuer, service } = await start(t);
    issuer.state = 'slow';
    const waiting = as('GET', '/packets', await token());
    assert.equal((await service.call('GET', '/packets')).status, 200);
    assert.equal((await service.call('GET', '//ready', { key: null })).status, 200);
    const answer = await waiting;
    assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5'], answer.text);
    issuer.state = 'up';
    service.clock.turn(6);
    assert.equal((await as('GET', '/packets', await token())).status, 200);
    issuer.state = 'down';
    assert.equal((await as('GET', '/packets', await token('baton:read'))).status, 200, 'the keys are known');
  });
});

describe('The metadata of the protected resources', () => {
  test('names the issuer and the scopes, of which /mcp has none to answer with', async (t) => {
    const { service, issuer } = await start(t);
    const at = (path: string) => service.call('GET', `//.well-known/oauth-protected-resource${path}`, { key: null });
    const api = await at('');
    assert.deepEqual(
      [api.status, api.body.resource, api.body.authorization_servers, api.body.bearer_methods_supported],
      [200, publicUrl, [issuer.issuer], ['header']],
    );
    assert.deepEqual(api.body.scopes_supported, ['baton:read', 'baton:work', 'baton:respond', 'baton:manage']);
    const ofMcp = await at('/mcp');
    assert.deepEqual(
      [ofMcp.body.resource, ofMcp.body.scopes_supported, ofMcp.body.resource_name],
      [`${publicUrl}/mcp`, ['baton:read', 'baton:work'], 'Baton'],
    );
    assert.equal(ofMcp.headers['access-control-allow-origin'], '*');
  });

  test('follows the path of the public address', async (t) => {
    const { service } = await start(t, { settings: { SERVICE_PUBLIC_URL: 'https://example.com/baton/' } });
    const { body, status } = await service.call('GET', '//.well-known/oauth-protected-resource/baton/mcp', { key: null });
    assert.deepEqual([status, body.resource], [200, 'https://example.com/baton/mcp']);
    const refused = await service.call('POST', '//mcp', { key: null, body: {} });
    assert.match(
      String(refused.headers['www-authenticate']),
      /resource_metadata="https:\/\/example\.com\/\.well-known\/oauth-protected-resource\/baton\/mcp"/,
    );
  });

  test('has its counterpart in the agent card of A2A: the OpenID Connect scheme beside the key, only with an issuer', async (t) => {
    const cardOf = async (service: TestService) => {
      const { status, body, text } = await service.call('GET', '//.well-known/agent-card.json', { key: null });
      assert.equal(status, 200, text);
      return body;
    };
    const { service, issuer, as, token } = await start(t);
    const { securitySchemes, securityRequirements } = await cardOf(service);
    assert.deepEqual(Object.keys(securitySchemes), ['apiKey', 'openIdConnect']);
    const { openIdConnectUrl } = securitySchemes.openIdConnect.openIdConnectSecurityScheme;
    assert.equal(openIdConnectUrl, `${issuer.issuer}/.well-known/openid-configuration`);
    assert.equal((await fetch(openIdConnectUrl)).status, 200, 'the provider has its metadata there');
    const required = securityRequirements.map(({ schemes }: { schemes: object }) => schemes);
    const { list: scopes } = required[1].openIdConnect;
    assert.deepEqual([Object.keys(required[0]), scopes], [['apiKey'], ['baton:read', 'baton:work']]);
    // A token with the scopes that the card names is what the service takes.
    const task = await as('GET', '//a2a/tasks', await token(scopes.join(' ')), { headers: { 'a2a-version': '1.0' } });
    assert.equal(task.status, 200, task.text);

    const without = await cardOf(await startService(t));
    assert.deepEqual(Object.keys(without.securitySchemes), ['apiKey']);
    assert.equal(without.securityRequirements.length, 1);
  });

  test('is not there without an issuer, and a refusal is as before [H513]', async (t) => {
    const service = await startService(t);
    for (const path of [
      '/.well-known/oauth-protected-resource',
      '/.well-known/oauth-protected-resource/mcp',
      '/sign-in',
      '/sign-in/callback',
      '/signed-out',
    ])
      assert.equal((await service.call('GET', `/${path}`, { key: null })).status, 404, path);
    for (const path of ['/sign-out', '/sign-in/back-channel-logout'])
      assert.equal((await service.call('POST', `/${path}`, { key: null })).status, 404, path);
    assert.equal((await service.call('GET', '/sessions')).status, 404);
    const refused = await service.call('GET', '/packets', {
      key: null,
      headers: { cookie: 'baton-session=x', authorization: 'Bearer eyJhbGciOiJub25lIn0.e30.AA' },
    });
    assert.deepEqual([refused.status, refused.headers['www-authenticate']], [401, 'Bearer realm="baton"']);
  });
});

describe('A token at /mcp', () => {
  const forMcp = ({ issuer }: Started, scope: string, claims: object = {}) =>
    issuer.token(`${publicUrl}/mcp`, { claims: { scope, groups: ['agents'], ...claims } });

  test('needs the audience of /mcp, and its refusal names the metadata and the scopes', async (t) => {
    const started = await start(t);
    const { service, token } = started;
    const wrong = await inMcp(service, await token(), 'tools/list');
    assert.equal(wrong.status, 401, wrong.text);
    const challenge = String(wrong.headers['www-authenticate']);
    assert.match(challenge, /error="invalid_token"/);
    assert.match(challenge, /resource_metadata="http:\/\/127\.0\.0\.1:8080\/\.well-known\/oauth-protected-resource\/mcp"/);
    assert.match(challenge, /scope="baton:read baton:work"/);
    assert.doesNotMatch(challenge, /respond/);
    assert.equal((await inMcp(service, await forMcp(started, 'baton:read'), 'tools/list')).status, 200);
  });

  for (const store of stores)
    test(`gets 405 with every other method, or a refusal with the challenge of /mcp, on ${store.name} [H578]`, async (t) => {
      const few = await start(t, { store, settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '1' } });
      const started = await start(t, { store });
      const { as, service, clock, token } = started;
      const others = ['GET', 'HEAD', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'];
      const [mine, ofApi, limited] = [await forMcp(started, 'baton:read'), await token(), await forMcp(few, 'baton:read')];
      const metadataOf = ({ headers }: TestAnswer) => /resource_metadata="([^"]*)"/.exec(String(headers['www-authenticate']))?.[1];
      const metadata = `${publicUrl}/.well-known/oauth-protected-resource`;
      const refused = async (answer: TestAnswer, status: number, at: string, about: string) =>
        assert.deepEqual([answer.status, metadataOf(answer)], [status, at], `${about}: ${answer.text}`);
      for (const method of others) {
        const answer = await as(method, '//mcp', mine);
        assert.deepEqual([answer.status, answer.headers.allow, metadataOf(answer)], [405, 'POST', undefined], `${method}: ${answer.text}`);
        await refused(await as(method, '//mcp', ofApi), 401, `${metadata}/mcp`, `${method} with a token for the API`);
        const wrong = await service.call(method, '//mcp', { key: `svc_${'x'.repeat(49)}` });
        await refused(wrong, 401, `${metadata}/mcp`, `${method} with a wrong key`);
      }
      assert.equal((await as('POST', '//mcp/', mine, { body: {} })).status, 404, 'the sentence about the slash, not another sign-in');
      assert.deepEqual([(await as('PUT', '//a2a', ofApi)).status, (await as('PUT', '//a2a/message:send', ofApi)).status], [405, 405]);
      assert.equal((await as('PUT', '/packets', ofApi)).status, 405);
      for (const path of ['//a2a', '//a2a/message:send', '/packets', '//events', '/nowhere'])
        await refused(await as('PUT', path, mine), 401, metadata, path);
      await refused(await as('PUT', '//answer/x', 'wrong'), 401, metadata, 'a wrong key for the page of a link');
      assert.equal((await few.as('GET', '//mcp', limited)).status, 405);
      await refused(await few.as('GET', '//mcp', limited), 429, `${metadata}/mcp`, 'beyond the limit');
      clock.turn(400);
      for (const method of others) await refused(await as(method, '//mcp', mine), 401, `${metadata}/mcp`, `${method}, expired`);
    });

  test('lists the tools that its groups may use, and a call whose scope alone is missing is a step up', async (t) => {
    const started = await start(t);
    const { service } = started;
    const reading = await forMcp(started, 'baton:read');
    const listed = await inMcp(service, reading, 'tools/list');
    const names = listed.body.result.tools.map(({ name }: { name: string }) => name);
    assert.ok(names.includes('claim_next') && names.includes('get_packet'), names.join());
    const call = { name: 'claim_next', arguments: { wait_seconds: 0 } };
    const lacking = await inMcp(service, reading, 'tools/call', call);
    assert.equal(lacking.status, 403, lacking.text);
    assert.match(String(lacking.headers['www-authenticate']), /error="insufficient_scope".*scope="baton:read baton:work"/);
    const stepped = await inMcp(service, await forMcp(started, 'baton:read baton:work'), 'tools/call', call);
    assert.deepEqual([stepped.status, stepped.body.result.isError], [200, undefined], stepped.text);
    const outside = await forMcp(started, 'baton:read baton:work', { groups: [] });
    const never = await inMcp(service, outside, 'tools/call', call);
    assert.deepEqual([never.status, never.body.result?.isError], [200, true], never.text);
    const few = await inMcp(service, outside, 'tools/list');
    assert.ok(!few.body.result.tools.some(({ name }: { name: string }) => name === 'claim_next'));
  });

  test('of a person with the scope to answer still gets no challenge for it', async (t) => {
    const started = await start(t);
    const { service, as, token } = started;
    const { id } = await createPacket(service, { hitl: question });
    const refused = await as(
      'POST',
      `/packets/${id}/answer-links`,
      await token('baton:read', { claims: { email: 'd@example.com', email_verified: true } }),
      { body: {} },
    );
    assert.equal(refused.status, 403);
    assert.match(String(refused.headers['www-authenticate']), /insufficient_scope.*baton:respond/);
  });
});
