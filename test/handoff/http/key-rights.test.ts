import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { question } from '../../support/life.ts';
import { adminKey, createPacket, newTenant, packetRequest, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const allScopes = ['read', 'work', 'respond', 'manage'];

/** Creates a key of the tenant of `by`, and returns its value. */
async function keyWith(service: TestService, by: string, rights: Record<string, unknown>): Promise<string> {
  const { status, text, body } = await service.call('POST', '/keys', { key: by, body: { name: 'restricted', ...rights } });
  assert.equal(status, 201, text);
  return body.key;
}

const refused = ({ status, body }: TestAnswer, pattern: RegExp, about = '') => {
  assert.equal(status, 403, about);
  assert.equal(body.code, 'FORBIDDEN', about);
  assert.match(body.detail, pattern, about);
};

for (const store of stores) {
  describe(`The scopes of a key on ${store.name}`, () => {
    test('GET /keys/self returns the rights and the tenant of any key; without a valid key it is 401 [H211]', async () => {
      const service = await shareService(store);
      const tenant = await newTenant(service);
      const own = { scopes: ['respond'], agents: ['resolver'], responder: 'dana' };
      const key = await keyWith(service, tenant.key, own);
      const { status, body } = await service.call('GET', '/keys/self', { key });
      assert.equal(status, 200);
      const { scopes, agents, responder } = body;
      assert.deepEqual({ scopes, agents, responder }, own);
      assert.deepEqual(body.tenant, { id: tenant.id, name: 'Acme', tier: 'business' });
      assert.equal(body.prefix, key.slice(0, 8));
      assert.ok(!JSON.stringify(body).includes(key));
      await service.call('DELETE', `/keys/${body.id}`, { key: tenant.key });
      for (const refused of [key, null, 'svc_wrong']) assert.equal((await service.call('GET', '/keys/self', { key: refused })).status, 401);
    });

    test('a key shows its rights when it is created, rotated and listed; without restrictions it has all of them [H194]', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service);
      const rights = { scopes: ['respond', 'read'], agents: ['desk'], responder: 'dana@example.com' };
      const made = await service.call('POST', '/keys', { key, body: { name: 'desk', ...rights } });
      assert.equal(made.status, 201);
      const shown = { scopes: ['read', 'respond'], agents: ['desk'], responder: 'dana@example.com' };
      const rightsIn = ({ scopes, agents, responder }: Record<string, unknown>) => ({ scopes, agents, responder });
      assert.deepEqual(rightsIn(made.body), shown);
      const rotated = await service.call('POST', `/keys/${made.body.id}/rotate`, { key });
      assert.equal(rotated.status, 201);
      assert.deepEqual(rightsIn(rotated.body), shown);
      const listed = await service.call('GET', '/keys', { key });
      assert.equal(listed.status, 200);
      const byId = new Map<string, Record<string, unknown>>(listed.body.map((one: { id: string }) => [one.id, one]));
      assert.deepEqual(rightsIn(byId.get(keyId)!), { scopes: allScopes, agents: null, responder: null });
      for (const { id } of [made.body, rotated.body]) assert.deepEqual(rightsIn(byId.get(id)!), shown);
      const { body: audit } = await service.call('GET', '/audit?action=created', { key });
      assert.deepEqual(rightsIn(audit.entries[0].details), shown);
      refused(await service.call('POST', '/packets', { key: rotated.body.key, body: packetRequest() }), /scope work/);
    });

    test('a key gets the rights of the key that creates it, or fewer [H194]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { max_api_keys: 20 });
      const rights = { scopes: ['read', 'manage'], agents: ['a', 'b'], responder: 'dana' };
      const manager = await keyWith(service, key, rights);
      const create = (body: object) => service.call('POST', '/keys', { key: manager, body: { name: 'made', ...body } });
      const same = await create({});
      assert.equal(same.status, 201);
      assert.deepEqual([same.body.scopes, same.body.agents, same.body.responder], [rights.scopes, rights.agents, rights.responder]);
      assert.deepEqual((await create({ scopes: ['read'], agents: ['b'] })).body.agents, ['b']);
      refused(await create({ scopes: ['read', 'respond'] }), /lacks the scope respond/);
      refused(await create({ agents: ['b', 'c'] }), /only act as a, b/);
      refused(await create({ responder: 'mia' }), /answers as dana/);
    });

    test('a key neither rotates nor revokes a key with more rights [H194]', async () => {
      const service = await shareService(store);
      const { key, keyId, id: tenant_id } = await newTenant(service, { max_api_keys: 20 });
      const manager = await keyWith(service, key, { scopes: ['read', 'manage'] });
      const { body: admin } = await service.call('POST', '/keys', { body: { name: 'admin', admin: true, tenant_id } });
      const { body: reader } = await service.call('POST', '/keys', { key: manager, body: { name: 'reader', scopes: ['read'] } });
      const bound = await keyWith(service, key, { scopes: ['read', 'manage'], agents: ['a'] });
      const managing = async (by: string, id: string, pattern: RegExp) => {
        refused(await service.call('POST', `/keys/${id}/rotate`, { key: by }), pattern);
        refused(await service.call('DELETE', `/keys/${id}`, { key: by }), pattern);
      };
      await managing(manager, keyId, /lacks the scope work, respond/);
      // Nor does one with all rights but that one.
      for (const by of [manager, key]) await managing(by, admin.id, /Only an admin key/);
      await managing(bound, reader.id, /may only act as a/);
      assert.equal((await service.call('GET', '/keys', { key })).status, 200);
      assert.equal((await service.call('GET', '/keys', { key: admin.key })).status, 200);
      assert.equal((await service.call('POST', `/keys/${reader.id}/rotate`, { key: manager })).status, 201);
      assert.equal((await service.call('DELETE', `/keys/${reader.id}`, { key: manager })).status, 204);
    });
  });

  describe(`The agents of a key on ${store.name}`, () => {
    test('may be the source and the claimant of packets; in a batch another source is refused by itself [H195]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service);
      const resolver = await keyWith(service, key, { agents: ['resolver'] });
      const call = (path: string, body: object) => service.call('POST', path, { key: resolver, body });
      const { id } = await createPacket(service, {}, key);
      const foreign = packetRequest();
      const source = { id: 'resolver', name: 'Resolver', framework: 'x' };
      const own = packetRequest({ metadata: { ...(foreign.metadata as object), source_agent: source } });
      const { body } = await call('/packets/batch', { packets: [foreign, own] });
      assert.deepEqual([body.created.length, body.errors[0].index, body.errors[0].code], [1, 0, 'FORBIDDEN']);
      assert.equal((await call('/packets', own)).status, 201);
      assert.equal((await call(`/packets/${id}/claim`, { agent_id: 'resolver' })).status, 200);
    });

    test('are the actor of its changes: the only one by itself, one of several only when the request names it [H195]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service);
      const one = await keyWith(service, key, { agents: ['helper'] });
      const two = await keyWith(service, key, { agents: ['helper', 'other'] });
      const { id } = await createPacket(service, {}, key);
      await service.call('POST', `/packets/${id}/claim`, { key, body: { agent_id: 'resolver' } });
      const change = (by: string, headers = {}) =>
        service.call('PATCH', `/packets/${id}`, { key: by, headers, body: { metadata: { tags: [] } } });
      assert.equal((await change(one)).status, 200);
      refused(await change(two), /Name the agent that acts/);
      assert.equal((await change(two, { 'x-agent-id': 'other' })).status, 200);
      // Not the claimant, whom a key without agents is taken for.
      refused(await service.call('POST', `/packets/${id}/release`, { key: one }), /Only the agent that holds the packet/);
      const { body } = await service.call('GET', `/packets/${id}/history`, { key });
      const actors = body.events.map(({ event_type, actor }: Record<string, string>) => `${event_type} ${actor}`);
      assert.deepEqual(actors, ['created agent:frontline', 'claimed agent:resolver', 'updated agent:helper', 'updated agent:other']);
    });
  });

  test(`The responder of a key on ${store.name} is the only name that its answers carry [H195]`, async () => {
    const service = await shareService(store);
    const { key } = await newTenant(service);
    const desk = await keyWith(service, key, { scopes: ['read', 'respond'], responder: 'dana@example.com' });
    const { id } = await createPacket(service, { hitl: question }, key);
    await service.call('PATCH', `/packets/${id}`, { key, body: { status: 'awaiting_human' } });
    const answerAs = (responded_by: string) =>
      service.call('POST', `/packets/${id}/respond`, { key: desk, body: { response: 'Yes', responded_by } });
    const wrong = await answerAs('mia');
    refused(wrong, /may only answer as dana@example.com/);
    assert.equal(wrong.body.field, 'responded_by');
    assert.equal((await service.call('GET', `/packets/${id}`, { key })).body.status, 'awaiting_human');
    assert.equal((await answerAs('dana@example.com')).status, 200);
  });

  describe(`hitl.exclude_source on ${store.name}`, () => {
    const excluding = { ...question, exclude_source: true };
    const ask = { status: 'awaiting_human', hitl: excluding };
    const answerWith = (service: TestService, key: string, id: string) =>
      service.call('POST', `/packets/${id}/respond`, { key, body: { response: 'Yes', responded_by: 'dana' } });
    /** A tenant's first key, three more, and a packet that the second has created, the third claimed, and the first asked about. */
    async function asked(service: TestService) {
      const { key, keyId, id: tenant_id } = await newTenant(service, { max_api_keys: 20 });
      const [creator, claimer, person] = [
        await keyWith(service, adminKey, { tenant_id }),
        await keyWith(service, adminKey, { tenant_id }),
        await keyWith(service, adminKey, { tenant_id }),
      ];
      const { id } = await createPacket(service, {}, creator);
      await service.call('POST', `/packets/${id}/claim`, { key: claimer, body: { agent_id: 'resolver' } });
      const answer = await service.call('PATCH', `/packets/${id}`, { key, body: ask });
      assert.equal(answer.status, 200);
      return { id, asker: key, askerId: keyId, creator, claimer, person };
    }

    test('refuses the answer of a key that created or claimed the packet, or asked; another key answers [H197]', async () => {
      const service = await shareService(store);
      const { id, asker, creator, claimer, person } = await asked(service);
      for (const key of [asker, creator, claimer]) refused(await answerWith(service, key, id), /must be answered with another key/);
      const before = await service.call('GET', `/packets/${id}`, { key: person });
      assert.equal(before.body.status, 'awaiting_human');
      assert.equal((await answerWith(service, person, id)).status, 200);
      const { body } = await service.call('GET', `/packets/${id}/history`, { key: person });
      const keys = body.events.map(({ key_id }: { key_id: string }) => key_id);
      assert.equal(new Set(keys).size, 4);
    });

    test('refuses the key that replaced one of those, although that is revoked [H197]', async () => {
      const service = await shareService(store);
      const { id, asker, askerId } = await asked(service);
      const { body: second } = await service.call('POST', `/keys/${askerId}/rotate`, { key: asker });
      const { body: third } = await service.call('POST', `/keys/${second.id}/rotate`, { key: second.key });
      assert.equal((await service.call('DELETE', `/keys/${askerId}`, { key: third.key })).status, 204);
      for (const { key } of [second, third]) refused(await answerWith(service, key, id), /must be answered with another key/);
    });

    test('refuses the keys that one of those replaced, while they are valid [H197]', async () => {
      const service = await shareService(store);
      const { key, keyId } = await newTenant(service, { max_api_keys: 20 });
      const { body: second } = await service.call('POST', `/keys/${keyId}/rotate`, { key });
      const { body: third } = await service.call('POST', `/keys/${second.id}/rotate`, { key: second.key });
      const { id } = await createPacket(service, { hitl: excluding }, third.key);
      await service.call('PATCH', `/packets/${id}`, { key: third.key, body: { status: 'awaiting_human' } });
      for (const earlier of [key, second.key]) refused(await answerWith(service, earlier, id), /must be answered with another key/);
    });

    test('refuses the admin key that made a key which asked [H197]', async () => {
      const service = await shareService(store);
      const asker = await keyWith(service, service.key, {});
      const { id } = await createPacket(service, { hitl: excluding }, asker);
      assert.equal((await service.call('PATCH', `/packets/${id}`, { key: asker, body: { status: 'awaiting_human' } })).status, 200);
      refused(await answerWith(service, service.key, id), /must be answered with another key/);
      assert.equal((await answerWith(service, await keyWith(service, service.key, {}), id)).status, 200);
    });

    test('refuses a key that changed the question [H197]', async () => {
      const service = await shareService(store);
      const { id, person } = await asked(service);
      const question = { ...excluding, question: 'Refund everything?' };
      assert.equal((await service.call('PATCH', `/packets/${id}`, { key: person, body: { hitl: question } })).status, 200);
      refused(await answerWith(service, person, id), /must be answered with another key/);
    });

    test('cannot be lifted while the question is open, by any key [H197]', async () => {
      const service = await shareService(store);
      const { id, asker, person } = await asked(service);
      const lift = (key: string) => service.call('PATCH', `/packets/${id}`, { key, body: { hitl: { exclude_source: false } } });
      refused(await lift(asker), /must be changed with another key/);
      const lifted = await lift(person);
      refused(lifted, /cannot be lifted/);
      assert.equal(lifted.body.field, 'hitl.exclude_source');
      assert.equal((await answerWith(service, person, id)).status, 200);
      assert.equal((await lift(asker)).body.code, 'ANSWERED');
    });

    test('keeps its sources from withdrawing or changing the open question, in any way; another key may [H197]', async () => {
      const service = await shareService(store);
      const { id, asker, creator, claimer, person } = await asked(service);
      const before = (await service.call('GET', `/packets/${id}`, { key: person })).body;
      for (const key of [asker, creator, claimer]) {
        refused(await service.call('DELETE', `/packets/${id}/question`, { key }), /must be withdrawn with another key/);
        for (const body of [
          { hitl: null },
          { hitl: { required: false } },
          { hitl: { question: 'Something harmless?' } },
          { hitl: { ...excluding, options: ['Yes'] } },
          { status: 'in_progress', hitl: null },
          { status: 'failed', hitl: null },
          { status: 'awaiting_human', hitl: excluding },
        ])
          refused(await service.call('PATCH', `/packets/${id}`, { key, body }), /must be changed with another key/, JSON.stringify(body));
        for (const [path, body] of [
          ['/packets/batch/complete', { packet_ids: [id] }],
          ['/packets/batch/claim', { packet_ids: [id], agent_id: 'resolver' }],
        ] as const)
          assert.equal((await service.call('POST', path, { key, body })).body.errors.length, 1);
        for (const tail of ['/release', '/claim'])
          assert.equal((await service.call('POST', `/packets/${id}${tail}`, { key, body: { agent_id: 'resolver' } })).status, 409);
        assert.equal((await service.call('PATCH', `/packets/${id}`, { key, body: { status: 'completed' } })).status, 400);
      }
      assert.deepEqual((await service.call('GET', `/packets/${id}`, { key: person })).body, before);
      // The work itself may go on, and whoever answers sees it.
      assert.equal((await service.call('PATCH', `/packets/${id}`, { key: asker, body: { context: { summary: 'More.' } } })).status, 200);
      assert.equal((await service.call('DELETE', `/packets/${id}/question`, { key: person })).status, 200);
    });

    test('keeps its sources from lifting the question before it is asked, but not from giving the packet up [H197]', async () => {
      const service = await shareService(store);
      const { key, id: tenant_id } = await newTenant(service, { max_api_keys: 20 });
      const claimer = await keyWith(service, adminKey, { tenant_id });
      const { id } = await createPacket(service, { hitl: { ...excluding, required: true } }, key);
      await service.call('POST', `/packets/${id}/claim`, { key: claimer, body: { agent_id: 'resolver' } });
      const patch = (as: string, body: object) => service.call('PATCH', `/packets/${id}`, { key: as, body });
      for (const as of [key, claimer])
        for (const hitl of [null, { required: false }, { exclude_source: false }]) {
          refused(await patch(as, { hitl }), /must be changed with another key/);
          refused(await patch(as, { status: 'completed', hitl }), /must be changed with another key/);
          refused(await patch(as, { status: 'awaiting_human', hitl }), /must be changed with another key/);
        }
      assert.equal((await patch(claimer, { status: 'completed' })).status, 400);
      assert.equal((await patch(key, { hitl: { question: 'Refund 59.90 to the card?' } })).status, 200);
      assert.equal((await patch(claimer, { status: 'awaiting_human' })).status, 200);
      assert.equal((await patch(claimer, { status: 'failed' })).status, 200);
    });

    test('refuses the keys that a source created, and those that they created, by every way of answering [H197]', async () => {
      const service = await shareService(store);
      const { id, asker } = await asked(service);
      const { body: child } = await service.call('POST', '/keys', { key: asker, body: { name: 'dana', responder: 'dana' } });
      const { body: rotated } = await service.call('POST', `/keys/${child.id}/rotate`, { key: asker });
      const grandchild = await keyWith(service, rotated.key, { scopes: ['respond'], responder: 'dana' });
      for (const key of [child.key, rotated.key, grandchild]) {
        refused(await answerWith(service, key, id), /a key of its family/);
        refused(await service.call('POST', `/packets/${id}/answer-links`, { key }), /a key of its family/);
      }
      refused(await service.call('DELETE', `/packets/${id}/question`, { key: child.key }), /a key of its family/);
    });

    test('refuses the key that made the key that asked, and keys that the same key made, unless an admin key made them [H197]', async () => {
      const service = await shareService(store);
      const { key, id: tenant_id } = await newTenant(service, { max_api_keys: 20 });
      const agent = await keyWith(service, key, { scopes: ['read', 'work'] });
      const sibling = await keyWith(service, key, { scopes: ['read', 'respond'] });
      const niece = await keyWith(service, await keyWith(service, key, {}), {});
      const { body: admin } = await service.call('POST', '/keys', { body: { name: 'admin', admin: true, tenant_id } });
      const other = await keyWith(service, admin.key, {});
      const { id } = await createPacket(service, { hitl: excluding }, agent);
      await service.call('PATCH', `/packets/${id}`, { key: agent, body: { status: 'awaiting_human' } });
      for (const refusedKey of [key, sibling, niece]) refused(await answerWith(service, refusedKey, id), /a key of its family/);
      assert.equal((await answerWith(service, other, id)).status, 200);
    });

    test('refuses an admin key that asked, and the keys that it made', async () => {
      const service = await shareService(store);
      const { id: tenant_id } = await newTenant(service, { max_api_keys: 20 });
      const { body: admin } = await service.call('POST', '/keys', { body: { name: 'admin', admin: true, tenant_id } });
      const child = await keyWith(service, admin.key, {});
      const { body: deputy } = await service.call('POST', '/keys', { key: admin.key, body: { name: 'deputy', admin: true } });
      const grandchild = await keyWith(service, deputy.key, {});
      const { id } = await createPacket(service, { hitl: excluding }, admin.key);
      await service.call('PATCH', `/packets/${id}`, { key: admin.key, body: { status: 'awaiting_human' } });
      for (const key of [admin.key, child, deputy.key, grandchild]) refused(await answerWith(service, key, id), /a key of its family/);
      const person = await keyWith(service, adminKey, { tenant_id });
      assert.equal((await answerWith(service, person, id)).status, 200);
    });

    test('a key is created through at most 32 others [H197]', async () => {
      const service = await shareService(store);
      let { key } = await newTenant(service, { max_api_keys: 100 });
      const create = () => service.call('POST', '/keys', { key, body: { name: 'one more' } });
      let surplus = await create();
      let made = 0;
      for (; surplus.status === 201; made += 1) {
        key = surplus.body.key;
        surplus = await create();
      }
      // The tenant's first key was created by an admin key, and that by the key of the setting.
      assert.equal(made, 30);
      assert.equal(surplus.status, 409);
      assert.match(surplus.body.detail, /created through 32 others/);
    });

    test('is left out or false by default: the key that asked may answer [H197]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service);
      const { id } = await createPacket(service, { hitl: question }, key);
      await service.call('PATCH', `/packets/${id}`, { key, body: { status: 'awaiting_human' } });
      assert.equal((await answerWith(service, key, id)).status, 200);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('The rights of a new key', () => {
  const store = stores[0]!;

  test('400 names the field: an unknown scope, an empty list, and a restriction of an admin key [H194]', async () => {
    const service = await shareService(store);
    for (const [body, field] of [
      [{ scopes: ['admin'] }, 'scopes.0'],
      [{ scopes: [] }, 'scopes'],
      [{ agents: [] }, 'agents'],
      [{ agents: [''] }, 'agents.0'],
      [{ responder: '' }, 'responder'],
      [{ admin: true, scopes: ['read'] }, 'scopes'],
      [{ admin: true, agents: ['a'] }, 'agents'],
      [{ admin: true, responder: 'dana' }, 'responder'],
    ] as const) {
      const answer = await service.call('POST', '/keys', { body: { name: 'x', ...body } });
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.equal(answer.body.field, field);
    }
  });
});
