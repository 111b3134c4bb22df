import { ServiceError } from '../../kit/errors.ts';
import { present } from '../face/call.ts';
import { routes } from '../model/api.ts';
import type { Packet } from '../model/packet.ts';
import { latestQuestion } from '../rules/question-state.ts';
import type { ToolResult } from './results.ts';
import { approvalSeconds, maxToolSeconds } from './schemas.ts';
import { agentOf, type Session } from './session.ts';

/** The arguments of `request_approval`. */
export interface PermissionRequest {
  readonly tool_name: string;
  readonly input: Record<string, unknown>;
  readonly tool_use_id?: string;
  readonly reason?: string;
  readonly agent_id?: string;
  readonly timeout_seconds?: number;
}

/** The answer to the permission prompt of a coding agent: the text is exactly this JSON. */
const answered = (structured: Record<string, unknown>): ToolResult => ({ structured, text: JSON.stringify(structured) });
const deny = (message: string): ToolResult => answered({ behavior: 'deny', message });

/** Asks for the approval of a tool call and waits for it. Whatever is not an approval is a denial. */
export async function requestPermission(session: Session, request: PermissionRequest): Promise<ToolResult> {
  try {
    return await decided(session, request);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return deny(error.message);
  }
}

async function decided(session: Session, request: PermissionRequest): Promise<ToolResult> {
  const { tool_name: tool, input, tool_use_id: call_id, reason, agent_id, timeout_seconds = approvalSeconds } = request;
  const agent = agentOf(session, agent_id);
  const action = { tool, arguments: input, ...(call_id === undefined ? {} : { call_id }) };
  const body = { agent: { id: agent }, action, timeout_seconds, ...(reason === undefined ? {} : { reason }) };
  let packet = present(await session.call(routes.askApproval, { body, names: { agent } }));
  const end = session.now().getTime() + timeout_seconds * 1000;
  for (;;) {
    const now = session.now();
    const left = Math.ceil((end - now.getTime()) / 1000);
    if (latestQuestion(packet, now).state !== 'open' || left <= 0) return outcomeOf(packet, now);
    const query = { wait_seconds: Math.min(left, maxToolSeconds), until_revision: packet.revision + 1 };
    packet = present(await session.call(routes.getPacket, { params: { id: packet.id }, query }));
  }
}

/** What became of the question of a packet: silence is never an approval. */
function outcomeOf(packet: Packet, now: Date): ToolResult {
  const latest = latestQuestion(packet, now);
  if (latest.state !== 'answered') return deny(`Nobody approved the call in time. Packet ${packet.id} is ${packet.status}.`);
  const { decision } = latest.answer;
  if (decision?.valid_until === null || decision === undefined) return deny(decision?.message ?? 'The call was rejected.');
  if (now >= new Date(decision.valid_until)) return deny(`The approval was valid until ${decision.valid_until}.`);
  return answered({ behavior: 'allow', updatedInput: decision.arguments });
}
