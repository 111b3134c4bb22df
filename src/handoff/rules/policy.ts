import type { Fault } from '../../kit/errors.ts';
import type { ActionDecision, ShadowVerdict } from '../model/action.ts';
import { groupPrefix } from '../model/people.ts';
import type { PolicyRequest, Rule, Step, Then } from '../model/policy.ts';

/** What a policy judges: an action, the agent that asks, and the packet. */
export interface Subject {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The id of the agent. */
  readonly agent: string;
  readonly framework: string;
  readonly tags: readonly string[];
  readonly priority: string;
  readonly custom: Readonly<Record<string, unknown>>;
}

/** A policy that actions are judged by. */
export interface JudgedPolicy extends Pick<PolicyRequest, 'match' | 'rules' | 'order' | 'mode' | 'remember'> {
  readonly name: string;
  readonly version: number;
  /**
   * By the number of a rule, from 0: the path of the first part of a subject that does not fit its `when`; undefined if it fits, null if
   * the check took too many steps.
   */
  readonly misfit: (rule: number, subject: Subject) => string | null | undefined;
}

/** A policy that did not decide, or a rule of it, from 1, and the first part of the action that did not fit. */
export interface Skipped {
  readonly policy: string;
  readonly rule: number | null;
  readonly path: string;
}

/** What a policy decides, and the number of the rule, from 1; `then` is null if no rule fits, so that anybody is asked. */
export interface PolicyVerdict extends Omit<ShadowVerdict, 'then'> {
  readonly then: Then | null;
  /** What approvers may let stand for later. */
  readonly remember?: PolicyRequest['remember'];
}

/** What the policies of a tenant say to an action. */
export interface Judgement {
  /** What decides; null if no policy fits, so that anybody is asked. */
  readonly verdict: PolicyVerdict | null;
  readonly skipped: readonly Skipped[];
  /** What policies would have decided that are only tried. */
  readonly shadow: readonly PolicyVerdict[];
}

/** Whether a name fits a pattern: equal, or with `*` at the end any name that begins so. */
function fitsPattern(pattern: string, text: string): boolean {
  return pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}

/** The part of `match` that an action does not fit. */
function mismatch({ match = {} }: Pick<JudgedPolicy, 'match'>, { agent, tool, tags }: Subject): string | undefined {
  const { agents = [], tools = [], tags: wanted = [] } = match;
  const fitsOne = (patterns: readonly string[], text: string) =>
    patterns.length === 0 || patterns.some((pattern) => fitsPattern(pattern, text));
  if (!fitsOne(agents, agent)) return 'match.agents';
  if (!fitsOne(tools, tool)) return 'match.tools';
  return wanted.every((pattern) => tags.some((tag) => fitsPattern(pattern, tag))) ? undefined : 'match.tags';
}

/** What a policy decides about an action that it matches, and the rules before that did not fit. */
export function verdictOf(
  policy: JudgedPolicy,
  subject: Subject,
): { readonly verdict: PolicyVerdict; readonly skipped: readonly Skipped[] } {
  const { name, version, remember } = policy;
  const skipped: Skipped[] = [];
  const own = { policy: name, version, ...(remember === undefined ? {} : { remember }) };
  for (const [index, { then }] of policy.rules.entries()) {
    const path = policy.misfit(index, subject);
    if (path === undefined) return { verdict: { ...own, rule: index + 1, then }, skipped };
    // A rule that can't be checked might have refused: nothing after it may approve.
    if (path === null) return { verdict: { ...own, rule: index + 1, then: { reject: ranOut(index + 1) } }, skipped };
    skipped.push({ policy: name, rule: index + 1, path });
  }
  return { verdict: { ...own, rule: null, then: null }, skipped };
}

const ranOut = (rule: number) => `Rule ${rule} could not be checked: the arguments take too many steps.`;

const byOrder = (one: Pick<JudgedPolicy, 'order' | 'name'>, other: Pick<JudgedPolicy, 'order' | 'name'>): number =>
  (one.order ?? 0) - (other.order ?? 0) || (one.name < other.name ? -1 : one.name > other.name ? 1 : 0);

/** The policies in the order in which they are tried. */
export const inOrder = <P extends Pick<JudgedPolicy, 'order' | 'name'>>(policies: readonly P[]): P[] => policies.toSorted(byOrder);

/** The policies, in order, that say something about an action: the policies in the mode `shadow`, and the first other policy that matches. */
export function matching<P extends Omit<JudgedPolicy, 'misfit'>>(policies: readonly P[], subject: Subject): P[] {
  const matched = policies.filter((policy) => mismatch(policy, subject) === undefined);
  const first = matched.find(({ mode }) => mode !== 'shadow');
  return matched.filter((policy) => policy === first || policy.mode === 'shadow');
}

/** What policies, in order, say to an action: the first that matches decides, without those that are only tried. */
export function judge(policies: readonly JudgedPolicy[], subject: Subject): Judgement {
  const skipped: Skipped[] = [];
  const shadow: PolicyVerdict[] = [];
  let verdict: PolicyVerdict | null = null;
  for (const policy of policies) {
    const isShadow = policy.mode === 'shadow';
    if (!isShadow && verdict !== null) continue;
    const path = mismatch(policy, subject);
    if (path !== undefined) {
      if (!isShadow) skipped.push({ policy: policy.name, rule: null, path });
      continue;
    }
    const judged = verdictOf(policy, subject);
    if (isShadow) shadow.push(judged.verdict);
    else {
      verdict = judged.verdict;
      skipped.push(...judged.skipped);
    }
  }
  return { verdict, skipped, shadow };
}

/**
 * What a verdict does for an agent: a rule approves by itself only for an agent that the asking key is bound to; for any other, anybody
 * is asked.
 */
export function effectOf(verdict: PolicyVerdict | null, isBound: boolean): Then | null {
  const then = verdict?.then ?? null;
  return then !== null && 'approve' in then && !isBound ? null : then;
}

/** What a policy would have decided about a past action, beside what people decided. */
export interface ReplayedAction {
  readonly policy: 'approve' | 'reject' | 'ask';
  readonly person: ActionDecision['decision'];
  /** Undefined where there is nothing to compare: the policy would have asked, or nobody decided. */
  readonly agrees: boolean | undefined;
}

/** A verdict beside what became of the action. Who changed the arguments did not approve the proposed ones; who answered instead let nothing run. */
export function replayOf(
  { then }: Pick<PolicyVerdict, 'then'>,
  { decision: person, by }: Pick<ActionDecision, 'decision' | 'by'>,
): ReplayedAction {
  const policy = then === null || 'ask' in then ? 'ask' : 'approve' in then ? 'approve' : 'reject';
  const ran = person === 'approve';
  const agrees = policy === 'ask' || by.length === 0 ? undefined : ran === (policy === 'approve');
  return { policy, person, agrees };
}

/** What is wrong with the rules of a policy that its schema does not see. */
export function policyFaults({ rules }: Pick<PolicyRequest, 'rules'>): Fault[] {
  return rules.flatMap(({ then }, rule) =>
    'ask' in then ? then.ask.flatMap((step, index) => stepFaults(step, rule, index, then.ask.length)) : [],
  );
}

function stepFaults({ timeout_seconds, on_timeout = 'keep', from, escalate = [] }: Step, rule: number, index: number, of: number): Fault[] {
  const path = `rules.${rule}.then.ask.${index}`;
  const field = `${path}.on_timeout`;
  const faults: Fault[] = [];
  if (on_timeout === 'next' && index === of - 1) faults.push({ field, detail: `${field} can't be next in the last step.` });
  if (on_timeout !== 'keep' && timeout_seconds === undefined)
    faults.push({ field: `${path}.timeout_seconds`, detail: `${path}.timeout_seconds is required: on_timeout is ${on_timeout}.` });
  const lists = [[`${path}.from`, from] as const, ...escalate.map(({ to }, at) => [`${path}.escalate.${at}.to`, to] as const)];
  for (const [list, names] of lists)
    if (names.some((name) => name === groupPrefix || name.trim() === ''))
      faults.push({ field: list, detail: `${list} has an empty name.` });
  return faults;
}

/** A sentence for each part of a policy that will not work as it probably should. `groups`: the members of the tenant's groups. */
export function policyWarnings({ rules }: Pick<PolicyRequest, 'rules'>, groups: ReadonlyMap<string, readonly string[]>): string[] {
  const warnings: string[] = [];
  const last = rules.findIndex(({ when }) => when === undefined || Object.keys(when).length === 0);
  if (last !== -1 && last < rules.length - 1) warnings.push(`Rule ${last + 1} fits every action: the rules after it never decide.`);
  for (const [index, rule] of rules.entries()) warnings.push(...ruleWarnings(rule, index + 1, groups));
  return warnings;
}

function ruleWarnings({ then }: Rule, rule: number, groups: ReadonlyMap<string, readonly string[]>): string[] {
  if (!('ask' in then)) return [];
  return then.ask.flatMap(({ from, count = 1, escalate = [], timeout_seconds }, index) => {
    const where = `Step ${index + 1} of rule ${rule}`;
    const names = [...from, ...escalate.flatMap(({ to }) => to)];
    const asked = names.filter((name) => name.startsWith(groupPrefix)).map((name) => name.slice(groupPrefix.length));
    const people = new Set(
      names.flatMap((name) => (name.startsWith(groupPrefix) ? (groups.get(name.slice(groupPrefix.length)) ?? []) : [name])),
    );
    const late = escalate.filter(({ after_seconds }) => timeout_seconds !== undefined && after_seconds >= timeout_seconds);
    return [
      ...asked.filter((group) => !groups.has(group)).map((group) => `${where} asks the group ${group}, which does not exist.`),
      ...(people.size < count ? [`${where} needs ${count} people, and asks ${people.size}.`] : []),
      ...(late.length > 0 ? [`${where} escalates after its own timeout, which is never reached.`] : []),
    ];
  });
}
