import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';

import { a2a, messageOf } from '../../support/a2a.ts';
import { asPerson, cookiesOf, dana, publicUrl, signIn, signInSettings, startIssuer, type TestIssuer } from '../../support/issuer.ts';
import { question } from '../../support/life.ts';
import { startMailServer } from '../../support/mail.ts';
import { createPacket, startService, TestClock, type TestService } from '../../support/service.ts';
import type { TestStore } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

const mia = { ...dana, sub: 'mia', email: 'mia@example.com', groups: ['finance'], sid: 'session-of-mia' };
const eli = { ...dana, sub: 'eli', email: 'eli@example.com', groups: [], sid: 'session-of-eli' };
const secret = 'xylophone';

async function start(t: TestContext, store: TestStore, settings: Record<string, string> = {}) {
  const clock = new TestClock();
  const issuer = await startIssuer(t, clock);
  return { issuer, service: await startService(t, { store, clock, settings: { ...signInSettings(issuer), ...settings } }) };
}

async function asking(service: TestService, hitl: object = {}): Promise<string> {
  const { id } = await createPacket(service, { hitl: { ...question, question: `Play the ${secret}?`, ...hitl } });
  const asked = await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
  assert.equal(asked.status, 200, asked.text);
  return id;
}

async function linkTo(service: TestService, id: string, body: object): Promise<string> {
  const link = await service.call('POST', `/packets/${id}/answer-links`, { body });
  assert.equal(link.status, 201, link.text);
  return `/${new URL(link.body.url).pathname}`;
}

const open = (service: TestService, path: string, cookie = '') =>
  service.call('GET', path, { key: null, headers: cookie === '' ? {} : { cookie } });

/** Sends the form of a page, as the browser of the person does unless the headers say otherwise. */
function send(
  service: TestService,
  path: string,
  page: string,
  cookie: string,
  { headers = {}, fields = {} }: { headers?: object; fields?: object } = {},
) {
  const value = (name: string) => new RegExp(`name="${name}" value="([0-9a-f]{64})"`).exec(page)?.[1] ?? '';
  const raw = new URLSearchParams({ digest: value('digest'), proof: value('proof'), response: 'Yes', ...fields }).toString();
  const usual = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin', origin: publicUrl };
  return service.call('POST', path, { key: null, raw, headers: { ...usual, ...(cookie === '' ? {} : { cookie }), ...headers } });
}

const cookieOf = async (service: TestService, issuer: TestIssuer, claims: typeof dana) => cookiesOf(await signIn(service, issuer, claims));
const mailServer = await startMailServer({ after });

for (const store of stores)
  describe(`An answer link that asks for a sign-in, on ${store.name}`, () => {
    test('shows nothing of the question before, returns to it afterwards, and takes the answer of its responder alone [H569]', async (t) => {
      const { service, issuer } = await start(t, store);
      const id = await asking(service, { require_verified: true });
      const path = await linkTo(service, id, { sign_in: true, responder: 'Dana@example.com' });
      const listed = (await service.call('GET', `/packets/${id}/answer-links`)).body;
      assert.deepEqual([listed[0].sign_in, listed[0].status], [true, 'open']);
      const { body: asked } = await service.call('GET', `/packets/${id}`);
      const before = await open(service, path);
      assert.equal(before.status, 200);
      assert.doesNotMatch(before.text, new RegExp(secret));
      assert.doesNotMatch(before.text, /Dana|<form/);
      const address = new URL(/href="([^"]+sign-in[^"]+)"/.exec(before.text)![1]!.replaceAll('&amp;', '&'));
      assert.deepEqual([address.origin + address.pathname, address.searchParams.get('return_to')], [`${publicUrl}/sign-in`, path.slice(1)]);
      const back = await signIn(service, issuer, dana, address.searchParams.get('return_to')!);
      assert.equal(back.headers.location, publicUrl + path.slice(1));
      assert.ok(
        !String((await service.call('GET', `//sign-in${address.search}`, { key: null })).headers.location).includes(path.slice(9)),
        'the provider does not see the link',
      );

      const [danas, elis] = [cookiesOf(back), await cookieOf(service, issuer, eli)];
      const others = await open(service, path, elis);
      assert.equal(others.status, 403);
      assert.match(others.text, /signed in as eli@example\.com; the question is for somebody else/);
      assert.doesNotMatch(others.text, new RegExp(secret));
      const page = await open(service, path, danas);
      assert.match(page.text, new RegExp(`${secret}[^]*You answer as <bdi>dana@example\\.com</bdi>`));
      assert.equal(page.headers['referrer-policy'], 'same-origin');
      const refused = {
        'without a session': send(service, path, page.text, ''),
        'with another session': send(service, path, page.text, elis),
        'from another page': send(service, path, page.text, danas, { headers: { origin: 'http://evil.example' } }),
        'from no page': send(service, path, page.text, danas, { headers: { origin: 'null' } }),
        'without the proof': send(service, path, page.text, danas, { fields: { proof: '' } }),
        'with a proof of another session': send(service, path, page.text, await cookieOf(service, issuer, dana)),
        'with a proof of another link': send(service, await linkTo(service, id, { sign_in: true }), page.text, danas),
      };
      for (const [way, answer] of Object.entries(refused)) assert.equal((await answer).status, 403, way);
      assert.deepEqual((await service.call('GET', `/packets/${id}`)).body, asked, 'nothing has changed');
      const again = await send(service, path, page.text, danas, { fields: { response: '' } });
      assert.equal(again.status, 400);
      const answered = await send(service, path, again.text, danas);
      assert.equal(answered.status, 200, answered.text);
      const { hitl } = (await service.call('GET', `/packets/${id}`)).body;
      assert.deepEqual(
        [hitl.responded_by, hitl.answered_by],
        ['dana@example.com', { name: 'dana@example.com', verified: true, method: 'sign_in', subject: 'dana', link_id: listed[0].id }],
      );
      const { events } = (await service.call('GET', `/packets/${id}/history`)).body;
      const { actor, key_id, details } = events.at(-1);
      assert.deepEqual([actor, key_id, details.person.subject, details.verified], ['human:dana@example.com', null, 'dana', true]);
      assert.equal((await open(service, path, danas)).status, 410);
    });

    test('without a responder takes whoever may answer, but neither a source of the question nor a person of another tenant', async (t) => {
      const { service, issuer } = await start(t, store, { SERVICE_OIDC_TENANT_CLAIM: 'tenant' });
      const call = asPerson(service, await cookieOf(service, issuer, { ...dana, tenant: 'default' } as never));
      const { id } = await createPacket(service, { hitl: { ...question, exclude_source: true } });
      assert.equal((await call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } })).status, 200);
      const path = await linkTo(service, id, { sign_in: true });
      const { body: other } = await service.call('POST', '/tenants', { body: { name: 'Other' } });
      const foreign = await cookieOf(service, issuer, { ...mia, tenant: other.id } as never);
      assert.equal((await open(service, path, foreign)).status, 403);
      const danas = await cookieOf(service, issuer, { ...dana, tenant: 'default' } as never);
      const page = await open(service, path, danas);
      const refused = await send(service, path, page.text, danas);
      assert.deepEqual([refused.status, /created or claimed the packet, or asked/.test(refused.text)], [403, true], refused.text);
      const elis = await cookieOf(service, issuer, { ...eli, tenant: 'default' } as never);
      assert.equal((await send(service, path, (await open(service, path, elis)).text, elis)).status, 200);
    });

    test('takes one of the people whom the step of a policy asks, by a group of the provider too, and nobody who is suspended counts [H577, H570]', async (t) => {
      const { service, issuer } = await start(t, store);
      const rules = [{ then: { ask: [{ from: ['group:idp:finance'], count: 2 }] } }];
      assert.ok((await service.call('PUT', '/policies/all', { body: { rules } })).status < 300);
      const [mias, elis] = [await cookieOf(service, issuer, mia), await cookieOf(service, issuer, eli)];
      const noah = { ...mia, sub: 'noah', email: 'noah@example.com' };
      const noahs = await cookieOf(service, issuer, noah);
      const action = { tool: 'refund', arguments: { amount: 5 } };
      const { body: asked } = await service.call('POST', '/approvals', { body: { agent: { id: 'refunds' }, action } });
      assert.deepEqual(asked.hitl.step.from, ['group:idp:finance'], JSON.stringify(asked));
      const path = await linkTo(service, asked.id, { sign_in: true, responder: 'somebody@example.com' });
      assert.equal((await open(service, path, elis)).status, 403);
      const approve = async (cookie: string) =>
        send(service, path, (await open(service, path, cookie)).text, cookie, { fields: { decision: 'approve' } });
      const claims = { scope: 'baton:respond', ...mia };
      const byToken = await service.call('POST', `/packets/${asked.id}/respond`, {
        key: null,
        headers: { authorization: `Bearer ${await issuer.token(publicUrl, { claims })}` },
        body: { decision: 'approve', responded_by: mia.email },
      });
      assert.deepEqual([byToken.status, byToken.body.code], [403, 'NOT_AN_APPROVER'], 'a token counts for no policy');
      const first = await approve(mias);
      assert.equal(first.status, 200, first.text);
      const read = async () => (await service.call('GET', `/packets/${asked.id}`)).body;
      assert.equal((await read()).hitl.step.given, 1);
      assert.equal((await service.call('POST', '/people/mia@example.com/suspend')).status, 200);
      const second = await linkTo(service, asked.id, { sign_in: true });
      assert.equal((await open(service, second, elis)).status, 403, 'a link without a responder asks the people of the step too');
      assert.equal((await open(service, second, mias)).status, 200, 'the way to sign in');
      const page = (await open(service, second, noahs)).text;
      assert.equal((await send(service, second, page, noahs, { fields: { decision: 'approve' } })).status, 200);
      const { status, hitl } = await read();
      assert.deepEqual([status, hitl.step.given], ['awaiting_human', 1], 'the approval of a suspended person does not count');
      // Who moves to another group is no longer asked.
      assert.equal((await service.call('POST', '/people/mia@example.com/resume')).status, 200);
      await cookieOf(service, issuer, { ...mia, groups: [] });
      const third = await linkTo(service, asked.id, { sign_in: true, responder: 'somebody@example.com' });
      assert.equal((await open(service, third, await cookieOf(service, issuer, { ...mia, groups: [] }))).status, 403);
    });

    test('counts people as they are now, for a session and when a time is over too [H576]', async (t) => {
      const { service, issuer } = await start(t, store);
      const step = { from: ['group:board', 'mia@example.com'], count: 2, timeout_seconds: 60, on_timeout: 'reject' };
      assert.ok((await service.call('PUT', '/policies/all', { body: { rules: [{ then: { ask: [step] } }] } })).status < 300);
      const body = { agent: { id: 'refunds' }, action: { tool: 'refund', arguments: { amount: 5 } } };
      const { body: asked } = await service.call('POST', '/approvals', { body });
      const approve = async (claims: typeof dana) =>
        asPerson(service, await cookieOf(service, issuer, claims))('POST', `/packets/${asked.id}/respond`, {
          body: { decision: 'approve', responded_by: claims.email },
        });
      assert.equal((await approve(mia)).status, 200);
      assert.equal((await approve(eli)).status, 403);
      assert.equal((await service.call('POST', '/people/mia@example.com/suspend')).status, 200);
      // Changed and seen by sessions alone, after a read by a key.
      assert.equal((await service.call('GET', '/policies/all')).status, 200);
      const manager = asPerson(service, await cookieOf(service, issuer, dana));
      assert.ok((await manager('PUT', '/groups/board', { body: { members: ['eli@example.com'] } })).status < 300);
      const given = await approve(eli);
      assert.deepEqual([given.status, given.body.hitl?.step?.given], [200, 1], given.text);
      assert.equal((await service.call('POST', '/people/mia@example.com/resume')).status, 200);
      service.clock.turn(61);
      await service.handoff.runOnce.sweep();
      assert.equal((await service.call('GET', `/packets/${asked.id}`)).body.hitl.decision.decision, 'approve');
    });

    test('lets the approval of who signed in stand, also where only such people answer, until that person has no right any more [H419]', async (t) => {
      const { service, issuer } = await start(t, store, { SERVICE_OIDC_REQUIRED: 'answers' });
      const mias = await cookieOf(service, issuer, mia);
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'a', scopes: ['read', 'work'], agents: ['refunds'] } });
      const ask = async () => {
        const body = { agent: { id: 'refunds' }, action: { tool: 'refund', arguments: { amount: 5 } } };
        return (await service.call('POST', '/approvals', { body, key: key.key })).body;
      };
      const { id } = await ask();
      const path = await linkTo(service, id, { sign_in: true, responder: 'mia@example.com' });
      const page = (await open(service, path, mias)).text;
      assert.match(page, /<select name="remember">/);
      const fields = { decision: 'approve', remember: 'tool', seconds: '3600' };
      assert.equal((await send(service, path, page, mias, { fields })).status, 200);
      const { status, hitl } = await ask();
      assert.deepEqual([status, hitl.decision.by[0].name, hitl.decision.by[0].method], ['claimed', 'mia@example.com', 'sign_in']);
      assert.equal((await service.call('POST', '/people/mia@example.com/suspend')).status, 200);
      assert.equal((await ask()).status, 'awaiting_human');
    });

    test('is what a channel sends that asks for it, and needs an identity provider', async (t) => {
      const mail = {
        SERVICE_SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
        SERVICE_MAIL_FROM: 'Baton <baton@example.com>',
        SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
      };
      const { service, issuer } = await start(t, store, mail);
      const address = `sign-in-${store.name.replaceAll(' ', '-')}@example.com`.toLowerCase();
      const { body: channel } = await service.call('POST', '/channels', {
        body: { kind: 'email', target: address, responder: 'dana@example.com' },
      });
      assert.equal(channel.sign_in, undefined);
      const patched = await service.call('PATCH', `/channels/${channel.id}`, { body: { sign_in: true } });
      assert.deepEqual([patched.status, patched.body.sign_in], [200, true]);
      const id = await asking(service, { responder: 'dana@example.com' });
      await service.handoff.runOnce.deliver();
      const { mail: message } = await until(() => mailServer.mails.find(({ to }) => to.includes(address)));
      const path = `/${new URL(/http:\/\/\S+\/answer\/[0-9a-f]{96}/.exec(message.text ?? '')![0]).pathname}`;
      assert.doesNotMatch((await open(service, path)).text, new RegExp(secret));
      const danas = await cookieOf(service, issuer, dana);
      assert.equal((await send(service, path, (await open(service, path, danas)).text, danas)).status, 200);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.hitl.answered_by.method, 'sign_in');

      const plain = await startService(t, { store, settings: mail });
      const other = await asking(plain);
      for (const [method, target, body] of [
        ['POST', `/packets/${other}/answer-links`, { sign_in: true }],
        ['POST', '/channels', { kind: 'email', target: address, sign_in: true }],
      ] as const) {
        const refused = await plain.call(method, target, { body });
        assert.deepEqual([refused.status, refused.body.field], [400, 'sign_in'], refused.text);
      }
    });

    test('is every link where only people answer who have signed in: keys, tokens and typed names do not, and policies go on [H571]', async (t) => {
      const { service, issuer } = await start(t, store, { SERVICE_OIDC_REQUIRED: 'answers,console' });
      const id = await asking(service);
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'd', responder: 'dana@example.com' } });
      const claims = { scope: 'baton:respond', groups: ['ops'], email: 'dana@example.com', email_verified: true, sub: 'dana' };
      const token = { authorization: `Bearer ${await issuer.token(publicUrl, { claims })}` };
      const body = { response: 'Yes', responded_by: 'dana@example.com' };
      for (const answer of [
        service.call('POST', `/packets/${id}/respond`, { key: key.key, body }),
        service.call('POST', `/packets/${id}/respond`, { body }),
        service.call('POST', `/packets/${id}/respond`, { key: null, headers: token, body }),
        service.call('POST', `//console/api/v1/packets/${id}/respond`, { body }),
      ]) {
        const { status, body: refused } = await answer;
        assert.deepEqual([status, refused.code], [403, 'SIGN_IN_REQUIRED'], refused.detail);
      }
      assert.match((await a2a(service, 'SendMessage', messageOf('Yes', { taskId: id }), { key: key.key })).text, /have signed in/);
      const path = await linkTo(service, id, { responder: 'dana@example.com' });
      assert.doesNotMatch((await open(service, path)).text, new RegExp(secret));
      assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'awaiting_human');
      const danas = await cookieOf(service, issuer, dana);
      assert.equal((await send(service, path, (await open(service, path, danas)).text, danas)).status, 200);
      const second = await asking(service);
      assert.equal((await asPerson(service, danas)('POST', `/packets/${second}/respond`, { body })).status, 200);
      const approve = {
        rules: [
          { when: { properties: { tool: { const: 'list' } } }, then: { approve: 'reads' } },
          { then: { ask: [{ from: ['dana@example.com'] }] } },
        ],
      };
      assert.ok((await service.call('PUT', '/policies/all', { body: approve })).status < 300);
      const agent = (await service.call('POST', '/keys', { body: { name: 'a', scopes: ['read', 'work'], agents: ['lister'] } })).body;
      const decided = await service.call('POST', '/approvals', {
        key: agent.key,
        body: { agent: { id: 'lister' }, action: { tool: 'list', arguments: {} } },
      });
      assert.equal(decided.body.hitl?.decision?.decision, 'approve', decided.text);
    });

    test('in the console alone, keys answer on other ways', async (t) => {
      const { service } = await start(t, store, { SERVICE_OIDC_REQUIRED: 'console' });
      const id = await asking(service);
      const body = { response: 'Yes', responded_by: 'dana' };
      const refused = await service.call('POST', `//console/api/v1/packets/${id}/respond`, { body });
      assert.deepEqual([refused.status, refused.body.code], [403, 'SIGN_IN_REQUIRED']);
      assert.equal((await service.call('POST', `/packets/${id}/respond`, { body })).status, 200);
    });
  });
