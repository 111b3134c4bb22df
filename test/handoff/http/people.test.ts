import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { asPerson, cookiesOf, dana, publicUrl, signIn, signInSettings, startIssuer } from '../../support/issuer.ts';
import { question } from '../../support/life.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, packetRequest, startService, type TestAnswer, TestClock } from '../../support/service.ts';
import type { TestStore } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';

const renamed = { ...dana, email: 'dana.new@example.com', sid: 'renamed' };
const fay = { ...dana, sub: 'fay', email: 'fay@example.com', sid: 'session-of-fay' };
const agent = { id: 'refunds' };

async function start(t: TestContext, store: TestStore, settings: Record<string, string> = {}) {
  const clock = new TestClock();
  const issuer = await startIssuer(t, clock);
  const service = await startService(t, { store, clock, settings: { ...signInSettings(issuer), ...settings } });
  const must = async (answer: Promise<TestAnswer>): Promise<TestAnswer['body']> => {
    const { status, body, text } = await answer;
    assert.ok(status < 300, text);
    return body;
  };
  const person = async (claims: typeof dana) => asPerson(service, cookiesOf(await signIn(service, issuer, claims)));
  const { key: agentKey } = await must(
    service.call('POST', '/keys', { body: { name: 'agent', agents: ['refunds'], scopes: ['read', 'work'] } }),
  );
  /** A call that a policy asks people about, and how far its approval is. */
  const asked = (tool: string): Promise<TestAnswer['body']> =>
    must(service.call('POST', '/approvals', { key: agentKey, body: { agent, action: { tool, arguments: { n: 1 } } } }));
  const policy = (tool: string, step: object, more: object = {}) =>
    must(service.call('PUT', `/policies/${tool}`, { body: { match: { tools: [tool] }, rules: [{ then: { ask: [step] } }], ...more } }));
  const approvals = async (id: string) => {
    const { status, hitl } = await must(service.call('GET', `/packets/${id}`));
    return [status, ...hitl.approvals.map(({ name }: { name: string }) => name)];
  };
  const page = async (url: string) => service.call('GET', `/${new URL(url).pathname}`, { key: null });
  return { clock, issuer, service, must, person, asked, policy, approvals, page };
}

const approve = ({ email }: typeof dana) => ({ body: { decision: 'approve', responded_by: email } });

for (const store of stores) {
  describe(`A person whom the provider calls otherwise, on ${store.name}`, () => {
    test('acts under the new name alone: the sessions, the links and the groups of the old one end [H449]', async (t) => {
      const { clock, service, must, person, page } = await start(t, store);
      const before = await person(dana);
      const { id } = await createPacket(service, { hitl: question });
      await must(service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } }));
      const { url } = await must(before('POST', `/packets/${id}/answer-links`, { body: {} }));
      assert.equal((await page(url)).status, 200);
      clock.turn(1);
      const after = await person(renamed);
      assert.equal((await before('GET', '/keys/self')).status, 401);
      assert.equal((await after('GET', '/keys/self')).status, 200);
      assert.notEqual((await page(url)).status, 200);
      const { people } = await must(service.call('GET', '/people'));
      assert.deepEqual(
        people.map(({ name, groups }: { name: string; groups: string[] }) => [name, groups]),
        [
          ['dana.new@example.com', ['idp:ops']],
          ['dana@example.com', []],
        ],
      );
      clock.turn(1);
      const back = await person(dana);
      assert.equal((await back('GET', '/keys/self')).status, 200, 'called so again');
      assert.equal((await after('GET', '/keys/self')).status, 401);
    });

    test('counts once among those who approve, also with a key in the old name, and may not answer what the old name asked [H449]', async (t) => {
      const { clock, service, must, person, asked, policy, approvals } = await start(t, store);
      await policy('wire', { from: ['group:idp:ops', dana.email], count: 2 });
      const { key } = await must(service.call('POST', '/keys', { body: { name: 'k', responder: dana.email } }));
      const before = await person(dana);
      const { id } = await asked('wire');
      await must(before('POST', `/packets/${id}/respond`, approve(dana)));
      const own = await must(before('POST', '/packets', { body: { ...packetRequest(), hitl: { ...question, exclude_source: true } } }));
      await must(before('PATCH', `/packets/${own.id}`, { body: { status: 'awaiting_human' } }));
      clock.turn(1);
      const after = await person(renamed);
      const again = await after('POST', `/packets/${id}/respond`, approve(renamed));
      assert.deepEqual([again.status, again.body.code], [409, 'ALREADY_APPROVED'], again.text);
      const answer = { response: 'Yes', responded_by: renamed.email };
      assert.equal((await after('POST', `/packets/${own.id}/respond`, { body: answer })).status, 403);
      const second = await asked('wire');
      await must(after('POST', `/packets/${second.id}/respond`, approve(renamed)));
      const byKey = await service.call('POST', `/packets/${second.id}/respond`, { key, ...approve(dana) });
      assert.deepEqual([byKey.status, byKey.body.code], [409, 'ALREADY_APPROVED'], byKey.text);
      await must((await person(fay))('POST', `/packets/${id}/respond`, approve(fay)));
      assert.deepEqual(await approvals(id), ['claimed', dana.email, fay.email]);
    });

    test('is suspended and resumed under all names [H450]', async (t) => {
      const { clock, service, must, person, page } = await start(t, store);
      await person(dana);
      clock.turn(1);
      const after = await person(renamed);
      const { key } = await must(service.call('POST', '/keys', { body: { name: 'k', responder: renamed.email } }));
      const { id } = await createPacket(service, { hitl: question });
      await must(service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } }));
      const { url } = await must(service.call('POST', `/packets/${id}/answer-links`, { body: { responder: renamed.email } }));
      clock.turn(1);
      await must(service.call('POST', `/people/${dana.email}/suspend`));
      assert.equal((await after('GET', '/keys/self')).status, 401);
      assert.equal((await service.call('GET', '/keys/self', { key })).status, 401);
      assert.notEqual((await page(url)).status, 200);
      const typed = await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: renamed.email } });
      assert.equal(typed.status, 403);
      await must(service.call('POST', `/people/${renamed.email}/resume`));
      assert.equal((await service.call('GET', '/keys/self', { key })).status, 200);
      const { people } = await must(service.call('GET', '/people'));
      assert.deepEqual(
        people.map(({ suspended }: { suspended: boolean }) => suspended),
        [false, false],
      );
    });

    test('is the source of what a token without the name asked [H451]', async (t) => {
      const { issuer, service, must, person, asked, policy } = await start(t, store);
      await policy('wire', { from: ['group:idp:ops'] });
      const danas = await person(dana);
      const claims = { sub: dana.sub, client_id: 'frontline', scope: 'baton:read baton:work', groups: ['ops'] };
      const headers = { authorization: `Bearer ${await issuer.token(publicUrl, { claims })}` };
      const hitl = { ...question, exclude_source: true };
      const { id } = await must(service.call('POST', '/packets', { key: null, headers, body: { ...packetRequest(), hitl } }));
      await must(service.call('PATCH', `/packets/${id}`, { key: null, headers, body: { status: 'awaiting_human' } }));
      const body = { response: 'Yes', responded_by: dana.email };
      assert.equal((await danas('POST', `/packets/${id}/respond`, { body })).status, 403);
      const fays = { response: 'Yes', responded_by: fay.email };
      await must((await person(fay))('POST', `/packets/${id}/respond`, { body: fays }));
      const other = await asked('wire');
      await must(danas('POST', `/packets/${other.id}/respond`, approve(dana)));
    });
  });

  describe(`A name that is released, with what acted in it, on ${store.name}`, () => {
    test('is refused while a key, a channel or a schedule acts for the person, and takes no standing approval or delegation along [H452]', async (t) => {
      const { clock, service, must, person, asked, policy } = await start(t, store, { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
      await policy('refund', { from: [dana.email] }, { remember: { scope: 'tool', max_seconds: 86_400 } });
      const danas = await person(dana);
      const first = await asked('refund');
      const remember = { scope: 'tool', seconds: 86_400 };
      const body = { decision: 'approve', responded_by: dana.email, remember };
      await must(danas('POST', `/packets/${first.id}/respond`, { body }));
      assert.equal((await asked('refund')).status, 'claimed', 'it stands');
      const until = '2099-01-01T00:00:00.000Z';
      for (const [from, to] of [
        [dana.email, fay.email],
        ['eli', dana.email],
        ['eva', 'eli'],
      ])
        await must(service.call('PUT', `/delegations/${from}`, { body: { to, until } }));
      const key = await must(danas('POST', '/keys', { body: { name: 'mine', responder: dana.email } }));
      const target = (await startReceiver(t, 200)).url;
      const channel = await must(danas('POST', '/channels', { body: { kind: 'slack', target } }));
      await must(danas('PUT', '/schedules/daily', { body: { cron: '0 0 * * *', timezone: 'UTC', packet: packetRequest() } }));
      clock.turn(1);
      const release = () => service.call('POST', `/people/${dana.email}/release`);
      const refused = await release();
      assert.equal(refused.status, 409, refused.text);
      assert.ok(
        [key.id, channel.id, '"daily"'].every((one) => refused.body.detail.includes(one)),
        refused.text,
      );
      assert.equal((await danas('GET', '/keys/self')).status, 200, 'nothing has changed');
      assert.equal((await asked('refund')).status, 'claimed');
      for (const path of [`/keys/${key.id}`, `/channels/${channel.id}`, '/schedules/daily']) await must(service.call('DELETE', path));
      await must(release());
      await person({ ...dana, sub: 'another dana' });
      const later = await asked('refund');
      assert.equal(later.status, 'awaiting_human');
      assert.deepEqual((await must(service.call('GET', '/standing-approvals'))).standing_approvals, []);
      const { delegations } = await must(service.call('GET', '/delegations'));
      assert.deepEqual(
        delegations.map(({ person: whose }: { person: string }) => whose),
        ['eva'],
      );
    });
  });

  describe(`A person whom the provider lets in no more, on ${store.name}`, () => {
    test('loses the groups and the open links with the last session, until the next sign-in [H453]', async (t) => {
      const { clock, issuer, service, must, person, asked, policy, page } = await start(t, store, {
        SERVICE_OIDC_RIGHTS: '{"idp:ops": ["read", "work", "respond", "manage"]}',
      });
      await policy('refund', { from: ['group:idp:ops'] }, { remember: { scope: 'tool', max_seconds: 86_400 } });
      const danas = await person(dana);
      const first = await asked('refund');
      const remember = { scope: 'tool', seconds: 86_400 };
      await must(danas('POST', `/packets/${first.id}/respond`, { body: { decision: 'approve', responded_by: dana.email, remember } }));
      const { id } = await createPacket(service, { hitl: question });
      await must(service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } }));
      const { url } = await must(service.call('POST', `/packets/${id}/answer-links`, { body: { responder: dana.email } }));
      assert.deepEqual([(await asked('refund')).status, (await page(url)).status], ['claimed', 200]);
      const [token] = [...issuer.people.keys()];
      issuer.people.delete(token!);
      clock.turn(10 * 60);
      const elsewhere = await person({ ...dana, sid: 'another session' });
      clock.turn(6 * 60);
      assert.equal((await danas('GET', '/keys/self')).status, 401);
      assert.deepEqual([(await asked('refund')).status, (await page(url)).status], ['claimed', 200], 'there is another session');
      issuer.people.clear();
      clock.turn(10 * 60);
      assert.equal((await elsewhere('GET', '/keys/self')).status, 401);
      assert.equal((await asked('refund')).status, 'awaiting_human');
      assert.notEqual((await page(url)).status, 200);
      await person(dana);
      assert.equal((await asked('refund')).status, 'claimed', 'who is let in again');
      assert.notEqual((await page(url)).status, 200);
    });

    test('neither sees a question by a link nor answers by it once the right to answer is lost, by a link of a channel too [H454]', async (t) => {
      const { service, must, person, page } = await start(t, store, {
        SERVICE_OIDC_RIGHTS: '{"idp:ops": ["read", "work", "respond", "manage"]}',
        SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
      });
      const receiver = await startReceiver(t, 200);
      const danas = await person(dana);
      await must(danas('POST', '/channels', { body: { kind: 'slack', target: receiver.url, responder: dana.email } }));
      const { id } = await createPacket(service, { hitl: { ...question, responder: dana.email } });
      await must(service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } }));
      await service.handoff.runOnce.deliver();
      const sent = receiver.posts.flatMap(({ body }) => body.match(/http:\/\/127[^\s"|>\\]*\/answer\/[0-9a-f]{96}/g) ?? []).at(-1);
      const { url } = await must(danas('POST', `/packets/${id}/answer-links`, { body: {} }));
      const pages = async () => Promise.all([sent!, url].map(async (one) => (await page(one)).status));
      assert.deepEqual(await pages(), [200, 200]);
      await person({ ...dana, groups: [] });
      assert.deepEqual(await pages(), [404, 404]);
    });
  });
}
