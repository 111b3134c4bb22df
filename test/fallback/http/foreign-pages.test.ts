import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { routes } from '../../../src/fallback/model/api.ts';
import { chainRequest, startFallback, type TestFallback } from '../../support/fallback.ts';

const key = 'a-configured-key-of-the-desk';
const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';

/** The status of each route of the API for a request with these headers and, for writes, a body of this type. */
async function statusesOf(service: TestFallback, { type = 'application/json', query = '', ...headers }: Record<string, string>) {
  const found = new Map<string, number>();
  for (const { method, path } of Object.values(routes)) {
    const raw = method === 'POST' || method === 'PATCH' ? JSON.stringify(chainRequest()) : undefined;
    const options = {
      headers: { ...headers, ...(raw === undefined ? {} : { 'content-type': type }) },
      ...(raw === undefined ? {} : { raw }),
    };
    found.set(`${method} ${path}`, (await service.call(method, path.replace('{id}', id) + query, options)).status);
  }
  return found;
}

describe('A service without keys', () => {
  test('answers no request under a foreign name (DNS rebinding), whatever key it carries [F87]', async (t) => {
    const service = await startFallback(t);
    for (const more of [{}, { 'x-api-key': 'x' }, { authorization: 'Bearer x' }, { query: '?api_key=x' }])
      for (const [route, status] of await statusesOf(service, { host: 'evil.example', ...more })) assert.equal(status, 403, route);
    for (const host of ['localhost:8000', '127.0.0.1:8000', '[::1]:8000'])
      assert.equal((await service.call('GET', '/chains', { headers: { host } })).status, 200, host);
    assert.equal((await service.call('GET', '/dashboard', { headers: { host: 'evil.example' } })).status, 403);
  });

  test('takes no write from a page of another origin, and no body that a form can send [F87]', async (t) => {
    const service = await startFallback(t);
    const writes = (found: Map<string, number>) => [...found].filter(([route]) => !route.startsWith('GET'));
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { origin: 'http://localhost:3000' },
    ])
      for (const [route, status] of writes(await statusesOf(service, headers))) assert.equal(status, 403, route);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      const found = await statusesOf(service, { type });
      for (const [route, status] of found) if (/^(POST|PATCH)/.test(route)) assert.equal(status, 403, `${route} ${type}`);
    }
    assert.deepEqual((await service.call('GET', '/chains')).body, []);
    const own = { host: 'localhost:8000', origin: 'http://localhost:8000', 'sec-fetch-site': 'same-origin' };
    assert.equal((await service.call('POST', '/chains', { body: chainRequest(), headers: own })).status, 201);
    const text = { 'content-type': 'text/plain', 'x-requested-with': 'curl' };
    const imported = await service.call('POST', '/import', { raw: JSON.stringify(chainRequest()), headers: text });
    assert.equal(imported.status, 201, imported.text);
  });
});

test('A service with keys answers under any name and to any origin, since a foreign page has no key [F87]', async (t) => {
  const service = await startFallback(t, { environment: { SERVICE_API_KEYS: `desk:${key}` } });
  const headers = { host: 'chains.example', origin: 'https://desk.example', 'x-api-key': key };
  assert.equal((await service.call('POST', '/chains', { body: chainRequest(), headers })).status, 201);
  assert.equal((await service.call('POST', '/chains', { body: chainRequest(), headers: { ...headers, 'x-api-key': 'x' } })).status, 401);
});
