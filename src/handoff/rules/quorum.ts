import { ServiceError } from '../../kit/errors.ts';
import type { ShownApproval } from '../model/action.ts';
import type { Delegation } from '../model/delegation.ts';
import { groupPrefix, nameKey } from '../model/people.ts';
import type { Step } from '../model/policy.ts';

/** One step of a question about an action: whom it asks. */
export interface AskedStep extends Omit<Step, 'from'> {
  /** People and groups; null: anybody who may answer. */
  readonly from: readonly string[] | null;
}

/** The steps of an action that no policy decides: anybody is asked. */
export const anybody: readonly AskedStep[] = [{ from: null }];

/** An approval that a person gave, or that a standing approval of that person gave. */
export interface Approval extends Pick<ShownApproval, 'name' | 'for' | 'decision' | 'at' | 'void' | 'standing_id'> {
  /** The step in which it was given, from 0. */
  readonly step: number;
}

/** A delegation: `to` answers in the place of `person`, from `from` until `until`. */
export type Absence = Pick<Delegation, 'person' | 'to' | 'from' | 'until'>;

/** Who may approve, as it is now. */
export interface People {
  /** The members of a group, by its name; empty for a group that does not exist. */
  readonly groups: ReadonlyMap<string, readonly string[]>;
  readonly absences: readonly Absence[];
  /** People who answer nothing, in the form in which names are compared. */
  readonly suspended: ReadonlySet<string>;
  /** Who it is, by each name of a person whom the identity provider calls otherwise since, in the form in which names are compared. */
  readonly renamed: ReadonlyMap<string, string>;
}

/** Somebody who decides, or whose approval stands. */
export interface Approver {
  readonly name: string;
  readonly verified: boolean;
  /** Whether the key, or the person, is of the family of the keys that ask. */
  readonly isAsker: boolean;
}

/** What a person approved for later: it counts wherever a step asks that person. */
export interface Standing extends Pick<Approver, 'name' | 'isAsker'> {
  readonly id: string;
}

/** What decides about an action: whom its steps ask, and what people have done. */
export interface Quorum {
  readonly steps: readonly AskedStep[];
  /** Whether a policy asks: then only verified names that are not the asker's count, also where it asks anybody. */
  readonly byPolicy: boolean;
  /** When the first step began, in ISO 8601. */
  readonly began_at: string;
  /** When the question ends, whatever the step; null: never. */
  readonly expires_at: string | null;
  readonly approvals: readonly Approval[];
  /** The standing approvals that fit the action. */
  readonly standing: readonly Standing[];
  readonly people: People;
}

/** The step that is open. */
export interface OpenStep {
  /** Its number, from 0. */
  readonly step: number;
  readonly of: number;
  /** How many different people must approve, and how many have. */
  readonly count: number;
  readonly given: number;
  /** The people and groups that are asked, with the people and groups of the escalations that are due; null: anybody. */
  readonly from: readonly string[] | null;
  /** How many of its escalations are due. */
  readonly escalated: number;
}

/** How far the approval of an action is. `granted` are the approvals that standing approvals gave. */
export type Progress = { readonly granted: readonly Approval[] } & (
  | { readonly outcome: 'approved'; readonly at: string }
  /** The time of a step elapsed, and its policy rejects then. */
  | { readonly outcome: 'rejected'; readonly at: string; readonly step: number }
  | { readonly outcome: 'timed_out'; readonly at: string }
  /** `look_at`: when time alone changes it next; null: never. */
  | ({ readonly outcome: 'open'; readonly look_at: string | null } & OpenStep)
);

const timeOf = (text: string) => Date.parse(text);
const textOf = (time: number) => new Date(time).toISOString();
const afterSeconds = (time: number, seconds: number) => time + seconds * 1000;

/** When a step ends by itself, if it began at a time. */
function endOf({ timeout_seconds, on_timeout = 'keep' }: AskedStep, began: number): number {
  return timeout_seconds === undefined || on_timeout === 'keep' ? Number.POSITIVE_INFINITY : afterSeconds(began, timeout_seconds);
}

/** The people and groups of a list, with the members of the groups. */
export const everybodyIn = (from: readonly string[], { groups }: Pick<People, 'groups'>): string[] => [
  ...new Set(
    from.flatMap((name) => (name.startsWith(groupPrefix) ? [name, ...(groups.get(name.slice(groupPrefix.length)) ?? [])] : [name])),
  ),
];

/** The names of the people whom a step asks, in the form in which names are compared; null: anybody. */
function askedIn(from: OpenStep['from'], { groups }: People): Set<string> | null {
  if (from === null) return null;
  const names = from.flatMap((name) => (name.startsWith(groupPrefix) ? (groups.get(name.slice(groupPrefix.length)) ?? []) : [name]));
  return new Set(names.map(nameKey));
}

/** What a person counts by: who has several names is one person. */
const countedAs = ({ renamed }: People, name: string): string => renamed.get(nameKey(name)) ?? nameKey(name);

const isSuspended = ({ suspended }: People, name: string): boolean => suspended.has(nameKey(name));

/** Requires that the person whose name an answer carries is not suspended, also where the name is only typed. @throws ServiceError 403 */
export function requireActive(people: People, name: string): void {
  if (isSuspended(people, name)) throw new ServiceError('FORBIDDEN', `${name.trim()} is suspended here.`, { field: 'responded_by' });
}

/** Whether an approval counts: nothing made it void, and nobody whom it names is suspended. */
const counts = (approval: Approval, people: People): boolean =>
  !approval.void && !isSuspended(people, approval.name) && (approval.for === null || !isSuspended(people, approval.for));

/** The people who have approved, each with the person whose place they took: none of them counts again. */
function whoApproved(approvals: readonly Approval[], people: People): Set<string> {
  const counting = approvals.filter((approval) => counts(approval, people));
  return new Set(
    counting.flatMap(({ name, for: other }) => [name, ...(other === null ? [] : [other])].map((one) => countedAs(people, one))),
  );
}

/** Whom a step asks that began at a time, with its escalations that are due. */
function openOf(step: AskedStep, began: number, now: number): Pick<OpenStep, 'from' | 'escalated'> {
  const due = (step.escalate ?? []).filter(({ after_seconds }) => afterSeconds(began, after_seconds) <= now);
  return { from: step.from === null ? null : [...new Set([...step.from, ...due.flatMap(({ to }) => to)])], escalated: due.length };
}

/** The approvals, at most `missing`, that standing approvals of the people whom a step asks give at once; each person counts once. */
function grantsOf(
  { standing, approvals, ...quorum }: Quorum,
  from: readonly string[] | null,
  { step, missing, now }: { step: number; missing: number; now: number },
): Approval[] {
  const granted: Approval[] = [];
  const places = { ...quorum, asked: askedIn(from, quorum.people), approved: whoApproved(approvals, quorum.people) };
  for (const { id, name, isAsker } of standing) {
    if (granted.length === missing) break;
    const place = placeAmong(places, { name, isAsker, verified: true }, new Date(now));
    // What stands is for the own place, and never for an action that its person's keys ask about.
    if (isAsker || typeof place === 'string' || place.for !== null) continue;
    places.approved.add(countedAs(quorum.people, name));
    granted.push({ step, name, for: null, decision: 'approve', at: textOf(now), void: false, standing_id: id });
  }
  return granted;
}

/**
 * How far the approval of an action is at a time: approved, rejected, timed out, or who is asked and when to look again. It follows
 * from what was given alone, so that it is the same whenever and wherever it is asked.
 */
export function progressOf(quorum: Quorum, now: Date): Progress {
  const { steps, people, expires_at } = quorum;
  const expires = expires_at === null ? Number.POSITIVE_INFINITY : timeOf(expires_at);
  const isOver = now.getTime() >= expires;
  // What a step's time did before the question ended happened before it.
  const at = isOver ? expires - 1 : now.getTime();
  const granted: Approval[] = [];
  let began = timeOf(quorum.began_at);
  for (const [index, step] of steps.entries()) {
    const count = step.count ?? 1;
    const all = () => [...quorum.approvals, ...granted];
    const given = () => all().filter((approval) => approval.step === index && counts(approval, people));
    const end = endOf(step, began);
    const { from, escalated } = openOf(step, began, at);
    if (given().length < count && at < end && !isOver)
      granted.push(...grantsOf({ ...quorum, approvals: all() }, from, { step: index, missing: count - given().length, now: at }));
    if (given().length >= count) {
      began = given()
        .map((approval) => timeOf(approval.at))
        .toSorted((one, other) => one - other)[count - 1]!;
    } else if (at >= end) {
      if (step.on_timeout === 'reject') return { granted, outcome: 'rejected', at: textOf(end), step: index };
      began = end;
    } else {
      if (isOver) return { granted, outcome: 'timed_out', at: textOf(expires) };
      const escalations = (step.escalate ?? []).map(({ after_seconds }) => afterSeconds(began, after_seconds));
      const next = Math.min(end, expires, ...escalations.filter((time) => time > at));
      const look_at = Number.isFinite(next) ? textOf(next) : null;
      return { granted, outcome: 'open', look_at, step: index, of: steps.length, count, given: given().length, from, escalated };
    }
  }
  return { granted, outcome: 'approved', at: textOf(began) };
}

/** In whose place a person answers: in their own (`for` is null), or in the place of somebody who is away. Else why the person does not count. */
export type Place = { readonly for: string | null } | 'the asker' | 'not verified' | 'not asked' | 'approved already';

/**
 * The place of somebody in a step of a question: nothing else says who counts in it. Who approved once does not count again, in no step;
 * nor do a person and the delegate who answered in that person's place.
 * @param from whom the step asks
 * @param approves whether the place is for an approval; who rejects or changes an action may have approved it
 */
export function placeOf(
  { approvals, ...quorum }: Pick<Quorum, 'byPolicy' | 'people' | 'approvals'>,
  from: OpenStep['from'],
  approver: Approver,
  now: Date,
  approves: boolean,
): Place {
  const approved = approves ? whoApproved(approvals, quorum.people) : new Set<string>();
  return placeAmong({ ...quorum, asked: askedIn(from, quorum.people), approved }, approver, now);
}

/** Who has a place in a step: who is asked, in the form in which names are compared, and who has approved, as they count. */
interface Places extends Pick<Quorum, 'byPolicy' | 'people'> {
  readonly asked: ReadonlySet<string> | null;
  readonly approved: ReadonlySet<string>;
}

function placeAmong({ byPolicy, people, asked, approved }: Places, { name, verified, isAsker }: Approver, now: Date): Place {
  if (byPolicy && isAsker) return 'the asker';
  if (byPolicy && !verified) return 'not verified';
  if (isSuspended(people, name)) return 'not asked';
  const key = nameKey(name);
  const hasApproved = approved.has(countedAs(people, name));
  if (asked === null) return hasApproved ? 'approved already' : { for: null };
  const away = people.absences.filter(
    ({ person, to, from: begin, until }) =>
      nameKey(to) === key &&
      (begin === null || timeOf(begin) <= now.getTime()) &&
      now.getTime() < timeOf(until) &&
      asked.has(nameKey(person)),
  );
  const present = away
    .filter(({ person }) => !isSuspended(people, person))
    .toSorted((one, other) => (nameKey(one.person) < nameKey(other.person) ? -1 : 1));
  if (!asked.has(key) && present.length === 0) return 'not asked';
  if (hasApproved) return 'approved already';
  if (asked.has(key)) return { for: null };
  const free = present.find(({ person }) => !approved.has(countedAs(people, person)));
  return free === undefined ? 'approved already' : { for: free.person };
}
