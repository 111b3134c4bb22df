import { conflict, invalid, ServiceError } from '../../kit/errors.ts';
import type { ChannelEvent } from '../model/channel.ts';
import { statuses } from '../model/common.ts';
import { errors } from '../model/errors.ts';
import type { Packet, PacketSummary, PatchRequest } from '../model/packet.ts';
import type { WebhookEvent } from '../model/webhook.ts';
import { type Facts, type KeysBehind, type OpenCase, type Remembered, requireFacts, typed } from './action-case.ts';
import { considerAtTime, decideAction, withApproval, withCase } from './action-question.ts';
import { answeredPacket, answerTo, type EndedQuestion, partialIn, questionsEndedBy, withQuestionEnded } from './answer.ts';
import { requireVerified, typedName } from './answered-by.ts';
import type { Command } from './command.ts';
import { erase, requireKept } from './erasure.ts';
import { type KeptOfQuestions, keptAfter, type OwnPacket } from './kept.ts';
import { isLeaseOver, leaseAfter, leased, renewed, requireToken, type StoredLease } from './lease.ts';
import { mergeContent } from './merge.ts';
import { allowedFrom, allows, move, touched, type Verb, verbTo } from './packet-life.ts';
import {
  type Asking,
  askedOf,
  type GivenQuestion,
  type QuestionActor,
  questionToAsk,
  requireStillExcluded,
  updatedHitl,
  whoAnswered,
  whole,
  withAsked,
  withChanged,
} from './question.ts';
import { type EarlierQuestion, sameQuestion } from './question-key.ts';
import { type AskedRecord, isAwaited, latestQuestion, questionAtChange } from './question-state.ts';
import { requireActive } from './quorum.ts';
import { remind } from './reminder.ts';
import { heldUntil, requireStarted, timeReached, withTimes } from './times.ts';

/** The name of an event on streams. */
export type EventType = WebhookEvent | 'packet.updated' | 'packet.deleted' | 'hitl.reminder' | 'hitl.withdrawn';

/** The names of entries in histories and in the audit log: the status that the packet entered, or what else happened to it. */
export const packetEventTypes = [
  ...statuses,
  'answer_link_created',
  'answer_link_revoked',
  'approval_escalated',
  'approval_given',
  'available',
  'chained',
  'erased',
  'execution_failed',
  'execution_started',
  'execution_succeeded',
  'hitl_reminded',
  'hitl_responded',
  'hitl_timed_out',
  'lease_expired',
  'overdue',
  'question_withdrawn',
  'released',
  'updated',
] as const;

/** An entry in the trail of a packet. `type` is the event's name on streams and in webhooks; null: it is on neither. */
export interface PacketEvent {
  readonly event_type: (typeof packetEventTypes)[number];
  readonly type: EventType | null;
  readonly actor: string;
  readonly details: Record<string, unknown>;
  /** The event that channels send for it. */
  readonly notifies?: ChannelEvent | undefined;
  /** The people and groups whom a step of an approval asks, with the members of the groups: their channels send a message about the event too. */
  readonly tells?: readonly string[] | undefined;
}

/** A packet summary or a whole packet. Only an update of content needs the whole packet. */
export type AnyPacket = PacketSummary | Packet;

/** The packet after a command, and its events. A renewal of a lease has no event. */
export interface Decision<P extends AnyPacket = Packet> {
  readonly packet: P;
  readonly events: readonly PacketEvent[];
  /** Whether the packet must be indexed for search again. */
  readonly searchable: boolean;
  /** Whether the packet is removed permanently, with its content and its trail. */
  readonly isRemoved?: true;
  /** Whether its content is erased, with all that belongs to it. */
  readonly isErased?: true;
  /** The lease to store; left out when it does not change. */
  readonly lease?: StoredLease | null;
  /** What to keep of the packet's questions; left out when it does not change. */
  readonly kept?: KeptOfQuestions;
  /** How the open question about an action is approved; left out when it does not change, null when it is decided. */
  readonly approval?: OpenCase | null;
  readonly own?: OwnPacket;
  /** The counters that it increments, such as the number of uses of a standing approval. */
  readonly counts?: readonly string[];
  /** What a person lets stand for later actions. */
  readonly remembered?: Remembered;
  /** The questions that the command ended. */
  readonly ended?: readonly EndedQuestion[];
  /** The id of the question that a request to ask is about, and whether it was asked before. */
  readonly asked?: { readonly question_id: string; readonly isRepeated: boolean };
}

/** What is stored of a packet's questions beside the packet. */
export interface QuestionsBefore extends KeysBehind {
  readonly kept: KeptOfQuestions;
  /** The questions that ended, if the command asks. */
  readonly earlier: readonly EarlierQuestion[];
  /** What decides about actions and answers; other commands need none. */
  readonly facts?: Facts | undefined;
}

const noQuestions: QuestionsBefore = { kept: {}, earlier: [] };

/**
 * Returns the packet after the command, and its events. Pure.
 * @param stored the stored state of the packet's leases
 * @throws ServiceError when the command is not allowed
 */
export function decide<P extends AnyPacket>(
  packet: P,
  command: Command,
  now: Date,
  stored: StoredLease | null = null,
  questions: QuestionsBefore = noQuestions,
): Decision<P> {
  if (command.kind === 'erase') return erase(packet, command, now);
  if (command.kind !== 'remove' && command.kind !== 'time_out' && command.kind !== 'expire_unclaimed') requireKept(packet);
  if ('token' in command && !mayOverride(command, packet)) requireToken(packet, stored, command, now);
  const decision = withLease(command, decideOn(packet, command, now, stored, questions), now, stored);
  if (decision.packet === packet) return decision;
  // A packet without a question before and after the command keeps the same of its questions.
  if (packet.hitl === null && decision.packet.hitl === null && decision.own === undefined) return decision;
  const after = withQuestionEnded(packet, decision.packet, now);
  return { ...decision, packet: after, ended: questionsEndedBy(packet, after, now), kept: keptAfter(packet, after, decision, questions) };
}

function withLease<P extends AnyPacket>(command: Command, decision: Decision<P>, now: Date, stored: StoredLease | null): Decision<P> {
  if (decision.lease !== undefined || decision.packet.lease === null) return decision;
  const after = decision.events.length === 0 ? decision : { ...decision, ...leaseAfter(decision.packet, stored, now) };
  return 'holder' in command && command.holder !== undefined ? withRenewedLease(after, stored, now) : after;
}

/** The decision with a lease that starts again, since its holder is at work. */
function withRenewedLease<P extends AnyPacket>(decision: Decision<P>, stored: StoredLease | null, now: Date): Decision<P> {
  const { packet, lease = stored } = decision;
  if (packet.lease === null || lease === null || lease.token === null) return decision;
  return { ...decision, ...renewed(packet, lease, undefined, now) };
}

/** An admin may delete a leased packet without its token; a token that is sent must still be valid. */
function mayOverride(command: Command & { token?: string | undefined }, packet: AnyPacket): boolean {
  return command.kind === 'delete' && command.byAdmin === true && command.token === undefined && packet.lease !== null;
}

function decideOn<P extends AnyPacket>(
  packet: P,
  command: Exclude<Command, { kind: 'erase' }>,
  now: Date,
  stored: StoredLease | null,
  questions: QuestionsBefore,
): Decision<P> {
  switch (command.kind) {
    case 'claim':
      return claim(packet, command, now, stored);
    case 'patch':
      return patch(packet, command, now, questions);
    case 'ask':
      return ask(packet, command, now, questions);
    case 'withdraw':
      return withdraw(packet, command.agentId, now);
    case 'respond':
      return respond(packet, command, now, questions);
    case 'complete':
      if (!allows(packet, 'complete')) throw conflict(`The packet can't be completed. ${allowedFrom(packet)}`);
      requireAnswered(packet, conflict);
      return enter(packet, 'complete', actorOf(packet, command.agentId), now);
    case 'delete':
      if (!allows(packet, 'delete')) throw conflict('The packet is already expired.');
      return enter(packet, 'delete', actorOf(packet, command.agentId), now, { reason: 'deleted' });
    case 'release':
      return release(packet, command, now);
    case 'renew':
      requireLeased(packet, stored, 'renew');
      return { ...unchanged(packet), ...renewed(packet, stored, command.seconds, now) };
    case 'end_lease':
      requireLeased(packet, stored, 'end');
      if (!allows(packet, 'release')) throw conflict(`The packet is ${packet.status} and can't be released now.`);
      return setFree(packet, 'release', actorOf(packet, command.agentId), now);
    case 'remove':
      return {
        ...unchanged(packet),
        events: [{ event_type: 'erased', type: 'packet.deleted', actor: command.actor, details: {} }],
        isRemoved: true,
      };
    case 'time_out':
      if (isLeaseOver(packet, now)) return setFree(packet, 'lose', 'system:sweeper', now);
      return (
        timeOut(packet, now) ??
        considerAtTime(packet, questions, now) ??
        expireApproval(packet, questions, now) ??
        remind(packet, now) ??
        timeReached(packet, now) ??
        unchanged(packet)
      );
    case 'expire_unclaimed':
      if (!allows(packet, 'time_out') || heldUntil(packet) !== null) return unchanged(packet);
      return enter(packet, 'time_out', 'system:sweeper', now, { reason: 'unclaimed' });
  }
}

/** Requires a leased packet. `requireToken` lets a packet without a lease pass when no token is sent. */
function requireLeased(packet: AnyPacket, stored: StoredLease | null, verb: string): asserts stored is StoredLease {
  if (packet.lease === null || stored === null) {
    throw new ServiceError(errors.LEASE_LOST, `The packet has no lease to ${verb}.`);
  }
}

const unchanged = <P extends AnyPacket>(packet: P): Decision<P> => ({ packet, events: [], searchable: false });

/** The packet in its new status, and the event named after the status. */
function enter<P extends AnyPacket>(
  packet: P,
  verb: Verb,
  actor: string,
  now: Date,
  details: Record<string, unknown> = {},
  searchable = false,
): Decision<P> {
  const entered = move(packet, verb, now);
  const { status } = entered;
  const allDetails = verb === 'complete' ? { actions_completed: completedActions(packet), ...details } : details;
  const notice = verb === 'ask' || verb === 'ask_again' ? { notifies: 'asked' as const } : {};
  return { packet: entered, events: [{ event_type: status, type: `packet.${status}`, actor, details: allDetails, ...notice }], searchable };
}

function completedActions(packet: AnyPacket): number {
  return 'counts' in packet ? packet.counts.completed : packet.actions.completed.length;
}

/** The actor of a change: the agent named in the request, else the claimant, else the source agent. */
function actorOf(packet: AnyPacket, agentId: string | undefined): string {
  return `agent:${agentId ?? packet.claimed_by?.agent_id ?? packet.metadata.source_agent.id}`;
}

function claim<P extends AnyPacket>(
  packet: P,
  { claimant, terms }: Command & { kind: 'claim' },
  now: Date,
  stored: StoredLease | null,
): Decision<P> {
  if (packet.status === 'expired') throw new ServiceError('GONE', 'The packet has expired.');
  if (!allows(packet, 'claim')) {
    const holder = packet.claimed_by === null ? null : { ...packet.claimed_by, claimed_at: packet.claimed_at };
    const detail =
      holder === null
        ? `The packet is ${packet.status} and can't be claimed.`
        : `The packet is ${packet.status}; ${holder.agent_name} holds it.`;
    throw conflict(detail, { claimed_by: holder });
  }
  requireStarted(packet, now);
  const { packet: held, lease } = leased({ ...packet, claimed_by: claimant, claimed_at: now.toISOString() }, stored, terms, now);
  const details = terms === undefined ? { ...claimant } : { ...claimant, lease_seconds: terms.seconds };
  const claimed = enter(held, 'claim', `agent:${claimant.agent_id}`, now, details);
  return lease === null ? claimed : { ...claimed, lease };
}

/** Returns a packet to `created`. Allowed to the holder, to a caller with the lease token, and to an admin. */
function release<P extends AnyPacket>(packet: P, { agentId, token, byAdmin }: Command & { kind: 'release' }, now: Date): Decision<P> {
  if (!allows(packet, 'release'))
    throw conflict(`The packet is ${packet.status}; only a claimed packet or one in progress can be released.`);
  const isHolder = token !== undefined || (agentId !== undefined && agentId === packet.claimed_by?.agent_id);
  const sentence = 'Only the agent that holds the packet, or an admin key, may release it: name that agent in the request.';
  if (!isHolder && !byAdmin) throw new ServiceError('FORBIDDEN', sentence);
  return setFree(packet, 'release', actorOf(packet, agentId), now);
}

/** The packet without a claimant, so that it may be claimed again. */
function setFree<P extends AnyPacket>(packet: P, verb: 'release' | 'lose', actor: string, now: Date): Decision<P> {
  const details = { claimed_by: packet.claimed_by, ...(packet.lease === null ? {} : { generation: packet.lease.generation }) };
  const freed: P = { ...move(packet, verb, now), claimed_by: null, claimed_at: null };
  const event_type = verb === 'release' ? 'released' : 'lease_expired';
  return { packet: freed, events: [{ event_type, type: 'packet.updated', actor, details }], searchable: false };
}

function respond<P extends AnyPacket>(
  packet: P,
  {
    answer,
    via = 'api',
    link,
    by = typedName(answer.responded_by),
    decider = typed,
    actor = `human:${answer.responded_by}`,
    standingId,
  }: Command & { kind: 'respond' },
  now: Date,
  questions: QuestionsBefore,
): Decision<P> {
  const latest = latestQuestion(packet, now);
  if (!isAwaited(packet) || (latest.state !== 'open' && latest.state !== 'timed_out')) {
    throw conflict(`The packet is ${packet.status} and awaits no answer.${whoAnswered(latest)}`);
  }
  if (latest.state === 'timed_out') throw new ServiceError('GONE', 'The question is overdue.');
  requireActive(requireFacts(questions.facts).people(), answer.responded_by);
  requireVerified(latest.question, by);
  if (latest.question.action !== undefined)
    return decideAction(packet, latest, { answer, by, decider, via, link, standingId }, questions, now);
  const given = answerTo(packet, latest, answer);
  const { responded_by, notes = null } = answer;
  const partial = partialIn(answer);
  const told = { ...given, responded_by, answered_by: by, responded_at: now.toISOString(), notes, ...partial };
  const answered = answeredPacket(packet, latest, told, now);
  const { question_id, ...words } = askedOf(latest);
  const event: PacketEvent = {
    event_type: 'hitl_responded',
    type: 'hitl.response_ready',
    actor,
    notifies: 'answered',
    details: {
      ...given,
      question_id,
      question: words.question,
      ...(answer.digest === undefined ? {} : { digest: answer.digest }),
      via,
      answered_by: by,
      ...partial,
      ...link,
    },
  };
  return { packet: answered, events: [event], searchable: false };
}

/** Withdraws the open question: its packet goes back to its holder, or may be claimed if it has none, without a question. */
function withdraw<P extends AnyPacket>(packet: P, agentId: string | undefined, now: Date): Decision<P> {
  const verb = packet.claimed_by === null ? 'reopen' : 'withdraw';
  const latest = latestQuestion(packet, now);
  if (!allows(packet, verb) || latest.state === 'none' || latest.state === 'draft')
    throw conflict(`The packet is ${packet.status} and has no open question.${whoAnswered(latest)}`);
  const details = { question_id: latest.asked.question_id };
  const event: PacketEvent = { event_type: 'question_withdrawn', type: 'hitl.withdrawn', actor: actorOf(packet, agentId), details };
  return { packet: { ...move(packet, verb, now), hitl: null }, events: [event], searchable: true };
}

/** Applies `hitl.on_timeout` after the time to answer; undefined when there is nothing to do. */
function timeOut<P extends AnyPacket>(packet: P, now: Date): Decision<P> | undefined {
  const latest = latestQuestion(packet, now);
  if (latest.state !== 'timed_out') return undefined;
  const end = latest.question.on_timeout ?? 'keep';
  if (end === 'keep' || !allows(packet, `time_out_${end}`)) return undefined;
  const ended = enter(packet, `time_out_${end}`, 'system:sweeper', now, { reason: 'hitl_timed_out' });
  const details = { question_id: latest.asked.question_id, expires_at: latest.asked.expires_at };
  const timedOut: PacketEvent = { event_type: 'hitl_timed_out', type: null, actor: 'system:sweeper', details };
  return { ...ended, events: [timedOut, ...ended.events] };
}

/** Expires a packet that `POST /approvals` made, when its approval is no longer valid and no execution has begun. */
function expireApproval<P extends AnyPacket>(packet: P, { kept }: QuestionsBefore, now: Date): Decision<P> | undefined {
  const until = packet.hitl?.decision?.valid_until;
  if (kept.own !== 'waiting' || !until || now < new Date(until) || !allows(packet, 'expire')) return undefined;
  return enter(packet, 'expire', 'system:sweeper', now, { reason: 'approval_expired' });
}

type Refusal = (sentence: string) => ServiceError;
const onStatus: Refusal = (sentence) => invalid('status', sentence);

function requireAnswered(packet: AnyPacket, refuse: Refusal): void {
  const latest = questionAtChange(packet);
  if (latest.state !== 'none' && latest.state !== 'answered' && latest.question.required) {
    throw refuse('The packet requires a human answer before it can be completed.');
  }
}

type Patch = Command & { readonly kind: 'patch' };

function patch<P extends AnyPacket>(packet: P, command: Patch, now: Date, questions: QuestionsBefore): Decision<P> {
  const { status, ...content } = command.patch;
  const changed = Object.keys(content);
  const verb = status === undefined || status === packet.status ? undefined : requireVerb(packet, status);
  if (changed.length === 0 && verb === undefined) return unchanged(packet);
  if (changed.length > 0 && packet.status === 'expired') throw conflict("The packet is expired; its content can't be changed.");

  const { hitl: change, ...others } = content;
  const merged = Object.keys(others).length > 0 ? withTimes(mergeContent(whole(packet), others) as P, others, now) : packet;
  const details = changed.length > 0 ? { fields: changed } : {};
  if (verb === 'ask') {
    if (change === null) throw invalid('hitl', 'A packet that awaits a human needs a question: send hitl.');
    const given: GivenQuestion | undefined = change;
    const asked = askIn(merged, { ...command, asking: { given, usesDraft: true, path: 'hitl.' } }, now, questions, details);
    if (asked.asked?.isRepeated !== true || merged === packet) return asked;
    return updated(packet, merged, { ...command, details: { fields: Object.keys(others) } }, now, questions);
  }
  const after: P = { ...merged, hitl: updatedHitl(packet, change, { kept: questions.kept, isEnding: verb !== undefined, now }) };
  if (verb === undefined) return updated(packet, after, { ...command, details }, now, questions);
  if (verb === 'complete') requireAnswered(after, onStatus);
  const left = isAwaited(packet) && changed.length > 0 ? withChanged(after, { ...command, now }) : after;
  return enter(left, verb, actorOf(packet, command.agentId), now, details, changed.length > 0);
}

/** The verb for a status that an update moves the packet to. @throws ServiceError 400 */
function requireVerb(packet: AnyPacket, status: NonNullable<PatchRequest['status']>): Verb {
  const verb = verbTo[status];
  if (verb === undefined)
    throw onStatus(`A packet can't be moved to ${status} by an update${status === 'claimed' ? '; claim it' : ''}. ${allowedFrom(packet)}`);
  if (!allows(packet, verb)) throw onStatus(`The packet can't be moved to ${status}. ${allowedFrom(packet)}`);
  return verb;
}

/** The least time between two messages that an open question has changed, in milliseconds. */
const noticeMs = 60_000;

/** The packet after an update that does not move it. */
function updated<P extends AnyPacket>(
  packet: P,
  merged: P,
  { agentId, questionId, details }: Pick<Patch, 'agentId' | 'questionId'> & { details: Record<string, unknown> },
  now: Date,
  { kept, facts, sources, family }: QuestionsBefore,
): Decision<P> {
  requireStillExcluded(packet, merged.hitl);
  const actor = actorOf(packet, agentId);
  if (!isAwaited(packet)) {
    const event: PacketEvent = { event_type: 'updated', type: 'packet.updated', actor, details };
    return { packet: touched(merged, now), events: [event], searchable: true };
  }
  const after = withChanged(merged, { now, questionId, agentId });
  const [earlier, later] = [latestQuestion(packet, now), latestQuestion(after, now)] as AskedRecord[];
  const isReplaced = later!.asked.question_id !== earlier!.asked.question_id;
  const isTold = kept.notified_at !== undefined && now.getTime() - Date.parse(kept.notified_at) < noticeMs;
  // Another person is asked now, who has had no notice yet, or the link of an earlier message shows another question.
  const isNotified = later!.question.responder !== earlier!.question.responder || (isReplaced && !isTold);
  const event: PacketEvent = {
    event_type: 'updated',
    type: 'packet.updated',
    actor,
    details: isReplaced ? { ...details, ...askedOf(later!), replaced_question_id: earlier!.asked.question_id } : details,
    ...(isNotified ? { notifies: 'asked' as const } : {}),
  };
  const decision: Decision<P> = { packet: touched(after, now), events: [event], searchable: true };
  return isReplaced
    ? withApproval(decision, { kept, facts, sources, family, path: 'hitl.' }, now)
    : withCase(decision, kept, earlier!, packet);
}

/** Asks a question of exactly the fields that are sent. A question that has timed out may be followed by another one. */
function ask<P extends AnyPacket>(packet: P, command: Command & { kind: 'ask' }, now: Date, questions: QuestionsBefore): Decision<P> {
  return askIn(packet, { ...command, asking: { given: command.question, usesDraft: false, path: '' } }, now, questions);
}

interface AskingCommand extends Pick<QuestionActor, 'agentId' | 'questionId'> {
  readonly asking: Asking;
}

function askIn<P extends AnyPacket>(
  packet: P,
  { asking, agentId, questionId }: AskingCommand,
  now: Date,
  { kept, earlier, facts, sources, family }: QuestionsBefore,
  details: Record<string, unknown> = {},
): Decision<P> {
  const latest = latestQuestion(packet, now);
  const question = questionToAsk(packet, asking, kept, now);
  const known = sameQuestion(packet, question, asking.given ?? {}, earlier, now);
  if (known !== undefined) return { ...unchanged(packet), asked: { question_id: known, isRepeated: true } };
  if (isAwaited(packet) && latest.state === 'open')
    throw new ServiceError(errors.QUESTION_OPEN, 'A question of the packet is open; it must be answered or withdrawn first.', {
      extra: { question_id: latest.asked.question_id },
    });
  const verb = isAwaited(packet) ? 'ask_again' : 'ask';
  if (!allows(packet, verb)) throw onStatus(`The packet can't be moved to awaiting_human. ${allowedFrom(packet)}`);
  const asked = withAsked(packet, question, { now, questionId, agentId });
  const more = { ...details, ...askedOf(latestQuestion(asked, now) as AskedRecord) };
  const decision = enter(asked, verb, actorOf(packet, agentId), now, more, true);
  const considering = { kept, facts, sources, family, path: asking.path };
  return withApproval({ ...decision, asked: { question_id: questionId, isRepeated: false } }, considering, now);
}
