import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { routes } from '../../../src/fallback/model/api.ts';
import type { Route } from '../../../src/kit/route.ts';
import { Turns } from '../../../src/kit/turns.ts';
import { isId } from '../../../src/kit/uuid.ts';
import { chainRequest, createChain, shareFallback } from '../../support/fallback.ts';
import { stores } from '../../support/stores.ts';

const unknownId = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';

for (const store of stores) {
  describe(`Chains on ${store.name}`, () => {
    test('201: a chain has an id, its defaults, a version, its times, and is found at Location [F1, F9]', async () => {
      const service = await shareFallback(store);
      const answer = await service.call('POST', '/chains', {
        body: chainRequest({ description: 'For the desk', metadata: { team: 'a' } }),
      });
      assert.equal(answer.status, 201);
      const { id, version, created_at, updated_at, name, description, metadata, providers } = answer.body;
      assert.ok(isId(id));
      assert.deepEqual(
        { version, created_at, updated_at },
        { version: 1, created_at: '2026-03-01T09:30:00.000Z', updated_at: '2026-03-01T09:30:00.000Z' },
      );
      assert.deepEqual({ name, description, metadata }, { name: 'production-chain', description: 'For the desk', metadata: { team: 'a' } });
      assert.deepEqual(providers[0].timeout_ms, 30_000);
      assert.equal(answer.headers.etag, '"1"');
      const found = await service.call('GET', String(answer.headers.location));
      assert.equal(found.status, 200);
      assert.equal(found.text, answer.text);
      assert.equal(found.headers.etag, '"1"');
    });

    test('a chain created or renamed to the name of another gets a warning with the id of the other [F1]', async () => {
      const service = await shareFallback(store);
      const named = ({ warnings }: { warnings: { code: string; detail: string }[] }) =>
        warnings.filter(({ code }) => code === 'same_name').map(({ detail }) => detail);
      const first = await createChain(service, { name: 'twice' });
      const second = await createChain(service, { name: 'twice' });
      const third = await createChain(service, { name: 'Twice' });
      const said = [`Another chain, ${first.id}, had the same name when this one was saved.`];
      assert.deepEqual([named(first), named(second), named(third)], [[], said, []]);
      const renamed = await service.call('PATCH', `/chains/${third.id}`, { body: { name: 'twice' } });
      assert.deepEqual(named(renamed.body), said);
      const alone = await service.call('PATCH', `/chains/${third.id}`, { body: { name: 'thrice' } });
      assert.deepEqual(named(alone.body), []);
    });

    test('a list that does not fit into one piece is still one array, whole or a part, and never 503 [F46]', async () => {
      const service = await shareFallback(store);
      const metadata = { text: 'x'.repeat(400_000) };
      const ids: string[] = [];
      for (let index = 0; index < 7; index += 1) ids.push((await createChain(service, { name: `chain ${index}`, metadata })).id);
      const listed = async (query: string) => {
        const { status, body, headers } = await service.call('GET', `/chains${query}`);
        assert.deepEqual([status, headers['x-total-count']], [200, '7']);
        return body.map(({ id }: { id: string }) => id);
      };
      assert.deepEqual(await listed(''), ids);
      assert.deepEqual(await listed('?offset=1&limit=5'), ids.slice(1, 6));
      assert.deepEqual(await listed('?offset=6'), ids.slice(6));
      assert.deepEqual(await listed('?offset=7'), []);
    });

    test('the list is an array, oldest first: all chains or a page; X-Total-Count has the total [F9]', async () => {
      const service = await shareFallback(store);
      assert.deepEqual((await service.call('GET', '/chains')).body, []);
      const names: string[] = [];
      for (let index = 0; index < 5; index += 1) {
        names.push((await createChain(service, { name: `chain ${index}` })).name);
        if (index % 2 === 0) service.clock.turn(1);
      }
      const namesOf = async (query: string) => {
        const { status, body, headers } = await service.call('GET', `/chains${query}`);
        assert.deepEqual([status, headers['x-total-count']], [200, '5']);
        return body.map(({ name }: { name: string }) => name);
      };
      assert.deepEqual(await namesOf(''), names);
      assert.deepEqual(await namesOf('?limit=2'), names.slice(0, 2));
      assert.deepEqual(await namesOf('?limit=2&offset=4'), names.slice(4));
      assert.deepEqual(await namesOf('?offset=3'), names.slice(3));
      assert.deepEqual(await namesOf('?offset=9'), []);
      for (const bad of ['limit=0', 'limit=x', 'offset=-1', 'page=2']) {
        const { status, body } = await service.call('GET', `/chains?${bad}`);
        assert.deepEqual([status, body.field], [400, bad.split('=')[0]]);
      }
    });

    test('a change is a merge patch: fields by name, whole arrays, null for a default; version, ETag and time advance [F9]', async () => {
      const service = await shareFallback(store);
      const before = await createChain(service, { description: 'Old', metadata: { keep: 1, drop: { a: 1, b: 2 } } });
      service.clock.turn(5);
      const { status, body, headers } = await service.call('PATCH', `/chains/${before.id}`, {
        body: {
          name: 'renamed',
          description: null,
          metadata: { drop: { a: null }, add: [1] },
          fallback_rules: [{ condition: 'any', action: 'failover' }],
        },
      });
      assert.equal(status, 200);
      assert.deepEqual([body.name, body.description, body.version, headers.etag], ['renamed', null, 2, '"2"']);
      assert.deepEqual(body.metadata, { keep: 1, drop: { b: 2 }, add: [1] });
      assert.deepEqual(
        body.fallback_rules.map(({ condition }: { condition: string }) => condition),
        ['any'],
      );
      assert.deepEqual(body.providers, before.providers);
      assert.deepEqual([body.created_at, body.updated_at], ['2026-03-01T09:30:00.000Z', '2026-03-01T09:30:05.000Z']);
      assert.equal((await service.call('GET', `/chains/${before.id}`)).text, JSON.stringify(body));
    });

    test('400: a change with an invalid result changes nothing [F9]', async () => {
      const service = await shareFallback(store);
      const { id } = await createChain(service, { fallback_rules: [{ condition: 'any', action: 'retry', providers: ['claude'] }] });
      const before = (await service.call('GET', `/chains/${id}`)).text;
      const bad: [body: unknown, field: string | null][] = [
        [{ providers: [] }, 'providers'],
        [{ name: null }, 'name'],
        [{ id: 'x' }, 'id'],
        [{ providers: [{ name: 'other', model_id: 'm' }] }, 'fallback_rules.0.providers.0'],
        [[], null],
      ];
      for (const [body, field] of bad) {
        const answer = await service.call('PATCH', `/chains/${id}`, { body });
        assert.deepEqual([answer.status, answer.body.field], [400, field], JSON.stringify(body));
      }
      assert.equal((await service.call('GET', `/chains/${id}`)).text, before);
    });

    test('412: with another version in If-Match nothing is changed or deleted [F9]', async () => {
      const service = await shareFallback(store);
      const { id } = await createChain(service);
      const headers = { 'if-match': '"1"' };
      assert.equal((await service.call('PATCH', `/chains/${id}`, { body: { name: 'b' }, headers })).status, 200);
      const late = await service.call('PATCH', `/chains/${id}`, { body: { name: 'c' }, headers });
      assert.deepEqual([late.status, late.body.code], [412, 'PRECONDITION_FAILED']);
      assert.equal((await service.call('DELETE', `/chains/${id}`, { headers })).status, 412);
      assert.equal((await service.call('GET', `/chains/${id}`)).body.name, 'b');
      assert.equal((await service.call('DELETE', `/chains/${id}`, { headers: { 'if-match': '"2"' } })).status, 204);
    });

    test('304: an unchanged chain is answered without a body [F21]', async () => {
      const service = await shareFallback(store);
      const { id } = await createChain(service);
      const answer = await service.call('GET', `/chains/${id}`, { headers: { 'if-none-match': '"1"' } });
      assert.deepEqual([answer.status, answer.text, answer.headers.etag], [304, '', '"1"']);
    });

    test('304: a list is answered without a body as long as no chain is created, changed or deleted [F21]', async () => {
      const service = await shareFallback(store);
      const { id } = await createChain(service);
      const list = (etag = '') => service.call('GET', '/chains', { headers: { 'if-none-match': etag } });
      const tags = new Set<string>();
      const isNew = async () => {
        const { status, headers } = await list([...tags].at(-1));
        assert.equal(status, 200);
        assert.ok(!tags.has(String(headers.etag)));
        tags.add(String(headers.etag));
        const again = await list([...tags].at(-1));
        assert.deepEqual([again.status, again.text, again.headers['x-total-count']], [304, '', headers['x-total-count']]);
      };
      await isNew();
      await service.call('PATCH', `/chains/${id}`, { body: { description: 'changed' } });
      await isNew();
      const second = await createChain(service);
      await isNew();
      await service.call('DELETE', `/chains/${id}`);
      await isNew();
      await service.call('DELETE', `/chains/${second.id}`);
      await createChain(service);
      await isNew();
    });

    test('concurrent changes are carried out one after the other, none is lost [F9]', async () => {
      const service = await shareFallback(store);
      const { id } = await createChain(service, { metadata: {} });
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) => service.call('PATCH', `/chains/${id}`, { body: { metadata: { [`m${index}`]: index } } })),
      );
      assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
      const { body } = await service.call('GET', `/chains/${id}`);
      assert.equal(body.version, 11);
      assert.equal(Object.keys(body.metadata).length, 10);
    });

    test('204: a chain is deleted; 404: a deleted chain, an unknown id, and a malformed id, on every route that takes one [F9]', async () => {
      const service = await shareFallback(store);
      const { id } = await createChain(service);
      assert.equal((await service.call('GET', `/chains/${id.toUpperCase()}`)).status, 200);
      const deleted = await service.call('DELETE', `/chains/${id}`);
      assert.deepEqual([deleted.status, deleted.text], [204, '']);
      for (const gone of [id, unknownId, 'x', 'a%00b']) {
        for (const { method, path, body } of Object.values<Route>(routes).filter(({ path }) => path.includes('{id}'))) {
          const answer = await service.call(method, path.replace('{id}', gone), body === undefined ? {} : { body: {} });
          assert.deepEqual([answer.status, answer.body.code], [404, 'NOT_FOUND'], `${method} ${path} ${gone}`);
        }
        const rendered = await service.call('POST', '/export-template', { body: { chain_id: unknownId, template: 'x' } });
        assert.deepEqual([rendered.status, rendered.body.code], [404, 'NOT_FOUND']);
      }
    });
  });
}

test('a list of more than 64 MiB is answered with every chain [F46]', async () => {
  const service = await shareFallback();
  const metadata = { text: 'x'.repeat(1_000_000) };
  for (let index = 0; index < 68; index += 1) await createChain(service, { metadata });
  const { status, body, headers } = await service.call('GET', '/chains');
  assert.deepEqual([status, headers['x-total-count'], new Set(body.map(({ id }: { id: string }) => id)).size], [200, '68', 68]);
});

test('400: a parameter of another kind, and one that holds a secret [F79]', async () => {
  const service = await shareFallback();
  const send = (params: unknown, model_id = 'azure/gpt') =>
    service.call('POST', '/chains', { body: { name: 'a', providers: [{ name: 'a', model_id, api_key_env: 'KEY', params }] } });
  const faults: [Record<string, unknown>, string][] = [
    [{ aws_region_name: 'x' }, 'params.aws_region_name'],
    [{ client_secret: 'x' }, 'params.client_secret'],
    [{ api_version: 'sk-abcdefghijklmnop1234' }, 'params.api_version'],
    [{ headers: { 'x-api-key': 'x' } }, 'params.headers'],
  ];
  for (const [params, field] of faults) {
    const { status, body, text } = await send(params);
    assert.deepEqual([status, body.field], [400, `providers.0.${field}`], text);
    assert.ok(!text.includes('sk-'));
  }
  const kept = { api_version: '2024-10-21', client_secret: 'os.environ/SECRET', headers: { 'x-team': 'a' } };
  const { status, body } = await send(kept);
  assert.deepEqual([status, body.providers[0].params, body.providers[0].provider], [201, kept, 'azure']);
  assert.ok(body.warnings.some(({ code }: { code: string }) => code === 'not_callable'));
  assert.equal((await send({ whatever: 1 }, 'own-model')).status, 201);
});

// These requests are refused before the store is used, so one store is enough.
describe('POST /chains', () => {
  test('400: all faults are reported at once, those of the schema and the others [F1]', async () => {
    const service = await shareFallback();
    const { status, body } = await service.call('POST', '/chains', {
      body: chainRequest({
        surprise: 1,
        providers: [
          { name: 'a', model_id: 'm', api_key_env: 'sk-abcdefghijklmnopqrstuvwx' },
          { name: 'a', api_base: 'ftp://x' },
        ],
        fallback_rules: [{ condition: 'bad_weather', action: 'retry', providers: ['nobody'] }],
      }),
    });
    assert.equal(status, 400);
    assert.deepEqual(body.errors.map(({ field }: { field: string }) => field).sort(), [
      'fallback_rules.0.condition',
      'fallback_rules.0.providers.0',
      'providers.0.api_key_env',
      'providers.1.api_base',
      'providers.1.model_id',
      'providers.1.name',
      'surprise',
    ]);
    assert.ok(!JSON.stringify(body).includes('sk-abc'));
    assert.equal((await service.call('GET', '/chains')).headers['x-total-count'], '0');
  });
});

test('a large body and what is derived of its chain take their turns of the event loop together', async (t) => {
  const service = await shareFallback(stores[0]!);
  const next = t.mock.method(Turns.prototype, 'next');
  const description = 'x'.repeat(2_000);
  const providers = Array.from({ length: 50 }, (_, index) => ({
    name: `p-${index}`,
    model_id: 'openai/gpt-4o',
    api_base: `https://example.com/${description}`,
  }));
  const { id } = await createChain(service, { providers });
  assert.equal((await service.call('GET', `/chains/${id}/routing`)).status, 200);
  assert.deepEqual([next.mock.callCount() >= 2, new Set(next.mock.calls.map((call) => call.this)).size], [true, 1]);
});
