import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, test } from 'node:test';

import { canonicalJson } from '../../../src/handoff/rules/canonical-json.ts';
import { happenings, historyOf, packetIn, question, unknownId } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const ask = (service: TestService, id: string, body: object, options: object = {}) =>
  service.call('POST', `/packets/${id}/questions`, { body, ...options });
const patch = (service: TestService, id: string, body: object, options: object = {}) =>
  service.call('PATCH', `/packets/${id}`, { body, ...options });
const respond = (service: TestService, id: string, more: object = {}) =>
  service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana', ...more } });
const claimed = async (service: TestService) => (await packetIn(service, 'claimed', { hitl: undefined })).id as string;
const get = async (service: TestService, id: string) => (await service.call('GET', `/packets/${id}`)).body;
const record = async (service: TestService, id: string, questionId: string) =>
  (await service.call('GET', `/packets/${id}/questions/${questionId}`)).body;
const statesOf = async (service: TestService, id: string) => {
  const { body } = await service.call('GET', `/packets/${id}/questions`);
  return body.questions.map(({ state, question: { question: text } }: { state: string; question: { question: string } }) => [state, text]);
};

const form = { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] };

for (const store of stores) {
  describe(`POST /packets/{id}/questions on ${store.name}`, () => {
    test('201 with the packet, which awaits the answer; required is true and reason empty unless given [H410, H411]', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      const asked = await ask(service, id, { question: 'Refund?' });
      assert.equal(asked.status, 201, asked.text);
      const { status, hitl, revision } = asked.body;
      assert.deepEqual([status, hitl.required, hitl.reason, hitl.question], ['awaiting_human', true, '', 'Refund?']);
      assert.deepEqual(asked.headers.etag, `"${revision}"`);
      assert.equal(asked.headers.location, `/api/v1/packets/${id}/questions/${hitl.question_id}`);
      const { state, shown, digest, answer, approvals, replaced_by } = await record(service, id, hitl.question_id);
      assert.deepEqual([state, digest, answer, approvals, replaced_by], ['open', hitl.digest, null, [], null]);
      assert.equal(hash('sha256', canonicalJson(shown)), digest);
      assert.deepEqual((await happenings(service, id)).at(-1), 'awaiting_human');
    });

    test('409 QUESTION_OPEN with the id of the open one, so that a second question never takes its answer', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      const first = await ask(service, id, { question: 'Refund 10 to Ann?' });
      const second = await ask(service, id, { question: 'Delete the account of Bob?' });
      assert.deepEqual([second.status, second.body.code], [409, 'QUESTION_OPEN']);
      assert.equal(second.body.question_id, first.body.hitl.question_id);
      assert.equal((await get(service, id)).hitl.question, 'Refund 10 to Ann?');
    });

    test('of many at once one is asked; with the same key all get the same question', async () => {
      const service = await shareService(store);
      const [one, other] = [await claimed(service), await claimed(service)];
      const at = await Promise.all(Array.from({ length: 10 }, (_, index) => ask(service, one, { question: `Question ${index}?` })));
      assert.deepEqual(at.map(({ status }) => status).toSorted(), [201, ...Array(9).fill(409)]);
      const same = await Promise.all(Array.from({ length: 10 }, () => ask(service, other, { question: 'Refund?', key: 'k' })));
      assert.deepEqual(same.map(({ status }) => status).toSorted(), [...Array(9).fill(200), 201]);
      assert.equal(new Set(same.map(({ body }) => body.hitl.question_id)).size, 1);
    });

    test('is refused as a PATCH to awaiting_human is: by status, lease token and If-Match; an Idempotency-Key repeats the answer', async () => {
      const service = await shareService(store);
      for (const status of ['completed', 'failed', 'expired'] as const) {
        const { id } = await packetIn(service, status);
        const refused = await ask(service, id, { question: 'Really?' });
        assert.deepEqual([refused.status, refused.body.field], [400, 'status'], status);
      }
      const { id } = await createPacket(service);
      const lease = await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver', lease_seconds: 60 } });
      assert.equal((await ask(service, id, { question: 'Really?' })).body.code, 'LEASE_LOST');
      const token = { 'x-lease-token': lease.body.lease.token };
      assert.equal((await ask(service, id, { question: 'Really?' }, { headers: { ...token, 'if-match': '"99"' } })).status, 412);
      const headers = { ...token, 'idempotency-key': `ask-${id}` };
      const asked = await ask(service, id, { question: 'Really?' }, { headers });
      assert.equal(asked.status, 201, asked.text);
      const again = await ask(service, id, { question: 'Really?' }, { headers });
      assert.deepEqual(
        [again.status, again.headers['idempotency-replayed'], again.headers.location],
        [201, 'true', asked.headers.location],
      );
      assert.equal((await ask(service, unknownId, { question: 'Really?' })).status, 404);
    });

    test('400 that names what is unsound, missing, unknown or set by the service', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      for (const [body, field] of [
        [{}, 'question'],
        [{ question: '' }, 'question'],
        [{ question: 'q?', options: [{ value: 1 }] }, 'options.0'],
        [{ question: 'q?', key: '' }, 'key'],
        [{ question: 'q?', key: 'k'.repeat(256) }, 'key'],
        [{ question: 'q?', timout_seconds: 1 }, 'timout_seconds'],
        [{ question: 'q?', response: 'Yes' }, 'response'],
        [{ question: 'q?', asked_by: { agent_id: 'cfo', agent_name: 'CFO' } }, 'asked_by'],
      ] as const) {
        const refused = await ask(service, id, body);
        assert.deepEqual([refused.status, refused.body.field], [400, field], JSON.stringify(body));
      }
      assert.equal((await get(service, id)).status, 'claimed');
      assert.equal((await ask(service, id, { question: 'q?', response: null, options: null })).status, 201);
    });
  });

  describe(`A question that was asked before, on ${store.name}`, () => {
    test('leaves nothing to the next one: no form, option, deadline, responder, key or answer', async () => {
      const service = await shareService(store);
      for (const again of [
        (id: string) => ask(service, id, { question: 'And the postage?' }),
        (id: string) => patch(service, id, { status: 'awaiting_human', hitl: { question: 'And the postage?' } }),
      ]) {
        const id = await claimed(service);
        const fields = { responder: 'mia', timeout_seconds: 60, remind_after_seconds: 30, on_timeout: 'fail', options: ['No'], key: 'k' };
        assert.equal((await ask(service, id, { question: 'Refund?', schema: form, ...fields })).status, 201);
        assert.equal((await respond(service, id, { data: { amount: 1 } })).status, 200);
        const { body, status } = await again(id);
        assert.ok(status < 300, body.detail);
        const { digest, question_id, asked_by, requested_at, ...rest } = body.hitl;
        const unanswered = { response: null, responded_by: null, responded_at: null, notes: null, expires_at: null };
        assert.deepEqual(rest, { required: true, reason: '', question: 'And the postage?', ...unanswered });
        assert.equal((await respond(service, id)).status, 200);
      }
    });

    test('is asked again without hitl, as a new one without an answer or a key [H21, H412]', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      const first = await ask(service, id, { question: 'Refund?', timeout_seconds: 60, key: 'k' });
      await respond(service, id);
      const again = await patch(service, id, { status: 'awaiting_human' });
      assert.equal(again.status, 200, again.text);
      const { question: text, timeout_seconds, question_id, response, key } = again.body.hitl;
      assert.deepEqual([text, timeout_seconds, response, key], ['Refund?', 60, null, undefined]);
      assert.notEqual(question_id, first.body.hitl.question_id);
    });

    test('never changes once it is answered: 409 ANSWERED; the packet may, and the answer keeps what was shown', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      const asked = (await ask(service, id, { question: 'Refund 10 EUR?' })).body;
      assert.equal((await respond(service, id, { digest: asked.hitl.digest })).status, 200);
      for (const hitl of [{ question: 'Refund 10,000 EUR and close the account?' }, { reason: 'x' }, { responder: 'mia' }, null]) {
        const refused = await patch(service, id, { hitl });
        assert.deepEqual([refused.status, refused.body.code], [409, 'ANSWERED'], JSON.stringify(hitl));
      }
      const { hitl } = await get(service, id);
      assert.deepEqual([hitl.question, hitl.response], ['Refund 10 EUR?', 'Yes']);
      const sentBack = await patch(service, id, { hitl, context: { summary: 'Refund 10,000 EUR.' } });
      assert.equal(sentBack.status, 200, sentBack.text);
      const kept = await record(service, id, hitl.question_id);
      assert.deepEqual([kept.state, kept.shown.question, kept.shown.summary], ['answered', 'Refund 10 EUR?', asked.context.summary]);
      assert.equal(hash('sha256', canonicalJson(kept.shown)), kept.digest);
      const { response, responded_by, answered_by, responded_at, notes } = hitl;
      assert.deepEqual(kept.answer, { response, responded_by, answered_by, responded_at, notes });
      assert.deepEqual(
        (await historyOf(service, id)).find(({ event_type }) => event_type === 'hitl_responded')!.details.question,
        'Refund 10 EUR?',
      );
    });

    test('what the service sets can be sent back, but not set: 400 with the field', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human', { hitl: { ...question, timeout_seconds: 60 } });
      const forged = await patch(service, id, { hitl: { asked_by: { agent_name: 'Chief Financial Officer' } } });
      assert.deepEqual([forged.status, forged.body.field], [400, 'hitl.asked_by']);
      const { hitl } = await get(service, id);
      assert.deepEqual((await patch(service, id, { hitl })).body.hitl, hitl);
      await respond(service, id);
      const answered = (await get(service, id)).hitl;
      const again = await patch(service, id, { status: 'awaiting_human', hitl: { ...answered, question: 'Really?' } });
      assert.deepEqual([again.status, again.body.hitl.response, again.body.hitl.question], [200, null, 'Really?']);
    });

    test('excludes its source from the next ones too, after an answer and a withdrawal, until another key lifts it [H197]', async () => {
      const service = await shareService(store);
      const { id: tenant_id } = await newTenant(service, { max_api_keys: 10 });
      // An admin makes them, so that they are no family.
      const keyOf = async (...scopes: string[]) =>
        (await service.call('POST', '/keys', { body: { name: 'k', scopes, tenant_id } })).body.key;
      const [asker, other, person] = [await keyOf('work'), await keyOf('work'), await keyOf('read', 'respond')];
      const { id } = await createPacket(service, { hitl: undefined }, asker);
      const as = (key: string) => ({ key });
      assert.equal((await ask(service, id, { question: 'One?', exclude_source: true }, as(asker))).status, 201);
      const body = { response: 'Yes', responded_by: 'dana' };
      assert.equal((await service.call('POST', `/packets/${id}/respond`, { key: person, body })).status, 200);
      // After an answer.
      for (const lifting of [{ exclude_source: false }, { required: false }])
        assert.equal((await ask(service, id, { question: 'Two?', ...lifting }, as(asker))).status, 403);
      const second = await ask(service, id, { question: 'Two?' }, as(asker));
      assert.deepEqual([second.status, second.body.hitl.exclude_source], [201, true]);
      for (const hitl of [{ question: 'Harmless?' }, { responder: 'mia' }])
        assert.equal((await patch(service, id, { hitl }, as(asker))).status, 403);
      assert.equal((await service.call('DELETE', `/packets/${id}/question`, as(asker))).status, 403);
      // After a withdrawal.
      const withdrawn = await service.call('DELETE', `/packets/${id}/question`, as(other));
      assert.deepEqual([withdrawn.status, withdrawn.body.hitl], [200, null]);
      assert.equal((await patch(service, id, { hitl: { ...question, exclude_source: false } }, as(asker))).status, 403);
      const draft = await patch(service, id, { hitl: { ...question, required: true } }, as(asker));
      assert.deepEqual([draft.status, draft.body.hitl.exclude_source], [200, true]);
      const lifted = await patch(service, id, { hitl: { exclude_source: false } }, as(other));
      assert.deepEqual([lifted.status, lifted.body.hitl.exclude_source], [200, false]);
      assert.equal((await patch(service, id, { hitl: null }, as(asker))).status, 200);
      const free = await ask(service, id, { question: 'Three?' }, as(asker));
      assert.deepEqual([free.status, free.body.hitl.exclude_source], [201, undefined]);
    });
  });

  describe(`hitl.key on ${store.name}`, () => {
    test('names the same question, open or answered, also after later ones; with other fields 409 KEY_CHANGED [H412]', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      const first = { question: 'Pay 100?', options: ['Yes', 'No'], key: 'pay' };
      const asked = await ask(service, id, first);
      const open = await ask(service, id, first);
      assert.deepEqual([open.status, open.headers.location], [200, asked.headers.location]);
      assert.equal((await ask(service, id, { ...first, question: 'Pay 200?' })).body.code, 'KEY_CHANGED');
      await respond(service, id);
      await ask(service, id, { question: 'And then?' });
      await respond(service, id, { response: 'No' });
      const { revision } = await get(service, id);
      const repeated = await ask(service, id, first);
      assert.deepEqual([repeated.status, repeated.headers.location, repeated.body.revision], [200, asked.headers.location, revision]);
      const changed = await ask(service, id, { ...first, question: 'Pay 200?' });
      assert.deepEqual([changed.status, changed.body.code, changed.body.question_id], [409, 'KEY_CHANGED', asked.body.hitl.question_id]);
      assert.deepEqual([changed.body.question.question, changed.body.answer.response], ['Pay 100?', 'Yes']);
      // The draft of a PATCH, too.
      const byPatch = await patch(service, id, { status: 'awaiting_human', hitl: { ...first, question: 'Pay 200?' } });
      assert.equal(byPatch.body.code, 'KEY_CHANGED');
      const same = await patch(service, id, { status: 'awaiting_human', hitl: first, context: { summary: 'Paid.' } });
      assert.deepEqual([same.status, same.body.status, same.body.context.summary], [200, 'claimed', 'Paid.']);
      assert.deepEqual(await statesOf(service, id), [
        ['answered', 'Pay 100?'],
        ['answered', 'And then?'],
      ]);
    });

    test('is free again once its question is withdrawn, timed out or ended with its packet [H411]', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      const first = { question: 'Pay?', key: 'pay', timeout_seconds: 60 };
      await ask(service, id, first);
      assert.equal((await service.call('DELETE', `/packets/${id}/question`)).status, 200);
      const second = await ask(service, id, { ...first, question: 'Pay 2?' });
      assert.equal(second.status, 201);
      service.clock.turn(60);
      const third = await ask(service, id, { ...first, question: 'Pay 3?' });
      assert.equal(third.status, 201, third.text);
      assert.equal((await respond(service, id)).status, 200);
      assert.deepEqual(await statesOf(service, id), [
        ['withdrawn', 'Pay?'],
        ['timed_out', 'Pay 2?'],
        ['answered', 'Pay 3?'],
      ]);
    });

    test('of an open question cannot change [H412]', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      await ask(service, id, { question: 'Pay?', key: 'pay' });
      const refused = await patch(service, id, { hitl: { key: 'other' } });
      assert.deepEqual([refused.status, refused.body.field], [400, 'hitl.key']);
    });
  });

  describe(`An open question that changes, on ${store.name}`, () => {
    test('is a new one when what is shown changes: the old digest is stale, the record names it, the deadline goes on [H413]', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      const first = (await ask(service, id, { question: 'Refund 10?', timeout_seconds: 60, remind_after_seconds: 30 })).body.hitl;
      service.clock.turn(10);
      const second = (await patch(service, id, { hitl: { question: 'Refund 20?' } })).body.hitl;
      const third = (await patch(service, id, { context: { summary: 'Another order.' } })).body.hitl;
      assert.deepEqual(
        [first.first_question_id, second.first_question_id, third.first_question_id],
        [undefined, first.question_id, first.question_id],
      );
      assert.equal(new Set([first, second, third].map(({ question_id }) => question_id)).size, 3);
      for (const { expires_at, remind_at, requested_at } of [second, third])
        assert.deepEqual([expires_at, remind_at, requested_at], [first.expires_at, first.remind_at, first.requested_at]);
      for (const { digest } of [first, second]) assert.equal((await respond(service, id, { digest })).body.code, 'STALE');
      assert.equal((await respond(service, id, { digest: third.digest })).status, 200);
      const records = (await service.call('GET', `/packets/${id}/questions`)).body.questions;
      assert.deepEqual(
        records.map(({ state, question_id, replaced_by, answer }: Record<string, unknown>) => [
          state,
          question_id,
          replaced_by,
          answer !== null,
        ]),
        [
          ['replaced', first.question_id, second.question_id, false],
          ['replaced', second.question_id, third.question_id, false],
          ['answered', third.question_id, null, true],
        ],
      );
    });

    test('and ends its packet at once leaves a record of both [H410, H413]', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      await ask(service, id, { question: 'Refund 10?' });
      const failed = await patch(service, id, { status: 'failed', hitl: { question: 'Refund 20?' } });
      assert.deepEqual([failed.status, failed.body.hitl.ended_at], [200, failed.body.updated_at]);
      assert.deepEqual(await statesOf(service, id), [
        ['replaced', 'Refund 10?'],
        ['ended', 'Refund 20?'],
      ]);
    });

    test('is led to by its old answer links while the same person is asked [H414]', async () => {
      const service = await shareService(store, { SERVICE_PUBLIC_URL: 'https://desk.example.com' });
      const id = await claimed(service);
      await ask(service, id, { question: 'Refund 10?', responder: 'dana' });
      const link = (await service.call('POST', `/packets/${id}/answer-links`, { body: { responder: 'dana' } })).body;
      const open = () => service.call('GET', `/${new URL(link.url).pathname}`, { key: null });
      assert.match((await open()).text, /Refund 10\?/);
      await patch(service, id, { hitl: { question: 'Refund 20?' } });
      const page = await open();
      assert.deepEqual([page.status, /Refund 20\?/.test(page.text), /Refund 10\?/.test(page.text)], [200, true, false]);
      await patch(service, id, { hitl: { question: 'Refund 30?', responder: 'mia' } });
      assert.equal((await open()).status, 410);
    });

    test('is listed with all others, page by page, and by no other tenant', async () => {
      const service = await shareService(store);
      const id = await claimed(service);
      for (const [text, end] of [
        ['One?', () => respond(service, id)],
        ['Two?', () => service.call('DELETE', `/packets/${id}/question`)],
        ['Three?', undefined],
      ] as const) {
        assert.equal((await ask(service, id, { question: text, timeout_seconds: 60 })).status, 201);
        await end?.();
      }
      const seen: unknown[] = [];
      let cursor = '';
      for (let page = 0; page < 4; page += 1) {
        const { body, status } = await service.call('GET', `/packets/${id}/questions?limit=1${cursor}`);
        assert.equal(status, 200);
        seen.push(...body.questions.map(({ state }: { state: string }) => state));
        if (body.next_cursor === null) break;
        cursor = `&cursor=${body.next_cursor}`;
      }
      assert.deepEqual(seen, ['answered', 'withdrawn', 'open']);
      service.clock.turn(60);
      assert.deepEqual((await statesOf(service, id)).at(-1), ['timed_out', 'Three?']);
      const other = await newTenant(service);
      const { question_id } = (await get(service, id)).hitl;
      for (const path of [`/packets/${id}/questions`, `/packets/${id}/questions/${question_id}`])
        assert.equal((await service.call('GET', path, { key: other.key })).status, 404);
      const packet = await createPacket(service);
      assert.equal((await service.call('GET', `/packets/${packet.id}/questions/${question_id}`)).status, 404);
      assert.deepEqual((await service.call('GET', `/packets/${packet.id}/questions`)).body, { questions: [], next_cursor: null });
      assert.equal((await service.call('GET', `/packets/${id}/questions?cursor=nope`)).status, 400);
    });
  });

  test(`A question that is refused counts nothing: not the day, not the agent's open packets; a dry run says so, on ${store.name}`, async () => {
    const service = await shareService(store, { SERVICE_OPEN_PACKETS_PER_AGENT: '2' });
    const { key } = await newTenant(service, { handoffs_per_day: 2 });
    const unsound = packetRequest({ hitl: { ...question, options: [{ value: 1 }] } });
    const batch = await service.call('POST', '/packets/batch', { key, body: { packets: [unsound, unsound, unsound, packetRequest()] } });
    assert.deepEqual([batch.status, batch.body.created.length, batch.body.errors.length], [201, 1, 3], batch.text);
    assert.equal(batch.body.errors[0].field, 'hitl.options.0');
    const tried = await service.call('POST', '/packets?dry_run=true', { key, body: unsound });
    assert.deepEqual([tried.body.ok, tried.body.errors[0].field], [false, 'hitl.options.0']);
    assert.equal((await service.call('POST', '/packets', { key, body: packetRequest() })).status, 201);
  });
}
