import type { Answer, Asked, Hitl, Question } from '../model/hitl.ts';
import type { Packet } from '../model/packet.ts';
import { askedStatus } from './packet-life.ts';

/** A question: what was asked, and once it is asked, what the service set and what was answered. */
export interface QuestionRecord {
  readonly question: Question;
  readonly asked: Asked | null;
  readonly answer: Answer | null;
}

/** A question that is asked. */
export interface AskedRecord extends QuestionRecord {
  readonly asked: Asked;
}

/**
 * The latest question of a packet and where it stands: `draft` before it is asked; `timed_out` from the second in which its time
 * elapses; `ended` if its packet ended first.
 */
export type LatestQuestion =
  | { readonly state: 'none' }
  | { readonly state: 'draft'; readonly question: Question }
  | (AskedRecord & { readonly state: 'open' | 'timed_out' | 'ended'; readonly answer: null })
  | (AskedRecord & { readonly state: 'answered'; readonly answer: Answer });

const unasked = { requested_at: null, expires_at: null, question_id: null, asked_by: null };
const unanswered = { response: null, responded_by: null, responded_at: null, notes: null };

/** Returns `hitl` of a packet from the records of its latest question. */
export function hitlOf({ question, asked, answer }: QuestionRecord): Hitl {
  return { ...question, ...(answer ?? unanswered), ...(asked ?? unasked) };
}

/** The fields of `hitl` that the service sets when it asks, and those of the answer. */
const askedFields: Record<keyof Asked, true> = {
  question_id: true,
  asked_by: true,
  requested_at: true,
  expires_at: true,
  remind_at: true,
  digest: true,
  first_question_id: true,
  ended_at: true,
  approvals: true,
  step: true,
  remember: true,
  verified_only: true,
  shadow: true,
  edited: true,
};
const answerFields: Record<keyof Answer, true> = {
  response: true,
  data: true,
  responded_by: true,
  answered_by: true,
  responded_at: true,
  notes: true,
  partial: true,
  decision: true,
};

/** What the service set, without what only an open question has. */
export const closed = ({ remember: _, verified_only: __, ...asked }: Asked): Asked => ('step' in asked ? { ...asked, step: null } : asked);

/** The fields of `hitl` that only the service sets. */
export const serviceFields: readonly string[] = [...Object.keys(askedFields), ...Object.keys(answerFields)];

/** The records of a packet's latest question, from its `hitl`. */
export function recordOf(hitl: Hitl): QuestionRecord {
  const parts = { question: {}, asked: {}, answer: {} } as Record<keyof QuestionRecord, Record<string, unknown>>;
  for (const [name, value] of Object.entries(hitl)) {
    const part = Object.hasOwn(askedFields, name) ? 'asked' : Object.hasOwn(answerFields, name) ? 'answer' : 'question';
    parts[part][name] = value;
  }
  const { question, asked, answer } = parts as unknown as { question: Question; asked: Asked; answer: Answer };
  return { question, asked: hitl.question_id === null ? null : asked, answer: hitl.response === null ? null : answer };
}

/** Whether the time to answer has passed. */
const isOver = ({ expires_at }: Pick<Asked, 'expires_at'>, at: Date): boolean =>
  expires_at !== null && at.getTime() >= Date.parse(expires_at);

/** The latest question of a packet and where it stands. Nothing else tells an open question from an answered one. */
export function latestQuestion({ status, hitl }: Pick<Packet, 'status' | 'hitl'>, now: Date): LatestQuestion {
  if (hitl === null) return { state: 'none' };
  const { question, asked, answer } = recordOf(hitl);
  if (asked === null) return { state: 'draft', question };
  if (answer !== null) return { state: 'answered', question, asked, answer };
  // After the end of its packet, time changes nothing any more.
  const end = asked.ended_at === undefined ? now : new Date(asked.ended_at);
  if (isOver(asked, end)) return { state: 'timed_out', question, asked, answer: null };
  return { state: status === askedStatus ? 'open' : 'ended', question, asked, answer: null };
}

/**
 * The latest question of a packet as it was at the packet's last change. A text that is
 * made from a packet alone uses it, so that the same packet always gives the same text. It differs from the question now only in
 * whether the question's time has passed since.
 */
export const questionAtChange = (packet: Pick<Packet, 'status' | 'hitl' | 'updated_at'>): LatestQuestion =>
  latestQuestion(packet, new Date(packet.updated_at));

/** Whether a packet awaits the answer to its latest question: also one whose time has passed, until it is withdrawn or its packet ends. */
export const isAwaited = ({ status }: Pick<Packet, 'status'>): boolean => status === askedStatus;
