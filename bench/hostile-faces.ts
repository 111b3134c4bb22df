import type { Socket } from 'node:net';

import { a2aRequest } from '../test/support/a2a.ts';
import { hostileSchemas } from '../test/support/hostile-schemas.ts';
import { mcpRequest } from '../test/support/mcp.ts';
import { largeContext, packetWith, Tenant } from './tenant.ts';

/** What one tenant does by MCP, A2A, answer links or channels, in order to hold up others. */
export interface FaceAttack {
  readonly name: string;
  /** Makes a tenant and its packets; returns what does the attack once and resolves when the service has done its work. */
  readonly prepare: (url: string) => Promise<() => Promise<unknown>>;
}

/** Resolves when none of the sockets has got anything for half a second. */
async function quiet(sockets: readonly Socket[]): Promise<void> {
  const received = () => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  for (let before = -1; before !== received(); ) {
    before = received();
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** Changes a packet to which one tenant listens by many streams of A2A. */
const subscribers = (count: number, { reads, patches }: { reads: boolean; patches: number }) =>
  async function prepare(url: string) {
    const tenant = await Tenant.create(url);
    const { id } = await tenant.create({ context: largeContext() });
    const request = a2aRequest('SubscribeToTask', { id });
    const sockets: Socket[] = [];
    for (let from = 0; from < count; from += 50)
      sockets.push(...(await tenant.streams('/a2a', Array(Math.min(50, count - from)).fill(request), reads)));
    await quiet(sockets);
    return async () => {
      for (let patch = 0; patch < patches; patch += 1) {
        const artifacts = [{ key: `result-${patch}`, value: 'z'.repeat(1000) }];
        await tenant.patch(id, { context: { artifacts } });
        await quiet(sockets);
      }
      for (const socket of sockets) socket.destroy();
    };
  };

const claim = { agent_id: 'b' };

/** The attacks; the first take a few seconds with their preparation. */
export const faceAttacks: readonly FaceAttack[] = [
  {
    name: 'links: 60 answer pages of 920 KB',
    async prepare(url) {
      const tenant = await Tenant.create(url);
      const question = { required: true, reason: 'r', question: 'Go on?' };
      const { id } = await tenant.create({ context: { summary: 's '.repeat(460_000) }, hitl: question });
      await tenant.post(`/api/v1/packets/${id}/claim`, claim);
      await tenant.patch(id, { status: 'awaiting_human' });
      const { url: link } = await tenant.post(`/api/v1/packets/${id}/answer-links`, {});
      const { pathname } = new URL(link);
      return () =>
        Promise.all(
          Array.from({ length: 60 }, async () => {
            const answer = await fetch(url + pathname);
            await answer.arrayBuffer();
            if (answer.status !== 200) throw new Error(`${pathname}: ${answer.status}`);
          }),
        );
    },
  },
  {
    name: 'A2A: ListTasks of 100 tasks below 50 large ancestors',
    async prepare(url) {
      const tenant = await Tenant.create(url);
      const parent_packet_id = await tenant.chain(50);
      for (let index = 0; index < 100; index += 1) await tenant.create({ parent_packet_id });
      // The first request of a process loads the SDK.
      await tenant.a2a('ListTasks', { pageSize: 1 });
      return () => tenant.a2a('ListTasks', { pageSize: 100, includeArtifacts: true, historyLength: 100 });
    },
  },
  {
    name: 'A2A: a claim with ten push configurations below 50 large ancestors',
    async prepare(url) {
      const tenant = await Tenant.create(url);
      const parent_packet_id = await tenant.chain(50);
      const { id: taskId } = await tenant.create({ parent_packet_id, context: largeContext() });
      const config = { taskId, token: 'a-token-for-the-benchmark', url: 'http://127.0.0.1:9/' };
      for (let index = 0; index < 10; index += 1)
        await tenant.a2a('CreateTaskPushNotificationConfig', { ...config, id: `config-${index}` });
      return async () => {
        await tenant.post(`/api/v1/packets/${taskId}/claim`, claim);
        await new Promise((resolve) => setTimeout(resolve, 1000));
      };
    },
  },
  {
    name: 'MCP: 100 calls of get_packet on a large packet at once',
    async prepare(url) {
      const tenant = await Tenant.create(url);
      const { id: packet_id } = await tenant.create({ context: largeContext() });
      const { headers, body } = mcpRequest('tools/call', { name: 'get_packet', arguments: { packet_id } });
      // The first request of a process loads the SDK.
      await tenant.post('/mcp', body, { headers });
      return () => Promise.all(Array.from({ length: 100 }, () => tenant.send('/mcp', body, { headers })));
    },
  },
  {
    name: 'MCP: a PATCH with ten subscriptions/listen to 100 tasks each',
    async prepare(url) {
      const tenant = await Tenant.create(url);
      const { id: packet_id } = await tenant.create({ context: largeContext() });
      const statuses = ['completed', 'failed', 'expired', 'awaiting_human', 'claimed', 'in_progress'];
      const createdAt = (index: number) => new Date(Date.UTC(2026, 0, 1) + index).toISOString();
      const taskIds = Array.from({ length: 100 }, (_, index) =>
        Buffer.from(['wait', packet_id, statuses.slice(0, 4).join(','), createdAt(index)].join(' ')).toString('base64url'),
      );
      const request = mcpRequest('subscriptions/listen', { notifications: { taskIds } }, { tasks: true });
      const sockets = await tenant.streams('/mcp', Array(10).fill(request), true);
      await quiet(sockets);
      return async () => {
        await tenant.patch(packet_id, { status: 'failed', actions: { failed: [{ id: 'f', description: 'd', error: 'e' }] } });
        await quiet(sockets);
        for (const socket of sockets) socket.destroy();
      };
    },
  },
  {
    name: 'channels: a question of 900 KB with twenty channels',
    async prepare(url) {
      const tenant = await Tenant.create(url);
      for (let index = 0; index < 20; index += 1)
        await tenant.post('/api/v1/channels', { kind: 'slack', target: `http://127.0.0.1:9/${index}`, name: `channel ${index}` });
      const { id } = await tenant.create({ context: largeContext() });
      await tenant.post(`/api/v1/packets/${id}/claim`, claim);
      return async () => {
        await tenant.patch(id, { status: 'awaiting_human', hitl: { required: true, reason: 'r', question: 'Go on?' } });
        await new Promise((resolve) => setTimeout(resolve, 1000));
      };
    },
  },
  {
    name: 'contracts: three batches of 100 packets whose checks run out',
    async prepare(url) {
      const tenant = await Tenant.create(url);
      const [check, value] = hostileSchemas['a doubling that reads the names of properties']!;
      // References name definitions of the root.
      const { $defs, ...own } = check as Record<string, unknown>;
      const custom = { type: 'object', properties: { value: own } };
      const schema = { $defs, properties: { context: { type: 'object', properties: { custom } } } };
      await tenant.send('/api/v1/agents/b/contract', { schema }, { method: 'PUT' });
      const packets = Array.from({ length: 100 }, () => packetWith({ summary: 's', custom: { value } }));
      return () => Promise.allSettled(Array.from({ length: 3 }, () => tenant.send('/api/v1/packets/batch', { packets })));
    },
  },
  {
    name: 'A2A: opening 300 streams',
    async prepare(url) {
      const tenant = await Tenant.create(url);
      const { id } = await tenant.create({ context: largeContext() });
      await tenant.a2a('ListTasks', { pageSize: 1 });
      const request = a2aRequest('SubscribeToTask', { id });
      return async () => {
        const sockets = await tenant.streams('/a2a', Array(300).fill(request), true);
        await quiet(sockets);
        for (const socket of sockets) socket.destroy();
      };
    },
  },
  { name: 'A2A: a PATCH with 300 SubscribeToTask', prepare: subscribers(300, { reads: true, patches: 1 }) },
  { name: 'A2A: a PATCH with 980 SubscribeToTask', prepare: subscribers(980, { reads: true, patches: 1 }) },
  { name: 'A2A: three PATCHes with 950 unread streams', prepare: subscribers(950, { reads: false, patches: 3 }) },
  {
    name: 'A2A: three PATCHes with 950 unread streams, of two tenants',
    async prepare(url) {
      const both: (() => Promise<unknown>)[] = [];
      for (let index = 0; index < 2; index += 1) both.push(await subscribers(950, { reads: false, patches: 3 })(url));
      return () => Promise.all(both.map((strike) => strike()));
    },
  },
];
