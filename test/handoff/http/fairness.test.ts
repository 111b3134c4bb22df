import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'node:test';

import { newTenant, packetRequest, type TestService } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';
import { register, startHooked } from '../../support/webhooks.ts';

/** A tenant with a few packets with this summary and a webhook; returns its key and its long reads by name, as method and path. */
async function newReader(service: TestService, summary: string): Promise<{ key: string; reads: Record<string, [string, string]> }> {
  const { key } = await newTenant(service);
  for (let index = 0; index < 3; index += 1) {
    const answer = await service.call('POST', '/packets', { key, body: packetRequest({ context: { summary } }) });
    assert.equal(answer.status, 201, answer.text.slice(0, 200));
  }
  const { id } = await register(service, 'http://127.0.0.1:9/', {}, key);
  const reads: Record<string, [string, string]> = {
    searches: ['GET', `/packets/search?q=${encodeURIComponent('a '.repeat(32))}`],
    'filtered lists': ['GET', '/packets?tags=x&source_agent=a'],
    'deep pages': ['GET', '/packets?offset=2000'],
    'the audit log': ['GET', '/audit?actor=nobody'],
    deliveries: ['GET', `/hooks/${id}/deliveries`],
    'dead letters': ['GET', '/hooks/dlq'],
    'retried deliveries': ['POST', '/hooks/dlq/retry-all'],
    agents: ['GET', '/agents'],
  };
  return { key, reads };
}

/** How many reads one tenant requests, and how many another requests after them. */
const flood = 24;
const few = 3;

// A store in memory reads synchronously, so nothing waits there.
for (const store of stores.filter(({ name }) => name !== 'SQLite in memory')) {
  describe(`One tenant beside another on ${store.name}`, () => {
    test('long reads alternate between tenants: a tenant with a few does not wait for a flood of another', async (t) => {
      const service = await startHooked(t, { store });
      const hostile = await newReader(service, 'a '.repeat(200));
      const victim = await newReader(service, 'a '.repeat(200));
      for (const name of Object.keys(hostile.reads)) {
        const answered: string[] = [];
        const ask = async ({ key, reads }: typeof hostile, who: string) => {
          const [method, path] = reads[name]!;
          const { status, text } = await service.call(method, path, { key });
          assert.equal(status, 200, text.slice(0, 200));
          answered.push(who);
        };
        // Threads and connections start at their first use, which can take long enough to send a tenant to the slow lane.
        await Promise.all([1, 2].flatMap(() => [ask(hostile, ''), ask(victim, '')]));
        service.clock.turn(30);
        answered.length = 0;
        const asked = [
          ...Array.from({ length: flood }, () => ask(hostile, 'hostile')),
          ...Array.from({ length: few }, () => ask(victim, 'victim')),
        ];
        await Promise.all(asked);
        const before = answered.slice(0, answered.lastIndexOf('victim')).filter((who) => who === 'hostile').length;
        // All reads cost the same. Part of the flood is answered before the other tenant's requests; in arrival order, all of it would be.
        assert.ok(before <= flood / 2, `${name}: ${before} of ${flood} came first`);
      }
    });

    test('searches of closed connections are not started and delay no later search', async (t) => {
      const service = await startHooked(t, { store });
      const address = await service.handoff.start();
      const { server } = service.handoff.app;
      const hasty = await newReader(service, 'a '.repeat(2_000));
      const other = await newReader(service, 'a '.repeat(2_000));
      const gone: Promise<unknown>[] = [];
      server.on('connection', (socket) => gone.push(new Promise((resolve) => socket.once('close', resolve))));
      const arrived = Promise.withResolvers<void>();
      let requests = 0;
      server.on('request', () => {
        requests += 1;
        if (requests === 60) arrived.resolve();
      });
      const { hostname, port } = new URL(address);
      const sockets = Array.from({ length: 60 }, () => connect(Number(port), hostname));
      const head = `GET /api/v1/packets/search?q=a HTTP/1.1\r\nHost: x\r\nX-API-Key: ${hasty.key}\r\n\r\n`;
      for (const socket of sockets) socket.write(head);
      await arrived.promise;
      for (const socket of sockets) socket.resetAndDestroy();
      await Promise.all(gone);
      const answered: string[] = [];
      const ask = async ({ key }: typeof hasty, name: string) => {
        const { status, body } = await service.call('GET', '/packets/search?q=a', { key });
        assert.deepEqual([status, body.total], [200, 3]);
        answered.push(name);
      };
      await Promise.all([ask(hasty, 'hasty'), ...Array.from({ length: 20 }, () => ask(other, 'other'))]);
      // If its sixty abandoned searches still ran, its answer would come last.
      assert.ok(answered.indexOf('hasty') < 10, `it came after ${answered.indexOf('hasty')} answers to the other tenant`);
    });

    test('searches and snippets run off the main thread', async (t) => {
      const service = await startHooked(t, { store });
      const { key } = await newTenant(service);
      const conversation_state = [
        ...Array(900).fill({ role: 'user', content: `${'\u00e9 '.repeat(20)}${'x'.repeat(1000)}` }),
        { role: 'user', content: 'needle' },
      ];
      for (let index = 0; index < 5; index += 1) {
        const { status, text } = await service.call('POST', '/packets', {
          key,
          body: packetRequest({ context: { summary: 's', conversation_state } }),
        });
        assert.equal(status, 201, text.slice(0, 200));
      }
      const search = async () => {
        const { status, body } = await service.call('GET', '/packets/search?q=needle', { key });
        assert.deepEqual([status, body.total], [200, 5]);
      };
      // The first search starts the threads and indexes the packets.
      await search();
      const [all, main] = [process.cpuUsage(), process.threadCpuUsage()];
      for (let round = 0; round < 3; round += 1) await search();
      const spent = ({ user, system }: NodeJS.CpuUsage) => user + system;
      const share = spent(process.threadCpuUsage(main)) / spent(process.cpuUsage(all));

      assert.ok(share < 0.5, `the main thread took ${Math.round(share * 100)} % of the CPU time`);
    });
  });
}
