import { conflict, invalid, ServiceError } from '../../kit/errors.ts';
import type { ChannelEvent } from '../model/channel.ts';
import { statuses } from '../model/common.ts';
import {
  type ChainRequest,
  type Claimant,
  type Hitl,
  type Packet,
  type PacketSummary,
  type PatchRequest,
  packetVersion,
  type RespondRequest,
} from '../model/packet.ts';
import type { WebhookEvent } from '../model/webhook.ts';
import { cut } from './cut.ts';
import { isLeaseOver, type LeaseProof, type LeaseTerms, leaseAfter, leased, renewed, requireToken, type StoredLease } from './lease.ts';
import { mergeContent } from './merge.ts';
import { allowedFrom, allows, askedStatus, claimableStatus, move, touched, type Verb, verbTo } from './packet-life.ts';
import { answeredBy, answerTo, ask, isOverdue, newQuestion, requireStillExcluded, updated, withDigest } from './question.ts';
import { remind } from './reminder.ts';

/** The name of an event on streams. */
export type EventType = WebhookEvent | 'packet.updated' | 'packet.deleted' | 'hitl.reminder' | 'hitl.withdrawn';

/** The names of entries in histories and in the audit log: the status that the packet entered, or what else happened to it. */
export const packetEventTypes = [
  ...statuses,
  'answer_link_created',
  'answer_link_revoked',
  'chained',
  'deleted',
  'hitl_reminded',
  'hitl_responded',
  'hitl_timed_out',
  'lease_expired',
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
}

/** How an answer was given. */
export type AnsweredVia = 'api' | 'console' | 'link' | 'mcp' | 'a2a';

/** The details of an answer by a link: its id, and whether the person entered a name. */
interface LinkDetails {
  readonly answer_link_id: string;
  readonly unverified?: true;
}

/** A request to change an existing packet, from a caller or from a background job. */
export type Command =
  | { readonly kind: 'claim'; readonly claimant: Claimant; readonly terms?: LeaseTerms | undefined }
  | ({
      readonly kind: 'patch';
      readonly patch: PatchRequest;
      readonly agentId: string | undefined;
      /** The id of the question, if the patch asks one. */
      readonly questionId?: string;
    } & LeaseProof)
  | { readonly kind: 'withdraw'; readonly agentId: string | undefined }
  | {
      readonly kind: 'respond';
      readonly answer: RespondRequest;
      readonly via?: AnsweredVia;
      readonly link?: LinkDetails;
      readonly actor?: string | undefined;
    }
  | { readonly kind: 'complete'; readonly agentId: string | undefined; readonly token?: string | undefined }
  | { readonly kind: 'delete'; readonly agentId: string | undefined; readonly token?: string | undefined; readonly byAdmin?: boolean }
  | ({ readonly kind: 'release'; readonly agentId: string | undefined; readonly byAdmin: boolean } & LeaseProof)
  | ({ readonly kind: 'renew'; readonly seconds: number | undefined } & LeaseProof)
  | { readonly kind: 'end_lease'; readonly agentId: string | undefined; readonly token: string | undefined }
  | { readonly kind: 'remove'; readonly actor: string }
  | { readonly kind: 'time_out' }
  | { readonly kind: 'expire_unclaimed' };

/** Whether a patch asks a person. */
export const asksPerson = ({ status }: PatchRequest): boolean => status !== undefined && verbTo[status] === 'ask';

/** A packet summary or a whole packet. Only an update of content needs the whole packet. */
export type AnyPacket = PacketSummary | Packet;

/** Whether the command changes the packet's content. */
export function changesContent(command: Command): boolean {
  return command.kind === 'patch' && Object.keys(command.patch).some((field) => field !== 'status');
}

/** Whether the command needs the whole packet: for its content, or for the digest of its question. */
export function needsWhole(command: Command): boolean {
  if (command.kind === 'respond') return command.answer.digest !== undefined;
  return changesContent(command) || (command.kind === 'patch' && command.patch.status === askedStatus);
}

/** The packet after a command, and its events; without events nothing changed. */
export interface Decision<P extends AnyPacket = Packet> {
  readonly packet: P;
  readonly events: readonly PacketEvent[];
  /** Whether the packet must be indexed for search again. */
  readonly searchable: boolean;
  /** Whether the packet is removed permanently, with its content and its trail. */
  readonly isRemoved?: true;
  /** The lease to store; left out when it does not change. */
  readonly lease?: StoredLease | null;
}

/** A new packet and its `packet.created` event. */
export function newPacket(
  request: ChainRequest & { parent_packet_id?: string | undefined },
  { id, now, agentId, contractVersion }: { id: string; now: Date; agentId: string | undefined; contractVersion?: number | undefined },
): Decision {
  const at = now.toISOString();
  const { metadata, context, actions, hitl } = request;
  const packet: Packet = {
    id,
    version: packetVersion,
    parent_packet_id: request.parent_packet_id ?? null,
    status: claimableStatus,
    revision: 1,
    lease: null,
    metadata: { ...metadata, priority: metadata.priority ?? 'normal', tags: metadata.tags ?? [], created_at: at },
    hitl: hitl === undefined ? null : newQuestion(hitl),
    claimed_by: null,
    claimed_at: null,
    created_at: at,
    updated_at: at,
    _links: { self: `/api/v1/packets/${id}`, claim: `/api/v1/packets/${id}/claim`, history: `/api/v1/packets/${id}/history` },
    context: {
      ...context,
      conversation_state: context.conversation_state ?? [],
      artifacts: context.artifacts ?? [],
      custom: context.custom ?? {},
    },
    decisions: request.decisions ?? [],
    actions: { ...actions, pending: actions?.pending ?? [], completed: actions?.completed ?? [], failed: actions?.failed ?? [] },
    dependencies: request.dependencies ?? [],
  };
  const actor = `agent:${agentId ?? metadata.source_agent.id}`;
  const details = {
    ...(packet.parent_packet_id === null ? {} : { parent_packet_id: packet.parent_packet_id }),
    ...(contractVersion === undefined ? {} : { contract_version: contractVersion }),
  };
  return { packet, events: [{ event_type: 'created', type: 'packet.created', actor, details }], searchable: true };
}

/** The event in a parent's history when a child is created. The parent itself does not change. */
export function chained(child: Packet, agentId: string | undefined): PacketEvent {
  const actor = `agent:${agentId ?? child.metadata.source_agent.id}`;
  return { event_type: 'chained', type: null, actor, details: { child_packet_id: child.id } };
}

/**
 * Returns the packet after the command, and its events. Pure.
 * @param stored the stored state of the packet's leases
 * @throws ServiceError when the command is not allowed
 */
export function decide<P extends AnyPacket>(packet: P, command: Command, now: Date, stored: StoredLease | null = null): Decision<P> {
  if ('token' in command && !mayOverride(command, packet)) requireToken(packet, stored, command, now);
  const decision = decideOn(packet, command, now, stored);
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

function decideOn<P extends AnyPacket>(packet: P, command: Command, now: Date, stored: StoredLease | null): Decision<P> {
  switch (command.kind) {
    case 'claim':
      return claim(packet, command, now, stored);
    case 'patch':
      return patch(packet, command.patch, command.agentId, now, command.questionId);
    case 'withdraw':
      return withdraw(packet, command.agentId, now);
    case 'respond':
      return respond(packet, command, now);
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
        events: [{ event_type: 'deleted', type: 'packet.deleted', actor: command.actor, details: {} }],
        isRemoved: true,
      };
    case 'time_out':
      if (isLeaseOver(packet, now)) return setFree(packet, 'lose', 'system:sweeper', now);
      return timeOut(packet, now) ?? remind(packet, now) ?? unchanged(packet);
    case 'expire_unclaimed':
      if (!allows(packet, 'time_out')) return unchanged(packet);
      return enter(packet, 'time_out', 'system:sweeper', now, { reason: 'unclaimed' });
  }
}

/** Requires a leased packet. `requireToken` lets a packet without a lease pass when no token is sent. */
function requireLeased(packet: AnyPacket, stored: StoredLease | null, verb: string): asserts stored is StoredLease {
  if (packet.lease === null || stored === null) {
    throw new ServiceError('LEASE_LOST', `The packet has no lease to ${verb}.`);
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
  const notice = verb === 'ask' ? { notifies: 'asked' as const } : {};
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
  if (!isHolder && !byAdmin) {
    throw new ServiceError('FORBIDDEN', 'Only the holder of the packet, named in X-Agent-Id, or an admin key may release it.');
  }
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
  { answer, via = 'api', link, actor = `human:${answer.responded_by}` }: Command & { kind: 'respond' },
  now: Date,
): Decision<P> {
  const { hitl } = packet;
  if (!allows(packet, 'respond') || hitl === null) {
    throw conflict(`The packet is ${packet.status} and awaits no answer.${answeredBy(hitl)}`);
  }
  if (isOverdue(hitl, now)) throw new ServiceError('GONE', 'The question is overdue.');
  const given = answerTo(packet, hitl, answer);
  const at = now.toISOString();
  const { target_agent } = packet.metadata;
  const held = packet.claimed_by !== null;
  const answered: P = {
    ...move(packet, 'respond', now),
    hitl: {
      ...hitl,
      ...given,
      ...(hitl.remind_at ? { remind_at: null } : {}),
      responded_by: answer.responded_by,
      responded_at: at,
      notes: answer.notes ?? null,
    },
    claimed_by: held
      ? packet.claimed_by
      : { agent_id: target_agent.id, agent_name: target_agent.name, framework: target_agent.framework ?? null },
    claimed_at: held ? packet.claimed_at : at,
  };
  const event: PacketEvent = {
    event_type: 'hitl_responded',
    type: 'hitl.response_ready',
    actor,
    notifies: 'answered',
    details: { ...given, ...questionDetails(hitl), ...(answer.digest === undefined ? {} : { digest: answer.digest }), via, ...link },
  };
  return { packet: answered, events: [event], searchable: false };
}

/** The most characters of a question in the details of an event. */
const maxAsked = 1000;

/** The question and its responder, for the details of an event. */
const askedOf = (hitl: Hitl) => ({
  ...questionDetails(hitl),
  question: cut(hitl.question, maxAsked),
  ...(hitl.responder === undefined ? {} : { responder: hitl.responder }),
});

/** The id of a question, for the details of an event; questions of earlier versions have none. */
const questionDetails = ({ question_id }: Hitl) => (question_id ? { question_id } : {});

/** Withdraws the open question: its packet goes back to its holder, or may be claimed if it has none, without a question. */
function withdraw<P extends AnyPacket>(packet: P, agentId: string | undefined, now: Date): Decision<P> {
  const { hitl, claimed_by } = packet;
  const verb = claimed_by === null ? 'reopen' : 'withdraw';
  if (!allows(packet, verb) || hitl === null) throw conflict(`The packet is ${packet.status} and has no open question.${answeredBy(hitl)}`);
  const details = questionDetails(hitl);
  const event: PacketEvent = { event_type: 'question_withdrawn', type: 'hitl.withdrawn', actor: actorOf(packet, agentId), details };
  return { packet: { ...move(packet, verb, now), hitl: null }, events: [event], searchable: true };
}

/** Applies `hitl.on_timeout` after the time to answer; undefined when there is nothing to do. */
function timeOut<P extends AnyPacket>(packet: P, now: Date): Decision<P> | undefined {
  const { hitl } = packet;
  const end = hitl?.on_timeout ?? 'keep';
  if (hitl === null || end === 'keep' || !allows(packet, `time_out_${end}`) || !isOverdue(hitl, now)) return undefined;
  const ended = enter(packet, `time_out_${end}`, 'system:sweeper', now, { reason: 'hitl_timed_out' });
  const details = { expires_at: hitl.expires_at };
  const timedOut: PacketEvent = { event_type: 'hitl_timed_out', type: null, actor: 'system:sweeper', details };
  return { ...ended, events: [timedOut, ...ended.events] };
}

/**
 * When the sweeper must process the packet: at the end of its lease, at the reminder of its question, or at its timeout
 * unless `on_timeout` is `keep`; null: never.
 */
export function dueAt(packet: AnyPacket): string | null {
  const { hitl, lease } = packet;
  if (lease !== null && lease.expires_at !== null) return lease.expires_at;
  if (hitl === null || !allows(packet, 'respond')) return null;
  const times = [hitl.remind_at ?? null, (hitl.on_timeout ?? 'keep') === 'keep' ? null : hitl.expires_at];
  // ISO 8601 texts of the same form are in order of time.
  return times.filter((time) => time !== null).toSorted()[0] ?? null;
}

type Refusal = (sentence: string) => ServiceError;
const onStatus: Refusal = (sentence) => invalid('status', sentence);

function requireAnswered(packet: AnyPacket, refuse: Refusal): void {
  if (packet.hitl?.required && packet.hitl.response === null) {
    throw refuse('The packet requires a human answer before it can be completed.');
  }
}

function patch<P extends AnyPacket>(
  packet: P,
  request: PatchRequest,
  agentId: string | undefined,
  now: Date,
  questionId?: string,
): Decision<P> {
  const { status, ...content } = request;
  const changed = Object.keys(content);
  const moves = status !== undefined && status !== packet.status;
  const verb = moves ? verbTo[status] : undefined;

  if (moves) {
    if (verb === undefined)
      throw onStatus(
        `A packet can't be moved to ${status} by an update${status === 'claimed' ? '; claim it' : ''}. ${allowedFrom(packet)}`,
      );
    if (!allows(packet, verb)) throw onStatus(`The packet can't be moved to ${status}. ${allowedFrom(packet)}`);
  }
  if (changed.length === 0 && !moves) return unchanged(packet);
  if (changed.length > 0 && packet.status === 'expired') throw conflict("The packet is expired; its content can't be changed.");

  const merged = changed.length > 0 ? (mergeContent(whole(packet), content) as P) : packet;
  const actor = actorOf(packet, agentId);
  const details = changed.length > 0 ? { fields: changed } : {};
  if (verb === undefined) {
    if (allows(packet, 'respond') && merged.hitl === null)
      throw invalid('hitl', 'The packet awaits an answer; its question can only be removed after a change of status.');
    requireStillExcluded(packet, merged);
    const isOpen = allows(packet, 'respond');
    // Another person is asked now, who has had no notice yet.
    const notice = isOpen && merged.hitl?.responder !== packet.hitl?.responder ? { notifies: 'asked' as const } : {};
    const event: PacketEvent = { event_type: 'updated', type: 'packet.updated', actor, details, ...notice };
    const dated = updated(merged, packet);
    return { packet: touched(isOpen ? withDigest(dated) : dated, now), events: [event], searchable: true };
  }
  if (verb === 'complete') requireAnswered(merged, onStatus);
  const asked = verb === 'ask' ? ask(merged, { isNew: content.hitl !== undefined, now, question_id: questionId, agentId }) : merged;
  const more = verb === 'ask' ? { ...details, ...askedOf(asked.hitl!) } : details;
  return enter(asked, verb, actor, now, more, changed.length > 0);
}

/** Narrows to a whole packet; callers check `needsWhole` before they load a packet. */
function whole(packet: AnyPacket): Packet {
  if ('counts' in packet) throw new Error('An update of content needs the whole packet.');
  return packet;
}
