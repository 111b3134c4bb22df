import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { happenings, historyOf, packetIn, question } from '../../support/life.ts';
import { newTenant, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import type { TestStore } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';

const options = ['Approve', { value: 'refuse', label: 'Refuse it', style: 'danger' }];
const unknownToken = 'ab'.repeat(48);

interface Link {
  readonly id: string;
  readonly url: string;
  readonly path: string;
  readonly token: string;
}

async function linkTo(service: TestService, packetId: string, body: object = {}, key?: string): Promise<Link> {
  const made = await service.call('POST', `/packets/${packetId}/answer-links`, { body, ...(key === undefined ? {} : { key }) });
  assert.equal(made.status, 201, made.text);
  const { pathname } = new URL(made.body.url);
  return { ...made.body, path: `/${pathname}`, token: pathname.split('/').at(-1)! };
}

/** A shared service behind a proxy, so that each request can come from an address of its own: addresses have a limit. */
const desk = (store: TestStore) => shareService(store, { SERVICE_TRUSTED_PROXIES: '127.0.0.1' });
let visits = 0;
const fromElsewhere = () => {
  visits += 1;
  return { 'x-forwarded-for': `10.0.${visits >> 8}.${visits & 255}` };
};

const open = (service: TestService, { path }: Pick<Link, 'path'>) => service.call('GET', path, { key: null, headers: fromElsewhere() });
const digestIn = ({ text }: TestAnswer): string => /name="digest" value="([0-9a-f]{64})"/.exec(text)?.[1] ?? '';

/** Sends the form of a page, as a browser does. */
const send = (
  service: TestService,
  { path }: Pick<Link, 'path'>,
  fields: Record<string, string> | [string, string][],
  headers: Record<string, string> = {},
) =>
  service.call('POST', path, {
    key: null,
    raw: new URLSearchParams(fields).toString(),
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      origin: 'null',
      'sec-fetch-site': 'same-origin',
      ...fromElsewhere(),
      ...headers,
    },
  });

const statusOf = async (service: TestService, id: string) => (await service.call('GET', `/packets/${id}`)).body.status;
const hitlOf = async (service: TestService, id: string) => (await service.call('GET', `/packets/${id}`)).body.hitl;
const heading = ({ text }: TestAnswer) => /<h1[^>]*>([^<]*)<\/h1>/.exec(text)?.[1];

/** A packet that asks, a link to it, and the digest of its page. */
async function asking(service: TestService, hitl: object = {}, request: object = {}) {
  const packet = await packetIn(service, 'awaiting_human', { hitl: { ...question, options, ...hitl } });
  const link = await linkTo(service, packet.id, request);
  return { id: packet.id as string, link, digest: digestIn(await open(service, link)) };
}

/** A page without the script at its end, which adds the reader's own time and is the only one that its policy allows. */
function withoutScript(page: string): string {
  const [, before, script, after] =
    /^(.*)<\/main><script>([^<]*)<\/script>(<\/body>\n<\/html>\n)$/s.exec(page) ?? assert.fail('the script is missing');
  assert.match(script!, /^for\(const time of document\.querySelectorAll\('time'\)\)/);
  return `${before}</main>${after}`;
}

for (const store of stores) {
  describe(`Answer links on ${store.name}`, () => {
    test('201 with an address that is shown once, listed without it, and revoked [H174]', async () => {
      const service = await desk(store);
      const { id } = await packetIn(service, 'awaiting_human');
      const made = await service.call('POST', `/packets/${id}/answer-links`, { body: { responder: 'dana', expires_in: 60 } });
      assert.equal(made.status, 201);
      const { id: linkId, url, ...rest } = made.body;
      assert.match(url, /^http:\/\/localhost(:\d+)?\/answer\/[0-9a-f]{96}$/);
      assert.deepEqual(rest, { responder: 'dana', expires_at: '2026-03-01T09:31:00.000Z' });
      const list = () => service.call('GET', `/packets/${id}/answer-links`);
      const listed = await list();
      assert.equal(listed.status, 200);
      const shown = { id: linkId, packet_id: id, responder: 'dana', created_at: '2026-03-01T09:30:00.000Z', expires_at: rest.expires_at };
      assert.deepEqual(listed.body, [{ ...shown, status: 'open' }]);
      assert.equal((await service.call('DELETE', `/answer-links/${linkId}`)).status, 204);
      assert.equal((await service.call('DELETE', `/answer-links/${linkId}`)).status, 404);
      assert.deepEqual((await list()).body, [{ ...shown, status: 'revoked' }]);
      const page = await open(service, { path: `/${new URL(url).pathname}` });
      assert.equal(page.status, 410);
      assert.equal(heading(page), 'This link was revoked');
      assert.deepEqual((await happenings(service, id)).slice(-2), ['answer_link_created', 'answer_link_revoked']);
    });

    test('a link is valid for a day unless it says otherwise; its packet must await an answer', async () => {
      const service = await desk(store);
      const { id } = await packetIn(service, 'awaiting_human');
      const { body } = await service.call('POST', `/packets/${id}/answer-links`);
      assert.deepEqual([body.responder, body.expires_at], [null, '2026-03-02T09:30:00.000Z']);
      for (const expires_in of [0, 2_592_001, 1.5]) {
        const refused = await service.call('POST', `/packets/${id}/answer-links`, { body: { expires_in } });
        assert.deepEqual([refused.status, refused.body.field], [400, 'expires_in']);
      }
      const { id: created } = await packetIn(service, 'created');
      assert.equal((await service.call('POST', `/packets/${created}/answer-links`)).status, 409);
      const { id: late } = await packetIn(service, 'awaiting_human', { hitl: { ...question, timeout_seconds: 5 } });
      service.clock.turn(5);
      assert.equal((await service.call('POST', `/packets/${late}/answer-links`)).status, 410);
    });

    test('a link opens and takes an answer with a slash at its end and with parameters of others; refusals are pages too [H492]', async () => {
      const service = await desk(store);
      for (const more of ['?utm_source=mail', '/', '/?fbclid=x&fbclid=y', '?api_key=wrong']) {
        const { id, link, digest } = await asking(service);
        const path = link.path + more;
        const shown = await open(service, { path });
        assert.deepEqual([shown.status, digestIn(shown)], [200, digest], more);
        const sent = await send(service, { path }, { digest, option: '0', name: 'Dana' });
        assert.deepEqual([sent.status, heading(sent)], [200, 'Your answer is recorded'], more);
        assert.equal((await hitlOf(service, id)).response, 'Approve');
      }
      const { link, digest } = await asking(service);
      for (const [status, fields, headers] of [
        [413, { digest, response: 'x'.repeat(300_000) }, {}],
        [415, { digest }, { 'content-type': 'text/xml' }],
      ] as const) {
        const refused = await send(service, link, fields, headers);
        assert.deepEqual([refused.status, heading(refused)], [status, 'The answer was not accepted']);
        assert.match(String(refused.headers['content-type']), /^text\/html/);
      }
    });

    test('a question has at most 100 open links [H174]', async () => {
      const service = await desk(store);
      const { id } = await packetIn(service, 'awaiting_human');
      const makes = await Promise.all(Array.from({ length: 105 }, () => service.call('POST', `/packets/${id}/answer-links`)));
      assert.equal(makes.filter(({ status }) => status === 201).length, 100);
      assert.deepEqual(new Set(makes.map(({ status }) => status)), new Set([201, 409]));
    });

    test('SERVICE_PUBLIC_URL is the beginning of the address; without it, a Host that is no name is refused [H174]', async () => {
      const service = await desk(store);
      const { id } = await packetIn(service, 'awaiting_human');
      const make = (one: TestService, host: string) => one.call('POST', `/packets/${id}/answer-links`, { headers: { host } });
      assert.match((await make(service, 'desk.example:8443')).body.url, /^http:\/\/desk\.example:8443\/answer\//);
      for (const host of ['a b', 'evil"onload=', 'x/../y']) {
        const refused = await make(service, host);
        assert.deepEqual([refused.status, refused.body.field], [400, 'Host'], host);
      }
      const published = await shareService(store, { SERVICE_PUBLIC_URL: 'https://people.example/handoff/' });
      const { id: other } = await packetIn(published, 'awaiting_human');
      const { body } = await published.call('POST', `/packets/${other}/answer-links`, { headers: { host: 'other.example' } });
      assert.match(body.url, /^https:\/\/people\.example\/handoff\/answer\/[0-9a-f]{96}$/);
    });

    test('the link ends when the key that made it is revoked, but not when it is rotated [H174]', async () => {
      const service = await desk(store);
      const { id } = await packetIn(service, 'awaiting_human');
      const { body: maker } = await service.call('POST', '/keys', { body: { name: 'maker' } });
      const link = await linkTo(service, id, {}, maker.key);
      const { body: next } = await service.call('POST', `/keys/${maker.id}/rotate`, { body: { overlap_seconds: 0 }, key: maker.key });
      assert.equal((await open(service, link)).status, 200);
      assert.equal((await service.call('DELETE', `/keys/${next.id}`)).status, 204);
      assert.equal((await open(service, link)).status, 404);
    });

    test('the links of a permanently deleted packet are removed, and so are old links [H174]', async () => {
      const service = await desk(store);
      const { id, link } = await asking(service);
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      assert.equal((await open(service, link)).status, 404);
      assert.equal((await service.call('DELETE', `/answer-links/${link.id}`)).status, 404);
      const { id: other, link: old } = await asking(service);
      service.clock.turn(31 * 86_400 - 1);
      await service.handoff.runOnce.prune();
      assert.equal((await open(service, old)).status, 410);
      service.clock.turn(2);
      await service.handoff.runOnce.prune();
      assert.equal((await open(service, old)).status, 404);
      assert.deepEqual((await service.call('GET', `/packets/${other}/answer-links`)).body, []);
    });
  });

  describe(`The page of an answer link on ${store.name}`, () => {
    test('shows the question and what it is about, and changes nothing when it is fetched', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service, { responder: 'Dana' });
      const before = (await service.call('GET', `/packets/${id}`)).text;
      for (let count = 0; count < 3; count += 1) {
        const page = await open(service, link);
        assert.equal(page.status, 200);
        assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
        for (const shown of [
          'Refund 59.90?',
          'Refunds over 50 need approval',
          'Approve',
          'Refuse it',
          'charged twice for order 4711',
          'Refund the second charge',
          'Treat it as a duplicate charge',
          'I was charged twice.',
          '<input name="name" required maxlength="1024" value="">',
        ])
          assert.ok(page.text.includes(shown), shown);
        assert.doesNotMatch(withoutScript(page.text), /<script|javascript:|src=|http:|https:/);
      }
      const head = await service.call('HEAD', link.path, { key: null });
      assert.deepEqual([head.status, head.text], [200, '']);
      assert.equal((await service.call('GET', `/packets/${id}`)).text, before);
      assert.equal(digest, (await hitlOf(service, id)).digest);
    });

    test('shows a bounded part of a packet, and says how much is left out [H334]', async () => {
      const service = await desk(store);
      const many = Array.from({ length: 103 }, (_, index) => `choice ${index}`);
      const packet = await packetIn(service, 'awaiting_human', {
        hitl: { ...question, question: `${'q'.repeat(20_000)}rest`, options: many, strict_options: true },
        context: { summary: `${'s'.repeat(20_000)}beyond` },
        decisions: Array.from({ length: 101 }, (_, index) => ({
          id: `d${index}`,
          decision: `decided ${index}`,
          rationale: 'r'.repeat(4001),
        })),
      });
      const link = await linkTo(service, packet.id, { responder: 'Dana' });
      const page = await open(service, link);
      assert.equal(page.status, 200);
      const left = [...page.text.matchAll(/<p class="muted">([\d,]+ more \w+ (?:is|are) not shown here\.)<\/p>/g)].map(
        ([, sentence]) => sentence,
      );
      assert.deepEqual(
        [...new Set(left)],
        [
          '4 more characters are not shown here.',
          '6 more characters are not shown here.',
          '1 more character is not shown here.',
          '1 more decision is not shown here.',
          '3 more options are not shown here.',
        ],
      );
      assert.doesNotMatch(page.text, /qrest|sbeyond|choice 100|decided 100/);
      const answer = await send(service, link, { digest: digestIn(page), response: 'choice 101', own: '1' });
      assert.equal(answer.status, 200, answer.text);
      const { response, partial } = await hitlOf(service, packet.id);
      assert.deepEqual([response, partial], ['choice 101', true]);
    });

    test('says beside the buttons what is left out, opens it on the same page, and marks an answer that was given without it [H415]', async () => {
      const service = await desk(store);
      const summary = `${'s'.repeat(20_000)}beyond`;
      const made = async () => {
        const packet = await packetIn(service, 'awaiting_human', { hitl: { ...question, options }, context: { summary } });
        return { id: packet.id as string, link: await linkTo(service, packet.id, { responder: 'Dana' }) };
      };
      const records = async (id: string) => {
        const { question_id, partial } = await hitlOf(service, id);
        const record = (await service.call('GET', `/packets/${id}/questions/${question_id}`)).body.answer;
        const event = (await historyOf(service, id)).find(({ event_type }) => event_type === 'hitl_responded')!;
        return [partial, record.partial, event.details.partial];
      };
      const one = await made();
      const page = await open(service, one.link);
      assert.match(page.text, /Part of the text is not shown here\. <a href="\?whole=1">Show all of it<\/a>.*name="option"/s);
      assert.doesNotMatch(page.text, /sbeyond/);
      assert.equal((await send(service, one.link, { digest: digestIn(page), option: '0' })).status, 200);
      assert.deepEqual(await records(one.id), [true, true, true]);

      const other = await made();
      const whole = await open(service, { path: `${other.link.path}?whole=1` });
      assert.match(whole.text, /sbeyond/);
      assert.doesNotMatch(whole.text, /not shown here/);
      assert.match(whole.text, /<form [^>]*action="\?"[^>]*>.*<input type="hidden" name="whole" value="1">/s);
      // A refused form stays as it was.
      const refused = await send(service, other.link, { digest: digestIn(whole), whole: '1', own: '1', response: '' });
      assert.deepEqual([refused.status, refused.text.includes('sbeyond')], [400, true]);
      assert.equal((await send(service, other.link, { digest: digestIn(whole), whole: '1', option: '0' })).status, 200);
      assert.deepEqual(await records(other.id), [undefined, undefined, undefined]);
    });

    test('shows the arguments of an action whole, and marks a decision about them that was given without the rest [H415]', async () => {
      const service = await desk(store);
      const action = { tool: 'mail', arguments: { body: `${'a'.repeat(60_000)}end` } };
      const packet = await packetIn(service, 'awaiting_human', {
        hitl: { required: true, reason: 'r', question: 'Send it?', action },
        context: { summary: `${'s'.repeat(20_000)}beyond` },
      });
      const link = await linkTo(service, packet.id, { responder: 'Dana' });
      const page = await open(service, link);
      assert.match(page.text, /aend/);
      assert.equal((await send(service, link, { digest: digestIn(page), decision: 'approve' })).status, 200);
      const hitl = await hitlOf(service, packet.id);
      assert.deepEqual([hitl.partial, hitl.decision.by[0].partial, hitl.approvals[0].partial], [true, true, true]);
      const given = (await historyOf(service, packet.id)).find(({ event_type }) => event_type === 'approval_given')!;
      assert.equal(given.details.partial, true);
    });

    test('takes each decision about an action by the form of its page', async () => {
      const service = await desk(store);
      const action = { tool: 'refund', arguments: { amount: 5 }, decisions: ['approve', 'edit', 'reject', 'respond'] };
      for (const [fields, expected] of [
        [
          { decision: 'edit', arguments: '{"amount": 3}' },
          { decision: 'edit', arguments: { amount: 3 }, message: null },
        ],
        [
          { decision: 'reject', message: 'Too much' },
          { decision: 'reject', arguments: { amount: 5 }, message: 'Too much' },
        ],
        [
          { decision: 'respond', message: 'It is paid' },
          { decision: 'respond', arguments: { amount: 5 }, message: 'It is paid' },
        ],
      ] as const) {
        const { id } = await packetIn(service, 'awaiting_human', { hitl: { required: true, reason: 'r', question: 'Refund?', action } });
        const link = await linkTo(service, id, { responder: 'Dana' });
        const digest = digestIn(await open(service, link));
        if (fields.decision !== 'reject') {
          const { status } = await send(service, link, { digest, decision: fields.decision, arguments: '[3]', message: '' });
          assert.equal(status, 400, 'neither arguments that are no object nor an empty answer');
        }
        assert.equal((await send(service, link, { digest, ...fields })).status, 200);
        const { decision, arguments: given, message, by } = (await hitlOf(service, id)).decision;
        assert.deepEqual([{ decision, arguments: given, message }, by[0].method], [expected, 'link']);
      }
    });

    test('lets an approval stand where that is allowed and the link is of the person who approves, and nowhere else [H419]', async () => {
      const service = await desk(store);
      const keyOf = async (rights: object) => (await service.call('POST', '/keys', { body: { name: 'k', ...rights } })).body.key;
      const agent = await keyOf({ scopes: ['read', 'work'], agents: ['refunds'] });
      const dana = await keyOf({ scopes: ['read', 'respond'], responder: 'dana' });
      const ask = async (call_id: string, key = agent) => {
        const body = { agent: { id: 'refunds' }, action: { tool: 'refund', arguments: { amount: 5 }, call_id } };
        return (await service.call('POST', '/approvals', { body, key })).body;
      };
      const offers = (page: string) => [...page.matchAll(/<option value="([^"]*)"/g)].map(([, value]) => value);
      const usual = ['', 'call', 'tool', '3600', '86400', '604800', '2592000'];
      const first = await ask('a');
      const manager = await keyOf({ scopes: ['read', 'respond', 'manage'] });
      const others = await linkTo(service, first.id, { responder: 'dana' }, manager);
      assert.deepEqual(offers((await open(service, others)).text), [], 'somebody else made the link');
      const forced = { decision: 'approve', remember: 'call', seconds: '60', digest: first.hitl.digest };
      const refused = await send(service, others, forced);
      assert.deepEqual([refused.status, /it is not taken on this way/.test(refused.text)], [400, true], refused.text);
      const own = await linkTo(service, first.id, { responder: 'dana' }, dana);
      const page = await open(service, own);
      assert.deepEqual([offers(page.text), page.text.includes('Any call of refund')], [usual, true]);
      const fields = { remember: 'tool', seconds: '3600', digest: digestIn(page) };
      const late = await send(service, own, { ...fields, decision: 'approve', seconds: '2592001' });
      assert.deepEqual([late.status, /value="tool" selected/.test(late.text)], [400, true], 'what was chosen stays chosen');
      assert.equal((await send(service, own, { ...fields, decision: 'approve' })).status, 200);
      assert.equal((await ask('b')).status, 'claimed', 'the approval stands');
      // A policy says what may stand, and no key that is not bound to its agent has any.
      const rules = [{ then: { ask: [{ from: ['dana'] }] } }];
      await service.call('PUT', '/policies/p', { body: { rules, remember: { scope: 'call', max_seconds: 7200 } } });
      const tool = { responder: 'dana' };
      const pages = [];
      const body = { agent: { id: 'refunds' }, action: { tool: 'pay', arguments: {} } };
      for (const key of [agent, await keyOf({ scopes: ['read', 'work'] })]) {
        const { id, hitl } = (await service.call('POST', '/approvals', { body, key })).body;
        pages.push([hitl.remember, offers((await open(service, await linkTo(service, id, tool, dana))).text)]);
      }
      assert.deepEqual(pages, [
        [{ scope: 'call', max_seconds: 7200 }, ['', 'call', '3600', '7200']],
        [undefined, []],
      ]);
    });

    test('an option is answered with one request, by the named person, and ends all links of the question [H174]', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service, {}, { responder: 'dana@example.com' });
      const second = await linkTo(service, id);
      assert.doesNotMatch((await open(service, link)).text, /Your name/);
      const done = await send(service, link, { digest, option: '1', name: 'mia', notes: ' Too late ' });
      assert.equal(done.status, 200);
      assert.equal(heading(done), 'Your answer is recorded');
      const hitl = await hitlOf(service, id);
      assert.deepEqual([hitl.response, hitl.responded_by, hitl.notes], ['refuse', 'dana@example.com', 'Too late']);
      const event = (await historyOf(service, id)).find(({ event_type }) => event_type === 'hitl_responded')!;
      assert.equal(event.actor, 'human:dana@example.com');
      assert.deepEqual(event.details, {
        ...{ response: 'refuse', question_id: hitl.question_id, question: hitl.question },
        ...{ digest, via: 'link', answer_link_id: link.id, answered_by: hitl.answered_by },
      });
      for (const ended of [link, second]) {
        const page = await open(service, ended);
        assert.deepEqual([page.status, heading(page)], [410, 'This question has been answered']);
        assert.equal((await send(service, ended, { digest, option: '0', name: 'mia' })).status, 410);
      }
      assert.equal((await hitlOf(service, id)).response, 'refuse');
      // Only one of them was the way of the answer.
      const { body: links } = await service.call('GET', `/packets/${id}/answer-links`);
      assert.deepEqual(
        links.map(({ status }: { status: string }) => status),
        ['closed', 'answered'],
      );
    });

    test('without a named person the form asks for the name, and the history marks the answer as unverified [H174]', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service);
      assert.match((await open(service, link)).text, /Your name<input name="name" required/);
      for (const name of ['', '   ']) {
        const again = await send(service, link, { digest, option: '0', name, notes: 'Kept <b>' });
        assert.equal(again.status, 400);
        assert.match(again.text, /Enter your name\./);
        assert.match(again.text, /Kept &lt;b&gt;/);
      }
      assert.equal((await send(service, link, { digest, option: '0', name: 'x'.repeat(1025) })).status, 400);
      assert.equal(await statusOf(service, id), 'awaiting_human');
      assert.equal((await send(service, link, { digest, own: '1', response: 'Half\r\nof it\0', name: 'Mia' })).status, 200);
      assert.deepEqual([(await hitlOf(service, id)).response, (await hitlOf(service, id)).responded_by], ['Half\nof it', 'Mia']);
      const event = (await historyOf(service, id)).find(({ event_type }) => event_type === 'hitl_responded')!;
      assert.equal(event.details.unverified, true);
    });

    test('a free-text answer is refused when it is empty, too long, or the options are strict', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service, { strict_options: true }, { responder: 'dana' });
      assert.doesNotMatch((await open(service, link)).text, /in your own words/);
      for (const response of ['', 'x'.repeat(16_385), 'Perhaps'])
        assert.equal((await send(service, link, { digest, own: '1', response })).status, 400, response.slice(0, 9));
      assert.equal(await statusOf(service, id), 'awaiting_human');
      assert.equal((await send(service, link, { digest, option: '0' })).status, 200);
    });

    test('409 and the question again when it, or what it is about, has changed since', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service, {}, { responder: 'dana' });
      for (const change of [
        { hitl: { question: 'Refund 5,990?' } },
        { hitl: { options: ['Approve', 'Approve all'] } },
        { context: { summary: 'Something else.' } },
        { actions: { pending: [{ id: 'a9', description: 'Delete the account', assignee: 'resolver' }] } },
        { decisions: [{ id: 'd9', decision: 'Blame the customer', rationale: 'None' }] },
      ]) {
        const seen = digestIn(await open(service, link));
        assert.equal((await service.call('PATCH', `/packets/${id}`, { body: change })).status, 200);
        const stale = await send(service, link, { digest: seen, option: '0', notes: 'Mine' });
        assert.equal(stale.status, 409, JSON.stringify(change));
        assert.match(stale.text, /has changed/);
        assert.match(stale.text, />Mine</);
        assert.notEqual(digestIn(stale), seen);
      }
      assert.equal((await send(service, link, { digest, option: '0' })).status, 409);
      for (const wrong of ['', 'x', digest.toUpperCase()])
        assert.equal((await send(service, link, { digest: wrong, option: '0' })).status, 409);
      assert.equal(await statusOf(service, id), 'awaiting_human');
      assert.equal((await send(service, link, { digest: digestIn(await open(service, link)), option: '1' })).status, 200);
      assert.equal((await hitlOf(service, id)).response, 'Approve all');
    });

    test('404 for an unknown token and 410 for an expired link, for reading and answering alike [H174]', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service, { timeout_seconds: 100_000 }, { expires_in: 60 });
      const tenant = await newTenant(service);
      // A token names its tenant, and is none of another one.
      const foreign = tenant.id.replaceAll('-', '') + link.token.slice(32);
      for (const token of [unknownToken, 'x', link.token.slice(1), `${link.token}0`, foreign]) {
        const path = `//answer/${token}`;
        const page = await open(service, { path });
        assert.deepEqual([page.status, heading(page)], [404, 'There is no such link'], token);
        assert.equal((await send(service, { path }, { digest, option: '0', name: 'mia' })).status, 404);
      }
      // Mail programs may change the case of an address.
      assert.equal((await open(service, { path: `//answer/${link.token.toUpperCase()}` })).status, 200);
      service.clock.turn(60);
      const page = await open(service, link);
      assert.deepEqual([page.status, heading(page)], [410, 'This link has expired']);
      assert.equal((await send(service, link, { digest, option: '0', name: 'mia' })).status, 410);
      assert.equal(await statusOf(service, id), 'awaiting_human');
      const { id: late, link: other } = await asking(service, { timeout_seconds: 10 });
      service.clock.turn(10);
      assert.deepEqual([(await open(service, other)).status, await statusOf(service, late)], [410, 'awaiting_human']);
      const { id: failed, link: withdrawn } = await asking(service);
      await service.call('PATCH', `/packets/${failed}`, { body: { status: 'failed' } });
      assert.equal(heading(await open(service, withdrawn)), 'This link has expired');
    });

    test('two people who answer at once: one answer counts, and the other person sees that [H174]', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service);
      const other = await linkTo(service, id);
      const answers = await Promise.all([
        send(service, link, { digest, option: '0', name: 'Dana' }),
        send(service, other, { digest, option: '1', name: 'Mia' }),
        send(service, link, { digest, option: '1', name: 'Kim' }),
      ]);
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 410, 410]);
      const winner = ['Dana', 'Mia', 'Kim'][answers.findIndex(({ status }) => status === 200)];
      assert.equal((await hitlOf(service, id)).responded_by, winner);
      assert.equal((await happenings(service, id)).filter((type) => type === 'hitl_responded').length, 1);
    });

    test('a link of an earlier question does not answer a later one, even in the same millisecond [H174]', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service);
      const unused = await linkTo(service, id);
      assert.equal((await send(service, link, { digest, option: '0', name: 'Dana' })).status, 200);
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
      const later = await linkTo(service, id);
      const page = await open(service, later);
      for (const earlier of [link, unused])
        assert.equal((await send(service, earlier, { digest: digestIn(page), option: '0', name: 'Dana' })).status, 410);
      assert.equal(await statusOf(service, id), 'awaiting_human');
      assert.equal((await send(service, later, { digest: digestIn(page), option: '1', name: 'Mia' })).status, 200);
    });

    test('a form is shown for a schema, and its fields become data of their types [H173]', async () => {
      const service = await desk(store);
      const schema = {
        type: 'object',
        required: ['amount', 'confirmed'],
        properties: {
          amount: { type: 'integer', title: 'Amount <in cents>', minimum: 1, maximum: 100 },
          confirmed: { type: 'boolean' },
          plan: { type: 'string', enum: ['basic', 'plus'] },
          mail: { type: 'string', format: 'email', description: 'Where the receipt goes' },
        },
      };
      const { id, link, digest } = await asking(service, { schema, options: undefined }, { responder: 'dana' });
      const { text } = await open(service, link);
      for (const part of [
        'Amount &lt;in cents&gt;',
        'type="number" name="data.amount" required',
        'min="1" max="100"',
        '<select name="data.confirmed" required>',
        '>plus</option>',
        'type="email"',
        'Where the receipt goes',
      ])
        assert.ok(text.includes(part), part);
      for (const [fields, problem] of [
        [{ 'data.amount': '5' }, 'confirmed is required.'],
        [{ 'data.amount': '500', 'data.confirmed': 'true' }, 'amount can be at most 100.'],
        [{ 'data.amount': 'five', 'data.confirmed': 'true' }, 'amount must be a number.'],
        [{ 'data.amount': '5', 'data.confirmed': 'true', 'data.mail': 'none' }, 'mail must be a valid email.'],
      ] as const) {
        const again = await send(service, link, { digest, own: '1', ...fields });
        assert.equal(again.status, 400);
        assert.ok(again.text.includes(problem), again.text.slice(0, 4000));
      }
      assert.equal(
        (await send(service, link, { digest, own: '1', 'data.amount': '5', 'data.confirmed': 'false', 'data.plan': '' })).status,
        200,
      );
      const hitl = await hitlOf(service, id);
      assert.deepEqual(hitl.data, { amount: 5, confirmed: false });
      assert.equal(hitl.response, '{"amount":5,"confirmed":false}');
    });

    test('a form shows choices with their titles and defaults, and records no other number than was entered [H462] [H463]', async () => {
      const service = await desk(store);
      const schema = {
        type: 'object',
        required: ['plan', 'amount'],
        properties: {
          plan: { enum: ['basic', 'plus'], enumNames: ['Basic <1>', 'Plus'] },
          level: { type: 'integer', enum: [1, 2] },
          tags: {
            type: 'array',
            items: {
              anyOf: [
                { const: 'a', title: 'Tag A' },
                { const: 'b', title: 'Tag B' },
              ],
            },
            default: ['b'],
          },
          amount: { type: 'number', default: 7.5 },
        },
      };
      const { id, link, digest } = await asking(service, { schema, options: ['Decline'] }, { responder: 'dana' });
      const { text } = await open(service, link);
      for (const part of [
        '<select name="data.plan" required>',
        '<option value="basic">Basic &lt;1&gt;</option>',
        'type="checkbox" name="data.tags" value="a">Tag A',
        'type="checkbox" name="data.tags" value="b" checked>Tag B',
        'name="data.amount" required value="7.5"',
        ' formnovalidate dir="auto">Decline</button>',
      ])
        assert.ok(text.includes(part), part);
      for (const amount of ['1e999', '9007199254740993', '0.12345678901234567890', '-1e400', '0x10', '1,5']) {
        const again = await send(service, link, { digest, own: '1', 'data.plan': 'plus', 'data.amount': amount });
        assert.equal(again.status, 400);
        assert.match(again.text, /amount must be a number/);
        // What was entered and chosen stays.
        assert.ok(again.text.includes(`value="${amount}"`) && again.text.includes('<option value="plus" selected>'), amount);
      }
      const sent: [string, string][] = [
        ['digest', digest],
        ['own', '1'],
        ['data.plan', 'plus'],
        ['data.level', '2'],
        ['data.tags', 'a'],
        ['data.tags', 'b'],
        ['data.amount', '19.990'],
      ];
      const { status } = await send(service, link, sent);
      assert.equal(status, 200);
      assert.deepEqual((await hitlOf(service, id)).data, { plan: 'plus', level: 2, tags: ['a', 'b'], amount: 19.99 });
      const next = await asking(service, { schema, options: ['Decline'] }, { responder: 'dana' });
      assert.equal((await send(service, next.link, { digest: next.digest, option: '0', 'data.amount': '' })).status, 200);
      const declined = await hitlOf(service, next.id);
      assert.deepEqual([declined.response, declined.data], ['Decline', undefined]);
    });

    test('a link made by the key that asked does not answer a question that excludes its source', async () => {
      const service = await desk(store);
      const { body: asker } = await service.call('POST', '/keys', { body: { name: 'asker' } });
      const { body: maker } = await service.call('POST', '/keys', { body: { name: 'maker' } });
      const { id } = await packetIn(service, 'awaiting_human', { hitl: { ...question, exclude_source: true } }, asker.key);
      const refused = await service.call('POST', `/packets/${id}/answer-links`, { key: asker.key });
      assert.equal(refused.status, 403);
      const link = await linkTo(service, id, { responder: 'dana' }, maker.key);
      // The key that made the link becomes a source of the question afterwards.
      await service.call('PATCH', `/packets/${id}`, { key: maker.key, body: { hitl: { question: 'Refund everything?' } } });
      const digest = digestIn(await open(service, link));
      const answered = await send(service, link, { digest, own: '1', response: 'Yes' });
      assert.equal(answered.status, 403);
      assert.equal(await statusOf(service, id), 'awaiting_human');
      const { body: person } = await service.call('POST', '/keys', { body: { name: 'person' } });
      const third = await linkTo(service, id, { responder: 'dana' }, person.key);
      assert.equal((await send(service, third, { digest, own: '1', response: 'Yes' })).status, 200);
    });
  });

  describe(`The safety of an answer link on ${store.name}`, () => {
    test('every answer forbids other scripts than its own, frames, referrers, indexing and caching [H178]', async () => {
      const service = await desk(store);
      const { link, digest } = await asking(service);
      const answers = [
        await open(service, link),
        await open(service, { path: `//answer/${unknownToken}` }),
        await send(service, link, { digest: '', option: '0', name: 'mia' }),
        await send(service, link, { digest, option: '0', name: '' }),
        await service.call('POST', link.path, { key: null, raw: 'x', headers: { 'content-type': 'text/plain' } }),
        await send(service, link, { digest, option: '0', name: 'mia' }),
      ];
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 404, 409, 400, 415, 200],
      );
      for (const { headers } of answers) {
        assert.match(
          String(headers['content-security-policy']),
          /^default-src 'none'; img-src data:; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
        );
        assert.deepEqual(
          ['x-frame-options', 'referrer-policy', 'x-robots-tag', 'cache-control', 'x-content-type-options'].map((name) => headers[name]),
          ['DENY', 'no-referrer', 'noindex', 'no-store', 'nosniff'],
        );
      }
    });

    test('a form that a page of another origin sends is refused [H178]', async () => {
      const service = await desk(store);
      const { id, link, digest } = await asking(service, {}, { responder: 'dana' });
      const fields = { digest, option: '0' };
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { 'sec-fetch-site': 'cross-site', origin: 'http://localhost' },
      ])
        assert.equal((await send(service, link, fields, headers)).status, 403);
      const old = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://evil.example' };
      const raw = new URLSearchParams(fields).toString();
      assert.equal((await service.call('POST', link.path, { key: null, raw, headers: old })).status, 403);
      assert.equal(await statusOf(service, id), 'awaiting_human');
      // A mail program that opens the page has no origin.
      const { origin: _, ...none } = old;
      assert.equal((await service.call('POST', link.path, { key: null, raw, headers: none })).status, 200);
    });

    test('a link takes 60 requests a minute, and so does an address for all links; they do not count against a key', async (t) => {
      const settings = { SERVICE_RATE_LIMIT_PER_MINUTE: '10', SERVICE_TRUSTED_PROXIES: '127.0.0.1' };
      const service = await startService(t, { store, settings });
      const { id } = await packetIn(service, 'awaiting_human');
      const link = await linkTo(service, id);
      const other = await linkTo(service, id);
      const from = (path: string, address: string) => service.call('GET', path, { key: null, headers: { 'x-forwarded-for': address } });
      for (let count = 0; count < 60; count += 1) assert.equal((await from(link.path, `10.1.0.${count}`)).status, 200);
      const refused = await from(link.path, '10.1.1.1');
      assert.deepEqual([refused.status, refused.headers['retry-after'], heading(refused)], [429, '60', 'The answer was not accepted']);
      assert.equal((await from(other.path, '10.1.1.1')).status, 200);
      for (let count = 0; count < 60; count += 1) assert.equal((await from(`//answer/${count}`, '10.2.0.1')).status, 404);
      assert.equal((await from(other.path, '10.2.0.1')).status, 429);
      assert.equal((await from(other.path, '10.2.0.2')).status, 200);
      assert.equal((await service.call('GET', `/packets/${id}`)).status, 200);
      service.clock.turn(60);
      assert.equal((await from(link.path, '10.2.0.1')).status, 200);
    });

    test('no log line and no metric has a token, whatever the request [H174]', async () => {
      const service = await desk(store);
      const { link, digest } = await asking(service);
      await open(service, link);
      for (const method of ['HEAD', 'PUT', 'DELETE', 'OPTIONS']) await service.call(method, link.path, { key: null });
      for (const path of [
        `${link.path}/`,
        `${link.path}?api_key=x`,
        `//api/v1/answer/${link.token}`,
        `${link.path}/x`,
        `//ANSWER/${link.token}`,
      ])
        await service.call('GET', path, { key: null, headers: { referer: link.url } });
      await send(service, link, { digest, option: '7', name: 'mia' });
      await send(service, link, { digest, option: '0', name: 'mia' });
      const lines = service.logs.join('\n');
      assert.match(lines, /"route":"\/answer\/:token"/);
      const { text: metrics } = await service.call('GET', '//metrics', { key: null });
      assert.match(metrics, /\/answer\/:token/);
      const { text: audit } = await service.call('GET', '/audit?limit=200');
      for (const text of [lines, metrics, audit]) assert.ok(!text.toLowerCase().includes(link.token));
    });

    test('no field of a packet becomes markup', async () => {
      const service = await desk(store);
      const attack = `</p><script>alert(1)</script><img src=x onerror=alert(1)>"'><a href="javascript:alert(1)">[x](javascript:alert(1))\u202e&lt;`;
      const hitl = {
        required: true,
        reason: attack,
        question: attack,
        responder: attack,
        options: [attack, { value: attack, label: attack, style: 'danger' }, [attack]],
      };
      const agent = { id: 'a', name: attack, framework: attack };
      const changes = {
        metadata: { source_agent: agent, target_agent: agent },
        context: { summary: attack, conversation_state: [{ role: attack, content: attack }] },
        decisions: [{ id: attack, decision: attack, rationale: attack, decided_by: attack }],
        actions: { pending: [{ id: attack, description: attack, assignee: attack }] },
      };
      const field = { type: 'string', title: attack, description: attack, enum: [attack] };
      const schema = {
        type: 'object',
        properties: { [attack]: field, 'x" autofocus onfocus="alert(1)': { type: 'string', title: attack }, n: { type: 'integer' } },
        required: ['n'],
      };
      const action = { tool: attack, title: attack, description: attack, arguments: { [attack]: attack, list: [attack] } };
      for (const asked of [hitl, { ...hitl, options: undefined, schema }, { ...hitl, options: undefined, action }]) {
        const { id } = await packetIn(service, 'awaiting_human', { ...changes, hitl: asked });
        for (const request of [{}, { responder: attack }]) {
          const link = await linkTo(service, id, request);
          const page = await open(service, link);
          const again = await send(service, link, {
            digest: digestIn(page),
            name: attack,
            response: attack,
            notes: attack,
            option: '99',
            [`data.${attack}`]: attack,
          });
          assert.ok(again.status === 400 || again.status === 409, again.text);
          for (const { text } of [page, again]) {
            assert.doesNotMatch(withoutScript(text), /<(script|img|a)\b|\u202e/i);
            // Every tag is one of the page's own, with its own attributes.
            for (const [tag] of text.matchAll(/<[^!/][^>]*>/g))
              assert.doesNotMatch(tag.replace(/"[^"]*"/g, '""'), /\son\w+=|javascript:|""[^\s>]/, tag);
          }
        }
      }
    });
  });
}
