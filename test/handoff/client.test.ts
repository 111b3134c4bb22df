import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { ApiError, createFallbackClient, createHandoffClient, type StreamEvent } from '../../src/client.ts';
import type { CreateRequest } from '../../src/handoff/model/packet.ts';
import { freePort } from '../../src/kit/free-port.ts';
import { startPeer, TestClientDependencies } from '../support/client-dependencies.ts';
import { adminKey, createPacket, packetRequest, startService } from '../support/service.ts';
import { onDisk } from '../support/stores.ts';
import { until } from '../support/until.ts';

describe('The client of the handoff service', () => {
  test('reaches every operation, with or without the API prefix in its base URL', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    for (const baseUrl of [address, `${address}/`, `${address}/api/v1`, `${address}/api/v1/`]) {
      const client = createHandoffClient({ baseUrl, apiKey: adminKey });
      assert.equal((await client.health()).status, 'ok');
      assert.match(await client.metrics(), /service_active_packets/);
      assert.equal((await client.listPackets()).total, 0);
    }
  });

  test('creates, claims, gets the holder in a conflict, and pages', async (t) => {
    const service = await startService(t);
    const client = createHandoffClient({ baseUrl: await service.handoff.start(), apiKey: adminKey });
    const { created } = await client.batchCreate({ body: { packets: [1, 2, 3].map(() => packetRequest() as CreateRequest) } });
    const { id } = created[0]!;
    await client.claimPacket({ params: { id }, body: { agent_id: 'a' } });
    await assert.rejects(client.claimPacket({ params: { id }, body: { agent_id: 'b' } }), (error) => {
      assert.ok(error instanceof ApiError);
      assert.deepEqual([error.status_code, error.code, (error.body.claimed_by as { agent_id: string }).agent_id], [409, 'CONFLICT', 'a']);
      return true;
    });
    const found = await Array.fromAsync(client.listPackets.items({ query: { limit: 2 } }), (packet) => packet.id);
    assert.deepEqual(found, created.map((packet) => packet.id).reverse());
    const { headers } = await client.getPacket.withResponse({ params: { id } });
    const again = await client.getPacket.withResponse({ params: { id }, headers: { 'if-none-match': headers.etag! } });
    assert.deepEqual([again.status, again.body], [304, undefined]);
  });

  test('takes statuses by name, one or several, and refuses others before the request', async (t) => {
    const service = await startService(t);
    const client = createHandoffClient({ baseUrl: await service.handoff.start(), apiKey: adminKey });
    const metadata = { source_agent: { id: 'a', name: 'A', framework: 'x' }, target_agent: { id: 'b', name: 'B' }, tags: ['a', 'b'] };
    const packets = [1, 2, 3].map(() => ({ metadata, context: { summary: 's' } }));
    const { created } = await client.batchCreate({ body: { packets } });
    const [first, second] = created.map(({ id }) => ({ params: { id } }));
    await client.claimPacket({ ...first!, body: { agent_id: 'a' } });
    await client.deletePacket(second!);
    type ListQuery = NonNullable<NonNullable<Parameters<typeof client.listPackets>[0]>['query']>;
    const found = async (query: ListQuery) => (await client.listPackets({ query })).total;
    assert.deepEqual(
      [await found({ status: 'created' }), await found({ status: ['claimed', 'expired'] }), await found({ tags: ['a', 'b'] })],
      [1, 2, 3],
    );
    assert.deepEqual([await found({ status: 'claimed', tags: ['a', 'c'] }), await found({ status: undefined })], [0, 3]);
    const waited = await client.getPacket({ ...first!, query: { wait_seconds: 60, until: ['completed', 'claimed'] } });
    assert.equal(waited.status, 'claimed');
    const refused = () => [
      // @ts-expect-error a misspelt status
      client.listPackets({ query: { status: 'creatd' } }),
      // @ts-expect-error statuses are given as an array
      client.listPackets({ query: { status: 'created,claimed' } }),
      // @ts-expect-error one of them is misspelt
      client.getPacket({ params: { id: '' }, query: { wait_seconds: 1, until: ['claimd'] } }),
    ];
    assert.equal(refused.length, 0);
  });

  test("rejects a key that a header can't carry, without quoting it", () => {
    assert.throws(
      () => createHandoffClient({ baseUrl: 'http://localhost', apiKey: 'secret\nkey' }),
      (error) => {
        assert.ok(error instanceof TypeError);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
  });

  test('resumes a stream after a broken connection and after a restart of the service', async (t) => {
    const { url, drop } = await onDisk.open();
    t.after(drop);
    const options = { databaseUrl: url, settings: { SERVICE_PORT: String(await freePort()) } };
    const first = await startService(t, options);
    const baseUrl = await first.handoff.start();
    // Every delay before a retry ends at once; the longest is 30 seconds.
    const client = createHandoffClient({ baseUrl, apiKey: adminKey, timeoutSeconds: 40, dependencies: new TestClientDependencies(30) });
    const ending = new AbortController();
    const events = client.events({ signal: ending.signal });
    const seen: string[] = [];
    const next = async () => {
      const { value } = await events.next();
      seen.push((value as StreamEvent).packet_id);
    };
    const reading = next();
    // The stream is open once the service has a listener.
    await until(async () => (await client.metrics()).includes('service_open_connections{protocol="sse"} 1'));
    const made = [(await createPacket(first)).id];
    await reading;
    first.handoff.app.server.closeAllConnections();
    made.push((await createPacket(first)).id, (await createPacket(first)).id);
    await next();
    await next();
    await first.handoff.stop();
    const second = await startService(t, options);
    made.push((await createPacket(second)).id);
    await second.handoff.start();
    await next();
    made.push((await createPacket(second)).id);
    await next();
    assert.deepEqual(seen, made);
    ending.abort(new Error('enough'));
    await assert.rejects(events.next(), /enough/);
  });

  test('yields events with their ids, and a reset, but no heartbeats', async (t) => {
    const text = [
      'event: connected\ndata: {"connection_id":"c","message":"m"}\n\n',
      'id: 7\nevent: packet.created\ndata: {"type":"packet.created","packet_id":"p","data":null,"timestamp":"t"}\n\n',
      'event: ping\ndata: {"timestamp":"t"}\n\n',
      'event: reset\ndata: {"reason":"too old"}\n\n',
    ].join('');
    const { address, received } = await startPeer(
      t,
      (reply) => void reply.writeHead(200, { 'content-type': 'text/event-stream' }).end(text),
    );
    const client = createHandoffClient({ baseUrl: `${address}/api/v1`, apiKey: 'k', dependencies: new TestClientDependencies() });
    const seen = [];
    for await (const event of client.events({ subscribe: ['status:created'], lastEventId: '6' })) if (seen.push(event) === 2) break;
    assert.deepEqual(seen, [
      { type: 'packet.created', packet_id: 'p', data: null, timestamp: 't', event_id: '7' },
      { type: 'reset', reason: 'too old', event_id: undefined },
    ]);
    const { url, headers } = received[0]!;
    assert.deepEqual([url, headers['x-api-key'], headers['last-event-id']], ['/events?subscribe=status%3Acreated', 'k', '6']);
  });
});

describe('The client of the fallback service', () => {
  test('follows a test run to its end', async (t) => {
    const text = 'event: progress\ndata: {"done":1}\n\nevent: end\ndata: {"id":"r"}\n\n';
    const { address, received } = await startPeer(
      t,
      (reply) => void reply.writeHead(200, { 'content-type': 'text/event-stream' }).end(text),
    );
    const client = createFallbackClient({ baseUrl: address, apiKey: 'k' });
    const types = await Array.fromAsync(client.testEvents({ params: { id: 'r' } }), ({ type }) => type);
    assert.deepEqual(types, ['progress', 'end']);
    assert.equal(received[0]!.url, '/test-results/r/events');
  });
});
