import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import {
  createMCPClient,
  experimental_createMCPEventWebhook as createMCPEventWebhook,
  type Experimental_MCPEvent as MCPEvent,
  type Experimental_MCPEventStore as MCPEventStore,
  type Experimental_MCPEventSubscription as MCPEventSubscription,
} from '@ai-sdk/mcp';

import { freePort } from '../../src/kit/free-port.ts';
import { listen } from '../../test/support/listen.ts';
import { startProcess } from '../../test/support/process.ts';
import { apiKey, startService } from './service.ts';

const headers = { 'x-api-key': apiKey, 'x-agent-id': 'resolver' };

/** Creates a packet for the agent of the tests, the same one again with the same key; resolves with its id. */
async function handOver(address: string, key: string): Promise<string> {
  const agent = { id: 'resolver', name: 'Resolver', framework: 'test' };
  const body = JSON.stringify({ metadata: { source_agent: agent, target_agent: agent }, context: { summary: 'Refund order 4711' } });
  const sent = { method: 'POST', headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': key }, body };
  const answer = await fetch(`${address}/api/v1/packets`, sent);
  assert.equal(answer.status, 201, await answer.clone().text());
  return ((await answer.json()) as { id: string }).id;
}

/** The store of a client's subscriptions, in memory. */
function storeOfEvents(): MCPEventStore {
  const kept = new Map<string, MCPEventSubscription>();
  return {
    get: async (key) => kept.get(key),
    getById: async (id) => [...kept.values()].find((one) => one.id === id),
    async set(subscription) {
      kept.set(subscription.key, subscription);
    },
    async update(key, patch) {
      kept.set(key, { ...kept.get(key)!, ...patch });
    },
    async delete(key) {
      kept.delete(key);
    },
  };
}

/** A receiver with the verifier of AI SDK, and the errors that it met. */
async function startVerifier(t: TestContext, onEvent: (event: MCPEvent) => Promise<void>) {
  const store = storeOfEvents();
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const webhook = createMCPEventWebhook({ store, onEvent: ({ event }) => onEvent(event), onError });
  const answered = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await request.toArray());
    const sent = { method: request.method!, headers: request.headers as Record<string, string>, body };
    const answer = await webhook(new Request(`http://127.0.0.1${request.url}`, sent));
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
  };
  const server = createServer((request, response) => {
    answered(request, response).catch(onError);
  });
  const url = `http://127.0.0.1:${await listen(server)}/events`;
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { store, errors, url };
}

const connect = (address: string, store: MCPEventStore) =>
  createMCPClient({
    transport: { type: 'http', url: `${address}/mcp`, headers },
    protocolVersionDiscovery: true,
    experimental_events: { store },
  });

/** Subscribes to what waits for the agent. A busy machine may answer the challenge too late; the client then subscribes again. */
async function subscribe({ experimental_events: events }: Awaited<ReturnType<typeof connect>>, url: string): Promise<string> {
  for (;;) {
    try {
      return (await events.subscribe({ ...waiting, delivery: { mode: 'webhook', url, allowInsecureLocalhost: true } })).id;
    } catch (error) {
      if ((error as { data?: { reason?: string } }).data?.reason !== 'timeout') throw error;
    }
  }
}

const waiting = { name: 'packet.waiting', arguments: { agent_id: 'resolver' } };

describe('@ai-sdk/mcp, its events', () => {
  test('subscribes, verifies the callback, takes the event, refreshes and unsubscribes', async (t) => {
    const { handoff, address } = await startService();
    t.after(() => handoff.stop());
    const told: MCPEvent[] = [];
    const arrived = Promise.withResolvers<void>();
    const { store, errors, url } = await startVerifier(t, async (event) => {
      told.push(event);
      arrived.resolve();
    });
    const client = await connect(address, store);
    const { experimental_events: events } = client;
    try {
      const { events: types } = await events.list();
      assert.ok(types.every(({ delivery }) => delivery.includes('webhook')));
      const id = await subscribe(client, url);
      const packet = await handOver(address, 'one');
      await arrived.promise;
      assert.deepEqual([told.length, told[0]!.name, told[0]!.data.packet_id], [1, 'packet.waiting', packet]);
      assert.equal((await events.refresh({ id })).id, id);
      assert.equal((await store.getById(id))?.cursor !== null, true);
      await events.unsubscribe({ id });
      assert.equal(await store.getById(id), undefined);
      await assert.rejects(
        events.subscribe({ ...waiting, delivery: { mode: 'webhook', url: address, allowInsecureLocalhost: true } }),
        /callback/,
      );
      assert.deepEqual(errors, []);
    } finally {
      await client.close();
    }
  });

  test('is told of every packet through kill -9 of the service, each event with one id', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-events-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const settings = {
      SERVICE_ADMIN_KEY: apiKey,
      SERVICE_PORT: String(await freePort()),
      SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
      SERVICE_WEBHOOK_RETRY_SECONDS: '1,1,1,1,1,1',
    };
    const start = () => startProcess({ databaseUrl: `sqlite://${join(folder, 'handoff.db')}`, settings });
    let program = await start();
    t.after(() => program.kill());
    const packets = 12;
    const idsOf = new Map<string, Set<string>>();
    const all = Promise.withResolvers<void>();
    const killsAt = new Set([1, 5, 9]);
    let restarting: Promise<void> | undefined;
    let takes = 0;
    const { store, url } = await startVerifier(t, async ({ eventId, data }) => {
      takes += 1;
      // The event is taken, and the service dies before it hears so.
      if (killsAt.delete(takes)) {
        await program.kill();
        restarting = start().then((next) => {
          program = next;
        });
      }
      const id = String(data.packet_id);
      idsOf.set(id, (idsOf.get(id) ?? new Set()).add(eventId));
      if (idsOf.size === packets && killsAt.size === 0) all.resolve();
    });
    const client = await connect(program.address, store);
    await subscribe(client, url);
    await client.close();
    const created: string[] = [];
    while (created.length < packets) {
      await restarting;
      // A create that gets no answer, since the service was killed, is sent again.
      const id = await handOver(program.address, `packet-${created.length}`).catch(() => undefined);
      if (id !== undefined) created.push(id);
    }
    await all.promise;
    assert.deepEqual(new Set(idsOf.keys()), new Set(created), 'no event is lost');
    assert.deepEqual(new Set([...idsOf.values()].map(({ size }) => size)), new Set([1]), 'a repeated delivery has the id of the first');
    assert.ok(takes > packets, `${takes} deliveries, of which those before a kill came again`);
  });
});
