import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { apiPrefix, routes } from '../../../src/handoff/model/api.ts';
import { unknownId } from '../../support/life.ts';
import {
  adminKey,
  createPacket,
  newTenant,
  packetRequest,
  startService,
  type TestAnswer,
  TestClock,
  type TestService,
} from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const minute = { SERVICE_RATE_LIMIT_PER_MINUTE: '60' };
/** The settings of tests that share a service on every store: none of them reaches the limits of another. */
const together = {
  ...minute,
  SERVICE_HOURLY_QUOTA_FREE: '20',
  SERVICE_HANDOFFS_PER_DAY_FREE: 'unlimited',
  SERVICE_HANDOFFS_PER_DAY_PRO: '2',
  SERVICE_HANDOFFS_PER_DAY_BUSINESS: '0',
};
const five = { SERVICE_RATE_LIMIT_PER_MINUTE: '5', SERVICE_HOURLY_QUOTA_FREE: '5' };
const memory = stores[0]!;

const read = (service: TestService, key: string) => service.call('GET', '/packets?limit=1', { key });
const create = (service: TestService, key: string) => service.call('POST', '/packets', { key, body: packetRequest() });
const count = (answers: readonly TestAnswer[], status: number) => answers.filter((answer) => answer.status === status).length;
const limitHeaders = ({ headers }: TestAnswer) => Object.keys(headers).filter((name) => name.startsWith('x-ratelimit'));
const retryAfter = ({ headers }: TestAnswer) => Number(headers['retry-after']);

async function times(number: number, call: () => Promise<TestAnswer>): Promise<TestAnswer[]> {
  const answers: TestAnswer[] = [];
  for (let index = 0; index < number; index += 1) answers.push(await call());
  return answers;
}

const atOnce = (number: number, call: (index: number) => Promise<TestAnswer>) =>
  Promise.all(Array.from({ length: number }, (_, index) => call(index)));

function assertRefused(answer: TestAnswer, waitSeconds: number, limit?: { name: string; max: number }): void {
  assert.equal(answer.status, 429, answer.text);
  assert.equal(answer.body.code, 'RATE_LIMITED');
  assert.equal(answer.body.status_code, 429);
  assert.equal(answer.body.field, null);
  assert.equal(typeof answer.body.detail, 'string');
  assert.equal(answer.headers['retry-after'], String(waitSeconds));
  assert.equal(answer.body.limit.reset_seconds, waitSeconds);
  if (limit !== undefined) assert.deepEqual(answer.body.limit, { ...limit, reset_seconds: waitSeconds });
}

describe('The limit of requests a minute', () => {
  for (const store of stores) {
    test(`of 120 concurrent calls with limit 60 exactly 60 pass, on ${store.name}`, async () => {
      const service = await shareService(store, together);
      const { key } = await newTenant(service);
      const answers = await atOnce(120, () => read(service, key));
      assert.equal(count(answers, 200), 60);
      assert.equal(count(answers, 429), 60);
    });
  }

  test('60 requests pass, and the next is 429 until the first of them is 60 seconds old [H223]', async () => {
    const service = await shareService(memory, minute);
    const { key } = await newTenant(service);
    const answers = await times(60, () => read(service, key));
    assert.equal(count(answers, 200), 60);
    assertRefused(await read(service, key), 60, { name: 'minute', max: 60 });
    service.clock.turn(59.999);
    assertRefused(await read(service, key), 1);
    service.clock.turn(0.001);
    assert.equal((await read(service, key)).status, 200);
  });

  test('is per key', async () => {
    const service = await shareService(memory, minute);
    const { key } = await newTenant(service);
    const second = await service.call('POST', '/keys', { key, body: { name: 'second' } });
    await times(59, () => read(service, key));
    assert.equal((await read(service, key)).status, 429);
    assert.equal((await read(service, second.body.key)).status, 200);
  });

  test('counts requests that are answered with 4xx [H223]', async () => {
    const service = await shareService(memory, minute);
    const { key } = await newTenant(service);
    const calls: [number, () => Promise<TestAnswer>][] = [
      [404, () => service.call('GET', `/packets/${unknownId}`, { key })],
      [400, () => service.call('GET', '/packets?limit=0', { key })],
      [400, () => service.call('POST', '/packets', { key, raw: '{broken' })],
      [400, () => service.call('POST', '/packets', { key, body: {} })],
      [403, () => service.call('GET', '/tenants', { key })],
      [415, () => service.call('POST', '/packets', { key, raw: 'x', headers: { 'content-type': 'text/plain' } })],
      [413, () => service.call('POST', '/packets', { key, body: packetRequest({ context: { summary: 'x'.repeat(1_100_000) } }) })],
    ];
    for (const [index, [status, call]] of calls.entries()) {
      const answer = await call();
      assert.equal(answer.status, status);
      assert.equal(answer.headers['x-ratelimit-remaining'], String(59 - index));
    }
  });

  test('counts a HEAD like a GET [H240]', async () => {
    const service = await shareService(memory, minute);
    const { key } = await newTenant(service);
    assert.equal((await service.call('HEAD', '/packets', { key })).headers['x-ratelimit-remaining'], '59');
    assert.equal((await read(service, key)).headers['x-ratelimit-remaining'], '58');
  });

  test('if it is not set, keys of tier business have none and others 60; if it is set, it is for all keys [H224]', async (t) => {
    const service = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '' } });
    const passing = async (key: string) => count(await times(61, () => read(service, key)), 200);
    assert.equal(await passing(adminKey), 61);
    const business = await newTenant(service);
    assert.equal(await passing(business.key), 61);
    const { body: lower } = await service.call('POST', '/keys', { key: business.key, body: { name: 'lower', tier: 'pro' } });
    assert.equal(await passing(lower.key), 60);
    for (const tier of ['free', 'pro']) assert.equal(await passing((await newTenant(service, { tier })).key), 60);
    // The key keeps its tier when its tenant moves to a lower one.
    const { status } = await service.call('PATCH', `/tenants/${business.id}`, { body: { tier: 'pro' } });
    assert.equal(status, 200);
    assert.equal(await passing(business.key), 60);

    const limited = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '7' } });
    assert.equal(count(await times(8, () => read(limited, adminKey)), 200), 7);
  });

  test('0 turns it off [H224]', async () => {
    const service = await shareService(memory);
    const { key } = await newTenant(service);
    const answers = await atOnce(120, () => read(service, key));
    assert.equal(count(answers, 200), 120);
    const { headers } = answers[0]!;
    assert.equal(headers['x-ratelimit-tier'], 'business');
    assert.equal(headers['x-ratelimit-limit'], undefined);
    assert.equal(headers['x-ratelimit-remaining'], undefined);
  });
});

describe('The limit of requests an hour', () => {
  const hour = { ...minute, SERVICE_HOURLY_QUOTA_FREE: '10', SERVICE_HOURLY_QUOTA_PRO: '20', SERVICE_HOURLY_QUOTA_BUSINESS: '40' };

  test('is per tenant and shared by its keys [H223]', async () => {
    const service = await shareService(memory, hour);
    const { key } = await newTenant(service, { tier: 'pro' });
    const other = await newTenant(service, { tier: 'pro' });
    const second = (await service.call('POST', '/keys', { key, body: { name: 'second' } })).body.key;
    const answers = await atOnce(40, (index) => read(service, index % 2 === 0 ? key : second));
    assert.equal(count(answers, 200), 19);
    assertRefused(await read(service, key), 3600, { name: 'hour', max: 20 });
    assertRefused(await read(service, second), 3600);
    assert.equal((await read(service, other.key)).status, 200);
  });

  test('follows the tier of the tenant, not of the key [H202]', async () => {
    const service = await shareService(memory, hour);
    for (const [tier, quota] of [
      ['free', 10],
      ['pro', 20],
      ['business', 40],
    ] as const) {
      const { id, key } = await newTenant(service, { tier, max_api_keys: 2 });
      const below = (await service.call('POST', '/keys', { body: { name: 'below', tier: 'free', tenant_id: id } })).body.key;
      assert.equal(count(await times(quota + 1, () => read(service, below)), 200), quota, tier);
      assert.equal((await read(service, key)).status, 429);
    }
  });

  test("is the tenant's own where it is set, and the tier's again once it is null [H406]", async () => {
    const service = await shareService(memory, hour);
    const { id, key } = await newTenant(service, { tier: 'free', requests_per_hour: 13 });
    assert.equal(count(await times(15, () => read(service, key)), 200), 13);
    const change = (requests_per_hour: number | null) => service.call('PATCH', `/tenants/${id}`, { body: { requests_per_hour } });
    assert.equal((await change(15)).status, 200);
    assert.equal(count(await times(5, () => read(service, key)), 200), 2);
    assert.equal((await change(null)).status, 200);
    assertRefused(await read(service, key), 3600, { name: 'hour', max: 10 });
  });

  test('used up while the minute is not: 429 with the wait of the hour, without counting in the minute [H223]', async () => {
    const service = await shareService(memory, hour);
    const { key } = await newTenant(service, { tier: 'free' });
    await times(10, () => read(service, key));
    service.clock.turn(100);
    for (const refused of await times(5, () => read(service, key))) {
      assertRefused(refused, 3500);
      assert.match(refused.body.detail, /^The tenant's limit of 10 requests an hour is used up\. Try again in 3500 seconds\.$/);
      assert.equal(refused.headers['x-ratelimit-remaining'], '60');
    }
  });

  test('does not count what the minute refuses [H223]', async (t) => {
    const service = await startService(t, { settings: { ...hour, SERVICE_RATE_LIMIT_PER_MINUTE: '4' } });
    const { key } = await newTenant(service, { tier: 'free' });
    for (const expected of [4, 4, 2]) {
      assert.equal(count(await times(20, () => read(service, key)), 200), expected);
      service.clock.turn(60);
    }
  });

  test('reports the longer wait if both limits are used up [H223]', async (t) => {
    const service = await startService(t, { settings: { ...hour, SERVICE_RATE_LIMIT_PER_MINUTE: '10' } });
    const { key } = await newTenant(service, { tier: 'free' });
    await times(10, () => read(service, key));
    assertRefused(await read(service, key), 3600);
  });

  test("follows a change of the tenant's tier at once [H202]", async () => {
    const service = await shareService(memory, hour);
    const { id, key } = await newTenant(service, { tier: 'free' });
    await times(10, () => read(service, key));
    assert.equal((await read(service, key)).status, 429);
    await service.call('PATCH', `/tenants/${id}`, { body: { tier: 'pro' } });
    assert.equal(count(await times(11, () => read(service, key)), 200), 10);
    await service.call('PATCH', `/tenants/${id}`, { body: { tier: 'free' } });
    const refused = await read(service, key);
    assertRefused(refused, 3600);
    service.clock.turn(retryAfter(refused));
    assert.equal((await read(service, key)).status, 200);
  });

  test('0 turns it off [H224]', async (t) => {
    const service = await startService(t, { settings: { ...hour, SERVICE_HOURLY_QUOTA_FREE: '0' } });
    const { key } = await newTenant(service, { tier: 'free' });
    assert.equal(count(await times(50, () => read(service, key)), 200), 50);
  });
});

describe('The headers of the limits', () => {
  test('report the limit, the remaining requests, when the oldest leaves the window, and the tier of the key [H229]', async () => {
    const service = await shareService(memory, minute);
    const { key } = await newTenant(service, { tier: 'pro' });
    const shown = ({ headers }: TestAnswer) => ['limit', 'remaining', 'reset', 'tier'].map((name) => headers[`x-ratelimit-${name}`]);
    assert.deepEqual(shown(await read(service, key)), ['60', '59', '60', 'pro']);
    service.clock.turn(20.5);
    assert.deepEqual(shown(await read(service, key)), ['60', '58', '40', 'pro']);
    service.clock.turn(45);
    assert.deepEqual(shown(await read(service, key)), ['60', '58', '15', 'pro']);
    await times(58, () => read(service, key));
    assert.deepEqual(shown(await read(service, key)), ['60', '0', '15', 'pro']);
  });

  test('are on every answer of every route that takes a key, also on 429', async () => {
    const service = await shareService(memory, { SERVICE_RATE_LIMIT_PER_MINUTE: '200' });
    const { key } = await newTenant(service);
    const keyed = Object.values(routes).filter(({ access }) => access !== 'public');
    assert.ok(keyed.length > 20 && keyed.length < 200);
    const callAll = async (check: (answer: TestAnswer, name: string) => void) => {
      for (const { method, path } of keyed) {
        const body = method === 'POST' || method === 'PATCH' ? { raw: 'null' } : {};
        check(await service.call(method, path.replace('{id}', unknownId), { key, ...body }), `${method} ${path}`);
      }
    };
    const seen = new Set<number>();
    const present = (answer: TestAnswer, name: string) => {
      seen.add(answer.status);
      assert.equal(answer.headers['x-ratelimit-limit'], '200', name);
      assert.match(String(answer.headers['x-ratelimit-remaining']), /^\d+$/, name);
      assert.match(String(answer.headers['x-ratelimit-reset']), /^\d+$/, name);
      assert.equal(answer.headers['x-ratelimit-tier'], 'business', name);
    };
    await callAll(present);
    assert.deepEqual([...seen].toSorted(), [200, 400, 403, 404]);
    await times(200, () => read(service, key));
    seen.clear();
    await callAll(present);
    assert.deepEqual([...seen], [429]);
  });

  test('are on 404 for an unknown path and on 405 as well, which count if there is a key [H232]', async (t) => {
    const service = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '4' } });
    const { key } = await newTenant(service);
    for (const [method, path, status, left] of [
      ['GET', '/nothing', 404, '3'],
      ['PUT', '/packets', 405, '2'],
      ['DELETE', '/packets/awaiting', 405, '1'],
      ['GET', '/packets/batch', 405, '0'],
      ['GET', '/nothing', 429, '0'],
      ['PUT', '/packets', 429, '0'],
    ] as const) {
      const answer = await service.call(method, path, { key });
      assert.deepEqual([answer.status, answer.headers['x-ratelimit-remaining']], [status, left], `${method} ${path}`);
    }
    assert.equal((await service.call('GET', '/nothing', { key: null })).status, 404);
    assert.equal((await service.call('GET', '/nothing', { key: 'svc_wrong' })).status, 401);
    for (const prefix of ['', apiPrefix]) {
      for (const path of ['/health', '/docs']) {
        const answer = await service.call('POST', `/${prefix}${path}`, { key });
        assert.deepEqual([answer.status, answer.headers['x-ratelimit-limit']], [405, undefined]);
      }
    }
  });

  test('are not on exempt endpoints, which are not counted', async (t) => {
    const service = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '2' } });
    const { key } = await newTenant(service);
    for (const prefix of ['', apiPrefix]) {
      for (const path of ['/health', '/ready', '/metrics', '/docs', '/redoc', '/openapi.json']) {
        for (let call = 0; call < 3; call += 1) {
          const answer = await service.call('GET', `/${prefix}${path}`, { key });
          assert.equal(answer.status, 200, path);
          assert.deepEqual(limitHeaders(answer), [], path);
        }
      }
    }
    assert.equal((await read(service, key)).headers['x-ratelimit-remaining'], '1');
  });

  test('without a limit per minute report that per hour; without either an answer only has X-RateLimit-Tier [H229]', async (t) => {
    const hourly = await startService(t, { settings: { SERVICE_HOURLY_QUOTA_BUSINESS: '5' } });
    const { headers } = await hourly.call('GET', '/packets');
    assert.deepEqual(
      ['limit', 'remaining', 'reset', 'tier'].map((name) => headers[`x-ratelimit-${name}`]),
      ['5', '4', '3600', 'business'],
    );
    const unlimited = await (await shareService(memory)).call('GET', '/packets');
    assert.deepEqual([unlimited.status, limitHeaders(unlimited)], [200, ['x-ratelimit-tier']]);
  });
});

for (const store of stores) {
  describe(`The daily quota of handoffs on ${store.name}`, () => {
    const toMidnight = 14.5 * 3600;

    test('a free tenant creates 5 per day; the sixth is 429 until midnight UTC, to the second [H221]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free' });
      assert.equal(count(await times(5, () => create(service, key)), 201), 5);
      assertRefused(await create(service, key), toMidnight);
      service.clock.set('2026-03-01T23:59:59.000Z');
      assertRefused(await create(service, key), 1);
      service.clock.set('2026-03-01T23:59:59.999Z');
      assertRefused(await create(service, key), 1);
      service.clock.set('2026-03-02T00:00:00.000Z');
      assert.equal(count(await times(6, () => create(service, key)), 201), 5);
    });

    test('is exact under concurrent creates, chains and batches, and per tenant [H221]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { handoffs_per_day: 12 });
      const other = await newTenant(service, { handoffs_per_day: 3 });
      const parent = await createPacket(service, {}, key);
      const [answers] = await Promise.all([
        atOnce(30, (index) => {
          if (index % 3 === 0) return service.call('POST', `/packets/${parent.id}/chain`, { key, body: packetRequest() });
          if (index % 3 === 1)
            return service.call('POST', '/packets/batch', { key, body: { packets: [packetRequest(), packetRequest()] } });
          return create(service, key);
        }),
        atOnce(10, () => create(service, other.key)),
      ]);
      assert.ok(answers.every(({ status }) => status === 201 || status === 429));
      assert.equal((await service.call('GET', '/packets', { key })).body.total, 12);
      assert.equal((await service.call('GET', '/packets', { key: other.key })).body.total, 3);
    });

    test("the tenant's own value overrides its tier: a number, 0 for none, null for the tier's; a change applies at once [H221]", async () => {
      const service = await shareService(store);
      const more = await newTenant(service, { tier: 'free', handoffs_per_day: 7 });
      assert.equal(count(await times(9, () => create(service, more.key)), 201), 7);
      const { id, key } = await newTenant(service, { tier: 'business', handoffs_per_day: 0 });
      assertRefused(await create(service, key), toMidnight);
      const change = (handoffs_per_day: number | null) => service.call('PATCH', `/tenants/${id}`, { body: { handoffs_per_day } });
      assert.equal((await change(2)).status, 200);
      assert.equal(count(await times(4, () => create(service, key)), 201), 2);
      assert.equal((await change(null)).status, 200);
      assert.equal(count(await times(6, () => create(service, key)), 201), 6);
      // Packets created without a quota count as well.
      assert.equal((await change(8)).status, 200);
      assertRefused(await create(service, key), toMidnight);
      assert.equal((await change(9)).status, 200);
      assert.equal(count(await times(2, () => create(service, key)), 201), 1);
    });

    test('the settings can change the quotas of the tiers [H224]', async () => {
      const service = await shareService(store, together);
      for (const [tier, expected] of [
        ['free', 8],
        ['pro', 2],
        ['business', 0],
      ] as const) {
        const { key } = await newTenant(service, { tier });
        assert.equal(count(await times(8, () => create(service, key)), 201), expected, tier);
      }
    });

    test('counts only created packets: no refusals, claims or replayed answers', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free' });
      assert.equal((await service.call('POST', '/packets', { key, body: {} })).status, 400);
      assert.equal((await service.call('POST', '/packets', { key, body: packetRequest({ parent_packet_id: unknownId }) })).status, 400);
      assert.equal((await service.call('POST', `/packets/${unknownId}/chain`, { key, body: packetRequest() })).status, 404);
      const orphans = { packets: [packetRequest({ parent_packet_id: unknownId }), packetRequest({ parent_packet_id: unknownId })] };
      assert.equal((await service.call('POST', '/packets/batch', { key, body: orphans })).status, 400);
      const mixed = { packets: [...orphans.packets, packetRequest(), ...orphans.packets] };
      assert.equal((await service.call('POST', '/packets/batch', { key, body: mixed })).body.created.length, 1);
      const once = () => service.call('POST', '/packets', { key, body: packetRequest(), headers: { 'idempotency-key': 'once' } });
      const [first] = await times(3, once);
      assert.equal((await service.call('POST', `/packets/${first!.body.id}/claim`, { key, body: { agent_id: 'a' } })).status, 200);
      assert.equal(count(await times(6, () => create(service, key)), 201), 3);
      // A replayed answer creates nothing, so the quota does not refuse it.
      assert.equal((await once()).body.id, first!.body.id);
    });

    test('is affected neither by the pruning of old counters nor by deleting packets [H221]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free' });
      const [first] = await times(5, () => create(service, key));
      assert.equal((await service.call('DELETE', `/packets/${first!.body.id}`, { key })).status, 204);
      service.clock.set('2026-03-01T23:59:59.000Z');
      await service.handoff.runOnce.prune();
      assertRefused(await create(service, key), 1);
      service.clock.set('2026-03-03T12:00:00.000Z');
      await service.handoff.runOnce.prune();
      assert.equal(count(await times(6, () => create(service, key)), 201), 5);
    });

    test('its refusals count in neither the minute nor the hour [H223]', async () => {
      const service = await shareService(store, together);
      const { key } = await newTenant(service, { tier: 'free', handoffs_per_day: 1 });
      assert.equal((await create(service, key)).headers['x-ratelimit-remaining'], '59');
      const refused = await atOnce(30, () => create(service, key));
      for (const answer of refused) assertRefused(answer, toMidnight);
      assert.equal((await create(service, key)).headers['x-ratelimit-remaining'], '59');
      assert.equal((await read(service, key)).headers['x-ratelimit-remaining'], '58');
      assert.equal(count(await times(30, () => read(service, key)), 200), 18);
    });

    test('used up together with the minute: a create gets the wait to midnight, a read the wait of the minute [H223]', async () => {
      const service = await shareService(store, five);
      const { key } = await newTenant(service, { tier: 'pro', handoffs_per_day: 5 });
      await times(5, () => create(service, key));
      const reading = await read(service, key);
      assertRefused(reading, 60, { name: 'minute', max: 5 });
      assert.match(reading.body.detail, /^The key's limit of 5 requests a minute is used up\./);
      const chaining = await service.call('POST', `/packets/${unknownId}/chain`, { key, body: packetRequest() });
      assertRefused(chaining, toMidnight, { name: 'day', max: 5 });
      assert.match(chaining.body.detail, /^The tenant has created the 5 packets it may create per day;/);
      assertRefused(await service.call('POST', '/packets/batch', { key, body: { packets: [packetRequest()] } }), toMidnight);
      const refused = await create(service, key);
      assertRefused(refused, toMidnight);
      service.clock.turn(retryAfter(refused));
      assert.equal((await create(service, key)).status, 201);
    });

    test('used up shortly before midnight together with the hour: the answer has the longer wait of the hour', async () => {
      const service = await shareService(store, five);
      service.clock.set('2026-03-01T23:59:30.000Z');
      const { key } = await newTenant(service, { tier: 'free' });
      await times(5, () => create(service, key));
      const refused = await create(service, key);
      assertRefused(refused, 3600);
      service.clock.turn(3600);
      assert.equal((await create(service, key)).status, 201);
    });
  });
}

describe('Retry-After', () => {
  test('is exact for every limit: a request after it is allowed, and one a second earlier is not [H223]', async (t) => {
    const service = await startService(t, {
      clock: new TestClock('2026-03-01T20:00:00.000Z'),
      settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '5', SERVICE_HOURLY_QUOTA_FREE: '14', SERVICE_HANDOFFS_PER_DAY_FREE: '6' },
    });
    const action = fc.oneof(
      { weight: 3, arbitrary: fc.constant('read' as const) },
      { weight: 3, arbitrary: fc.constant('create' as const) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 90_000 }) },
      { weight: 1, arbitrary: fc.integer({ min: 600_000, max: 3_600_000 }) },
    );
    let refusals = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 10, maxLength: 40 }), async (actions) => {
        // The admin key is limited as well, so each run waits until its window is empty.
        service.clock.turn(7200);
        const { key } = await newTenant(service, { tier: 'free' });
        for (const step of actions) {
          if (typeof step === 'number') {
            service.clock.turn(step / 1000);
            continue;
          }
          const call = () => (step === 'read' ? read(service, key) : create(service, key));
          const refused = await call();
          if (refused.status !== 429) continue;
          refusals += 1;
          const wait = retryAfter(refused);
          assert.ok(Number.isInteger(wait) && wait >= 1);
          service.clock.turn(wait - 1);
          assert.equal((await call()).status, 429, `${step} helped before its wait of ${wait} s was over`);
          service.clock.turn(1);
          assert.notEqual((await call()).status, 429, `${step} was refused after its wait of ${wait} s`);
        }
      }),
      { numRuns: 40 },
    );
    assert.ok(refusals > 40);
  });
});
