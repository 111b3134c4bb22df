import { appendFileSync } from 'node:fs';

import { createHandoffClient, type Packet } from '../../src/client.ts';

/**
 * An agent with a refund tool, as a process of its own: asks for the approval of one refund, waits, executes it once, reports the end.
 * Started again with the same CALL, it goes on where it was. DIES=1: it ends after the approval, before it executes.
 */
const { SERVICE_URL = '', SERVICE_API_KEY, CALL = '', AMOUNT = '', LEDGER = '', DIES } = process.env;
const client = createHandoffClient({ baseUrl: SERVICE_URL, apiKey: SERVICE_API_KEY });

/** The tool. What it does can't be undone. */
function refund(given: Record<string, unknown>): string {
  appendFileSync(LEDGER, `${JSON.stringify(given)}\n`);
  return `refunded ${given.amount}`;
}

const action = { tool: 'refund', arguments: { order: `ORD-${CALL}`, amount: Number(AMOUNT) }, call_id: CALL };
let packet: Packet = await client.askApproval({
  body: { agent: { id: 'refunds', framework: 'scripted' }, action, reason: 'Charged twice' },
});
while (packet.status === 'awaiting_human')
  packet = await client.getPacket({ params: { id: packet.id }, query: { wait_seconds: 30, until: ['claimed', 'completed', 'expired'] } });

const decision = packet.hitl?.decision;
if (decision === undefined || decision.valid_until === null)
  console.log(`not executed: ${decision?.message ?? decision?.decision ?? packet.status}`);
else if (DIES === '1') process.exit(1);
else {
  const params = { id: packet.id };
  const { execution } = await client.startExecution({ params, body: { arguments_digest: decision.arguments_digest } });
  const result = refund(decision.arguments);
  await client.endExecution({ params, query: { question_id: execution.question_id }, body: { status: 'succeeded', result } });
  console.log(`${result}, execution ${execution.id}`);
}
