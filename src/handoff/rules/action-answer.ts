import { invalid, ServiceError } from '../../kit/errors.ts';
import type { Action, DecisionWord, Remember, ShownApproval } from '../model/action.ts';
import { errors } from '../model/errors.ts';
import { offeredBy } from '../model/offered.ts';
import type { RespondRequest } from '../model/packet.ts';
import { argumentsDigestOf, requireSatisfied, requireSoundArguments, subjectOf } from './action.ts';
import {
  advanced,
  type Considered,
  caseUnder,
  type Decider,
  decisionOf,
  type Facts,
  fitOf,
  givenEvent,
  type KeysBehind,
  type OpenCase,
  type Pending,
  quorumOf,
  type Remembered,
  requireAction,
  ruledBy,
} from './action-case.ts';
import { isOfFamily, sourceRefused } from './exclusion.ts';
import type { AnyPacket } from './packet.ts';
import { shownDigest, whole } from './question.ts';
import { type AskedRecord, closed } from './question-state.ts';
import { type Approver, placeOf, progressOf } from './quorum.ts';

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
    sources = [],
    family,
  }: { answer: RespondRequest; decider: Decider; open: OpenCase; facts: Facts; standingId: string | undefined } & KeysBehind,
  now: Date,
): Considered {
  const pending: Pending = { packet, record: requireAction(record), now, facts, sources };
  const { asked, question } = pending.record;
  const word = decisionIn(answer, question.action);
  const name = answer.responded_by;
  const quorum = quorumOf(pending, open);
  const progress = progressOf(quorum, now);
  if (progress.outcome !== 'open') throw new ServiceError('GONE', 'The time to decide is over.');
  const approves = word === 'approve' || word === 'edit';
  const approver: Approver = { name, verified: decider.verified, isAsker: family !== undefined && isOfFamily(sources, family) };
  const place = requirePlace(quorum, progress.from, approver, now, word === 'approve');
  const by = { name, ...decider, for: place.for, at: now.toISOString(), ...(answer.partial === true ? { partial: true } : {}) };
  if (!approves) {
    const decision = decisionOf(pending, { word, message: answer.message ?? null, by: [{ ...by, decision: word }], policy: open.policy });
    return { asked: closed(asked), open: null, decision, events: [] };
  }
  const remembered = answer.remember && rememberedBy(pending, open, by, answer.remember, standingId);
  if (word === 'edit') return considerEdit(pending, open, { by, approver, given: answer.arguments! });
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

/** The place of a person in the open step, as `placeOf` says. @throws ServiceError 403, 409 */
function requirePlace(...[quorum, from, approver, ...rest]: Parameters<typeof placeOf>): { readonly for: string | null } {
  const place = placeOf(quorum, from, approver, ...rest);
  if (typeof place === 'object') return place;
  const { name } = approver;
  if (place === 'the asker') throw sourceRefused('answered');
  if (place === 'approved already') throw new ServiceError(errors.ALREADY_APPROVED, `${name} has approved already, and counts once.`);
  const why = place === 'not asked' ? 'is not asked' : 'is a typed name, which approves nothing here';
  const who = from === null ? 'anybody whose name is verified' : from.join(', ');
  throw new ServiceError(errors.NOT_AN_APPROVER, `${name} ${why}. This step asks ${who}.`, { extra: { from } });
}

type By = Omit<ShownApproval, 'step' | 'void' | 'decision'>;

/**
 * An edit makes the arguments new: earlier approvals are void, and the policy of the question is judged again, with all else as it was
 * asked.
 */
function considerEdit(
  pending: Pending,
  open: OpenCase,
  { by, approver, given }: { by: By; approver: Approver; given: Action['arguments'] },
): Considered {
  const { packet, record, facts, now } = pending;
  const { question, asked } = record;
  const { action } = question;
  requireSoundArguments(given, 'arguments');
  if (action.schema !== undefined) requireSatisfied(facts.faultsOf(action.schema, given));
  const edited = { arguments: given, arguments_digest: argumentsDigestOf(given), name: by.name, at: by.at };
  const approvals = (asked.approvals ?? []).map((approval) => ({ ...approval, void: true }));
  const digest = shownDigest(whole(packet), { question, asked: { edited } });
  const fresh: Pending = { ...pending, record: { ...record, asked: { ...asked, edited, approvals, digest } } };
  const { policy, is_bound, judged, standing } = open;
  const subject = { ...(judged ?? subjectOf(packet, action, given, asked.asked_by.agent_id)), arguments: given };
  const verdict = policy === null ? null : facts.judge(subject, policy).verdict;
  const decision = ruledBy(fresh, verdict, is_bound);
  if (decision !== undefined) {
    const event = givenEvent(pending, { ...by, step: 1, void: true, decision: 'edit' });
    return { asked: closed(fresh.record.asked), open: null, decision, events: [event] };
  }
  // Whoever the first step asks is told, also where an earlier one was announced.
  const again: OpenCase = { ...caseUnder(fresh, verdict, { is_bound, judged, standing }), announced: [-1, 0] };
  // The editor's approval counts where the new first step asks the editor.
  const place = placeOf(quorumOf(fresh, again), again.steps[0]!.from, approver, now, true);
  const isAsked = typeof place === 'object';
  const approval: ShownApproval = { ...by, step: 1, decision: 'edit', void: !isAsked, for: isAsked ? place.for : by.for };
  const withEditor: Pending = {
    ...fresh,
    record: { ...fresh.record, asked: { ...fresh.record.asked, approvals: [...approvals, approval] } },
  };
  return advanced(withEditor, again, [givenEvent(pending, approval)]);
}

/** Requires an answer without the fields of a decision. @throws ServiceError 400 */
export function requireDecisionFields(answer: RespondRequest): void {
  const field = (['decision', 'arguments', 'message', 'remember'] as const).find((name) => answer[name] !== undefined);
  if (field !== undefined) throw invalid(field, `${field} is only taken by a question about an action.`);
}
