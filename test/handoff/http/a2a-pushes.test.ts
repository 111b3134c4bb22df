import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';

import { a2a, messageOf } from '../../support/a2a.ts';
import { packetIn, unknownId } from '../../support/life.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, newTenant, startService, type TestService } from '../../support/service.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';
import { deliveriesOf, register, shareHooked, startHooked } from '../../support/webhooks.ts';

const token = 'a-token-for-tests-0123456789';

/** Adds a push notification configuration. */
async function put(service: TestService, taskId: string, config: object, key?: string): Promise<void> {
  const made = await a2a(service, 'CreateTaskPushNotificationConfig', { taskId, token, ...config }, key === undefined ? {} : { key });
  assert.equal(made.body.error, undefined, made.text);
}
const idsOf = async (service: TestService, taskId: string): Promise<string[]> => {
  const { body, text } = await a2a(service, 'ListTaskPushNotificationConfigs', { taskId });
  assert.notEqual(body.result, undefined, text);
  return (body.result.configs ?? []).map(({ id }: { id: string }) => id);
};

for (const store of stores) {
  describe(`Push notifications of A2A on ${store.name}`, () => {
    test('send the task to the receiver of its configuration, signed with the token and with its credentials', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t);
      const authentication = { scheme: 'Bearer', credentials: 'credentials-of-the-receiver' };
      const config = { id: 'mine', url: receiver.url, token, authentication };
      const sent = await a2a(service, 'SendMessage', messageOf('Refund order 4711', {}, { taskPushNotificationConfig: config }));
      const { id } = sent.body.result.task;
      const other = await createPacket(service);
      await service.call('POST', `/packets/${other.id}/claim`, { body: { agent_id: 'resolver' } });
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      await service.handoff.runOnce.deliver();
      const [{ headers, body }] = receiver.posts as [(typeof receiver.posts)[0]];
      const { task } = JSON.parse(body);
      assert.deepEqual([task.id, task.contextId, task.status.state], [id, id, 'TASK_STATE_WORKING']);
      assert.equal(headers['x-service-signature'], `sha256=${createHmac('sha256', token).update(body).digest('hex')}`);
      assert.deepEqual([headers['x-a2a-notification-token'], headers.authorization], [token, 'Bearer credentials-of-the-receiver']);
      await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 1, 'nobody is notified of the other packet');

      const shown = await a2a(service, 'GetTaskPushNotificationConfig', { taskId: id, id: 'mine' });
      assert.deepEqual([shown.body.result.url, shown.body.result.authentication.scheme], [receiver.url, 'Bearer']);
      assert.ok(!`${shown.text}${service.logs.join()}`.includes(token));
      assert.ok(!`${shown.text}${service.logs.join()}`.includes(authentication.credentials));
    });

    test('have one configuration of an id and at most ten, also when they are set at the same time', async (t) => {
      const service = await shareHooked(t, store);
      const { id } = await createPacket(service);
      const url = 'http://127.0.0.1:9/';
      await Promise.all(Array.from({ length: 4 }, () => put(service, id, { id: 'same', url })));
      assert.deepEqual(await idsOf(service, id), ['same']);
      const answers = await Promise.all(
        Array.from({ length: 14 }, (_, index) =>
          a2a(service, 'CreateTaskPushNotificationConfig', { taskId: id, token, id: `push ${index}`, url }),
        ),
      );
      assert.equal(answers.filter(({ body }) => body.error === undefined).length, 9);
      assert.equal((await idsOf(service, id)).length, 10);
    });

    test('end with the key that set their configuration', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t);
      const { body: own } = await service.call('POST', '/keys', { body: { name: 'worker', scopes: ['read', 'work'] } });
      const { id } = await createPacket(service);
      await put(service, id, { id: 'mine', url: receiver.url }, own.key);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 1);
      await service.call('DELETE', `/keys/${own.id}`);
      await service.call('POST', `/packets/${id}/release`, { headers: { 'x-agent-id': 'resolver' } });
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 1);
    });

    test('are sent and listed whatever a caller has written into context.custom.a2a', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t);
      for (const own of [{ artifacts: 5 }, { artifacts: [1], message_id: 7 }, 'text', null, [1]]) {
        const { id } = await createPacket(service, { context: { summary: 'Work', custom: { a2a: own } } });
        await put(service, id, { id: 'mine', url: receiver.url });
        await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      }
      for (let round = 0; round < 3; round += 1) await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 5);
      const { body, text } = await a2a(service, 'ListTasks', {});
      assert.equal(body.result?.tasks.length, 5, text);
    });

    test('are retried, become dead letters and are replayed like deliveries to webhooks [H107]', async (t) => {
      const service = await shareHooked(t, store, { SERVICE_WEBHOOK_RETRY_SECONDS: '60' });
      const receiver = await startReceiver(t, 500, 204);
      const { id } = await createPacket(service);
      await put(service, id, { id: 'mine', url: receiver.url });
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      await service.handoff.runOnce.deliver();
      const { body: dead, text } = await service.call('GET', '/hooks/dlq');
      assert.deepEqual([dead.length, dead[0]?.packet_id, dead[0]?.last_status_code], [1, id, 500], text);
      const replayed = await service.call('POST', `/hooks/dlq/${dead[0].id}/replay`);
      assert.equal(replayed.status, 200, replayed.text);
      await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 2);
      const [{ status }] = (await deliveriesOf(service, dead[0].webhook_id)) as [{ status: string }];
      assert.equal(status, 'delivered');
    });

    test('end with their configuration; a configuration is replaced by its id, and deleting it twice is no error [H107]', async (t) => {
      const service = await shareHooked(t, store);
      const [first, second] = [await startReceiver(t), await startReceiver(t)];
      const { id } = await createPacket(service);
      await put(service, id, { id: 'mine', url: first.url });
      await put(service, id, { id: 'mine', url: second.url });
      await put(service, id, { id: 'other', url: first.url });
      assert.deepEqual(await idsOf(service, id), ['mine', 'other']);
      for (const _ of [1, 2]) {
        const gone = await a2a(service, 'DeleteTaskPushNotificationConfig', { taskId: id, id: 'other' });
        assert.equal(gone.body.error, undefined, gone.text);
      }
      assert.deepEqual(await idsOf(service, id), ['mine']);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      await service.handoff.runOnce.deliver();
      assert.deepEqual([first.posts.length, second.posts.length], [0, 1]);
      assert.deepEqual((await service.call('GET', '/hooks')).body, [], 'lists of webhooks leave them out');
      const { body } = await service.call('GET', `/audit?limit=200`);
      const notes = body.entries.filter(({ resource }: { resource: string }) => resource === 'webhook');
      assert.deepEqual(
        notes.map(({ action }: { action: string }) => action),
        ['deleted', 'created', 'updated', 'created'],
      );
    });

    test('go with a packet that is deleted permanently', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t);
      const { id } = await createPacket(service);
      await put(service, id, { id: 'mine', url: receiver.url });
      const { body } = await service.call('GET', '/audit?action=created');
      const webhookId = body.entries.find(({ resource }: { resource: string }) => resource === 'webhook').details.webhook_id;
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      assert.equal((await service.call('GET', `/hooks/${webhookId}/deliveries`)).status, 404);
      await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 0);
    });

    test('are refused with a sentence that names the field, to forbidden addresses, and beyond ten of a task', async (t) => {
      const service = await shareHooked(t, store);
      const { id: taskId } = await createPacket(service);
      const good = { taskId, id: 'mine', url: 'http://127.0.0.1:9/', token };
      const cases: [object, RegExp][] = [
        [{ token: 'short' }, /token must have 16/],
        [{ token: undefined }, /token must have 16/],
        [{ token: 'a-token-with-a-line\r\nX-Other: 1' }, /token/],
        [{ url: '' }, /url/],
        [{ url: 'https://10.0.0.1/' }, /The URL/],
        [{ url: 'https://169.254.169.254/' }, /The URL/],
        [{ url: `https://example.com/${'x'.repeat(3000)}` }, /url/],
        [{ id: 'x'.repeat(256) }, /id must/],
        [{ authentication: { scheme: 'Bearer x', credentials: '' } }, /authentication\.scheme/],
        [{ authentication: { scheme: 'Bearer', credentials: 'a\nb' } }, /authentication\.credentials/],
      ];
      for (const [changes, sentence] of cases) {
        const refused = await a2a(service, 'CreateTaskPushNotificationConfig', { ...good, ...changes });
        assert.equal(refused.body.error?.code, -32602, refused.text);
        assert.match(refused.body.error.message, sentence);
        const { taskId: _, ...config } = { ...good, ...changes };
        const message = messageOf('Not created', {}, { taskPushNotificationConfig: config });
        assert.match((await a2a(service, 'SendMessage', message)).body.error?.message ?? '', sentence);
      }
      assert.equal((await service.call('GET', '/packets')).body.packets.length, 1, 'nothing is created');
      for (let count = 0; count < 10; count += 1) await put(service, taskId, { id: `number-${count}`, url: good.url });
      assert.match((await a2a(service, 'CreateTaskPushNotificationConfig', good)).text, /10 push notification configurations/);
      const reader = (await service.call('POST', '/keys', { body: { name: 'reader', scopes: ['read'] } })).body.key;
      for (const method of ['CreateTaskPushNotificationConfig', 'DeleteTaskPushNotificationConfig'])
        assert.match((await a2a(service, method, good, { key: reader })).text, /scope work/, method);
    });

    test("show another tenant's tasks exactly like unknown ones", async (t) => {
      const service = await shareHooked(t, store);
      const { key } = await newTenant(service);
      const { id } = await createPacket(service);
      await put(service, id, { id: 'mine', url: 'http://127.0.0.1:9/' });
      for (const method of ['Create', 'Get', 'Delete', 'List'].map(
        (verb) => `${verb}TaskPushNotificationConfig${verb === 'List' ? 's' : ''}`,
      )) {
        const params = { id: 'mine', url: 'http://127.0.0.1:9/', token };
        const foreign = await a2a(service, method, { ...params, taskId: id }, { key });
        assert.equal(foreign.body.error?.code, -32001, `${method}: ${foreign.text}`);
        assert.equal(foreign.text, (await a2a(service, method, { ...params, taskId: unknownId }, { key })).text, method);
      }
      assert.deepEqual(await idsOf(service, id), ['mine']);
    });

    test('do not count as webhooks of the tenant', async (t) => {
      const service = await shareHooked(t, store);
      const { id } = await createPacket(service);
      await put(service, id, { id: 'mine', url: 'http://127.0.0.1:9/' });
      for (let count = 0; count < 100; count += 1) await register(service, 'http://127.0.0.1:9/');
      assert.equal((await service.call('GET', '/hooks')).body.length, 100);
    });
  });
}

for (const store of storesOfSeveral) {
  test(`Push notifications of A2A on ${store.name} survive a restart, and report what another instance does`, async (t) => {
    const receiver = await startReceiver(t);
    const first = await startHooked(t, { store });
    const id = (await packetIn(first, 'awaiting_human')).id;
    await put(first, id, { id: 'mine', url: receiver.url });
    await first.handoff.stop();
    const second = await startHooked(t, { databaseUrl: first.databaseUrl, clock: first.clock });
    const third = await startService(t, { databaseUrl: first.databaseUrl, clock: first.clock });
    const answered = await a2a(third, 'SendMessage', messageOf('Yes', { taskId: id }));
    assert.equal(answered.body.error, undefined, answered.text);
    await second.handoff.runOnce.deliver();
    assert.equal(receiver.posts.length, 1);
    assert.equal(JSON.parse(receiver.posts[0]!.body).task.status.state, 'TASK_STATE_WORKING');
  });
}
