import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';

import { listen } from '../../../src/kit/http/app.ts';
import { quietApp } from '../../support/app.ts';
import { until } from '../../support/until.ts';

test('a stop answers the requests on connections that the kernel has accepted and the program has not [H434]', async (t) => {
  const app = quietApp();
  app.get('/', () => 'answered');
  const { hostname, port } = new URL(await listen(app, '127.0.0.1', 0));
  let accepted = 0;
  app.server.on('connection', () => {
    accepted += 1;
  });
  const sockets = Array.from({ length: 50 }, () => connect({ host: hostname, port: Number(port) }));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  assert.ok(accepted < sockets.length, `${accepted} were accepted before the stop`);
  const closed = app.close();
  await until(() => !app.server.listening);
  const answers = sockets.map(async (socket) => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    let text = '';
    for await (const chunk of socket) text += chunk;
    return text.split('\r\n')[0];
  });
  assert.deepEqual(new Set(await Promise.all(answers)), new Set(['HTTP/1.1 200 OK']));
  await closed;
});
