import { present } from '../face/call.ts';
import type { Answer } from '../model/hitl.ts';
import type { Packet } from '../model/packet.ts';
import type { QuestionView } from '../model/question.ts';
import { latestQuestion } from '../rules/question-state.ts';
import { fenced } from './text.ts';

/** The result of a tool: what a program reads, and a short text for the model. */
export interface ToolResult {
  readonly structured: Record<string, unknown>;
  readonly text: string;
}

/** The result of a change, or of a wait for one. */
export const changed = (found: Packet | undefined): ToolResult => {
  const packet = present(found);
  return { structured: packet, text: `Packet ${packet.id} is ${packet.status}, revision ${packet.revision}.` };
};

/** A question as a tool tells of it. */
export interface ToldQuestion {
  readonly question_id: string | null;
  readonly state: QuestionView['state'] | 'draft' | 'none';
  readonly question: string | null;
  readonly expires_at: string | null;
  readonly answer: Answer | null;
}

/** The latest question of a packet. */
export function toldOf(packet: Packet, now: Date): ToldQuestion {
  const latest = latestQuestion(packet, now);
  if (latest.state === 'none') return { question_id: null, state: 'none', question: null, expires_at: null, answer: null };
  const { question } = latest.question;
  if (latest.state === 'draft') return { question_id: null, state: 'draft', question, expires_at: null, answer: null };
  const { question_id, expires_at } = latest.asked;
  return { question_id, state: latest.state, question, expires_at, answer: latest.answer };
}

/** The result of a question: the answer, or why there is none. */
export function answerOf({ id, status }: Pick<Packet, 'id' | 'status'>, told: ToldQuestion): ToolResult {
  const { question_id, question, answer, state, expires_at } = told;
  const { response = null, responded_by = null, answered_by = null, notes = null, decision = null } = answer ?? {};
  const who = answered_by !== null && !answered_by.verified ? `${responded_by} (typed, not verified)` : responded_by;
  const reason = state === 'timed_out' || state === 'replaced' ? state : null;
  const ids = { packet_id: id, question_id, answered: answer !== null, status };
  const structured = { ...ids, question, response, responded_by, answered_by, notes, decision, reason };
  if (answer !== null) {
    const called = decision === null ? [] : [`arguments: ${JSON.stringify(decision.arguments)}`];
    const said = [`${who}: ${response}`, ...called, decision?.message ?? '', notes ?? ''].filter((line) => line !== '');
    return { structured, text: `A person has answered.\n${fenced(said.join('\n'))}` };
  }
  return { structured, text: withoutAnswer[state](id, status, expires_at) };
}

type Sentence = (id: string, status: string, expires_at: string | null) => string;
const nonePending: Sentence = (id, status) => `There is no answer, and none is pending: packet ${id} is ${status}.`;
const withoutAnswer: Record<ToldQuestion['state'], Sentence> = {
  open: (id) => `Nobody has answered yet. Call get_answer for packet ${id} later.`,
  timed_out: (id, status, expires_at) => `Nobody answered in time: the question ended at ${expires_at}. Packet ${id} is ${status}.`,
  replaced: (id) => `Another agent has changed the question of packet ${id} before anybody answered.`,
  ...{ answered: nonePending, withdrawn: nonePending, ended: nonePending, draft: nonePending, none: nonePending },
};
