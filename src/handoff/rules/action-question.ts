import type { ActionDecision } from '../model/action.ts';
import type { Answer, AnsweredBy } from '../model/hitl.ts';
import type { RespondRequest } from '../model/packet.ts';
import { considerAnswer } from './action-answer.ts';
import {
  actorOfDecision,
  beginApproval,
  type Considered,
  caseAfterChange,
  considerTime,
  type Decider,
  type Facts,
  type KeysBehind,
  requireFacts,
} from './action-case.ts';
import { type AnsweredVia, answeredPacket, type LinkDetails, partialIn, requireShown } from './answer.ts';
import type { KeptOfQuestions, OwnPacket } from './kept.ts';
import type { AnyPacket, Decision, PacketEvent } from './packet.ts';
import { move, touched } from './packet-life.ts';
import { askedOf } from './question.ts';
import { type AskedRecord, hitlOf, latestQuestion } from './question-state.ts';
import { everybodyIn } from './quorum.ts';

/** What the question of an action is considered with. */
export interface Considering extends KeysBehind {
  readonly kept: KeptOfQuestions;
  readonly facts?: Facts | undefined;
}

/** A decision that asked a question, with what policies make of it if it is about an action. */
export function withApproval<P extends AnyPacket>(
  decision: Decision<P>,
  { kept, facts: given, ...rest }: Considering & { /** Of the question in the request. */ readonly path: string },
  now: Date,
): Decision<P> {
  const { packet } = decision;
  const record = latestQuestion(packet, now) as AskedRecord;
  if (record.question.action === undefined) return decision;
  const facts = requireFacts(given);
  const considered = beginApproval(packet, record, facts, { now, hasBegun: kept.own === 'begun', ...rest });
  // Nobody needs to be told of a question that a policy decides.
  const events = considered.decision === null ? decision.events : decision.events.map(({ notifies: _, ...event }) => event);
  return applied(packet, record, considered, { events, now, own: kept.own, searchable: decision.searchable, facts }, decision);
}

/** A change of the packet of an open question, with how that is approved. */
export function withCase<P extends AnyPacket>(
  decision: Decision<P>,
  { approval }: KeptOfQuestions,
  record: AskedRecord,
  before: P,
): Decision<P> {
  return approval === undefined ? decision : { ...decision, approval: caseAfterChange(approval, record, before, decision.packet) };
}

/** A person's decision about an action: what was sent, who sent it, and how. */
export interface SentDecision {
  readonly answer: RespondRequest;
  readonly by: AnsweredBy;
  readonly decider: Decider;
  readonly via: AnsweredVia;
  readonly link: LinkDetails | undefined;
  /** The id of the standing approval that the answer makes, if it makes one. */
  readonly standingId: string | undefined;
}

/** The decision of a person about an action. */
export function decideAction<P extends AnyPacket>(
  packet: P,
  record: AskedRecord,
  { answer, by, decider, via, link, standingId }: SentDecision,
  { kept, facts: known, sources, family }: Considering,
  now: Date,
): Decision<P> {
  requireShown(packet, record, answer.digest);
  if (kept.approval === undefined) throw new Error('The open question of an action has no case.');
  const facts = requireFacts(known);
  const sent = { answer, decider, open: kept.approval, facts, standingId, sources, family };
  const considered = considerAnswer(packet, record, sent, now);
  const details = {
    ...(answer.digest === undefined ? {} : { digest: answer.digest }),
    via,
    answered_by: by,
    ...partialIn(answer),
    ...link,
  };
  // The approvals that standing approvals gave were not sent with this answer, so they get no details of it.
  const events = considered.events.map(
    (event): PacketEvent => ('standing_id' in event.details ? event : { ...event, details: { ...event.details, ...details } }),
  );
  const notes = answer.notes ?? null;
  return applied(
    packet,
    record,
    { ...considered, events },
    { events: [], now, own: kept.own, notes, by, details, searchable: false, facts },
  );
}

/** The decision that time makes about the question of an action; undefined when it changes nothing. */
export function considerAtTime<P extends AnyPacket>(
  packet: P,
  { kept, facts: given, sources }: Considering,
  now: Date,
): Decision<P> | undefined {
  const latest = latestQuestion(packet, now);
  if (latest.state !== 'open' || latest.question.action === undefined || kept.approval === undefined) return undefined;
  const facts = requireFacts(given);
  const considered = considerTime(packet, latest, { open: kept.approval, facts, sources }, now);
  if (considered.decision === null && considered.events.length === 0) return undefined;
  return applied(packet, latest, considered, { events: [], now, own: kept.own, searchable: false, facts });
}

/** Who answered: the person who decided just now, or whose standing approval decided; nobody where a policy or the time did. */
function answererOf({ by, standing_id }: ActionDecision, sent: AnsweredBy | undefined): { readonly answered_by?: AnsweredBy } {
  const last = by.at(-1);
  if (last === undefined) return {};
  if (standing_id === null) return sent === undefined ? {} : { answered_by: sent };
  const { name, verified, method, key_id } = last;
  return { answered_by: { name, verified, method, ...(key_id === null ? {} : { key_id }) } };
}

interface Applying {
  readonly events: readonly PacketEvent[];
  readonly now: Date;
  readonly own: OwnPacket | undefined;
  readonly notes?: string | null;
  /** Who decided just now; left out where a policy or the time decides. */
  readonly by?: AnsweredBy;
  readonly details?: Record<string, unknown>;
  readonly searchable: boolean;
  readonly facts: Facts;
}

/** The packet with what was considered: its question goes on, or is answered. */
function applied<P extends AnyPacket>(
  packet: P,
  record: AskedRecord,
  { asked, open, decision, events, counts = [], remembered }: Considered,
  { events: earlier, now, own, notes = null, by, details = {}, searchable, facts }: Applying,
  before: Partial<Decision<P>> = {},
): Decision<P> {
  const rest = { ...before, counts, ...(remembered === undefined ? {} : { remembered }) };
  if (decision === null) {
    const after: P = { ...packet, hitl: hitlOf({ question: record.question, asked, answer: null }) };
    const from = asked.step?.from;
    const tells = from === undefined ? undefined : everybodyIn(from, facts.people());
    const all = [...earlier, ...events].map((event) => (event.notifies === undefined || tells === undefined ? event : { ...event, tells }));
    // With earlier events the question was asked just now, and asking it has already incremented the revision.
    return { ...rest, packet: earlier.length > 0 ? after : touched(after, now), events: all, searchable, approval: open };
  }
  const actor = actorOfDecision(decision);
  const answer: Answer = {
    response: decision.decision,
    responded_by: decision.by.at(-1)?.name ?? actor,
    // A policy that decides about edited arguments is the one who answers.
    ...answererOf(decision, by),
    responded_at: now.toISOString(),
    notes,
    ...(decision.by.at(-1)?.partial === true ? { partial: true } : {}),
    decision,
  };
  const answered = answeredPacket(packet, { ...record, asked }, answer, now);
  const { question_id, question } = askedOf(record);
  const event: PacketEvent = {
    ...{ event_type: 'hitl_responded', type: 'hitl.response_ready', actor, notifies: 'answered' },
    details: { response: decision.decision, question_id, question, ...details, ...decision },
  };
  const all = [...earlier, ...events, event];
  const isApproved = decision.valid_until !== null;
  if (own === undefined || isApproved) return { ...rest, packet: answered, events: all, searchable, approval: null };
  // A packet that was made to ask ends with the answer, unless there is something to execute.
  const completed: PacketEvent = { event_type: 'completed', type: 'packet.completed', actor, details: { decision: decision.decision } };
  return { ...rest, packet: move(answered, 'complete', now), events: [...all, completed], searchable, approval: null };
}
