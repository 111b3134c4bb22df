import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import Type from 'typebox';

import { ServiceError } from '../../../src/kit/errors.ts';
import { listen } from '../../../src/kit/http/app.ts';
import type { LingerLimits } from '../../../src/kit/http/linger.ts';
import { appFor, mountOn, putThing } from '../../support/app.ts';
import { closed, sendRaw } from '../../support/socket.ts';

const maxBody = 1024;

/** Starts a service with one route that takes a body; returns its connections as well. */
async function startThings(t: TestContext, linger?: LingerLimits): Promise<{ address: string; sockets: Socket[] }> {
  const app = appFor(t, linger === undefined ? {} : { linger });
  const mount = mountOn(app, {
    admit(_route, request) {
      if (request.headers['x-api-key'] !== 'right') throw new ServiceError('UNAUTHORIZED', 'No.');
    },
    bodyLimit: () => maxBody,
  });
  mount(putThing(Type.Object({ text: Type.String() })), () => ({}));
  const sockets: Socket[] = [];
  app.server.on('connection', (socket: Socket) => void sockets.push(socket));
  return { address: await listen(app, '127.0.0.1', 0), sockets };
}

const chunk = (bytes: number) => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;
const head = (lines: string) => `POST /things HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n${lines}\r\n\r\n`;
const json = 'Content-Type: application/json';
const generous = { idleMs: 60_000, totalMs: 60_000, maxBytes: 1_000_000_000 };

const refusals: Record<number, string> = {
  401: head(`${json}\r\nConnection: close\r\nX-API-Key: wrong`) + chunk(10),
  413: head(`${json}\r\nConnection: close\r\nX-API-Key: right`) + chunk(maxBody + 1),
  415: head('Content-Type: text/plain\r\nConnection: close\r\nX-API-Key: right') + chunk(10),
  404: head(`${json}\r\nConnection: close\r\nX-API-Key: right`).replace('/things', '/others') + chunk(10),
};

for (const [status, text] of Object.entries(refusals)) {
  test(`${status} is sent at once to a client that closes the connection and sends an endless body [H253]`, {
    timeout: 20_000,
  }, async (t) => {
    const { address, sockets } = await startThings(t, generous);
    const answer = await sendRaw(address, text, { once: true });
    assert.equal(answer.status, Number(status));
    assert.match(answer.text, /connection: close/i);
    await closed(sockets[0]!);
  });
}

test('an HTTP/1.0 client is answered at once too', { timeout: 20_000 }, async (t) => {
  const { address } = await startThings(t, generous);
  const text = `POST /things HTTP/1.0\r\n${json}\r\nX-API-Key: wrong\r\nContent-Length: 900\r\n\r\nxxx`;
  assert.equal((await sendRaw(address, text, { once: true })).status, 401);
});

test('a client that reads only after sending everything gets its answer and no reset [H253]', { timeout: 20_000 }, async (t) => {
  const { address, sockets } = await startThings(t, generous);
  const socket = connect({ port: Number(new URL(address).port), host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  socket.pause();
  socket.write(refusals[413]!);
  for (let sent = 0; sent < 200; sent += 1) if (!socket.write(chunk(50_000))) await once(socket, 'drain');
  socket.end('0\r\n\r\n');
  const chunks = await socket.toArray();
  assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 413 /);
  await closed(sockets[0]!);
  // Without lingering, the service would read one buffer. On a busy machine Node does not count the last one.
  assert.ok(sockets[0]!.bytesRead > 9_000_000, `${sockets[0]!.bytesRead} bytes`);
});

const bounds: [string, LingerLimits, string][] = [
  ['nothing comes', { ...generous, idleMs: 20 }, ''],
  ['too much comes', { ...generous, idleMs: 200, maxBytes: 100_000 }, chunk(10_000)],
  ['it takes too long', { ...generous, idleMs: 100, totalMs: 100 }, chunk(10_000)],
];
for (const [why, limits, flood] of bounds) {
  test(`a connection whose client never ends is closed when ${why} [H253]`, { timeout: 20_000 }, async (t) => {
    const { address, sockets } = await startThings(t, limits);
    const socket = connect({ port: Number(new URL(address).port), host: '127.0.0.1', allowHalfOpen: true });
    const received: Buffer[] = [];
    socket.on('data', (bytes) => received.push(bytes as Buffer));
    socket.on('error', () => undefined);
    const more = () => {
      while (flood !== '' && !socket.destroyed && socket.write(flood));
    };
    socket.on('drain', more);
    socket.write(refusals[413]!);
    more();
    await once(socket, 'end');
    assert.match(Buffer.concat(received).toString(), /^HTTP\/1\.1 413 /);
    await closed(sockets[0]!);
    socket.destroy();
  });
}
