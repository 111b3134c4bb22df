import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, test } from 'node:test';

import { type Inspector, looking } from '../../support/consistency.ts';
import { type CallOptions, createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';

const attempt = (service: TestService, body: unknown = packetRequest(), options: CallOptions = {}) =>
  service.call('POST', '/packets?dry_run=true', { body, ...options });

const tryApproval = (service: TestService, body: unknown, options: CallOptions = {}) =>
  service.call('POST', '/approvals?dry_run=true', { body, ...options });
const approval = (action: object = {}, more: object = {}) => ({
  agent: { id: 'refunds' },
  action: { tool: 'refund', arguments: { amount: 1 }, ...action },
  ...more,
});

/** All rows of all tables, with what each table takes on the disk. */
async function wholeDatabase({ query }: Inspector, isSqlite: boolean): Promise<Record<string, unknown>> {
  const names = isSqlite
    ? await query(`select name from sqlite_master where type = 'table' order by name`)
    : await query(
        `select relname as name from pg_class where relkind in ('r', 'S') and relnamespace = 'public'::regnamespace order by relname`,
      );
  const found: Record<string, unknown> = {};
  for (const { name } of names) {
    const rows = await query(`select * from ${name}`);
    found[name] = rows.map((row) => hash('sha256', JSON.stringify(row))).sort();
    if (!isSqlite) found[`bytes of ${name}`] = await query(`select pg_total_relation_size('${name}') as bytes`);
  }
  if (isSqlite) found.bytes = [await query('pragma page_count'), await query('pragma freelist_count')];
  return found;
}

const contract = { schema: { properties: { context: { properties: { custom: { required: ['order_id'] } }, required: ['custom'] } } } };

for (const store of stores) {
  describe(`A request that only tries to create a packet, on ${store.name}`, () => {
    test('leaves every table and its size as it was, whether or not the packet would be created [H361]', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_OPEN_PACKETS_PER_AGENT: '5' } });
      const { key } = await newTenant(service, { handoffs_per_day: 5 });
      const parent = await createPacket(service, {}, key);
      await service.call('PUT', '/agents/strict/contract', { body: contract, key });
      await service.call('POST', '/hooks', { body: { url: 'https://127.0.0.1:9/hook', secret: 'a-secret-of-16-or-more' }, key });
      // Lists the agents, so that those that were named are written.
      await service.call('GET', '/agents', { key });
      const isSqlite = service.databaseUrl.startsWith('sqlite');
      const look = () => looking(service.databaseUrl, (inspector) => wholeDatabase(inspector, isSqlite));
      const before = await look();
      const headers = { 'X-Agent-Id': 'tries', 'Idempotency-Key': 'tried' };
      const target = { source_agent: { id: 'new', name: 'New', framework: 'none' }, target_agent: { id: 'strict', name: 'Strict' } };
      const bodies = [
        packetRequest(),
        packetRequest({ parent_packet_id: parent.id }),
        packetRequest({ metadata: target }),
        packetRequest({ metadata: target, context: { summary: 'With', custom: { order_id: 1 } } }),
        packetRequest({ parent_packet_id: '0197b5a6-8c3e-7f01-9a2b-000000000000' }),
        { context: {} },
      ];
      const answers = [];
      for (const body of bodies) answers.push(await attempt(service, body, { key, headers }));
      assert.deepEqual(
        answers.map(({ status, body }) => [status, body.ok]),
        [true, true, false, true, false, false].map((ok) => [200, ok]),
      );
      await service.call('GET', '/agents', { key });
      assert.deepEqual(await look(), before);
      const real = await service.call('POST', '/packets', { body: bodies[0], key, headers });
      assert.equal(real.status, 201, real.text);
      assert.equal(real.headers['idempotency-replayed'], undefined, 'the idempotency key is still new');
    });

    test('asks about no action and leaves every table as it was, and says all that asking would be refused for [H417]', async (t) => {
      const settings = { SERVICE_OPEN_PACKETS_PER_AGENT: '3', SERVICE_CHAIN_DEPTH_MAX: '1' };
      const service = await startService(t, { store, settings });
      const { key } = await newTenant(service, { handoffs_per_day: 4 });
      const rules = [{ when: { properties: { tool: { const: 'drop' } }, required: ['tool'] }, then: { reject: 'never' } }];
      assert.equal((await service.call('PUT', '/policies/p', { body: { rules }, key })).status, 201);
      const parent = await createPacket(service, {}, key);
      const known = await service.call('POST', '/approvals', { body: approval({ call_id: 'c' }), key });
      assert.equal(known.status, 201, known.text);
      await service.call('GET', '/agents', { key });
      const isSqlite = service.databaseUrl.startsWith('sqlite');
      const look = () => looking(service.databaseUrl, (inspector) => wholeDatabase(inspector, isSqlite));
      const before = await look();
      const schema = { properties: { amount: { type: 'string' } } };
      const cases: [unknown, [string, string | null][]][] = [
        [approval(), []],
        [approval({ tool: 'drop', call_id: 'new' }), []],
        [approval({ call_id: 'c' }), []],
        [approval({ call_id: 'c', arguments: { amount: 2 } }), [['CALL_CHANGED', null]]],
        [approval({ schema }), [['VALIDATION_ERROR', 'action.arguments.amount']]],
        [approval({ arguments: 1 }), [['VALIDATION_ERROR', 'action.arguments']]],
        [approval({}, { parent_packet_id: '0197b5a6-8c3e-7f01-9a2b-000000000000' }), [['VALIDATION_ERROR', 'parent_packet_id']]],
        [approval({}, { parent_packet_id: parent.id }), [['LOOP_GUARD', null]]],
      ];
      for (const [body, expected] of cases) {
        const { status, body: found, text } = await tryApproval(service, body, { key, headers: { 'X-Agent-Id': 'tries' } });
        assert.equal(status, 200, text);
        const codes = found.errors.map(({ code, field }: { code: string; field: string | null }) => [code, field]);
        assert.deepEqual([found.ok, codes], [expected.length === 0, expected], JSON.stringify(body));
      }
      await service.call('GET', '/agents', { key });
      assert.deepEqual(await look(), before);
      const codeOf = async (agent: string) =>
        (await tryApproval(service, approval({}, { agent: { id: agent } }), { key })).body.errors.map(({ code }: { code: string }) => code);
      for (const call_id of ['d', 'e']) await service.call('POST', '/approvals', { body: approval({ call_id }), key });
      assert.deepEqual(await codeOf('refunds'), ['LOOP_GUARD'], 'three packets of this agent are open');
      assert.deepEqual(await codeOf('other'), ['RATE_LIMITED']);
      const bound = await service.call('POST', '/keys', { body: { name: 'b', scopes: ['work'], agents: ['other'] }, key });
      assert.equal((await tryApproval(service, approval(), { key: bound.body.key })).status, 403);
      assert.equal((await tryApproval(service, undefined, { key, raw: '{"action":' } as CallOptions)).status, 400);
    });

    test('says all that a create would be refused for: its form, the contract, the chain and the daily cap', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_CHAIN_DEPTH_MAX: '1', SERVICE_OPEN_PACKETS_PER_AGENT: '2' } });
      const { key } = await newTenant(service, { handoffs_per_day: 2 });
      await service.call('PUT', '/agents/strict/contract', { body: contract, key });
      const codesOf = async (body: unknown) =>
        (await attempt(service, body, { key })).body.errors.map(({ code, field }: never) => [code, field]);

      assert.deepEqual((await attempt(service, packetRequest(), { key })).body, { ok: true, errors: [] });
      assert.deepEqual(await codesOf({ context: { summary: '' } }), [
        ['VALIDATION_ERROR', 'metadata'],
        ['VALIDATION_ERROR', 'context.summary'],
      ]);
      const source = { id: 'frontline', name: 'Frontline', framework: 'none' };
      const strict = { source_agent: source, target_agent: { id: 'strict', name: 'Strict' } };
      const refused = await attempt(service, packetRequest({ metadata: strict, context: { summary: 'A refund' } }), { key });
      const sentence = 'context.custom is required.';
      assert.deepEqual(refused.body, {
        ok: false,
        errors: [{ code: 'CONTRACT_VIOLATION', field: 'context.custom', message: sentence, detail: sentence }],
      });
      const parent = await createPacket(service, {}, key);
      assert.deepEqual(await codesOf(packetRequest({ parent_packet_id: parent.id })), [['LOOP_GUARD', null]]);
      await createPacket(service, {}, key);
      assert.deepEqual(await codesOf(packetRequest()), [['LOOP_GUARD', null]], 'two packets of this agent are open');
      const another = { source_agent: { ...source, id: 'another' }, target_agent: { id: 'free', name: 'Free' } };
      assert.deepEqual(await codesOf(packetRequest({ metadata: another })), [['RATE_LIMITED', null]]);
    });
  });
}

test('A request that only tries keeps the statuses of missing rights, bodies that are too large, and bodies that are no JSON [H361]', async (t) => {
  const service = await startService(t, { settings: { SERVICE_PACKET_BYTES_BUSINESS: '2000' } });
  const { id: tenant_id } = await newTenant(service);
  const restricted = await service.call('POST', '/keys', {
    body: { name: 'restricted', tenant_id, scopes: ['work'], agents: ['other'] },
  });
  const reader = await service.call('POST', '/keys', { body: { name: 'reader', tenant_id, scopes: ['read'] } });
  const cases: [string, CallOptions & { body?: unknown }, number][] = [
    ['no key', { key: null, body: packetRequest() }, 401],
    ['a key that may only read', { key: reader.body.key, body: packetRequest() }, 403],
    ['a key of another agent', { key: restricted.body.key, body: packetRequest() }, 403],
    ['a large body', { body: packetRequest({ context: { summary: 'x'.repeat(3000) } }) }, 413],
    ['no JSON', { raw: '{"context":', headers: { 'content-type': 'application/json' } }, 400],
    ['no body', { raw: '', headers: { 'content-type': 'application/json' } }, 400],
    ['another type', { raw: 'text', headers: { 'content-type': 'text/plain' } }, 415],
  ];
  for (const [name, options, status] of cases) {
    const answer = await service.call('POST', '/packets?dry_run=true', options);
    assert.equal(answer.status, status, `${name}: ${answer.text}`);
  }
  const unclear = await service.call('POST', '/packets?dry_run=perhaps', { body: packetRequest() });
  assert.deepEqual([unclear.status, unclear.body.field], [400, 'dry_run']);
  const made = await service.call('POST', '/packets?dry_run=false', { body: packetRequest() });
  assert.equal(made.status, 201, made.text);
});

test('Elsewhere dry_run is refused [H361]', async (t) => {
  const service = await startService(t);
  const { id } = await createPacket(service);
  const paths: [string, string, unknown][] = [
    ['POST', `/packets/${id}/chain`, packetRequest()],
    ['POST', '/packets/batch', { packets: [packetRequest()] }],
    ['PATCH', `/packets/${id}`, { status: 'expired' }],
    ['PUT', '/agents/a/contract', { schema: {} }],
    ['DELETE', `/packets/${id}`, undefined],
  ];
  for (const [method, path, body] of paths) {
    const answer = await service.call(method, `${path}?dry_run=true`, { ...(body === undefined ? {} : { body }) });
    assert.deepEqual([answer.status, answer.body.field], [400, 'dry_run'], `${method} ${path}: ${answer.text}`);
  }
});

test('A request that only tries counts as a request', async (t) => {
  const service = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '3' } });
  const { key } = await newTenant(service);
  for (let index = 0; index < 3; index += 1) assert.equal((await attempt(service, packetRequest(), { key })).status, 200);
  const limited = await attempt(service, packetRequest(), { key });
  assert.deepEqual([limited.status, limited.body.limit.name], [429, 'minute']);
});
