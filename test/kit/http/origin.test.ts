import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { refuseForeignPages } from '../../../src/kit/http/origin.ts';
import { quietApp } from '../../support/app.ts';

type Headers = Record<string, string>;

/** Starts an application that refuses foreign pages; returns a function that sends a request and resolves with its status and sentence. */
function startOwn(t: TestContext, hosts: string[], origins: string[] = []) {
  const app = quietApp();
  t.after(() => app.close());
  refuseForeignPages(app, { hosts, origins, hasKey: ({ headers }) => headers['x-api-key'] !== undefined });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.route({ method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'], url: '/things', handler: () => ({}) });
  return async (method: 'GET' | 'POST' | 'DELETE', headers: Headers, url = '/things') => {
    const { statusCode, json } = await app.inject({ method, url, headers: { host: 'localhost:8000', ...headers } });
    return { status: statusCode, detail: json().detail as string | undefined };
  };
}

describe('without a key', () => {
  for (const host of [
    'localhost',
    'LocalHost:8000',
    'localhost.:8000',
    'app.localhost',
    '127.0.0.1:8000',
    '127.9.9.9',
    '[::1]:8000',
    'baton.lan',
  ])
    test(`the Host ${host} is the service's own`, async (t) => {
      const send = startOwn(t, ['Baton.lan']);
      assert.equal((await send('GET', { host })).status, 200);
    });

  for (const host of [
    'evil.example',
    'localhost.evil.example',
    'evil-localhost',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    '[fd00::1]',
    'a@localhost',
    'localhost:x',
  ])
    test(`the Host ${host} is refused, for reads and unknown paths too`, async (t) => {
      const send = startOwn(t, ['baton.lan']);
      const { status, detail } = await send('GET', { host });
      assert.equal(status, 403);
      assert.match(detail ?? '', /Host header/);
      assert.equal((await send('GET', { host }, '/unknown')).status, 403);
    });

  test('a service on a wildcard address takes every address as Host, but no foreign name', async (t) => {
    for (const hosts of [['0.0.0.0'], ['::']]) {
      const send = startOwn(t, hosts);
      assert.equal((await send('GET', { host: '192.168.1.20:8000' })).status, 200);
      assert.equal((await send('GET', { host: '[fd00::1]:8000' })).status, 200);
      assert.equal((await send('GET', { host: 'evil.example' })).status, 403);
    }
  });

  test('pages of the service may write, and so may programs, which send no Origin', async (t) => {
    const send = startOwn(t, []);
    for (const headers of [
      {},
      { origin: 'http://localhost:8000', 'sec-fetch-site': 'same-origin' },
      { origin: 'https://localhost:8000' },
      { 'sec-fetch-site': 'none' },
      { 'content-type': 'application/json' },
    ] as Headers[])
      assert.equal((await send('POST', headers)).status, 200, JSON.stringify(headers));
  });

  test('pages of other origins may read what CORS allows them, and write only if their origin is listed [H155]', async (t) => {
    const send = startOwn(t, [], ['https://desk.example']);
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: 'http://localhost:3000', 'sec-fetch-site': 'same-site' },
      { origin: 'http://localhost:8000', 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'cross-site' },
    ] as Headers[]) {
      for (const method of ['POST', 'DELETE'] as const) {
        const { status, detail } = await send(method, headers);
        assert.equal(status, 403, JSON.stringify(headers));
        assert.match(detail ?? '', /other origins/);
      }
      assert.equal((await send('GET', headers)).status, 200);
    }
    assert.equal((await send('POST', { origin: 'https://desk.example', 'sec-fetch-site': 'cross-site' })).status, 200);
  });

  test('a body type that a form can send needs the header X-Requested-With [H155]', async (t) => {
    const send = startOwn(t, []);
    for (const type of ['text/plain', 'Text/Plain;charset=utf-8', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      const { status, detail } = await send('POST', { 'content-type': type });
      assert.equal(status, 403, type);
      assert.match(detail ?? '', /X-Requested-With/);
      assert.equal((await send('POST', { 'content-type': type, 'x-requested-with': 'curl' })).status, 200, type);
    }
  });
});

test('with a key nothing is checked, since the pages of others have none', async (t) => {
  const send = startOwn(t, []);
  const headers = { 'x-api-key': 'k', host: 'evil.example', origin: 'https://evil.example', 'content-type': 'text/plain' };
  assert.equal((await send('POST', headers)).status, 200);
});
