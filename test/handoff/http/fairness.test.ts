import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'node:test';

import { newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { storesOfSeveral } from '../../support/stores.ts';

/** Creates a tenant with three packets with this summary and returns its key. */
async function newReader(service: TestService, summary: string): Promise<string> {
  const { key } = await newTenant(service);
  for (let index = 0; index < 3; index += 1) {
    const answer = await service.call('POST', '/packets', { key, body: packetRequest({ context: { summary } }) });
    assert.equal(answer.status, 201, answer.text.slice(0, 200));
  }
  return key;
}

// A store in memory reads synchronously, so nothing waits there.
for (const store of storesOfSeveral) {
  describe(`One tenant beside another on ${store.name}`, () => {
    test('searches of closed connections are not started and delay no later search [H98]', async (t) => {
      const service = await startService(t, { store });
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
      const head = `GET /api/v1/packets/search?q=a HTTP/1.1\r\nHost: x\r\nX-API-Key: ${hasty}\r\n\r\n`;
      for (const socket of sockets) socket.write(head);
      await arrived.promise;
      for (const socket of sockets) socket.resetAndDestroy();
      await Promise.all(gone);
      // The first searches can take long enough to send a tenant to the slow lane.
      service.clock.turn(30);
      const answered: string[] = [];
      const ask = async (key: string, name: string) => {
        const { status, body } = await service.call('GET', '/packets/search?q=a', { key });
        assert.deepEqual([status, body.total], [200, 3]);
        answered.push(name);
      };
      await Promise.all([ask(hasty, 'hasty'), ...Array.from({ length: 20 }, () => ask(other, 'other'))]);
      // If its sixty abandoned searches still ran, its answer would come last.
      assert.notEqual(answered.at(-1), 'hasty');
    });

    test('searches and snippets run off the main thread [H98]', async (t) => {
      const service = await startService(t, { store });
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
