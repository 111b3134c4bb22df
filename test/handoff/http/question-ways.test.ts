import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { packetIn } from '../../support/life.ts';
import { callTool, mcp } from '../../support/mcp.ts';
import type { TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const respond = (service: TestService, id: string, response = 'Yes') =>
  service.call('POST', `/packets/${id}/respond`, { body: { response, responded_by: 'dana' } });
const held = async (service: TestService) => (await packetIn(service, 'claimed', { hitl: undefined })).id as string;
const taskOf = async (service: TestService, taskId: string) => (await mcp(service, 'tasks/get', { taskId }, { tasks: true })).body.result;

for (const store of stores) {
  describe(`Questions over MCP on ${store.name}`, () => {
    test('a second one is refused with the first one and get_answer; the answer reaches the caller that it is for alone', async () => {
      const service = await shareService(store);
      const id = await held(service);
      const first = await callTool(service, 'ask_human', { packet_id: id, question: 'Refund 10 to Ann?' }, { tasks: true });
      const second = await callTool(service, 'ask_human', { packet_id: id, question: 'Delete the account of Bob?', wait_seconds: 0 });
      assert.equal(second.isError, true);
      const { question_id } = (await service.call('GET', `/packets/${id}`)).body.hitl;
      assert.match(second.content[0].text, new RegExp(`QUESTION_OPEN.*\n.*get_answer.*${question_id}`));
      await respond(service, id);
      const { result } = await taskOf(service, first.taskId);
      assert.deepEqual([result.structuredContent.question, result.structuredContent.response], ['Refund 10 to Ann?', 'Yes']);
      // Another question is open now, which the end of the first task does not withdraw.
      const third = await callTool(service, 'ask_human', { packet_id: id, question: 'And Bob?' }, { tasks: true });
      await mcp(service, 'tasks/cancel', { taskId: first.taskId }, { tasks: true });
      assert.equal((await service.call('GET', `/packets/${id}`)).body.status, 'awaiting_human');
      assert.equal((await taskOf(service, third.taskId)).status, 'working');
      const pending = (await callTool(service, 'get_answer', { packet_id: id, wait_seconds: 0 })).structuredContent;
      assert.deepEqual([pending.answered, pending.question, pending.response], [false, 'And Bob?', null]);
      const earlier = (await callTool(service, 'get_answer', { packet_id: id, question_id, wait_seconds: 0 })).structuredContent;
      assert.deepEqual([earlier.question, earlier.response], ['Refund 10 to Ann?', 'Yes']);
    });

    test('ask_human takes the fields of a question; with a key it is the same question, however many came after it', async () => {
      const service = await shareService(store);
      const id = await held(service);
      const fields = {
        ...{ question: 'Pay 100?', reason: 'Policy', options: ['Yes', 'No'], strict_options: true, responder: 'dana' },
        ...{ timeout_seconds: 60, on_timeout: 'fail', remind_after_seconds: 30, exclude_source: false, key: 'pay' },
      };
      await callTool(service, 'ask_human', { packet_id: id, ...fields, wait_seconds: 0 });
      const { hitl } = (await service.call('GET', `/packets/${id}`)).body;
      for (const [name, value] of Object.entries(fields)) assert.deepEqual(hitl[name], value, name);
      await respond(service, id);
      await callTool(service, 'ask_human', { packet_id: id, question: 'Else?', wait_seconds: 0 });
      await respond(service, id, 'No');
      const again = (await callTool(service, 'ask_human', { packet_id: id, ...fields })).structuredContent;
      assert.deepEqual([again.answered, again.response, again.question_id], [true, 'Yes', hitl.question_id]);
      const changed = await callTool(service, 'ask_human', { packet_id: id, ...fields, question: 'Pay 200?' });
      assert.match(changed.content[0].text, /KEY_CHANGED/);
    });

    test('a task follows its question while the same agent changes it; changed by another agent it ends with the reason replaced', async () => {
      const service = await shareService(store);
      const id = await held(service);
      const ask = () => callTool(service, 'ask_human', { packet_id: id, question: 'Refund 10?' }, { tasks: true });
      const change = (agent: string, question: string) =>
        service.call('PATCH', `/packets/${id}`, { body: { hitl: { question } }, headers: { 'x-agent-id': agent } });
      const own = await ask();
      assert.equal((await change('resolver', 'Refund 20?')).status, 200);
      assert.equal((await taskOf(service, own.taskId)).status, 'working');
      await respond(service, id);
      const { result } = await taskOf(service, own.taskId);
      assert.deepEqual([result.structuredContent.question, result.structuredContent.response], ['Refund 20?', 'Yes']);
      const other = await ask();
      assert.equal((await change('somebody', 'Refund 30?')).status, 200);
      await respond(service, id);
      const ended = await taskOf(service, other.taskId);
      assert.deepEqual([ended.status, ended.error.data.reason], ['failed', 'replaced']);
    });
  });
}
