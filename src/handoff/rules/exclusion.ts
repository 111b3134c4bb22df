import { ServiceError } from '../../kit/errors.ts';
import { nameKey } from '../model/people.ts';
import { asksPerson, type Command } from './command.ts';
import { bareIssuer, type Person } from './identity.ts';
import type { KeptOfQuestions } from './kept.ts';
import type { AnyPacket, PacketEvent } from './packet.ts';
import { isAwaited } from './question-state.ts';

/** The prefix of an admin key among the makers of a key. */
const byAdmin = 'admin:';

/** The prefix of a person among origins. */
const byPerson = 'person:';

/** A key and the keys that it was rotated from, named by the first of them, and the families through which that one was created. */
export interface KeyFamily {
  readonly origin: string;
  readonly lineage: Lineage;
  /** The person who it is, as a source. */
  readonly person?: string;
  /** The person of the identity provider who it is, as a source, whatever the name is. */
  readonly subject?: string;
}

/** A person as a source of questions. */
export const personOrigin = (name: string): string => byPerson + nameKey(name);

/** A person of the identity provider as a source of questions: the name may change there, or a token may not say it. */
export const subjectOrigin = ({ subject, issuer }: Pick<Person, 'subject' | 'issuer'>): string =>
  `subject:${bareIssuer(issuer)} ${subject}`;

/** The person of an origin, in the form in which names are compared; undefined if the origin is a key. */
export const personIn = (origin: string): string | undefined => (origin.startsWith(byPerson) ? origin.slice(byPerson.length) : undefined);

/** The origins of the families through which a key was created, the latest first; the origins of admin keys have a prefix. */
export type Lineage = readonly string[];

/** The lineage of the keys that a key creates. */
export const lineageFrom = ({ origin, lineage, subject }: KeyFamily, { admin }: { admin: boolean }): Lineage => [
  ...[origin, ...(subject === undefined ? [] : [subject])].map((maker) => (admin ? byAdmin + maker : maker)),
  ...lineage,
];

const firstKeyOf = (maker: string): string => (maker.startsWith(byAdmin) ? maker.slice(byAdmin.length) : maker);

/**
 * Whether a key counts as a source. It does if it is in the family of a source, if it made a source or a source made it
 * (directly or through other keys), or if one key made both and is no admin key. The key that
 * made both has the scope `work` if the source has it, since a key gives no more rights than it has.
 */
function isSource(sources: readonly string[], { origin, lineage, person, subject }: KeyFamily): boolean {
  if (person !== undefined && sources.includes(person)) return true;
  const own = subject === undefined ? [origin] : [origin, subject];
  if (own.some((one) => sources.includes(one) || sources.includes(byAdmin + one))) return true;
  return lineage.some((maker) => sources.includes(firstKeyOf(maker)));
}

/** Whether a key belongs to the family of the keys that are named. */
export const isOfFamily = isSource;

/** The sources of a question, with a further key and the keys that made it added. */
export function withSource(sources: readonly string[], { origin, lineage, person, subject }: KeyFamily): readonly string[] {
  const given = [origin, ...lineage, person, subject].filter((one) => one !== undefined);
  if (given.every((key) => sources.includes(key))) return sources;
  return [...new Set([...sources, ...given])];
}

/** Whether an event makes its key a source of the packet's question: it created or claimed the packet, asked, or changed the question. */
export function makesSource({ event_type, details }: PacketEvent): boolean {
  if (event_type === 'created' || event_type === 'claimed' || event_type === 'awaiting_human') return true;
  return 'replaced_question_id' in details || ((details.fields as readonly string[] | undefined)?.includes('hitl') ?? false);
}

/**
 * What a command does to a question that excludes its source (`hitl.exclude_source`), if only another key may do that: it
 * answers the question, withdraws it, changes it while it is open, or removes the need for it before the next one is asked. A question
 * that needs a verified name (`hitl.require_verified`) keeps that need against its source likewise.
 * Undefined otherwise: failing or deleting the packet approves nothing.
 */
export function restrictedAction(
  packet: AnyPacket,
  command: Command,
  kept: KeptOfQuestions = {},
): 'answered' | 'withdrawn' | 'changed' | undefined {
  const { hitl } = packet;
  const { exclude_source: isExcluded, require_verified: isVerified } = hitl ?? kept;
  if (!isExcluded && !isVerified) return undefined;
  if (command.kind === 'respond') return isExcluded ? 'answered' : undefined;
  if (command.kind === 'withdraw') return isExcluded ? 'withdrawn' : undefined;
  const change = command.kind === 'ask' ? command.question : command.kind === 'patch' ? command.patch.hitl : undefined;
  if (change === undefined) return undefined;
  // An answered question can't be changed by any key.
  if (hitl !== null && hitl.question_id !== null && !isAwaited(packet) && !asksPerson(command)) return undefined;
  if (change === null) return hitl === null ? undefined : 'changed';
  const lifts =
    (isExcluded && (change.exclude_source === false || change.required === false)) || (isVerified && change.require_verified === false);
  return lifts || (isExcluded && command.kind === 'patch' && isAwaited(packet)) ? 'changed' : undefined;
}

/** @throws ServiceError 403 when the key is a source of the question, which must be `action` with another key */
export function requireNoSource(sources: readonly string[], family: KeyFamily, action: string): void {
  if (isSource(sources, family)) throw sourceRefused(action);
}

/** Says that a source of a question does what only others may. */
export function sourceRefused(action: string): ServiceError {
  const who = 'this one, or a key of its family, created or claimed the packet, or asked';
  return new ServiceError('FORBIDDEN', `The question must be ${action} with another key: ${who}.`);
}
