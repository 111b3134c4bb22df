import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { createPacket, newTenant, type TestService } from '../../support/service.ts';
import { type SharedService, shareService } from '../../support/shared.ts';
import { sendRaw } from '../../support/socket.ts';
import type { TestStore } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';
import { openSocket, type TestSocket } from '../../support/streams.ts';

const memory = stores[0]!;

async function open(t: TestContext, address: string, query: string, headers: Record<string, string> = {}): Promise<TestSocket> {
  const socket = await openSocket(address, query, headers);
  t.after(() => socket.socket.terminate());
  assert.equal((await socket.messages.next()).type, 'connected');
  return socket;
}

interface Listening {
  service: SharedService;
  address: string;
  /** The query with a key of the tenant. */
  own: string;
}

/** A tenant in a service that is shared by its store and settings, and listens. */
async function started(store: TestStore, settings: Record<string, string> = {}): Promise<Listening> {
  const service = await shareService(store, settings);
  return { service, address: await service.listen(), own: `?api_key=${service.key}` };
}

const claim = (service: TestService, id: string) => service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });

for (const store of stores) {
  describe(`GET /ws on ${store.name}`, () => {
    test('sends every event of the tenant as the envelope with event_id [H157]', async (t) => {
      const { service, address, own } = await started(store);
      const socket = await openSocket(address, own);
      t.after(() => socket.socket.terminate());
      const connected = await socket.messages.next();
      assert.deepEqual(Object.keys(connected), ['type', 'connection_id', 'message']);
      const { id } = await createPacket(service);
      await claim(service, id);
      const [first, second] = await socket.messages.take(2);
      assert.deepEqual(Object.keys(first), ['type', 'packet_id', 'data', 'timestamp', 'event_id']);
      assert.deepEqual([first.type, first.packet_id, first.data.status], ['packet.created', id, 'created']);
      assert.deepEqual([second.type, second.packet_id, second.data.status], ['packet.claimed', id, 'claimed']);
    });

    test('the first subscribe narrows, later ones add, unsubscribe removes, and without channels nothing is sent [H157]', async (t) => {
      const { service, address, own } = await started(store);
      const { socket, messages, send } = await open(t, address, own);
      send({ action: 'subscribe', channel: 'status:claimed', id: 7 });
      assert.deepEqual(await messages.next(), { type: 'subscribed', channel: 'status:claimed', channels: ['status:claimed'], id: 7 });
      const { id } = await createPacket(service);
      await claim(service, id);
      assert.equal((await messages.next()).type, 'packet.claimed');
      send({ action: 'subscribe', channels: ['status:created', `packet:${id}`], id: 'x' });
      assert.deepEqual(await messages.next(), {
        type: 'subscribed',
        channel: null,
        channels: ['status:claimed', 'status:created', `packet:${id}`],
        id: 'x',
      });
      await createPacket(service);
      assert.equal((await messages.next()).type, 'packet.created');
      send({ action: 'unsubscribe', channels: ['status:claimed', 'status:created', `packet:${id}`] });
      assert.deepEqual(await messages.next(), { type: 'unsubscribed', channel: null, channels: [] });
      await createPacket(service);
      send({ action: 'ping', id: 1 });
      assert.deepEqual(await messages.next(), { type: 'pong', timestamp: service.clock.read().toISOString(), id: 1 });
      send({ action: 'subscribe', channel: 'status:created' });
      assert.equal((await messages.next()).type, 'subscribed');
      const last = await createPacket(service);
      assert.equal((await messages.next()).packet_id, last.id);
      socket.close();
    });

    test('resumes by last_event_id, in the URL or with a subscribe, and sends no event twice [H157]', async (t) => {
      const { service, address, own } = await started(store);
      const first = await open(t, address, own);
      const ids: string[] = [];
      const create = async () => ids.push((await createPacket(service)).id);
      for (let round = 0; round < 3; round += 1) await create();
      const [seen] = await first.messages.take(3);
      first.socket.terminate();
      const again = await open(t, address, `${own}&last_event_id=${seen.event_id}`);
      assert.deepEqual(
        (await again.messages.take(2)).map(({ packet_id }) => packet_id),
        ids.slice(1),
      );
      const { messages, send } = await open(t, address, own);
      await create();
      assert.equal((await messages.next()).packet_id, ids[3]);
      send({ action: 'subscribe', channel: 'status:created', last_event_id: seen.event_id });
      assert.equal((await messages.next()).type, 'subscribed');
      await create();
      assert.deepEqual(
        (await messages.take(3)).map(({ packet_id }) => packet_id),
        [ids[1], ids[2], ids[4]],
      );
      send({ action: 'subscribe', channel: 'status:created', last_event_id: 'nonsense' });
      assert.equal((await messages.next()).type, 'subscribed');
      assert.deepEqual(await messages.next(), { type: 'reset', reason: 'unknown' });
      await create();
      assert.equal((await messages.next()).packet_id, ids[5]);
    });

    test('?subscribe= works as on /events [H157]', async (t) => {
      const { service, address, own } = await started(store);
      const { messages } = await open(t, address, `${own}&subscribe=status:claimed&subscribe=status:failed`);
      const { id } = await createPacket(service);
      await claim(service, id);
      assert.equal((await messages.next()).type, 'packet.claimed');
    });
  });
}

describe('A WebSocket message', () => {
  const faults: [string, string, string | null][] = [
    ['is not JSON', 'nonsense', null],
    ['is null', 'null', null],
    ['is an array', '[]', null],
    ['is nested deeply', '['.repeat(30_000), null],
    ['has no action', '{}', 'action'],
    ['has an unknown action', '{"action":"dance","channel":"status:created"}', 'action'],
    ['has an unknown field', '{"action":"ping","loud":true}', 'loud'],
    ['names no channel', '{"action":"subscribe"}', 'channel'],
    ['names an empty channel', '{"action":"subscribe","channel":""}', 'channel'],
    ['names an unknown status', '{"action":"subscribe","channel":"status:nope"}', 'channel'],
    ['names a packet by no id', '{"action":"subscribe","channel":"packet:7"}', 'channel'],
    ['names an unknown kind', '{"action":"subscribe","channels":["foo:bar"]}', 'channels'],
    ['names too many channels', JSON.stringify({ action: 'subscribe', channels: Array(101).fill('agent:a') }), 'channels'],
  ];
  test('that is invalid is answered with the error body, and the connection stays open [H157]', async (t) => {
    const { address, own } = await started(memory);
    const { messages, send } = await open(t, address, own);
    for (const [what, text, field] of faults) {
      send(text);
      const { detail, request_id, errors: _, ...error } = await messages.next();
      assert.deepEqual(error, { type: 'error', code: 'VALIDATION_ERROR', field, status_code: 400 }, what);
      assert.equal(typeof detail, 'string');
      assert.equal(typeof request_id, 'string');
    }
    send({ action: 'nope', id: 'mine' });
    assert.equal((await messages.next()).id, 'mine');
    send({ action: 'ping' });
    assert.equal((await messages.next()).type, 'pong');
  });

  test('closes: 1003 binary, 1007 bad UTF-8, 1009 over 64 KiB and of too many fragments [H160]', async (t) => {
    const { address, own } = await started(memory);
    const binary = await open(t, address, own);
    binary.socket.send(Buffer.from('{}'));
    assert.equal((await binary.closed).code, 1003);
    const garbled = await open(t, address, own);
    garbled.socket.send(Buffer.from([0xff, 0xfe, 0xfd]), { binary: false });
    assert.equal((await garbled.closed).code, 1007);
    const exact = await open(t, address, own);
    exact.send(`"${'x'.repeat(64 * 1024 - 2)}"`);
    assert.equal((await exact.messages.next()).type, 'error');
    exact.send(`"${'x'.repeat(64 * 1024 - 1)}"`);
    assert.equal((await exact.closed).code, 1009);
    const pieces = await open(t, address, own);
    for (let sent = 0; sent < 70_000 && pieces.socket.readyState === 1; sent += 1) pieces.socket.send('x', { fin: false });
    assert.ok([1008, 1009].includes((await pieces.closed).code));
  });

  test('over the limit is answered with an error, and the connection closes with 4100 [H160]', async (t) => {
    const { address, own } = await started(memory);
    const { messages, send, closed } = await open(t, address, own);
    for (let sent = 0; sent < 200; sent += 1) send({ action: 'ping' });
    assert.equal((await closed).code, 4100);
    assert.equal(messages.all.filter(({ type }) => type === 'pong').length, 120);
    assert.deepEqual([messages.all.at(-1).type, messages.all.at(-1).code], ['error', 'RATE_LIMITED']);
  });

  test('that is a pong of the protocol counts too: a flood of them closes the connection with 4100', async (t) => {
    const { address, own } = await started(memory);
    const { socket, messages, closed } = await open(t, address, own);
    for (let sent = 0; sent < 500; sent += 1) socket.pong();
    assert.equal((await closed).code, 4100);
    assert.equal(messages.all.at(-1).code, 'RATE_LIMITED');
  });

  test('that is a ping of the protocol counts too: a flood of them ends the connection', async (t) => {
    const { address, own } = await started(memory);
    const { socket, closed } = await open(t, address, own);
    for (let sent = 0; sent < 500; sent += 1) socket.ping();
    // The library ends it without a close frame when sixty pongs wait to be sent.
    assert.ok([1006, 4100].includes((await closed).code));
  });

  test('is not compressed, even if the client offers it', async (t) => {
    const { address, own } = await started(memory);
    const { socket } = await open(t, address, own);
    assert.equal(socket.extensions, '');
  });
});

describe('The upgrade', () => {
  const handshake = (path: string, lines = '', version = 13) =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: ${version}\r\n${lines}\r\n`;

  test('is refused with the error body, and the connection closes [H157, H169]', async (t) => {
    const { service, address, own } = await started(memory, { SERVICE_CONNECTIONS_BUSINESS: '1' });
    const { key } = await newTenant(service);
    const refusals: [string, number, string][] = [
      [handshake('/ws'), 401, 'UNAUTHORIZED'],
      [handshake('/ws?api_key=wrong'), 401, 'UNAUTHORIZED'],
      [handshake('/ws?api_key='), 401, 'UNAUTHORIZED'],
      [handshake('/nowhere'), 404, 'NOT_FOUND'],
      [handshake(`/ws${own}`, '', 12), 426, 'UPGRADE_REQUIRED'],
      [handshake(`/ws${own}&subscribe=nope`), 400, 'VALIDATION_ERROR'],
      [`GET /ws${own} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, 426, 'UPGRADE_REQUIRED'],
    ];
    for (const [text, status, code] of refusals) {
      const answer = await sendRaw(address, text);
      assert.deepEqual([answer.status, answer.body.code, answer.body.status_code], [status, code, status], text);
      assert.equal(typeof answer.body.request_id, 'string');
    }
    const first = await open(t, address, `?api_key=${key}`);
    const capped = await sendRaw(address, handshake(`/ws?api_key=${key}`));
    assert.deepEqual([capped.status, capped.body.code, capped.body.limit.name], [429, 'RATE_LIMITED', 'connections']);
    assert.match(capped.text, /retry-after: \d+/i);
    first.socket.close();
    await first.closed;
    await open(t, address, `?api_key=${key}`);
  });

  test('to another protocol is ignored: the request is answered without it [H169]', async () => {
    const { address } = await started(memory);
    const answer = await sendRaw(address, 'GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n');
    assert.equal(answer.status, 200);
  });

  test('a client that resets its connection is harmless', async (t) => {
    const { service, address, own } = await started(memory);
    for (let round = 0; round < 20; round += 1) {
      const { socket } = await open(t, address, own);
      (socket as unknown as { _socket: import('node:net').Socket })._socket.resetAndDestroy();
      await sendRaw(address, handshake(`/ws${own}`), { once: true });
    }
    assert.equal((await service.call('GET', '//health')).status, 200);
  });

  test('a page of another origin must be in SERVICE_CORS_ORIGINS if that is set [H169]', async (t) => {
    const { address, own } = await started(memory, { SERVICE_CORS_ORIGINS: 'https://app.example' });
    await open(t, address, own);
    await open(t, address, own, { origin: 'https://app.example' });
    await open(t, address, own, { origin: address });
    await assert.rejects(openSocket(address, own, { origin: 'https://evil.example' }), { status: 403 });
    const free = await started(memory);
    await open(t, free.address, free.own, { origin: 'https://anywhere.example' });
  });
});
