import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { FastifyInstance, FastifyRequest } from 'fastify';

import { listen } from '../../../src/kit/http/app.ts';
import { maxUnanswered, Pipelining } from '../../../src/kit/http/pipelining.ts';
import { quietApp } from '../../support/app.ts';
import { closed, sendRaw } from '../../support/socket.ts';

/** Starts an application; returns its address and, in their order, the server's sides of its connections. */
async function startApp(t: TestContext, mount: (app: FastifyInstance) => void): Promise<{ address: string; sockets: Socket[] }> {
  const app = quietApp();
  mount(app);
  const sockets: Socket[] = [];
  app.server.on('connection', (socket: Socket) => void sockets.push(socket));
  const address = await listen(app, '127.0.0.1', 0);
  t.after(() => app.close());
  return { address, sockets };
}

/** The index in brackets. */
const bodyOf = ({ params }: FastifyRequest) => `[${(params as { index: string }).index}]`;
const get = (path: string | number, headers = '') => `GET /${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
const gets = (count: number) => Array.from({ length: count }, (_, index) => get(index)).join('');

test('a connection may have 256 unanswered requests, which are answered in their order [H255]', async (t) => {
  assert.equal(maxUnanswered, 256);
  const { address } = await startApp(t, (app) => app.get('/:index', (request) => bodyOf(request)));
  const { text } = await sendRaw(address, gets(maxUnanswered - 1) + get('last', 'Connection: close\r\n'));
  const answered = [...text.matchAll(/\[(\w+)\]/g)].map(([, index]) => index);
  assert.deepEqual(answered, [...Array.from({ length: maxUnanswered - 1 }, (_, index) => String(index)), 'last']);
});

test('a connection with more than 256 unanswered requests is closed, and others are answered [H255]', async (t) => {
  const { address, sockets } = await startApp(t, (app) => {
    app.get('/0', () => new Promise(() => undefined));
    app.get('/:index', (request) => bodyOf(request));
  });
  const { status } = await sendRaw(address, gets(maxUnanswered + 1));
  assert.equal(status, 0);
  await closed(sockets[0]!);
  assert.equal((await sendRaw(address, get('other', 'Connection: close\r\n'))).status, 200);
});

test('answered requests do not count, however many a connection sends', async (t) => {
  const { address } = await startApp(t, (app) => app.get('/:index', (request) => bodyOf(request)));
  const { hostname, port } = new URL(address);
  const socket = connect({ host: hostname, port: Number(port) });
  t.after(() => socket.destroy());
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  for (let round = 1; round <= 3; round += 1) {
    socket.write(gets(maxUnanswered));
    while (text.split('[').length - 1 < round * maxUnanswered) await once(socket, 'data');
  }
});

test('only the first of pipelined requests is handled in the turn of the event loop in which they arrive', async (t) => {
  let handled = 0;
  let handledInTurn = 0;
  const { address } = await startApp(t, (app) =>
    app.get('/:index', (request) => {
      if (handled === 0) setImmediate(() => (handledInTurn = handled));
      handled += 1;
      return bodyOf(request);
    }),
  );
  assert.equal((await sendRaw(address, gets(100) + get('last', 'Connection: close\r\n'))).status, 200);
  assert.deepEqual([handledInTurn, handled], [1, 101]);
});

test('pipelined requests are handled in turns between connections [H255]', async () => {
  const order: string[] = [];
  const done = Promise.withResolvers<void>();
  const pipelining = new Pipelining(
    (request) => {
      order.push(request.url!);
      if (order.length === 5) done.resolve();
    },
    () => assert.fail('No connection has too many.'),
  );
  const [one, other] = [{}, {}];
  const response = { socket: null, once: () => undefined } as unknown as ServerResponse;
  for (const [socket, url] of [
    [one, 'a'],
    [one, 'b'],
    [one, 'c'],
    [other, 'x'],
    [other, 'y'],
  ] as const)
    pipelining.receive({ socket, url } as unknown as IncomingMessage, response);
  await done.promise;
  assert.deepEqual(order, ['a', 'x', 'b', 'y', 'c']);
});

for (const [what, text, status] of [
  ['an invalid request line', 'nonsense\r\n\r\n', 400],
  ['headers that are too large', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ['headers that never end', 'GET / HTTP/1.1\r\nHost: x\r\n', 408],
] as const)
  test(`after ${what} a connection is closed within two seconds, although the client keeps its half open`, async (t) => {
    const { address, sockets } = await startApp(t, (app) => {
      // Triggers what Node does after its time-out, without waiting.
      app.server.on('connection', (socket) => {
        if (status === 408)
          setImmediate(() =>
            app.server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket),
          );
      });
    });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { hostname, port } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    t.after(() => socket.destroy());
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.on('error', () => undefined);
    socket.write(text);
    await once(socket, 'end');
    assert.match(received, new RegExp(`^HTTP/1\\.1 ${status} `));
    assert.equal(sockets[0]!.destroyed, false);
    t.mock.timers.tick(2_000);
    await closed(sockets[0]!);
  });

test('a request of a version other than HTTP/1.0 and HTTP/1.1 gets 400 and is not handled [H254]', async (t) => {
  const { address } = await startApp(t, (app) => app.get('/', () => assert.fail('It is handled.')));
  for (const line of ['GET /\r\n\r\n', 'GET / HTTP/0.9\r\n\r\n', 'GET / HTTP/2.0\r\nHost: x\r\n\r\n']) {
    const { status, text } = await sendRaw(address, line);
    assert.equal(status, 400, line);
    assert.match(text, /connection: close/i);
  }
});
