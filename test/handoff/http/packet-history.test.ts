import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { sql } from 'kysely';

import { packetEventTypes } from '../../../src/handoff/rules/packet.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import { claimant, happenings, historyOf, packetIn, question } from '../../support/life.ts';
import { createPacket, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { recordStatements } from '../../support/statements.ts';
import { numbersTo } from '../../support/store.ts';
import { postgresql, stores, storesOfSeveral } from '../../support/stores.ts';

const silences = new URL('../../../docs/silences-handoff.md', import.meta.url);

/** The types of events of packets in a tenant's audit log, each once. */
async function kinds(service: TestService): Promise<string[]> {
  const { status, body } = await service.call('GET', '/audit?limit=200');
  assert.equal(status, 200);
  const ofPackets = body.entries.filter(({ resource }: { resource: string }) => resource === 'packet');
  return [...new Set<string>(ofPackets.map(({ action }: { action: string }) => action))].sort();
}

test('GET /packets/{id}/history reads no content of its packet', async (t) => {
  const service = await startService(t, { store: postgresql });
  const { id } = await createPacket(service);
  const statements = recordStatements(t, 'select');
  assert.equal((await service.call('GET', `/packets/${id}/history`)).status, 200);
  const ofPacket = statements.filter(({ text, values }) => text.includes('"packets"') && values.includes(id));
  assert.ok(ofPacket.length > 0);
  for (const { text } of ofPacket) assert.doesNotMatch(text, /contents/);
});

for (const store of stores) {
  describe(`GET /packets/{id}/history on ${store.name}`, () => {
    test('200: every event, oldest first, with time, type, actor and details [H72]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const step = async (method: string, tail: string, body: unknown) => {
        service.clock.turn(60);
        const answer = await service.call(method, `/packets/${id}${tail}`, { body });
        assert.equal(answer.status, 200, answer.text);
      };
      await step('POST', '/claim', claimant);
      await step('PATCH', '', { status: 'in_progress' });
      await step('PATCH', '', { decisions: [{ id: 'd2', decision: 'Refund', rationale: '' }] });
      await step('PATCH', '', { status: 'awaiting_human', hitl: question });
      await step('POST', '/respond', { response: 'Approve', responded_by: 'dana' });
      await step('PATCH', '', { status: 'completed', actions: { completed: [{ id: 'a1', description: 'Refund', result: 'Done' }] } });
      service.clock.turn(60);
      await service.call('DELETE', `/packets/${id}`);

      const answer = await service.call('GET', `/packets/${id}/history`);
      assert.equal(answer.status, 200);
      assert.deepEqual(Object.keys(answer.body), ['packet_id', 'events']);
      assert.equal(answer.body.packet_id, id);
      for (const event of answer.body.events)
        assert.deepEqual(Object.keys(event), ['timestamp', 'event_type', 'actor', 'key_id', 'details']);
      const minute = (count: number) => `2026-03-01T09:3${count}:00.000Z`;
      assert.deepEqual(
        answer.body.events.map(({ timestamp, event_type, actor }: Record<string, string>) => [timestamp, event_type, actor]),
        [
          [minute(0), 'created', 'agent:frontline'],
          [minute(1), 'claimed', 'agent:resolver'],
          [minute(2), 'in_progress', 'agent:resolver'],
          [minute(3), 'updated', 'agent:resolver'],
          [minute(4), 'awaiting_human', 'agent:resolver'],
          [minute(5), 'hitl_responded', 'human:dana'],
          [minute(6), 'completed', 'agent:resolver'],
          [minute(7), 'expired', 'agent:resolver'],
        ],
      );
    });

    test('a question has its text and who is asked, cut at 1,000 characters', async () => {
      const service = await shareService(store);
      for (const text of ['Refund 59.90?', `${'x'.repeat(2000)}?`]) {
        const { id, hitl } = await packetIn(service, 'awaiting_human', { hitl: { ...question, question: text, responder: 'dana' } });
        const asked = (await historyOf(service, id)).at(-1)!;
        const { question_id } = hitl;
        assert.deepEqual(asked.details, {
          question_id,
          question: text.length < 1000 ? text : `${'x'.repeat(999)}…`,
          responder: 'dana',
        });
      }
    });

    test('events of the same millisecond keep their order', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const expected = ['created'];
      for (let index = 0; index < 30; index += 1) {
        await service.call('PATCH', `/packets/${id}`, {
          body: { context: { summary: `${index}` } },
          headers: { 'X-Agent-Id': `agent-${index}` },
        });
        expected.push('updated');
      }
      const events = await historyOf(service, id);
      assert.deepEqual(
        events.map(({ event_type }) => event_type),
        expected,
      );
      assert.deepEqual(
        events.slice(1).map(({ actor }) => actor),
        Array.from({ length: 30 }, (_, index) => `agent:agent-${index}`),
      );
    });

    test('refused requests and requests that change nothing are not recorded', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'claimed');
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'late' } });
      await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } });
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'created' } });
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'claimed' } });
      await service.call('PATCH', `/packets/${id}`, { body: { decisions: [{ id: 'new' }] } });
      await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'X' } }, headers: { 'If-Match': '"99"' } });
      await service.call('GET', `/packets/${id}`);
      assert.deepEqual(await happenings(service, id), ['created', 'claimed']);
    });

    test('the trail of packets has exactly the types of events that the rules and the documents list [H41]', async () => {
      const service = await shareService(store);
      const step = async (method: string, path: string, body?: object) => {
        const answer = await service.call(method, path, body === undefined ? {} : { body });
        assert.ok(answer.status < 300, `${method} ${path} ${answer.text}`);
      };
      const { id } = await packetIn(service, 'in_progress');
      await step('PATCH', `/packets/${id}`, { status: 'awaiting_human' });
      const { body: link } = await service.call('POST', `/packets/${id}/answer-links`);
      await step('DELETE', `/answer-links/${link.id}`);
      await step('POST', `/packets/${id}/respond`, { response: 'Yes', responded_by: 'dana' });
      await step('PATCH', `/packets/${id}`, { context: { summary: 'Changed.' } });
      await step('POST', '/packets/batch/complete', { packet_ids: [id] });
      await step('POST', `/packets/${id}/chain`, packetRequest());
      await step('DELETE', `/packets/${id}`);
      await packetIn(service, 'awaiting_human', { hitl: { ...question, timeout_seconds: 1, on_timeout: 'fail' } });
      service.clock.turn(1);
      await service.handoff.runOnce.sweep();
      const { id: leased } = await createPacket(service);
      await step('POST', `/packets/${leased}/claim`, claimant);
      await step('POST', `/packets/${leased}/release`, { agent_id: claimant.agent_id });
      await step('POST', `/packets/${leased}/claim`, { ...claimant, lease_seconds: 5 });
      service.clock.turn(6);
      await service.handoff.runOnce.sweep();
      const { id: removed } = await createPacket(service);
      await step('DELETE', `/packets/${removed}?hard=true`);
      const { id: reminded } = await packetIn(service, 'awaiting_human', { hitl: { ...question, remind_after_seconds: 1 } });
      service.clock.turn(1);
      await service.handoff.runOnce.sweep();
      await step('DELETE', `/packets/${reminded}/question`);
      await createPacket(service, { not_before: '2026-03-01T10:00:00Z', due_at: '2026-03-01T10:00:00Z' });
      service.clock.set('2026-03-01T10:00:00Z');
      await service.handoff.runOnce.sweep();
      await step('PUT', '/policies/refunds', {
        rules: [{ then: { ask: [{ from: ['dana'], escalate: [{ after_seconds: 60, to: ['mia'] }] }] } }],
      });
      const { body: agent } = await service.call('POST', '/keys', { body: { name: 'agent', scopes: ['work'] } });
      const { body: dana } = await service.call('POST', '/keys', { body: { name: 'dana', responder: 'dana' } });
      for (const status of ['succeeded', 'failed']) {
        const { body: asked } = await service.call('POST', '/approvals', {
          body: { agent: { id: status }, action: { tool: 'refund', arguments: {} } },
          key: agent.key,
        });
        service.clock.turn(60);
        await service.handoff.runOnce.sweep();
        const given = await service.call('POST', `/packets/${asked.id}/respond`, {
          body: { decision: 'approve', responded_by: 'dana' },
          key: dana.key,
        });
        assert.equal(given.status, 200, given.text);
        const { arguments_digest } = given.body.hitl.decision;
        await step('POST', `/packets/${asked.id}/execution`, { arguments_digest });
        await step('PATCH', `/packets/${asked.id}/execution`, { status });
      }
      const happened = await kinds(service);
      assert.deepEqual(happened, packetEventTypes.toSorted());
      const [, documented] = /^\| H\d+ \| History `event_type` \| (.*)\. \|$/m.exec(readFileSync(silences, 'utf8'))!;
      assert.deepEqual(documented!.split(', ').sort(), happened);
    });
  });
}

for (const store of storesOfSeveral) {
  describe(`A long history, on ${store.name}`, () => {
    test('shows the latest 10,000 events, as far as their details fit in 16 MiB [H42]', async (t) => {
      const service = await startService(t, { store });
      const url = service.databaseUrl;
      const { id } = await createPacket(service);
      const database = openDatabase<Record<string, never>>(url);
      const details = JSON.stringify({ text: 'x'.repeat(1_000_000) });
      await database.transaction(async (tx) => {
        for (let count = 0; count < 20; count += 1)
          await sql`insert into events (id, tenant, position, packet_id, event_type, actor, resource, details, timestamp, details_digest, digest)
            select ${`e${count}`}, tenant, cast(${count + 1000} as integer), packet_id, ${`large ${count}`}, actor, resource, ${details}, timestamp, details_digest, digest from events where event_type = 'created'`.execute(
            tx,
          );
      });
      const { id: busy } = await createPacket(service);
      await database.transaction((tx) =>
        sql`insert into events (id, tenant, position, packet_id, event_type, actor, resource, details, timestamp, details_digest, digest)
          select 'n' || number, tenant, 2000 + number, packet_id, 'small', actor, resource, '{}', timestamp, details_digest, digest
          from events cross join ${sql.raw(numbersTo(url, 10_005))} where packet_id = ${busy} order by number`.execute(tx),
      );
      await database.close();
      const many = (await service.call('GET', `/packets/${busy}/history`)).body.events;
      assert.deepEqual([many.length, many[0].event_type], [10_000, 'small']);
      const { status, body } = await service.call('GET', `/packets/${id}/history`);
      assert.equal(status, 200);
      assert.deepEqual(
        body.events.map(({ event_type }: { event_type: string }) => event_type),
        Array.from({ length: 16 }, (_, index) => `large ${index + 4}`),
      );
    });
  });
}
