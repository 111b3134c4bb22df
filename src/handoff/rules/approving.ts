import { type Fault, invalid, ServiceError } from '../../kit/errors.ts';
import {
  type Action,
  type ActionDecision,
  type DecisionWord,
  type ShownApproval,
  type ShownStep,
  usualValidSeconds,
} from '../model/action.ts';
import { errors } from '../model/errors.ts';
import type { Asked, Question } from '../model/hitl.ts';
import { offeredBy } from '../model/offered.ts';
import type { RespondRequest } from '../model/packet.ts';
import { argumentsDigestOf, requireSatisfied, requireSoundArguments, subjectOf } from './action.ts';
import { type Approval, type AskedStep, anybody, type People, type Progress, placeOf, progressOf, type Quorum } from './approval.ts';
import type { AnyPacket, PacketEvent } from './packet.ts';
import { effectOf, type Judgement, type PolicyVerdict, type Subject } from './policy.ts';
import { shownDigest, whole } from './question.ts';
import type { AskedRecord } from './question-state.ts';

/** What decides about an action beside its packet. Each may throw `FactNeeded`, for the unit to be run again with it. */
export interface Facts {
  /** What the policies say: those that are published now, or one version of one. */
  judge(subject: Subject, version?: { readonly name: string; readonly version: number }): Judgement;
  /** What is wrong with arguments by the schema of their action, by the path from `arguments`. */
  faultsOf(schema: NonNullable<Action['schema']>, given: Action['arguments']): readonly Fault[];
  people(): People;
  /** Whether the key that asks is bound to the agent. */
  isBound(agent: string): boolean;
}

/** How a person is known who decides. */
export interface Decider {
  readonly verified: boolean;
  readonly method: ShownApproval['method'];
  readonly key_id: string | null;
}

/** A name that nothing vouches for. */
export const typed: Decider = { verified: false, method: 'typed', key_id: null };

/** What the service keeps of the open question of an action beside the packet. */
export interface OpenCase {
  readonly steps: readonly AskedStep[];
  readonly policy: ActionDecision['policy'];
  /** When the first step began. */
  readonly began_at: string;
  readonly is_bound: boolean;
  /** The step, from 0, and how many of its escalations are announced. */
  readonly announced: readonly [number, number];
}

/** The question of an action after something happened to it: still open with its case, or decided. */
export interface Considered {
  readonly asked: Asked;
  readonly open: OpenCase | null;
  readonly decision: ActionDecision | null;
  readonly events: readonly PacketEvent[];
}

/** The open question of an action. */
interface Pending {
  readonly packet: AnyPacket;
  readonly record: AskedRecord & { readonly question: Question & { readonly action: Action } };
  readonly now: Date;
  readonly facts: Facts;
}

const requireAction = (record: AskedRecord): Pending['record'] => record as Pending['record'];

/** The effective arguments of an action: as they were edited, else as proposed. */
export const effectiveArguments = ({ question, asked }: AskedRecord): Action['arguments'] =>
  asked.edited?.arguments ?? question.action?.arguments ?? {};

/**
 * The question of an action that was just asked: policies are applied, and may decide at once. What has begun before may have
 * happened: then a person is asked where a rule would approve.
 */
export function beginApproval(
  packet: AnyPacket,
  record: AskedRecord,
  facts: Facts,
  { now, hasBegun }: { now: Date; hasBegun: boolean },
): Considered {
  const pending: Pending = { packet, record: requireAction(record), now, facts };
  const { question, asked } = pending.record;
  const { action } = question;
  if (action.schema !== undefined)
    requireSatisfied(facts.faultsOf(action.schema, action.arguments).map((fault) => under(fault, 'hitl.action.')));
  const { approvals: _, step: __, edited: ___, shadow: ____, ...fresh } = asked;
  const judged = facts.judge(subjectOf(packet, action, action.arguments, asked.asked_by.agent_id));
  const shadow = judged.shadow.map(({ then, ...verdict }) => ({ ...verdict, then: then as Record<string, unknown> | null }));
  const is_bound = !hasBegun && facts.isBound(asked.asked_by.agent_id);
  const begun = { ...fresh, approvals: [], step: null, ...(shadow.length === 0 ? {} : { shadow }) };
  return underVerdict({ ...pending, record: { ...pending.record, asked: begun } }, judged.verdict, is_bound);
}

/** What a verdict makes of a question without approvals that count. */
function underVerdict(pending: Pending, verdict: PolicyVerdict | null, is_bound: boolean): Considered {
  const { asked } = pending.record;
  const policy = verdict === null ? null : { name: verdict.policy, version: verdict.version, rule: verdict.rule };
  const effect = effectOf(verdict, is_bound);
  if (effect !== null && !('ask' in effect)) {
    const word = 'approve' in effect ? 'approve' : 'reject';
    const message = 'approve' in effect ? effect.approve : effect.reject;
    const decision = decisionOf(pending, {
      word: asked.edited !== undefined && word === 'approve' ? 'edit' : word,
      message,
      by: [],
      policy,
    });
    return { asked: { ...asked, step: null }, open: null, decision, events: [] };
  }
  const steps = effect === null ? anybody : effect.ask;
  const open: OpenCase = { steps, policy, began_at: pending.now.toISOString(), is_bound, announced: [0, 0] };
  return advanced(pending, open);
}

/** The quorum of an open question. */
function quorumOf({ record: { asked }, facts }: Pending, { steps, began_at }: OpenCase): Quorum {
  const approvals = (asked.approvals ?? []).map((approval): Approval => ({ ...approval, step: approval.step - 1 }));
  return { steps, began_at, expires_at: asked.expires_at, approvals, standing: [], people: facts.people() };
}

/** The question as time and what was given make it: its step, and its decision. */
function advanced(pending: Pending, open: OpenCase, events: readonly PacketEvent[] = []): Considered {
  const { asked } = pending.record;
  const progress = progressOf(quorumOf(pending, open), pending.now);
  if (progress.outcome === 'open') return stillOpen(pending, open, progress, events);
  if (progress.outcome === 'timed_out') return { asked, open, decision: null, events };
  const approved = (asked.approvals ?? []).filter((approval) => !approval.void);
  const isEdited = asked.edited !== undefined;
  const decision =
    progress.outcome === 'approved'
      ? decisionOf(pending, { word: isEdited ? 'edit' : 'approve', message: null, by: approved.map(byOf), policy: open.policy })
      : decisionOf(pending, { word: 'reject', message: `The time of step ${progress.step + 1} is over.`, by: [], policy: open.policy });
  return { asked: { ...asked, step: null }, open: null, decision, events };
}

/** The open question with its step; a step that begins and an escalation are announced to those whom they ask. */
function stillOpen(
  { record: { asked } }: Pending,
  open: OpenCase,
  { step, of, count, given, from, escalated, look_at }: Progress & { readonly outcome: 'open' },
  events: readonly PacketEvent[],
): Considered {
  if (from === null) return { asked: { ...asked, step: null }, open, decision: null, events };
  const shown: ShownStep = { index: step + 1, of, count, given, from: [...from], changes_at: look_at };
  const [announcedStep, announced] = open.announced;
  const isNext = step > announcedStep;
  const isEscalated = isNext ? escalated > 0 : escalated > announced;
  const notice: PacketEvent = {
    ...{ event_type: 'approval_escalated', type: 'packet.updated', actor: 'system:sweeper', notifies: 'asked' },
    details: { question_id: asked.question_id, step: step + 1, of, from },
  };
  // An approval that completes a step has told of the next one.
  const isTold = isNext && events.some(({ event_type }) => event_type === 'approval_given') && !isEscalated;
  const told = isTold
    ? events.map((event): PacketEvent => ({ ...event, notifies: 'asked' }))
    : isNext || isEscalated
      ? [...events, notice]
      : events;
  return { asked: { ...asked, step: shown }, open: { ...open, announced: [step, escalated] }, decision: null, events: told };
}

/** The open question of an action after time went on. */
export function considerTime(packet: AnyPacket, record: AskedRecord, open: OpenCase, facts: Facts, now: Date): Considered {
  return advanced({ packet, record: requireAction(record), now, facts }, open);
}

interface Decided {
  readonly word: DecisionWord;
  readonly message: string | null;
  readonly by: ActionDecision['by'];
  readonly policy: ActionDecision['policy'];
}

function decisionOf({ record, now }: Pending, { word, message, by, policy }: Decided): ActionDecision {
  const given = effectiveArguments(record);
  const isApproved = word === 'approve' || word === 'edit';
  const { valid_seconds = usualValidSeconds } = record.question.action;
  return {
    decision: word,
    arguments: given,
    arguments_digest: argumentsDigestOf(given),
    message,
    decided_at: now.toISOString(),
    valid_until: isApproved ? new Date(now.getTime() + valid_seconds * 1000).toISOString() : null,
    by,
    policy,
  };
}

const byOf = ({ step: _, void: __, ...approval }: ShownApproval): ActionDecision['by'][number] => approval;

/** The path of a fault of arguments, below `path`. */
const under = ({ field, detail }: Fault, path: string): Fault => ({ field: `${path}${field}`, detail: `${path}${detail}` });

/** The decision in an answer; an answer with `response` alone is read as the decision. @throws ServiceError 400 */
function decisionIn(answer: RespondRequest, action: Action): DecisionWord {
  const { decision, response, arguments: given, message, data } = answer;
  const field = decision === undefined ? 'response' : 'decision';
  const word = (decision ?? response) as DecisionWord | undefined;
  const offered = offeredBy(action);
  if (word === undefined || !offered.includes(word)) throw invalid(field, `${field} must be one of ${offered.join(', ')}.`);
  if (data !== undefined) throw invalid('data', 'data is not taken by a question about an action.');
  if (word === 'edit' && given === undefined) throw invalid('arguments', 'arguments is required: an edit has the whole arguments.');
  if (word !== 'edit' && given !== undefined) throw invalid('arguments', 'arguments is only taken with the decision edit.');
  if (word === 'respond' && message === undefined) throw invalid('message', 'message is required: it is what the person answers.');
  if (message !== undefined && word !== 'respond' && word !== 'reject')
    throw invalid('message', 'message is only taken with the decisions reject and respond.');
  return word;
}

/**
 * The question of an action after a person's decision.
 * @throws ServiceError 400 for no decision, 403 NOT_AN_APPROVER, 409 ALREADY_APPROVED, 410 when time has decided already
 */
export function considerAnswer(
  packet: AnyPacket,
  record: AskedRecord,
  { answer, decider, open, facts }: { answer: RespondRequest; decider: Decider; open: OpenCase; facts: Facts },
  now: Date,
): Considered {
  const pending: Pending = { packet, record: requireAction(record), now, facts };
  const { asked, question } = pending.record;
  const word = decisionIn(answer, question.action);
  const name = answer.responded_by;
  const quorum = quorumOf(pending, open);
  const progress = progressOf(quorum, now);
  if (progress.outcome !== 'open') throw new ServiceError('GONE', 'The time to decide is over.');
  const approves = word === 'approve' || word === 'edit';
  const place = placeFor(quorum, progress, name, decider, { now, isApproval: word === 'approve' });
  const by = { name, ...decider, for: place.for, at: now.toISOString(), ...(answer.partial === true ? { partial: true } : {}) };
  if (!approves) {
    const decision = decisionOf(pending, { word, message: answer.message ?? null, by: [{ ...by, decision: word }], policy: open.policy });
    return { asked: { ...asked, step: null }, open: null, decision, events: [] };
  }
  if (word === 'edit') return considerEdit(pending, open, by, answer.arguments!);
  const given: ShownApproval = { step: progress.step + 1, void: false, ...by, decision: 'approve' };
  const approved: Pending = {
    ...pending,
    record: { ...pending.record, asked: { ...asked, approvals: [...(asked.approvals ?? []), given] } },
  };
  return advanced(approved, open, [givenEvent(pending, given)]);
}

/** The place of a person in the open step. @throws ServiceError 403, 409 */
function placeFor(
  quorum: Quorum,
  progress: Progress & { readonly outcome: 'open' },
  name: string,
  { verified }: Decider,
  { now, isApproval }: { now: Date; isApproval: boolean },
): { readonly for: string | null } {
  const who = () => `This step asks ${(progress.from ?? []).join(', ')}.`;
  if (progress.from !== null && !verified)
    throw new ServiceError(errors.NOT_AN_APPROVER, `${name} is a typed name, which approves nothing here. ${who()}`, {
      extra: { from: progress.from },
    });
  const place = placeOf(quorum, progress, name, now, isApproval);
  if (place === 'approved already') throw new ServiceError(errors.ALREADY_APPROVED, `${name} has approved already, and counts once.`);
  if (place === 'not asked')
    throw new ServiceError(errors.NOT_AN_APPROVER, `${name} is not asked. ${who()}`, { extra: { from: progress.from } });
  return place;
}

const givenEvent = (
  { record: { asked } }: Pending,
  { name, for: other, decision, step, verified, method }: ShownApproval,
): PacketEvent => ({
  ...{ event_type: 'approval_given', type: 'packet.updated', actor: `human:${name}` },
  details: { question_id: asked.question_id, decision, step, ...(other === null ? {} : { for: other }), verified, method },
});

type By = Omit<ShownApproval, 'step' | 'void' | 'decision'>;

/** An edit makes the arguments new: earlier approvals are void, and the policy of the question is judged again. */
function considerEdit(pending: Pending, open: OpenCase, by: By, given: Action['arguments']): Considered {
  const { packet, record, facts, now } = pending;
  const { question, asked } = record;
  const { action } = question;
  requireSoundArguments(given, 'arguments');
  if (action.schema !== undefined) requireSatisfied(facts.faultsOf(action.schema, given));
  const edited = { arguments: given, arguments_digest: argumentsDigestOf(given), name: by.name, at: by.at };
  const approvals = (asked.approvals ?? []).map((approval) => ({ ...approval, void: true }));
  const digest = shownDigest(whole(packet), { question, asked: { edited } });
  const fresh: Pending = { ...pending, record: { ...record, asked: { ...asked, edited, approvals, digest } } };
  const { policy, is_bound } = open;
  const verdict = policy === null ? null : facts.judge(subjectOf(packet, action, given, asked.asked_by.agent_id), policy).verdict;
  const again = underVerdict(fresh, verdict, is_bound);
  if (again.open === null) return { ...again, events: [givenEvent(pending, { ...by, step: 1, void: true, decision: 'edit' })] };
  // The editor's approval counts where the new first step asks the editor.
  const quorum = quorumOf(fresh, again.open);
  const progress = progressOf(quorum, now);
  const place = progress.outcome === 'open' ? placeOf(quorum, progress, by.name, now, true) : 'not asked';
  const isAsked = typeof place === 'object';
  const approval: ShownApproval = { ...by, step: 1, decision: 'edit', void: !isAsked, for: isAsked ? place.for : by.for };
  const withEditor: Pending = {
    ...fresh,
    record: { ...fresh.record, asked: { ...fresh.record.asked, approvals: [...approvals, approval] } },
  };
  return advanced(withEditor, again.open, [givenEvent(pending, approval)]);
}

/** Requires an answer without the fields of a decision. @throws ServiceError 400 */
export function requireDecisionFields({ decision, arguments: given, message }: RespondRequest): void {
  const field = decision !== undefined ? 'decision' : given !== undefined ? 'arguments' : message !== undefined ? 'message' : undefined;
  if (field !== undefined) throw invalid(field, `${field} is only taken by a question about an action.`);
}

/** The actor of a decision: a policy, the time, or the person who decided last. */
export function actorOfDecision({ by, policy }: ActionDecision): string {
  const last = by.at(-1);
  if (last !== undefined) return `human:${last.name}`;
  return policy === null ? 'system:sweeper' : `policy:${policy.name}@${policy.version}`;
}

/** The facts where nothing is published. */
export const noFacts: Facts = {
  judge: () => ({ verdict: null, skipped: [], shadow: [] }),
  faultsOf: () => [],
  people: () => ({ groups: new Map(), absences: [], suspended: [] }),
  isBound: () => false,
};
