import assert from 'node:assert/strict';
import dns from 'node:dns';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';

import { listen } from '../../../src/kit/http/app.ts';
import { maxUnanswered } from '../../../src/kit/http/pipelining.ts';
import { upgradeOf } from '../../../src/kit/http/upgrade.ts';
import { quietApp } from '../../support/app.ts';
import { sendRaw } from '../../support/socket.ts';

const loopback = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

// Fastify opens a second server for the other address of localhost, unless the application creates its own. That server would
// have none of the handlers below.
for (const [first, second] of [loopback, loopback.toReversed()]) {
  test(`on localhost a service listens on the first address of the name, ${first!.address}, with all its handlers`, async (t) => {
    const lookup = dns.lookup as (...args: unknown[]) => void;
    t.mock.method(dns, 'lookup', (...args: unknown[]) => {
      if (args[0] !== 'localhost') return lookup(...args);
      const { all } = args[1] as { all?: boolean };
      const done = args.at(-1) as (error: null, ...found: unknown[]) => void;
      if (all) process.nextTick(done, null, [first, second]);
      else process.nextTick(done, null, first!.address, first!.family);
    });
    const app = quietApp();
    app.get('/ws', (request, reply) => {
      assert.notEqual(upgradeOf(request.raw), undefined);
      reply.code(409).send({ upgrade: true });
    });
    app.get('/', () => new Promise(() => undefined));
    const address = await listen(app, 'localhost', 0);
    t.after(() => app.close());
    assert.deepEqual(
      app.addresses().map((bound) => (bound as AddressInfo).address),
      [first!.address],
    );
    const [, port] = /^http:\/\/localhost:(\d+)$/.exec(address)!;
    const direct = `http://${first!.family === 6 ? `[${first!.address}]` : first!.address}:${port}`;
    t.mock.restoreAll();
    const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;
    const upgrade =
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
    assert.equal((await sendRaw(direct, get('/ws', upgrade))).status, 409);
    assert.equal((await sendRaw(direct, 'NONSENSE\r\n\r\n')).body.code, 'VALIDATION_ERROR');
    // The bound on unanswered requests closes the connection.
    assert.equal((await sendRaw(direct, get('/').repeat(maxUnanswered + 1))).text, '');
  });
}
