import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { happenings, historyOf, packetIn, question } from '../../support/life.ts';
import { startMailServer } from '../../support/mail.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import type { TestStore } from '../../support/store.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';
import { listenTo } from '../../support/streams.ts';
import { until } from '../../support/until.ts';
import { register, shareHooked, startHooked } from '../../support/webhooks.ts';

const mailServer = await startMailServer({ after });
const settings = {
  SERVICE_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
  SERVICE_MAIL_FROM: 'Baton <baton@example.com>',
  SERVICE_PUBLIC_URL: 'https://baton.example.com/',
};

let people = 0;
/** A mail address that no other test uses. */
const person = () => {
  people += 1;
  return `person-${people}@example.com`;
};
const mailsTo = (address: string) => mailServer.mails.filter(({ to }) => to.includes(address));

const share = (t: Parameters<typeof shareHooked>[0], store: TestStore) => shareHooked(t, store, settings);

// biome-ignore lint/suspicious/noExplicitAny: a test looks into channels of every shape.
async function channelTo(service: TestService, target: string, more: object = {}): Promise<any> {
  const answer = await service.call('POST', '/channels', { body: { kind: 'email', target, ...more } });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into deliveries of every shape.
async function deliveriesTo(service: TestService, id: string): Promise<any[]> {
  const answer = await service.call('GET', `/channels/${id}/deliveries`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

const linkIn = (text: string | undefined): string => /https:\/\/baton\.example\.com\/answer\/[0-9a-f]{96}/.exec(text ?? '')?.[0] ?? '';

/** Sends the form of the page at an address. */
async function answerAt(service: TestService, url: string, fields: Record<string, string>) {
  const path = `/${new URL(url).pathname}`;
  const page = await service.call('GET', path, { key: null });
  const digest = /name="digest" value="([0-9a-f]{64})"/.exec(page.text)?.[1] ?? '';
  return service.call('POST', path, {
    key: null,
    raw: new URLSearchParams({ digest, ...fields }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
  });
}

for (const store of stores) {
  describe(`Channels on ${store.name}`, () => {
    test('201 with the channel, which sends questions and reminders by default; listed, changed and removed', async (t) => {
      const service = await share(t, store);
      const made = await service.call('POST', '/channels', { body: { kind: 'email', target: 'dana@example.com', name: 'Dana' } });
      assert.equal(made.status, 201);
      const { id, created_at, warnings, ...rest } = made.body;
      assert.match(warnings.join(), /typed name, which is not verified/);
      const active = { links: true, active: true, disabled_reason: null };
      const shown = { kind: 'email', target: 'dana@example.com', name: 'Dana', events: ['asked', 'reminded'], responder: null, ...active };
      assert.deepEqual(rest, shown);
      assert.deepEqual((await service.call('GET', '/channels')).body, [made.body]);
      const body = { target: 'lee@example.com', name: null, events: ['answered', 'answered'], responder: 'lee' };
      const changed = await service.call('PATCH', `/channels/${id}`, { body });
      assert.equal(changed.status, 200);
      assert.deepEqual(changed.body, { id, created_at, ...rest, ...body, events: ['answered'] });
      assert.equal((await service.call('DELETE', `/channels/${id}`)).status, 204);
      assert.deepEqual((await service.call('GET', '/channels')).body, []);
      assert.equal((await service.call('DELETE', `/channels/${id}`)).status, 404);
      const audit = await service.call('GET', '/audit');
      const actions = audit.body.entries.filter(({ resource }: { resource: string }) => resource === 'channel');
      assert.deepEqual(
        actions.map(({ action, details }: { action: string; details: { channel_id: string } }) => [action, details.channel_id]),
        ['deleted', 'updated', 'created'].map((action) => [action, id]),
      );
    });

    test('the URL of Slack is a secret: lists, audit log and logs show no more than its origin and its end [H181]', async (t) => {
      const service = await share(t, store);
      const receiver = await startReceiver(t, 200);
      const target = receiver.url.replace('/hook', '/services/T000/B000/secretpath9Qz');
      const { id, target: shown } = await channelTo(service, target, { kind: 'slack' });
      assert.equal(shown, `${new URL(target).origin}/...h9Qz`);
      await packetIn(service, 'awaiting_human');
      await service.handoff.runOnce.deliver();
      await receiver.received(1);
      const texts = [
        (await service.call('GET', '/channels')).text,
        (await service.call('GET', `/channels/${id}/deliveries`)).text,
        (await service.call('GET', '/audit')).text,
        service.logs.join(''),
      ];
      for (const text of texts) assert.ok(!text.includes('secretpat'), text);
    });

    test('a channel is unknown as a webhook, and a webhook as a channel', async (t) => {
      const service = await share(t, store);
      const { id } = await channelTo(service, person());
      const { id: hook } = await register(service, 'http://127.0.0.1:9/hook');
      for (const [method, path, body] of [
        ['PATCH', `/channels/${hook}`, { name: 'x' }],
        ['PATCH', `/channels/${hook}`, { target: 'x@example.com' }],
        ['POST', `/channels/${hook}/test`],
        ['GET', `/channels/${hook}/deliveries`],
        ['DELETE', `/channels/${hook}`],
        ['PATCH', `/hooks/${id}`, { active: true }],
        ['DELETE', `/hooks/${id}`],
        ['POST', `/hooks/${id}/ping`],
        ['GET', `/hooks/${id}/deliveries`],
        ['GET', `/hooks/dlq?webhook_id=${id}`],
      ] as const)
        assert.equal((await service.call(method, path, { body })).status, 404, `${method} ${path}`);
      assert.deepEqual(
        (await service.call('GET', '/hooks')).body.map((one: { id: string }) => one.id),
        [hook],
      );
      assert.equal((await service.call('GET', '/channels')).body.length, 1);
    });

    test('a tenant has at most 20 channels, and an Idempotency-Key repeats the answer [H181]', async (t) => {
      const service = await share(t, store);
      const headers = { 'idempotency-key': 'one' };
      const create = () => service.call('POST', '/channels', { body: { kind: 'email', target: 'dana@example.com' }, headers });
      const [first, again] = [await create(), await create()];
      assert.equal(again.status, 201);
      assert.deepEqual(again.body, first.body);
      assert.equal(again.headers['idempotency-replayed'], 'true');
      for (let count = 1; count < 20; count += 1) await channelTo(service, person());
      const surplus = await service.call('POST', '/channels', { body: { kind: 'email', target: 'dana@example.com' } });
      assert.equal(surplus.status, 409);
      assert.match(surplus.body.detail, /20 channels/);
    });

    test('a mail has the question, the summary, the time left and a link on which the person answers', async (t) => {
      const service = await share(t, store);
      const address = person();
      const { id: channel } = await channelTo(service, address);
      const { id } = await packetIn(service, 'awaiting_human', {
        hitl: { ...question, options: ['Approve', 'Refuse'], timeout_seconds: 7200 },
      });
      await service.handoff.runOnce.deliver();
      const [received] = mailsTo(address);
      assert.ok(received);
      const { subject, text = '', html = '', from, headers, messageId } = received.mail;
      assert.equal(subject, 'Question: Refund 59.90?');
      assert.equal(from?.address, 'baton@example.com');
      assert.deepEqual([received.from, received.to], ['baton@example.com', [address]]);
      const [delivery] = await deliveriesTo(service, channel);
      assert.equal(messageId, `<${delivery.id}@example.com>`);
      assert.equal(headers.find(({ key }) => key === 'auto-submitted')?.value, 'auto-generated');
      for (const part of [text, html])
        for (const told of [
          'Frontline agent',
          'Refund 59.90?',
          'Refunds over 50 need approval',
          'Approve',
          'charged twice',
          'Time left: 2 hours.',
        ])
          assert.ok(part.includes(told), `${told} in ${part}`);
      const link = linkIn(text);
      assert.equal(linkIn(html), link);
      assert.deepEqual(
        [delivery.status, delivery.last_status_code, delivery.event_type, delivery.packet_id],
        ['delivered', 250, 'asked', id],
      );
      const answer = await answerAt(service, link, { option: '0', name: 'Dana' });
      assert.equal(answer.status, 200, answer.text);
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.deepEqual([body.status, body.hitl.response, body.hitl.responded_by], ['claimed', 'Approve', 'Dana']);
      const made = (await historyOf(service, id)).find(({ event_type }) => event_type === 'answer_link_created');
      assert.equal(made?.actor, 'system:deliverer');
      assert.equal(made?.details.channel_id, channel);
    });

    test('what is stored of a message has no link: it is made when it is sent [H179]', async (t) => {
      const service = await share(t, store);
      await channelTo(service, person());
      const { id } = await packetIn(service, 'awaiting_human');
      assert.equal((await service.call('GET', `/packets/${id}/answer-links`)).body.length, 0);
      await service.handoff.runOnce.deliver();
      assert.equal((await service.call('GET', `/packets/${id}/answer-links`)).body.length, 1);
    });

    test("a channel with a responder gets that person's questions only, and its links answer in that name [H179]", async (t) => {
      const service = await share(t, store);
      const [dana, all] = [person(), person()];
      await channelTo(service, dana, { responder: 'dana' });
      await channelTo(service, all);
      await packetIn(service, 'awaiting_human', { hitl: { ...question, responder: 'lee' } });
      await packetIn(service, 'awaiting_human');
      // A receiver that has not answered yet gets few deliveries in a round.
      await service.handoff.runOnce.deliver();
      const { id } = await packetIn(service, 'awaiting_human', { hitl: { ...question, responder: 'dana' } });
      await service.handoff.runOnce.deliver();
      assert.deepEqual([mailsTo(dana).length, mailsTo(all).length], [1, 3]);
      const answer = await answerAt(service, linkIn(mailsTo(dana)[0]!.mail.text), { response: 'Yes', name: 'somebody else' });
      assert.equal(answer.status, 200, answer.text);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.hitl.responded_by, 'dana');
    });

    test('a question that is given to somebody else while it is open is sent to that person [H179]', async (t) => {
      const service = await share(t, store);
      const [dana, lee] = [person(), person()];
      await channelTo(service, dana, { responder: 'dana' });
      await channelTo(service, lee, { responder: 'lee' });
      const { id } = await packetIn(service, 'awaiting_human', { hitl: { ...question, responder: 'dana' } });
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { hitl: { responder: 'lee' } } })).status, 200);
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'More.' } } })).status, 200);
      await service.handoff.runOnce.deliver();
      assert.deepEqual([mailsTo(dana).length, mailsTo(lee).length], [1, 1]);
    });

    test('sends the answer if its events include it, without a link [H179]', async (t) => {
      const service = await share(t, store);
      const address = person();
      await channelTo(service, address, { events: ['answered'] });
      const { id } = await packetIn(service, 'awaiting_human');
      await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Go ahead', responded_by: 'Dana', notes: 'Loyal' } });
      await service.handoff.runOnce.deliver();
      const mails = mailsTo(address);
      assert.equal(mails.length, 1);
      assert.equal(mails[0]!.mail.subject, 'Answered: Refund 59.90?');
      for (const told of ['Answer from Dana', 'Go ahead', 'Loyal']) assert.ok(mails[0]!.mail.text?.includes(told));
      assert.equal(linkIn(mails[0]!.raw.replaceAll('=\r\n', '')), '');
    });

    test('a question that is answered or withdrawn before its message is sent causes no message: the delivery is cancelled [H179]', async (t) => {
      const service = await share(t, store);
      const address = person();
      const { id: channel } = await channelTo(service, address);
      const answered = await packetIn(service, 'awaiting_human');
      await service.call('POST', `/packets/${answered.id}/respond`, { body: { response: 'Yes', responded_by: 'Dana' } });
      const withdrawn = await packetIn(service, 'awaiting_human');
      await service.call('DELETE', `/packets/${withdrawn.id}/question`);
      const removed = await packetIn(service, 'awaiting_human');
      await service.call('DELETE', `/packets/${removed.id}?hard=true`);
      await service.handoff.runOnce.deliver();
      assert.equal(mailsTo(address).length, 0);
      assert.deepEqual(
        (await deliveriesTo(service, channel)).map(({ status, attempts }) => [status, attempts]),
        [
          ['cancelled', 0],
          ['cancelled', 0],
        ],
      );
    });

    test('a removed channel gets nothing more, and the links that it was sent end [H179]', async (t) => {
      const service = await share(t, store);
      const address = person();
      const { id: channel } = await channelTo(service, address);
      await packetIn(service, 'awaiting_human');
      await service.handoff.runOnce.deliver();
      const link = `/${new URL(linkIn(mailsTo(address)[0]!.mail.text)).pathname}`;
      assert.equal((await service.call('GET', link, { key: null })).status, 200);
      await packetIn(service, 'awaiting_human');
      await service.call('DELETE', `/channels/${channel}`);
      await service.handoff.runOnce.deliver();
      assert.equal(mailsTo(address).length, 1);
      assert.equal((await service.call('GET', link, { key: null })).status, 404);
      assert.deepEqual(
        (await deliveriesTo(service, channel)).map(({ status }) => status),
        ['cancelled', 'delivered'],
      );
    });

    test('links of a channel end with the key that set it up, and its next messages have none [H179]', async (t) => {
      const service = await share(t, store);
      const address = person();
      const { body: second } = await service.call('POST', '/keys', { body: { name: 'operator' } });
      await service.call('POST', '/channels', { body: { kind: 'email', target: address }, key: second.key });
      await packetIn(service, 'awaiting_human');
      await service.handoff.runOnce.deliver();
      const link = `/${new URL(linkIn(mailsTo(address)[0]!.mail.text)).pathname}`;
      assert.equal((await service.call('GET', link, { key: null })).status, 200);
      await service.call('DELETE', `/keys/${second.id}`);
      assert.equal((await service.call('GET', link, { key: null })).status, 404);
      await packetIn(service, 'awaiting_human');
      await service.handoff.runOnce.deliver();
      const { text } = mailsTo(address)[1]!.mail;
      assert.doesNotMatch(text!, /answer\/[0-9a-f]{64}/);
      assert.match(text!, /This channel has no answer links/);
    });

    test('a key without the scope respond makes channels without links; one with a responder only channels for that person', async (t) => {
      const service = await share(t, store);
      const address = person();
      const keyWith = async (rights: object) => (await service.call('POST', '/keys', { body: { name: 'restricted', ...rights } })).body.key;
      const manager = await keyWith({ scopes: ['manage'] });
      const made = await service.call('POST', '/channels', { body: { kind: 'email', target: address }, key: manager });
      assert.equal(made.status, 201);
      assert.equal(made.body.links, false);
      const own = await service.call('POST', '/channels', { body: { kind: 'email', target: person() } });
      assert.equal(own.body.links, true);
      // Whoever redirects the messages answers by their links.
      const redirected = await service.call('PATCH', `/channels/${own.body.id}`, { body: { target: address }, key: manager });
      assert.equal(redirected.body.links, false);
      await packetIn(service, 'awaiting_human');
      await service.handoff.runOnce.deliver();
      assert.equal(mailsTo(address).length, 2);
      for (const { mail } of mailsTo(address)) assert.doesNotMatch(mail.text!, /answer\/[0-9a-f]{64}/);

      const bound = await keyWith({ scopes: ['manage', 'respond'], responder: 'dana' });
      const call = (method: string, path: string, body: object) => service.call(method, path, { body, key: bound });
      const forMia = await call('POST', '/channels', { kind: 'email', target: person(), responder: 'mia' });
      assert.equal(forMia.status, 403, forMia.text);
      assert.equal(forMia.body.field, 'responder');
      const forDana = await call('POST', '/channels', { kind: 'email', target: person() });
      assert.deepEqual([forDana.status, forDana.body.responder], [201, 'dana']);
      for (const responder of ['mia', null]) assert.equal((await call('PATCH', `/channels/${forDana.body.id}`, { responder })).status, 403);
      assert.equal((await call('PATCH', `/channels/${own.body.id}`, { target: person() })).status, 403);
      assert.equal((await call('PATCH', `/channels/${own.body.id}`, { name: 'Renamed' })).status, 200);
    });

    test('an address that the mail server refuses for good is a dead letter at once, and can be replayed; others are retried [H183]', async (t) => {
      const service = await share(t, store);
      const [gone, busy] = [person(), person()];
      const [first, second] = [await channelTo(service, gone), await channelTo(service, busy)];
      mailServer.refused.set(gone, 550).set(busy, 451);
      await packetIn(service, 'awaiting_human');
      await service.handoff.runOnce.deliver();
      const [dead] = await deliveriesTo(service, first.id);
      assert.deepEqual([dead.status, dead.attempts, dead.last_error, dead.last_status_code], ['dead_letter', 1, 'smtp_status', 550]);
      const [failed] = await deliveriesTo(service, second.id);
      assert.deepEqual([failed.status, failed.last_error, failed.last_status_code], ['failed', 'smtp_status', 451]);
      mailServer.refused.clear();
      const replayed = await service.call('POST', `/channels/${first.id}/deliveries/${dead.id}/replay`);
      assert.equal(replayed.status, 202);
      assert.equal(replayed.body.channel_id, first.id);
      assert.equal((await service.call('POST', `/hooks/dlq/${dead.id}/replay`)).status, 404);
      service.clock.turn(3);
      await service.handoff.runOnce.deliver();
      assert.deepEqual([mailsTo(gone).length, mailsTo(busy).length], [1, 1]);
    });

    test('a test message arrives without a question', async (t) => {
      const service = await share(t, store);
      const address = person();
      const { id } = await channelTo(service, address);
      const sent = await service.call('POST', `/channels/${id}/test`);
      assert.equal(sent.status, 202);
      assert.deepEqual([sent.body.channel_id, sent.body.event_type, sent.body.status], [id, 'test', 'pending']);
      await service.handoff.runOnce.deliver();
      assert.match(mailsTo(address)[0]!.mail.subject ?? '', /test message/);
      await service.call('PATCH', `/channels/${id}`, { body: { active: false } });
      assert.equal((await service.call('POST', `/channels/${id}/test`)).status, 409);
    });

    test('GET /packets/awaiting says unnotified: true while no active channel sends questions [H186]', async (t) => {
      const service = await share(t, store);
      const notifiesNobody = async () => (await service.call('GET', '/packets/awaiting')).body.unnotified;
      assert.equal(await notifiesNobody(), true);
      const { id } = await channelTo(service, person(), { events: ['answered'] });
      assert.equal(await notifiesNobody(), true);
      await service.call('PATCH', `/channels/${id}`, { body: { events: ['asked'] } });
      assert.equal(await notifiesNobody(), undefined);
      await service.call('PATCH', `/channels/${id}`, { body: { active: false } });
      assert.equal(await notifiesNobody(), true);
      await service.call('PATCH', `/channels/${id}`, { body: { active: true } });
      await service.call('DELETE', `/channels/${id}`);
      assert.equal(await notifiesNobody(), true);
    });
  });

  describe(`Reminders on ${store.name}`, () => {
    const later = { ...question, remind_after_seconds: 60 };
    const sweep = (service: TestService) => service.handoff.runOnce.sweep();

    test('one reminder while the question is open: in the history, on streams and to the channels [H185]', async (t) => {
      const service = await share(t, store);
      const address = person();
      const channel = await channelTo(service, address, { events: ['reminded'] });
      const { id, hitl, revision } = await packetIn(service, 'awaiting_human', { hitl: later });
      const stream = await listenTo(t, await service.listen(), `?subscribe=packet:${id}`, { 'x-api-key': service.key });
      assert.equal(hitl.remind_at, '2026-03-01T09:31:00.000Z');
      service.clock.turn(59);
      await sweep(service);
      assert.ok(!(await happenings(service, id)).includes('hitl_reminded'));
      service.clock.turn(1);
      for (let round = 0; round < 3; round += 1) {
        await sweep(service);
        // The service's own job may send it, too. Its lease must not end before, nor may the question be answered.
        await until(async () => {
          await service.handoff.runOnce.deliver();
          return (await deliveriesTo(service, channel.id))[0]?.status === 'delivered';
        });
        service.clock.turn(60);
      }
      const reminders = (await historyOf(service, id)).filter(({ event_type }) => event_type === 'hitl_reminded');
      assert.deepEqual(
        reminders.map(({ actor, details }) => [actor, details]),
        [['system:sweeper', { question_id: hitl.question_id, responder: null }]],
      );
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.deepEqual([body.status, body.revision, body.hitl.remind_at], ['awaiting_human', revision + 1, null]);
      assert.deepEqual(
        mailsTo(address).map(({ mail }) => mail.subject),
        ['Reminder: Refund 59.90?'],
      );
      await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'Dana' } });
      const [reminder, next] = await stream.events.take(2);
      assert.deepEqual([reminder!.event, next!.event], ['hitl.reminder', 'hitl.response_ready']);
      assert.deepEqual(
        [reminder!.data.type, reminder!.data.packet_id, reminder!.data.data.hitl.question, reminder!.data.data.hitl.remind_at],
        ['hitl.reminder', id, hitl.question, null],
      );
    });

    test('without a channel the history has it all the same [H185]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human', { hitl: later });
      service.clock.turn(60);
      await sweep(service);
      assert.equal((await happenings(service, id)).at(-1), 'hitl_reminded');
    });

    test('none after an answer, a withdrawal or the end of the time to answer; a new question is reminded of again [H185]', async () => {
      const service = await shareService(store);
      const over = await packetIn(service, 'awaiting_human', { hitl: { ...later, timeout_seconds: 30 } });
      const answered = await packetIn(service, 'awaiting_human', { hitl: later });
      await service.call('POST', `/packets/${answered.id}/respond`, { body: { response: 'Yes', responded_by: 'Dana' } });
      const withdrawn = await packetIn(service, 'awaiting_human', { hitl: later });
      await service.call('DELETE', `/packets/${withdrawn.id}/question`);
      service.clock.turn(60);
      await sweep(service);
      for (const { id } of [over, answered, withdrawn]) assert.ok(!(await happenings(service, id)).includes('hitl_reminded'));
      assert.equal((await service.call('GET', `/packets/${over.id}`)).body.hitl.remind_at, null);
      await service.call('PATCH', `/packets/${answered.id}`, { body: { status: 'awaiting_human', hitl: later } });
      service.clock.turn(60);
      await sweep(service);
      assert.equal((await happenings(service, answered.id)).at(-1), 'hitl_reminded');
    });

    test('comes before a timeout that is later, and the timeout still comes', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human', { hitl: { ...later, timeout_seconds: 120, on_timeout: 'fail' } });
      for (let round = 0; round < 2; round += 1) {
        service.clock.turn(60);
        await sweep(service);
      }
      assert.deepEqual((await happenings(service, id)).slice(-3), ['hitl_reminded', 'hitl_timed_out', 'failed']);
    });

    test('an update of the open question can move it, but not repeat it; nobody else sets its time [H185]', async () => {
      const service = await shareService(store);
      const { id } = await packetIn(service, 'awaiting_human', { hitl: { ...later, remind_at: '2020-01-01T00:00:00.000Z' } });
      const patch = (hitl: object) => service.call('PATCH', `/packets/${id}`, { body: { hitl } });
      assert.equal((await patch({ remind_after_seconds: 120 })).body.hitl.remind_at, '2026-03-01T09:32:00.000Z');
      assert.equal((await patch({ remind_at: '2020-01-01T00:00:00.000Z' })).body.field, 'hitl.remind_at');
      service.clock.turn(120);
      await sweep(service);
      assert.equal((await patch({ remind_after_seconds: 180 })).body.hitl.remind_at, null);
      service.clock.turn(120);
      await sweep(service);
      assert.equal((await happenings(service, id)).filter((one) => one === 'hitl_reminded').length, 1);
    });
  });
}

test('a channel of the kind email is refused where no mail server is set, with the settings that are missing', async () => {
  const body = { kind: 'email', target: 'dana@example.com' };
  const service = await shareService(stores[0]!);
  const refused = await service.call('POST', '/channels', { body });
  assert.equal(refused.status, 400);
  assert.equal(refused.body.field, 'kind');
  assert.match(refused.body.detail, /SERVICE_SMTP_URL and SERVICE_MAIL_FROM/);
  const half = await shareService(stores[0]!, { SERVICE_SMTP_URL: 'smtp://127.0.0.1:9' });
  assert.match((await half.call('POST', '/channels', { body })).body.detail, /must set SERVICE_MAIL_FROM\./);
});

test('without SERVICE_PUBLIC_URL the links of a channel begin with the origin of the request that created it [H181]', async (t) => {
  const service = await shareHooked(t, stores[0]!);
  const receiver = await startReceiver(t, 200);
  const headers = { host: 'desk.example.com' };
  const made = await service.call('POST', '/channels', { body: { kind: 'slack', target: receiver.url }, headers });
  assert.equal(made.status, 201);
  assert.match(made.body.warnings[0], /begin with http:\/\/desk\.example\.com, .*SERVICE_PUBLIC_URL/);
  const [listed] = (await service.call('GET', '/channels')).body;
  assert.deepEqual(listed, made.body);
  await createPacket(service, { hitl: question });
  await packetIn(service, 'awaiting_human');
  await service.handoff.runOnce.deliver();
  await receiver.received(1);
  assert.match(receiver.posts[0]!.body, /"url":"http:\/\/desk\.example\.com\/answer\/[0-9a-f]{96}"/);
  const evil = await service.call('POST', '/channels', { body: { kind: 'slack', target: receiver.url }, headers: { host: 'evil.com/x' } });
  assert.equal(evil.status, 400);
});

for (const store of storesOfSeveral) {
  test(`a start without SERVICE_PUBLIC_URL warns of channels whose links begin with the origin of a request, on ${store.name} [H181]`, async (t) => {
    const service = await startHooked(t, { store });
    const { databaseUrl } = service;
    const warnings = async (settings: Record<string, string> = {}) => (await startService(t, { databaseUrl, settings })).handoff.warnings;
    assert.deepEqual(await warnings(), []);
    const made = await service.call('POST', '/channels', { body: { kind: 'slack', target: 'https://127.0.0.1/x' } });
    assert.equal(made.status, 201);
    const [warning, ...others] = await warnings();
    assert.match(warning!, /^SERVICE_PUBLIC_URL is not set: /);
    assert.deepEqual(others, []);
    assert.deepEqual(await warnings({ SERVICE_PUBLIC_URL: 'https://baton.example.com' }), []);
    assert.equal((await service.call('DELETE', `/channels/${made.body.id}`)).status, 204);
    assert.deepEqual(await warnings(), []);
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('POST /channels', () => {
  const store = stores[0]!;

  test('400 names the field: kind, target, events; an address that could carry a second one or a header [H181]', async (t) => {
    const service = await share(t, store);
    for (const [field, body] of [
      ['kind', { kind: 'pager', target: 'dana@example.com' }],
      ['target', { kind: 'email' }],
      ['events', { kind: 'email', target: 'dana@example.com', events: [] }],
      ['events.0', { kind: 'email', target: 'dana@example.com', events: ['packet.created'] }],
      ['name', { kind: 'email', target: 'dana@example.com', name: '' }],
      ...[
        'dana',
        'dana@',
        'a@b.c,d@e.f',
        'a@b.c d@e.f',
        'a@b.com\r\nBcc: e@f.com',
        'a@b.com\n',
        'Dana <a@b.com>',
        '<a@b.com>',
        '"a b"@c.com',
        '"a@evil.com x"@c.com',
        'a@[127.0.0.1]',
        'a@127.0.0.1',
        'a(x)@b.com',
        'a@b.com;c@d.com',
        `${'a'.repeat(250)}@b.com`,
        'a\u0000@b.com',
        'dana@münchen.example',
      ].map((target) => ['target', { kind: 'email', target }] as const),
      ...[
        'http://example.com/x',
        'https://10.0.0.1/x',
        'https://localhost/x',
        'https://169.254.169.254/x',
        'file:///etc/passwd',
        'https://u:p@example.com',
      ].map((target) => ['target', { kind: 'slack', target }] as const),
    ] as const) {
      const answer = await service.call('POST', '/channels', { body });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.equal(answer.body.field, field, answer.text);
    }
    const { body } = await service.call('POST', '/channels', { body: { kind: 'email', target: 'dana@münchen.example' } });
    assert.match(body.detail, /a domain beyond ASCII is written in its xn-- form\.$/);
    const ascii = await service.call('POST', '/channels', { body: { kind: 'email', target: 'dana@xn--mnchen-3ya.example' } });
    assert.equal(ascii.status, 201, ascii.text);
  });
});
