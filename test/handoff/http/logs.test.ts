import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { readable } from '../../../src/kit/http/logs.ts';
import { looking } from '../../support/consistency.ts';
import { chainRequest, startFallback } from '../../support/fallback.ts';
import { unknownId } from '../../support/life.ts';
import { callTool } from '../../support/mcp.ts';
import { adminKey, createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { openEvents, openSocket } from '../../support/streams.ts';

/** The log lines about requests, oldest first. */
const requestLines = (service: TestService): Record<string, unknown>[] =>
  service.logs.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');

/** Makes the database refuse every new packet, with an error that quotes the row where the database does that. */
const refuseInserts = (databaseUrl: string) =>
  looking(databaseUrl, ({ query }) =>
    query(
      databaseUrl.startsWith('sqlite')
        ? "create trigger no_packets before insert on packets begin select raise(abort, 'no packets today'); end"
        : "alter table packets add constraint no_packets check (state = '') not valid",
    ),
  );

/** The fields of requests and streams that `docs/operations.md` lists. */
const documented = [
  ...readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => /^\| `[a-z_]+`(, `[a-z_]+`)* \|/.test(line))
    .flatMap((line) => line.split(' | ')[0]!.match(/[a-z_]+/g)!),
  ...['path', 'level', 'time', 'service', 'msg'],
];

test('The log has the same field names for requests and streams of a service: the documented ones', async (t) => {
  const service = await startService(t);
  const { id: tenant, key } = await newTenant(service);
  const address = await service.handoff.start();
  await service.call('GET', '/nowhere', { key });
  const traced = { 'x-api-key': key, traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
  await openEvents(address, '', traced);
  await openSocket(address, '', traced);
  const fallback = await startFallback(t, { environment: { SERVICE_API_KEYS: 'ci:key-of-ci' } });
  const headers = { 'x-api-key': 'key-of-ci' };
  const chain = await fallback.call('POST', '/chains', { body: chainRequest(), headers });
  const { body: result } = await fallback.call('POST', `/chains/${chain.body.id}/test`, { body: { prompt_count: 1 }, headers });
  await (await fetch(`${await fallback.fallback.start()}/test-results/${result.id}/events`, { headers })).text();
  await service.handoff.stop();
  await fallback.fallback.stop();
  const linesOf = ({ logs }: { logs: string[] }) =>
    logs.map((line): Record<string, unknown> => JSON.parse(line)).filter(({ msg }) => msg === 'request' || msg === 'stream');
  for (const [lines, field, caller] of [
    [linesOf(service), 'tenant_id', tenant],
    [linesOf(fallback), 'label', 'ci'],
  ] as const) {
    assert.deepEqual(new Set(lines.map(({ msg }) => msg)), new Set(['request', 'stream']));
    for (const line of lines) {
      assert.deepEqual(
        Object.keys(line).filter((name) => !documented.includes(name)),
        [],
        String(line.msg),
      );
      if (line.msg === 'stream') assert.equal(line[field], caller, String(line.route));
    }
  }
});

for (const store of stores) {
  describe(`The log on ${store.name}`, () => {
    test('has one JSON line per request: its id, tenant, method, route, status and milliseconds', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const packet = await createPacket(service, {}, tenant.key);
      service.logs.length = 0;
      const answer = await service.call('GET', `/packets/${packet.id}?x`, { key: tenant.key });
      const [line, ...others] = requestLines(service);
      assert.equal(others.length, 0);
      assert.ok(service.logs[0]!.endsWith('}\n'));
      assert.equal(line!.request_id, answer.headers['x-request-id']);
      assert.equal(line!.tenant_id, tenant.id);
      assert.equal(line!.method, 'GET');
      assert.equal(line!.route, '/api/v1/packets/:id');
      assert.equal(line!.status, answer.status);
      assert.ok(typeof line!.ms === 'number' && line!.ms >= 0);
      assert.equal(line!.service, 'handoff');
      assert.equal(typeof line!.level, 'number');
      assert.equal(typeof line!.time, 'number');
    });

    test('has refused requests as well, with their error code, and without a tenant if the key was refused [H273]', async () => {
      const service = await shareService(store);
      await service.call('GET', '/packets', { key: 'wrong' });
      await service.call('GET', '/nowhere', { key: null });
      await service.call('GET', '/nowhere');
      await service.call('GET', `/packets/${unknownId}`);
      await service.call('POST', '/packets', { raw: '{' });
      await service.call('GET', '//health', { key: null });
      assert.deepEqual(
        requestLines(service).map(({ route, status, code, tenant_id }) => [route, status, code, tenant_id !== undefined]),
        [
          ['/api/v1/packets', 401, 'UNAUTHORIZED', false],
          ['unknown', 404, 'NOT_FOUND', false],
          ['unknown', 404, 'NOT_FOUND', true],
          ['/api/v1/packets/:id', 404, 'NOT_FOUND', true],
          ['/api/v1/packets', 400, 'VALIDATION_ERROR', true],
          ['/health', 200, undefined, false],
        ],
      );
    });

    test('has the path of a request that no route takes; what may be an id, a key or content is shown as *, and the query not at all', async () => {
      const service = await shareService(store);
      for (const path of [
        '/packet/list',
        `/packets/${unknownId}/claims?api_key=svc_secret`,
        `//api/v2/packets//${'a'.repeat(40)}/`,
        `//answers/Refund%20order/49.90/svc_abcdefgh`,
        `//${'a/'.repeat(100)}`,
      ])
        assert.equal((await service.call('GET', path)).status, 404, path);
      await service.call('GET', `/packets/${unknownId}`);
      assert.deepEqual(
        requestLines(service).map(({ path }) => path),
        ['/api/v1/packet/list', '/api/v1/packets/*/claims', '/api/v2/packets//*/', '/answers/*/*/*', `/${'a/'.repeat(11)}a`, undefined],
      );
      assert.match(readable(service.logs[0]!), / GET unknown 404 [\d.]+ ms .*path=\/api\/v1\/packet\/list/);
    });

    test('never contains a key or text of a packet', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_LOG_LEVEL: 'trace' } });
      const tenant = await newTenant(service);
      const { key } = tenant;
      const secret = 'wombat-7391';
      const made = await service.call('POST', '/keys', { key, body: { name: `${secret} key` } });
      const request = packetRequest({
        metadata: {
          source_agent: { id: `${secret}-a`, name: secret, framework: 'x' },
          target_agent: { id: `${secret}-b`, name: secret },
          tags: [secret],
        },
        context: { summary: `The summary says ${secret}`, custom: { secret } },
      });
      const { body: packet } = await service.call('POST', '/packets', {
        key,
        body: request,
        headers: { 'idempotency-key': secret, 'x-agent-id': secret },
      });
      assert.equal(packet.status, 'created');
      const calls: [string, string, Record<string, unknown>, number][] = [
        ['GET', `/packets/search?q=${secret}`, {}, 200],
        ['GET', `/packets?source_agent=${secret}&limit=0`, {}, 400],
        ['GET', `/packets/${secret}`, {}, 404],
        ['GET', `/${secret}?api_key=${key}`, {}, 404],
        ['PUT', `/packets/${secret}`, {}, 405],
        ['POST', '/packets', { raw: `{"context": "${secret}" ${secret}` }, 400],
        ['POST', '/packets', { raw: JSON.stringify({ [secret]: secret }) }, 400],
        ['POST', '/packets', { raw: `"${secret}"`, headers: { 'content-type': 'text/plain' } }, 415],
        ['POST', '/packets', { body: { ...request, context: { summary: secret.repeat(100_000) } } }, 413],
        ['POST', '/packets/batch', { body: { packets: [request, { [secret]: 1 }] } }, 201],
        ['POST', `/packets/${packet.id}/claim`, { body: { agent_id: secret } }, 200],
        ['POST', `/packets/${packet.id}/claim`, { body: { agent_id: secret } }, 409],
        ['PATCH', `/packets/${packet.id}`, { body: { status: 'created', decisions: [{ id: secret, decision: secret }] } }, 400],
        ['PATCH', `/packets/${packet.id}`, { body: { context: { summary: secret } }, headers: { 'if-match': `"${secret}"` } }, 412],
        ['GET', '/packets', { key: `${secret}-wrong-key` }, 401],
        ['GET', '/packets', { key: null, headers: { authorization: `Bearer ${secret}-${key}` } }, 401],
        ['DELETE', `/keys/${made.body.id}`, {}, 204],
      ];
      for (const [method, path, options, expected] of calls)
        assert.equal((await service.call(method, path, { key, ...options })).status, expected, `${method} ${path.slice(0, 60)}`);
      const text = service.logs.join('');
      assert.ok(text.includes('"status":413'));
      for (const hidden of [secret, key, key.slice(0, 12), made.body.key, adminKey]) assert.ok(!text.includes(hidden), hidden);
    });
  });
}

// The level concerns no store, so one is enough.
test('The log respects the configured level', async (t) => {
  const service = await startService(t, { settings: { SERVICE_LOG_LEVEL: 'warn' } });
  await service.call('GET', '/packets');
  await service.call('GET', '/nowhere');
  assert.deepEqual(service.logs, []);
});

for (const store of stores) {
  test(`A database failure is logged with its cause and not shown to the caller, without quoting the packet, on ${store.name}`, async (t) => {
    const service = await startService(t, { store });
    await createPacket(service);
    await refuseInserts(service.databaseUrl);
    service.logs.length = 0;
    const answer = await service.call('POST', '/packets', { body: packetRequest({ context: { summary: 'wombat-7391' } }) });
    assert.equal(answer.status, 500);
    const { detail, ...rest } = answer.body;
    assert.deepEqual(rest, { code: 'SERVER_ERROR', field: null, status_code: 500, request_id: answer.headers['x-request-id'] });
    assert.doesNotMatch(detail, /packets|constraint|sql/i);

    const failures = () => service.logs.map((line) => JSON.parse(line)).filter(({ level }) => level >= 50);
    const [failure] = failures();
    assert.equal(failure.request_id, answer.headers['x-request-id']);
    assert.equal(failure.route, '/api/v1/packets');
    assert.match(failure.err.message, /no.packets/);
    assert.match(failure.err.stack, /\n {4}at /);
    assert.equal(requestLines(service).at(-1)!.status, 500);
    assert.ok(!service.logs.join('').includes('wombat'));
    assert.ok(!service.logs.join('').includes(adminKey));

    const { content } = await callTool(service, 'hand_over', { target_agent: 'resolver', summary: 'A refund' });
    assert.match(content[0].text, /SERVER_ERROR/);
    const ofTool = failures().find(({ route }) => route === '/mcp');
    assert.match(ofTool.err.message, /no.packets/);
    assert.equal((await service.call('GET', '/packets')).body.total, 1);
  });

  test(`A failed job is logged with its name and the cause, on ${store.name}`, { timeout: 60_000 }, async (t) => {
    const service = await startService(t, { store });
    await looking(service.databaseUrl, ({ query }) => query('drop table search_queue'));
    const logged = service.logged('job failed');
    await service.handoff.start();
    await logged;
    const failure = service.logs.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'job failed');
    assert.deepEqual([failure.level, failure.job], [50, 'index']);
    assert.match(failure.err.message, /search_queue/);
  });
}
