import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { a2a } from '../../support/a2a.ts';
import { asPerson, cookiesOf, dana as danasClaims, publicUrl, signIn, signInSettings, startIssuer } from '../../support/issuer.ts';
import { question } from '../../support/life.ts';
import { startMailServer } from '../../support/mail.ts';
import { mcp } from '../../support/mcp.ts';
import { createPacket, startService, TestClock, type TestService } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

const mailServer = await startMailServer({ after });
const mailSettings = {
  SERVICE_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
  SERVICE_MAIL_FROM: 'Baton <baton@example.com>',
  SERVICE_PUBLIC_URL: 'https://baton.example.com',
  SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
};

/** A packet that asks, by the key. */
async function asking(service: TestService, hitl: object = {}, key?: string): Promise<string> {
  const { id } = await createPacket(service, { hitl: { ...question, ...hitl } }, key);
  const asked = await service.call('PATCH', `/packets/${id}`, {
    body: { status: 'awaiting_human' },
    ...(key === undefined ? {} : { key }),
  });
  assert.equal(asked.status, 200, asked.text);
  return id;
}

const keyWith = async (service: TestService, rights: object, key?: string) =>
  (await service.call('POST', '/keys', { body: { name: 'k', ...rights }, ...(key === undefined ? {} : { key }) })).body;

/** Sends the form of the page of a link. */
async function answerAt(service: TestService, url: string, fields: Record<string, string> = { response: 'Yes' }) {
  const path = `/${new URL(url).pathname}`;
  const page = await service.call('GET', path, { key: null });
  const digest = /name="digest" value="([0-9a-f]{64})"/.exec(page.text)?.[1] ?? '0'.repeat(64);
  const raw = new URLSearchParams({ digest, ...fields }).toString();
  return service.call('POST', path, {
    key: null,
    raw,
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' },
  });
}

const answeredBy = async (service: TestService, id: string) => (await service.call('GET', `/packets/${id}`)).body.hitl.answered_by;

const linkTo = async (service: TestService, address: string): Promise<{ url: string; text: string }> => {
  await service.handoff.runOnce.deliver();
  const mail = await until(() => mailServer.mails.find(({ to }) => to.includes(address)));
  const text = mail.mail.text ?? '';
  return { url: /https?:\/\/\S+\/answer\/[0-9a-f]{96}/.exec(text)?.[0] ?? '', text };
};

for (const store of stores)
  describe(`Who answered, on ${store.name}`, () => {
    test('is verified by a key in the name and by links for that person; any other name is only typed, and said so everywhere [H521]', async (t) => {
      const service = await startService(t, { store });
      const dana = await keyWith(service, { responder: 'Dana' });
      const agent = await keyWith(service, { scopes: ['read', 'work', 'respond'] });
      const body = { response: 'Yes', responded_by: 'Dana' };
      const byKey = await asking(service);
      // Case, space around it and the form of accents do not matter.
      const answer = await service.call('POST', `/packets/${byKey}/respond`, { key: dana.key, body: { ...body, responded_by: ' dana' } });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(answer.body.hitl.answered_by, { name: ' dana', verified: true, method: 'key', key_id: dana.id });
      const typed = await asking(service);
      assert.equal((await service.call('POST', `/packets/${typed}/respond`, { key: agent.key, body })).status, 200);
      assert.deepEqual(await answeredBy(service, typed), { name: 'Dana', verified: false, method: 'typed', key_id: agent.id });
      const brief = await service.call('GET', `/packets/${typed}/brief`, { headers: { accept: 'text/plain' } });
      assert.match(brief.text, /Dana \(typed, not verified\): Yes/);
      const { events } = (await service.call('GET', `/packets/${typed}/history`)).body;
      assert.deepEqual(events.at(-1).details.answered_by.method, 'typed');
      const { questions } = (await service.call('GET', `/packets/${typed}/questions`)).body;
      assert.equal(questions[0].answer.answered_by.verified, false);

      const cases: [string, string, object, boolean, string][] = [
        ['made with manage', (await keyWith(service, {})).key, { responder: 'Dana' }, true, 'link'],
        ["by the person's own key", dana.key, {}, true, 'link'],
        ['by another key', agent.key, { responder: 'Dana' }, false, 'typed'],
      ];
      for (const [name, key, request, verified, method] of cases) {
        const id = await asking(service);
        const { body: link } = await service.call('POST', `/packets/${id}/answer-links`, { key, body: request });
        assert.equal((await answerAt(service, link.url)).status, 200, name);
        assert.deepEqual(await answeredBy(service, id), { name: 'Dana', verified, method, link_id: link.id }, name);
      }
      const anybody = await asking(service, { responder: 'Dana' });
      const { body: link } = await service.call('POST', `/packets/${anybody}/answer-links`, { body: {} });
      const page = await service.call('GET', `/${new URL(link.url).pathname}`, { key: null });
      assert.match(page.text, /<input name="name" required maxlength="1024" value="">/, 'no name is filled in');
      assert.equal((await answerAt(service, link.url, { response: 'Yes', name: 'Dana' })).status, 200);
      assert.deepEqual(await answeredBy(service, anybody), { name: 'Dana', verified: false, method: 'typed', link_id: link.id });
    });

    test('must be verified where the question says so, on every way, and the need stays until another key lifts it [H519]', async (t) => {
      const clock = new TestClock();
      const issuer = await startIssuer(t, clock);
      const service = await startService(t, { store, clock, settings: signInSettings(issuer) });
      const agent = await keyWith(service, { scopes: ['read', 'work', 'respond'] });
      const dana = await keyWith(service, { responder: 'Dana' });
      const need = { require_verified: true };
      const refused = async (id: string, answer: ReturnType<TestService['call']>) => {
        const { status, text } = await answer;
        assert.equal(status, 403, text);
        assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'awaiting_human');
      };
      const id = await asking(service, need, agent.key);
      const body = { response: 'Yes', responded_by: 'Dana' };
      await refused(id, service.call('POST', `/packets/${id}/respond`, { key: agent.key, body }));
      await refused(id, service.call('POST', `/packets/${id}/respond`, { body }));
      const { body: typed } = await service.call('POST', `/packets/${id}/answer-links`, { key: agent.key, body: {} });
      await refused(id, answerAt(service, typed.url, { response: 'Yes', name: 'Dana' }));
      const { body: minted } = await service.call('POST', `/packets/${id}/answer-links`, { key: agent.key, body: { responder: 'Dana' } });
      await refused(id, answerAt(service, minted.url));
      const claims = { scope: 'baton:respond', groups: ['ops'], email: 'mia@example.com', email_verified: true };
      const token = await issuer.token(publicUrl, { claims });
      const headers = { authorization: `Bearer ${token}` };
      await refused(
        id,
        service.call('POST', `/packets/${id}/respond`, { key: null, headers, body: { response: 'Yes', responded_by: 'mia@example.com' } }),
      );
      const lifted = await service.call('POST', `/packets/${id}/questions`, {
        key: agent.key,
        body: { question: 'Again?', require_verified: false },
      });
      assert.notEqual(lifted.status, 201, lifted.text);
      assert.equal((await service.call('DELETE', `/packets/${id}/question`, { key: agent.key })).status, 200);
      const again = await service.call('POST', `/packets/${id}/questions`, { key: agent.key, body: { question: 'Again?' } });
      assert.deepEqual([again.status, again.body.hitl?.require_verified], [201, true], again.text);
      assert.equal((await service.call('POST', `/packets/${id}/respond`, { key: dana.key, body })).status, 200);

      const bySignIn = await asking(service, need);
      const call = asPerson(service, cookiesOf(await signIn(service, issuer)));
      const signedIn = await call('POST', `/packets/${bySignIn}/respond`, { body: { response: 'Yes', responded_by: 'dana@example.com' } });
      assert.equal(signedIn.status, 200, signedIn.text);
      assert.deepEqual(signedIn.body.hitl.answered_by, { name: 'dana@example.com', verified: true, method: 'sign_in', subject: 'dana' });
      const byToken = await asking(service);
      const given = await service.call('POST', `/packets/${byToken}/respond`, {
        key: null,
        headers,
        body: { response: 'Yes', responded_by: 'mia@example.com' },
      });
      assert.equal(given.status, 200, given.text);
      assert.deepEqual(given.body.hitl.answered_by, { name: 'mia@example.com', verified: true, method: 'token', subject: 'subject-1' });
    });

    test('is said in the answer to an action as well, and a typed name decides nothing where the question asks for a verified one [H521]', async (t) => {
      const service = await startService(t, { store });
      const dana = await keyWith(service, { responder: 'Dana' });
      const agent = await keyWith(service, { scopes: ['read', 'work', 'respond'] });
      const action = { tool: 'refund', arguments: { amount: 5 } };
      const body = { decision: 'approve', responded_by: 'Dana' };
      const respond = (id: string, key: string) => service.call('POST', `/packets/${id}/respond`, { key, body });

      const typed = await asking(service, { action });
      const answer = await respond(typed, agent.key);
      assert.equal(answer.status, 200, answer.text);
      const unverified = { name: 'Dana', verified: false, method: 'typed', key_id: agent.id };
      assert.deepEqual(answer.body.hitl.answered_by, unverified);
      const { events } = (await service.call('GET', `/packets/${typed}/history`)).body;
      assert.deepEqual(
        events
          .slice(-2)
          .map(({ event_type, details }: { event_type: string; details: { answered_by?: unknown } }) => [event_type, details.answered_by]),
        [
          ['approval_given', unverified],
          ['hitl_responded', unverified],
        ],
      );
      const { questions } = (await service.call('GET', `/packets/${typed}/questions`)).body;
      assert.deepEqual(questions[0].answer.answered_by, unverified);
      const brief = await service.call('GET', `/packets/${typed}/brief`, { headers: { accept: 'text/plain' } });
      assert.match(brief.text, /Dana \(typed, not verified\)/);

      const id = await asking(service, { action, require_verified: true });
      const { body: link } = await service.call('POST', `/packets/${id}/answer-links`, { key: agent.key, body: { responder: 'Dana' } });
      const refusals = [await respond(id, agent.key), await answerAt(service, link.url, { decision: 'approve' })];
      assert.deepEqual(
        refusals.map(({ status }) => status),
        [403, 403],
      );
      const { status, hitl } = (await service.call('GET', `/packets/${id}`)).body;
      assert.deepEqual([status, hitl.approvals], ['awaiting_human', []]);
      const verified = await respond(id, dana.key);
      assert.equal(verified.status, 200, verified.text);
      assert.deepEqual(verified.body.hitl.answered_by, { name: 'Dana', verified: true, method: 'key', key_id: dana.id });

      const rejected = await asking(service, { action, require_verified: true });
      const { body: own } = await service.call('POST', `/packets/${rejected}/answer-links`, { key: dana.key, body: {} });
      assert.equal((await answerAt(service, own.url, { decision: 'reject' })).status, 200);
      assert.deepEqual(await answeredBy(service, rejected), { name: 'Dana', verified: true, method: 'link', link_id: own.id });
    });

    test('is nobody where a policy decides, also about the arguments that a person edited', async (t) => {
      const service = await startService(t, { store });
      const dana = await keyWith(service, { responder: 'Dana' });
      const bound = await keyWith(service, { scopes: ['read', 'work'], agents: ['refunds'] });
      const small = { properties: { arguments: { properties: { amount: { type: 'number', maximum: 50 } }, required: ['amount'] } } };
      const rules = [{ when: small, then: { approve: 'up to 50' } }, { then: { ask: [{ from: ['Dana'] }] } }];
      assert.ok((await service.call('PUT', '/policies/refunds', { body: { rules } })).status < 300);
      const asked = await service.call('POST', '/approvals', {
        key: bound.key,
        body: { agent: { id: 'refunds' }, action: { tool: 'refund', arguments: { amount: 500 } } },
      });
      assert.equal(asked.body.status, 'awaiting_human', asked.text);
      const edit = { decision: 'edit', arguments: { amount: 5 }, responded_by: 'Dana' };
      const answer = await service.call('POST', `/packets/${asked.body.id}/respond`, { key: dana.key, body: edit });
      assert.deepEqual(
        [answer.status, answer.body.hitl?.responded_by, answer.body.hitl?.answered_by],
        [200, 'policy:refunds@1', undefined],
        answer.text,
      );
    });

    test('is the person to whom a channel sent the link, also where one admin key set up everything and the question excludes its source [H518]', async (t) => {
      const service = await startService(t, { store, settings: mailSettings });
      const agent = await keyWith(service, { scopes: ['read', 'work'] });
      const address = `dana-${store.name.replaceAll(' ', '-')}@example.com`.toLowerCase();
      const made = await service.call('POST', '/channels', { body: { kind: 'email', target: address, responder: 'Dana' } });
      assert.deepEqual([made.status, made.body.links, made.body.warnings], [201, true, undefined], made.text);
      const id = await asking(service, { exclude_source: true, responder: 'dana', require_verified: true }, agent.key);
      const { url, text } = await linkTo(service, address);
      assert.notEqual(url, '', text);
      const answer = await answerAt(service, url);
      assert.equal(answer.status, 200, answer.text);
      const { link_id, ...by } = await answeredBy(service, id);
      assert.deepEqual([by, typeof link_id], [{ name: 'Dana', verified: true, method: 'link' }, 'string']);
    });

    test('is nobody whose key asked: a channel of that person sends no link, but the way to the console', async (t) => {
      const service = await startService(t, { store, settings: mailSettings });
      const own = await keyWith(service, { responder: 'Dana' });
      const address = `source-${store.name.replaceAll(' ', '-')}@example.com`.toLowerCase();
      await service.call('POST', '/channels', { body: { kind: 'email', target: address, responder: 'Dana' } });
      const id = await asking(service, { exclude_source: true, responder: 'Dana' }, own.key);
      const { url, text } = await linkTo(service, address);
      assert.equal(url, '');
      assert.match(text.replace(/=\r?\n/g, ''), new RegExp(`https://baton\\.example\\.com/console/packets/${id}`));
    });

    test('what a channel cannot do is said when it is made, and in its list', async (t) => {
      const service = await startService(t, { store, settings: mailSettings });
      const manager = await keyWith(service, { scopes: ['read', 'manage'] });
      const without = await service.call('POST', '/channels', { key: manager.key, body: { kind: 'email', target: 'a@example.com' } });
      assert.equal(without.body.links, false);
      assert.match(without.body.warnings.join(), /no answer links.*Name a responder/);
      const named = await service.call('POST', '/channels', {
        key: manager.key,
        body: { kind: 'email', target: 'b@example.com', responder: 'Dana' },
      });
      assert.deepEqual([named.body.links, named.body.warnings], [true, undefined], named.text);
      const listed = (await service.call('GET', '/channels')).body;
      assert.deepEqual(
        listed.map(({ warnings }: { warnings?: string[] }) => warnings?.length ?? 0),
        [1, 0],
      );
    });

    test('is nobody who left: the open links end, and channels send none until there is a key again [H520]', async (t) => {
      const service = await startService(t, { store, settings: mailSettings });
      const first = await keyWith(service, { responder: 'Dana' });
      const second = await keyWith(service, { responder: 'dana ' });
      const id = await asking(service);
      const linkOf = async () => (await service.call('POST', `/packets/${id}/answer-links`, { body: { responder: 'Dana' } })).body;
      const [link, mias] = [
        await linkOf(),
        (await service.call('POST', `/packets/${id}/answer-links`, { body: { responder: 'Mia' } })).body,
      ];
      const open = async (one: { url: string }) => (await service.call('GET', `/${new URL(one.url).pathname}`, { key: null })).status;
      await service.call('DELETE', `/keys/${first.id}`);
      assert.equal(await open(link), 200, 'another key is left');
      await service.call('DELETE', `/keys/${second.id}`);
      assert.deepEqual([await open(link), await open(mias)], [410, 200]);
      assert.equal((await answerAt(service, link.url)).status, 410);
      const statuses = (await service.call('GET', `/packets/${id}/answer-links`)).body.map(
        ({ responder, status }: Record<string, string>) => [responder, status],
      );
      assert.deepEqual(statuses, [
        ['Mia', 'open'],
        ['Dana', 'revoked'],
      ]);

      const address = `left-${store.name.replaceAll(' ', '-')}@example.com`.toLowerCase();
      await service.call('POST', '/channels', { body: { kind: 'email', target: address, responder: 'Dana' } });
      await asking(service, { responder: 'Dana' });
      const { url, text } = await linkTo(service, address);
      assert.equal(url, '', text);
      service.clock.turn(1);
      await keyWith(service, { responder: 'Dana' });
      assert.equal(await open(await linkOf()), 200);
      assert.equal(await open(link), 410, 'a link that ended stays ended');
      const last = await linkOf();
      assert.equal((await service.call('POST', '/people/DANA/suspend')).status, 200);
      assert.equal(await open(last), 410);
    });

    test('is the person for whom somebody made a link or a channel who had signed in, until that maker is suspended or loses the right [H565]', async (t) => {
      const clock = new TestClock();
      const issuer = await startIssuer(t, clock);
      const service = await startService(t, { store, clock, settings: { ...mailSettings, ...signInSettings(issuer) } });
      const signedIn = async (claims: Parameters<typeof signIn>[2]) => asPerson(service, cookiesOf(await signIn(service, issuer, claims)));
      const manager = await signedIn(danasClaims);
      const address = `session-${store.name.replaceAll(' ', '-')}@example.com`.toLowerCase();
      const made = await manager('POST', '/channels', { body: { kind: 'email', target: address, responder: 'Mia' } });
      assert.deepEqual([made.status, made.body.links, made.body.warnings], [201, true, undefined], made.text);
      const id = await asking(service, { responder: 'Mia' });
      const linkOf = async (call: typeof manager, body: object = {}) => {
        const link = await call('POST', `/packets/${id}/answer-links`, { body });
        assert.equal(link.status, 201, link.text);
        return link.body;
      };
      const open = async (one: { url: string }) => (await service.call('GET', `/${new URL(one.url).pathname}`, { key: null })).status;
      const reader = await signedIn({ ...danasClaims, sub: 'eli', email: 'eli@example.com', groups: [] });
      assert.equal((await linkOf(reader)).responder, 'eli@example.com', 'the own name');
      const foreign = await reader('POST', `/packets/${id}/answer-links`, { body: { responder: 'Mia' } });
      assert.deepEqual([foreign.status, foreign.body.field], [403, 'responder'], foreign.text);
      const [forMia, own] = [await linkOf(manager, { responder: 'Mia' }), await linkOf(manager)];
      const { url } = await linkTo(service, address);
      for (const one of [{ url }, forMia, own]) assert.equal(await open(one), 200);
      assert.equal((await answerAt(service, url)).status, 200);
      const { link_id, ...by } = await answeredBy(service, id);
      assert.deepEqual([by, typeof link_id], [{ name: 'Mia', verified: true, method: 'link' }, 'string']);

      const second = await asking(service, { responder: 'Mia' });
      const { body: link } = await manager('POST', `/packets/${second}/answer-links`, { body: { responder: 'Mia' } });
      assert.equal(await open(link), 200);
      assert.equal((await service.call('POST', '/people/DANA@example.com/suspend')).status, 200);
      assert.equal(await open(link), 404, 'the maker is suspended');
      assert.equal((await answerAt(service, link.url)).status, 404);
      mailServer.mails.length = 0;
      await asking(service, { responder: 'Mia' });
      assert.equal((await linkTo(service, address)).url, '');
      assert.equal((await service.call('POST', '/people/DANA@example.com/resume')).status, 200);
      assert.equal(await open(link), 410, 'it ended with the suspension');
      clock.turn(1);
      const back = await signedIn(danasClaims);
      const { body: later } = await back('POST', `/packets/${second}/answer-links`, { body: { responder: 'Mia' } });
      assert.equal(await open(later), 200);
      await signedIn({ ...danasClaims, groups: ['none'] });
      assert.equal(await open(later), 404, 'who may no longer manage vouches for nobody else');
      const again = await signedIn(danasClaims);
      assert.equal(await open(later), 200);
      const { body: key } = await again('POST', '/keys', { body: { name: 'agent', scopes: ['read', 'work'] } });
      assert.deepEqual([key.responder, typeof key.key], [null, 'string'], 'a key is in no name unless the request names one');
      assert.equal((await service.call('DELETE', `/channels/${made.body.id}`)).status, 204);
      assert.equal((await service.call('POST', '/people/dana@example.com/release')).status, 200);
      assert.equal(await open(later), 404, 'nobody has the name');
    });

    test('is nobody by what a token would leave behind: it makes no link, key, push or subscription, and no channel of its has links [H566]', async (t) => {
      const clock = new TestClock();
      const issuer = await startIssuer(t, clock);
      const service = await startService(t, { store, clock, settings: { ...mailSettings, ...signInSettings(issuer) } });
      const id = await asking(service);
      const scope = 'baton:read baton:work baton:respond baton:manage';
      const claims = { scope, groups: ['ops'], email: 'dana@example.com', email_verified: true, sub: 'dana' };
      const headers = { authorization: `Bearer ${await issuer.token(publicUrl, { claims })}` };
      const { body: own } = await service.call('GET', '/keys/self', { key: null, headers });
      assert.deepEqual([own.kind, own.responder, own.scopes.length], ['token', 'dana@example.com', 4]);
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'k' } });
      for (const [path, body] of [
        [`/packets/${id}/answer-links`, {}],
        [`/packets/${id}/answer-links`, { responder: 'Mia' }],
        ['/keys', { name: 'k', responder: 'dana@example.com' }],
        ['/keys', { name: 'k', scopes: ['read'] }],
        [`/keys/${key.id}/rotate`, {}],
      ] as const) {
        const refused = await service.call('POST', path, { key: null, headers, body });
        assert.equal(refused.status, 403, `${path} ${refused.text}`);
        assert.match(refused.body.detail, /A token makes nothing/);
      }
      const push = { taskId: id, id: 'mine', url: 'http://127.0.0.1:9/push', token: 'a-token-for-tests-0123456789' };
      const refused = await a2a(service, 'CreateTaskPushNotificationConfig', push, { key: null, headers });
      assert.match(refused.text, /A token makes nothing/);
      const channel = await service.call('POST', '/channels', { key: null, headers, body: { kind: 'email', target: 'd@example.com' } });
      assert.deepEqual([channel.status, channel.body.links], [201, false], channel.text);
      const atMcp = { key: null, agent: null, headers: { authorization: `Bearer ${await issuer.token(`${publicUrl}/mcp`, { claims })}` } };
      const delivery = { mode: 'webhook', url: 'http://127.0.0.1:9/events', secret: `whsec_${Buffer.alloc(32).toString('base64')}` };
      const { error } = (await mcp(service, 'events/subscribe', { name: 'packet.ended', delivery }, atMcp)).body;
      assert.deepEqual([error.code, error.data.code], [-32012, 'FORBIDDEN']);
      assert.match(error.message, /A token makes nothing/);
      assert.deepEqual((await mcp(service, 'events/poll', { name: 'packet.ended' }, atMcp)).body.result.events, []);
    });
  });
