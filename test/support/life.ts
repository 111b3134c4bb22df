import type { Status } from '../../src/handoff/model/common.ts';
import { createPacket, type TestAnswer, type TestService } from './service.ts';

/** The agent that claims packets in tests. */
export const claimant = { agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' };

/** A question without a timeout. */
export const question = { required: false, reason: 'Refunds over 50 need approval', question: 'Refund 59.90?' };

/** The requests that move a new packet to each status, through a claim where possible. */
const requestsTo: Record<Status, readonly (readonly [method: string, tail: string, body?: unknown])[]> = {
  created: [],
  claimed: [['POST', '/claim', claimant]],
  in_progress: [
    ['POST', '/claim', claimant],
    ['PATCH', '', { status: 'in_progress' }],
  ],
  awaiting_human: [['PATCH', '', { status: 'awaiting_human' }]],
  completed: [
    ['POST', '/claim', claimant],
    ['PATCH', '', { status: 'completed' }],
  ],
  failed: [['PATCH', '', { status: 'failed' }]],
  expired: [['DELETE', '']],
};

/** Creates a packet with an optional question, moves it to the status by requests, and returns it. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into packets of every shape.
export async function packetIn(service: TestService, status: Status, changes: Record<string, unknown> = {}, key?: string): Promise<any> {
  const { id } = await createPacket(service, { hitl: question, ...changes }, key);
  const as = key === undefined ? {} : { key };
  for (const [method, tail, body] of requestsTo[status]) {
    const answer = await service.call(method, `/packets/${id}${tail}`, { ...as, ...(body === undefined ? {} : { body }) });
    if (answer.status >= 300) throw new Error(`${method} ${tail} on the way to ${status}: ${answer.status} ${answer.text}`);
  }
  return (await service.call('GET', `/packets/${id}`, as)).body;
}

/** A packet's history. */
export async function historyOf(
  service: TestService,
  id: string,
  key?: string,
): Promise<{ timestamp: string; event_type: string; actor: string; details: Record<string, unknown> }[]> {
  const answer = await service.call('GET', `/packets/${id}/history`, key === undefined ? {} : { key });
  if (answer.status !== 200) throw new Error(`The history of ${id}: ${answer.status} ${answer.text}`);
  // The key of an event has its own tests.
  return answer.body.events.map(({ key_id: _, ...event }: { key_id: string | null }) => event);
}

/** The event types in a packet's history, in order. */
export async function happenings(service: TestService, id: string, key?: string): Promise<string[]> {
  return (await historyOf(service, id, key)).map(({ event_type }) => event_type);
}

/** An error body without its request id, to compare two refusals. */
export function refusal({ body }: TestAnswer): Record<string, unknown> {
  const { request_id: _, ...rest } = body;
  return rest;
}

/** An id that no packet has. */
export const unknownId = '0197b5a6-8c3e-7f01-9a2b-000000000000';
