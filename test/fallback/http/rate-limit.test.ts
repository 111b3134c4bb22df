import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { startFallback, type TestFallback } from '../../support/fallback.ts';

const keyed = { SERVICE_API_KEYS: 'ci:key-of-ci,other:key-of-other' };
const as = (key: string) => ({ headers: { 'x-api-key': key } });
const limitsOf = async (service: TestFallback, path = '/chains', options = {}) => {
  const { status, headers } = await service.call('GET', path, options);
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) => headers[`x-ratelimit-${name}`]);
  return { status, limit, remaining, reset, retry: headers['retry-after'] };
};

describe('The rate limit', () => {
  test('every answer has the limit, the remaining requests, and the seconds until the oldest request leaves [F92]', async (t) => {
    const service = await startFallback(t, { flags: { rateLimit: '3/minute' } });
    assert.deepEqual(await limitsOf(service), { status: 200, limit: '3', remaining: '2', reset: '60', retry: undefined });
    service.clock.turn(10);
    assert.deepEqual(await limitsOf(service, '/chains/x'), { status: 404, limit: '3', remaining: '1', reset: '50', retry: undefined });
    assert.deepEqual(await limitsOf(service, '/nowhere'), { status: 404, limit: '3', remaining: '0', reset: '50', retry: undefined });
  });

  test('429 with Retry-After; refused requests do not count, and a request is allowed when the oldest leaves: a sliding window [F92]', async (t) => {
    const service = await startFallback(t, { flags: { rateLimit: '2/minute' } });
    assert.equal((await limitsOf(service)).status, 200);
    service.clock.turn(30);
    assert.equal((await limitsOf(service)).status, 200);
    for (let round = 0; round < 3; round += 1) {
      assert.deepEqual(await limitsOf(service), { status: 429, limit: '2', remaining: '0', reset: '30', retry: '30' });
    }
    const { body } = await service.call('GET', '/chains');
    assert.deepEqual([body.code, body.limit], ['RATE_LIMITED', { name: 'minute', max: 2, reset_seconds: 30 }]);
    service.clock.turn(30);
    assert.equal((await limitsOf(service)).status, 200);
    assert.equal((await limitsOf(service)).status, 429);
  });

  for (const [period, seconds] of [
    ['second', 1],
    ['minute', 60],
    ['hour', 3_600],
    ['day', 86_400],
  ] as const) {
    test(`counts per ${period}`, async (t) => {
      const service = await startFallback(t, { flags: { rateLimit: `1/${period}` } });
      assert.equal((await limitsOf(service)).status, 200);
      assert.deepEqual(await limitsOf(service), {
        status: 429,
        limit: '1',
        remaining: '0',
        reset: String(seconds),
        retry: String(seconds),
      });
      service.clock.turn(seconds);
      assert.equal((await limitsOf(service)).status, 200);
    });
  }

  test('each key has its own; requests without a configured key count for their address [F92]', async (t) => {
    const service = await startFallback(t, { environment: keyed, flags: { rateLimit: '2/minute' } });
    for (const key of ['key-of-ci', 'key-of-other']) {
      assert.equal((await limitsOf(service, '/chains', as(key))).remaining, '1');
      assert.equal((await limitsOf(service, `/chains?api_key=${key}`)).remaining, '0');
      assert.equal((await limitsOf(service, '/chains', as(key))).status, 429);
    }
    assert.deepEqual(await limitsOf(service, '/chains', as('guess-1')), {
      status: 401,
      limit: '2',
      remaining: '1',
      reset: '60',
      retry: undefined,
    });
    assert.equal((await limitsOf(service, '/chains', as('guess-2'))).status, 401);
    assert.equal((await limitsOf(service, '/chains', as('guess-3'))).status, 429);
    assert.equal((await limitsOf(service)).status, 429);
  });

  test('headers with a forwarded address are ignored [F92]', async (t) => {
    const service = await startFallback(t, { flags: { rateLimit: '2/minute' } });
    const forwarded = (address: string) => ({ headers: { 'x-forwarded-for': address, forwarded: `for=${address}` } });
    assert.equal((await limitsOf(service, '/chains', forwarded('192.0.2.1'))).remaining, '1');
    assert.equal((await limitsOf(service, '/chains', forwarded('192.0.2.2'))).remaining, '0');
  });

  test('health, the explorers, the description and the dashboard are not counted [F92]', async (t) => {
    const service = await startFallback(t, { flags: { rateLimit: '1/minute' } });
    assert.equal((await limitsOf(service)).status, 200);
    for (const path of ['/health', '/docs', '/redoc', '/openapi.json', '/dashboard', '/dashboard/']) {
      const { status, limit } = await limitsOf(service, path);
      assert.notEqual(status, 429, path);
      assert.equal(limit, undefined, path);
    }
  });

  test('without --rate-limit nothing is counted and there are no headers', async (t) => {
    const service = await startFallback(t);
    for (let round = 0; round < 200; round += 1)
      assert.deepEqual(await limitsOf(service), {
        status: 200,
        limit: undefined,
        remaining: undefined,
        reset: undefined,
        retry: undefined,
      });
  });
});
