import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { generateText, type ModelMessage, type ToolApprovalResponse, type ToolSet, tool } from 'ai';
import { z } from 'zod';
import { createHandoffClient } from '../src/client.ts';
import { aiModel, refundOrder } from './approve-scripted.ts';

/** AI SDK: a tool call that needs an approval ends the generation; people decide, and the stored messages go on. */
const { SERVICE_URL = '', SERVICE_API_KEY, STATE = '', DIES } = process.env;
const client = createHandoffClient({ baseUrl: SERVICE_URL, apiKey: SERVICE_API_KEY });

// docs: ai-sdk
const refund = tool({
  inputSchema: z.object({ order: z.string(), amount: z.number() }),
  needsApproval: true,
  execute: client.requiresApproval(refundOrder, { agent: 'refunds', tool: 'refund' }),
});

async function responseTo(request: Request): Promise<ToolApprovalResponse> {
  const { toolName, input, toolCallId } = request.toolCall;
  const { approved, message } = await client.approve(toolName, input, { agent: 'refunds', call_id: toolCallId });
  return { type: 'tool-approval-response', approvalId: request.approvalId, approved, reason: message ?? '' };
}
// docs: end

type Content = Awaited<ReturnType<typeof generateText<ToolSet>>>['content'][number];
type Request = Extract<Content, { type: 'tool-approval-request' }> & { toolCall: { input: object } };

const prompt: ModelMessage[] = [{ role: 'user', content: 'Refund ORD-4711' }];
const options = { model: aiModel(), tools: { refund } as ToolSet };
if (!existsSync(STATE)) {
  const { content, response } = await generateText({ ...options, messages: prompt });
  const requests = content.filter(({ type }) => type === 'tool-approval-request');
  writeFileSync(STATE, JSON.stringify({ requests, messages: [...prompt, ...response.messages] }));
}
const { requests, messages } = JSON.parse(readFileSync(STATE, 'utf8')) as { requests: Request[]; messages: ModelMessage[] };
const content = await Promise.all(requests.map(responseTo));
if (DIES !== undefined) process.exit(9);
const { text } = await generateText({ ...options, messages: [...messages, { role: 'tool', content }] });
console.log(text);
