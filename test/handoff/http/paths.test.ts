import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import packageJson from '../../../package.json' with { type: 'json' };
import { createPacket, startService } from '../../support/service.ts';

describe('GET /', () => {
  test('shows a browser a page whose links lead to what is there, without a key and without a script [H274]', async (t) => {
    const service = await startService(t);
    const accept = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const answer = await service.call('GET', '//', { key: null, headers: { accept } });
    assert.equal(answer.status, 200);
    assert.match(String(answer.headers['content-type']), /^text\/html/);
    assert.match(String(answer.headers['content-security-policy']), /default-src 'none'/);
    assert.doesNotMatch(answer.text, /<script/);
    const paths = [...answer.text.matchAll(/href="(\/[^"]*)"/g)].map(([, path]) => path);
    assert.deepEqual(paths, ['/console', '/docs', '/redoc', '/openapi.json', '/ready']);
    for (const path of paths) assert.equal((await service.call('GET', `/${path}`, { key: null })).status, 200, path);
  });

  test('returns the name, the version and valid links to a program, without a key and uncounted [H274]', async (t) => {
    const service = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '2' } });
    const { status, body, headers } = await service.call('GET', '//');
    assert.equal(status, 200);
    assert.equal(headers['x-ratelimit-remaining'], undefined);
    assert.equal(body.name, 'Baton handoff packet service');
    assert.equal(body.version, packageJson.version);
    const { api, ...links } = body.links;
    assert.equal(api, '/api/v1');
    assert.deepEqual(Object.keys(links), ['console', 'docs', 'redoc', 'openapi', 'health', 'ready', 'metrics']);
    for (const path of Object.values(links)) assert.equal((await service.call('GET', `/${path}`, { key: null })).status, 200);
  });
});

describe('A slash at the end of a path', () => {
  test('is 404 and the sentence names the path without it [H240]', async (t) => {
    const service = await startService(t);
    const { id } = await createPacket(service);
    const paths = ['/packets', `/packets/${id}`, `/packets/${id}/history`, '/tenants'];
    for (const path of paths) {
      const { status, body } = await service.call('GET', `${path}/`);
      assert.equal(status, 404, path);
      assert.equal(body.code, 'NOT_FOUND');
      assert.equal(body.detail, `There is nothing at this path: it ends in a slash. Request /api/v1${path} instead.`);
    }
    const claim = await service.call('POST', `/packets/${id}/claim/`, { body: { agent_id: 'a' } });
    assert.equal(claim.status, 404);
    assert.match(claim.body.detail, /it ends in a slash/);
  });

  test('is not mentioned if the path is unknown anyway [H240]', async (t) => {
    const service = await startService(t);
    const { status, body } = await service.call('GET', '/nowhere/');
    assert.equal(status, 404);
    assert.equal(body.detail, 'There is nothing at this path.');
  });
});

test('An id of a task with a colon is 404, not a method that its path does not take', async (t) => {
  const service = await startService(t);
  for (const id of ['a%3Ab', '%3A']) {
    const { status, body } = await service.call('POST', `//a2a/tasks/${id}:cancel`, { headers: { 'a2a-version': '1.0' }, body: {} });
    assert.deepEqual([status, body.code], [404, 'NOT_FOUND'], id);
  }
});

describe('An unknown query parameter', () => {
  test('is 400 with the list of the known ones [H243]', async (t) => {
    const service = await startService(t);
    const { status, body } = await service.call('GET', '/audit?sort=asc');
    assert.equal(status, 400);
    assert.equal(body.field, 'sort');
    assert.equal(
      body.detail,
      'sort is not a parameter of this request; it takes actor, action, packet_id, key_id, person, subject, created_after, created_before, limit, offset, cursor.',
    );
    const list = await service.call('GET', '/packets?sort=asc');
    assert.equal(list.status, 400);
    assert.match(list.body.detail, /^sort is not a parameter of this request; it takes status, source_agent, .*\bcursor\b/);
    const none = await service.call('GET', '/keys?sort=asc');
    assert.equal(none.status, 400);
    assert.equal(none.body.detail, 'sort is not a parameter of this request; it takes none.');
  });
});
