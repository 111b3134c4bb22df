import assert from 'node:assert/strict';
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import { describe, test } from 'node:test';

import { adminKey, createPacket, startService } from '../../support/service.ts';
import { sendRaw } from '../../support/socket.ts';
import { stores } from '../../support/stores.ts';
import { waiting } from '../../support/until.ts';

const key = `X-API-Key: ${adminKey}`;
const head = (line: string, ...headers: string[]) => `${[`${line} HTTP/1.1`, 'Host: x', ...headers].join('\r\n')}\r\n\r\n`;

for (const store of stores) {
  describe(`Requests over a connection, on ${store.name}`, () => {
    test('a client that closes its sending side after a request still gets the answer [H256]', async (t) => {
      const service = await startService(t, { store });
      const address = await service.handoff.start();
      const { id } = await createPacket(service);
      const paths = [
        `/packets/${id}`,
        '/packets',
        '/packets?tags=x&source_agent=a',
        '/packets/search?q=refund',
        '/audit?action=packet.created',
      ];
      for (const path of paths) {
        const answer = await sendRaw(address, head(`GET /api/v1${path}`, key), { end: true });
        assert.equal(answer.status, 200, `${path}: ${answer.text}`);
      }
      const body = JSON.stringify({ agent_id: 'resolver' });
      const claim = head(`POST /api/v1/packets/${id}/claim`, key, 'Content-Type: application/json', `Content-Length: ${body.length}`);
      assert.equal((await sendRaw(address, claim + body, { end: true })).status, 200);
    });

    test('no packet is claimed for a client that has disconnected, or has ended its sending half, while it waits [H256]', async (t) => {
      const service = await startService(t, { store });
      const address = await service.handoff.start();
      const { hostname, port } = new URL(address);
      const body = JSON.stringify({ agent_id: 'resolver', wait_seconds: 60 });
      const request =
        head('POST /api/v1/packets/claim-next', key, 'Content-Type: application/json', `Content-Length: ${body.length}`) + body;
      for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
        const client = connect(Number(port), hostname);
        t.after(() => client.destroy());
        client.write(request);
        await waiting(service, 1);
        client[leave]();
        await waiting(service, 0);
      }
      assert.equal((await sendRaw(address, request, { end: true })).status, 204);
      const { id } = await createPacket(service);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'created');
    });

    test('400: no Host header, or two [H254]', async (t) => {
      const service = await startService(t, { store });
      const address = await service.handoff.start();
      for (const second of ['Host: x', 'host: y', 'HOST:']) {
        const answer = await sendRaw(address, head('GET /health', second, 'Connection: close'));
        assert.equal(answer.status, 400, second);
        assert.match(answer.text, /one Host header/);
      }
      assert.equal((await sendRaw(address, head('GET /health', 'X-Host: y', 'Connection: close'))).status, 200);
    });

    test('405 with Allow: any other method, counted like every request [H240]', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '1000' } });
      const address = await service.handoff.start();
      const others = METHODS.filter((method) => !['GET', 'HEAD', 'POST', 'CONNECT'].includes(method));
      assert.ok(others.includes('QUERY'));
      for (const [index, method] of others.entries()) {
        const answer = await sendRaw(address, head(`${method} /api/v1/packets`, key, 'Connection: close'));
        assert.equal(answer.status, 405, method);
        assert.match(answer.text, /^allow: POST, GET, HEAD\r$/im, method);
        assert.match(answer.text, new RegExp(`^x-ratelimit-remaining: ${999 - index}\r$`, 'im'), method);
      }
    });

    test("a path that can't be decoded is treated like an unknown id: 404 and counted, or 401 without a key [H237]", async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '1000' } });
      const paths = ['/packets/%zz', '/packets/%', '/packets/%ff', '/packets/%E0%A4/history', '/%zz'];
      for (const [index, path] of paths.entries()) {
        const answer = await service.call('GET', path);
        assert.equal(answer.status, 404, `${path}: ${answer.text}`);
        assert.equal(answer.headers['x-ratelimit-remaining'], String(999 - index), path);
        // No route matches the last path, so it is 404 without a key as well.
        assert.equal((await service.call('GET', path, { key: null })).status, path === '/%zz' ? 404 : 401, path);
      }
    });
  });
}
