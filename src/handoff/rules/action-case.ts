import type { Fault } from '../../kit/errors.ts';
import {
  type Action,
  type ActionDecision,
  type DecisionWord,
  type Remember,
  type ShownApproval,
  type ShownStep,
  usualRememberSeconds,
  usualValidSeconds,
} from '../model/action.ts';
import type { Asked, Question } from '../model/hitl.ts';
import type { PolicyRequest, Then } from '../model/policy.ts';
import { argumentsDigestOf, requireSatisfied, subjectOf } from './action.ts';
import { type KeyFamily, withSource } from './exclusion.ts';
import type { AnyPacket, PacketEvent } from './packet.ts';
import { effectOf, type Judgement, type PolicyVerdict, type Subject } from './policy.ts';
import { type AskedRecord, closed } from './question-state.ts';
import { type Approval, type AskedStep, anybody, type People, type Progress, progressOf, type Quorum, type Standing } from './quorum.ts';

/** What decides about an action beside its packet. Each may throw `FactNeeded`, for the unit to be run again with it. */
export interface Facts {
  /** What the policies say: those that are published now, or one version of one. */
  judge(subject: Subject, version?: { readonly name: string; readonly version: number }): Judgement;
  /** What is wrong with arguments by the schema of their action, by the path from `arguments`. */
  faultsOf(schema: NonNullable<Action['schema']>, given: Action['arguments']): readonly Fault[];
  people(): People;
  /**
   * The standing approvals that fit an action, are valid now, and whose people may approve. With `among`, only the approvals with these
   * ids.
   */
  standing(fit: StandingFit): readonly GrantingStanding[];
  /** Whether the key that asks is bound to the agent. */
  isBound(agent: string): boolean;
}

/** The action for which approvals may stand. */
export interface StandingFit {
  readonly agent: string;
  readonly tool: string;
  readonly arguments_digest: string;
  /** The keys that ask. */
  readonly sources: readonly string[];
  /** The ids of the standing approvals that counted when the question was asked; left out: it is asked now. */
  readonly among?: readonly string[];
}

/** A standing approval that counts, and how its person was known. */
export interface GrantingStanding extends Standing, Pick<Decider, 'method' | 'key_id'> {}

/** An approval that a person lets stand. */
export interface Remembered {
  readonly id: string;
  readonly person: string;
  readonly agent_id: string;
  readonly tool: string;
  readonly scope: Remember['scope'];
  readonly arguments_digest: string | null;
  readonly method: Decider['method'];
  readonly key_id: string | null;
  readonly expires_at: string;
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
  /** What the policy judged beside the arguments, if the packet has changed since the question was asked; left out: the packet has it still. */
  readonly judged?: Omit<Subject, 'arguments'> | null | undefined;
  /** What approvers may let stand for later; null: nothing. */
  readonly remember: PolicyRequest['remember'] | null;
  /** The ids of the standing approvals that counted when it was asked. */
  readonly standing: readonly string[];
  /** The step, from 0, and how many of its escalations are announced. */
  readonly announced: readonly [number, number];
}

/** The question of an action after something happened to it: still open with its case, or decided. */
export interface Considered {
  readonly asked: Asked;
  readonly open: OpenCase | null;
  readonly decision: ActionDecision | null;
  readonly events: readonly PacketEvent[];
  /** The counters that it increments. */
  readonly counts?: readonly string[];
  readonly remembered?: Remembered;
}

/** The counter of the uses of a standing approval. */
export const usesOf = (id: string): string => `standing:${id}`;

/** What a policy that is only tried would have done. */
export const shadowOutcomes = ['asked', 'approved', 'rejected'] as const;

/** The counter of what a version of a policy would have done. */
export const shadowCounter = (policy: string, version: number, outcome: (typeof shadowOutcomes)[number]): string =>
  `shadow:${outcome}:${version}:${policy}`;

/** The open question of an action. */
export interface Pending {
  readonly packet: AnyPacket;
  readonly record: AskedRecord & { readonly question: Question & { readonly action: Action } };
  readonly now: Date;
  readonly facts: Facts;
  /** The keys that ask. */
  readonly sources: readonly string[];
}

/** The keys behind a question: the keys that asked it (`sources`), and the key that acts now (`family`). */
export interface KeysBehind {
  readonly sources?: readonly string[] | undefined;
  readonly family?: KeyFamily | undefined;
}

/** The record of a question that is about an action. */
export const requireAction = (record: AskedRecord): Pending['record'] => record as Pending['record'];

/** The effective arguments of an action: as they were edited, else as proposed. */
const effectiveArguments = ({ question, asked }: AskedRecord): Action['arguments'] =>
  asked.edited?.arguments ?? question.action?.arguments ?? {};

/**
 * The question of an action that was just asked: policies are applied, and may decide at once. What has begun before may have
 * happened: then a person is asked where a rule would approve.
 */
export function beginApproval(
  packet: AnyPacket,
  record: AskedRecord,
  facts: Facts,
  { now, hasBegun, path, sources = [], family }: { now: Date; hasBegun: boolean; path: string } & KeysBehind,
): Considered {
  const asking = family === undefined ? sources : withSource(sources, family);
  const pending: Pending = { packet, record: requireAction(record), now, facts, sources: asking };
  const { question, asked } = pending.record;
  const { action } = question;
  if (action.schema !== undefined)
    requireSatisfied(facts.faultsOf(action.schema, action.arguments).map((fault) => under(fault, `${path}action.`)));
  const { approvals: _, step: __, edited: ___, shadow: ____, ...rest } = asked;
  const subject = subjectOf(packet, action, action.arguments, asked.asked_by.agent_id);
  const judged = facts.judge(subject);
  const shadow = judged.shadow.map(({ then, remember: _____, ...verdict }) => ({
    ...verdict,
    then: then as Record<string, unknown> | null,
  }));
  const is_bound = !hasBegun && facts.isBound(asked.asked_by.agent_id);
  const begun = { ...rest, approvals: [], step: null, ...(shadow.length === 0 ? {} : { shadow }) };
  const fresh = { ...pending, record: { ...pending.record, asked: begun } };
  const decision = ruledBy(fresh, judged.verdict, is_bound);
  const standing = decision === undefined && is_bound ? facts.standing(fitOf(fresh)).map(({ id }) => id) : [];
  const considered =
    decision === undefined
      ? advanced(fresh, caseUnder(fresh, judged.verdict, { is_bound, standing }))
      : { asked: closed(begun), open: null, decision, events: [] };
  if (judged.shadow.length === 0) return considered;
  const tried = judged.shadow.map((verdict) => shadowCounter(verdict.policy, verdict.version, outcomeOf(effectOf(verdict, is_bound))));
  return { ...considered, counts: [...(considered.counts ?? []), ...tried] };
}

const outcomeOf = (effect: Then | null) => (effect === null || 'ask' in effect ? 'asked' : 'approve' in effect ? 'approved' : 'rejected');

/** What the action of a question is, for standing approvals. */
export const fitOf = ({ record, sources }: Pending): StandingFit => ({
  sources,
  agent: record.asked.asked_by.agent_id,
  tool: record.question.action.tool,
  arguments_digest: argumentsDigestOf(effectiveArguments(record)),
});

/** What approvers may let stand without a policy. */
const usualRemember = { scope: 'tool', max_seconds: usualRememberSeconds } as const;

const policyIn = (verdict: PolicyVerdict | null): ActionDecision['policy'] =>
  verdict === null ? null : { name: verdict.policy, version: verdict.version, rule: verdict.rule };

/** The decision of a rule that approves or rejects; undefined: people are asked. */
export function ruledBy(pending: Pending, verdict: PolicyVerdict | null, is_bound: boolean): ActionDecision | undefined {
  const effect = effectOf(verdict, is_bound);
  if (effect === null || 'ask' in effect) return undefined;
  const isEdited = pending.record.asked.edited !== undefined;
  const [word, message] =
    'reject' in effect ? (['reject', effect.reject] as const) : ([isEdited ? 'edit' : 'approve', effect.approve] as const);
  return decisionOf(pending, { word, message, by: [], policy: policyIn(verdict) });
}

/** The case of a question without approvals that count, about which a verdict asks people. */
export function caseUnder(
  { now }: Pending,
  verdict: PolicyVerdict | null,
  { is_bound, ...asked }: Pick<OpenCase, 'is_bound' | 'judged' | 'standing'>,
): OpenCase {
  const effect = effectOf(verdict, is_bound);
  return {
    ...asked,
    is_bound,
    steps: effect !== null && 'ask' in effect ? effect.ask : anybody,
    policy: policyIn(verdict),
    began_at: now.toISOString(),
    // Only an agent that is bound to its key has approvals that stand.
    remember: is_bound ? (verdict === null ? usualRemember : (verdict.remember ?? null)) : null,
    announced: [0, 0],
  };
}

/** The case after a change of the packet: what its policy judged is kept, since an edit is judged with it. */
export function caseAfterChange(open: OpenCase, record: AskedRecord, before: AnyPacket, after: AnyPacket): OpenCase {
  if (open.policy === null || open.judged) return open;
  const { question, asked } = requireAction(record);
  const [judged, changed] = [before, after].map((packet) => {
    const { arguments: _, ...others } = subjectOf(packet, question.action, {}, asked.asked_by.agent_id);
    return others;
  });
  return JSON.stringify(judged) === JSON.stringify(changed) ? open : { ...open, judged };
}

/** The quorum of an open question. */
export function quorumOf(pending: Pending, { steps, policy, began_at, standing: among }: OpenCase): Quorum {
  const { record, facts } = pending;
  const { asked } = record;
  const standing = among.length === 0 ? [] : facts.standing({ ...fitOf(pending), among });
  const approvals = (asked.approvals ?? []).map((approval): Approval => ({ ...approval, step: approval.step - 1 }));
  return { steps, byPolicy: policy !== null, began_at, expires_at: asked.expires_at, approvals, standing, people: facts.people() };
}

/** The question as time and what was given make it: its step, and its decision. */
export function advanced(pending: Pending, open: OpenCase, events: readonly PacketEvent[] = []): Considered {
  const quorum = quorumOf(pending, open);
  const progress = progressOf(quorum, pending.now);
  if (progress.granted.length > 0) return withGranted(pending, open, { quorum, progress, events });
  const { asked } = pending.record;
  if (progress.outcome === 'open') return stillOpen(pending, open, progress, events);
  if (progress.outcome === 'timed_out') return { asked, open, decision: null, events };
  const approved = (asked.approvals ?? []).filter((approval) => !approval.void);
  const isEdited = asked.edited !== undefined;
  const decision =
    progress.outcome === 'approved'
      ? decisionOf(pending, {
          word: isEdited ? 'edit' : 'approve',
          message: null,
          by: approved.map(byOf),
          policy: open.policy,
          standing_id: approved.at(-1)?.standing_id ?? null,
        })
      : decisionOf(pending, { word: 'reject', message: `The time of step ${progress.step + 1} is over.`, by: [], policy: open.policy });
  return { asked: closed(asked), open: null, decision, events };
}

/** The question with the approvals that standing approvals have given: each counts as a use of one. */
function withGranted(
  pending: Pending,
  open: OpenCase,
  { quorum, progress, events }: { quorum: Quorum; progress: Progress; events: readonly PacketEvent[] },
): Considered {
  const { record } = pending;
  const granting = quorum.standing as readonly GrantingStanding[];
  const given = progress.granted.map(({ step, standing_id, ...approval }): ShownApproval => {
    const { method, key_id } = granting.find(({ id }) => id === standing_id)!;
    return { ...approval, step: step + 1, verified: true, method, key_id, standing_id: standing_id! };
  });
  const asked = { ...record.asked, approvals: [...(record.asked.approvals ?? []), ...given] };
  const all = [...events, ...given.map((approval) => givenEvent(pending, approval))];
  const considered = advanced({ ...pending, record: { ...record, asked } }, open, all);
  return { ...considered, counts: [...(considered.counts ?? []), ...given.map(({ standing_id }) => usesOf(standing_id!))] };
}

/** The open question with its step; a step that begins and an escalation are announced to those whom they ask. */
function stillOpen(
  { record: { asked: before } }: Pending,
  open: OpenCase,
  { step, of, count, given, from, escalated, look_at }: Progress & { readonly outcome: 'open' },
  events: readonly PacketEvent[],
): Considered {
  const { remember, policy } = open;
  const asked: Asked = {
    ...closed(before),
    ...(remember === null || remember === undefined ? {} : { remember }),
    ...(policy === null ? {} : { verified_only: true }),
  };
  if (from === null) return { asked, open, decision: null, events };
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
  const told = isTold ? events.with(-1, { ...events.at(-1)!, notifies: 'asked' }) : isNext || isEscalated ? [...events, notice] : events;
  return { asked: { ...asked, step: shown }, open: { ...open, announced: [step, escalated] }, decision: null, events: told };
}

/** The open question of an action after time went on. */
export function considerTime(
  packet: AnyPacket,
  record: AskedRecord,
  { open, facts, sources = [] }: { open: OpenCase; facts: Facts } & KeysBehind,
  now: Date,
): Considered {
  return advanced({ packet, record: requireAction(record), now, facts, sources }, open);
}

interface Decided {
  readonly word: DecisionWord;
  readonly message: string | null;
  readonly by: ActionDecision['by'];
  readonly policy: ActionDecision['policy'];
  readonly standing_id?: string | null;
}

/** The decision about an action, which can be executed for a while if it is approved. */
export function decisionOf({ record, now }: Pending, { word, message, by, policy, standing_id = null }: Decided): ActionDecision {
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
    standing_id,
  };
}

const byOf = ({ step: _, void: __, standing_id: ___, ...approval }: ShownApproval): ActionDecision['by'][number] => approval;

/** The path of a fault of arguments, below `path`. */
const under = ({ field, detail }: Fault, path: string): Fault => ({ field: `${path}${field}`, detail: `${path}${detail}` });

/** That somebody approved, or edited. */
export const givenEvent = (
  { record: { asked } }: Pending,
  { name, for: other, decision, step, verified, method, standing_id }: ShownApproval,
): PacketEvent => ({
  ...{ event_type: 'approval_given', type: 'packet.updated', actor: `human:${name}` },
  details: {
    question_id: asked.question_id,
    decision,
    step,
    ...(other === null ? {} : { for: other }),
    verified,
    method,
    ...(standing_id === undefined ? {} : { standing_id }),
  },
});

/** The actor of a decision: a policy, the time, or the person who decided last. */
export function actorOfDecision({ by, policy }: ActionDecision): string {
  const last = by.at(-1);
  if (last !== undefined) return `human:${last.name}`;
  return policy === null ? 'system:sweeper' : `policy:${policy.name}@${policy.version}`;
}

/** The facts of a command that may not be decided without them. */
export function requireFacts(facts: Facts | undefined): Facts {
  if (facts === undefined) throw new Error('Nothing is decided about an action or an answer without the policies and people.');
  return facts;
}
