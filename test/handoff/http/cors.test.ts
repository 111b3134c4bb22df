import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { adminKey, createPacket, startService } from '../../support/service.ts';
import { listenTo, openEvents } from '../../support/streams.ts';

const page = 'https://app.example.com';
const settings = { SERVICE_CORS_ORIGINS: `${page}, http://localhost:5173`, SERVICE_RATE_LIMIT_PER_MINUTE: '5' };
const preflight = (origin: string) => ({
  origin,
  'access-control-request-method': 'PATCH',
  'access-control-request-headers': 'content-type,x-api-key',
});

describe('Calls from pages of other origins', () => {
  test('are not allowed unless SERVICE_CORS_ORIGINS names the origin [H277]', async (t) => {
    for (const service of [await startService(t), await startService(t, { settings })]) {
      const answer = await service.call('GET', '/packets', { headers: { origin: 'https://other.example.com' } });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
      const asked = await service.call('OPTIONS', '/packets', { key: null, headers: preflight('https://other.example.com') });
      assert.equal(asked.headers['access-control-allow-origin'], undefined);
    }
  });

  test('can read the headers of every answer, including errors [H277]', async (t) => {
    const service = await startService(t, { settings });
    const { id } = await createPacket(service);
    for (const [status, options] of [
      [200, {}],
      [401, { key: 'wrong' }],
    ] as const) {
      const answer = await service.call('GET', `/packets/${id}`, { headers: { origin: page }, ...options });
      assert.equal(answer.status, status);
      assert.equal(answer.headers['access-control-allow-origin'], page);
      assert.equal(answer.headers.vary, 'Origin');
      assert.equal(
        answer.headers['access-control-expose-headers'],
        'ETag, Location, X-Total-Count, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, Idempotency-Replayed, traceparent, tracestate, X-RateLimit-Tier',
      );
      assert.equal(answer.headers['access-control-allow-credentials'], undefined);
    }
  });

  test('can open a stream: an EventSource sends its key as a parameter and makes no preflight [H277]', async (t) => {
    const service = await startService(t, { settings });
    const address = await service.handoff.start();
    const open = async (origin: string) => {
      const stream = await listenTo(t, address, `?api_key=${adminKey}`, { origin });
      return stream.headers;
    };
    const headers = await open(page);
    assert.equal(headers['access-control-allow-origin'], page);
    assert.equal(headers.vary, 'Origin');
    assert.equal((await open('https://other.example.com'))['access-control-allow-origin'], undefined);
    const refused = await openEvents(address, '?api_key=wrong', { origin: page });
    assert.equal(refused.status, 401);
    assert.equal(refused.headers['access-control-allow-origin'], page);
    // A client that sends its key and Last-Event-ID in headers makes a preflight.
    const asked = await service.call('OPTIONS', '//events', {
      key: null,
      headers: { origin: page, 'access-control-request-method': 'GET', 'access-control-request-headers': 'last-event-id,x-api-key' },
    });
    assert.equal(asked.status, 204);
    assert.equal(asked.headers['access-control-allow-headers'], 'last-event-id,x-api-key');
  });

  test('are preceded by a preflight, which needs no key and is not counted [H277]', async (t) => {
    const service = await startService(t, { settings });
    const { id } = await createPacket(service);
    for (let index = 0; index < 10; index += 1) {
      const answer = await service.call('OPTIONS', `/packets/${id}`, { key: null, headers: preflight(page) });
      assert.equal(answer.status, 204);
      assert.equal(answer.text, '');
      assert.equal(answer.headers['access-control-allow-origin'], page);
      assert.equal(answer.headers['access-control-allow-headers'], 'content-type,x-api-key');
      assert.match(String(answer.headers['access-control-allow-methods']), /\bPATCH\b/);
    }
    const { headers } = await service.call('GET', `/packets/${id}`);
    assert.equal(headers['x-ratelimit-remaining'], '3');
  });

  test('are allowed from any origin with * [H277]', async (t) => {
    const service = await startService(t, { settings: { SERVICE_CORS_ORIGINS: '*' } });
    const answer = await service.call('GET', '/packets', { headers: { origin: 'https://any.example.com' } });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['access-control-allow-origin'], '*');
  });

  test('an OPTIONS request that is not a preflight is answered as without CORS [H277]', async (t) => {
    const service = await startService(t, { settings });
    const answer = await service.call('OPTIONS', '/packets');
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.allow, 'POST, GET, HEAD');
  });

  test('an entry that is not an origin stops the start with a sentence [H277]', async (t) => {
    await assert.rejects(startService(t, { settings: { SERVICE_CORS_ORIGINS: 'app.example.com' } }), {
      message:
        'SERVICE_CORS_ORIGINS must be a comma-separated list of origins such as https://app.example.com, or *, not "app.example.com"',
    });
  });
});
