import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';

import { createResolver } from '../../../src/kit/outgoing/resolver.ts';
import { type DnsAnswer, startNameServer } from '../../support/dns.ts';
import { listenFor } from '../../support/listen.ts';
import { startReceiver } from '../../support/receiver.ts';
import { adminKey, createPacket, packetRequest, type TestService } from '../../support/service.ts';
import { deliveriesOf, register, secret, startHooked } from '../../support/webhooks.ts';

// Names of receivers, resolved by a real name server on this machine. test/kit/outgoing/resolver.test.ts tests the resolver.

type Names = Record<string, { A?: DnsAnswer | Promise<DnsAnswer>; AAAA?: DnsAnswer | Promise<DnsAnswer> }>;

/** A service that asks a name server with a table of names, which a test may change. */
async function startNamed(t: TestContext, names: Names, allow = '') {
  const dns = await startNameServer(t, (name, type) => names[name]?.[type] ?? []);
  const resolve = createResolver({ servers: [dns.server], hostsFile: '/nonexistent', resolvConf: '/nonexistent' });
  const service = await startHooked(t, { settings: { SERVICE_WEBHOOK_ALLOW: allow }, dependencies: { outgoing: { resolve } } });
  return { service, dns };
}

/** A port of all private addresses of this machine that counts connections. */
async function startBait(t: TestContext) {
  const { port, sockets } = await listenFor(
    t,
    createServer((socket) => socket.destroy()),
  );
  return { port, connections: () => sockets.length };
}

async function outcomeOf(service: TestService, id: string): Promise<unknown[]> {
  const [{ status, attempts, last_error, last_status_code }] = await deliveriesOf(service, id);
  return [status, attempts, last_error, last_status_code];
}

test('a name that leads to a private address after its registration is refused at each attempt, with nothing sent', async (t) => {
  const bait = await startBait(t);
  const names: Names = { 'rebound.test': { A: ['8.8.8.8'] } };
  const { service } = await startNamed(t, names);
  const { id } = await register(service, `https://rebound.test:${bait.port}/`);
  await createPacket(service);
  const moves: Names[string][] = [
    { A: ['127.0.0.1'] },
    { A: ['8.8.8.8', '127.0.0.1'] },
    { A: ['8.8.8.8'], AAAA: ['::1'] },
    { A: ['8.8.8.8'], AAAA: ['::ffff:7f00:1'] },
    { AAAA: ['2606:4700::1111', 'fd00::1'] },
  ];
  for (const [index, moved] of moves.entries()) {
    names['rebound.test'] = moved;
    await service.handoff.runOnce.deliver();
    assert.deepEqual(await outcomeOf(service, id), ['failed', index + 1, 'address_refused', null]);
    service.clock.turn(10_000);
  }
  assert.equal(bait.connections(), 0);
});

test('a name that flips at every look-up is connected to at the address that was checked, by one look-up', async (t) => {
  const receiver = await startReceiver(t);
  let isAllowed = true;
  const names: Names = {
    'flipping.test': {
      get A() {
        isAllowed = !isAllowed;
        return [isAllowed ? '127.0.0.1' : '127.0.0.2'];
      },
    },
  };
  const { service, dns } = await startNamed(t, names, '127.0.0.1,flipping.invalid');
  // The look-up of the registration gets 127.0.0.2, which is not allowed.
  const url = receiver.url.replace('127.0.0.1', 'flipping.test');
  assert.equal((await service.call('POST', '/hooks', { body: { url, secret } })).status, 400);
  const { id } = await register(service, url);
  await createPacket(service);
  await service.handoff.runOnce.deliver();
  assert.deepEqual(await outcomeOf(service, id), ['failed', 1, 'address_refused', null]);
  service.clock.turn(10);
  await service.handoff.runOnce.deliver();
  assert.deepEqual(await outcomeOf(service, id), ['delivered', 2, null, 204]);
  assert.equal(dns.questions.filter((question) => question === 'A flipping.test').length, 4);
});

test('a name with one public and one private address is refused at registration, whichever family is private', async (t) => {
  const { service } = await startNamed(t, {
    'one.test': { A: ['8.8.8.8'], AAAA: ['fd00::1'] },
    'two.test': { A: ['10.0.0.1'], AAAA: ['2606:4700::1111'] },
    'good.test': { A: ['8.8.8.8'], AAAA: ['2606:4700::1111'] },
  });
  for (const name of ['one', 'two']) {
    const answer = await service.call('POST', '/hooks', { body: { url: `https://${name}.test/`, secret } });
    assert.equal(answer.status, 400, answer.text);
    assert.match(answer.text, /not public/);
  }
  await register(service, 'https://good.test/');
});

test('a hundred webhooks whose names are never answered delay no delivery of another tenant', async (t) => {
  const receiver = await startReceiver(t);
  const silence = Promise.withResolvers<DnsAnswer>();
  const names: Names = { 'receiver.test': { A: ['127.0.0.1'] } };
  const { service, dns } = await startNamed(t, names, '127.0.0.1');
  const other = await service.call('POST', '/tenants', { key: adminKey, body: { name: 'Other', tier: 'business' } });
  const made = await service.call('POST', '/keys', { key: adminKey, body: { name: 'other', tenant_id: other.body.id } });
  const silent: string[] = [];
  for (let index = 0; index < 100; index += 1) {
    names[`silent${index}.test`] = { A: ['8.8.8.8'] };
    silent.push((await register(service, `https://silent${index}.test/`)).id);
    names[`silent${index}.test`] = { A: silence.promise, AAAA: silence.promise };
  }
  const url = receiver.url.replace('127.0.0.1', 'receiver.test');
  const { id } = await register(service, url, {}, made.body.key);
  const before = dns.questions.length;
  await createPacket(service);
  const delivering = [service.handoff.runOnce.deliver()];
  await dns.asked(before + 64);
  const packet = await service.call('POST', '/packets', { key: made.body.key, body: packetRequest() });
  assert.equal(packet.status, 201, packet.text);
  delivering.push(service.handoff.runOnce.deliver());
  await receiver.received(1);
  assert.equal(dns.questions.slice(before).filter((question) => question.includes('silent')).length, 64);
  silence.resolve('no such name');
  await Promise.all(delivering);
  const [{ status, attempts }] = await deliveriesOf(service, id, '', made.body.key);
  assert.deepEqual([status, attempts], ['delivered', 1]);
  for (const hook of silent) assert.deepEqual(await outcomeOf(service, hook), ['failed', 1, 'dns_error', null]);
});
