import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { a2a, a2aRequest, messageOf } from '../../support/a2a.ts';
import { unknownId } from '../../support/life.ts';
import { messagesOf } from '../../support/mcp.ts';
import { createPacket, newTenant, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';
import { waiting } from '../../support/until.ts';

/** The task of a new packet. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers of every shape.
async function newTask(service: Pick<TestService, 'call'>, options: { key?: string; agent?: string } = {}): Promise<any> {
  const { status, body, text } = await a2a(service, 'SendMessage', messageOf('Refund order 4711'), options);
  assert.equal(status, 200, text);
  assert.notEqual(body.result?.task, undefined, text);
  return body.result.task;
}

/** Changes a packet as the API does. */
async function change(service: Pick<TestService, 'call'>, id: string, body: object, key?: string): Promise<void> {
  const { status, text } = await service.call('PATCH', `/packets/${id}`, { body, ...(key === undefined ? {} : { key }) });
  assert.equal(status, 200, text);
}

const question = {
  status: 'awaiting_human',
  hitl: { required: true, reason: 'Over the limit', question: 'Refund 59.90?', options: ['Yes', 'No'] },
};
const claim = (service: Pick<TestService, 'call'>, id: string, body: object = {}) =>
  service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver', ...body } });

/** Opens a stream over HTTP. */
async function openStream(
  service: Awaited<ReturnType<typeof shareService>>,
  method: string,
  params: unknown,
  key = service.key,
  signal?: AbortSignal,
) {
  const { headers, body } = a2aRequest(method, params);
  return fetch(`${await service.listen()}/a2a`, {
    method: 'POST',
    headers: { ...headers, 'x-api-key': key },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

for (const store of stores) {
  describe(`A2A on ${store.name}`, () => {
    test('a messageId belongs to the API key that sent it, and is named where it was used before [H442]', async () => {
      const service = await shareService(store);
      const send = (text: string, key: string) => a2a(service, 'SendMessage', messageOf(text, { messageId: '1' }), { key });
      const other = (await service.call('POST', '/keys', { body: { name: 'other' } })).body.key;
      const first = (await send('One', service.key)).body.result.task.id;
      assert.notEqual((await send('Two', other)).body.result.task.id, first);
      assert.equal((await send('One', service.key)).body.result.task.id, first);
      const { error } = (await send('Three', service.key)).body;
      assert.match(JSON.stringify(error), /messageId/);
      assert.doesNotMatch(JSON.stringify(error), /Idempotency-Key/);
    });

    test('makes a packet of a message, whose task ends with the results of the agent that completes it', async () => {
      const service = await shareService(store);
      const parts = [
        { text: 'Refund order 4711' },
        { text: 'It was charged twice' },
        { data: { amount: 59.9 } },
        { url: 'https://example.com/a.pdf', filename: 'receipt', mediaType: 'application/pdf' },
      ];
      const params = messageOf('', { parts });
      const { task } = (await a2a(service, 'SendMessage', params, { agent: 'intake' })).body.result;
      assert.deepEqual([task.status.state, task.contextId], ['TASK_STATE_SUBMITTED', task.id]);
      assert.deepEqual(
        task.history.map((message: { role: string }) => message.role),
        ['ROLE_USER', 'ROLE_USER'],
      );
      const { body: packet } = await service.call('GET', `/packets/${task.id}`);
      assert.deepEqual(
        [
          packet.metadata.source_agent.id,
          packet.metadata.target_agent.id,
          packet.context.summary,
          packet.context.conversation_state[0].content,
        ],
        ['intake', 'resolver', 'Refund order 4711', 'It was charged twice'],
      );
      assert.deepEqual(packet.context.artifacts, [
        { key: 'part-2', value: { amount: 59.9 } },
        { key: 'receipt', value: 'https://example.com/a.pdf', content_type: 'application/pdf' },
      ]);
      const again = (await a2a(service, 'SendMessage', params, { agent: 'intake' })).body.result.task;
      assert.equal(again.id, task.id, 'the id of a message is an idempotency key');

      assert.equal((await claim(service, task.id)).status, 200);
      assert.equal((await a2a(service, 'GetTask', { id: task.id })).body.result.status.state, 'TASK_STATE_WORKING');
      await change(service, task.id, {
        status: 'completed',
        actions: { completed: [{ id: 'a1', description: 'Refund', result: 'Refunded' }] },
        context: {
          artifacts: [
            { key: 'reference', value: { id: 8 } },
            { key: 'receipt.pdf', value: 'https://example.com/r.pdf', content_type: 'application/pdf' },
            { key: 'note.txt', value: 'data:text/plain;base64,aGk=' },
          ],
        },
      });
      const done = (await a2a(service, 'GetTask', { id: task.id, historyLength: 1 })).body.result;
      assert.deepEqual([done.status.state, done.history.length], ['TASK_STATE_COMPLETED', 1]);
      assert.deepEqual(
        done.artifacts.map((artifact: { name: string; parts: object[] }) => [artifact.name, artifact.parts]),
        [
          ['a1', [{ text: 'Refunded', mediaType: 'text/plain' }]],
          ['reference', [{ data: { id: 8 }, mediaType: 'application/json' }]],
          ['receipt.pdf', [{ url: 'https://example.com/r.pdf', filename: 'receipt.pdf', mediaType: 'application/pdf' }]],
          ['note.txt', [{ raw: 'aGk=', filename: 'note.txt', mediaType: 'text/plain' }]],
        ],
      );
    });

    test('asks for input with the question of a packet, and a message to the task answers it', async () => {
      const service = await shareService(store);
      const { id } = await newTask(service);
      await claim(service, id);
      await change(service, id, question);
      const asked = (await a2a(service, 'GetTask', { id })).body.result;
      assert.deepEqual([asked.status.state, asked.status.message.parts[0].text], ['TASK_STATE_INPUT_REQUIRED', 'Refund 59.90?']);
      const given = messageOf('Yes', { taskId: id });
      const answer = await a2a(service, 'SendMessage', given, { agent: 'desk' });
      assert.equal(answer.body.result?.task.status.state, 'TASK_STATE_WORKING', answer.text);
      const { events } = (await service.call('GET', `/packets/${id}/history`)).body;
      const { actor, details } = events.at(-1);
      const { name } = (await service.call('GET', '/keys/self')).body;
      assert.deepEqual([actor, details.response, details.via], [`agent:${name}`, 'Yes', 'a2a']);
      // A repeated message is answered as the first one, and changes nothing.
      const again = await a2a(service, 'SendMessage', given, { agent: 'desk' });
      assert.equal(again.body.result?.task.status.state, 'TASK_STATE_WORKING', again.text);
      assert.equal((await service.call('GET', `/packets/${id}/history`)).body.events.length, events.length);
    });

    test('the context of a task is the root of its chain, also when a packet between them is removed', async () => {
      const service = await shareService(store);
      const root = await createPacket(service);
      const child = await createPacket(service, { parent_packet_id: root.id });
      const grandchild = await createPacket(service, { parent_packet_id: child.id });
      await service.call('DELETE', `/packets/${child.id}?hard=true`);
      assert.equal((await a2a(service, 'GetTask', { id: grandchild.id })).body.result.contextId, root.id);
      const { tasks } = (await a2a(service, 'ListTasks', {})).body.result;
      assert.deepEqual(
        tasks.map(({ id, contextId }: Record<string, string>) => [id, contextId]),
        [grandchild.id, root.id].map((id) => [id, root.id]),
      );
    });

    test('a blocking message waits until the task has ended or needs input', async () => {
      const service = await shareService(store);
      const sending = a2a(service, 'SendMessage', messageOf('Wait for me', {}, { returnImmediately: false }));
      await waiting(service, 1);
      const { packets } = (await service.call('GET', '/packets')).body;
      await claim(service, packets[0].id);
      await change(service, packets[0].id, question);
      assert.equal((await sending).body.result.task.status.state, 'TASK_STATE_INPUT_REQUIRED');
    });

    test('chains messages of one context, and lists its tasks page by page', async () => {
      const service = await shareService(store);
      const root = await newTask(service);
      const ids: string[] = [root.id];
      for (const text of ['Second', 'Third']) {
        const { task } = (await a2a(service, 'SendMessage', messageOf(text, { contextId: root.id }))).body.result;
        assert.equal(task.contextId, root.id);
        ids.unshift(task.id);
      }
      await newTask(service);
      const page = (await a2a(service, 'ListTasks', { contextId: root.id, pageSize: 2 })).body.result;
      assert.deepEqual([page.tasks.map(({ id }: { id: string }) => id), page.totalSize], [ids.slice(0, 2), 3]);
      const rest = (await a2a(service, 'ListTasks', { contextId: root.id, pageSize: 2, pageToken: page.nextPageToken })).body.result;
      assert.deepEqual([rest.tasks.map(({ id }: { id: string }) => id), rest.nextPageToken], [[root.id], '']);
      const all = (await a2a(service, 'ListTasks', { contextId: root.id })).body.result;
      assert.deepEqual(
        all.tasks.map(({ id }: { id: string }) => id),
        ids,
      );
      const next = (await a2a(service, 'ListTasks', { pageSize: 3 })).body.result;
      const last = (await a2a(service, 'ListTasks', { pageSize: 3, pageToken: next.nextPageToken })).body.result;
      assert.deepEqual([next.totalSize, next.tasks.length, last.tasks.length, last.nextPageToken], [4, 3, 1, '']);
      await claim(service, root.id);
      const working = (await a2a(service, 'ListTasks', { status: 'TASK_STATE_WORKING' })).body.result;
      assert.deepEqual(
        working.tasks.map(({ id }: { id: string }) => id),
        [root.id],
      );
    });

    test('lists pages of up to 4 MiB, and names a pageSize that fits [H78]', async () => {
      const service = await shareService(store);
      const conversation_state = Array.from({ length: 10 }, () => ({ role: 'user', content: 'y'.repeat(90_000) }));
      for (let index = 0; index < 5; index += 1) await createPacket(service, { context: { summary: 'large', conversation_state } });
      const { body } = await a2a(service, 'ListTasks', { pageSize: 5, historyLength: 20 });
      assert.deepEqual([body.error?.code, /pageSize=\d+/.exec(body.error?.message)?.[0]], [-32602, 'pageSize=4']);
      const fitting = await a2a(service, 'ListTasks', { pageSize: 4, historyLength: 20 });
      assert.equal(fitting.body.result.tasks.length, 4);
      const brief = await a2a(service, 'ListTasks', { pageSize: 5 });
      assert.equal(brief.body.result.tasks.length, 5);
    });

    test('cancels a task, but none that has ended or that another holds a lease on [H105]', async () => {
      const service = await shareService(store);
      const { id } = await newTask(service);
      assert.equal((await a2a(service, 'CancelTask', { id })).body.result?.status.state, 'TASK_STATE_CANCELED');
      assert.equal((await a2a(service, 'CancelTask', { id })).body.error.code, -32002);
      const leased = await newTask(service);
      const { lease } = (await claim(service, leased.id, { lease_seconds: 60 })).body;
      const { key } = (await service.call('POST', '/keys', { body: { name: 'worker' } })).body;
      const { error } = (await a2a(service, 'CancelTask', { id: leased.id }, { key })).body;
      assert.deepEqual(
        [error.code, error.message],
        [-32002, 'resolver holds a lease on the packet; its token goes in metadata.lease_token.'],
      );
      assert.equal((await a2a(service, 'GetTask', { id: leased.id })).body.result.status.state, 'TASK_STATE_WORKING');
      const byHolder = await a2a(service, 'CancelTask', { id: leased.id, metadata: { lease_token: lease.token } }, { key });
      assert.equal(byHolder.body.result?.status.state, 'TASK_STATE_CANCELED', byHolder.text);
      const other = await newTask(service);
      await claim(service, other.id, { lease_seconds: 60 });
      const byAdmin = await a2a(service, 'CancelTask', { id: other.id });
      assert.equal(byAdmin.body.result?.status.state, 'TASK_STATE_CANCELED', byAdmin.text);
    });

    test('streams a task from its message to its end: states, question and artifacts', async () => {
      const service = await shareService(store);
      const response = await openStream(service, 'SendStreamingMessage', messageOf('Stream this'));
      assert.equal(response.headers.get('content-type'), 'text/event-stream');
      const events = messagesOf(response);
      const { id } = (await events.next()).value.result.task;
      await waiting(service, 1);
      await claim(service, id);
      assert.equal((await events.next()).value.result.statusUpdate.status.state, 'TASK_STATE_WORKING');
      await change(service, id, { status: 'completed', actions: { completed: [{ id: 'a1', description: 'Refund', result: 'Done' }] } });
      assert.equal((await events.next()).value.result.artifactUpdate.artifact.parts[0].text, 'Done');
      assert.equal((await events.next()).value.result.statusUpdate.status.state, 'TASK_STATE_COMPLETED');
      assert.equal((await events.next()).done, true, 'the stream ends with the task');
      const refused = await a2a(service, 'SubscribeToTask', { id });
      assert.deepEqual([refused.status, refused.body.error?.code], [200, -32004], refused.text);
    });

    test('streams an artifact again when it changes, and gives artifacts with one key ids of their own [H494]', async () => {
      const service = await shareService(store);
      const ending = new AbortController();
      const events = messagesOf(await openStream(service, 'SendStreamingMessage', messageOf('Stream'), service.key, ending.signal));
      const { id } = (await events.next()).value.result.task;
      await waiting(service, 1);
      const next = async () => {
        const { artifact, append } = (await events.next()).value.result.artifactUpdate;
        return [artifact.artifactId, artifact.parts[0].text, append ?? false];
      };
      const change2 = (artifacts: object[]) => change(service, id, { context: { artifacts } });
      await change2([
        { key: 'draft', value: 'one' },
        { key: 'draft', value: 'two' },
        { key: 'draft-2', value: 'three' },
      ]);
      const first = [await next(), await next(), await next()];
      assert.deepEqual(first, [
        ['artifact-draft', 'one', false],
        ['artifact-draft-2', 'two', false],
        ['artifact-draft-2-2', 'three', false],
      ]);
      await waiting(service, 1);
      await change2([
        { key: 'draft', value: 'one' },
        { key: 'draft', value: 'changed' },
        { key: 'draft-2', value: 'three' },
      ]);
      assert.deepEqual(await next(), ['artifact-draft-2', 'changed', false]);
      await waiting(service, 1);
      await change2([{ key: 'draft', value: 'last' }]);
      assert.deepEqual(await next(), ['artifact-draft', 'last', false]);
      ending.abort();
      await assert.rejects(events.next());
    });

    test('takes each patch level of its version, and refuses an answer of which a part would be lost [H494]', async () => {
      const service = await shareService(store);
      for (const [version, code] of [
        ['1.0', undefined],
        ['1.0.0', undefined],
        ['1.0.12', undefined],
        ['1.1', -32009],
        ['1.0.x', -32009],
        ['0.3.0', -32009],
      ] as const)
        assert.equal((await a2a(service, 'ListTasks', {}, { version })).body.error?.code, code, version);
      const { id } = await newTask(service);
      await claim(service, id);
      await change(service, id, question);
      for (const [place, parts] of [
        [1, [{ text: 'Yes' }, { url: 'https://example.com/receipt.pdf', filename: 'receipt.pdf' }]],
        [0, [{ data: [1] }, { text: 'Yes' }]],
        [2, [{ text: 'Yes' }, { data: { a: 1 } }, { data: { b: 1 } }]],
      ] as const) {
        const { body } = await a2a(service, 'SendMessage', messageOf('', { taskId: id, parts }));
        assert.equal(body.error?.code, -32005);
        assert.match(body.error.message, new RegExp(`message\\.parts\\.${place}: an answer takes texts and one data part`));
      }
      assert.equal((await a2a(service, 'GetTask', { id })).body.result.status.state, 'TASK_STATE_INPUT_REQUIRED');
    });

    test('ends a stream when its client hangs up, and when its key is revoked', async () => {
      const service = await shareService(store);
      const { id } = await newTask(service);
      const hangUp = new AbortController();
      const gone = messagesOf(await openStream(service, 'SubscribeToTask', { id }, service.key, hangUp.signal));
      assert.equal((await gone.next()).value.result.task.id, id);
      await waiting(service, 1);
      hangUp.abort();
      await waiting(service, 0);
      const { key, keyId } = await newTenant(service);
      const own = await newTask(service, { key });
      const events = messagesOf(await openStream(service, 'SubscribeToTask', { id: own.id }, key));
      await events.next();
      await waiting(service, 1);
      assert.equal((await service.call('DELETE', `/keys/${keyId}`)).status, 204);
      await service.handoff.runOnce.recheck();
      assert.match((await events.next()).value.error.message, /became invalid/);
      assert.equal((await events.next()).done, true);
      assert.equal((await a2a(service, 'GetTask', { id: own.id }, { key })).status, 401);
    });

    test("shows another tenant's tasks and contexts exactly like unknown ones, to every method [H108]", async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service);
      const { id } = await createPacket(service);
      const methods: [string, (task: string) => unknown][] = [
        ['GetTask', (task) => ({ id: task })],
        ['CancelTask', (task) => ({ id: task })],
        ['SubscribeToTask', (task) => ({ id: task })],
        ['SendMessage', (taskId) => messageOf('Mine?', { messageId: 'm1', taskId })],
        ['SendMessage', (contextId) => messageOf('Mine?', { messageId: 'm2', contextId })],
        ['SendStreamingMessage', (taskId) => messageOf('Mine?', { messageId: 'm3', taskId })],
      ];
      for (const [method, params] of methods) {
        const foreign = await a2a(service, method, params(id), { key });
        const unknown = await a2a(service, method, params(unknownId), { key });
        assert.equal(foreign.body.error?.code, -32001, `${method}: ${foreign.text}`);
        assert.equal(foreign.text, unknown.text, method);
      }
      for (const params of [{}, { contextId: id }, { contextId: unknownId }])
        assert.deepEqual((await a2a(service, 'ListTasks', params, { key })).body.result.tasks ?? [], []);
    });

    test('refuses bad input with a sentence that names the field', async () => {
      const service = await shareService(store);
      const { id } = await newTask(service);
      const cases: [string, unknown, number, RegExp][] = [
        ['SendMessage', {}, -32602, /message is required/],
        ['SendMessage', messageOf('x', { messageId: '' }), -32602, /messageId/],
        ['SendMessage', messageOf('x', { role: 'ROLE_AGENT' }), -32602, /role/],
        ['SendMessage', messageOf('x', { parts: [] }), -32602, /parts/],
        ['SendMessage', messageOf('x', { parts: [{}] }), -32602, /parts\.0/],
        ['SendMessage', messageOf('x', { parts: [{ raw: 'aGk=' }] }), -32005, /by URL/],
        ['SendMessage', messageOf('x', { metadata: { target_agent: 7 } }), -32602, /target_agent/],
        ['SendMessage', messageOf('x', { metadata: { target_agent: 'x'.repeat(600) } }), -32602, /target_agent/],
        ['SendMessage', messageOf('x', { taskId: id }), -32004, /created/],
        ['GetTask', { id, historyLength: -1 }, -32602, /historyLength/],
        ['GetTask', {}, -32001, /no task/],
        ['GetTask', { id: '../x' }, -32001, /no task/],
        ['GetTask', [], -32602, /params must be an object/],
        ['GetTask', null, -32602, /params must be an object/],
        ['SendMessage', messageOf('x', { parts: [null] }), -32602, /form that A2A/],
        ['ListTasks', { status: 'x' }, -32602, /status must be a state/],
        ['ListTasks', { statusTimestampAfter: 'x' }, -32602, /statusTimestampAfter/],
        ['ListTasks', { pageSize: 101 }, -32602, /pageSize/],
        ['ListTasks', { pageToken: 'x' }, -32602, /cursor/],
        ['Nothing', {}, -32601, /method/],
      ];
      for (const [method, params, code, sentence] of cases) {
        const { status, body, text } = await a2a(service, method, params);
        assert.deepEqual([status, body.error?.code], [200, code], `${method} ${JSON.stringify(params)}: ${text}`);
        assert.match(body.error.message, sentence);
      }
      for (const [message, code] of [
        [{ jsonrpc: '1.0', method: 'GetTask', params: { id } }, -32600],
        [{ jsonrpc: '2.0', id: {}, method: 'GetTask', params: { id } }, -32600],
        [{ jsonrpc: '2.0', method: 7 }, -32600],
        [{ jsonrpc: '2.0' }, -32600],
        [{ jsonrpc: '2.0', method: 'Nothing' }, -32601],
      ] as const) {
        const { status, body } = await service.call('POST', '//a2a', { headers: { 'a2a-version': '1.0' }, body: message });
        assert.deepEqual([status, body.id, body.error.code], [200, null, code], JSON.stringify(message));
      }
      for (const raw of ['', '{']) {
        const headers = { 'a2a-version': '1.0', 'content-type': 'application/json' };
        const { status, body } = await service.call('POST', '//a2a', { raw, headers });
        assert.deepEqual([status, body.id, body.error.code], [400, null, -32700], raw);
      }
      for (const version of ['0.3', null]) assert.equal((await a2a(service, 'GetTask', { id }, { version })).body.error?.code, -32009);
    });

    test('answers the same over HTTP+JSON, and refusals with the statuses and the form of AIP-193 [H106]', async () => {
      const service = await shareService(store);
      const rest = (method: string, path: string, options: { body?: object; version?: string; key?: string } = {}) => {
        const { body, version = '1.0', key = service.key } = options;
        return service.call(method, `//a2a${path}`, { key, headers: { 'a2a-version': version }, ...(body === undefined ? {} : { body }) });
      };
      const { task } = (await rest('POST', '/message:send', { body: messageOf('Over HTTP+JSON') })).body;
      assert.equal((await rest('GET', `/tasks/${task.id}?historyLength=1`)).body.history.length, 1);
      assert.deepEqual((await rest('GET', `/tasks?contextId=${task.id}&pageSize=1&includeArtifacts=true`)).body.tasks[0].id, task.id);
      assert.equal((await rest('POST', `/tasks/${task.id}:cancel`)).body.status.state, 'TASK_STATE_CANCELED');
      const raw = messageOf('x', { parts: [{ raw: 'aGk=' }] });
      const cases: [Parameters<typeof rest>, number, string, RegExp][] = [
        [['GET', `/tasks/${unknownId}`], 404, 'NOT_FOUND', /no such packet|no task/i],
        [['POST', `/tasks/${unknownId}:cancel`], 404, 'NOT_FOUND', /no such packet|no task/i],
        [['POST', `/tasks/${task.id}:cancel`], 409, 'FAILED_PRECONDITION', /expired/],
        [['POST', `/tasks/${task.id}:subscribe`], 400, 'UNIMPLEMENTED', /ended/],
        [['POST', '/message:send', { body: {} }], 400, 'INVALID_ARGUMENT', /message is required/],
        [['POST', '/message:send', { body: raw }], 415, 'INVALID_ARGUMENT', /by URL/],
        [['POST', '/message:stream', { body: {} }], 400, 'INVALID_ARGUMENT', /message is required/],
        [['POST', '/message:send', { body: messageOf('x', { parts: [null] }) }], 400, 'INVALID_ARGUMENT', /form that A2A/],
        [['GET', '/tasks?pageSize=x'], 400, 'INVALID_ARGUMENT', /pageSize/],
        [['GET', `/tasks/${task.id}?historyLength=-1`], 400, 'INVALID_ARGUMENT', /historyLength/],
        [['GET', `/tasks/${task.id}`, { version: '0.3' }], 400, 'UNIMPLEMENTED', /A2A-Version/],
        [['DELETE', `/tasks/${unknownId}/pushNotificationConfigs/mine`], 404, 'NOT_FOUND', /no such packet|no task/i],
      ];
      for (const [call, status, name, sentence] of cases) {
        const answer = await rest(...call);
        assert.deepEqual([answer.status, answer.body.error?.status], [status, name], `${call.join(' ')}: ${answer.text}`);
        assert.match(answer.body.error.message, sentence);
        // The only type of details is that of A2A's own errors.
        const types = answer.body.error.details.map((detail: Record<string, string>) => [detail['@type'], detail.domain]);
        assert.deepEqual(types, [['type.googleapis.com/google.rpc.ErrorInfo', 'a2a-protocol.org']], answer.text);
      }
      const { key } = await newTenant(service);
      assert.equal((await rest('GET', `/tasks/${task.id}`, { key })).status, 404);
      assert.equal((await rest('GET', `/tasks/${task.id}`, { key: 'wrong' })).status, 401);
      // What stops a request before its method has no error of A2A.
      const unread = await service.call('POST', '//a2a/message:send', { raw: '{', key: service.key });
      assert.deepEqual(unread.body.error, {
        ...{ code: 400, status: 'INVALID_ARGUMENT', details: [] },
        message: 'The body is not valid JSON at line 1, column 2.',
      });
      const asText = { raw: '{}', key: service.key, headers: { 'content-type': 'text/plain' } };
      const unsupported = await service.call('POST', '//a2a/message:send', asText);
      const { code, details } = unsupported.body.error;
      assert.deepEqual([unsupported.status, code, details[0].reason], [415, 415, 'CONTENT_TYPE_NOT_SUPPORTED']);
      const overRpc = await service.call('POST', '//a2a', asText);
      assert.deepEqual([overRpc.status, overRpc.body.error.code], [415, -32005]);
      const reader = (await service.call('POST', '/keys', { body: { name: 'reader', scopes: ['read'] } })).body.key;
      assert.equal((await rest('POST', '/message:send', { body: messageOf('No'), key: reader })).status, 403);
    });

    test('applies authentication, scopes, the rate limit and the daily quota like the API', async () => {
      const service = await shareService(store, { SERVICE_RATE_LIMIT_PER_MINUTE: '5', SERVICE_HANDOFFS_PER_DAY_FREE: '1' });
      const { key } = await newTenant(service, { tier: 'free' });
      assert.equal((await a2a(service, 'GetTask', { id: unknownId }, { key: 'wrong' })).status, 401);
      const { id } = await newTask(service, { key });
      const overRpc = await a2a(service, 'SendMessage', messageOf('Again'), { key });
      assert.match(overRpc.body.error.data[0].metadata.retryAfter, /^[1-9]\d*$/, overRpc.text);
      const headers = { 'a2a-version': '1.0' };
      for (const path of ['send', 'stream']) {
        const spent = await service.call('POST', `//a2a/message:${path}`, { key, headers, body: messageOf('Again') });
        assert.deepEqual([spent.status, spent.body.error.details[0].metadata.code], [429, 'RATE_LIMITED'], spent.text);
        assert.equal(spent.headers['retry-after'], spent.body.error.details[0].metadata.retryAfter);
      }
      assert.equal((await a2a(service, 'GetTask', { id }, { key })).status, 200);
      assert.equal((await a2a(service, 'GetTask', { id }, { key })).status, 429);
      const reader = (await service.call('POST', '/keys', { body: { name: 'reader', scopes: ['read'] } })).body.key;
      const refused = await a2a(service, 'SendMessage', messageOf('No'), { key: reader });
      assert.match(refused.body.error?.message, /scope/, refused.text);
    });

    test('has a public card without secrets, and one with the agents of the tenant', async () => {
      const service = await shareService(store, {
        SERVICE_A2A_AGENTS: 'refunds,parcels',
        SERVICE_PUBLIC_URL: 'https://baton.example.com/',
      });
      const { status, body, headers } = await service.call('GET', '//.well-known/agent-card.json', { key: '' });
      assert.equal(status, 200);
      assert.deepEqual(
        body.skills.map(({ id }: { id: string }) => id),
        ['refunds', 'parcels'],
      );
      const url = 'https://baton.example.com/a2a';
      assert.deepEqual(body.supportedInterfaces, [
        { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
      ]);
      const ifNoneMatch = { 'if-none-match': headers.etag as string };
      assert.equal((await service.call('GET', '//.well-known/agent-card.json', { key: null, headers: ifNoneMatch })).status, 304);
      assert.deepEqual([headers['cache-control'], headers['last-modified']], ['public, max-age=300', 'Sun, 01 Mar 2026 09:30:00 GMT']);
      const unnamed = await a2a(service, 'SendMessage', messageOf('For whom?', { metadata: {} }));
      assert.match(unnamed.body.error?.message, /target_agent is required/);
      await newTask(service, { agent: 'intake' });
      const extended = (await a2a(service, 'GetExtendedAgentCard', undefined)).body.result;
      assert.ok(
        extended.skills.some(({ id }: { id: string }) => id === 'intake'),
        JSON.stringify(extended),
      );
    });
  });
}

for (const store of storesOfSeveral) {
  test(`A task of A2A on ${store.name} survives a restart of the service`, async (t) => {
    const first = await startService(t, { store });
    const { id } = await newTask(first);
    await claim(first, id);
    await change(first, id, question);
    await first.handoff.stop();
    const second = await startService(t, { store, databaseUrl: first.databaseUrl, clock: first.clock });
    assert.equal((await a2a(second, 'GetTask', { id })).body.result.status.state, 'TASK_STATE_INPUT_REQUIRED');
    const { body, text } = await a2a(second, 'SendMessage', messageOf('Yes', { taskId: id }));
    assert.equal(body.result?.task.status.state, 'TASK_STATE_WORKING', text);
  });

  test(`A blocking message of A2A at one instance ends with the work done at another, on ${store.name}`, async (t) => {
    const first = await startService(t, { store });
    const second = await startService(t, { databaseUrl: first.databaseUrl, clock: first.clock });
    const sending = a2a(second, 'SendMessage', messageOf('Elsewhere', {}, { returnImmediately: false }));
    await waiting(second, 1);
    const { id } = (await first.call('GET', '/packets')).body.packets[0];
    await claim(first, id);
    await change(first, id, { status: 'completed' });
    await second.handoff.runOnce.poll();
    assert.equal((await sending).body.result?.task.status.state, 'TASK_STATE_COMPLETED');
  });
}
