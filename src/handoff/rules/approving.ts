import { type Fault, invalid, ServiceError } from '../../kit/errors.ts';
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
import { errors } from '../model/errors.ts';
import type { Asked, Question } from '../model/hitl.ts';
import { offeredBy } from '../model/offered.ts';
import type { RespondRequest } from '../model/packet.ts';
import type { PolicyRequest, Then } from '../model/policy.ts';
import { argumentsDigestOf, requireSatisfied, requireSoundArguments, subjectOf } from './action.ts';
import {
  type Approval,
  type AskedStep,
  anybody,
  type People,
  type Progress,
  placeOf,
  progressOf,
  type Quorum,
  type Standing,
} from './approval.ts';
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
  /**
   * The standing approvals that fit an action: those that count for the key that asks now, or those of `among`, as long as they are valid
   * and their people may approve.
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
  /** The ids of those that counted when the question was asked; left out: it is asked now. */
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
  { now, hasBegun, path }: { now: Date; hasBegun: boolean; path: string },
): Considered {
  const pending: Pending = { packet, record: requireAction(record), now, facts };
  const { question, asked } = pending.record;
  const { action } = question;
  if (action.schema !== undefined)
    requireSatisfied(facts.faultsOf(action.schema, action.arguments).map((fault) => under(fault, `${path}action.`)));
  const { approvals: _, step: __, edited: ___, shadow: ____, ...fresh } = asked;
  const judged = facts.judge(subjectOf(packet, action, action.arguments, asked.asked_by.agent_id));
  const shadow = judged.shadow.map(({ then, remember: _____, ...verdict }) => ({
    ...verdict,
    then: then as Record<string, unknown> | null,
  }));
  const is_bound = !hasBegun && facts.isBound(asked.asked_by.agent_id);
  const begun = { ...fresh, approvals: [], step: null, ...(shadow.length === 0 ? {} : { shadow }) };
  const considered = underVerdict({ ...pending, record: { ...pending.record, asked: begun } }, judged.verdict, is_bound);
  if (judged.shadow.length === 0) return considered;
  const tried = judged.shadow.map((verdict) => shadowCounter(verdict.policy, verdict.version, outcomeOf(effectOf(verdict, is_bound))));
  return { ...considered, counts: [...(considered.counts ?? []), ...tried] };
}

const outcomeOf = (effect: Then | null) => (effect === null || 'ask' in effect ? 'asked' : 'approve' in effect ? 'approved' : 'rejected');

/** What the action of a question is, for standing approvals. */
const fitOf = ({ record }: Pending): StandingFit => ({
  agent: record.asked.asked_by.agent_id,
  tool: record.question.action.tool,
  arguments_digest: argumentsDigestOf(effectiveArguments(record)),
});

/** What approvers may let stand without a policy. */
const usualRemember = { scope: 'tool', max_seconds: usualRememberSeconds } as const;

/** What a verdict makes of a question without approvals that count. */
function underVerdict(pending: Pending, verdict: PolicyVerdict | null, is_bound: boolean, before?: OpenCase): Considered {
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
    return { asked: closed(asked), open: null, decision, events: [] };
  }
  const steps = effect === null ? anybody : effect.ask;
  // Only an agent that is bound to its key has approvals that stand.
  const remember = is_bound ? (verdict === null ? usualRemember : (verdict.remember ?? null)) : null;
  const standing = before?.standing ?? (is_bound ? pending.facts.standing(fitOf(pending)).map(({ id }) => id) : []);
  const open: OpenCase = { steps, policy, began_at: pending.now.toISOString(), is_bound, remember, standing, announced: [0, 0] };
  return advanced(pending, open);
}

/** The quorum of an open question. */
function quorumOf(pending: Pending, { steps, began_at, standing: among }: OpenCase): Quorum {
  const { record, facts } = pending;
  const { asked } = record;
  const standing = among.length === 0 ? [] : facts.standing({ ...fitOf(pending), among });
  const approvals = (asked.approvals ?? []).map((approval): Approval => ({ ...approval, step: approval.step - 1 }));
  return { steps, began_at, expires_at: asked.expires_at, approvals, standing, people: facts.people() };
}

/** The question as time and what was given make it: its step, and its decision. */
function advanced(pending: Pending, open: OpenCase, events: readonly PacketEvent[] = []): Considered {
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

/** What the service set, without what only an open question has. */
const closed = ({ remember: _, ...asked }: Asked): Asked => ({ ...asked, step: null });

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
  const { remember } = open;
  const asked: Asked = { ...closed(before), ...(remember === null || remember === undefined ? {} : { remember }) };
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
  readonly standing_id?: string | null;
}

function decisionOf({ record, now }: Pending, { word, message, by, policy, standing_id = null }: Decided): ActionDecision {
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
  if (answer.remember !== undefined && word !== 'approve') throw invalid('remember', 'remember is only taken with the decision approve.');
  return word;
}

/**
 * The question of an action after a person's decision.
 * @throws ServiceError 400 for no decision, 403 NOT_AN_APPROVER, 409 ALREADY_APPROVED, 410 when time has decided already
 */
export function considerAnswer(
  packet: AnyPacket,
  record: AskedRecord,
  {
    answer,
    decider,
    open,
    facts,
    standingId,
  }: { answer: RespondRequest; decider: Decider; open: OpenCase; facts: Facts; standingId: string | undefined },
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
    return { asked: closed(asked), open: null, decision, events: [] };
  }
  const remembered = answer.remember && rememberedBy(pending, open, by, answer.remember, standingId);
  if (word === 'edit') return considerEdit(pending, open, by, answer.arguments!);
  const given: ShownApproval = { step: progress.step + 1, void: false, ...by, decision: 'approve' };
  const approved: Pending = {
    ...pending,
    record: { ...pending.record, asked: { ...asked, approvals: [...(asked.approvals ?? []), given] } },
  };
  const event = givenEvent(pending, given);
  if (remembered === undefined) return advanced(approved, open, [event]);
  const { id: standing_id, scope, expires_at } = remembered;
  const telling = { ...event, details: { ...event.details, remembered: { standing_id, scope, expires_at } } };
  return { ...advanced(approved, open, [telling]), remembered };
}

/** The approval that a person lets stand. @throws ServiceError 400 when that is not allowed */
function rememberedBy(
  pending: Pending,
  { remember, is_bound }: OpenCase,
  by: By & Pick<Decider, 'verified'>,
  { scope, seconds }: Remember,
  id: string | undefined,
): Remembered {
  const refuse = (sentence: string) => invalid('remember', `remember is refused: ${sentence}`);
  if (!by.verified) throw refuse(`${by.name} is a typed name.`);
  if (by.for !== null) throw refuse('a delegate approves in the place of another person.');
  if (!is_bound) throw refuse('the key that asks is not bound to the agent.');
  if (remember === null || remember === undefined) throw refuse('the policy does not allow it.');
  if (scope === 'tool' && remember.scope === 'call') throw refuse('the policy allows it for the same call only.');
  if (seconds > remember.max_seconds) throw refuse(`at most ${remember.max_seconds} seconds are allowed.`);
  if (id === undefined) throw refuse('it is not taken on this way.');
  const { agent, tool, arguments_digest } = fitOf(pending);
  return {
    ...{ id, person: by.name, agent_id: agent, tool, scope, arguments_digest: scope === 'call' ? arguments_digest : null },
    ...{ method: by.method, key_id: by.key_id, expires_at: new Date(pending.now.getTime() + seconds * 1000).toISOString() },
  };
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
  const again = underVerdict(fresh, verdict, is_bound, open);
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
export function requireDecisionFields(answer: RespondRequest): void {
  const field = (['decision', 'arguments', 'message', 'remember'] as const).find((name) => answer[name] !== undefined);
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
  people: () => ({ groups: new Map(), absences: [], suspended: new Set() }),
  isBound: () => false,
  standing: () => [],
};
