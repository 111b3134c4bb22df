import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { createPacket, newTenant, packetRequest, type TestService } from '../../support/service.ts';
import { type SharedService, shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { listenTo, openEvents, type TestEvent, type TestEvents } from '../../support/streams.ts';

const keyed = ({ key }: { key: string }) => ({ 'x-api-key': key });
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Opens a stream, with the key of the service's tenant unless `headers` has another. */
const open = async (service: SharedService, query = '', headers: Record<string, string> = {}): Promise<TestEvents> =>
  openEvents(await service.listen(), query, { ...keyed(service), ...headers });

/** Opens a stream like `open`, until the test ends, and reads `connected`. */
const listen = async (t: TestContext, service: SharedService, query = '', headers: Record<string, string> = {}): Promise<TestEvents> =>
  listenTo(t, await service.listen(), query, { ...keyed(service), ...headers });

const typesAndPackets = (events: readonly TestEvent[]) => events.map(({ event, data }) => [event, data.packet_id]);

/** Creates `count` packets and returns their ids. */
async function createPackets(service: TestService, count: number, changes: Record<string, unknown> = {}, key?: string): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push((await createPacket(service, changes, key)).id);
  return ids;
}

for (const store of stores) {
  describe(`GET /events on ${store.name}`, () => {
    test('sends every event of the tenant with its type, its id, and the envelope with the summary after the change [H151, H446]', async (t) => {
      const service = await shareService(store);
      const stream = await open(service);
      t.after(() => stream.close());
      assert.equal(stream.status, 200);
      assert.equal(stream.headers['content-type'], 'text/event-stream');
      assert.equal(stream.headers['cache-control'], 'no-store, no-transform');
      assert.equal(stream.headers['x-accel-buffering'], 'no');
      assert.equal(stream.headers['x-ratelimit-tier'], 'business');
      const connected = await stream.events.next();
      assert.equal(connected.event, 'connected');
      assert.match(connected.data.connection_id, uuid);
      assert.equal(typeof connected.data.message, 'string');
      assert.match(stream.text(), /^retry: 3000\n/);

      const { id } = await createPacket(service);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'On it' } } });
      // An erased packet's events that were not sent yet are sent no more.
      const events = await stream.events.take(3);
      await service.call('DELETE', `/packets/${id}?hard=true`);
      events.push(await stream.events.next());
      assert.deepEqual(typesAndPackets(events), [
        ['packet.created', id],
        ['packet.claimed', id],
        ['packet.updated', id],
        ['packet.deleted', id],
      ]);
      for (const { event, data } of events) {
        assert.deepEqual(Object.keys(data), ['type', 'packet_id', 'data', 'timestamp']);
        assert.equal(data.type, event);
      }
      assert.equal(new Set(events.map((event) => event.id)).size, 4);
      assert.deepEqual(
        events.map(({ data }) => data.data?.status),
        ['created', 'claimed', 'claimed', undefined],
      );
      assert.equal(events[2]!.data.data.context.summary, 'On it');
      assert.equal(events[0]!.data.data.decisions, undefined);
      assert.equal(events[3]!.data.data, null);
    });

    test('the answer of a person is a hitl.response_ready event', async (t) => {
      const service = await shareService(store);
      const stream = await listen(t, service);
      const hitl = { required: true, reason: 'Over the limit', question: 'May I?', timeout_seconds: 60 };
      const { id } = await createPacket(service, { hitl });
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
      await service.call('POST', `/packets/${id}/respond`, { body: { response: 'yes', responded_by: 'Ada' } });
      assert.deepEqual(typesAndPackets(await stream.events.take(3)), [
        ['packet.created', id],
        ['packet.awaiting_human', id],
        ['hitl.response_ready', id],
      ]);
    });

    test('the start and the end of an execution are packet.updated events', async (t) => {
      const service = await shareService(store);
      const stream = await listen(t, service);
      const body = { agent: { id: 'refunds' }, action: { tool: 'refund', arguments: {} }, exclude_source: false };
      const { id, hitl } = (await service.call('POST', '/approvals', { body })).body;
      await service.call('POST', `/packets/${id}/respond`, { body: { decision: 'approve', responded_by: 'Ada' } });
      await service.call('POST', `/packets/${id}/execution`, { body: { arguments_digest: hitl.action.arguments_digest } });
      await service.call('PATCH', `/packets/${id}/execution`, { body: { status: 'succeeded' } });
      assert.deepEqual(
        (await stream.events.take(8)).map(({ event }) => event),
        [
          ...['packet.created', 'packet.claimed', 'packet.awaiting_human', 'packet.updated', 'hitl.response_ready'],
          ...['packet.updated', 'packet.updated', 'packet.completed'],
        ],
      );
    });

    test('a batch produces one event per packet, in the order of the commit', async (t) => {
      const service = await shareService(store);
      const stream = await listen(t, service);
      const made = await service.call('POST', '/packets/batch', { body: { packets: Array(30).fill(packetRequest()) } });
      assert.equal(made.status, 201);
      const events = await stream.events.take(30);
      assert.deepEqual(
        events.map(({ data }) => data.packet_id),
        made.body.created.map(({ id }: { id: string }) => id),
      );
    });

    test('resumes after Last-Event-ID with the missed events, byte for byte, once and in order, then new ones [H151]', async (t) => {
      const service = await shareService(store);
      const first = await open(service);
      const ids = await createPackets(service, 3);
      const [, seen] = await first.events.take(2);
      const live = await first.events.take(2);
      first.close();
      const missed = await createPackets(service, 40);
      for (const [query, headers] of [
        ['', { 'last-event-id': seen!.id! }],
        [`?last_event_id=${seen!.id}`, {}],
        ['?last_event_id=nonsense', { 'last-event-id': seen!.id! }],
      ] as const) {
        const again = await listen(t, service, query, headers);
        const events = await again.events.take(2 + missed.length);
        assert.deepEqual(
          events.map(({ data }) => data.packet_id),
          [...ids.slice(1), ...missed],
        );
        const block = (text: string, id: string) =>
          text.split('\n\n').find((one) => one.startsWith(`id: ${id}\n`) && !one.includes('event: connected'));
        const sent = block(first.text(), live[0]!.id!);
        assert.notEqual(sent, undefined);
        assert.equal(block(again.text(), live[0]!.id!), sent);
        const [next] = await createPackets(service, 1);
        assert.equal((await again.events.next()).data.packet_id, next);
        missed.push(next!);
      }
    });

    test('connected has the id of the last event before it, so that a client that received no event can resume [H151]', async (t) => {
      const service = await shareService(store);
      await createPackets(service, 2);
      const first = await open(service);
      const { id } = await first.events.next();
      first.close();
      const missed = await createPackets(service, 3);
      const again = await listen(t, service, '', { 'last-event-id': id! });
      assert.deepEqual(
        (await again.events.take(3)).map(({ data }) => data.packet_id),
        missed,
      );
    });

    test('an id that is unknown, malformed or of another tenant gets reset, and the stream starts from now [H151]', async (t) => {
      const service = await shareService(store);
      const other = await newTenant(service);
      await createPackets(service, 3, {}, other.key);
      const foreign = await listen(t, service, '', keyed(other));
      await createPackets(service, 1, {}, other.key);
      const { id: foreignId } = await foreign.events.next();
      const own = await listen(t, service);
      await createPackets(service, 1);
      const { id: ownId } = await own.events.next();
      const [, suffix] = ownId!.split('-');
      for (const id of [foreignId!, `999999-${suffix}`, 'nonsense', '-1', `01-${suffix}`, `1e3-${suffix}`, '9'.repeat(400)]) {
        const stream = await listen(t, service, `?last_event_id=${id}`);
        const reset = await stream.events.next();
        assert.deepEqual([reset.event, reset.data], ['reset', { reason: 'unknown' }], id);
        const [made] = await createPackets(service, 1);
        assert.equal((await stream.events.next()).data.packet_id, made);
      }
    });

    test('events committed during the replay are neither lost nor repeated [H151]', async (t) => {
      const service = await shareService(store);
      const first = await open(service);
      const { id } = await first.events.next();
      first.close();
      const batch = () => service.call('POST', '/packets/batch', { body: { packets: Array(50).fill(packetRequest()) } });
      for (let round = 0; round < 8; round += 1) assert.equal((await batch()).status, 201);
      const writing = Promise.all(Array.from({ length: 8 }, batch));
      const streams = await Promise.all(Array.from({ length: 4 }, () => listen(t, service, `?last_event_id=${id}`)));
      await writing;
      const received = await Promise.all(streams.map((stream) => stream.events.take(800)));
      const positions = received.map((events) => events.map((event) => Number(event.id!.split('-')[0])));
      for (const one of positions)
        assert.deepEqual(
          one,
          positions[0]!.toSorted((a, b) => a - b),
        );
      assert.equal(new Set(positions[0]).size, 800);
    });

    test('channels filter by the status after the event, by packet, and by source, target or claimant [H154]', async (t) => {
      const service = await shareService(store);
      const one = await createPacket(service);
      const channels = {
        status: await listen(t, service, '?subscribe=status:claimed'),
        packet: await listen(t, service, `?subscribe=packet:${one.id.toUpperCase()}`),
        claimant: await listen(t, service, '?subscribe=agent:resolver-7'),
        source: await listen(t, service, '?subscribe=agent:starter'),
        several: await listen(t, service, `?subscribe=status:completed&subscribe=packet:${one.id}`),
      };
      const other = await createPacket(service, {
        metadata: { ...one.metadata, source_agent: { id: 'starter', name: 'S', framework: 'x' } },
      });
      await service.call('POST', `/packets/${one.id}/claim`, { body: { agent_id: 'resolver-7' } });
      await service.call('POST', `/packets/${other.id}/claim`, { body: { agent_id: 'someone' } });
      await service.call('PATCH', `/packets/${other.id}`, { body: { status: 'completed' } });
      await service.call('PATCH', `/packets/${one.id}`, { body: { status: 'completed' } });
      const expected: Record<keyof typeof channels, [string, string][]> = {
        status: [
          ['packet.claimed', one.id],
          ['packet.claimed', other.id],
        ],
        packet: [
          ['packet.claimed', one.id],
          ['packet.completed', one.id],
        ],
        claimant: [
          ['packet.claimed', one.id],
          ['packet.completed', one.id],
        ],
        source: [
          ['packet.created', other.id],
          ['packet.claimed', other.id],
          ['packet.completed', other.id],
        ],
        several: [
          ['packet.claimed', one.id],
          ['packet.completed', other.id],
          ['packet.completed', one.id],
        ],
      };
      for (const [name, events] of Object.entries(expected)) {
        assert.deepEqual(typesAndPackets(await channels[name as keyof typeof channels].events.take(events.length)), events, name);
      }
    });
  });
}
