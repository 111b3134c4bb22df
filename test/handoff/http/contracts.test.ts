import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { doubled } from '../../support/hostile-schemas.ts';
import { historyOf } from '../../support/life.ts';
import { walk } from '../../support/pages.ts';
import { type CallOptions, createPacket, newTenant, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';

/** A contract that asks for the number of an order. */
const needsOrder = {
  schema: {
    type: 'object',
    properties: {
      context: {
        type: 'object',
        required: ['custom'],
        properties: {
          custom: {
            type: 'object',
            required: ['order_id'],
            properties: { order_id: { type: 'string', pattern: '^ORD-[0-9]+$' } },
          },
        },
      },
    },
  },
  description: 'Refunds need the order: custom.order_id, such as ORD-4711.',
  examples: [{ context: { summary: 'A refund', custom: { order_id: 'ORD-1' } } }],
};

const put = (service: TestService, agent: string, body: unknown = needsOrder, options: CallOptions = {}) =>
  service.call('PUT', `/agents/${encodeURIComponent(agent)}/contract`, { body, ...options });

const requestFor = (agent: string, custom: Record<string, unknown> | undefined = undefined, more: Record<string, unknown> = {}) => ({
  metadata: { source_agent: { id: 'frontline', name: 'Frontline', framework: 'none' }, target_agent: { id: agent, name: agent } },
  context: { summary: 'A refund', ...(custom === undefined ? {} : { custom }) },
  ...more,
});

const create = (service: TestService, agent: string, custom?: Record<string, unknown>, options: CallOptions = {}) =>
  service.call('POST', '/packets', { body: requestFor(agent, custom), ...options });

async function published(service: TestService, agent: string, body: unknown = needsOrder): Promise<void> {
  const answer = await put(service, agent, body);
  assert.equal(answer.status, 201, answer.text);
}

/** The key of the service's tenant with these rights. */
async function keyWith(service: TestService, rights: object): Promise<string> {
  const { body, text } = await service.call('POST', '/keys', { body: { name: 'restricted', ...rights } });
  assert.ok(body.key, text);
  return body.key;
}

for (const store of stores) {
  describe(`Contracts of agents, on ${store.name}`, () => {
    test('a packet that a contract refuses does not count against the daily quota [H360]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free', handoffs_per_day: 1 });
      assert.equal((await put(service, 'billing', needsOrder, { key })).status, 201);
      const packets = [requestFor('billing'), requestFor('billing', { order_id: 'ORD-1' })];
      const answer = await service.call('POST', '/packets/batch', { key, body: { packets } });
      assert.equal(answer.status, 201, answer.text);
      assert.deepEqual([answer.body.created.length, answer.body.errors.length, answer.body.errors[0].index], [1, 1, 0]);
    });

    test('a contract is published, read, changed to its next version, and removed [H360]', async () => {
      const service = await shareService(store);
      const first = await put(service, 'Resolver/1');
      assert.equal(first.status, 201, first.text);
      assert.equal(first.headers.etag, '"1"');
      const { created_at, updated_at, ...rest } = first.body;
      assert.deepEqual(rest, { agent_id: 'Resolver/1', version: 1, ...needsOrder });
      assert.equal(created_at, updated_at);

      const got = await service.call('GET', '/agents/Resolver%2F1/contract');
      assert.deepEqual(got.body, first.body);
      assert.equal(got.headers.etag, '"1"');

      service.clock.turn(1);
      const same = await put(service, 'Resolver/1');
      assert.deepEqual([same.status, same.body], [200, first.body], 'the same document changes nothing');

      const next = await put(service, 'Resolver/1', { schema: {} });
      assert.equal(next.status, 200);
      assert.equal(next.headers.etag, '"2"');
      assert.deepEqual(
        { ...next.body, updated_at: undefined },
        { ...first.body, version: 2, schema: {}, description: null, examples: [], updated_at: undefined },
      );
      assert.notEqual(next.body.updated_at, created_at);

      assert.equal((await service.call('DELETE', '/agents/Resolver%2F1/contract')).status, 204);
      assert.equal((await service.call('GET', '/agents/Resolver%2F1/contract')).status, 404);
      assert.equal((await service.call('DELETE', '/agents/Resolver%2F1/contract')).status, 404);
      const again = await put(service, 'Resolver/1');
      assert.deepEqual([again.status, again.body.version], [201, 3], 'versions go on after a removal');
    });

    test('If-Match and If-None-Match make a change depend on the version', async () => {
      const service = await shareService(store);
      const withHeader = (name: string, value: string, body: unknown = needsOrder) =>
        put(service, 'guarded', body, { headers: { [name]: value } });
      assert.equal((await withHeader('If-Match', '"1"')).status, 412, 'the agent has none');
      assert.equal((await withHeader('If-None-Match', '*')).status, 201);
      const taken = await withHeader('If-None-Match', '*');
      assert.deepEqual([taken.status, taken.body.code], [412, 'PRECONDITION_FAILED']);
      assert.equal((await withHeader('If-Match', '"1"', { schema: {} })).body.version, 2);
      const stale = await withHeader('If-Match', '"1"', { schema: { type: 'object' } });
      assert.equal(stale.status, 412);
      assert.match(stale.body.detail, /"2"/);
      assert.equal((await service.call('DELETE', '/agents/guarded/contract', { headers: { 'If-Match': '"1"' } })).status, 412);
      assert.equal((await service.call('GET', '/agents/guarded/contract', { headers: { 'If-None-Match': '"2"' } })).status, 304);
      assert.equal((await service.call('DELETE', '/agents/guarded/contract', { headers: { 'If-Match': '"2"' } })).status, 204);
    });

    test('of concurrent first publications exactly one is new', async () => {
      const service = await shareService(store);
      const answers = await Promise.all(Array.from({ length: 6 }, (_, index) => put(service, 'raced', { schema: { title: `${index}` } })));
      const versions = answers.map(({ body }) => body.version).sort();
      assert.deepEqual(versions, [1, 2, 3, 4, 5, 6]);
      assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    });

    test('a contract needs the scope manage, or work with a key whose agents contain the id', async () => {
      const service = await shareService(store);
      const cases: [object, number, string?][] = [
        [{ scopes: ['manage'] }, 201],
        [{ scopes: ['work'], agents: ['resolver', 'other'] }, 200],
        [{ scopes: ['work'], agents: ['other'] }, 403, 'resolver'],
        [{ scopes: ['work'] }, 403, 'manage'],
        [{ scopes: ['read', 'respond'] }, 403],
      ];
      for (const [rights, status, word = ''] of cases) {
        const key = await keyWith(service, rights);
        const answer = await put(service, 'resolver', needsOrder, { key });
        assert.equal(answer.status, status, `${JSON.stringify(rights)}: ${answer.text}`);
        if (status === 403) {
          assert.ok(answer.body.detail.includes(word), answer.text);
          assert.equal((await service.call('DELETE', '/agents/resolver/contract', { key })).status, 403);
        }
      }
      const worker = await keyWith(service, { scopes: ['work'] });
      assert.equal((await service.call('GET', '/agents/resolver/contract', { key: worker })).status, 200, 'a sender may read it');
    });

    test('a list of contracts has all of them in pages by cursor, by the ids of the agents', async () => {
      const service = await shareService(store);
      const agents = ['b', 'a', 'é', 'C', 'z'];
      for (const agent of agents) await published(service, agent);
      await service.call('DELETE', '/agents/z/contract');
      const pages = await walk(async (query) => (await service.call('GET', `/contracts?${query}`)).body, 'limit=2');
      assert.deepEqual(
        pages.map(({ contracts }) => contracts.map(({ agent_id }: { agent_id: string }) => agent_id)),
        [
          ['C', 'a'],
          ['b', 'é'],
        ],
      );
      assert.equal((await service.call('GET', '/contracts?cursor=nonsense')).status, 400);
    });

    test('the list of agents has the version of the contract of each', async () => {
      const service = await shareService(store);
      await createPacket(service);
      await published(service, 'with');
      const { body } = await service.call('GET', '/agents');
      const versions = body.agents.map(({ agent_id, contract }: { agent_id: string; contract: number | null }) => [agent_id, contract]);
      assert.deepEqual(versions.sort(), [
        ['frontline', null],
        ['with', 1],
      ]);
    });

    test('a packet that does not satisfy the contract is refused with each fault, and one that does has the version in its history', async () => {
      const service = await shareService(store);
      await published(service, 'resolver');
      const missing = await create(service, 'resolver');
      assert.equal(missing.status, 400);
      const { request_id: _, ...body } = missing.body;
      const detail = 'context.custom is required.';
      assert.deepEqual(body, {
        detail: `The contract of resolver (version 1) refuses the packet: ${detail}`,
        code: 'CONTRACT_VIOLATION',
        field: 'context.custom',
        status_code: 400,
        errors: [{ field: 'context.custom', message: detail, detail }],
        contract: { agent_id: 'resolver', version: 1, description: needsOrder.description },
      });
      const wrong = await create(service, 'resolver', { order_id: '4711' });
      assert.equal(wrong.body.field, 'context.custom.order_id');
      assert.match(wrong.body.errors[0].detail, /^context\.custom\.order_id must match the pattern \^ORD-\[0-9\]\+\$\.$/);

      const made = await create(service, 'resolver', { order_id: 'ORD-4711' });
      assert.equal(made.status, 201, made.text);
      assert.deepEqual((await historyOf(service, made.body.id))[0]?.details, { contract_version: 1 });
      const free = await create(service, 'another');
      assert.deepEqual((await historyOf(service, free.body.id))[0]?.details, {});
      assert.equal((await service.call('GET', '/packets')).body.total, 2);
    });

    test('all faults are listed, at most 100', async () => {
      const service = await shareService(store);
      const names = Array.from({ length: 150 }, (_, index) => `field_${index}`);
      await published(service, 'strict', { schema: { properties: { context: { properties: { custom: { required: names } } } } } });
      const { body } = await create(service, 'strict', {});
      assert.match(body.detail, /\. There are 99 more faults\.$/);
      assert.match(
        (await create(service, 'strict', Object.fromEntries(names.slice(2).map((name) => [name, 1])))).body.detail,
        /\. There is 1 more fault\.$/,
      );
      assert.equal(body.errors.length, 100);
      assert.deepEqual(body.errors[0], {
        field: 'context.custom.field_0',
        message: 'context.custom.field_0 is required.',
        detail: 'context.custom.field_0 is required.',
      });
    });

    test('a chain and a batch are checked as a single packet is', async () => {
      const service = await shareService(store);
      await published(service, 'resolver');
      const parent = await createPacket(service, requestFor('anyone'));
      const chain = await service.call('POST', `/packets/${parent.id}/chain`, { body: requestFor('resolver') });
      assert.deepEqual([chain.status, chain.body.code], [400, 'CONTRACT_VIOLATION']);

      const batch = await service.call('POST', '/packets/batch', {
        body: { packets: [requestFor('resolver'), requestFor('resolver', { order_id: 'ORD-1' }), requestFor('other')] },
      });
      assert.equal(batch.status, 201, batch.text);
      assert.equal(batch.body.created.length, 2);
      const [{ index, code, errors, contract }] = batch.body.errors;
      assert.deepEqual([index, code, errors[0].field, contract.version], [0, 'CONTRACT_VIOLATION', 'context.custom', 1]);
      assert.deepEqual((await historyOf(service, batch.body.created[0].id))[0]?.details, { contract_version: 1 });

      const refused = await service.call('POST', '/packets/batch', { body: { packets: [requestFor('resolver'), requestFor('resolver')] } });
      assert.deepEqual([refused.status, refused.body.code, refused.body.errors.length], [400, 'VALIDATION_ERROR', 2]);
    });

    test('prices, country codes and named subschemas are checked as JSON Schema says', async () => {
      const service = await shareService(store);
      const custom = {
        properties: {
          price: { multipleOf: 0.01 },
          country: { anyOf: Array.from({ length: 120 }, (_, index) => ({ const: `C${index}` })) },
          place: { not: { $ref: '#country' } },
        },
      };
      const country = { $anchor: 'country', anyOf: custom.properties.country.anyOf };
      const schema = { properties: { context: { properties: { custom } } }, $defs: { country } };
      await published(service, 'shop', { schema });
      assert.equal((await create(service, 'shop', { price: 19.99, country: 'C119', place: 'here' })).status, 201);
      const { status, body } = await create(service, 'shop', { price: 19.999, country: 'X', place: 'C1' });
      assert.equal(status, 400);
      const fields = new Set(body.errors.map(({ field }: { field: string }) => field));
      for (const name of ['price', 'country', 'place']) assert.ok(fields.has(`context.custom.${name}`), JSON.stringify([...fields]));
    });

    test('a check that takes too many steps names the part that it had reached [H363]', async () => {
      const service = await shareService(store);
      const slow = doubled({ uniqueItems: true });
      const schema = { $defs: slow.$defs, properties: { context: { properties: { custom: { $ref: '#/$defs/d0' } } } } };
      await published(service, 'slow', { schema });
      const custom = { ['n'.repeat(1000)]: 1 };
      const example = await put(service, 'slow', { schema, examples: [{ context: { custom } }] });
      assert.deepEqual([example.status, example.body.field], [400, 'examples.0.context.custom']);
      assert.match(example.body.detail, /^examples\.0\.context\.custom can't be checked: /);
      const { status, body } = await create(service, 'slow', custom);
      assert.deepEqual([status, body.code, body.field], [400, 'CONTRACT_VIOLATION', 'context.custom']);
      assert.match(body.detail, /context\.custom can't be checked: the check took too many steps/);
    });

    test('a list of a thousand names within a keyword is too many keywords [H363]', async () => {
      const service = await shareService(store);
      const names = Array.from({ length: 1000 }, (_, index) => `n${index}`);
      const { status, body } = await put(service, 'wide', { schema: { dependentRequired: { a: names } } });
      assert.deepEqual([status, body.detail], [400, 'schema has 1001 keywords; at most 500 are allowed.']);
    });

    test('the check sees the request as it was sent: null is as if left out, and nothing has a default [H361]', async () => {
      const service = await shareService(store);
      const only = {
        type: 'object',
        additionalProperties: false,
        properties: { context: true, metadata: { not: { required: ['priority'] } } },
      };
      await published(service, 'plain', { schema: only });
      assert.equal((await service.call('POST', '/packets', { body: requestFor('plain') })).status, 201);
      assert.equal((await service.call('POST', '/packets', { body: requestFor('plain', undefined, { decisions: null }) })).status, 201);
      const withDecisions = await service.call('POST', '/packets', { body: requestFor('plain', undefined, { decisions: [] }) });
      assert.equal(withDecisions.body.field, 'decisions', withDecisions.text);
      // The question is no part of what the contract sees.
      const hitl = { required: false, reason: 'Money', question: 'Refund?' };
      assert.equal((await service.call('POST', '/packets', { body: requestFor('plain', undefined, { hitl }) })).status, 201);
    });

    test('packets that exist are not checked, nor is a PATCH', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, requestFor('late'));
      await published(service, 'late');
      const patched = await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'Still without an order' } } });
      assert.equal(patched.status, 200, patched.text);
      const claimed = await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'late' } });
      assert.equal(claimed.status, 200);
    });

    test('a repeated request gets its first answer, whatever the contract asks for by then [H360]', async () => {
      const service = await shareService(store);
      const headers = { 'Idempotency-Key': 'once' };
      const first = await create(service, 'changing', undefined, { headers });
      assert.equal(first.status, 201);
      await published(service, 'changing');
      const again = await create(service, 'changing', undefined, { headers });
      assert.deepEqual([again.status, again.body.id], [201, first.body.id]);
      assert.equal((await create(service, 'changing', undefined, { headers: { 'Idempotency-Key': 'twice' } })).status, 400);
      await service.call('DELETE', '/agents/changing/contract');
      assert.equal(
        (await create(service, 'changing', undefined, { headers: { 'Idempotency-Key': 'twice' } })).status,
        201,
        'a refusal is not kept',
      );
    });

    test('a contract applies to its tenant alone', async (t) => {
      const service = await startService(t, { store });
      const other = await newTenant(service);
      await published(service, 'resolver');
      assert.equal((await create(service, 'resolver', undefined, { key: other.key })).status, 201);
      assert.equal((await service.call('GET', '/agents/resolver/contract', { key: other.key })).status, 404);
      assert.deepEqual((await service.call('GET', '/contracts', { key: other.key })).body.contracts, []);
      assert.equal((await put(service, 'resolver', { schema: {} }, { key: other.key })).body.version, 1);
      assert.equal((await create(service, 'resolver')).status, 400);
    });

    test('publication, change and removal are in the audit log', async () => {
      const service = await shareService(store);
      await published(service, 'noted');
      await put(service, 'noted', { schema: {} });
      await service.call('DELETE', '/agents/noted/contract');
      const { body } = await service.call('GET', '/audit');
      const entries = body.entries
        .map(({ resource, action, details }: Record<string, unknown>) => ({ resource, action, details }))
        .filter(({ resource }: { resource: string }) => resource === 'contract');
      assert.deepEqual(entries, [
        { resource: 'contract', action: 'deleted', details: { agent_id: 'noted', version: 2 } },
        { resource: 'contract', action: 'updated', details: { agent_id: 'noted', version: 2 } },
        { resource: 'contract', action: 'created', details: { agent_id: 'noted', version: 1 } },
      ]);
    });
  });
}

for (const store of storesOfSeveral) {
  test(`A contract holds on every instance from the answer to its publication on, on ${store.name}`, async (t) => {
    const first = await startService(t, { store });
    const second = await startService(t, { databaseUrl: first.databaseUrl, clock: first.clock });
    assert.equal((await create(second, 'resolver')).status, 201);
    await published(first, 'resolver');
    assert.equal((await create(second, 'resolver')).body.contract?.version, 1);
    await put(second, 'resolver', { schema: {} });
    assert.equal((await create(first, 'resolver')).status, 201);
    await put(second, 'resolver');
    assert.equal((await create(first, 'resolver')).body.contract?.version, 3);
    assert.equal((await first.call('DELETE', '/agents/resolver/contract')).status, 204);
    assert.equal((await create(second, 'resolver')).status, 201);
  });
}

test('a schema that the service does not accept is refused with the path of what is wrong', async () => {
  const service = await shareService(stores[0]!);
  const cases: [unknown, string, RegExp][] = [
    [{ properties: { context: { frobnicate: 1 } } }, 'schema.properties.context.frobnicate', /no keyword/],
    [{ properties: { context: { type: 'text' } } }, 'schema.properties.context.type', /must be one of/],
    [{ $defs: { a: { $ref: 'https://example.com/schema' } } }, 'schema.$defs.a.$ref', /this document/],
    [{ $ref: '#/$defs/none' }, 'schema.$ref', /names no subschema/],
    [{ $ref: '#' }, 'schema', /cycle/],
    [{ properties: { a: { pattern: '(?=a)' } } }, 'schema.properties.a.pattern', /RE2/],
    [{ properties: { a: { format: 'postcode' } } }, 'schema.properties.a.format', /must be one of date,/],
    [{ allOf: [{ $id: 'https://example.com/x' }] }, 'schema.allOf.0.$id', /root/],
    [{ $async: true }, 'schema.$async', /not supported/],
    [{ $schema: 'http://json-schema.org/draft-07/schema#' }, 'schema.$schema', /2020-12/],
    [{ allOf: Array.from({ length: 500 }, () => ({})) }, 'schema', /501 keywords; at most 500/],
    [{ description: 'x'.repeat(33_000) }, 'schema', /bytes as JSON; at most 32768/],
  ];
  for (const [schema, field, sentence] of cases) {
    const { status, body, text } = await put(service, 'refusing', { schema });
    assert.deepEqual([status, body.code, body.field], [400, 'VALIDATION_ERROR', field], text);
    assert.match(body.detail, sentence);
  }
  assert.equal((await service.call('GET', '/agents/refusing/contract')).status, 404);
});

test('examples must satisfy the schema, five at most', async () => {
  const service = await shareService(stores[0]!);
  const wrong = await put(service, 'examples', { ...needsOrder, examples: [...needsOrder.examples, { context: { custom: {} } }] });
  assert.deepEqual([wrong.status, wrong.body.field], [400, 'examples.1.context.custom.order_id'], wrong.text);
  assert.equal((await put(service, 'examples', { schema: {}, examples: Array.from({ length: 6 }, () => ({})) })).body.field, 'examples');
  const large = await put(service, 'examples', { schema: {}, examples: [{ text: 'x'.repeat(33_000) }] });
  assert.match(large.body.detail, /^examples has .* at most 32768/);
});

test('a tenant has at most 1,000 contracts', async (t) => {
  const service = await startService(t, { store: stores[0]! });
  for (let index = 0; index < 1000; index += 100)
    await Promise.all(Array.from({ length: 100 }, (_, each) => put(service, `agent-${index + each}`, { schema: {} })));
  const { status, body } = await put(service, 'one more', { schema: {} });
  assert.deepEqual([status, body.code], [409, 'CONFLICT']);
  assert.match(body.detail, /1000 contracts/);
  assert.equal((await put(service, 'agent-7', { schema: { type: 'object' } })).status, 200, 'those that exist may change');
});
