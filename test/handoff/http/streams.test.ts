import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { EventSource } from 'eventsource';

import { adminKey, createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { sendRaw } from '../../support/socket.ts';
import { AsyncQueue, listenTo, openEvents, openSocket, type TestEvents } from '../../support/streams.ts';

const keyed = { 'x-api-key': adminKey };

async function started(t: TestContext, settings: Record<string, string> = {}): Promise<{ service: TestService; address: string }> {
  const service = await startService(t, { settings });
  return { service, address: await service.handoff.start() };
}

const listen = (t: TestContext, address: string, query = '', headers: Record<string, string> = keyed): Promise<TestEvents> =>
  listenTo(t, address, query, headers);

describe('A stream', () => {
  test('is refused before it starts if a channel is malformed, or there are too many [H151]', async (t) => {
    const { address } = await started(t);
    for (const query of [
      'subscribe=',
      'subscribe=status:nope',
      'subscribe=packet:not-a-uuid',
      'subscribe=foo',
      'subscribe=agent:',
      'other=1',
    ]) {
      const refused = await openEvents(address, `?${query}`, keyed);
      assert.equal(refused.status, 400, query);
      const { data } = await refused.events.next();
      assert.deepEqual([data.code, data.field], ['VALIDATION_ERROR', query.split('=')[0]]);
    }
    const many = await openEvents(address, `?${Array(101).fill('subscribe=agent:a').join('&')}`, keyed);
    assert.equal(many.status, 400);
  });

  test('takes the key only in a header or the parameter; a wrong key is 401 [H151, H258]', async (t) => {
    const { address } = await started(t);
    await listen(t, address, `?api_key=${adminKey}`, {});
    await listen(t, address, '', keyed);
    await listen(t, address, '', { authorization: `Bearer ${adminKey}` });
    for (const [query, headers] of [
      ['', {}],
      ['?api_key=', {}],
      ['?api_key=wrong', {}],
      [`?api_key=${adminKey}`, { 'x-api-key': 'wrong' }],
      [`?api_key=${adminKey}&api_key=${adminKey}`, {}],
    ] as const) {
      const refused = await openEvents(address, query, headers);
      assert.equal(refused.status, 401, query);
      assert.equal((await refused.events.next()).data.code, 'UNAUTHORIZED');
    }
  });

  test('without a key sees the tenant default in development mode, which still refuses a wrong key and a foreign page [H155]', async (t) => {
    const { service, address } = await started(t, { SERVICE_DEV_MODE: 'true' });
    const stream = await listen(t, address, '', {});
    const socket = await openSocket(address);
    t.after(() => socket.socket.terminate());
    const { id } = await createPacket(service);
    assert.equal((await stream.events.next()).data.packet_id, id);
    assert.equal((await socket.messages.take(2))[1].packet_id, id);
    assert.equal((await openEvents(address, '?api_key=wrong')).status, 401);
    assert.equal((await service.call('GET', '/packets', { key: null })).status, 401);
    await assert.rejects(openSocket(address, '', { origin: 'https://evil.example' }), { status: 403 });
    // A foreign name may have been pointed at this machine.
    assert.equal((await openEvents(address, '', { host: 'evil.example' })).status, 403);
    await assert.rejects(openSocket(address, '', { host: 'evil.example' }), { status: 403 });
    assert.equal((await openEvents(address, `?api_key=${adminKey}`, { host: 'evil.example' })).status, 200);
  });

  test("counts towards its tenant's quota, SSE and WebSocket together, until it is closed [H161]", async (t) => {
    const { service, address } = await started(t, { SERVICE_CONNECTIONS_FREE: '2' });
    const { key } = await newTenant(service, { tier: 'free' });
    const first = await listen(t, address, `?api_key=${key}`, {});
    const second = await openSocket(address, `?api_key=${key}`);
    t.after(() => second.socket.terminate());
    const refused = await openEvents(address, `?api_key=${key}`);
    assert.equal(refused.status, 429);
    const { data } = await refused.events.next();
    assert.deepEqual([data.code, data.limit], ['RATE_LIMITED', { name: 'connections', max: 2, reset_seconds: 5 }]);
    assert.equal(refused.headers['retry-after'], '5');
    await assert.rejects(openSocket(address, `?api_key=${key}`), { status: 429 });
    await listen(t, address);
    const ended = service.logged('"stream"');
    first.close();
    await ended;
    await listen(t, address, `?api_key=${key}`, {});
  });

  test('gets its next ping within 30 seconds after the clock was set back or ahead [H162]', async (t) => {
    const { service, address } = await started(t);
    const stream = await listen(t, address);
    for (const jump of [-3600, 3600, -86_400]) {
      service.clock.turn(jump);
      await service.handoff.runOnce.heartbeat();
      // A jump ahead makes a ping due at once.
      if (jump > 0) await stream.pings.next();
      service.clock.turn(30);
      const timestamp = service.clock.read().toISOString();
      await service.handoff.runOnce.heartbeat();
      const ping = await stream.pings.next();
      assert.deepEqual([ping.event, ping.data], ['ping', { timestamp }]);
    }
  });

  test('gets a ping every 30 seconds with the id of the last event; a WebSocket without a pong is closed with 4201 [H157, H167]', async (t) => {
    const { service, address } = await started(t);
    const stream = await listen(t, address, '?subscribe=status:failed');
    const socket = await openSocket(address, `?api_key=${adminKey}`);
    t.after(() => socket.socket.terminate());
    const mute = await openSocket(address, `?api_key=${adminKey}`);
    mute.socket.pong = () => undefined;
    await createPacket(service);
    assert.equal((await socket.messages.take(2))[1].type, 'packet.created');
    service.clock.turn(29);
    await service.handoff.runOnce.heartbeat();
    const pinged = once(socket.socket, 'ping');
    service.clock.turn(1);
    await service.handoff.runOnce.heartbeat();
    await pinged;
    const timestamp = service.clock.read().toISOString();
    const ping = await stream.pings.next();
    assert.deepEqual([ping.event, ping.data], ['ping', { timestamp }]);
    assert.match(ping.id!, /^\d+-/);
    assert.deepEqual(await socket.pings.next(), { type: 'ping', timestamp });
    service.clock.turn(30);
    await service.handoff.runOnce.heartbeat();
    assert.equal((await mute.closed).code, 4201);
    const again = await listen(t, address, '', { ...keyed, 'last-event-id': ping.id! });
    const { id } = await createPacket(service);
    assert.equal((await again.events.next()).data.packet_id, id);
  });

  test('ends if its key is revoked or its tenant deleted: SSE is closed, a WebSocket with 4001 [H160, H168]', async (t) => {
    const { service, address } = await started(t);
    for (const end of ['key', 'tenant'] as const) {
      const tenant = await newTenant(service);
      const stream = await listen(t, address, `?api_key=${tenant.key}`, {});
      const socket = await openSocket(address, `?api_key=${tenant.key}`);
      const other = await listen(t, address);
      const path = end === 'key' ? `/keys/${tenant.keyId}` : `/tenants/${tenant.id}`;
      assert.equal((await service.call('DELETE', path)).status, 204);
      await service.handoff.runOnce.recheck();
      await stream.ended;
      assert.equal((await socket.closed).code, 4001);
      await createPacket(service);
      assert.equal((await other.events.next()).event, 'packet.created');
    }
  });

  test('ends when its rotated key expires [H168]', async (t) => {
    const { service, address } = await started(t);
    const { key, keyId } = await newTenant(service);
    const stream = await listen(t, address, `?api_key=${key}`, {});
    const socket = await openSocket(address, `?api_key=${key}`);
    assert.equal((await service.call('POST', `/keys/${keyId}/rotate`, { body: { overlap_seconds: 60 }, key })).status, 201);
    service.clock.turn(59);
    await service.handoff.runOnce.recheck();
    const { id } = await createPacket(service, {}, key);
    assert.equal((await stream.events.next()).data.packet_id, id);
    service.clock.turn(1);
    await service.handoff.runOnce.recheck();
    await stream.ended;
    assert.equal((await socket.closed).code, 4001);
  });

  test('gets reset too_old if events after its id are past their retention, over SSE and WebSocket [H151]', async (t) => {
    const { service, address } = await started(t, { SERVICE_STREAM_RETENTION_SECONDS: '60' });
    const first = await listen(t, address);
    await createPacket(service);
    const { id } = await first.events.next();
    await createPacket(service);
    service.clock.turn(61);
    await service.handoff.runOnce.prune();
    const late = await openEvents(address, `?last_event_id=${id}`, keyed);
    t.after(() => late.close());
    const [, reset] = await late.events.take(2);
    assert.deepEqual([reset!.event, reset!.data], ['reset', { reason: 'too_old' }]);
    const socket = await openSocket(address, `?api_key=${adminKey}&last_event_id=${id}`);
    t.after(() => socket.socket.terminate());
    assert.deepEqual((await socket.messages.take(2))[1], { type: 'reset', reason: 'too_old' });
    const made = await createPacket(service);
    assert.equal((await late.events.next()).data.packet_id, made.id);
    assert.equal((await socket.messages.next()).packet_id, made.id);
  });

  test('of server-sent events uses TCP keep-alive, which detects a client that vanished between two pings [H167]', async (t) => {
    const { service, address } = await started(t);
    const calls: unknown[][] = [];
    service.handoff.app.server.on('connection', (socket: Socket) => {
      const setKeepAlive = socket.setKeepAlive.bind(socket) as (...parameters: unknown[]) => Socket;
      socket.setKeepAlive = (...parameters: unknown[]) => {
        calls.push(parameters);
        return setKeepAlive(...parameters);
      };
    });
    await listen(t, address);
    assert.deepEqual(calls, [[{ enable: true, initialDelay: 5000, interval: 1000, count: 5 }]]);
  });

  test('whose client does not read is closed and can resume by id; others receive everything [H163]', async (t) => {
    const { service, address } = await started(t);
    const slow = await listen(t, address);
    const slowSocket = await openSocket(address, `?api_key=${adminKey}`);
    t.after(() => slowSocket.socket.terminate());
    slow.pause();
    slowSocket.socket.pause();
    const other = await listen(t, address);
    const large = { context: { summary: 'x'.repeat(200_000) } };
    let made = 0;
    const countSlow = () => service.logs.filter((line) => line.includes('"end":"slow"')).length;
    while (countSlow() < 2 && made < 300) {
      await createPacket(service, large);
      made += 1;
      assert.equal((await other.events.next()).event, 'packet.created');
    }
    assert.equal(countSlow(), 2);
    slow.resume();
    slowSocket.socket.resume();
    await slow.ended;
    const { id } = slow.events.all.at(-1)!;
    const heard = slow.events.all.length - 1;
    assert.ok(heard < made);
    const again = await listen(t, address, `?last_event_id=${id}`);
    await again.events.take(made - heard);
    assert.equal(again.events.all.length - 1 + heard, made);
  });

  test('is closed at a stop, a thousand of them in time: 1001 over WebSocket [H160]', async (t) => {
    const { service, address } = await started(t);
    const streams = await Promise.all(Array.from({ length: 500 }, () => listen(t, address)));
    const sockets = await Promise.all(Array.from({ length: 500 }, () => openSocket(address, `?api_key=${adminKey}`)));
    const metrics = await service.call('GET', '//metrics');
    assert.match(metrics.text, /service_open_connections\{protocol="sse"\} 500\n/);
    assert.match(metrics.text, /service_open_connections\{protocol="websocket"\} 500\n/);
    const stopping = service.handoff.app.close();
    await Promise.all(streams.map(({ ended }) => ended));
    for (const { closed } of sockets) assert.equal((await closed).code, 1001);
    await stopping;
  });

  test('is not in the latency histogram, and its key is in no log line [H170]', async (t) => {
    const { service, address } = await started(t);
    const stream = await listen(t, address, `?api_key=${adminKey}`, {});
    const line = service.logged('"stream"');
    stream.close();
    await line;
    const { text } = await service.call('GET', '//metrics');
    assert.match(text, /service_requests_total\{method="GET",endpoint="\/events",status="200"\} 1\n/);
    assert.doesNotMatch(text, /service_request_latency_seconds_count\{method="GET",endpoint="\/events"\}/);
    assert.ok(service.logs.every((one) => !one.includes(adminKey)));
  });

  test('carries any text in one event: line ends, field names, U+2028', async (t) => {
    const { service, address } = await started(t);
    const stream = await listen(t, address);
    const summary = 'a\r\ndata: x\n\nevent: y\nid: 1\u2028\u2029 😀';
    await createPacket(service, { context: { summary } });
    assert.equal((await stream.events.next()).data.data.context.summary, summary);
    await createPacket(service);
    assert.equal((await stream.events.next()).event, 'packet.created');
  });

  test('answers HEAD without counting a connection', async (t) => {
    const { address } = await started(t, { SERVICE_CONNECTIONS_BUSINESS: '1' });
    for (let round = 0; round < 3; round += 1) {
      const text = `HEAD /events HTTP/1.1\r\nHost: x\r\nX-API-Key: ${adminKey}\r\nConnection: close\r\n\r\n`;
      const answer = await sendRaw(address, text);
      assert.equal(answer.status, 200);
      assert.match(answer.text, /content-type: text\/event-stream/i);
    }
    await listen(t, address);
  });

  test('that a client resets is released', async (t) => {
    const { service, address } = await started(t, { SERVICE_CONNECTIONS_BUSINESS: '1' });
    for (let round = 0; round < 5; round += 1) {
      const socket = connect(Number(new URL(address).port), '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(`GET /events HTTP/1.1\r\nHost: x\r\nX-API-Key: ${adminKey}\r\n\r\n`);
      await once(socket, 'data');
      const ended = service.logged('"end":"gone"');
      socket.resetAndDestroy();
      await ended;
    }
    await listen(t, address);
  });

  test('receives nothing of another tenant, on any channel', async (t) => {
    const { service, address } = await started(t);
    const tenants = [await newTenant(service), await newTenant(service)];
    const foreign = await createPacket(service, {}, tenants[1]!.key);
    const queries = ['', '&subscribe=status:created', '&subscribe=agent:resolver', `&subscribe=packet:${foreign.id}`];
    const streams = await Promise.all(queries.map((query) => listen(t, address, `?api_key=${tenants[0]!.key}${query}`, {})));
    const sockets = await Promise.all(queries.map((query) => openSocket(address, `?api_key=${tenants[0]!.key}${query}`)));
    const marks = ['mine-7f3a', 'theirs-9c1d'];
    const batch = (index: number) => {
      const item = packetRequest({ context: { summary: marks[index] } });
      return service.call('POST', '/packets/batch', { body: { packets: Array(100).fill(item) }, key: tenants[index]!.key });
    };
    for (let round = 0; round < 2; round += 1) await Promise.all([batch(0), batch(1)]);
    await service.call('POST', `/packets/${foreign.id}/claim`, { body: { agent_id: 'resolver' }, key: tenants[1]!.key });
    await Promise.all([streams[0]!.events.take(200), streams[1]!.events.take(200), sockets[0]!.messages.take(201)]);
    for (const { socket } of sockets) socket.terminate();
    for (const stream of streams) assert.ok(!stream.text().includes(marks[1]!) && !stream.text().includes(foreign.id));
    for (const { messages } of sockets) assert.ok(!JSON.stringify(messages.all).includes(marks[1]!));
    assert.equal(streams[3]!.events.all.length, 1);
  });

  test('can be read by the eventsource package', async (t) => {
    const { service, address } = await started(t);
    const source = new EventSource(`${address}/events?api_key=${adminKey}`);
    t.after(() => source.close());
    const seen = new AsyncQueue<string>();
    source.addEventListener('packet.created', (event) => seen.put(JSON.parse(event.data).packet_id));
    await new Promise((resolve) => source.addEventListener('connected', resolve, { once: true }));
    const ids = [(await createPacket(service)).id, (await createPacket(service)).id];
    assert.deepEqual(await seen.take(2), ids);
  });
});
