import { notFound } from '../../kit/errors.ts';
import type { Hitl, Packet } from '../model/packet.ts';
import { askedStatus } from '../rules/packet-life.ts';
import { fenced } from './text.ts';

/** The result of a tool: what a program reads, and a short text for the model. */
export interface ToolResult {
  readonly structured: Record<string, unknown>;
  readonly text: string;
}

/** The result of a change, or of a wait for one. */
export const changed = (found: Packet | undefined): ToolResult => {
  const packet = must(found);
  return { structured: packet, text: `Packet ${packet.id} is ${packet.status}, revision ${packet.revision}.` };
};

/** The result of a question: the answer, or that there is none yet. */
export function answerOf({ id, status, hitl }: Pick<Packet, 'id' | 'status'> & { hitl: Hitl | null }, now: Date): ToolResult {
  const { question = null, response = null, responded_by = null, notes = null } = hitl ?? {};
  const reason = hitl !== null && isTimedOut(hitl, now) ? 'timed_out' : null;
  const structured = { packet_id: id, answered: response !== null, status, question, response, responded_by, notes, reason };
  if (response !== null)
    return { structured, text: `A person has answered.\n${fenced(`${responded_by}: ${response}${notes === null ? '' : `\n${notes}`}`)}` };
  if (reason !== null)
    return { structured, text: `Nobody answered in time: the question ended at ${hitl!.expires_at}. Packet ${id} is ${status}.` };
  const text =
    status === askedStatus
      ? `Nobody has answered yet. Call get_answer for packet ${id} later.`
      : `There is no answer, and none is pending: packet ${id} is ${status}.`;
  return { structured, text };
}

/** Whether the time to answer a question ended without an answer. */
export const isTimedOut = ({ response, expires_at }: Hitl, now: Date): boolean =>
  response === null && expires_at !== null && now.getTime() >= Date.parse(expires_at);

/** The value of an operation that always answers with a body. */
export function must<T>(value: T | undefined): T {
  if (value === undefined) throw notFound('packet');
  return value;
}
