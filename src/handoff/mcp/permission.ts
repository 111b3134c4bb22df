import { ApiError, ClientError } from '../../kit/client-errors.ts';
import { ServiceError } from '../../kit/errors.ts';
import { present } from '../face/call.ts';
import { routes } from '../model/api.ts';
import type { Packet } from '../model/packet.ts';
import { openStatuses } from '../rules/packet-life.ts';
import { latestQuestion } from '../rules/question-state.ts';
import type { ToolResult } from './results.ts';
import { approvalSeconds } from './schemas.ts';
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

/** How long one wait lasts, in seconds; after each, a client that wants it is told of the progress. Many give up after a minute without. */
const stepSeconds = 25;

/** Asks for the approval of a tool call and waits for it. Whatever is not an approval is a denial. */
export async function requestPermission(session: Session, request: PermissionRequest): Promise<ToolResult> {
  try {
    return await decided(session, request);
  } catch (error) {
    // Over stdio, refusals are errors of the client, and so is a service that is not reached.
    if (!(error instanceof ServiceError || error instanceof ClientError)) throw error;
    return deny(error.message);
  }
}

async function decided(session: Session, request: PermissionRequest): Promise<ToolResult> {
  const { timeout_seconds = approvalSeconds } = request;
  const end = session.now().getTime() + timeout_seconds * 1000;
  let packet = await asked(session, request);
  // A client that is gone reads no answer; its question stays open.
  while (!session.signal.aborted) {
    const now = session.now();
    const left = Math.ceil((end - now.getTime()) / 1000);
    if (latestQuestion(packet, now).state !== 'open' || left <= 0) return outcomeOf(packet, now);
    session.progress?.(timeout_seconds - left, timeout_seconds);
    packet = await changed(session, packet, Math.min(left, stepSeconds));
  }
  return deny('The client waits no more.');
}

/** The codes of refusals that pass: they say nothing about the question. */
const passing: ReadonlySet<string> = new Set(['RATE_LIMITED', 'SERVICE_UNAVAILABLE']);

/** How long a wait that was refused for now, or ended early since the service stops, is followed by a pause, in milliseconds. */
const pauseMs = 1000;

/** The packet after its next change, or as it is after some seconds. */
async function changed(session: Session, packet: Packet, wait_seconds: number): Promise<Packet> {
  const { call, signal, now, pause, refusalOf } = session;
  const begun = now().getTime();
  const query = { wait_seconds, until_revision: packet.revision + 1 };
  let after = packet;
  try {
    after = present(await call(routes.getPacket, { params: { id: packet.id }, query }));
  } catch (error) {
    if (!signal.aborted && !passing.has(refusalOf(error).code)) throw error;
  }
  const isEarly = after.revision === packet.revision && now().getTime() - begun < (wait_seconds * 1000) / 2;
  if (isEarly && !signal.aborted) await pause(pauseMs, signal);
  return after;
}

/**
 * The packet that asks about the call. A question that is over without a decision that holds is asked anew: in its packet, or in a new one
 * where that has ended.
 */
async function asked(session: Session, request: PermissionRequest): Promise<Packet> {
  const { tool_name: tool, input, tool_use_id, reason, agent_id, timeout_seconds = approvalSeconds } = request;
  const agent = agentOf(session, agent_id);
  const question = { timeout_seconds, ...(reason === undefined ? {} : { reason }) };
  let ended: Packet | undefined;
  for (let count = 1; ; count += 1) {
    const call_id = count === 1 ? tool_use_id : `${tool_use_id}~${count}`;
    const action = { tool, arguments: input, ...(call_id === undefined ? {} : { call_id }) };
    const next = ended === undefined ? {} : { parent_packet_id: ended.id };
    const packet = present(
      await session.call(routes.askApproval, { body: { agent: { id: agent }, action, ...question, ...next }, names: { agent } }),
    );
    if (!isOver(packet, session.now())) return packet;
    if (openStatuses.includes(packet.status)) return askAnew(session, packet, agent, { action, ...question });
    ended = packet;
  }
}

/** Whether nobody decided about the call in time, or the approval has expired. */
function isOver(packet: Packet, now: Date): boolean {
  const latest = latestQuestion(packet, now);
  if (latest.state === 'timed_out' || latest.state === 'none') return true;
  const until = latest.state === 'answered' ? latest.answer.decision?.valid_until : undefined;
  return typeof until === 'string' && now >= new Date(until);
}

async function askAnew(session: Session, { id }: Packet, agent: string, body: object): Promise<Packet> {
  try {
    return present(await session.call(routes.askQuestion, { params: { id }, body, names: { agent } }));
  } catch (error) {
    // The same call was asked about anew at this moment.
    if (!(error instanceof ServiceError || error instanceof ApiError) || error.code !== 'QUESTION_OPEN') throw error;
    return present(await session.packet(id));
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
