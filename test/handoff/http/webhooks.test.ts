import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { unknownId } from '../../support/life.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, newTenant } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';
import { register, secret, shareHooked } from '../../support/webhooks.ts';

const url = 'http://127.0.0.1:9/hook';
const allEvents = [
  ...['packet.created', 'packet.claimed', 'packet.in_progress', 'packet.awaiting_human'],
  ...['packet.completed', 'packet.failed', 'packet.expired', 'hitl.response_ready'],
];
/** A secret in the form of Standard Webhooks, with a key of so many bytes. */
const encodedSecret = (bytes: number): string => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`;

for (const store of stores) {
  describe(`Webhooks on ${store.name}`, () => {
    test('201: the webhook as registered, with all eight events by default and without its secret [H123, H72]', async (t) => {
      const service = await shareHooked(t, store);
      const made = await service.call('POST', '/hooks', { body: { url, secret, events: null } });
      assert.equal(made.status, 201);
      const { id, created_at } = made.body;
      assert.deepEqual(made.body, { id, url, events: allEvents, active: true, disabled_reason: null, created_at });
      const second = await register(service, url, { events: ['packet.failed', 'packet.created', 'packet.failed'] });
      assert.deepEqual(second.events, ['packet.failed', 'packet.created']);
      const listed = await service.call('GET', '/hooks');
      assert.equal(listed.status, 200);
      assert.deepEqual(listed.body, [made.body, second]);
      assert.ok(!`${made.text}${listed.text}${service.logs.join()}`.includes(secret));
    });

    test('an Idempotency-Key registers one webhook; another request with it is 409 [H262]', async (t) => {
      const service = await shareHooked(t, store);
      const headers = { 'idempotency-key': 'once' };
      const first = await service.call('POST', '/hooks', { body: { url, secret }, headers });
      const again = await service.call('POST', '/hooks', { body: { url, secret }, headers });
      assert.deepEqual([first.status, again.status, again.text], [201, 201, first.text]);
      assert.deepEqual([first.headers['idempotency-replayed'], again.headers['idempotency-replayed']], [undefined, 'true']);
      const other = await service.call('POST', '/hooks', { body: { url, secret, events: ['packet.failed'] }, headers });
      assert.equal(other.status, 409);
      assert.equal((await service.call('GET', '/hooks')).body.length, 1);
    });

    test('PATCH changes the given fields, with the checks of registration and an audit entry; a removed one is unknown [H127, H140, H218]', async (t) => {
      const service = await shareHooked(t, store);
      const { id } = await register(service, url);
      const changed = await service.call('PATCH', `/hooks/${id}`, { body: { url: `${url}/2`, events: ['packet.failed'], active: false } });
      assert.equal(changed.status, 200);
      assert.deepEqual([changed.body.url, changed.body.events, changed.body.active], [`${url}/2`, ['packet.failed'], false]);
      assert.deepEqual((await service.call('GET', '/hooks')).body, [changed.body]);
      for (const body of [
        { url: 'https://10.0.0.1' },
        { events: [] },
        { secret: 'short' },
        { secret: 'whsec_is-not-base64!' },
        { active: 'yes' },
        { id: unknownId },
      ])
        assert.equal((await service.call('PATCH', `/hooks/${id}`, { body })).status, 400, JSON.stringify(body));
      assert.equal((await service.call('PATCH', `/hooks/${id}`, { body: {} })).status, 200);
      assert.equal((await service.call('DELETE', `/hooks/${id}`)).status, 204);
      assert.equal((await service.call('DELETE', `/hooks/${id}`)).status, 404);
      assert.deepEqual((await service.call('GET', '/hooks')).body, []);
      const { entries } = (await service.call('GET', '/audit')).body;
      const [{ id: keyId }] = (await service.call('GET', '/keys')).body;
      // In a shared service the trail of a tenant begins with its own creation and that of its key.
      const [key, tenant] = entries.splice(3);
      assert.deepEqual([entries.length, key.resource, tenant.resource], [3, 'api_key', 'tenant']);
      assert.deepEqual(
        entries.map(({ action, resource, actor, packet_id, details }: Record<string, unknown>) => [
          action,
          resource,
          actor,
          packet_id,
          details,
        ]),
        [
          ['deleted', 'webhook', `key:${keyId}`, null, { webhook_id: id }],
          ['updated', 'webhook', `key:${keyId}`, null, { webhook_id: id, fields: ['url', 'events', 'active'] }],
          ['created', 'webhook', `key:${keyId}`, null, { webhook_id: id, events: allEvents }],
        ],
      );
    });

    test('a tenant has at most 100 webhooks: 409 beyond [H140]', async (t) => {
      const service = await shareHooked(t, store);
      const made = await Promise.all(Array.from({ length: 105 }, () => service.call('POST', '/hooks', { body: { url, secret } })));
      const statuses = made.map(({ status }) => status);
      assert.deepEqual([statuses.filter((status) => status === 201).length, statuses.filter((status) => status === 409).length], [100, 5]);
    });

    test('a webhook gets only later events, of its event types and its own tenant [H123]', async (t) => {
      const receiver = await startReceiver(t);
      const service = await shareHooked(t, store);
      const { key } = await newTenant(service);
      const { id } = await createPacket(service);
      await register(service, receiver.url, { events: ['packet.claimed', 'hitl.response_ready'] });
      await register(service, `${receiver.url}/foreign`, {}, key);
      assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' } })).status, 200);
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'Changed' } } })).status, 200);
      const hitl = { required: true, reason: '', question: 'Go on?' };
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } })).status, 200);
      assert.equal((await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } })).status, 200);
      await createPacket(service, {}, key);
      await service.handoff.runOnce.deliver();
      assert.deepEqual(receiver.posts.map(({ path, headers }) => `${path} ${headers['x-service-event']}`).toSorted(), [
        '/hook hitl.response_ready',
        '/hook packet.claimed',
        '/hook/foreign packet.created',
      ]);
      const answered = JSON.parse(receiver.posts.find(({ headers }) => headers['x-service-event'] === 'hitl.response_ready')!.body);
      assert.deepEqual([answered.data.status, answered.data.hitl.response], ['claimed', 'Yes']);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('POST /hooks', () => {
  const store = stores[0]!;

  test('400 names the field: no or unknown events, a secret that is too short or too long, a forbidden address [H123, H126, H139]', async (t) => {
    const service = await shareHooked(t, store);
    const body = { url, secret };
    for (const [field, changes] of [
      ['events', { events: [] }],
      ['events.1', { events: ['packet.created', 'x'] }],
      ['events', { events: Array(10_000).fill('packet.created') }],
      ['secret', { secret: 'x'.repeat(15) }],
      ['secret', { secret: 'x'.repeat(1025) }],
      ['secret', { secret: undefined }],
      ['secret', { secret: 'whsec_is-not-base64!' }],
      ['secret', { secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk==' }],
      ['secret', { secret: encodedSecret(23) }],
      ['secret', { secret: encodedSecret(65) }],
      ['url', { url: undefined }],
      ['url', { url: 'http://example.com/hook' }],
      ['url', { url: 'ftp://example.com' }],
      ['url', { url: 'javascript:alert(1)' }],
      ['url', { url: 'example.com' }],
      ['url', { url: 'https://' }],
      ['url', { url: 'https://user:password@example.com' }],
      ['url', { url: 'https://example.com/#part' }],
      ['url', { url: `https://example.com/${'x'.repeat(3000)}` }],
      ['url', { url: 'https://example.com:0/' }],
      ['url', { url: 'https://example.com:99999/' }],
      ['url', { url: 'https://10.0.0.1/' }],
      ['url', { url: 'https://169.254.169.254/' }],
      ['url', { url: 'https://[::1]/' }],
      ['url', { url: 'https://localhost/' }],
      ['url', { url: 'https://2130706434/' }],
      ['mode', { mode: 'x' }],
    ] as const) {
      const answer = await service.call('POST', '/hooks', { body: { ...body, ...changes } });
      assert.equal(answer.status, 400, JSON.stringify(changes).slice(0, 100));
      assert.equal(answer.body.field, field, answer.text);
    }
    assert.deepEqual((await service.call('GET', '/hooks')).body, []);
    for (const allowed of ['x'.repeat(16), 'ü'.repeat(1024), encodedSecret(24), encodedSecret(64)])
      await register(service, url, { secret: allowed });
  });
});
