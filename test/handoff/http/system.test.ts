import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { apiPrefix } from '../../../src/handoff/model/api.ts';
import { looking } from '../../support/consistency.ts';
import { openHandoffDatabase } from '../../support/databases.ts';
import { unknownId } from '../../support/life.ts';
import { listenFor } from '../../support/listen.ts';
import { adminKey, createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { sendRaw } from '../../support/socket.ts';
import { stores } from '../../support/stores.ts';

const prefixes = ['', apiPrefix];
const paths = ['/health', '/ready', '/metrics', '/openapi.json', '/docs', '/redoc'];

/** Calls a path at the root. */
const atRoot = (service: TestService, method: string, path: string) => service.call(method, `/${path}`, { key: null });

/** Reads the metrics as a map from names with labels to values. */
async function readMetrics(service: TestService): Promise<Map<string, number>> {
  const { status, text } = await atRoot(service, 'GET', '/metrics');
  assert.equal(status, 200);
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]));
}

/** A proxy in front of a database that can be closed and opened. */
async function startGate(t: TestContext, target: string): Promise<{ url: string; shut(): void; open(): void }> {
  const { hostname, port, pathname, username, password } = new URL(target);
  const sockets = new Set<Socket>();
  let isOpen = true;
  const server = createServer((near) => {
    if (!isOpen) return void near.destroy();
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
  });
  const { port: ownPort } = await listenFor(t, server);
  const shut = () => {
    isOpen = false;
    for (const socket of sockets) socket.destroy();
  };
  t.after(shut);
  return {
    url: `postgres://${username}:${password}@127.0.0.1:${ownPort}${pathname}`,
    shut,
    open: () => {
      isOpen = true;
    },
  };
}

for (const store of stores) {
  describe(`The system endpoints on ${store.name}`, () => {
    test('are at the root and under /api/v1, and need no key [H274]', async () => {
      const service = await shareService(store);
      for (const prefix of prefixes) {
        for (const path of paths) {
          for (const key of [null, 'wrong', adminKey]) {
            const answer = await service.call('GET', `/${prefix}${path}`, { key });
            assert.equal(answer.status, 200, prefix + path);
            assert.ok(answer.text.length > 0);
          }
        }
      }
    });

    test('/health and /ready say ok', async () => {
      const service = await shareService(store);
      for (const path of ['/health', '/ready']) {
        const { status, body } = await atRoot(service, 'GET', path);
        assert.equal(status, 200);
        assert.deepEqual(body, { status: 'ok' });
      }
    });

    test('/metrics counts the open packets', async (t) => {
      const service = await startService(t, { store });
      const active = async () => (await readMetrics(service)).get('service_active_packets');
      assert.equal(await active(), 0);
      const first = await createPacket(service);
      const second = await createPacket(service);
      const third = await createPacket(service);
      const other = await newTenant(service);
      const fourth = await createPacket(service, {}, other.key);
      assert.equal(await active(), 4);
      await service.call('POST', `/packets/${first.id}/claim`, { body: { agent_id: 'a' } });
      await service.call('PATCH', `/packets/${second.id}`, {
        body: { status: 'awaiting_human', hitl: { required: true, reason: 'r', question: 'q?' } },
      });
      assert.equal(await active(), 4);
      await service.call('PATCH', `/packets/${first.id}`, { body: { status: 'completed' } });
      await service.call('PATCH', `/packets/${second.id}`, { body: { status: 'failed' } });
      await service.call('DELETE', `/packets/${third.id}`);
      assert.equal(await active(), 1);
      await service.call('POST', `/packets/${fourth.id}/claim`, { key: other.key, body: { agent_id: 'a' } });
      assert.equal(await active(), 1);
      assert.equal((await service.call('DELETE', `/packets/${third.id}?hard=true`)).status, 204);
      assert.equal(await active(), 1);
    });

    test('/metrics leaves out what is not known yet', async (t) => {
      const service = await startService(t, { store });
      const { status, text } = await service.call('GET', '//metrics', { key: null });
      assert.equal(status, 200);
      assert.doesNotMatch(text, / nan$/im);
    });

    test('/metrics has packets by status and the age of the oldest question, over all tenants [H279]', async (t) => {
      const service = await startService(t, { store });
      // With what PostgreSQL can't decode, and what only looks like it.
      const hitl = { required: true, reason: 'r', question: 'q\0 \ud800\udc00 \ud800? \\u0000 \\\\ud8ff' };
      const ask = async (key?: string) => {
        const { id } = await createPacket(service, { hitl }, key);
        const options = { body: { status: 'awaiting_human' }, ...(key === undefined ? {} : { key }) };
        assert.equal((await service.call('PATCH', `/packets/${id}`, options)).status, 200);
        return id as string;
      };
      const age = async () => (await readMetrics(service)).get('service_oldest_question_age_seconds');
      assert.equal(await age(), 0);
      const other = await newTenant(service);
      const first = await ask(other.key);
      service.clock.turn(90);
      await ask();
      await createPacket(service);
      service.clock.turn(10);
      const samples = await readMetrics(service);
      assert.equal(samples.get('service_oldest_question_age_seconds'), 100);
      const count = (status: string) => samples.get(`service_packets{status="${status}"}`);
      assert.deepEqual(['awaiting_human', 'created', 'claimed', 'expired'].map(count), [2, 1, 0, 0]);
      const answer = await service.call('POST', `/packets/${first}/respond`, {
        key: other.key,
        body: { response: 'y', responded_by: 'dana' },
      });
      assert.equal(answer.status, 200);
      assert.equal(await age(), 10);
    });

    test('/metrics has the ages of the oldest unclaimed packet and of the oldest claim without a lease, over all tenants [H279]', async (t) => {
      const service = await startService(t, { store });
      const ages = async () => {
        const samples = await readMetrics(service);
        return ['unclaimed', 'claim_without_lease'].map((what) => samples.get(`service_oldest_${what}_age_seconds`));
      };
      assert.deepEqual(await ages(), [0, 0]);
      const other = await newTenant(service);
      await createPacket(service, {}, other.key);
      service.clock.turn(100);
      const claim = async (body: object) => {
        const { id } = await createPacket(service);
        assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a', ...body } })).status, 200);
        return id as string;
      };
      await claim({ lease_seconds: 60 });
      assert.deepEqual(await ages(), [100, 0]);
      const held = await claim({});
      service.clock.turn(10);
      await createPacket(service);
      assert.deepEqual(await ages(), [110, 10]);
      assert.equal((await service.call('PATCH', `/packets/${held}`, { body: { status: 'in_progress' } })).status, 200);
      assert.deepEqual(await ages(), [110, 10]);
      assert.equal((await service.call('PATCH', `/packets/${held}`, { body: { status: 'completed' } })).status, 200);
      assert.deepEqual(await ages(), [110, 0]);
      // The packets of a deleted tenant wait for nobody.
      assert.equal((await service.call('DELETE', `/tenants/${other.id}`)).status, 204);
      assert.deepEqual(await ages(), [0, 0]);
    });

    test('/metrics has the rows of each table and the size of the database, as they were when they were last measured', async (t) => {
      const service = await startService(t, { store });
      const rows = async (table: string) => (await readMetrics(service)).get(`service_table_rows{table="${table}"}`);
      const bytes = async () => (await readMetrics(service)).get('service_database_bytes');
      await createPacket(service);
      assert.deepEqual([await rows('packets'), await bytes()], [undefined, undefined]);
      // PostgreSQL collects its statistics now and then, or when it is told to.
      if (store.name === 'PostgreSQL') await looking(service.databaseUrl, ({ query }) => query('analyze'));
      const next = await service.handoff.runOnce.measure();
      assert.ok(next >= 600_000);
      assert.deepEqual(
        [await rows('packets'), await rows('tenants'), await rows('deliveries'), await rows('contents')],
        [1, 1, 0, undefined],
      );
      assert.ok((await bytes())! > 100_000);
      await createPacket(service);
      assert.equal(await rows('packets'), 1);
    });

    test('/metrics counts the handoffs of each tenant: created, chained and in batches, but not refused', async () => {
      const service = await shareService(store);
      const { id: tenant, key } = await newTenant(service, { handoffs_per_day: 5 });
      const pseudonym = hash('sha256', tenant).slice(0, 12);
      const handoffs = async () => (await readMetrics(service)).get(`service_handoffs_total{tenant_id="${pseudonym}"}`);
      const once = () => service.call('POST', '/packets', { key, body: packetRequest(), headers: { 'idempotency-key': 'once' } });
      const { body: first } = await once();
      await once();
      assert.equal(await handoffs(), 1);
      assert.equal((await service.call('POST', `/packets/${first.id}/chain`, { key, body: packetRequest() })).status, 201);
      assert.equal((await service.call('POST', '/packets', { key, body: {} })).status, 400);
      assert.equal(await handoffs(), 2);
      assert.equal(
        (
          await service.call('POST', '/packets/batch', {
            key,
            body: { packets: [packetRequest(), {}, packetRequest(), packetRequest(), packetRequest()] },
          })
        ).status,
        201,
      );
      assert.equal(await handoffs(), 5);
      assert.equal((await service.call('POST', '/packets', { key, body: packetRequest() })).status, 429);
      assert.equal(await handoffs(), 5);
    });
  });
}

describe('/metrics', () => {
  test('is Prometheus text with the specified metrics, each with its type and labels', async (t) => {
    const service = await startService(t);
    await createPacket(service);
    const { headers, text } = await atRoot(service, 'GET', '/metrics');
    assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    for (const [name, type] of [
      ['service_requests_total', 'counter'],
      ['service_request_latency_seconds', 'histogram'],
      ['service_active_packets', 'gauge'],
      ['service_handoffs_total', 'counter'],
      ['service_packets', 'gauge'],
      ['service_oldest_question_age_seconds', 'gauge'],
      ['service_event_loop_lag_seconds', 'gauge'],
      ['process_resident_memory_bytes', 'gauge'],
      ['process_cpu_seconds_total', 'counter'],
      ['nodejs_heap_size_used_bytes', 'gauge'],
      ['service_database_up', 'gauge'],
      ['service_write_queue_length', 'gauge'],
      ['service_search_queue_length', 'gauge'],
      ['service_table_rows', 'gauge'],
      ['service_database_bytes', 'gauge'],
    ]) {
      assert.match(text, new RegExp(`^# HELP ${name} .+$`, 'm'));
      assert.match(text, new RegExp(`^# TYPE ${name} ${type}$`, 'm'));
    }
    const samples = await readMetrics(service);
    assert.equal(samples.get('service_requests_total{method="POST",endpoint="/api/v1/packets",status="201"}'), 1);
    assert.equal(samples.get('service_request_latency_seconds_count{method="POST",endpoint="/api/v1/packets"}'), 1);
    assert.ok(samples.get('service_request_latency_seconds_sum{method="POST",endpoint="/api/v1/packets"}')! > 0);
    assert.equal(samples.get('service_request_latency_seconds_bucket{le="+Inf",method="POST",endpoint="/api/v1/packets"}'), 1);
    assert.equal(samples.get('service_database_up'), 1);
    assert.equal(samples.get('service_search_queue_length'), 1);
  });

  test('counts errors under their own status', async (t) => {
    const service = await startService(t);
    await service.call('GET', `/packets/${unknownId}`);
    await service.call('GET', `/packets/${unknownId}`, { key: 'wrong' });
    await service.call('POST', '/packets', { raw: '{' });
    const samples = await readMetrics(service);
    const counted = (method: string, endpoint: string, status: number) =>
      samples.get(`service_requests_total{method="${method}",endpoint="${endpoint}",status="${status}"}`);
    assert.equal(counted('GET', '/api/v1/packets/:id', 404), 1);
    assert.equal(counted('GET', '/api/v1/packets/:id', 401), 1);
    assert.equal(counted('POST', '/api/v1/packets', 400), 1);
  });

  test('labels requests with the pattern of their route, so that unknown paths add no labels', async (t) => {
    const service = await startService(t);
    const ask = async (index: number) => {
      await service.call('GET', `/packets/${unknownId.slice(0, -3)}${index}?x=${index}`);
      await service.call('GET', `/nowhere/${index}`);
      await service.call('PATCH', `/packets?${index}`);
      await atRoot(service, 'GET', `/${index}`);
    };
    await ask(100);
    const before = await readMetrics(service);
    for (let index = 101; index < 130; index += 1) await ask(index);
    const after = await readMetrics(service);
    const names = (samples: Map<string, number>) => [...samples.keys()].filter((name) => !name.includes('"/metrics"'));
    assert.deepEqual(names(after), names(before));
    assert.ok(![...after.keys()].some((name) => name.includes('nowhere') || /0197b5a6/.test(name)));
  });

  test('contains no tenant names, keys or text of packets', async (t) => {
    const service = await startService(t);
    const tenant = await service.call('POST', '/tenants', { body: { name: 'Zanzibar Ltd', tier: 'pro' } });
    const { body } = await service.call('POST', '/keys', { body: { name: 'quokka', tenant_id: tenant.body.id } });
    const packet = await createPacket(service, { context: { summary: 'wombat' } }, body.key);
    await service.call('GET', '/packets/search?q=wombat', { key: body.key });
    await service.call('GET', `/packets/${packet.id}`, { key: body.key });
    await service.call('GET', '/packets?target_agent=resolver', { key: 'numbat' });
    const { status, text } = await atRoot(service, 'GET', '/metrics');
    assert.equal(status, 200);
    for (const secret of [
      'Zanzibar',
      'quokka',
      'wombat',
      'numbat',
      'resolver',
      packet.id,
      body.key,
      body.key.slice(0, 8),
      body.id,
      adminKey,
    ])
      assert.ok(!text.includes(secret), secret);
  });
});

describe('/metrics with SERVICE_METRICS_TOKEN', () => {
  const settings = { SERVICE_METRICS_TOKEN: 'a-token-for-prometheus' };

  test('401 without the token; with it, tenants are labelled with their ids [H279]', async (t) => {
    const service = await startService(t, { settings });
    const { id, key } = await newTenant(service);
    await createPacket(service, {}, key);
    for (const authorization of [undefined, 'Bearer wrong', 'Bearer', 'Basic YTpi', settings.SERVICE_METRICS_TOKEN]) {
      for (const path of ['//metrics', '/metrics']) {
        const refused = await service.call('GET', path, { headers: authorization === undefined ? {} : { authorization } });
        assert.equal(refused.status, 401, authorization!);
        assert.equal(refused.body.code, 'UNAUTHORIZED');
        assert.equal(refused.headers['www-authenticate'], 'Bearer');
        assert.ok(!refused.text.includes(id));
      }
    }
    const read = await service.call('GET', '//metrics', {
      key: null,
      headers: { authorization: `Bearer ${settings.SERVICE_METRICS_TOKEN}` },
    });
    assert.equal(read.status, 200);
    assert.match(read.text, new RegExp(`service_handoffs_total\\{tenant_id="${id}"\\} 1`));
  });

  test('without the setting /metrics is open and labels tenants with pseudonyms [H279]', async (t) => {
    const service = await startService(t);
    const [first, second] = [await newTenant(service), await newTenant(service)];
    await createPacket(service, {}, first.key);
    await createPacket(service, {}, second.key);
    const { status, text } = await service.call('GET', '//metrics', { key: null });
    assert.equal(status, 200);
    assert.equal([...text.matchAll(/^service_handoffs_total\{tenant_id="[0-9a-f]{12}"\} 1$/gm)].length, 2);
    for (const { id } of [first, second]) assert.ok(!text.includes(id));
  });
});

describe('/ready', () => {
  test('A service that drains is not ready, answers everything, and closes each connection after its answer', async (t) => {
    const service = await startService(t);
    const healthy = await atRoot(service, 'GET', '/ready');
    assert.deepEqual([healthy.status, healthy.headers.connection], [200, 'keep-alive']);
    service.handoff.app.drain();
    const { status, body } = await atRoot(service, 'GET', '/ready');
    assert.deepEqual([status, body.code], [503, 'SERVICE_UNAVAILABLE']);
    const created = await service.call('POST', '/packets', { body: packetRequest() });
    assert.deepEqual([created.status, created.headers.connection], [201, 'close']);
    assert.equal((await atRoot(service, 'GET', '/health')).status, 200);
  });

  test('503 while the database is unavailable, 200 once it is back; /health is always 200 [H268]', async (t) => {
    const database = await openHandoffDatabase();
    const gate = await startGate(t, database.url);
    const service = await startService(t, { databaseUrl: gate.url });
    t.after(() => database.drop());
    assert.equal((await atRoot(service, 'GET', '/ready')).status, 200);

    gate.shut();
    const down = await atRoot(service, 'GET', '/ready');
    assert.equal(down.status, 503);
    const { detail, request_id, ...rest } = down.body;
    assert.deepEqual(rest, { code: 'SERVICE_UNAVAILABLE', field: null, status_code: 503 });
    assert.ok(detail && request_id);
    assert.ok(!down.text.includes('127.0.0.1') && !down.text.includes('baton'));
    assert.equal((await atRoot(service, 'GET', '/health')).status, 200);
    assert.equal((await service.call('GET', '/packets')).status, 503);
    assert.equal((await service.call('POST', '/packets', { body: packetRequest() })).status, 503);
    const samples = await readMetrics(service);
    assert.equal(samples.get('service_database_up'), 0);

    gate.open();
    assert.equal((await atRoot(service, 'GET', '/ready')).status, 200);
    assert.equal((await service.call('POST', '/packets', { body: packetRequest() })).status, 201);
  });
});

describe('An invalid request', () => {
  test('is answered, logged and counted in the metrics', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    const logged = service.logged('"status":431');
    assert.equal((await sendRaw(address, 'nonsense\r\n\r\n')).status, 400);
    assert.equal((await sendRaw(address, `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`)).status, 431);
    await logged;
    const samples = await readMetrics(service);
    for (const status of [400, 431])
      assert.equal(samples.get(`service_requests_total{method="unknown",endpoint="unknown",status="${status}"}`), 1);
  });

  test('an unknown Expect header is ignored', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    const answer = await sendRaw(address, 'GET /health HTTP/1.1\r\nHost: x\r\nExpect: more\r\nConnection: close\r\n\r\n');
    assert.deepEqual([answer.status, answer.body], [200, { status: 'ok' }]);
  });
});

describe('The description and its explorers', () => {
  test('/docs and /redoc are pages whose every script and style comes from this service', async (t) => {
    const service = await startService(t);
    for (const prefix of prefixes) {
      for (const path of ['/docs', '/redoc']) {
        const page = await atRoot(service, 'GET', prefix + path);
        assert.equal(page.status, 200);
        assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
        assert.match(String(page.headers['content-security-policy']), /default-src 'none'; script-src 'self'/);
        assert.equal(page.headers['x-content-type-options'], 'nosniff');
        assert.doesNotMatch(page.text, /https?:\/\//);
        const assets = [...page.text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, address]) => address!);
        assert.ok(assets.length >= 2);
        for (const asset of assets) {
          const { status, text } = await atRoot(service, 'GET', asset);
          assert.equal(status, 200, asset);
          assert.ok(text.length > 50, asset);
        }
      }
    }
  });
});

describe('HEAD', () => {
  test('answers as GET does, without a body, on the system endpoints and on routes of the API [H240]', async (t) => {
    const service = await startService(t);
    const packet = await createPacket(service);
    const keyed = [
      '/packets',
      '/packets/awaiting',
      '/packets/search?q=x',
      `/packets/${packet.id}`,
      `/packets/${packet.id}/history`,
      '/audit',
      '/keys',
      '/tenants',
    ];
    for (const path of [...paths, ...keyed.map((path) => apiPrefix + path)]) {
      const got = await service.call('GET', `/${path}`);
      const head = await service.call('HEAD', `/${path}`);
      assert.equal(head.status, got.status, path);
      assert.equal(head.text, '', path);
      assert.equal(head.headers['content-type'], got.headers['content-type'], path);
    }
    assert.equal((await service.call('HEAD', `/packets/${unknownId}`)).status, 404);
    assert.equal((await service.call('HEAD', '/packets', { key: null })).status, 401);
  });
});

describe('A request without a route', () => {
  test('404 in the error body for an unknown path, at the root and under /api/v1, with a key or without [H240, H268]', async (t) => {
    const service = await startService(t);
    for (const path of [
      '/nowhere',
      '/api',
      '/api/v1',
      '/api/v1/',
      '/api/v2/packets',
      '/api/v1/nowhere',
      '/packets',
      '/keys',
      '/health/',
      '/api/v1//packets',
      '/%2e%2e/etc/passwd',
      '/docs/assets/../../package.json',
    ]) {
      for (const key of [null, adminKey]) {
        const answer = await service.call('GET', `/${path}`, { key });
        assert.equal(answer.status, 404, path);
        const { detail, request_id, ...rest } = answer.body;
        assert.deepEqual(rest, { code: 'NOT_FOUND', field: null, status_code: 404 });
        assert.ok(detail && request_id);
      }
    }
  });

  test('405 in the error body, with Allow, for a known path with another method [H240, H268]', async (t) => {
    const service = await startService(t);
    const cases: [string, string, string[]][] = [
      ['PUT', '/packets', ['GET', 'HEAD', 'POST']],
      ['DELETE', '/packets', ['GET', 'HEAD', 'POST']],
      ['POST', `/packets/${unknownId}`, ['DELETE', 'GET', 'HEAD', 'PATCH']],
      ['GET', `/packets/${unknownId}/claim`, ['POST']],
      ['PATCH', '/packets/batch/claim', ['POST']],
      ['PUT', `/keys/${unknownId}`, ['DELETE']],
      ['DELETE', '/tenants', ['GET', 'HEAD', 'POST']],
      ['OPTIONS', '/audit', ['GET', 'HEAD']],
    ];
    for (const [method, path, allowed] of cases) {
      const answer = await service.call(method, path, { key: null });
      assert.equal(answer.status, 405, `${method} ${path}`);
      const { detail, request_id, ...rest } = answer.body;
      assert.deepEqual(rest, { code: 'METHOD_NOT_ALLOWED', field: null, status_code: 405 });
      assert.ok(detail && request_id);
      assert.deepEqual(String(answer.headers.allow).split(', ').toSorted(), allowed, `${method} ${path}`);
      const wrongHeader = await service.call(method, path, { headers: { 'x-agent-id': '' } });
      assert.equal(wrongHeader.status, 405, `${method} ${path} with a header`);
    }
    for (const prefix of prefixes) {
      for (const path of paths) {
        const answer = await atRoot(service, 'POST', prefix + path);
        assert.equal(answer.status, 405, prefix + path);
        assert.equal(answer.body.code, 'METHOD_NOT_ALLOWED');
        assert.match(String(answer.headers.allow), /^GET\b/);
      }
    }
  });

  test('every answer has the request id that its log line has [H268]', async (t) => {
    const service = await startService(t);
    const ids: string[] = [];
    for (const [path, key] of [
      ['//health', null],
      ['/packets', adminKey],
      ['/packets', 'wrong'],
      ['/nowhere', null],
      [`/packets/${unknownId}`, adminKey],
    ] as const) {
      const { headers, body, status } = await service.call('GET', path, { key });
      // An unknown path has no route that would set the header.
      const id = path === '/nowhere' ? body.request_id : headers['x-request-id'];
      if (status >= 400) assert.equal(body.request_id, id, path);
      ids.push(id);
    }
    const logged = service.logs.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
    assert.deepEqual(
      logged.map(({ request_id }) => request_id),
      ids,
    );
    assert.equal(new Set(ids).size, 5);
  });
});
