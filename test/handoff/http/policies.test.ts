import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { walk } from '../../support/pages.ts';
import { type CallOptions, newTenant, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';

/** The policy of the documents: small refunds pass, large ones ask two of finance, then one more. */
const refunds = {
  match: { agents: ['refund-*'], tools: ['refund'] },
  rules: [
    {
      when: { properties: { arguments: { properties: { amount: { type: 'number', minimum: 0, maximum: 50 } }, required: ['amount'] } } },
      then: { approve: 'up to 50' },
    },
    {
      when: { properties: { arguments: { properties: { amount: { minimum: 10_000 } } } } },
      then: {
        ask: [
          { from: ['group:finance'], count: 2 },
          { from: ['cfo@example.com'], escalate: [{ after_seconds: 1800, to: ['group:board'] }] },
        ],
      },
    },
    { then: { ask: [{ from: ['group:support'] }] } },
  ],
};

const put = (service: TestService, path: string, body: unknown, options: CallOptions = {}) =>
  service.call('PUT', path, { body, ...options });
const ofTry = (amount: unknown, agent = 'refund-eu', tool = 'refund') => ({
  agent,
  action: { tool, arguments: amount === undefined ? {} : { amount } },
});

/** What the policies say to a refund. */
async function tried(
  service: TestService,
  body: object,
): Promise<{ policy: string | null; rule: number | null; then: unknown; skipped: object[] }> {
  const answer = await service.call('POST', '/policies/try', { body });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

for (const store of stores) {
  describe(`Policies, groups and delegations, on ${store.name}`, () => {
    test('a policy is published, read, changed to its next version, and removed', async () => {
      const service = await shareService(store);
      for (const [name, members] of [
        ['finance', ['a', 'b']],
        ['support', ['c']],
        ['board', ['d']],
      ] as const)
        assert.equal((await put(service, `/groups/${name}`, { members })).status, 201);
      const first = await put(service, '/policies/refunds', refunds);
      assert.equal(first.status, 201, first.text);
      assert.equal(first.headers.etag, '"1"');
      const { created_at, updated_at, ...rest } = first.body;
      assert.deepEqual(rest, {
        ...{
          name: 'refunds',
          version: 1,
          description: null,
          order: 0,
          mode: 'enforce',
          remember: null,
          shadow: { asked: 0, approved: 0, rejected: 0 },
          warnings: [],
          ...refunds,
        },
        match: { ...refunds.match, tags: [] },
      });
      assert.equal(created_at, updated_at);
      assert.deepEqual((await service.call('GET', '/policies/refunds')).body, first.body);
      assert.equal((await service.call('GET', '/policies/refunds', { headers: { 'If-None-Match': '"1"' } })).status, 304);

      const same = await put(service, '/policies/refunds', refunds);
      assert.deepEqual([same.status, same.body.version], [200, 1], 'the same document changes nothing');
      const stale = await put(service, '/policies/refunds', { ...refunds, order: 1 }, { headers: { 'If-Match': '"9"' } });
      assert.deepEqual([stale.status, stale.body.code], [412, 'PRECONDITION_FAILED']);
      const next = await put(service, '/policies/refunds', { ...refunds, order: 1 }, { headers: { 'If-Match': '"1"' } });
      assert.deepEqual([next.status, next.body.version, next.body.order], [200, 2, 1]);
      assert.equal((await put(service, '/policies/refunds', refunds, { headers: { 'If-None-Match': '*' } })).status, 412);
      assert.equal((await service.call('DELETE', '/policies/refunds')).status, 204);
      assert.equal((await service.call('GET', '/policies/refunds')).status, 404);
      assert.equal((await service.call('DELETE', '/policies/refunds')).status, 404);
      assert.equal((await put(service, '/policies/refunds', refunds)).body.version, 3, 'versions go on');
      const { body: audit } = await service.call('GET', '/audit?action=deleted');
      assert.deepEqual(audit.entries[0].details, { name: 'refunds', version: 2 });
      assert.equal(audit.entries[0].resource, 'policy');
    });

    test('a policy is refused with each fault of its rules, and when it is too large [H552]', async () => {
      const service = await shareService(store);
      const faultsOf = async (rules: unknown[]) => {
        const { status, body, text } = await put(service, '/policies/faulty', { rules });
        assert.equal(status, 400, text);
        return (body.errors ?? [body]).map(({ field }: { field: string }) => field);
      };
      const ask = { ask: [{ from: ['a'] }] };
      assert.deepEqual(
        await faultsOf([
          { when: { type: 'nothing' }, then: ask },
          { when: { properties: { a: { pattern: 'x' } } }, then: { approve: 'x' } },
        ]),
        ['rules.0.when.type', 'rules.1.when.properties.a.pattern'],
      );
      assert.deepEqual(await faultsOf([{ then: { ask: [{ from: ['a'], timeout_seconds: 5, on_timeout: 'next' }] } }]), [
        'rules.0.then.ask.0.on_timeout',
      ]);
      for (const length of [0, 51]) assert.deepEqual(await faultsOf(Array.from({ length }, () => ({ then: ask }))), ['rules']);
      for (const then of [
        {},
        { approve: 'x', reject: 'y' },
        { ask: [] },
        { ask: [{ from: [] }] },
        { ask: Array.from({ length: 6 }, () => ({ from: ['a'] })) },
        { ask: [{ from: ['a'], count: 0 }] },
        { ask: [{ from: ['a'], count: 11 }] },
        { ask: [{ from: ['a'], escalate: Array.from({ length: 6 }, () => ({ after_seconds: 1, to: ['b'] })) }] },
      ])
        assert.match((await faultsOf([{ then }]))[0], /^rules\.0\.then/, JSON.stringify(then));
      const large = { description: 'x', rules: [{ when: { description: 'x'.repeat(65_000) }, then: ask }] };
      assert.equal((await put(service, '/policies/faulty', large)).status, 400);
      assert.equal((await service.call('GET', '/policies/faulty')).status, 404);
    });

    test('a policy that will not work as it should has warnings', async () => {
      const service = await shareService(store);
      const { body } = await put(service, '/policies/odd', { rules: [{ then: { ask: [{ from: ['group:none'], count: 2 }] } }] });
      assert.deepEqual(body.warnings, [
        'Step 1 of rule 1 asks the group none, which does not exist.',
        'Step 1 of rule 1 needs 2 people, and asks 0.',
      ]);
      assert.equal((await put(service, '/groups/none', { members: ['a', 'b'] })).status, 201);
      assert.deepEqual((await service.call('GET', '/policies/odd')).body.warnings, [], 'they follow the groups');
    });

    test('a trial says which policy decides, and where the ones before do not fit', async () => {
      const service = await shareService(store);
      assert.deepEqual(await tried(service, ofTry(30)), { policy: null, rule: null, then: null, skipped: [] });
      await put(service, '/policies/refunds', refunds);
      await put(service, '/policies/earlier', { order: -1, match: { tools: ['transfer'] }, rules: [{ then: { reject: 'never' } }] });
      const skipped = { policy: 'earlier', rule: null, path: 'match.tools' };
      assert.deepEqual(await tried(service, ofTry(30)), { policy: 'refunds', rule: 1, then: { approve: 'up to 50' }, skipped: [skipped] });
      const large = await tried(service, ofTry(20_000));
      assert.deepEqual([large.rule, large.skipped.at(-1)], [2, { policy: 'refunds', rule: 1, path: 'arguments.amount' }]);
      for (const amount of [undefined, '30', null, [30]]) {
        const { rule } = await tried(service, ofTry(amount));
        assert.notEqual(rule, 1, `${amount} is never approved`);
      }
      assert.equal((await tried(service, ofTry(30, 'other'))).policy, null);
      await put(service, '/policies/earlier', { order: -1, mode: 'shadow', rules: [{ then: { reject: 'never' } }] });
      assert.equal((await tried(service, ofTry(30))).policy, 'refunds', 'a policy in shadow decides nothing');
      await service.call('DELETE', '/policies/refunds');
      assert.equal((await tried(service, ofTry(30))).policy, null);
      // Each part of what is judged, and of two policies of one order the first by name.
      const subject = {
        agent: 'a',
        framework: 'x',
        tags: ['eu'],
        priority: 'high',
        custom: { case: 7 },
        action: { tool: 't', arguments: { n: 1 } },
      };
      const parts = { tool: 't', arguments: { n: 1 }, agent: 'a', framework: 'x', tags: ['eu'], priority: 'high', custom: { case: 7 } };
      for (const [name, value] of Object.entries(parts)) {
        const rules = [{ when: { properties: { [name]: { const: value } }, required: [name] }, then: { reject: name } }];
        await put(service, '/policies/b', { rules });
        assert.deepEqual((await tried(service, subject)).then, { reject: name });
        const { rule } = await tried(service, { agent: 'other', action: { tool: 'other', arguments: {} } });
        assert.equal(rule, null, name);
      }
      await put(service, '/policies/a', { rules: [{ then: { reject: 'first' } }] });
      assert.equal((await tried(service, subject)).policy, 'a');
      assert.equal((await service.call('GET', '/packets?limit=1')).body.total, 0, 'nothing is written');
    });

    test('a tenant has at most 100 policies', async () => {
      const service = await shareService(store);
      const policy = { rules: [{ then: { reject: 'no' } }] };
      await Promise.all(Array.from({ length: 100 }, (_, index) => put(service, `/policies/p${index}`, policy)));
      const { status, body } = await put(service, '/policies/more', policy);
      assert.deepEqual([status, body.detail], [409, 'The tenant has 100 policies, the maximum; remove one first.']);
      assert.equal((await put(service, '/policies/p7', { ...policy, order: 1 })).status, 200, 'those that exist may change');
    });

    test('an action that takes too many steps to check is rejected, never passed on to a later rule [H550]', async () => {
      const service = await shareService(store);
      const items = { type: 'array', items: { anyOf: Array.from({ length: 100 }, (_, index) => ({ const: `never ${index}` })) } };
      const when = { not: { properties: { arguments: { properties: { list: items } } } } };
      const policy = { rules: [{ when, then: { reject: 'listed' } }, { then: { approve: 'all others' } }] };
      assert.equal((await put(service, '/policies/slow', policy)).status, 201);
      const list = Array.from({ length: 9000 }, () => 'never 99');
      const { then } = await tried(service, { agent: 'a', action: { tool: 't', arguments: { list } } });
      assert.match((then as { reject: string }).reject, /could not be checked/);
    });

    test('a group has each member once, and its names are lists of people [H553]', async () => {
      const service = await shareService(store);
      const first = await put(service, '/groups/finance', { members: ['Dana', 'dana ', 'eli'] });
      assert.deepEqual([first.status, first.body.members], [201, ['dana ', 'eli']]);
      assert.equal((await put(service, '/groups/idp:finance', { members: [] })).status, 400);
      assert.equal((await put(service, '/groups/finance', { members: ['group:support'] })).body.field, 'members.0');
      const many = Array.from({ length: 1001 }, (_, index) => `p${index}`);
      assert.equal((await put(service, '/groups/many', { members: many })).body.field, 'members');
      assert.equal((await put(service, '/groups/many', { members: many.slice(1) })).body.members.length, 1000);
      assert.equal((await service.call('DELETE', '/groups/many')).status, 204);
      assert.equal((await put(service, '/groups/finance', { members: [] })).body.version, 2);
      for (const name of ['a', 'b']) await put(service, `/groups/${name}`, { members: [] });
      const pages = await walk(async (query) => (await service.call('GET', `/groups?${query}`)).body, 'limit=2');
      assert.deepEqual(
        pages.map(({ groups }) => groups.map(({ name }: { name: string }) => name)),
        [['a', 'b'], ['finance']],
      );
      assert.equal((await service.call('DELETE', '/groups/finance', { headers: { 'If-Match': '"1"' } })).status, 412);
      assert.equal((await service.call('DELETE', '/groups/finance')).status, 204);
    });

    test('a delegation is set by its person or with manage, by whatever spelling of the name [H553, H554]', async () => {
      const service = await shareService(store);
      const until = '2099-01-01T00:00:00Z';
      const keyOf = async (rights: object) => (await service.call('POST', '/keys', { body: { name: 'k', ...rights } })).body.key;
      const dana = await keyOf({ scopes: ['respond', 'read'], responder: 'Dana' });
      const first = await put(service, '/delegations/dana', { to: 'eli', until, reason: 'Leave' }, { key: dana });
      assert.equal(first.status, 201, first.text);
      const { created_at: _, updated_at: __, ...rest } = first.body;
      assert.deepEqual(rest, { person: 'dana', version: 1, to: 'eli', from: null, until: '2099-01-01T00:00:00.000Z', reason: 'Leave' });
      assert.equal((await put(service, '/delegations/eli', { to: 'dana', until }, { key: dana })).status, 403);
      assert.equal((await service.call('DELETE', '/delegations/eli', { key: dana })).status, 403);
      assert.equal(
        (await put(service, '/delegations/DANA', { to: 'eli', until }, { key: await keyOf({ scopes: ['manage'] }) })).body.version,
        2,
      );
      for (const [body, field] of [
        [{ to: 'Dana ', until }, 'to'],
        [{ to: 'group:finance', until }, 'to'],
        [{ to: 'eli', until: '2001-01-01' }, 'until'],
        [{ to: 'eli', from: '2099-01-01', until }, 'until'],
      ] as const)
        assert.deepEqual((await put(service, '/delegations/dana', body)).body.field, field);
      assert.equal((await service.call('GET', '/delegations')).body.delegations.length, 1);
      assert.equal((await service.call('DELETE', '/delegations/dana', { key: dana })).status, 204);
      assert.equal((await service.call('GET', '/delegations/dana')).status, 404);
    });

    test("another tenant's policies, groups and delegations look like unknown ones, and judge nothing here", async () => {
      const service = await shareService(store);
      const other = await newTenant(service);
      await put(service, '/policies/refunds', refunds);
      await put(service, '/groups/finance', { members: ['a'] });
      const { key } = other;
      for (const path of ['/policies/refunds', '/groups/finance']) {
        assert.equal((await service.call('GET', path, { key })).status, 404);
        assert.equal((await service.call('DELETE', path, { key })).status, 404);
      }
      assert.deepEqual((await service.call('GET', '/policies', { key })).body, { policies: [], next_cursor: null });
      assert.equal((await service.call('POST', '/policies/try', { key, body: ofTry(30) })).body.policy, null);
    });
  });
}

for (const store of storesOfSeveral) {
  test(`a group that the tenant named before the prefix of the provider was set has no members, on ${store.name} [H553]`, async (t) => {
    const first = await startService(t, { store });
    await put(first, '/groups/sso:finance', { members: ['a'] });
    await put(first, '/policies/refunds', { rules: [{ then: { ask: [{ from: ['group:sso:finance'] }] } }] });
    const warningsOf = async (service: TestService) => (await service.call('GET', '/policies/refunds')).body.warnings;
    assert.deepEqual(await warningsOf(first), []);
    const settings = { SERVICE_OIDC_GROUP_PREFIX: 'sso:' };
    const next = await startService(t, { databaseUrl: first.databaseUrl, settings, clock: first.clock });
    assert.match((await warningsOf(next)).join(), /asks the group sso:finance, which does not exist/);
  });
}
