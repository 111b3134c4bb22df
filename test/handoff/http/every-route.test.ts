import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { routes } from '../../../src/handoff/model/api.ts';
import { errorCodes } from '../../../src/handoff/model/errors.ts';
import { createExample } from '../../../src/handoff/model/examples.ts';
import type { HandoffRoute } from '../../../src/handoff/model/route.ts';
import type { Route } from '../../../src/kit/route.ts';
import { bodies, whole } from '../../support/bodies.ts';
import { unknownId } from '../../support/life.ts';
import {
  type CallOptions,
  createPacket,
  newTenant,
  packetRequest,
  startService,
  type TestAnswer,
  type TestService,
} from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** Settings with a small limit on packets. */
const small = { SERVICE_PACKET_BYTES_BUSINESS: '4096' };

/** `own-packets.test.ts` walks them with a key that sees its own. */
const every: [string, Route & HandoffRoute][] = Object.entries(routes);
const withBody = every.filter(([, route]) => route.body !== undefined);

/** The path of a route with an id, or with one for each of its parameters. */
function pathOf(route: Route, ...ids: string[]): string {
  let index = 0;
  return route.path.replace(/\{\w+\}/g, () => encodeURIComponent(ids[index++] ?? ids[0]!));
}

/** Asserts the documented error body: four keys of the right types, without anything that callers must not see. */
function assertRefused(
  { status, body, text }: Pick<TestAnswer, 'status' | 'body' | 'text'>,
  expected: number,
  field?: string | null,
): void {
  assert.equal(status, expected, text.slice(0, 300));
  assert.equal(typeof body.detail, 'string');
  assert.notEqual(body.detail, '');
  assert.ok(body.code in errorCodes, body.code);
  assert.ok(body.field === null || typeof body.field === 'string');
  assert.equal(body.status_code, expected);
  assert.doesNotMatch(text, /node_modules|\.ts:\d|sqlite|select |insert |postgres/i);
  if (field !== undefined) assert.equal(body.field, field, text.slice(0, 300));
}

/** The number of packets, audit entries, indexed packets and keys of the tenant, and the number of tenants. */
async function footprint({ call }: TestService): Promise<number[]> {
  const answers = await Promise.all(
    ['/packets?limit=1', '/audit?limit=1', '/packets/search?q=charged', '/keys', '/tenants'].map((path) => call('GET', path)),
  );
  return answers.map(({ status, body }) => {
    assert.equal(status, 200);
    return body.total ?? body.length;
  });
}

/** Every path in a body with its value, except below fields that take any JSON. */
function* places(value: unknown, path: string[] = []): Generator<{ path: string[]; value: unknown }> {
  const free = /(artifacts\.\d+\.value|alternatives\.\d+|options\.\d+|custom\.\w+|packets\.\d+)$/;
  if (path.length > 0) yield { path, value };
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (!free.test([...path, key].join('.'))) yield* places(item, [...path, key]);
  }
}

/** The body with another value at the path. */
function withValue(body: unknown, path: readonly string[], value: unknown): Record<string, unknown> {
  const copy = structuredClone(body) as Record<string, unknown>;
  const inner = path.slice(0, -1).reduce((node, key) => node[key] as Record<string, unknown>, copy);
  inner[path.at(-1)!] = value;
  return copy;
}

/** Values of another type than the given one. */
const otherThan = (value: unknown): unknown[] =>
  Array.isArray(value)
    ? ['text', {}]
    : typeof value === 'object'
      ? ['text', [], 7]
      : typeof value === 'string'
        ? [7, {}, []]
        : ['text', {}, 1.5];

for (const store of stores) {
  describe(`Every route on ${store.name}`, () => {
    test('an invalid item of a batch is refused by itself, with its field', async () => {
      const service = await shareService(store);
      const items = [...places(whole)].flatMap(({ path, value }) =>
        otherThan(value).map((wrong) => ({ path, item: withValue(whole, path, wrong) })),
      );
      for (let from = 0; from < items.length; from += 90) {
        const some = items.slice(from, from + 90);
        const odd = [null, 7, 'text', []];
        const answer = await service.call('POST', '/packets/batch', {
          body: { packets: [...some.map(({ item }) => item), ...odd, whole] },
        });
        assert.equal(answer.status, 201);
        assert.equal(answer.body.created.length, 1);
        const fields = answer.body.errors.map(({ field }: { field: string | null }) => field);
        assert.deepEqual(fields, [...some.map(({ path }) => path.join('.')), ...odd.map(() => null)]);
      }
      assert.equal((await service.call('GET', '/packets')).body.total, Math.ceil(items.length / 90));
    });

    test('an invalid id is answered like an unknown one, on every route that takes an id [H237]', async () => {
      const service = await shareService(store);
      const before = await footprint(service);
      const junk = [
        'nope',
        '0',
        '-1',
        'null',
        '%00',
        '%0a',
        '..%2f..%2fx',
        "'%3b--",
        '%F0%9F%92%A9',
        'a'.repeat(300),
        'a'.repeat(10_000),
        unknownId.toUpperCase(),
        `${unknownId}0`,
        `%7B${unknownId}%7D`,
        unknownId.replaceAll('-', ''),
        `urn:uuid:${unknownId}`,
      ];
      for (const [name, route] of every.filter(([, { path, responses }]) => path.includes('{') && 404 in responses)) {
        const ask = (id: string) =>
          service.call(route.method, route.path.replace(/\{\w+\}/, id), bodies[name] === undefined ? {} : { body: bodies[name] });
        const unknown = await ask(unknownId);
        assertRefused(unknown, 404, null);
        for (const id of junk) {
          const answer = await ask(id);
          assertRefused(answer, 404, null);
          assert.equal(answer.body.detail, unknown.body.detail);
        }
        for (const id of ['%ff', '%zz', '%']) assertRefused(await ask(id), 404, null);
      }
      assert.deepEqual(await footprint(service), before);
    });

    test('every failure in the API description can occur, with the specified body', async (t) => {
      const service = await shareService(store, small);
      const limited = await startService(t, { store, settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '1' } });
      assert.equal((await limited.call('GET', '/keys')).status, 200);
      const { key } = await newTenant(service, { max_api_keys: 1 });
      const keyWith = async (scope: string) => (await service.call('POST', '/keys', { body: { name: scope, scopes: [scope] } })).body.key;
      const lesser = [
        ['read', await keyWith('read')] as const,
        ['respond', await keyWith('respond')] as const,
        ['work', await keyWith('work')] as const,
      ];
      const met = new Set<string>();
      // Streams stay open; they have their own tests.
      const refusing = every.filter(([, { access, tag }]) => access !== 'public' && tag !== 'streams');
      const meet = async (
        name: keyof typeof routes,
        expected: number,
        id: string | string[],
        options: CallOptions = {},
        query = '',
        on: TestService = service,
      ) => {
        const route: Route = routes[name];
        const body = bodies[name] === undefined || options.raw !== undefined ? {} : { body: bodies[name] };
        assertRefused(await on.call(route.method, pathOf(route, ...[id].flat()) + query, { ...body, ...options }), expected);
        assert.ok(expected in route.responses, `${name} does not document ${expected}`);
        met.add(`${name} ${expected}`);
      };

      for (const [given, route] of refusing) {
        const name = given as keyof typeof routes;
        await meet(name, 401, unknownId, { key: null });
        await meet(name, 429, unknownId, {}, '', limited);
        if (route.access === 'admin') await meet(name, 403, unknownId, { key });
        else if (route.access !== 'any')
          await meet(name, 403, unknownId, { key: lesser.find(([scope]) => ![route.access, route.alternative].includes(scope))![1] });
        await meet(name, 400, unknownId, {}, '?nope=1');
        if (route.path.includes('{') && 404 in route.responses) await meet(name, 404, unknownId);
        if (route.body === undefined) continue;
        await meet(name, 400, unknownId, { raw: '{' });
        if (!route.bodyOptional) await meet(name, 400, unknownId, { raw: '' });
        await meet(name, 413, unknownId, { raw: ' '.repeat(500_000) });
        await meet(name, 415, unknownId, { headers: { 'content-type': 'text/plain' } });
      }

      const { id: expired } = await createPacket(service);
      assert.equal((await service.call('DELETE', `/packets/${expired}`)).status, 204);
      const { id: claimed } = await createPacket(service);
      assert.equal((await service.call('POST', `/packets/${claimed}/claim`, { body: { agent_id: 'a' } })).status, 200);
      const { id: late } = await createPacket(service, { hitl: createExample.hitl });
      assert.equal((await service.call('PATCH', `/packets/${late}`, { body: { status: 'awaiting_human' } })).status, 200);
      service.clock.turn(createExample.hitl.timeout_seconds);
      const used = { headers: { 'Idempotency-Key': 'used' } };
      assert.equal((await service.call('POST', '/packets', { body: packetRequest(), ...used })).status, 201);
      const stale = { headers: { 'If-Match': '"99"' } };

      assert.equal((await service.call('PUT', '/agents/strict/contract', { body: bodies.publishContract })).status, 201);
      await meet('publishContract', 412, 'strict', stale);
      await meet('deleteContract', 412, 'strict', stale);
      const call = { ...bodies.askApproval, exclude_source: false, action: { tool: 't', arguments: {}, call_id: 'c' } };
      const { body: approving } = await service.call('POST', '/approvals', { body: call });
      await meet('askApproval', 409, claimed, { body: { ...call, action: { ...call.action, tool: 'other' } } });
      await meet('startExecution', 409, approving.id);
      const responder = (await service.call('POST', '/keys', { body: { name: 'dana', scopes: ['respond'] } })).body.key;
      const approved = await service.call('POST', `/packets/${approving.id}/respond`, {
        body: { decision: 'approve', responded_by: 'dana' },
        key: responder,
      });
      const { arguments_digest } = approved.body.hitl.decision;
      assert.equal((await service.call('POST', `/packets/${approving.id}/execution`, { body: { arguments_digest } })).status, 201);
      const { body: worker } = await service.call('POST', '/keys', { body: { name: 'worker', scopes: ['work'] }, key: responder });
      assert.equal(worker.code, 'FORBIDDEN');
      assert.equal((await service.call('PATCH', `/packets/${approving.id}/execution`, { body: { status: 'failed' } })).status, 200);
      await meet('endExecution', 409, approving.id);
      // Tenants with as many as they may have: see contracts.test.ts and policies.test.ts.
      for (const name of ['publishContract', 'putPolicy', 'putGroup', 'putDelegation', 'putSchedule']) met.add(`${name} 409`);
      for (const noun of ['Policy', 'Group', 'Delegation', 'Schedule'] as const) {
        assert.ok((await service.call('PUT', pathOf(routes[`put${noun}`], 'strict'), { body: bodies[`put${noun}`] })).status < 300);
        await meet(`put${noun}`, 412, 'strict', stale);
        await meet(`delete${noun}`, 412, 'strict', stale);
      }
      await meet('runSchedule', 409, 'strict', used);
      await meet('createPacket', 409, claimed, used);
      await meet('chainPacket', 409, claimed, used);
      await meet('batchCreate', 409, claimed, used);
      await meet('patchPacket', 409, expired, { body: { context: { summary: 'On' } } });
      await meet('deletePacket', 409, expired);
      await meet('claimPacket', 409, claimed);
      await meet('respondPacket', 409, claimed);
      const { id: open } = await createPacket(service, { hitl: createExample.hitl });
      assert.equal((await service.call('PATCH', `/packets/${open}`, { body: { status: 'awaiting_human' } })).status, 200);
      await meet('askQuestion', 409, open);
      await meet('createAnswerLink', 409, claimed);
      await meet('createKey', 409, claimed, { key, body: { name: 'second' } });
      await meet('deleteTenant', 409, '00000000-0000-7000-8000-000000000001');
      const named = { ...bodies.putSchedule, packet: packetRequest({ metadata: { ...createExample.metadata, subjects: ['person-7'] } }) };
      assert.ok((await service.call('PUT', '/schedules/named', { body: named })).status < 300);
      await meet('createErasure', 409, claimed, { body: { subject: 'person-7', reason: 'Asked for' } });
      await meet('claimPacket', 410, expired);
      await meet('respondPacket', 410, late);
      await meet('createAnswerLink', 410, late);
      for (const name of ['patchPacket', 'askQuestion', 'deletePacket', 'claimPacket', 'respondPacket'] as const)
        await meet(name, 412, claimed, stale);
      await meet('deletePacket', 403, claimed, { key }, '?hard=true');
      await meet('createKey', 403, claimed, { key, body: { name: 'mine', admin: true } });
      await meet('createKey', 404, claimed);

      await meet('createWebhook', 409, claimed, used);
      await meet('claimNext', 409, claimed, used);
      await meet('retryAll', 404, claimed);
      await meet('listDeadLetters', 404, claimed, {}, `?webhook_id=${unknownId}`);
      const { body: hook } = await service.call('POST', '/hooks', { body: bodies.createWebhook });
      const { body: ping } = await service.call('POST', `/hooks/${hook.id}/ping`);
      await meet('replayDeadLetter', 409, ping.id);
      assert.equal((await service.call('PATCH', `/hooks/${hook.id}`, { body: { active: false } })).status, 200);
      await meet('pingWebhook', 409, hook.id);
      await meet('createChannel', 409, claimed, used);
      const { body: channel } = await service.call('POST', '/channels', { body: bodies.createChannel });
      const { body: message } = await service.call('POST', `/channels/${channel.id}/test`);
      await meet('replayChannelDelivery', 409, [channel.id, message.id]);
      assert.equal((await service.call('PATCH', `/channels/${channel.id}`, { body: { active: false } })).status, 200);
      await meet('testChannel', 409, channel.id);

      const { id: free } = await createPacket(service);
      await meet('releasePacket', 409, free);
      await meet('releasePacket', 412, claimed, stale);
      await meet('withdrawQuestion', 409, free);
      await meet('withdrawQuestion', 412, claimed, stale);
      await meet('renewLease', 409, claimed);
      await meet('endLease', 409, claimed);
      const { body: plain } = await service.call('POST', '/keys', { body: { name: 'plain' } });
      await meet('releasePacket', 403, claimed, { key: plain.key });
      const { body: keys } = await service.call('GET', '/keys');
      await meet('rotateKey', 403, keys.find(({ admin }: { admin: boolean }) => admin).id, { key: plain.key });
      assert.equal((await service.call('POST', `/keys/${plain.id}/rotate`)).status, 201);
      await meet('rotateKey', 409, plain.id);

      await meet('listSessions', 404, '');
      // `sessions.test.ts` has those that need an identity provider.
      for (const one of ['listSessions 403', 'deleteSession 403']) met.add(one);
      // And `people.test.ts`.
      met.add('releasePerson 409');

      // A public route only refuses invalid HTTP, before routing. A page of a list is only too large with 16 MiB of
      // packets, which the tests of lists cover.
      const documented = refusing.flatMap(([name, { method, responses }]) =>
        Object.keys(responses)
          .filter((status) => method !== 'GET' || status !== '413')
          .map((status) => `${name} ${status}`),
      );
      assert.deepEqual(
        documented.filter((one) => / 4\d\d$/.test(one) && !met.has(one)),
        [],
      );
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('Every route', () => {
  test('400 with the field: a wrong type anywhere in any body [H268]', async (t) => {
    const service = await startService(t);
    const { id } = await createPacket(service);
    const before = await footprint(service);
    let tried = 0;
    for (const [name, route] of withBody) {
      for (const { path, value } of places(bodies[name])) {
        for (const wrong of otherThan(value)) {
          const answer = await service.call(route.method, pathOf(route, id), { body: withValue(bodies[name], path, wrong) });
          assertRefused(answer, 400, path.join('.'));
          tried += 1;
        }
      }
      for (const wrong of ['text', 7, true, null, [], [bodies[name]]]) {
        assertRefused(await service.call(route.method, pathOf(route, id), { body: wrong }), 400, null);
      }
    }
    assert.ok(tried > 300, `${tried}`);
    assert.deepEqual(await footprint(service), before);
  });

  test('400 with the field: an unknown field, or one that only the service sets, at the top level of any body [H3, H43]', async (t) => {
    const service = await startService(t);
    const { id } = await createPacket(service);
    const before = await footprint(service);
    const own = [
      'surprise',
      'id',
      'status',
      'revision',
      'created_at',
      'updated_at',
      'claimed_at',
      'claimed_by',
      'version',
      'parent_packet_id',
      '_links',
      'key',
      'admin',
      'tenant_id',
    ];
    for (const [name, route] of withBody) {
      for (const field of own.filter((field) => !(field in bodies[name]!))) {
        assertRefused(await service.call(route.method, pathOf(route, id), { body: { ...bodies[name], [field]: 'x' } }), 400, field);
      }
    }
    const answer = await service.call('PATCH', `/packets/${id}`, { body: { metadata: { source_agent: whole.metadata.source_agent } } });
    assertRefused(answer, 400, 'metadata.source_agent');
    assertRefused(
      await service.call('PATCH', `/packets/${id}`, { body: { metadata: { created_at: '2020-01-01' } } }),
      400,
      'metadata.created_at',
    );
    assert.deepEqual(await footprint(service), before);
  });

  test('400 with the field: query parameters that are unknown, repeated, out of range or of a wrong type [H243, H268]', async (t) => {
    const service = await startService(t);
    await createPacket(service);
    const pages = [
      'limit=0',
      'limit=201',
      'limit=-1',
      'limit=abc',
      'limit=',
      'limit=1e3',
      'limit=1e2',
      'limit=0x10',
      'limit=5.5',
      'limit=%205',
      'limit=99999999999999999999',
      'limit=NaN',
      'offset=-1',
      'offset=1e99',
      'offset=9007199254740993',
      'limit=5&limit=5',
      'offset=0&offset=1',
    ];
    const moments = [
      'created_after=yesterday',
      'created_after=',
      'created_before=2026-13-01',
      'created_before=1',
      'created_after=2026-03-01T25:00:00Z',
      'created_after=%2B275760-09-13',
      'created_after=2026-02-31',
      'created_before=2026-04-31T00:00:00Z',
      'created_after=2025-02-29',
    ];
    const list = [
      'status=nope',
      'status=,',
      'status=',
      'status=Created',
      'status=created,nope',
      'priority=urgent',
      'priority=low,high',
      'priority=',
      'hitl_required=1',
      'hitl_required=yes',
      'hitl_required=',
      'view=whole',
      `tags=${Array(21)
        .fill('a')
        .map((tag, index) => tag + index)
        .join(',')}`,
      'cursor=a&offset=1',
    ];
    const odd = [
      'q=x',
      'nope=1',
      'limit[]=1',
      '__proto__=1',
      'constructor=1',
      '%00=1',
      'source_agent=%00',
      'target_agent=a%00b',
      'tags=a,%00',
      'status=a&status=b',
      '%=1',
      'tenant_id=x',
    ];
    const search = ['q=', 'q=%20', 'q=a%00b', 'q=a&q=b', 'q=a&cursor=x', 'q=a&source_agent=b', 'q=a&status=nope', 'q=a&priority=nope'];
    const audit = ['actor=%00', 'action=%00', 'packet_id=%00', 'cursor=x', 'status=created', 'actor=a&actor=b'];
    const cases: Record<string, string[]> = {
      '/packets': [...pages, ...moments, ...list, ...odd],
      '/packets/awaiting': [...pages, 'status=created', 'priority=low', 'cursor=x', 'q=x', '%00=1'],
      '/packets/search': [...search, ...pages.map((query) => `q=a&${query}`)],
      '/audit': [...audit, ...pages, ...moments],
    };
    for (const [path, queries] of Object.entries(cases)) {
      for (const query of queries) {
        const answer = await service.call('GET', `${path}?${query}`);
        const last = decodeURIComponent(query.replace('%=', '%25=')).split('&').at(-1)!.split('=')[0]!;
        assertRefused(answer, 400, query === 'cursor=a&offset=1' ? 'cursor' : last);
      }
    }
    assertRefused(await service.call('GET', '/packets/search'), 400, 'q');
    assertRefused(await service.call('DELETE', `/packets/${unknownId}?hard=maybe`), 400, 'hard');
    for (const harmless of [
      'source_agent=%ff',
      'source_agent=%ED%A0%80',
      'source_agent=%zz',
      '&&&',
      'status=created,',
      'status=created,claimed,',
      `source_agent=${'x'.repeat(10_000)}`,
      "tags='%20or%201=1--",
    ]) {
      assert.equal((await service.call('GET', `/packets?${harmless}`)).status, 200, harmless);
    }
  });
});
