import { existsSync } from 'node:fs';
import { type CanUseTool, createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { z } from 'zod';
import { createHandoffClient } from '../src/client.ts';
import { startModel } from '../tools/hooks/model.ts';
import { refundOrder } from './approve-scripted.ts';

/** Claude Agent SDK: `canUseTool` asks people, and the tool runs once. A session that is resumed calls the tool with a new id. */
const { SERVICE_URL = '', SERVICE_API_KEY, STATE = '', DIES } = process.env;
const client = createHandoffClient({ baseUrl: SERVICE_URL, apiKey: SERVICE_API_KEY });
const task = 'order-4711';

// docs: claude-agent-sdk
const own = { agent: 'refunds', tool: 'mcp__desk__refund', call_id: `${task}:refund` };
const run = client.requiresApproval(refundOrder, own);
const fields = { order: z.string(), amount: z.number() };
const refund = tool('refund', 'Refunds an order.', fields, async (given) => ({ content: [{ type: 'text', text: await run(given) }] }));

const canUseTool: CanUseTool = async (name, input, { toolUseID, signal }) => {
  const call_id = name === own.tool ? own.call_id : toolUseID;
  const { approved, arguments: updatedInput, message } = await client.approve(name, input, { agent: own.agent, call_id, signal });
  return approved ? { behavior: 'allow', updatedInput } : { behavior: 'deny', message: message ?? 'Rejected' };
};
// docs: end

const model = await startModel({ name: 'mcp__desk__refund', input: { order: 'ORD-4711', amount: 500 } });
const session = '5f2f3b8e-7f2f-4a53-9a3a-0d6f3c1c8a11';
const conversation = query({
  prompt: 'Refund ORD-4711',
  options: {
    ...(existsSync(STATE) ? { resume: session } : { sessionId: session }),
    ...{ tools: [], settingSources: [], mcpServers: { desk: createSdkMcpServer({ name: 'desk', tools: [refund] }) } },
    env: {
      ...{ PATH: process.env.PATH, HOME: STATE, CLAUDE_CONFIG_DIR: STATE, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
      ...{ ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'scripted' },
    },
    canUseTool: async (...call) => {
      const result = await canUseTool(...call);
      if (DIES !== undefined) process.exit(9);
      return result;
    },
  },
});
for await (const _ of conversation);
console.log(model.results.join());
model.stop();
