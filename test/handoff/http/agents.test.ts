import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, packetRequest, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** A packet for an agent. */
const packetFor = (service: TestService, agent: string) =>
  createPacket(service, { metadata: { ...(packetRequest().metadata as object), target_agent: { id: agent, name: agent } } });

for (const store of stores) {
  describe(`Agents, on ${store.name}`, () => {
    test('are listed most recently seen first, with the packets that each holds and that wait for it [H115]', async () => {
      const service = await shareService(store);
      const { id } = await packetFor(service, 'resolver');
      await packetFor(service, 'resolver');
      service.clock.turn(60);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      service.clock.turn(60);
      await service.call('GET', '/packets', { headers: { 'x-agent-id': 'watcher' } });
      const { status, body } = await service.call('GET', '/agents');
      assert.equal(status, 200);
      assert.deepEqual(body, {
        agents: [
          { agent_id: 'watcher', last_seen_at: '2026-03-01T09:32:00.000Z', holding: 0, waiting: 0, contract: null },
          { agent_id: 'resolver', last_seen_at: '2026-03-01T09:31:00.000Z', holding: 1, waiting: 1, contract: null },
          { agent_id: 'frontline', last_seen_at: '2026-03-01T09:30:00.000Z', holding: 0, waiting: 0, contract: null },
        ],
        total: 3,
        limit: 50,
        offset: 0,
      });
      const page = await service.call('GET', '/agents?limit=1&offset=1');
      assert.deepEqual([page.body.agents[0].agent_id, page.body.total], ['resolver', 3]);
    });

    test('hold no packets that have ended', async () => {
      const service = await shareService(store);
      const { id } = await packetFor(service, 'resolver');
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } });
      const { body } = await service.call('GET', '/agents');
      assert.deepEqual(
        body.agents.map(({ agent_id, holding }: { agent_id: string; holding: number }) => [agent_id, holding]),
        [
          ['frontline', 0],
          ['resolver', 0],
        ],
      );
    });

    test('are listed for 30 days after a request last named them, and as long as they hold a packet [H115]', async () => {
      const service = await shareService(store);
      const held = await packetFor(service, 'holder');
      await service.call('POST', `/packets/${held.id}/claim`, { body: { agent_id: 'holder' } });
      const ended = await packetFor(service, 'finisher');
      await service.call('POST', `/packets/${ended.id}/claim`, { body: { agent_id: 'finisher' } });
      await service.call('PATCH', `/packets/${ended.id}`, { body: { status: 'completed' } });
      const listed = async () => {
        await service.handoff.runOnce.prune();
        const { body } = await service.call('GET', '/agents', { headers: { 'x-agent-id': 'watcher' } });
        return body.agents.map(({ agent_id }: { agent_id: string }) => agent_id).toSorted();
      };
      service.clock.turn(30 * 86_400);
      assert.deepEqual(await listed(), ['finisher', 'frontline', 'holder', 'watcher']);
      service.clock.turn(1);
      assert.deepEqual(await listed(), ['holder', 'watcher']);
    });
  });
}
