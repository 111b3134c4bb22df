import { hash } from 'node:crypto';

import { invalid, ServiceError } from '../../kit/errors.ts';
import { errors } from '../model/errors.ts';
import type { Answer, Question } from '../model/hitl.ts';
import { choicesOf } from '../model/options.ts';
import type { RespondRequest } from '../model/packet.ts';
import { requireDecisionFields } from './action-answer.ts';
import { dataOf } from './form.ts';
import type { AnyPacket } from './packet.ts';
import { move } from './packet-life.ts';
import { shownText, whole } from './question.ts';
import { type AskedRecord, closed, hitlOf, isAwaited, latestQuestion } from './question-state.ts';

/** How an answer was given. No tool of MCP answers a question yet, so no history has `mcp`. */
export type AnsweredVia = 'api' | 'console' | 'link' | 'mcp' | 'a2a';

/** The details of an answer by a link: its id, and whether the person entered a name. */
export interface LinkDetails {
  readonly answer_link_id: string;
  readonly unverified?: true;
}

/**
 * The part of an answer that the question determines. Data without a response is the response, as JSON.
 * @throws ServiceError 409 STALE when the person was shown something else, 400 when the answer is none of the question
 */
export function answerTo(packet: AnyPacket, record: AskedRecord, { digest, ...answer }: RespondRequest): Pick<Answer, 'response' | 'data'> {
  requireShown(packet, record, digest);
  requireDecisionFields(answer);
  const { question } = record;
  const { response, data } = answer;
  if (question.schema === undefined) {
    if (data !== undefined) throw invalid('data', 'data is only taken by a question that has a schema.');
    if (response === undefined) throw invalid('response', 'response is required.');
    requireOption(question, response);
    return { response };
  }
  // An option beside a form declines the form.
  if (data === undefined && response !== undefined && valuesOf(question).includes(response)) return { response };
  if (data === undefined) throw invalid('data', declining(question));
  const complete = dataOf(question.schema, data);
  if (response !== undefined) requireOption(question, response);
  return { response: response ?? JSON.stringify(complete), data: complete };
}

/** The field of a record that says that the person answered without opening the parts that the page had left out; empty otherwise. */
export const partialIn = ({ partial }: Pick<RespondRequest, 'partial'>): { readonly partial?: true } =>
  partial === true ? { partial } : {};

/** Requires that a person was shown the question as it is now. @throws ServiceError 409 STALE */
export function requireShown(packet: AnyPacket, record: AskedRecord, digest: string | undefined): void {
  if (digest !== undefined && digest !== hash('sha256', shownText(whole(packet), record)))
    throw new ServiceError(errors.STALE, 'The question or what it is about has changed since; read it again.', {
      extra: { hitl: packet.hitl },
    });
}

/** The packet with its open question answered: it goes on with its holder, else with its target agent. */
export function answeredPacket<P extends AnyPacket>(packet: P, { question, asked }: AskedRecord, answer: Answer, now: Date): P {
  const { target_agent } = packet.metadata;
  const held = packet.claimed_by !== null;
  return {
    ...move(packet, 'respond', now),
    hitl: hitlOf({ question, asked: asked.remind_at ? { ...asked, remind_at: null } : asked, answer }),
    claimed_by: held
      ? packet.claimed_by
      : { agent_id: target_agent.id, agent_name: target_agent.name, framework: target_agent.framework ?? null },
    claimed_at: held ? packet.claimed_at : now.toISOString(),
  };
}

const valuesOf = ({ options }: Question) => choicesOf(options).map(({ value }) => value);

const namesOf = (values: readonly string[]) => values.map((value) => JSON.stringify(value)).join(', ');

const declining = (question: Question) =>
  `data is required: the question has a schema.${valuesOf(question).length === 0 ? '' : ` Without it, response must be one of ${namesOf(valuesOf(question))}.`}`;

/** @throws ServiceError 400 when the question takes only its options and the response is none of them */
function requireOption(question: Question, response: string): void {
  if (!question.strict_options) return;
  const values = valuesOf(question);
  if (!values.includes(response)) throw invalid('response', `response must be one of ${namesOf(values)}.`);
}

/** A question that has ended. Nothing of it changes any more. */
export interface EndedQuestion extends AskedRecord {
  readonly state: 'answered' | 'replaced' | 'withdrawn' | 'timed_out' | 'ended';
  /** What the person was shown who answered, as canonical JSON. */
  readonly shown: string | null;
  /** The id of the question that an update made of it. */
  readonly replaced_by: string | null;
}

/** The questions that a change of their packet has ended: at most one, or two if it changed the open one and ended the packet. */
export const questionsEndedBy = (before: AnyPacket, after: AnyPacket, now: Date): EndedQuestion[] =>
  endedBy(before, after, now).map((ended) => ({ ...ended, asked: closed(ended.asked) }));

function endedBy(before: AnyPacket, after: AnyPacket, now: Date): EndedQuestion[] {
  const earlier = latestQuestion(before, now);
  const later = latestQuestion(after, now);
  const without = { shown: null, replaced_by: null };
  // A policy may decide in the moment in which a question is asked.
  const isNew =
    earlier.state === 'none' ||
    earlier.state === 'draft' ||
    (later.state === 'answered' && later.asked.question_id !== earlier.asked.question_id);
  const decided = later.state === 'answered' && isNew ? [{ ...later, ...without, shown: shownText(whole(after), later) }] : [];
  if (!isAwaited(before) || (earlier.state !== 'open' && earlier.state !== 'timed_out')) return decided;
  const late = earlier.state === 'timed_out' ? 'timed_out' : undefined;
  if (later.state === 'none' || later.state === 'draft') return [{ ...earlier, ...without, state: late ?? 'withdrawn' }];
  const { question_id, first_question_id } = later.asked;
  // Where the time decided, nobody was shown anything.
  const shown = 'counts' in before ? null : shownText(before, earlier);
  if (later.state === 'answered' && decided.length === 0) return [{ ...later, ...without, shown }];
  const ended: EndedQuestion[] = [];
  if (question_id !== earlier.asked.question_id)
    ended.push({ ...earlier, state: late ?? 'replaced', shown: null, replaced_by: first_question_id === undefined ? null : question_id });
  if (later.state !== 'open' && later.state !== 'answered' && !isAwaited(after)) ended.push({ ...later, ...without, state: later.state });
  return [...ended, ...decided];
}

/** The packet with the end of its open question, if a change ended the packet before an answer. */
export function withQuestionEnded<P extends AnyPacket>(before: AnyPacket, after: P, now: Date): P {
  const latest = latestQuestion(after, now);
  if (latest.state === 'none' || latest.state === 'draft' || latest.state === 'answered') return after;
  if (!isAwaited(before) || isAwaited(after)) return after;
  const { question, asked } = latest;
  return { ...after, hitl: hitlOf({ question, asked: { ...closed(asked), ended_at: now.toISOString() }, answer: null }) };
}
