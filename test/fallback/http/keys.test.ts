import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { chainRequest, createChain, startFallback } from '../../support/fallback.ts';

const keyed = { SERVICE_API_KEYS: 'bare-key-1, ci:labelled-key-2 ,reader:reading-key-3,Viewer:viewing-key-4' };
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe('Keys', () => {
  test('a key is accepted in X-API-Key, as a bearer token, and in the query', async (t) => {
    const service = await startFallback(t, { environment: keyed });
    for (const key of ['bare-key-1', 'labelled-key-2']) {
      assert.equal((await service.call('GET', '/chains', { headers: { 'x-api-key': key } })).status, 200);
      assert.equal((await service.call('GET', '/chains', { headers: bearer(key) })).status, 200);
      assert.equal((await service.call('GET', '/chains', { headers: { authorization: `bearer  ${key}` } })).status, 200);
      assert.equal((await service.call('GET', `/chains?limit=1&api_key=${key}`)).status, 200);
      assert.equal((await service.call('POST', `/chains?api_key=${key}`, { body: chainRequest() })).status, 201);
    }
  });

  test('401 with WWW-Authenticate: without a key, with a wrong one, with a repeated one; nothing else is revealed [F89]', async (t) => {
    const service = await startFallback(t, { environment: keyed });
    const attempts = [
      {},
      { headers: { 'x-api-key': 'wrong' } },
      { headers: { 'x-api-key': '' } },
      { headers: { 'x-api-key': 'ci:labelled-key-2' } },
      { headers: bearer('wrong') },
      { headers: { authorization: 'Basic YmFyZS1rZXktMQ==' } },
    ];
    for (const attempt of attempts) {
      for (const [method, path] of [
        ['GET', '/chains'],
        ['POST', '/chains'],
        ['GET', '/chains/x'],
        ['GET', '/access'],
      ] as const) {
        const { status, body, headers } = await service.call(method, path, attempt);
        assert.deepEqual([status, body.code], [401, 'UNAUTHORIZED'], `${method} ${path} ${JSON.stringify(attempt)}`);
        assert.match(String(headers['www-authenticate']), /^Bearer /);
      }
    }
    assert.equal((await service.call('GET', '/chains?api_key=bare-key-1&api_key=bare-key-1')).status, 401);
  });

  test('the first source present decides: X-API-Key, then the bearer token, then the query [F89]', async (t) => {
    const service = await startFallback(t, { environment: keyed });
    const statusOf = async (headers: Record<string, string>, query = '') =>
      (await service.call('GET', `/chains${query}`, { headers })).status;
    assert.equal(await statusOf({ 'x-api-key': 'wrong', ...bearer('bare-key-1') }, '?api_key=bare-key-1'), 401);
    assert.equal(await statusOf({ 'x-api-key': 'bare-key-1', ...bearer('wrong') }, '?api_key=wrong'), 200);
    assert.equal(await statusOf(bearer('wrong'), '?api_key=bare-key-1'), 401);
    assert.equal(await statusOf(bearer('bare-key-1'), '?api_key=wrong'), 200);
  });

  test('the labels read, reader and viewer permit reading and exporting only; every other label, and none, everything [F85]', async (t) => {
    const service = await startFallback(t, { environment: keyed });
    const writing = { 'x-api-key': 'labelled-key-2' };
    const { id } = (await service.call('POST', '/chains', { body: chainRequest(), headers: writing })).body;
    for (const key of ['reading-key-3', 'viewing-key-4']) {
      const headers = { 'x-api-key': key };
      for (const path of ['/chains', `/chains/${id}`, `/chains/${id}/routing`, '/access']) {
        assert.equal((await service.call('GET', path, { headers })).status, 200, path);
      }
      assert.equal((await service.call('POST', `/chains/${id}/export?format=json`, { headers })).status, 200);
      const template = await service.call('POST', '/export-template', { headers, body: { chain_id: id, template: '{{ chain.name }}' } });
      assert.deepEqual([template.status, template.body.output], [200, 'production-chain']);
      for (const [method, path, body] of [
        ['POST', '/chains', chainRequest()],
        ['PATCH', `/chains/${id}`, { name: 'other' }],
        ['DELETE', `/chains/${id}`, undefined],
        ['POST', '/import?format=json', { content: '{}' }],
      ] as const) {
        const answer = await service.call(method, path, { headers, ...(body === undefined ? {} : { body }) });
        assert.deepEqual([answer.status, answer.body.code], [403, 'FORBIDDEN'], `${method} ${path}`);
      }
    }
    assert.equal((await service.call('GET', `/chains/${id}`, { headers: writing })).body.name, 'production-chain');
  });

  test("GET /access returns the key's label and rights [F89]", async (t) => {
    const service = await startFallback(t, { environment: keyed, flags: { allowLive: 'true' } });
    const accessOf = async (key: string) => (await service.call('GET', '/access', { headers: { 'x-api-key': key } })).body;
    assert.deepEqual(Object.keys(await accessOf('bare-key-1')), ['label', 'may_write', 'live_allowed', 'version']);
    const { label, may_write, live_allowed } = await accessOf('reading-key-3');
    assert.deepEqual({ label, may_write, live_allowed }, { label: 'reader', may_write: false, live_allowed: true });
    assert.equal((await accessOf('bare-key-1')).label, null);
    const open = await startFallback(t);
    assert.deepEqual((await open.call('GET', '/access')).body.live_allowed, false);
  });

  test('paths that need no key: health, readiness, metrics, the description, the explorers and the dashboard [F89]', async (t) => {
    const service = await startFallback(t, { environment: keyed });
    for (const path of ['/health', '/ready', '/metrics', '/docs', '/redoc', '/openapi.json', '/']) {
      assert.equal((await service.call('GET', path)).status, 200, path);
    }
    for (const path of ['/dashboard', '/dashboard/', '/dashboard/chains/1'])
      assert.notEqual((await service.call('GET', path)).status, 401, path);
  });

  test('labels name the caller in the log; no key ever does [F85, F89]', async (t) => {
    const service = await startFallback(t, { environment: keyed });
    await service.call('GET', '/chains?api_key=labelled-key-2');
    await service.call('GET', '/chains?api_key=bare-key-1');
    await service.call('GET', '/chains/x?api_key=a-wrong-key');
    await service.call('GET', '/nowhere?api_key=a-wrong-key');
    const requests = service.logs.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    assert.deepEqual(
      requests.map(({ label }) => label),
      ['ci', undefined, undefined, undefined],
    );
    assert.ok(!service.logs.join('').match(/labelled-key-2|bare-key-1|a-wrong-key|tenant/));
  });

  test('without configured keys everybody may call, whatever key they send, and a warning says so at the start [F88]', async (t) => {
    const service = await startFallback(t);
    assert.match(service.fallback.warnings.join('\n'), /No API key is configured/);
    for (const headers of [{}, { 'x-api-key': 'anything' }]) assert.equal((await service.call('GET', '/chains', { headers })).status, 200);
    await createChain(service);
    const closed = await startFallback(t, { environment: keyed });
    assert.deepEqual(closed.fallback.warnings, []);
  });

  test('metrics require their token if one is set [F93]', async (t) => {
    const service = await startFallback(t, { environment: { SERVICE_METRICS_TOKEN: 'metrics-token' } });
    assert.equal((await service.call('GET', '/metrics')).status, 401);
    const answer = await service.call('GET', '/metrics', { headers: bearer('metrics-token') });
    assert.match(answer.text, /^fallback_chains 0$/m);
  });
});
