import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';

import { createResolver } from '../../../src/kit/outgoing/resolver.ts';
import { type DnsAnswer, startNameServer } from '../../support/dns.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, newTenant, type TestService } from '../../support/service.ts';
import { deliveriesOf, register, startHooked } from '../../support/webhooks.ts';

// Names of receivers, resolved by a real name server on this machine. test/kit/outgoing/resolver.test.ts tests the resolver.

type Names = Record<string, { A?: DnsAnswer | Promise<DnsAnswer>; AAAA?: DnsAnswer | Promise<DnsAnswer> }>;

/** A service that asks a name server with a table of names, which a test may change. */
async function startNamed(t: TestContext, names: Names, allow: string) {
  const dns = await startNameServer(t, (name, type) => names[name]?.[type] ?? []);
  const resolve = createResolver({ servers: [dns.server], hostsFile: '/nonexistent', resolvConf: '/nonexistent' });
  const service = await startHooked(t, { settings: { SERVICE_WEBHOOK_ALLOW: allow }, dependencies: { outgoing: { resolve } } });
  return { service, dns };
}

async function outcomeOf(service: TestService, id: string): Promise<unknown[]> {
  const [{ status, attempts, last_error, last_status_code }] = await deliveriesOf(service, id);
  return [status, attempts, last_error, last_status_code];
}

test('a hundred webhooks whose names are never answered delay no delivery of another tenant', async (t) => {
  const receiver = await startReceiver(t);
  const silence = Promise.withResolvers<DnsAnswer>();
  const names: Names = { 'receiver.test': { A: ['127.0.0.1'] } };
  const { service, dns } = await startNamed(t, names, '127.0.0.1');
  const { key } = await newTenant(service);
  const silent: string[] = [];
  for (let index = 0; index < 100; index += 1) {
    names[`silent${index}.test`] = { A: ['8.8.8.8'] };
    silent.push((await register(service, `https://silent${index}.test/`)).id);
    names[`silent${index}.test`] = { A: silence.promise, AAAA: silence.promise };
  }
  const url = receiver.url.replace('127.0.0.1', 'receiver.test');
  const { id } = await register(service, url, {}, key);
  const before = dns.questions.length;
  await createPacket(service);
  const delivering = [service.handoff.runOnce.deliver()];
  await dns.asked(before + 64);
  await createPacket(service, {}, key);
  delivering.push(service.handoff.runOnce.deliver());
  await receiver.received(1);
  assert.equal(dns.questions.slice(before).filter((question) => question.includes('silent')).length, 64);
  silence.resolve('no such name');
  await Promise.all(delivering);
  const [{ status, attempts }] = await deliveriesOf(service, id, '', key);
  assert.deepEqual([status, attempts], ['delivered', 1]);
  for (const hook of silent) assert.deepEqual(await outcomeOf(service, hook), ['failed', 1, 'dns_error', null]);
});
