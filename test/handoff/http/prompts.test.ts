import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { a2a, a2aRequest, messageOf } from '../../support/a2a.ts';
import { callTool, mcp, messagesOf } from '../../support/mcp.ts';
import type { TestService } from '../../support/service.ts';
import { type SharedService, shareService } from '../../support/shared.ts';
import { inMemory } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';

/** The text of a prompt, as an agent's model gets it. */
async function promptOf(service: Pick<TestService, 'call'>, name: string, args: Record<string, string>): Promise<string> {
  const { body } = await mcp(service, 'prompts/get', { name, arguments: args });
  return body.result.messages[0].content.text;
}

/** The arguments of the tools, by name. */
async function argumentsOf(service: Pick<TestService, 'call'>): Promise<Map<string, string[]>> {
  const { body } = await mcp(service, 'tools/list');
  type Listed = { name: string; inputSchema: { properties: object } };
  return new Map(body.result.tools.map(({ name, inputSchema }: Listed) => [name, Object.keys(inputSchema.properties)]));
}

/** An agent that follows the prompts as a model would: each call must be one that its prompt names. */
function agentOf(service: SharedService, agent: string, prompts: readonly string[]) {
  return async (tool: string, args: Record<string, unknown>) => {
    assert.ok(
      prompts.some((prompt) => prompt.includes(tool)),
      `no prompt names ${tool}`,
    );
    const result = await callTool(service, tool, args, { agent });
    assert.equal(result.isError, undefined, JSON.stringify(result.content));
    return result.structuredContent;
  };
}

/** Opens the stream of a new task. */
async function sendStreaming(service: SharedService, text: string) {
  const { headers, body } = a2aRequest('SendStreamingMessage', messageOf(text), { agent: 'intake' });
  const url = `${await service.listen()}/a2a`;
  return messagesOf(await fetch(url, { method: 'POST', headers: { ...headers, 'x-api-key': service.key }, body: JSON.stringify(body) }));
}

const eventsOf = async (service: SharedService, id: string): Promise<string[]> => {
  const { body } = await service.call('GET', `/packets/${id}/history`);
  return body.events.map(({ event_type, actor }: Record<string, string>) => `${event_type} ${actor}`);
};

test('The prompts of /mcp name only tools, and arguments of hand_over, that exist', async () => {
  const service = await shareService(inMemory);
  const tools = await argumentsOf(service);
  const work = await promptOf(service, 'work_on_next', { agent_id: 'resolver' });
  const named = [...work.matchAll(/\b[a-z]+(?:_[a-z]+)+\b|(?<=[Cc]all )\w+/g)].map(([word]) => word);
  const known = new Set([...tools.keys(), ...[...tools.values()].flat(), 'in_progress']);
  assert.ok(named.length > 8, work);
  assert.deepEqual(
    named.filter((word) => !known.has(word)),
    [],
  );
  const well = await promptOf(service, 'hand_over_well', { target_agent: 'refunds' });
  const fields = [...well.matchAll(/^- ([\w.]+):| ([\w.]+):(?= )| (parent_packet_id|priority|tags)\b/gm)].map(
    (match) => match.slice(1).find(Boolean)!,
  );
  assert.ok(fields.length > 6, well);
  assert.deepEqual(
    fields.filter((field) => !tools.get('hand_over')!.includes(field.split('.')[0]!)),
    [],
  );
});

for (const store of stores) {
  describe(`The prompts of /mcp on ${store.name}`, () => {
    test('are played end to end by agents over MCP, while another asks for the work and answers by A2A, on one chain', async () => {
      const service = await shareService(store);
      const stream = await sendStreaming(service, 'Order 4711 was charged twice; refund it and tell the customer');
      const { task } = (await stream.next()).value.result;
      const nextState = async () => (await stream.next()).value.result.statusUpdate.status;

      const prompts = [
        await promptOf(service, 'work_on_next', { agent_id: 'resolver' }),
        await promptOf(service, 'hand_over_well', { target_agent: 'messenger' }),
      ];
      const resolver = agentOf(service, 'resolver', prompts);
      const { packet } = await resolver('claim_next', { wait_seconds: 30, lease_seconds: 600 });
      assert.equal(packet.id, task.id);
      assert.equal((await nextState()).state, 'TASK_STATE_WORKING');
      const held = { packet_id: packet.id, lease_token: packet.lease.token };
      const decision = { id: 'd1', decision: 'Refund the second charge', rationale: 'Same card, same second' };
      await resolver('update', { ...held, status: 'in_progress', decisions: [decision] });
      assert.equal((await nextState()).state, 'TASK_STATE_WORKING');

      const asking = resolver('ask_human', { ...held, question: 'Refund 59.90?', options: ['Yes', 'No'] });
      const asked = await nextState();
      assert.deepEqual([asked.state, asked.message.parts[0].text], ['TASK_STATE_INPUT_REQUIRED', 'Refund 59.90?']);
      const answered = await a2a(service, 'SendMessage', messageOf('Yes', { taskId: task.id }), { agent: 'intake' });
      assert.equal(answered.body.result?.task.status.state, 'TASK_STATE_WORKING', answered.text);
      assert.deepEqual([(await asking).response, (await asking).responded_by], ['Yes', 'first admin key']);
      assert.equal((await nextState()).state, 'TASK_STATE_WORKING');

      await resolver('renew_lease', held);
      const actions = { pending: [{ id: 'tell', description: 'Tell the customer', assignee: 'messenger' }] };
      const handedOn = {
        target_agent: 'messenger',
        parent_packet_id: task.id,
        summary: '59.90 is refunded.',
        decisions: [decision],
        actions,
      };
      const child = await resolver('hand_over', handedOn);
      await resolver('complete', { ...held, actions: { completed: [{ id: 'refund', description: 'Refund', result: '59.90 refunded' }] } });
      assert.equal((await stream.next()).value.result.artifactUpdate.artifact.parts[0].text, '59.90 refunded');
      assert.equal((await nextState()).state, 'TASK_STATE_COMPLETED');
      assert.equal((await stream.next()).done, true);

      const messenger = agentOf(service, 'messenger', [await promptOf(service, 'work_on_next', { agent_id: 'messenger' })]);
      const next = (await messenger('claim_next', { wait_seconds: 30, lease_seconds: 600 })).packet;
      assert.equal(next.id, child.id);
      const brief = (await callTool(service, 'get_brief', { packet_id: next.id })).content[0].text;
      for (const known of ['59.90 is refunded', 'Order 4711', 'Refund 59.90?', 'Yes'])
        assert.ok(brief.includes(known), `${known} in ${brief}`);
      const told = { id: 'tell', result: 'The customer knows' };
      await messenger('complete', { packet_id: next.id, lease_token: next.lease.token, actions: { completed: [told] } });
      assert.equal((await messenger('claim_next', {})).packet, null, 'nothing waits any more');

      const { tasks } = (await a2a(service, 'ListTasks', { contextId: task.contextId })).body.result;
      assert.deepEqual(
        tasks.map(({ id, contextId, status }: Record<string, unknown>) => [id, contextId, (status as { state: string }).state]),
        [child.id, task.id].map((id) => [id, task.id, 'TASK_STATE_COMPLETED']),
      );
      assert.deepEqual(await eventsOf(service, task.id), [
        'created agent:intake',
        'claimed agent:resolver',
        'in_progress agent:resolver',
        'awaiting_human agent:resolver',
        'hitl_responded agent:first admin key',
        'chained agent:resolver',
        'completed agent:resolver',
      ]);
      assert.deepEqual(await eventsOf(service, child.id), [
        'created agent:resolver',
        'claimed agent:messenger',
        'completed agent:messenger',
      ]);
    });
  });
}
