import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { quietApp } from '../../support/app.ts';

/** The client's address as an application sees it that trusts these proxies. */
async function addressSeen(trustedProxies: readonly string[], headers: Record<string, string | string[]>): Promise<string> {
  const app = quietApp({ trustedProxies });
  app.get('/', (asked) => asked.ip);
  await app.listen({ host: '127.0.0.1', port: 0 });
  try {
    const { port } = app.server.address() as AddressInfo;
    const asking = request({ host: '127.0.0.1', port, headers, agent: false }).end();
    const [answer] = await once(asking, 'response');
    return Buffer.concat(await answer.toArray()).toString();
  } finally {
    await app.close();
  }
}

describe('The address of a client', () => {
  const local = ['127.0.0.0/8'];

  test('is that of its connection if no proxy is trusted, whatever the headers say', async () => {
    assert.equal(await addressSeen([], { 'x-forwarded-for': '198.51.100.7' }), '127.0.0.1');
    assert.equal(await addressSeen(['10.0.0.0/8'], { 'x-forwarded-for': '198.51.100.7', forwarded: 'for=198.51.100.8' }), '127.0.0.1');
  });

  test('is the last one in X-Forwarded-For that is not a trusted proxy [H16]', async () => {
    assert.equal(await addressSeen(local, { 'x-forwarded-for': '198.51.100.7' }), '198.51.100.7');
    assert.equal(await addressSeen(local, { 'x-forwarded-for': 'made-up, 203.0.113.9, 127.0.0.8' }), '203.0.113.9');
  });

  for (const [given, address] of [
    ['198.51.100.7:4711', '198.51.100.7'],
    ['made-up, [2001:db8::17]:4711 , 127.0.0.8:80', '2001:db8::17'],
    ['[2001:db8::17]', '2001:db8::17'],
    ['2001:db8::17', '2001:db8::17'],
  ] as const)
    test(`has no port in X-Forwarded-For: ${given} [H16]`, async () => {
      assert.equal(await addressSeen(local, { 'x-forwarded-for': given }), address);
    });

  for (const [forwarded, address] of [
    ['for=198.51.100.7;proto=https', '198.51.100.7'],
    ['proto=http; FOR="198.51.100.7:4711"', '198.51.100.7'],
    ['for=203.0.113.1, for=198.51.100.7;by=127.0.0.1', '198.51.100.7'],
    ['for="[2001:db8::17]:4711"', '2001:db8::17'],
  ] as const) {
    test(`is read from Forwarded: ${forwarded}`, async () => {
      assert.equal(await addressSeen(local, { forwarded }), address);
    });
  }

  test('is that of the proxy if it sends both headers, since one of them is the client’s own [H16]', async () => {
    assert.equal(await addressSeen(local, { 'x-forwarded-for': '198.51.100.7', forwarded: 'for=203.0.113.9' }), '127.0.0.1');
  });
});
