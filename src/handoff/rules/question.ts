import { hash } from 'node:crypto';
import { conflict, invalid, ServiceError } from '../../kit/errors.ts';
import { errors } from '../model/errors.ts';
import type { Asked, Hitl, Question } from '../model/hitl.ts';
import { isOption } from '../model/options.ts';
import type { Packet, PatchRequest } from '../model/packet.ts';
import { withSoundAction } from './action.ts';
import { canonicalJson } from './canonical-json.ts';
import { cut } from './cut.ts';
import { requireSoundForm } from './form.ts';
import { inherited, type KeptOfQuestions } from './kept.ts';
import type { AnyPacket } from './packet.ts';
import {
  type AskedRecord,
  hitlOf,
  isAwaited,
  type LatestQuestion,
  latestQuestion,
  type QuestionRecord,
  serviceFields,
} from './question-state.ts';

/** Fields of `hitl` in a request. */
export type GivenQuestion = Partial<Question>;

/** Returns the canonical JSON (RFC 8785) of what a person is shown to answer a question. */
export function shownText(
  { context, actions, decisions }: Packet,
  {
    question: { question, reason, options, schema, action },
    asked,
  }: Pick<QuestionRecord, 'question'> & { asked?: Pick<Asked, 'edited'> | null },
): string {
  const words = { question, reason, options: options ?? null, schema: schema ?? null };
  // An action is shown with the arguments that would be approved now.
  const shown =
    action === undefined ? {} : { action: asked?.edited === undefined ? action : { ...action, edited: asked.edited.arguments } };
  return canonicalJson({ ...words, summary: context.summary, pending: actions.pending, decisions, ...shown });
}

/** The SHA-256, in hex, of what a person is shown to answer a question. */
export const shownDigest = (packet: Packet, record: Parameters<typeof shownText>[1]): string => hash('sha256', shownText(packet, record));

/** Requires that people can be shown the options and the form of a question. @throws ServiceError 400 that names the field */
function requireSoundQuestion({ schema, options = [] }: GivenQuestion, path: string): void {
  if (schema !== undefined) requireSoundForm(schema);
  const other = options.findIndex((option) => !isOption(option));
  if (other === -1) return;
  const field = `${path}options.${other}`;
  throw invalid(
    field,
    `${field} must be a text, or an object with value, a text, and optionally label, a text, and style, default or danger.`,
  );
}

/** The draft of a question in a request that creates a packet. What only the service sets is ignored. */
export function draftOf(given: GivenQuestion): Hitl {
  const own = Object.entries(given).filter(([name]) => !serviceFields.includes(name));
  const question = complete(Object.fromEntries(own), 'hitl.');
  return hitlOf({ question, asked: null, answer: null });
}

/**
 * The fields of a request that an agent may set. Fields that the service sets may repeat what stands there.
 * @throws ServiceError 400 that names a field with another value
 */
function givenFields(given: GivenQuestion, current: Hitl | null, path = 'hitl.'): GivenQuestion {
  const standing = (current ?? {}) as Readonly<Record<string, unknown>>;
  const own: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (!serviceFields.includes(name)) own[name] = value;
    else if (value !== null && value !== undefined && canonicalJson(value) !== canonicalJson(standing[name] ?? null))
      throw invalid(`${path}${name}`, `${path}${name} is set by the service; leave it out.`);
  }
  return own;
}

/** Requires the fields that every question has. @throws ServiceError 400 */
function complete(given: GivenQuestion, path: string): Question {
  const question = withSoundAction(given, path);
  for (const field of ['required', 'reason', 'question'] as const) {
    if (question[field] === undefined) throw invalid(`${path}${field}`, `${path}${field} is required: the packet has no question yet.`);
  }
  requireSoundQuestion(question, path);
  return question as Question;
}

/**
 * `hitl` after an update that asks nothing: a draft or an open question with the fields that are sent; null without a question.
 * `isEnding`: the update also ends the packet, and its open question with it, which null then withdraws.
 * @throws ServiceError 409 when the question is no longer open, 400 for a field that can't change
 */
export function updatedHitl(
  packet: AnyPacket,
  change: PatchRequest['hitl'],
  { kept, isEnding, now }: { kept: KeptOfQuestions; isEnding: boolean; now: Date },
): Hitl | null {
  const { hitl } = packet;
  if (change === undefined) return hitl;
  const latest = latestQuestion(packet, now);
  if (change === null) {
    if (isAwaited(packet) && isEnding) return null;
    if (isAwaited(packet)) throw invalid('hitl', 'The packet awaits an answer; its question can only be removed after a change of status.');
    if (latest.state !== 'none' && latest.state !== 'draft') throw noLongerOpen(latest);
    return null;
  }
  const given = givenFields(change, hitl);
  if (latest.state === 'none' || latest.state === 'draft') {
    const earlier = latest.state === 'draft' ? latest.question : inherited(packet, kept);
    return hitlOf({ question: complete({ ...earlier, ...given }, 'hitl.'), asked: null, answer: null });
  }
  const question = complete({ ...latest.question, ...given }, 'hitl.');
  if (canonicalJson(question) === canonicalJson(latest.question)) return hitl;
  if (!isAwaited(packet)) throw noLongerOpen(latest);
  if (question.key !== latest.question.key) throw invalid('hitl.key', 'hitl.key belongs to the open question; it cannot change.');
  return hitlOf({ question, asked: dated(question, latest), answer: null });
}

function noLongerOpen({ state, answer, asked }: LatestQuestion & AskedRecord): ServiceError {
  if (answer !== null)
    return new ServiceError(
      errors.ANSWERED,
      `The question can't be changed: ${answer.responded_by} answered at ${answer.responded_at}. Ask a new one.`,
      {
        extra: { question_id: asked.question_id },
      },
    );
  const end = state === 'timed_out' ? 'its time to answer is over' : 'its packet has ended';
  return conflict(`The question can't be changed: ${end}. Ask a new one.`);
}

/** What a question is asked with. */
export interface Asking {
  /** The fields that are sent; undefined: the draft, or the latest question again. */
  readonly given: GivenQuestion | undefined;
  /** Whether the draft of the packet is asked, with the fields that are sent. */
  readonly usesDraft: boolean;
  readonly path: string;
}

/**
 * The question that a request asks: the draft, exactly the fields that are sent, or the latest question again.
 * @throws ServiceError 400 when there is no question, or an unsound one
 */
export function questionToAsk(packet: AnyPacket, { given, usesDraft, path }: Asking, kept: KeptOfQuestions, now: Date): Question {
  const latest = latestQuestion(packet, now);
  const sent = given === undefined ? undefined : givenFields(given, packet.hitl, path);
  const stays = inherited(packet, kept);
  let question: GivenQuestion;
  if (latest.state === 'draft' && usesDraft) question = { ...latest.question, ...sent };
  else if (sent !== undefined) question = { ...stays, ...sent };
  else if (latest.state === 'none') throw invalid('hitl', 'A packet that awaits a human needs a question: send hitl.');
  else {
    // Asked again it is another question, which its key would make the same one.
    const { key: _, ...again } = latest.question;
    question = again;
  }
  return complete({ required: true, reason: '', ...question }, path);
}

/** The agent that asks: the holder, else the agent that the request names, else the source. */
function askerOf({ claimed_by, metadata: { source_agent } }: AnyPacket, agentId: string | undefined): Asked['asked_by'] {
  if (claimed_by !== null) return { agent_id: claimed_by.agent_id, agent_name: claimed_by.agent_name };
  if (agentId !== undefined && agentId !== source_agent.id) return { agent_id: agentId, agent_name: agentId };
  return { agent_id: source_agent.id, agent_name: source_agent.name };
}

/** The agent that changes an open question: the asker, unless the request names another one. */
function changerOf(packet: AnyPacket, { asked_by }: Asked, agentId: string | undefined): Asked['asked_by'] {
  const changer = agentId === undefined ? askerOf(packet, agentId) : { agent_id: agentId, agent_name: agentId };
  return changer.agent_id === asked_by.agent_id ? asked_by : changer;
}

/** Who does something to a question, and when. */
export interface QuestionActor {
  readonly now: Date;
  /** The id for a new question. */
  readonly questionId: string;
  readonly agentId: string | undefined;
}

/** The packet with a new question asked: its time to answer starts now. */
export function withAsked<P extends AnyPacket>(packet: P, question: Question, { now, questionId, agentId }: QuestionActor): P {
  const digest = shownDigest(whole(packet), { question });
  const requested_at = now.toISOString();
  const asked = { question_id: questionId, asked_by: askerOf(packet, agentId), requested_at, expires_at: null, digest };
  return { ...packet, hitl: hitlOf({ question, asked: dated(question, { question, asked, answer: null }, true), answer: null }) };
}

/**
 * The packet after an update while its question is open. What changes the digest makes a new question, which goes on from the
 * first asking.
 */
export function withChanged<P extends AnyPacket>(packet: P, { now, questionId, agentId }: QuestionActor): P {
  const latest = latestQuestion(packet, now);
  if (latest.state !== 'open' && latest.state !== 'timed_out') return packet;
  const { question, asked } = latest;
  const digest = shownDigest(whole(packet), latest);
  if (digest === asked.digest) return packet;
  const first_question_id = asked.first_question_id ?? asked.question_id;
  // Approvals were of what was shown before.
  const { approvals: _, step: __, shadow: ___, edited: ____, ...kept } = asked;
  const changed: Asked = {
    ...kept,
    question_id: questionId,
    first_question_id,
    digest: asked.edited === undefined ? digest : shownDigest(whole(packet), { question }),
    asked_by: changerOf(packet, asked, agentId),
  };
  return { ...packet, hitl: hitlOf({ question, asked: changed, answer: null }) };
}

/** What the service set, with deadline and reminder as the question wants them. A reminder is sent once only. */
function dated(question: Question, { question: before, asked }: AskedRecord, isNew = false): Asked {
  const { remind_at, ...rest } = asked;
  const { timeout_seconds: timeout, remind_after_seconds: reminder } = question;
  const expires_at = timeout === undefined ? null : secondsAfter(asked.requested_at, timeout);
  const wasSent = before.remind_after_seconds !== undefined && !remind_at;
  const isKept = !isNew && (reminder === before.remind_after_seconds || wasSent);
  if (isKept) return { ...rest, expires_at, ...(remind_at === undefined ? {} : { remind_at }) };
  return { ...rest, expires_at, ...(reminder === undefined ? {} : { remind_at: secondsAfter(asked.requested_at, reminder) }) };
}

const secondsAfter = (time: string, seconds: number): string => new Date(Date.parse(time) + seconds * 1000).toISOString();

/** A sentence that says who answered and when; empty without an answer. */
export function whoAnswered(latest: LatestQuestion): string {
  return latest.state === 'answered' ? ` ${latest.answer.responded_by} answered at ${latest.answer.responded_at}.` : '';
}

/** @throws ServiceError 403 when an update of an open question lets its source answer it */
export function requireStillExcluded(before: AnyPacket, after: Hitl | null): void {
  if (!isAwaited(before) || !before.hitl?.exclude_source || after?.exclude_source) return;
  throw new ServiceError('FORBIDDEN', 'exclude_source cannot be lifted while the question is open.', { field: 'hitl.exclude_source' });
}

/** Narrows to a whole packet; callers check `needsWhole` before they load a packet. */
export function whole(packet: AnyPacket): Packet {
  if ('counts' in packet) throw new Error('This needs the whole packet.');
  return packet;
}

/** The most characters of a question in the details of an event. */
const maxAsked = 1000;

/** A question and its responder, for the details of an event. */
export const askedOf = ({ question, asked }: AskedRecord) => ({
  question_id: asked.question_id,
  question: cut(question.question, maxAsked),
  ...(question.responder === undefined ? {} : { responder: question.responder }),
});
