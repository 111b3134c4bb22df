import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { createClient } from '@redis/client';
import pino from 'pino';
import { createRedisLink } from '../../src/handoff/live/redis.ts';
import { openInstances } from '../support/instances.ts';
import { listenFor } from '../support/listen.ts';
import { createRedis, skipWithoutRedis, type TestRedis } from '../support/redis.ts';
import { type ServiceOptions, startService, TestClock, type TestService } from '../support/service.ts';
import { onDisk, postgresql } from '../support/stores.ts';

describe('limits that instances share through Redis', { skip: skipWithoutRedis }, () => {
  test('60 per minute over three instances means exactly 60 [H228]', async (t) => {
    // As long as Redis answers in time, which a busy machine must not decide here.
    const { instances } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '60' }, { redisCommandMs: 60_000 });
    const answers = await Promise.all(Array.from({ length: 120 }, (_, index) => list(instances[index % 3]!)));
    assert.equal(passed(answers), 60);
    for (const answer of answers.filter(({ status }) => status === 429)) assert.equal(answer.headers['retry-after'], '60');
  });

  test('the hourly limit of a tenant is shared, and its refusals do not count in a minute', async (t) => {
    const { instances, clock } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '8', SERVICE_HOURLY_QUOTA_BUSINESS: '10' });
    for (let index = 0; index < 8; index += 1) assert.equal((await list(instances[index % 3]!)).status, 200);
    clock.turn(60);
    assert.equal((await list(instances[0]!)).status, 200);
    assert.equal((await list(instances[1]!)).headers['x-ratelimit-remaining'], '6');
    const refused = await list(instances[2]!);
    assert.equal(refused.status, 429);
    assert.equal(refused.headers['retry-after'], '3540');
    assert.equal(refused.headers['x-ratelimit-remaining'], '6');
    clock.turn(3540);
    assert.equal((await list(instances[2]!)).status, 200);
  });

  test('a request counts for exactly the length of the window, and the headers say until when', async (t) => {
    const { instances, clock } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '2' });
    assert.equal((await list(instances[0]!)).headers['x-ratelimit-reset'], '60');
    clock.turn(20);
    assert.equal((await list(instances[1]!)).headers['x-ratelimit-reset'], '40');
    clock.turn(39.999);
    const refused = await list(instances[2]!);
    assert.deepEqual([refused.status, refused.headers['retry-after'], refused.headers['x-ratelimit-reset']], [429, '1', '1']);
    clock.turn(0.001);
    const answer = await list(instances[2]!);
    assert.deepEqual([answer.status, answer.headers['x-ratelimit-reset']], [200, '20']);
  });

  test('after the clock was set back nobody waits longer than the length of the window [H162]', async (t) => {
    const { instances, clock } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '2' });
    for (const instance of instances.slice(0, 2)) assert.equal((await list(instance)).status, 200);
    clock.turn(-3600);
    const refused = await list(instances[2]!);
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '60']);
    clock.turn(60);
    assert.equal(passed(await Promise.all(instances.map(list))), 2);
  });

  test('two deployments on one Redis share no limit, whatever database each has [H443]', async (t) => {
    const redis = await createRedis();
    await redis.start();
    t.after(() => redis.stop());
    for (const store of [onDisk, onDisk, postgresql, postgresql]) {
      const { url, drop } = await store.open();
      t.after(drop);
      const settings = { SERVICE_HOURLY_QUOTA_BUSINESS: '2', SERVICE_REDIS_URL: redis.url };
      const service = await startService(t, { databaseUrl: url, settings });
      await service.handoff.start();
      const statuses = [];
      for (let request = 0; request < 3; request += 1) statuses.push((await list(service)).status);
      assert.deepEqual(statuses, [200, 200, 429]);
    }
  });

  test('the hourly limit is per tenant, over all its keys and instances', async (t) => {
    const { instances } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '100', SERVICE_HOURLY_QUOTA_BUSINESS: '4' });
    const { key } = (await instances[0]!.call('POST', '/keys', { body: { name: 'second' } })).body;
    const answers = [];
    for (const as of [undefined, key, undefined, key])
      answers.push(await instances[answers.length % 3]!.call('GET', '/packets', as === undefined ? {} : { key: as }));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 429],
    );
  });

  test('nothing stays in Redis longer than it counts', async (t) => {
    const { instances, redis } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '5', SERVICE_HOURLY_QUOTA_BUSINESS: '5' });
    assert.equal((await list(instances[0]!)).status, 200);
    const client = createClient({ url: redis.url });
    await client.connect();
    const keys = (await client.keys('*')).sort();
    const left = await Promise.all(keys.map((key) => client.pTTL(key)));
    client.destroy();
    assert.deepEqual(
      keys.map((key) => key.split(':')[2]),
      ['hour', 'minute'],
    );
    assert.ok(left[0]! > 0 && left[0]! <= 3_600_000, String(left));
    assert.ok(left[1]! > 0 && left[1]! <= 60_000, String(left));
  });

  test('a refusal by the daily quota is taken back from the shared minute', async (t) => {
    const { instances } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '10', SERVICE_HANDOFFS_PER_DAY_BUSINESS: '0' });
    const refused = await instances[0]!.call('POST', '/packets', { body: { metadata: agents, context: { summary: 'One' } } });
    assert.equal(refused.status, 429);
    assert.equal((await list(instances[1]!)).headers['x-ratelimit-remaining'], '9');
  });

  test('without Redis each instance counts by itself, logs it once, and shares again when Redis is back [H228]', async (t) => {
    const { instances, redis, clock } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '5' });
    assert.equal((await list(instances[0]!)).status, 200);

    const lost = Promise.all(instances.map((instance) => instance.logged('redis is unavailable')));
    await redis.stop();
    await lost;
    const alone = await Promise.all(Array.from({ length: 30 }, (_, index) => list(instances[index % 3]!)));
    assert.equal(passed(alone), 15);
    for (const instance of instances) assert.equal(instance.logs.filter((line) => line.includes('redis is unavailable')).length, 1);

    const back = Promise.all(instances.map((instance) => instance.logged('redis is available')));
    await redis.start();
    await back;
    clock.turn(60);
    assert.equal(passed(await Promise.all(Array.from({ length: 30 }, (_, index) => list(instances[index % 3]!)))), 5);
  });

  test('a frozen Redis does not block requests', { timeout: 30_000 }, async (t) => {
    const { instances, redis } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '5' });
    redis.freeze();
    t.after(() => redis.thaw());
    const answers = await Promise.all(Array.from({ length: 18 }, (_, index) => list(instances[index % 3]!)));
    assert.equal(passed(answers), 15);
  });

  test('a silent connection is replaced, and limits are shared again', async (t) => {
    const redis = await createRedis();
    await redis.start();
    t.after(() => redis.stop());
    const way = await startWay(t, redis.url);
    const clock = new TestClock();
    const settings = { SERVICE_REDIS_URL: way.url, SERVICE_RATE_LIMIT_PER_MINUTE: '5' };
    const instance = await startService(t, { clock, settings });
    await instance.handoff.start();
    assert.equal((await list(instance)).status, 200);
    way.silence();
    const back = instance.logged('redis is available');
    for (let attempt = 0; attempt < 2; attempt += 1) {
      assert.equal((await list(instance)).status, 200);
      // No command is sent for a second after a timeout.
      clock.turn(1);
    }
    await back;
    assert.equal((await list(instance)).headers['x-ratelimit-remaining'], '3');
  });

  test('the time in which an instance stood still itself does not count: Redis has answered meanwhile [H228]', async (t) => {
    const redis = await createRedis();
    await redis.start();
    t.after(() => redis.stop());
    const link = createRedisLink(redis.url, { logger: pino({ level: 'silent' }), deployment: 1, clock: () => new Date() });
    t.after(() => link.stop());
    await link.start();
    const answer = link.evaluate('return 7', [], [], Number);
    const end = performance.now() + 700;
    while (performance.now() < end);
    assert.equal(await answer, 7);
  });

  test('after a timeout no command is sent for a second, so that other requests are not slowed', async (t) => {
    const { instances, redis, clock } = await threeInstances(t, { SERVICE_RATE_LIMIT_PER_MINUTE: '20' });
    const [one] = instances as [TestService];
    redis.freeze();
    t.after(() => redis.thaw());
    for (let index = 0; index < 5; index += 1) assert.equal((await list(one)).status, 200);
    redis.thaw();
    clock.turn(1);
    // Redis has counted, late, the one command that it received.
    assert.equal((await list(one)).headers['x-ratelimit-remaining'], '18');
  });

  test('the service starts without Redis [H228]', async (t) => {
    const redis = await createRedis();
    const instance = await startService(t, { settings: { SERVICE_REDIS_URL: redis.url, SERVICE_RATE_LIMIT_PER_MINUTE: '5' } });
    await instance.handoff.start();
    assert.equal((await list(instance)).status, 200);
    assert.equal((await instance.call('GET', '/ready')).status, 200);
    const joined = instance.logged('redis is available');
    await redis.start();
    t.after(() => redis.stop());
    await joined;
    assert.equal((await list(instance)).status, 200);
  });
});

test('a Redis that answers with another type does not fail requests: the instance counts by itself', async (t) => {
  const text = (value: string) => `$${value.length}\r\n${value}\r\n`;
  const counts = (count: string) => `*3\r\n*3\r\n${count}:0\r\n:60000\r\n`;
  const answers = {
    'a string': text('nonsense'),
    'a status': '+OK\r\n',
    'an integer': ':7\r\n',
    nothing: '$-1\r\n',
    'an empty array': '*0\r\n',
    'a list of strings': `*2\r\n${text('a')}${text('b')}`,
    'counts as text': `${counts(text('1'))}${counts(text('1')).slice(4)}:0\r\n`,
    'a negative count': `${counts(':-1\r\n')}${counts(':1\r\n').slice(4)}:0\r\n`,
    'nothing for one key': `*2\r\n*-1\r\n:0\r\n`,
  };
  let answer = '';
  const url = await startOddRedis(t, () => answer);
  const instance = await startService(t, { settings: { SERVICE_REDIS_URL: url, SERVICE_RATE_LIMIT_PER_MINUTE: '5' } });
  await instance.handoff.start();
  for (const [name, each] of Object.entries(answers)) {
    answer = each;
    instance.clock.turn(61);
    const found = [];
    for (let index = 0; index < 6; index += 1) found.push(await list(instance));
    assert.deepEqual(
      found.map(({ status }) => status),
      [200, 200, 200, 200, 200, 429],
      name,
    );
    assert.equal(found[0]!.headers['x-ratelimit-remaining'], '4', name);
  }
  assert.equal(instance.logs.filter((line) => line.includes('redis is unavailable')).length, 1);
});

/** A server that answers scripts with the RESP value that `answer` returns and all other commands with OK; returns its address. */
async function startOddRedis(t: TestContext, answer: () => string): Promise<string> {
  const server = createServer((socket) =>
    socket.on('data', (chunk) => {
      // Each command is an array of bulk strings, and begins a line with an asterisk.
      for (const command of String(chunk)
        .split(/^\*\d+\r\n/m)
        .slice(1))
        socket.write(/^\$\d+\r\neval\r\n/i.test(command) ? answer() : '+OK\r\n');
    }),
  );
  return `redis://127.0.0.1:${(await listenFor(t, server)).port}`;
}

/** A proxy to Redis whose connections can go silent, as when a machine in between fails; new connections work. */
async function startWay(t: TestContext, target: string): Promise<{ url: string; silence(): void }> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
    }
    near.pipe(far).pipe(near);
  });
  const { port: ownPort } = await listenFor(t, server);
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const silence = () => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  return { url: `redis://127.0.0.1:${ownPort}`, silence };
}

const agents = { source_agent: { id: 'a', name: 'A', framework: 'test' }, target_agent: { id: 'b', name: 'B' } };

const list = (instance: TestService) => instance.call('GET', '/packets');
const passed = (answers: readonly { status: number }[]) => answers.filter(({ status }) => status === 200).length;

/** Three instances on one PostgreSQL and one Redis. */
async function threeInstances(
  t: TestContext,
  settings: Record<string, string>,
  dependencies?: ServiceOptions['dependencies'],
): Promise<{ instances: TestService[]; redis: TestRedis; clock: TestClock }> {
  const redis = await createRedis();
  await redis.start();
  const { start, clock } = await openInstances(t);
  const instances = await Promise.all(Array.from({ length: 3 }, () => start({ ...settings, SERVICE_REDIS_URL: redis.url }, dependencies)));
  await Promise.all(instances.map(({ handoff }) => handoff.start()));
  t.after(() => redis.stop());
  return { instances, redis, clock };
}
