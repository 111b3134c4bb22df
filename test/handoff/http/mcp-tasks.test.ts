import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { callTool, mcp } from '../../support/mcp.ts';
import { createPacket, newTenant, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { postgresql, stores, storesOfSeveral } from '../../support/stores.ts';
import { waiting } from '../../support/until.ts';

const tasks = true;
const respond = (service: TestService, id: string, response = 'Yes') =>
  service.call('POST', `/packets/${id}/respond`, { body: { response, responded_by: 'dana' } });

/** Asks a question about a new claimed packet as a task; returns the packet's id and the task. */
async function ask(service: TestService, args: Record<string, unknown> = {}) {
  const { id } = await createPacket(service);
  await callTool(service, 'claim', { packet_id: id });
  return { id, task: await callTool(service, 'ask_human', { packet_id: id, question: 'Refund?', ...args }, { tasks }) };
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into tasks of every shape.
const get = async (service: TestService, taskId: string, options = {}): Promise<any> => {
  const { body } = await mcp(service, 'tasks/get', { taskId }, { tasks, ...options });
  return body.result ?? body.error;
};

for (const store of stores) {
  describe(`The tasks of /mcp on ${store.name}`, () => {
    test('ask_human is a task, working until the person has answered, then completed with the answer', async () => {
      const service = await shareService(store);
      const { id, task } = await ask(service, { options: ['Yes', 'No'] });
      assert.deepEqual([task.resultType, task.status, task.ttlMs], ['task', 'working', null], JSON.stringify(task));
      const working = await get(service, task.taskId);
      assert.deepEqual([working.status, working.taskId, working.createdAt], ['working', task.taskId, task.createdAt]);
      assert.equal((await respond(service, id)).status, 200);
      const done = await get(service, task.taskId);
      assert.equal(done.status, 'completed');
      assert.deepEqual([done.result.structuredContent.response, done.result.structuredContent.responded_by], ['Yes', 'dana']);
    });

    test('the answer is that of its own question, even if another was asked since', async () => {
      const service = await shareService(store);
      const { id, task } = await ask(service);
      await respond(service, id, 'First');
      const second = await callTool(service, 'ask_human', { packet_id: id, question: 'And now?' }, { tasks });
      const first = await get(service, task.taskId);
      assert.deepEqual([first.status, first.result.structuredContent.response], ['completed', 'First']);
      assert.equal((await get(service, second.taskId)).status, 'working');
      await respond(service, id, 'Second');
      assert.equal((await get(service, task.taskId)).result.structuredContent.response, 'First');
      assert.equal((await get(service, second.taskId)).result.structuredContent.response, 'Second');
    });

    test('cancelling it withdraws the question, and only its own [H122]', async () => {
      const service = await shareService(store);
      const { id, task } = await ask(service);
      const cancel = (taskId: string) => mcp(service, 'tasks/cancel', { taskId }, { tasks });
      assert.notEqual((await cancel(task.taskId)).body.result, undefined);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'claimed');
      assert.equal((await get(service, task.taskId)).status, 'cancelled');
      const second = await callTool(service, 'ask_human', { packet_id: id, question: 'And now?' }, { tasks });
      await cancel(task.taskId);
      assert.equal((await get(service, second.taskId)).status, 'working');
    });

    test('wait_for_packet is a task unless the packet has the status already', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const args = { packet_id: id, statuses: ['completed'] };
      const task = await callTool(service, 'wait_for_packet', args, { tasks });
      assert.equal((await get(service, task.taskId)).status, 'working');
      await callTool(service, 'claim', { packet_id: id });
      await callTool(service, 'complete', { packet_id: id });
      const done = await get(service, task.taskId);
      assert.deepEqual([done.status, done.result.structuredContent.status], ['completed', 'completed']);
      assert.equal((await callTool(service, 'wait_for_packet', args, { tasks })).resultType, 'complete');
    });

    test('a client without support for tasks gets the result, in either revision', async () => {
      const service = await shareService(store);
      for (const revision of ['2025-11-25', '2026-07-28'] as const) {
        const { id } = await createPacket(service);
        await callTool(service, 'claim', { packet_id: id }, { revision });
        const { structuredContent } = await callTool(
          service,
          'ask_human',
          { packet_id: id, question: 'Why?', wait_seconds: 0 },
          { revision },
        );
        assert.deepEqual([structuredContent.answered, structuredContent.status], [false, 'awaiting_human']);
      }
    });

    test('belongs to its tenant: another one gets the error for an unknown task, like a forged or removed one [H122]', async () => {
      const service = await shareService(store);
      const { id, task } = await ask(service);
      const { key } = await newTenant(service);
      const unknown = await get(service, 'bm8gc3VjaCB0YXNr');
      assert.equal(unknown.code, -32602);
      assert.deepEqual(await get(service, task.taskId, { key }), unknown);
      const cancelled = await mcp(service, 'tasks/cancel', { taskId: task.taskId }, { tasks, key });
      assert.deepEqual(cancelled.body.error, unknown);
      assert.equal((await get(service, task.taskId)).status, 'working');
      await service.call('DELETE', `/packets/${id}?hard=true`);
      assert.deepEqual(await get(service, task.taskId), unknown);
      for (const forged of ['', 'x'.repeat(5000), Buffer.from(`ask ${id} nothing 2026-01-01T00:00:00Z`).toString('base64url')])
        assert.equal((await get(service, forged)).code, -32602);
    });

    test('is read and cancelled only by clients that declare the extension', async () => {
      const service = await shareService(store);
      const { task } = await ask(service);
      for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
        const { error } = (await mcp(service, method, { taskId: task.taskId })).body;
        assert.deepEqual(
          [error.code, error.data.requiredCapabilities.extensions],
          [-32021, { 'io.modelcontextprotocol/tasks': {} }],
          method,
        );
        assert.equal((await mcp(service, method, { taskId: task.taskId }, { revision: '2025-11-25' })).body.error.code, -32601);
      }
    });

    test('takes no input, since a person answers elsewhere', async () => {
      const service = await shareService(store);
      const { task } = await ask(service);
      const answer = await mcp(service, 'tasks/update', { taskId: task.taskId, inputResponses: {} }, { tasks });
      assert.match(answer.body.error.message, /a person answers/);
    });

    test('ends with a failed packet, without an answer [H122]', async () => {
      const service = await shareService(store);
      const { id, task } = await ask(service);
      await callTool(service, 'fail', { packet_id: id, reason: 'Closed' });
      const { status, result } = await get(service, task.taskId);
      assert.deepEqual([status, result.structuredContent.answered, result.structuredContent.status], ['completed', false, 'failed']);
    });
  });
}

for (const store of storesOfSeveral) {
  describe(`The tasks of /mcp over instances on ${store.name}`, () => {
    test('survive a restart of the service', async (t) => {
      const first = await startService(t, { store });
      const { id, task } = await ask(first);
      await first.handoff.stop();
      const second = await startService(t, { store, databaseUrl: first.databaseUrl, clock: first.clock });
      assert.equal((await get(second, task.taskId)).status, 'working');
      await respond(second, id);
      assert.equal((await get(second, task.taskId)).result.structuredContent.response, 'Yes');
    });
  });
}

describe('Two instances on PostgreSQL', () => {
  test('answer for one another: a task of one is read and cancelled at the other, and a wait at one ends with an answer at the other', async (t) => {
    const first = await startService(t, { store: postgresql });
    const second = await startService(t, { databaseUrl: first.databaseUrl, clock: first.clock });
    const { id, task } = await ask(first);
    assert.equal((await get(second, task.taskId)).status, 'working');
    const asking = callTool(second, 'get_answer', { packet_id: id });
    await waiting(second, 1);
    await respond(first, id);
    await second.handoff.runOnce.poll();
    assert.equal((await asking).structuredContent.response, 'Yes');
    assert.equal((await get(second, task.taskId)).status, 'completed');
    const other = await ask(second);
    await mcp(first, 'tasks/cancel', { taskId: other.task.taskId }, { tasks });
    assert.equal((await get(second, other.task.taskId)).status, 'cancelled');
  });
});
