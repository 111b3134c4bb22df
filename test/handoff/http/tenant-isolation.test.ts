import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { routes } from '../../../src/handoff/model/api.ts';
import type { HandoffRoute } from '../../../src/handoff/model/route.ts';
import type { Route } from '../../../src/kit/route.ts';
import { bodies } from '../../support/bodies.ts';
import { cookiesOf, dana, publicUrl, signIn, signInSettings, startIssuer } from '../../support/issuer.ts';
import { packetIn, unknownId } from '../../support/life.ts';
import {
  createPacket,
  newTenant,
  packetRequest,
  startService,
  type TestAnswer,
  TestClock,
  type TestService,
} from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { register } from '../../support/webhooks.ts';

/** The bytes of an answer without what differs between requests: the request id and the ids in the request. */
function essence({ status, text, headers }: TestAnswer, ids: readonly string[]): string {
  const { 'x-request-id': requestId, date: _, 'content-length': length, ...others } = headers;
  // Only errors have the request id in their body, and its length changes with the number of requests before.
  const lengthWithoutId = Number(length) - (text.includes('"request_id"') ? `${requestId}`.length : 0);
  const essential = { status, headers: others, lengthWithoutId, text: text.replace(/"request_id":"[^"]*"/, '"request_id":""') };
  return ids.reduce((json, id) => json.replaceAll(id, '<id>'), JSON.stringify(essential));
}

interface Call {
  readonly name: string;
  /** Undefined: any, if an unknown thing gets the same. */
  readonly status: number | undefined;
  readonly ask: (ids: Ids) => Promise<TestAnswer>;
}
type Ids = readonly [id: string, ...others: string[]];

/** Calls of a route that names things in its path, with the status that another tenant gets: as it is, and with conditions. */
function callsOf(service: TestService, key: string, [name, route]: [string, Route & HandoffRoute]): Call[] {
  const body = bodies[name] === undefined ? {} : { body: bodies[name] };
  return [{}, { 'if-match': '"9"', 'if-none-match': '"1"' }, { 'if-match': '*', 'if-none-match': '*' }].map((headers) => ({
    name: `${route.method} ${route.path} ${JSON.stringify(headers)}`,
    status: route.access === 'admin' || route.access === 'erase' ? 403 : 404,
    ask([id, deliveryId = id]) {
      const path = route.path.replace('{id}', id).replace('{delivery_id}', deliveryId);
      return service.call(route.method, path, { key, headers, ...body });
    },
  }));
}

/** Calls that name a packet elsewhere than in the path of a route, or in a special way. */
const otherCalls = (service: TestService, key: string): Call[] =>
  (
    [
      [404, 'PATCH', (id) => `/packets/${id}`, () => ({ status: 'completed' })],
      [403, 'DELETE', (id) => `/packets/${id}?hard=true`],
      [404, 'GET', (id) => `/packets/${id}?wait_seconds=60&until=completed`],
      [400, 'POST', () => '/packets', (id) => packetRequest({ parent_packet_id: id })],
      [400, 'POST', () => '/packets/batch', (id) => ({ packets: [packetRequest({ parent_packet_id: id })] })],
      [200, 'POST', () => '/packets/batch/claim', (id) => ({ packet_ids: [id], agent_id: 'b' })],
      [200, 'POST', () => '/packets/batch/complete', (id) => ({ packet_ids: [id] })],
      [200, 'GET', (id) => `/audit?packet_id=${id}`],
    ] as [status: number, method: string, path: (id: string) => string, body?: (id: string) => unknown][]
  ).map(([status, method, path, body]) => ({
    name: `${method} ${path('{id}')} ${JSON.stringify(body?.('{id}') ?? '')}`,
    status,
    ask: ([id]) => service.call(method, path(id), { key, ...(body === undefined ? {} : { body: body(id) }) }),
  }));

/** The routes with ids in their path, by what they name. */
const routesByNoun = Map.groupBy(
  Object.entries<Route & HandoffRoute>(routes).filter(([, { path }]) => path.includes('{')),
  ([, { path }]) => path.split('/')[1]!,
);

async function assertHidden(calls: readonly Call[], ids: Ids, about = ''): Promise<void> {
  const unknown: Ids = [unknownId];
  for (const { name, status, ask } of calls) {
    const foreign = await ask(ids);
    if (status !== undefined) assert.equal(foreign.status, status, `${name} ${about}`);
    assert.equal(essence(foreign, ids), essence(await ask(unknown), unknown), `${name} ${about}`);
  }
}

for (const store of stores) {
  describe(`Another tenant's packet on ${store.name}`, () => {
    test('is answered byte for byte like one that does not exist, on every route and in every status [H37, H215]', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const calls = [...routesByNoun.get('packets')!.flatMap((route) => callsOf(service, b.key, route)), ...otherCalls(service, b.key)];
      for (const status of ['created', 'claimed', 'awaiting_human', 'expired'] as const) {
        const before = await packetIn(service, status, {}, a.key);
        const history = (await service.call('GET', `/packets/${before.id}/history`, { key: a.key })).text;
        await assertHidden(calls, [before.id], status);
        assert.deepEqual((await service.call('GET', `/packets/${before.id}`, { key: a.key })).body, before);
        assert.equal((await service.call('GET', `/packets/${before.id}/history`, { key: a.key })).text, history);
      }
      assert.equal((await service.call('GET', '/packets', { key: b.key })).body.total, 0);
    });

    test('is as unknown to a token and to a session of another tenant', async (t) => {
      const clock = new TestClock();
      const issuer = await startIssuer(t, clock);
      const settings = {
        ...signInSettings(issuer),
        SERVICE_OIDC_TENANT_CLAIM: 'org',
        SERVICE_OIDC_RIGHTS: '{"*": ["read", "work", "respond", "manage"]}',
      };
      const service = await startService(t, { store, clock, settings });
      const [a, b] = [await newTenant(service), await newTenant(service)];
      const { id } = await packetIn(service, 'awaiting_human', {}, a.key);
      const claims = { ...dana, org: b.id, scope: 'baton:read baton:work baton:respond baton:manage' };
      const authorization = `Bearer ${await issuer.token(publicUrl, { claims })}`;
      const session = { cookie: cookiesOf(await signIn(service, issuer, claims)), origin: publicUrl, 'x-requested-with': 'baton' };
      for (const own of [{ authorization }, session] as Record<string, string>[]) {
        const call: TestService['call'] = (method, path, { headers = {}, ...options } = {}) =>
          service.call(method, path, { ...options, key: null, headers: { ...own, ...headers } });
        assert.equal((await call('GET', '/keys/self')).body.tenant.id, b.id);
        const as = { ...service, call };
        const calls = [...routesByNoun.get('packets')!.flatMap((route) => callsOf(as, b.key, route)), ...otherCalls(as, b.key)];
        // A person answers in one name, and a token makes no links: some of these are refused before the packet is looked for.
        await assertHidden(
          calls.map((one) => ({ ...one, status: undefined })),
          [id],
          Object.keys(own)[0],
        );
        assert.equal((await call('GET', `/packets/${id}`)).status, 404);
        assert.equal((await call('GET', '/packets')).body.total, 0);
      }
      assert.equal((await service.call('GET', `/packets/${id}`, { key: a.key })).body.status, 'awaiting_human');
    });

    test("can't be removed by another tenant's admin key either [H194]", async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const { id } = await createPacket(service, {}, a.key);
      const remove = (one: string) => service.call('DELETE', `/packets/${one}?hard=true`);
      const foreign = await remove(id);
      assert.equal(foreign.status, 404);
      assert.equal(essence(foreign, [id]), essence(await remove(unknownId), [unknownId]));
      assert.equal((await service.call('GET', `/packets/${id}`, { key: a.key })).status, 200);
    });

    test('is in no list, search, audit log or total of another tenant, nor claimed for it, and its agents are not shown', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const secret = await createPacket(
        service,
        { context: { summary: 'Xylophone repairs' }, hitl: { required: true, reason: 'r', question: 'q?' } },
        a.key,
      );
      const claim = { agent_id: 'outsider', target_agent: '*' };
      assert.equal((await service.call('POST', '/packets/claim-next', { key: b.key, body: claim })).status, 204);
      await service.call('PATCH', `/packets/${secret.id}`, { key: a.key, body: { status: 'awaiting_human' } });
      const { agents } = (await service.call('GET', '/agents', { key: b.key })).body;
      assert.deepEqual(
        agents.map(({ agent_id }: { agent_id: string }) => agent_id),
        ['outsider'],
      );
      for (const path of [
        '/packets',
        '/packets?view=full',
        '/packets/awaiting',
        '/packets/search?q=xylophone',
        '/packets?status=awaiting_human',
        '/packets?target_agent=resolver',
        '/packets?tags=billing',
      ]) {
        const { status, body, text } = await service.call('GET', path, { key: b.key });
        assert.equal(status, 200, path);
        assert.equal(body.total, 0, path);
        assert.deepEqual(body.packets, [], path);
        assert.equal(body.next_cursor, null, path);
        assert.ok(!text.includes(secret.id), path);
      }
      const audit = await service.call('GET', '/audit', { key: b.key });
      assert.equal(audit.status, 200);
      assert.ok(audit.body.entries.every(({ packet_id }: { packet_id: string | null }) => packet_id === null));
      assert.equal((await service.call('GET', '/audit?action=created&actor=agent%3Afrontline', { key: b.key })).body.total, 0);
      assert.equal((await service.call('GET', '/packets/search?q=xylophone', { key: a.key })).body.total, 1);
    });

    test('does not change field names in other packets, whatever field names its own objects have', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      // A parser that caches shapes carelessly would confuse the two names, which are at the same place of similar objects.
      await createPacket(service, { context: { summary: 's', custom: { x: 1, '\\': 2 } } }, a.key);
      const created = await service.call('POST', '/packets', {
        key: b.key,
        body: packetRequest({ context: { summary: 's', custom: { x: 1, '"': 2 } } }),
      });
      assert.equal(created.status, 201);
      const [, id] = /"id":"([0-9a-f-]{36})"/.exec(created.text)!;
      await createPacket(service, { context: { summary: 's', custom: { x: 1, '\\': 2 } } }, a.key);
      const patched = await service.call('PATCH', `/packets/${id}`, { key: b.key, body: { status: 'failed' } });
      assert.equal(patched.status, 200);
      const read = await service.call('GET', `/packets/${id}`, { key: b.key });
      for (const { text } of [created, patched, read]) assert.ok(text.includes(String.raw`"custom":{"x":1,"\"":2}`), text);
    });

    test('tenants that work concurrently stay isolated', async () => {
      const service = await shareService(store);
      const tenants = await Promise.all([newTenant(service), newTenant(service)]);
      await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          createPacket(service, { context: { summary: `Shared word, packet ${index}` } }, tenants[index % 2]!.key),
        ),
      );
      const found = await Promise.all(tenants.map(({ key }) => service.call('GET', '/packets/search?q=shared&limit=200', { key })));
      const ids = found.map(({ body }) => body.packets.map(({ id }: { id: string }) => id));
      assert.deepEqual(
        ids.map((list) => list.length),
        [20, 20],
      );
      assert.equal(new Set(ids.flat()).size, 40);
    });
  });

  test(`Another tenant's keys, webhooks, channels, answer links and tenants are answered like ones that do not exist, on every route, on ${store.name} [H215]`, async () => {
    const service = await shareService(store, { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
    const a = await newTenant(service);
    const b = await newTenant(service);
    const make = async (path: string, body?: object) => {
      const answer = await service.call('POST', path, { key: a.key, ...(body === undefined ? {} : { body }) });
      assert.ok(answer.status < 300, answer.text);
      return answer.body.id as string;
    };
    const hook = (await register(service, 'http://127.0.0.1:9/hook', {}, a.key)).id;
    const channel = await make('/channels', { kind: 'slack', target: 'http://127.0.0.1:9/services/x' });
    const { id: asked } = await packetIn(service, 'awaiting_human', {}, a.key);
    const ids: Record<string, Ids> = {
      keys: [a.keyId],
      hooks: [hook, await make(`/hooks/${hook}/ping`)],
      channels: [channel, await make(`/channels/${channel}/test`)],
      'answer-links': [await make(`/packets/${asked}/answer-links`)],
      tenants: [a.id],
      agents: ['strict'],
      policies: ['strict'],
      groups: ['strict'],
      // A key of the tenant without the scope erase is refused; test/handoff/http/erasures.test.ts has one with it.
      erasures: [unknownId],
      // test/handoff/http/approvals.test.ts has some of other tenants.
      'standing-approvals': [unknownId],
      delegations: ['strict'],
      schedules: ['strict'],
      people: ['strict'],
      // Without an identity provider there is none.
      sessions: [a.keyId],
    };
    assert.equal((await service.call('PUT', '/agents/strict/contract', { key: a.key, body: { schema: {} } })).status, 201);
    assert.equal((await service.call('POST', '/people/strict/suspend', { key: a.key })).status, 200);
    for (const noun of ['Policy', 'Group', 'Delegation', 'Schedule'] as const)
      assert.equal(
        (await service.call('PUT', routes[`put${noun}`].path.replace(/\{\w+\}/, 'strict'), { key: a.key, body: bodies[`put${noun}`] }))
          .status,
        201,
      );
    const own = [
      '/keys',
      '/hooks',
      '/channels',
      `/hooks/${hook}/deliveries`,
      `/channels/${channel}/deliveries`,
      `/packets/${asked}/answer-links`,
      '/agents/strict/contract',
      '/policies/strict',
      '/groups/strict',
      '/delegations/strict',
      '/schedules/strict',
      '/people',
    ];
    const seen = async () => await Promise.all(own.map(async (path) => (await service.call('GET', path, { key: a.key })).text));
    const before = await seen();
    const tenant = (await service.call('GET', `/tenants/${a.id}`)).text;
    for (const [noun, named] of routesByNoun) {
      if (noun === 'packets') continue;
      await assertHidden(
        // Each tenant may publish a contract for an agent of any name.
        named.filter(([, { responses }]) => 404 in responses).flatMap((route) => callsOf(service, b.key, route)),
        ids[noun]!,
      );
    }
    for (const [method, path, body] of [
      ['GET', `/hooks/dlq?webhook_id=${hook}`],
      ['POST', '/hooks/dlq/retry-all', { webhook_id: hook }],
    ] as const)
      assert.equal((await service.call(method, path, { key: b.key, body })).status, 404, path);
    for (const path of ['/hooks', '/hooks/dlq', '/channels']) assert.deepEqual((await service.call('GET', path, { key: b.key })).body, []);
    const keys = (await service.call('GET', '/keys', { key: b.key })).body;
    assert.deepEqual(
      keys.map(({ id }: { id: string }) => id),
      [b.keyId],
    );
    assert.deepEqual(await seen(), before);
    assert.equal((await service.call('GET', `/tenants/${a.id}`)).text, tenant);
  });
}
