import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, happenings, historyOf, packetIn, refusal } from '../../support/life.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { repeat, waiting } from '../../support/until.ts';
import { register, shareHooked } from '../../support/webhooks.ts';

// The clock of a test starts at 09:30.
const in10 = '2026-03-01T09:40:00.000Z';
const in20 = '2026-03-01T09:50:00.000Z';

const sweepAll = (service: TestService) => repeat(service.handoff.runOnce.sweep, (nextMs) => nextMs > 0);

const next = (service: TestService, body: object = {}) =>
  service.call('POST', '/packets/claim-next', { body: { agent_id: 'resolver', target_agent: '*', ...body } });

const listed = async (service: TestService, query: string): Promise<string[]> => {
  const { status, body, text } = await service.call('GET', `/packets?${query}`);
  assert.equal(status, 200, text);
  assert.ok(body.total >= body.packets.length);
  return body.packets.map(({ id }: { id: string }) => id);
};

const patch = (service: TestService, id: string, body: object) => service.call('PATCH', `/packets/${id}`, { body });

const metric = async (service: TestService, name: string): Promise<string | undefined> =>
  new RegExp(`^${name} (.*)$`, 'm').exec((await service.call('GET', '//metrics')).text)?.[1];

for (const store of stores) {
  describe(`not_before on ${store.name}`, () => {
    test('a packet can be read but not claimed before its time, which the answer names [H630]', async () => {
      const service = await shareService(store);
      const { id, not_before } = await createPacket(service, { not_before: '2026-03-01T10:40:00+01:00' });
      assert.equal(not_before, in10);
      service.clock.turn(599.5);
      const answer = await service.call('POST', `/packets/${id}/claim`, { body: claimant });
      assert.equal(answer.status, 409);
      assert.equal(answer.headers['retry-after'], '1');
      assert.deepEqual(refusal(answer), {
        detail: `The packet can be claimed from ${in10} on.`,
        code: 'NOT_YET',
        field: null,
        status_code: 409,
        not_before: in10,
      });
      const batch = await service.call('POST', '/packets/batch/claim', { body: { packet_ids: [id], ...claimant } });
      assert.deepEqual(
        batch.body.errors.map(({ code }: { code: string }) => code),
        ['NOT_YET'],
      );
      assert.equal((await next(service)).status, 204);
      service.clock.turn(0.5);
      assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: claimant })).status, 200);
      assert.deepEqual(await happenings(service, id), ['created', 'claimed']);
    });

    test('claim-next, the agents and the list leave it out until its time, which the history has [H630]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { not_before: in10 });
      const { id: other } = await createPacket(service);
      const waitingFor = async () => (await service.call('GET', '/agents')).body.agents.map((agent: { waiting: number }) => agent.waiting);
      await service.call('POST', '/packets/batch/claim', { body: { packet_ids: [other], agent_id: 'resolver' } });
      assert.deepEqual(
        (await waitingFor()).reduce((sum: number, one: number) => sum + one, 0),
        0,
      );
      assert.deepEqual(await listed(service, 'scheduled=true'), [id]);
      assert.deepEqual(await listed(service, 'scheduled=false'), [other]);
      assert.equal((await next(service)).status, 204);
      service.clock.turn(600);
      await sweepAll(service);
      assert.deepEqual(await listed(service, 'scheduled=true'), []);
      assert.equal((await historyOf(service, id)).at(-1)?.event_type, 'available');
      assert.deepEqual((await historyOf(service, id)).at(-1)?.details, { not_before: in10 });
      const claimed = await next(service);
      assert.equal(claimed.status, 200);
      assert.equal(claimed.body.id, id);
      assert.equal(claimed.body.not_before, in10);
    });

    test('a waiting request is woken when the time comes', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { not_before: in10 });
      const answering = next(service, { target_agent: 'resolver', wait_seconds: 60 });
      await waiting(service, 1);
      service.clock.turn(600);
      await service.handoff.runOnce.sweep();
      assert.equal((await answering).body.id, id);
    });

    test('packets that were taken before do not hide one whose time has come [H631]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { not_before: in10 });
      // More than a search finds before it looks up where to begin, so that it begins behind the scheduled packet.
      for (let count = 0; count < 40; count += 1) {
        await createPacket(service);
        assert.equal((await next(service)).status, 200);
      }
      assert.equal((await next(service)).status, 204);
      // Not so late that the search begins with all packets again.
      service.clock.turn(595);
      await createPacket(service);
      for (const status of [200, 204, 204]) assert.equal((await next(service)).status, status);
      service.clock.turn(5);
      assert.equal((await next(service)).status, 204);
      await sweepAll(service);
      const { status, body } = await next(service);
      assert.equal(status, 200);
      assert.equal(body.id, id);
    });

    test('1,000 packets with the same time become available once each', async () => {
      const service = await shareService(store, { SERVICE_BATCH_MAX: '1000' });
      const packets = Array.from({ length: 1000 }, () => packetRequest({ not_before: in10, due_at: in10 }));
      assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      service.clock.turn(600);
      await Promise.all([sweepAll(service), sweepAll(service)]);
      for (const action of ['available', 'overdue'])
        assert.equal((await service.call('GET', `/audit?action=${action}&limit=1`)).body.total, 1000, action);
    });

    test('a time that has passed is kept and has no effect; one more than a year ahead is refused', async () => {
      const service = await shareService(store);
      const { id, not_before } = await createPacket(service, { not_before: '2026-03-01T09:00:00Z' });
      assert.equal(not_before, '2026-03-01T09:00:00.000Z');
      assert.equal((await next(service)).body.id, id);
      const answer = await service.call('POST', '/packets', { body: packetRequest({ not_before: '2027-03-03T09:00:00Z' }) });
      assert.equal(answer.status, 400);
      assert.equal(answer.body.field, 'not_before');
    });

    test('an update changes or removes it while the packet is created; null makes it available at once', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { not_before: in10 });
      const moved = await patch(service, id, { not_before: in20 });
      assert.equal(moved.status, 200, moved.text);
      assert.equal(moved.body.not_before, in20);
      service.clock.turn(600);
      await sweepAll(service);
      assert.equal((await next(service)).status, 204);
      const answering = next(service, { wait_seconds: 60 });
      await waiting(service, 1);
      const removed = await patch(service, id, { not_before: null });
      assert.equal(removed.status, 200);
      assert.equal('not_before' in removed.body, false);
      assert.equal((await answering).body.id, id);
      const late = await patch(service, id, { not_before: in20 });
      assert.equal(late.status, 409);
    });

    test('a packet that comes back before its time is held until then', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human', { not_before: in10 });
      assert.equal((await service.call('DELETE', `/packets/${id}/question`)).status, 200);
      assert.equal((await next(service)).status, 204);
      service.clock.turn(600);
      await sweepAll(service);
      assert.equal((await next(service)).body.id, id);
    });

    test('SERVICE_UNCLAIMED_TTL_SECONDS and the ages of unclaimed packets count from it', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_UNCLAIMED_TTL_SECONDS: '60' } });
      const { id } = await createPacket(service, { not_before: in10 });
      const statusOf = async () => (await service.call('GET', `/packets/${id}`)).body.status;
      service.clock.turn(600);
      await sweepAll(service);
      await sweepAll(service);
      assert.equal(await statusOf(), 'created');
      service.clock.turn(59);
      assert.equal((await service.call('GET', '/stats')).body.work.oldest_waiting_at, in10);
      assert.equal(await metric(service, 'service_oldest_unclaimed_age_seconds'), '59');
      await sweepAll(service);
      assert.equal(await statusOf(), 'created');
      service.clock.turn(1.001);
      await sweepAll(service);
      assert.equal(await statusOf(), 'expired');
    });
  });

  describe(`due_at on ${store.name}`, () => {
    test('a packet that is open at its due_at is overdue, once; a new due_at counts anew [H632]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { due_at: in10 });
      await service.call('POST', `/packets/${id}/claim`, { body: { ...claimant, lease_seconds: 3600 } });
      service.clock.turn(599.999);
      await sweepAll(service);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.overdue, undefined);
      service.clock.turn(0.001);
      await sweepAll(service);
      await sweepAll(service);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.overdue, true);
      assert.deepEqual((await historyOf(service, id)).slice(2), [
        { timestamp: in10, event_type: 'overdue', actor: 'system:sweeper', details: { due_at: in10 } },
      ]);
    });

    test('due_at may change while the packet is open, which ends that it is overdue [H632]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'in_progress', { due_at: in10 });
      service.clock.turn(600);
      await sweepAll(service);
      const moved = await patch(service, id, { due_at: in20 });
      assert.equal(moved.status, 200);
      assert.equal(moved.body.overdue, undefined);
      assert.deepEqual(await listed(service, 'overdue=true'), []);
      service.clock.turn(600);
      await sweepAll(service);
      assert.deepEqual(await listed(service, 'overdue=true'), [id]);
      assert.equal((await patch(service, id, { status: 'completed' })).status, 200);
      assert.deepEqual(await listed(service, 'overdue=true'), []);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.overdue, true);
      assert.equal((await patch(service, id, { due_at: null })).status, 409);
      assert.deepEqual(
        (await happenings(service, id)).filter((type) => type === 'overdue'),
        ['overdue', 'overdue'],
      );
    });

    test('lists find packets by it, and order=due has the nearest first and those without one at the end [H633]', async () => {
      const service = await shareService(store);
      const none = await createPacket(service);
      const late = await createPacket(service, { due_at: in20 });
      const soon = await createPacket(service, { due_at: in10 });
      const last = await createPacket(service);
      const ids = [soon, late, none, last].map(({ id }) => id);
      assert.deepEqual(await listed(service, 'order=due'), ids);
      assert.deepEqual(await listed(service, 'order=due&view=full&offset=1&limit=2'), ids.slice(1, 3));
      assert.deepEqual(await listed(service, `due_before=${in10}`), [soon.id]);
      assert.deepEqual(await listed(service, `order=due&due_before=${in20}&status=created`), [soon.id, late.id]);
      const seen: string[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const { status, body } = await service.call('GET', `/packets?order=due&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`);
        assert.equal(status, 200);
        assert.equal(body.total, 4);
        seen.push(body.packets[0].id);
        cursor = body.next_cursor;
        if (cursor !== null) assert.equal((await service.call('GET', `/packets?limit=1&cursor=${cursor}`)).status, 400);
      }
      assert.deepEqual(seen, ids);
      const { key } = await newTenant(service);
      assert.deepEqual((await service.call('GET', '/packets?order=due', { key })).body.packets, []);
    });

    test('claim-next with order=due takes the nearest due_at of the highest priority first [H634]', async () => {
      const service = await shareService(store);
      const of = (priority: string, times: object = {}) =>
        createPacket(service, { metadata: { ...(packetRequest().metadata as object), priority }, ...times });
      const made = [
        await of('normal', { due_at: in10 }),
        await of('high'),
        await of('high', { due_at: in20 }),
        await of('high', { due_at: in10 }),
        await of('critical'),
        await of('critical', { due_at: in10, not_before: in10 }),
      ].map(({ id }) => id);
      const taken: number[] = [];
      for (let answer = await next(service, { order: 'due' }); answer.status === 200; answer = await next(service, { order: 'due' }))
        taken.push(made.indexOf(answer.body.id));
      assert.deepEqual(taken, [4, 3, 2, 1, 0]);
    });

    test('many workers that take by due_at get each packet once [H634]', async () => {
      const service = await shareService(store);
      const packets = Array.from({ length: 50 }, (_, index) =>
        packetRequest(index % 2 === 0 ? { due_at: `2026-03-01T09:${59 - index}:00.000Z` } : {}),
      );
      const created = (await service.call('POST', '/packets/batch', { body: { packets } })).body.created.map(
        ({ id }: { id: string }) => id,
      );
      const answers = await Promise.all(created.map(() => next(service, { order: 'due' })));
      assert.deepEqual(
        answers.map(({ status }) => status),
        created.map(() => 200),
      );
      assert.deepEqual(answers.map(({ body }) => body.id).sort(), created.sort());
    });

    test('webhooks and channels that name it are told; the default lists do not have it [H635]', async (t) => {
      const receiver = await startReceiver(t);
      const service = await shareHooked(t, store);
      assert.equal((await register(service, receiver.url)).events.length, 8);
      await register(service, receiver.url, { events: ['packet.overdue'] });
      const slack = await startReceiver(t);
      const channel = { kind: 'slack', target: slack.url, events: ['overdue'] };
      assert.equal((await service.call('POST', '/channels', { body: channel })).status, 201);
      const { id } = await createPacket(service, { due_at: in10, context: { summary: 'Charged twice' } });
      const done = await packetIn(service, 'completed', { due_at: in10 });
      service.clock.turn(600);
      await sweepAll(service);
      await service.handoff.runOnce.deliver();
      const overdue = receiver.posts.map(({ body }) => JSON.parse(String(body))).filter(({ type }) => type === 'packet.overdue');
      assert.deepEqual(
        overdue.map(({ packet_id, data }) => [packet_id, data.overdue]),
        [[id, true]],
      );
      assert.equal((await service.call('GET', `/packets/${done.id}`)).body.overdue, undefined);
      assert.equal(slack.posts.length, 1);
      assert.match(String(slack.posts[0]!.body), /is overdue.*Charged twice/s);
    });

    test('service_packets_overdue counts the open packets that are overdue', async (t) => {
      const service = await startService(t, { store });
      const { id } = await createPacket(service, { due_at: in10 });
      assert.equal(await metric(service, 'service_packets_overdue'), '0');
      service.clock.turn(600);
      await sweepAll(service);
      assert.equal(await metric(service, 'service_packets_overdue'), '1');
      await patch(service, id, { status: 'failed' });
      assert.equal(await metric(service, 'service_packets_overdue'), '0');
    });

    test('gauges name the questions and overdue packets that have waited longest, at most 20, or without a token only tenants [H747]', async (t) => {
      const tokens = { SERVICE_METRICS_TOKEN: 'a-token-of-metrics-16' };
      const service = await startService(t, { store, settings: tokens });
      const samples = async (name: string) => {
        const { text } = await service.call('GET', '//metrics', {
          key: null,
          headers: { authorization: `Bearer ${tokens.SERVICE_METRICS_TOKEN}` },
        });
        return [...text.matchAll(new RegExp(`^${name}\\{(.*)\\} (\\d+)$`, 'gm'))].map(([, labels, value]) => ({
          labels: labels!,
          value: Number(value),
        }));
      };
      assert.deepEqual(await samples('service_packet_overdue_seconds'), []);
      const { id } = await createPacket(service, { due_at: in10, hitl: { required: true, reason: 'r', question: 'q', responder: 'dana' } });
      for (let more = 0; more < 24; more += 1) await createPacket(service, { due_at: in20 });
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'other' } });
      await patch(service, id, { status: 'awaiting_human' });
      service.clock.turn(1500);
      await sweepAll(service);
      const tenant = (await service.call('GET', '/keys/self')).body.tenant.id;
      const labels = `tenant_id="${tenant}",agent_id="other",responder="dana",packet_id="${id}"`;
      assert.deepEqual(await samples('service_question_wait_seconds'), [{ labels, value: 1500 }]);
      const overdue = await samples('service_packet_overdue_seconds');
      assert.deepEqual([overdue.length, overdue[0]], [20, { labels, value: 900 }]);
      await service.call('POST', `/packets/${id}/respond`, { body: { response: 'y', responded_by: 'dana' } });
      assert.deepEqual(await samples('service_question_wait_seconds'), [], 'nothing of it stays');

      const open = await startService(t, { store });
      await createPacket(open, { due_at: in10 });
      open.clock.turn(1500);
      await sweepAll(open);
      const { text } = await open.call('GET', '//metrics', { key: null });
      assert.match(text, /^service_packet_overdue_seconds\{tenant_id="[0-9a-f]{12}"\} 900$/m);
      assert.doesNotMatch(text, /agent_id|responder=|packet_id/);
    });

    test('a packet without times has none of the fields', async () => {
      const service = await shareService(store);
      const packet = await createPacket(service);
      for (const field of ['not_before', 'due_at', 'overdue']) assert.equal(field in packet, false);
    });
  });
}
