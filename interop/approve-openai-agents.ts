import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, RunState, type RunToolApprovalItem, run, setTracingDisabled, tool } from '@openai/agents';
import { z } from 'zod';
import { createHandoffClient } from '../src/client.ts';
import { agentsModel, refundOrder } from './approve-scripted.ts';

/** OpenAI Agents SDK: a tool that needs an approval interrupts the run, whose state is stored until people decide. */
const { SERVICE_URL = '', SERVICE_API_KEY, STATE = '', DIES } = process.env;
const client = createHandoffClient({ baseUrl: SERVICE_URL, apiKey: SERVICE_API_KEY });

// docs: openai-agents
const refundTool = tool({
  name: 'refund',
  description: 'Refunds an order.',
  parameters: z.object({ order: z.string(), amount: z.number() }),
  needsApproval: true,
  errorFunction: null,
  execute: client.requiresApproval(refundOrder, { agent: 'refunds', tool: 'refund' }),
});

async function decide(state: RunState<unknown, Agent>, item: RunToolApprovalItem): Promise<void> {
  const { name, arguments: given, callId } = item.rawItem as { name: string; arguments: string; callId: string };
  const { approved, message } = await client.approve(name, JSON.parse(given), { agent: 'refunds', call_id: callId });
  approved ? state.approve(item) : state.reject(item, { message: message ?? 'Rejected' });
}
// docs: end

setTracingDisabled(true);
const agent = new Agent({ name: 'refunds', tools: [refundTool], model: agentsModel() });
let result = await run(agent, existsSync(STATE) ? await RunState.fromString(agent, readFileSync(STATE, 'utf8')) : 'Refund ORD-4711');
while (result.interruptions.length > 0) {
  writeFileSync(STATE, result.state.toString());
  for (const item of result.interruptions) await decide(result.state as never, item as never);
  if (DIES !== undefined) process.exit(9);
  result = await run(agent, result.state);
}
console.log(result.finalOutput);
