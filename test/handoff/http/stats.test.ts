import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { packetIn } from '../../support/life.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, newTenant, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { register, shareHooked } from '../../support/webhooks.ts';

const hour = 3600;

async function statsOf(service: TestService, query = '', key?: string) {
  const { status, body, text } = await service.call('GET', `/stats${query}`, key === undefined ? {} : { key });
  assert.equal(status, 200, text);
  return body;
}

/** Moves a packet with a PATCH. */
async function patch(service: TestService, id: string, body: unknown): Promise<void> {
  const { status, text } = await service.call('PATCH', `/packets/${id}`, { body });
  assert.equal(status, 200, text);
}

const answer = (service: TestService, id: string) =>
  service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } });

for (const store of stores) {
  describe(`Statistics, on ${store.name}`, () => {
    test('say what waits, is held and asked, since when, and what was done in each hour [H330]', async () => {
      const service = await shareService(store);
      // 09:30: three packets, of which one is held and one asks a person.
      await createPacket(service);
      const held = await packetIn(service, 'in_progress');
      const asked = await packetIn(service, 'awaiting_human');
      service.clock.turn(hour);
      // 10:30: one is completed, one is created and fails.
      await patch(service, held.id, { status: 'completed' });
      await packetIn(service, 'failed');
      service.clock.turn(hour);
      // 11:30: one is deleted before it was finished, and a question is asked again.
      await packetIn(service, 'expired');
      const later = await packetIn(service, 'awaiting_human');
      const stats = await statsOf(service, '?since=2026-03-01T09:45:00Z');
      const none = { created: 0, completed: 0, failed: 0, expired: 0, answered: 0, waiting: 1, held: 0, asked: 1 };
      assert.deepEqual(stats, {
        since: '2026-03-01T09:00:00.000Z',
        until: '2026-03-01T11:30:00.000Z',
        questions: { open: 2, oldest_asked_at: '2026-03-01T09:30:00.000Z', answered: 0, median_answer_seconds: null },
        work: {
          ...{ waiting: 1, held: 0, oldest_waiting_at: '2026-03-01T09:30:00.000Z' },
          ...{ created: 6, completed: 1, failed: 1, expired: 1 },
        },
        deliveries: { waiting: 0, failing: 0, dead_letters: 0 },
        hours: [
          { ...none, hour: '2026-03-01T09:00:00.000Z', created: 3, held: 1 },
          { ...none, hour: '2026-03-01T10:00:00.000Z', created: 1, completed: 1, failed: 1 },
          { ...none, hour: '2026-03-01T11:00:00.000Z', created: 2, expired: 1, asked: 2 },
        ],
      });
      assert.deepEqual((await statsOf(service)).hours.length, 25, 'by default a day and the hour that runs');
      assert.equal((await answer(service, asked.id)).status, 200);
      assert.equal((await statsOf(service)).questions.oldest_asked_at, later.hitl.requested_at);
    });

    test('have the median time to an answer, within ten percent, of questions that were answered [H330]', async () => {
      const service = await shareService(store);
      for (const seconds of [10, 90, 4000]) {
        const { id } = await packetIn(service, 'awaiting_human');
        service.clock.turn(seconds);
        assert.equal((await answer(service, id)).status, 200);
      }
      const withdrawn = await packetIn(service, 'awaiting_human');
      assert.equal((await service.call('DELETE', `/packets/${withdrawn.id}/question`)).status, 200);
      const { questions } = await statsOf(service);
      assert.deepEqual([questions.open, questions.answered], [0, 3]);
      assert.ok(Math.abs(questions.median_answer_seconds - 90) <= 9, `${questions.median_answer_seconds} s`);
    });

    test('forget what is deleted permanently from then on, and keep what was done [H330]', async () => {
      const service = await shareService(store);
      const open = await createPacket(service);
      const done = await packetIn(service, 'completed');
      service.clock.turn(hour);
      for (const { id } of [open, done]) assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      const { work, hours } = await statsOf(service, '?since=2026-03-01T09:00:00Z');
      assert.deepEqual([work.waiting, work.created, work.completed, work.oldest_waiting_at], [0, 2, 1, null]);
      assert.deepEqual(
        hours.map(({ waiting, created }: { waiting: number; created: number }) => [waiting, created]),
        [
          [1, 2],
          [0, 0],
        ],
      );
    });

    test('of a key that sees its own are those of its packets: the same where it sees all, and none where it sees none [H567]', async () => {
      const service = await shareService(store);
      const first = await createPacket(service);
      const keyFor = async (agents: string[]) =>
        (await service.call('POST', '/keys', { body: { name: 'own', agents, sees: 'own' } })).body.key as string;
      const [own, stranger] = [await keyFor([first.metadata.source_agent.id, first.metadata.target_agent.id]), await keyFor(['stranger'])];
      for (const status of ['in_progress', 'awaiting_human', 'completed', 'failed', 'expired'] as const) {
        await packetIn(service, status);
        service.clock.turn(hour);
      }
      const question = await packetIn(service, 'awaiting_human');
      service.clock.turn(2 * hour);
      assert.equal((await answer(service, question.id)).status, 200);
      assert.equal((await service.call('POST', `/packets/${question.id}/release`, { headers: { 'x-agent-id': 'resolver' } })).status, 200);
      const withdrawn = await packetIn(service, 'awaiting_human');
      assert.equal((await service.call('DELETE', `/packets/${withdrawn.id}/question`)).status, 200);
      for (const query of ['', '?since=2026-03-01T09:00:00Z', '?since=2026-03-01T12:00:00Z'])
        assert.deepEqual(await statsOf(service, query, own), await statsOf(service, query));
      const { work, questions, hours } = await statsOf(service, '', stranger);
      assert.deepEqual([work.created, work.waiting, work.oldest_waiting_at, questions.open, questions.answered], [0, 0, null, 0, 0]);
      assert.ok(hours.every(({ waiting, asked, held }: Record<string, number>) => waiting === 0 && asked === 0 && held === 0));
      assert.equal((await statsOf(service)).questions.answered, 1);
    });

    test('count deliveries that wait, receivers that fail and dead letters', async (t) => {
      const service = await shareHooked(t, store, { SERVICE_WEBHOOK_RETRY_SECONDS: '1,1' });
      await register(service, (await startReceiver(t, 500)).url);
      await createPacket(service);
      assert.deepEqual((await statsOf(service)).deliveries, { waiting: 1, failing: 0, dead_letters: 0 });
      await service.handoff.runOnce.deliver();
      assert.deepEqual((await statsOf(service)).deliveries, { waiting: 1, failing: 1, dead_letters: 0 });
      service.clock.turn(10);
      await service.handoff.runOnce.deliver();
      assert.deepEqual((await statsOf(service)).deliveries, { waiting: 0, failing: 1, dead_letters: 1 });
    });

    test('are those of one tenant, begin at most 31 days ago, and are kept for that long [H330]', async () => {
      const service = await shareService(store);
      const other = await newTenant(service, {});
      await createPacket(service, {}, other.key);
      assert.deepEqual((await statsOf(service)).work.created, 0);
      assert.deepEqual((await statsOf(service, '', other.key)).work.created, 1);
      for (const since of ['2026-03-01T09:30:01Z', '2026-01-29T09:29:59Z', 'yesterday']) {
        const { status, body } = await service.call('GET', `/stats?since=${since}`);
        assert.deepEqual([status, body.field], [400, 'since'], since);
      }
      service.clock.turn(31 * 24 * hour);
      await service.handoff.runOnce.prune();
      assert.equal((await statsOf(service, '?since=2026-03-01T09:30:00Z', other.key)).work.created, 1);
      service.clock.turn(25 * hour);
      await service.handoff.runOnce.prune();
      const { hours } = await statsOf(service, '?since=2026-03-03', other.key);
      assert.deepEqual([hours[0].waiting, hours.at(-1).waiting], [1, 1]);
    });
  });
}
