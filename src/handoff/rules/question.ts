import { invalid, ServiceError } from '../../kit/errors.ts';
import { choicesOf, isOption } from '../model/options.ts';
import type { Hitl, Packet, Question, RespondRequest } from '../model/packet.ts';
import { digestOf } from './digest.ts';
import { dataOf, requireSoundForm } from './form.ts';
import type { AnyPacket } from './packet.ts';
import { allows } from './packet-life.ts';

const unanswered = { response: null, responded_by: null, responded_at: null, notes: null };

/** The fields of a question that only the service sets, before it is asked. */
export const neverAsked = { ...unanswered, requested_at: null, expires_at: null, question_id: null, asked_by: null };

/** Requires that people can be shown the options and the form of a question. @throws ServiceError 400 that names the field */
export function requireSoundQuestion({ schema, options = [] }: Partial<Question>): void {
  if (schema !== undefined) requireSoundForm(schema);
  const other = options.findIndex((option) => !isOption(option));
  if (other !== -1) {
    const field = `hitl.options.${other}`;
    throw invalid(
      field,
      `${field} must be a text, or an object with value, a text, and optionally label, a text, and style, default or danger.`,
    );
  }
}

/** A question that was never asked. */
export function newQuestion(question: Question): Hitl {
  requireSoundQuestion(question);
  return { ...withoutOwn(question), ...neverAsked };
}

/** The question without the fields that only the service sets. */
export function withoutOwn<Q extends object>(question: Q): Q {
  const { data: _, digest: __, remind_at: ___, ...rest } = question as Q & { data?: unknown; digest?: unknown; remind_at?: unknown };
  return rest as Q;
}

/** The packet with the digest of its open question as it is now. */
export function withDigest<P extends AnyPacket>(packet: P): P {
  const { hitl } = packet;
  if (hitl === null || 'counts' in packet) return packet;
  return { ...packet, hitl: { ...hitl, digest: digestOf({ ...(packet as Packet), hitl }) } };
}

/** The agent that asks: the holder, else the agent that moves the packet, which is the source if the request names none. */
function askerOf({ claimed_by, metadata: { source_agent } }: AnyPacket, agentId: string | undefined) {
  if (claimed_by !== null) return { agent_id: claimed_by.agent_id, agent_name: claimed_by.agent_name };
  if (agentId !== undefined && agentId !== source_agent.id) return { agent_id: agentId, agent_name: agentId };
  return { agent_id: source_agent.id, agent_name: source_agent.name };
}

/** What a question is asked with. */
interface Asking {
  /** Whether the request brings a new question. */
  readonly isNew: boolean;
  readonly now: Date;
  readonly question_id?: string | undefined;
  readonly agentId: string | undefined;
}

/** The packet with its question asked: the time to answer starts now, and a new question clears the previous answer. */
export function ask<P extends AnyPacket>(packet: P, { isNew, now, question_id, agentId }: Asking): P {
  const { hitl } = packet;
  if (hitl === null) throw invalid('hitl', 'A packet that awaits a human needs a question: send hitl.');
  const asked_by = askerOf(packet, agentId);
  const fresh = isNew ? { ...withoutOwn(hitl), ...unanswered } : hitl;
  return withDigest(
    withReminder(
      withDeadline({ ...packet, hitl: { ...fresh, requested_at: now.toISOString(), question_id: question_id ?? null, asked_by } }),
    ),
  );
}

/** The packet after an update of its content: its deadline and reminder follow the question. A reminder is sent once only. */
export function updated<P extends AnyPacket>(packet: P, { hitl: before }: AnyPacket): P {
  const dated = withDeadline(packet);
  const { remind_after_seconds: seconds } = packet.hitl ?? {};
  const wasSent = before?.remind_after_seconds !== undefined && !before.remind_at;
  return seconds === before?.remind_after_seconds || wasSent ? dated : withReminder(dated);
}

/** The packet with `remind_at` computed from the time of its question; without one if no reminder is wanted. */
function withReminder<P extends AnyPacket>(packet: P): P {
  const { hitl } = packet;
  if (hitl === null || hitl.requested_at === null) return packet;
  const { remind_at: _, ...rest } = hitl;
  if (hitl.remind_after_seconds === undefined) return { ...packet, hitl: rest };
  return { ...packet, hitl: { ...rest, remind_at: secondsAfter(hitl.requested_at, hitl.remind_after_seconds) } };
}

const secondsAfter = (time: string, seconds: number): string => new Date(Date.parse(time) + seconds * 1000).toISOString();

/** The packet with `expires_at` computed from the time of its question. */
function withDeadline<P extends AnyPacket>(packet: P): P {
  const { hitl } = packet;
  if (hitl === null || hitl.requested_at === null) return packet;
  const { requested_at, timeout_seconds } = hitl;
  const expires_at = timeout_seconds === undefined ? null : secondsAfter(requested_at, timeout_seconds);
  return { ...packet, hitl: { ...hitl, expires_at } };
}

/** A sentence that says who answered and when; empty without an answer. */
export function answeredBy(hitl: Hitl | null): string {
  if (hitl === null || hitl.responded_by === null) return '';
  return ` ${hitl.responded_by} answered at ${hitl.responded_at}.`;
}

/** Whether the time to answer has passed. */
export function isOverdue({ expires_at }: Hitl, now: Date): boolean {
  return expires_at !== null && now.getTime() >= Date.parse(expires_at);
}

/** @throws ServiceError 403 when an update of an open question lets its source answer it */
export function requireStillExcluded(before: AnyPacket, after: AnyPacket): void {
  if (!allows(before, 'respond') || !before.hitl?.exclude_source || after.hitl?.exclude_source) return;
  throw new ServiceError('FORBIDDEN', 'exclude_source cannot be lifted while the question is open.', { field: 'hitl.exclude_source' });
}

/**
 * The part of an answer that the question determines. Data without a response is the response, as JSON.
 * @throws ServiceError 409 STALE when the person was shown something else, 400 when the answer is none of the question
 */
export function answerTo(packet: AnyPacket, hitl: Hitl, { response, data, digest }: RespondRequest): Pick<Hitl, 'response' | 'data'> {
  if (digest !== undefined && digest !== digestOf({ ...(packet as Packet), hitl }))
    throw new ServiceError('STALE', 'The question or what it is about has changed since; read it again.', {
      extra: { hitl: withDigest(packet).hitl },
    });
  if (hitl.schema === undefined) {
    if (data !== undefined) throw invalid('data', 'data is only taken by a question that has a schema.');
    if (response === undefined) throw invalid('response', 'response is required.');
    requireOption(hitl, response);
    return { response };
  }
  // An option beside a form declines the form.
  if (data === undefined && response !== undefined && valuesOf(hitl).includes(response)) return { response };
  if (data === undefined) throw invalid('data', declining(hitl));
  const whole = dataOf(hitl.schema, data);
  if (response !== undefined) requireOption(hitl, response);
  return { response: response ?? JSON.stringify(whole), data: whole };
}

const valuesOf = ({ options }: Hitl) => choicesOf(options).map(({ value }) => value);

const namesOf = (values: readonly string[]) => values.map((value) => JSON.stringify(value)).join(', ');

const declining = (hitl: Hitl) =>
  `data is required: the question has a schema.${valuesOf(hitl).length === 0 ? '' : ` Without it, response must be one of ${namesOf(valuesOf(hitl))}.`}`;

/** @throws ServiceError 400 when the question takes only its options and the response is none of them */
function requireOption(hitl: Hitl, response: string): void {
  if (!hitl.strict_options) return;
  const values = valuesOf(hitl);
  if (!values.includes(response)) throw invalid('response', `response must be one of ${namesOf(values)}.`);
}
