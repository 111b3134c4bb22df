import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type Message, Role, type SendMessageRequest, TaskState } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from '@a2a-js/sdk/client';

import { inMemory } from '../../support/store.ts';
import { shareHooked } from '../../support/webhooks.ts';

// The client of the official SDK, over both bindings that the card names.
for (const Transport of [JsonRpcTransportFactory, RestTransportFactory]) {
  describe(`The client of A2A's SDK with ${Transport.name}`, () => {
    let messages = 0;
    const messageOf = (text: string, fields: Partial<Message> = {}, configuration: object = {}): SendMessageRequest => {
      messages += 1;
      const message: Message = {
        messageId: `${Transport.name}-${messages}`,
        contextId: '',
        taskId: '',
        role: Role.ROLE_USER,
        parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
        metadata: { target_agent: 'resolver' },
        extensions: [],
        referenceTaskIds: [],
        ...fields,
      };
      const wait = { acceptedOutputModes: [], returnImmediately: true, taskPushNotificationConfig: undefined, historyLength: undefined };
      return { tenant: '', message, configuration: { ...wait, ...configuration }, metadata: undefined };
    };

    /** The tests' service as a client of the SDK finds it by its card. */
    async function connect(t: Pick<TestContext, 'after'>) {
      const service = await shareHooked(t, inMemory);
      const fetchImpl: typeof fetch = (input, init) =>
        fetch(input, { ...init, headers: { ...(init?.headers as object), 'x-api-key': service.key } });
      const factory = new ClientFactory({
        transports: [new Transport({ fetchImpl })],
        cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
      });
      return { service, client: await factory.createFromUrl(await service.listen()) };
    }
    const stateOf = (task: { status: { state: TaskState } | undefined }) => TaskState[task.status!.state];

    test('sends a message, reads, lists and cancels its task, and gets the extended card', async (t) => {
      const { client } = await connect(t);
      const sent = await client.sendMessage(messageOf('Refund order 4711'));
      assert.ok('status' in sent);
      const task = await client.getTask({ tenant: '', id: sent.id, historyLength: 1 });
      assert.deepEqual([task.id, stateOf(task), task.history.length], [sent.id, 'TASK_STATE_SUBMITTED', 1]);
      const { tasks } = await client.listTasks({
        ...{ tenant: '', contextId: task.contextId, status: TaskState.TASK_STATE_UNSPECIFIED, pageSize: 10, pageToken: '' },
        ...{ historyLength: undefined, statusTimestampAfter: undefined, includeArtifacts: undefined },
      });
      assert.deepEqual(
        tasks.map(({ id }) => id),
        [sent.id],
      );
      assert.equal(stateOf(await client.cancelTask({ tenant: '', id: sent.id, metadata: undefined })), 'TASK_STATE_CANCELED');
      await assert.rejects(client.cancelTask({ tenant: '', id: sent.id, metadata: undefined }), { name: 'TaskNotCancelableError' });
      await assert.rejects(client.getTask({ tenant: '', id: 'none', historyLength: undefined }), { name: 'TaskNotFoundError' });
      const card = await client.getAgentCard();
      assert.ok(card.capabilities?.pushNotifications && card.capabilities.streaming);
    });

    test('follows a task by a stream, and subscribes to it', async (t) => {
      const { service, client } = await connect(t);
      const stream = client.sendMessageStream(messageOf('Stream this'));
      const { value: first } = await stream.next();
      assert.equal(first?.payload?.$case, 'task');
      const { id } = (first?.payload?.value ?? {}) as { id: string };
      const following = client.resubscribeTask({ tenant: '', id });
      assert.equal((await following.next()).value?.payload?.$case, 'task');
      const completed = [{ id: 'a1', description: 'Refund', result: 'Refunded' }];
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed', actions: { completed } } });
      for (const events of [stream, following]) {
        const states: string[] = [];
        for await (const { payload } of events) states.push(payload?.$case === 'statusUpdate' ? stateOf(payload.value) : payload!.$case);
        assert.deepEqual(states.slice(-2), ['artifactUpdate', 'TASK_STATE_COMPLETED']);
      }
    });

    test('adds, reads, lists and deletes push notification configurations', async (t) => {
      const { client } = await connect(t);
      const sent = await client.sendMessage(messageOf('Tell me'));
      assert.ok('status' in sent);
      const ids = { tenant: '', taskId: sent.id };
      const config = { ...ids, id: 'mine', url: 'http://127.0.0.1:9/', token: 'a-token-for-tests-0123456789', authentication: undefined };
      assert.equal((await client.createTaskPushNotificationConfig(config)).id, 'mine');
      assert.equal((await client.getTaskPushNotificationConfig({ ...ids, id: 'mine' })).url, config.url);
      assert.equal((await client.listTaskPushNotificationConfig({ ...ids, pageSize: 10, pageToken: '' })).configs.length, 1);
      await client.deleteTaskPushNotificationConfig({ ...ids, id: 'mine' });
      await assert.rejects(client.getTaskPushNotificationConfig({ ...ids, id: 'mine' }), { name: 'TaskNotFoundError' });
    });
  });
}
