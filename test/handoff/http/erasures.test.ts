import assert from 'node:assert/strict';
import { hash, randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import type { ScheduleRequest } from '../../../src/handoff/model/schedule.ts';
import { canonicalJson } from '../../../src/handoff/rules/canonical-json.ts';
import { ChainCheck } from '../../../src/handoff/rules/chain-check.ts';
import { a2a, messageOf } from '../../support/a2a.ts';
import { bodies } from '../../support/bodies.ts';
import { claimant, historyOf, packetIn, question, unknownId } from '../../support/life.ts';
import { createPacket, packetRequest } from '../../support/service.ts';
import { type SharedService, shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const about = (...subjects: string[]) => ({ metadata: { ...createExample.metadata, subjects } });

async function erase(service: SharedService, body: object, key = service.key) {
  const asked = await service.call('POST', '/erasures', { body: { reason: 'Request', ...body }, key });
  assert.equal(asked.status, 202, asked.text);
  assert.equal(asked.body.status, 'queued');
  await service.handoff.runOnce.erase();
  const { status, body: done } = await service.call('GET', `/erasures/${asked.body.id}`, { key });
  assert.equal(status, 200);
  return { asked: asked.body, done };
}

const ids = ({ body }: { body: { packets: { id: string }[] } }) => body.packets.map(({ id }) => id);

for (const store of stores) {
  describe(`Subjects and erasures, on ${store.name}`, () => {
    test('packets are found by the people whose data they hold, on lists and in searches, and chained packets inherit them', async () => {
      const service = await shareService(store);
      const first = await createPacket(service, about('customer:4711', 'customer:1'));
      const [, other] = [await createPacket(service), await createPacket(service, about('customer:2'))];
      const chained = await service.call('POST', `/packets/${first.id}/chain`, { body: packetRequest() });
      const own = await service.call('POST', `/packets/${first.id}/chain`, { body: packetRequest(about('customer:2')) });
      assert.deepEqual(chained.body.metadata.subjects, ['customer:4711', 'customer:1']);
      assert.deepEqual(own.body.metadata.subjects, ['customer:2']);
      assert.deepEqual(ids(await service.call('GET', '/packets?subject=customer:4711')), [chained.body.id, first.id]);
      assert.deepEqual(
        ids(await service.call('GET', '/packets/search?q=refund&subject=customer:2')).toSorted(),
        [other.id, own.body.id].toSorted(),
      );
      const patched = await service.call('PATCH', `/packets/${other.id}`, { body: { metadata: { subjects: ['customer:3'] } } });
      assert.equal(patched.status, 200);
      assert.deepEqual(ids(await service.call('GET', '/packets?subject=customer:2')), [own.body.id]);
      assert.deepEqual(ids(await service.call('GET', '/packets?subject=customer:3')), [other.id]);
      const { headers } = await service.call('GET', '/packets?subject=customer:4711&limit=1');
      assert.ok(!JSON.stringify(headers).includes('4711'));
    });

    test('subjects come over A2A, and at most ten of at most 128 characters are taken', async () => {
      const service = await shareService(store);
      const sent = await a2a(
        service,
        'SendMessage',
        messageOf('Refund', { metadata: { subjects: ['customer:5'] } }, { returnImmediately: true }),
      );
      assert.deepEqual(ids(await service.call('GET', '/packets?subject=customer:5')), [sent.body.result.task.id]);
      for (const [subjects, field] of [
        [Array.from({ length: 11 }, (_, index) => `c${index}`), 'metadata.subjects'],
        [['a'.repeat(129)], 'metadata.subjects.0'],
        [[''], 'metadata.subjects.0'],
        [[7], 'metadata.subjects.0'],
      ] as const) {
        const refused = await service.call('POST', '/packets', {
          body: packetRequest({ metadata: { ...createExample.metadata, subjects } }),
        });
        assert.equal(refused.status, 400);
        assert.equal(refused.body.field, field);
      }
    });

    test('an erasure empties the packets of a person in every status, and its receipt is in the chain, which still holds [H603, H607]', async () => {
      const service = await shareService(store);
      const statuses = ['created', 'claimed', 'awaiting_human', 'completed', 'failed', 'expired'] as const;
      const packets = [];
      for (const status of statuses) packets.push(await packetIn(service, status, about('customer:4711')));
      const kept = await createPacket(service, about('customer:2'));
      const { asked, done } = await erase(service, { subject: 'customer:4711' });
      const subject_digest = hash('sha256', 'customer:4711');
      assert.deepEqual([asked.packets, asked.not_found, asked.subject_digest], [6, [], subject_digest]);
      assert.deepEqual([done.status, done.packets, done.delivered, done.backups_before], ['done', 6, [], done.done_at]);
      assert.equal(done.stores.packets.count, 6);
      assert.equal(done.stores.contents.count, 6);
      assert.ok(done.stores.events.count > 6);
      assert.ok(done.stores.questions.count === 0 && done.stores.packet_subjects.count === 6);

      for (const [index, { id, revision, created_at }] of packets.entries()) {
        const { status, body, text } = await service.call('GET', `/packets/${id}`);
        assert.equal(status, 200);
        const expected = statuses[index] === 'completed' || statuses[index] === 'failed' ? statuses[index] : 'expired';
        assert.deepEqual(
          [body.status, body.erased, body.erased_at, body.revision, body.created_at, body.hitl, body.lease],
          [expected, true, service.clock.read().toISOString(), revision + 1, created_at, null, null],
        );
        assert.equal(body.metadata.source_agent.id, 'frontline');
        assert.ok(!/charged|Refund|customer|Front/.test(text), text);
        const history = await historyOf(service, id);
        assert.deepEqual(history.at(-1)!.details, { erasure_id: done.id });
        assert.equal(history.at(-1)!.event_type, 'erased');
        assert.ok(history.slice(0, -1).every(({ details }) => Object.keys(details).length === 0));
      }
      assert.equal((await service.call('GET', `/packets/${kept.id}`)).body.erased, undefined);
      assert.deepEqual(ids(await service.call('GET', '/packets?subject=customer:4711')), []);
      assert.deepEqual(ids(await service.call('GET', '/packets/search?q=refund')), [kept.id]);

      const { body: log } = await service.call('GET', '/audit?action=erased&limit=1');
      const [{ resource, details }] = log.entries;
      assert.deepEqual(
        [resource, details],
        ['erasure', { erasure_id: done.id, packets: 6, receipt_digest: hash('sha256', canonicalJson(done)) }],
      );
      const check = new ChainCheck();
      for (const line of (await service.call('GET', '/audit/export')).text.trimEnd().split('\n')) check.take(JSON.parse(line));
      assert.ok(check.summary().entries > 20);
    });

    test('410: an erased packet takes no claim, change, answer, question, chained packet or link, and no repeat makes it anew [H604]', async () => {
      const service = await shareService(store);
      const headers = { 'idempotency-key': 'create once' };
      const body = packetRequest({ hitl: question });
      const { id } = (await service.call('POST', '/packets', { body, headers })).body;
      await service.call('POST', `/packets/${id}/claim`, { body: { ...claimant, lease_seconds: 60 } });
      const { done } = await erase(service, { packet_ids: [id.toUpperCase(), unknownId, 'none'] });
      assert.deepEqual([done.packets, done.not_found, done.subject_digest], [1, [unknownId, 'none'], null]);
      const again = await service.call('POST', '/packets', { body, headers });
      assert.equal(again.status, 410);
      assert.equal(again.body.code, 'GONE');
      for (const [method, path, sent] of [
        ['POST', '/claim', claimant],
        ['PATCH', '', { context: { summary: 'New words' } }],
        ['POST', '/respond', { response: 'Yes', responded_by: 'dana' }],
        ['POST', '/questions', { question: 'Really?' }],
        ['POST', '/chain', packetRequest()],
        ['POST', '/release', undefined],
        ['POST', '/answer-links', {}],
        ['POST', '/execution', { arguments_digest: '0'.repeat(64) }],
        ['DELETE', '', undefined],
      ] as const) {
        const answer = await service.call(method, `/packets/${id}${path}`, sent === undefined ? {} : { body: sent });
        assert.equal(answer.status, 410, `${method} ${path}: ${answer.text}`);
      }
      const task = await a2a(service, 'GetTask', { id });
      assert.equal(task.body.result.status.state, 'TASK_STATE_CANCELED');
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      assert.equal((await service.call('GET', `/packets/${id}`)).status, 404);
    });

    test('an erasure needs an admin key or the scope erase, which no key has unless it is named [H606]', async () => {
      const service = await shareService(store);
      const make = (body: object, key = service.key) => service.call('POST', '/keys', { body: { name: 'one', ...body }, key });
      const { body: all } = await make({});
      assert.deepEqual(all.scopes, ['read', 'work', 'respond', 'manage']);
      const { body: eraser } = await make({ scopes: ['erase'] });
      const body = { subject: 'customer:9', reason: 'Request' };
      const refused = await service.call('POST', '/erasures', { body, key: all.key });
      assert.equal(refused.status, 403);
      assert.match(refused.body.detail, /scope erase; this key has read, work, respond, manage/);
      assert.equal((await make({ scopes: ['erase'] }, all.key)).status, 403);
      const asked = await service.call('POST', '/erasures', { body, key: eraser.key });
      assert.equal(asked.status, 202);
      assert.equal((await service.call('GET', `/erasures/${asked.body.id}`, { key: eraser.key })).body.requested_by, `key:${eraser.id}`);
      const { body: list } = await service.call('GET', '/erasures', { key: eraser.key });
      assert.deepEqual([list.total, list.erasures[0].id, list.next_cursor], [1, asked.body.id, null]);
      const other = await shareService(store);
      assert.equal((await other.call('GET', `/erasures/${asked.body.id}`)).status, 404);
      assert.equal((await other.call('GET', '/erasures')).body.total, 0);
      const { body: maker } = await make({ scopes: ['manage', 'erase'] });
      assert.deepEqual((await make({}, maker.key)).body.scopes, ['manage']);
    });

    test('400: an erasure names a person or packets, and a reason', async () => {
      const service = await shareService(store);
      for (const [body, field] of [
        [{ reason: 'Request' }, 'subject'],
        [{ reason: 'Request', subject: 'a', packet_ids: [unknownId] }, 'packet_ids'],
        [{ reason: 'Request', packet_ids: [] }, 'packet_ids'],
        [{ reason: 'Request', packet_ids: Array.from({ length: 1001 }, () => unknownId) }, 'packet_ids'],
        [{ subject: 'a' }, 'reason'],
      ] as const) {
        const refused = await service.call('POST', '/erasures', { body });
        assert.equal(refused.status, 400, JSON.stringify(body).slice(0, 80));
        assert.equal(refused.body.field, field);
      }
      assert.equal((await service.call('GET', '/erasures?cursor=x')).status, 400);
    });

    test('409: a person is not erased while a schedule makes packets about the person [H613]', async () => {
      const service = await shareService(store);
      const { packet, ...schedule } = bodies.putSchedule as unknown as ScheduleRequest;
      const put = (name: string, subjects: string[], more = {}) => {
        const named = { ...packet, metadata: { ...packet.metadata, subjects } };
        return service.call('PUT', `/schedules/${name}`, { body: { ...schedule, ...more, packet: named } });
      };
      for (const [name, subjects] of [
        ['call', ['customer:1', 'customer:2']],
        ['off', ['customer:1']],
        ['other', ['customer:2']],
      ] as const)
        assert.equal((await put(name, [...subjects], { active: name !== 'off' })).status, 201);
      const body = { subject: 'customer:1', reason: 'Request' };
      // Also for a key that does not see the schedules.
      const own = { name: 'own', scopes: ['read', 'erase'], sees: 'own', agents: ['nobody'] };
      const { body: made } = await service.call('POST', '/keys', { body: own });
      for (const key of [service.key, made.key]) {
        const refused = await service.call('POST', '/erasures', { body, key });
        assert.deepEqual([refused.status, refused.body.code], [409, 'CONFLICT']);
        assert.match(refused.body.detail, /^Schedules make packets about this person: call, off\. Remove them/);
      }
      assert.equal((await service.call('GET', '/erasures')).body.total, 0);
      assert.equal((await service.call('DELETE', '/schedules/off')).status, 204);
      assert.equal((await put('call', ['customer:2'])).status, 200);
      await erase(service, { subject: 'customer:1' });
      for (const name of ['call', 'other']) await service.call('DELETE', `/schedules/${name}`);
    });

    test('many packets are erased in steps, with those that come meanwhile, and a list of erasures is read page by page [H605]', async () => {
      const service = await shareService(store);
      const subject = randomUUID();
      await Promise.all(Array.from({ length: 45 }, () => createPacket(service, about(subject))));
      const { body: asked } = await service.call('POST', '/erasures', { body: { subject, reason: 'Request' } });
      assert.equal(asked.packets, 45);
      await createPacket(service, about(subject));
      await service.handoff.runOnce.erase();
      const { body: done } = await service.call('GET', `/erasures/${asked.id}`);
      assert.deepEqual([done.status, done.packets, done.stores.packets.count], ['done', 46, 46]);
      for (let index = 0; index < 3; index += 1) await service.call('POST', '/erasures', { body: { subject: 'a', reason: 'Request' } });
      const first = await service.call('GET', '/erasures?limit=3');
      assert.deepEqual([first.body.erasures.length, first.body.total], [3, 4]);
      const rest = await service.call('GET', `/erasures?limit=3&cursor=${encodeURIComponent(first.body.next_cursor)}`);
      assert.deepEqual([rest.body.erasures.map(({ id }: { id: string }) => id), rest.body.next_cursor], [[done.id], null]);
    });

    test('packets are erased some days after they ended, by tenant, with one entry for each round [H608]', async () => {
      const service = await shareService(store);
      const ended = await packetIn(service, 'completed');
      const open = await createPacket(service);
      const day = 86_400;
      const turn = async (days: number) => {
        service.clock.turn(days * day);
        await service.handoff.runOnce.erase();
      };
      const isErased = async ({ id }: { id: string }) => (await service.call('GET', `/packets/${id}`)).body.erased === true;
      await turn(400);
      assert.equal(await isErased(ended), false);
      const { body: own } = await service.call('GET', '/keys/self');
      const patched = await service.call('PATCH', `/tenants/${own.tenant.id}`, { body: { retention_days: 500 } });
      assert.equal(patched.status, 200);
      assert.equal(patched.body.retention_days, 500);
      await turn(99);
      assert.equal(await isErased(ended), false);
      await turn(2);
      assert.deepEqual([await isErased(ended), await isErased(open)], [true, false]);
      const { body: log } = await service.call('GET', '/audit?action=erased');
      assert.deepEqual(
        log.entries.map(({ resource, actor, details }: never) => [resource, actor, details]),
        [
          [
            'retention',
            'system:retention',
            { packets: 1, ended_before: new Date(service.clock.read().getTime() - 500 * day * 1000).toISOString() },
          ],
        ],
      );
      await service.call('PATCH', `/tenants/${own.tenant.id}`, { body: { retention_days: 0 } });
    });
  });
}
