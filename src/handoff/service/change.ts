import { conflict, notFound, ServiceError } from '../../kit/errors.ts';
import { entityTagOf, requireMatch } from '../../kit/etag.ts';
import type { Packet } from '../model/packet.ts';
import { maxStanding } from '../model/standing.ts';
import type { Facts, Remembered } from '../rules/action-case.ts';
import { asksPerson, type Command, needsWhole } from '../rules/command.ts';
import { type KeyFamily, makesSource, requireNoSource, restrictedAction } from '../rules/exclusion.ts';
import { type Decision, decide } from '../rules/packet.ts';
import { withToken } from '../rules/text.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { PacketText } from '../store/packets.ts';
import type { Provenance } from '../store/provenance.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Caller, familyOf, provenanceOf } from './authentication.ts';

/** When a change happens, and the key behind it; without a family it is the service's own. */
export interface Acting extends Provenance {
  readonly family?: KeyFamily;
}

/** A change by a caller. */
export const actingFor = (caller: Caller, now: Date): Acting => ({ ...provenanceOf(caller, now), family: familyOf(caller) });

/** The parameters of a change beyond its body. */
export interface ChangeOptions {
  readonly agentId?: string | undefined;
  readonly ifMatch?: string | undefined;
  /** The token of the packet's lease. */
  readonly token?: string | undefined;
  /** The agent that acts, where a protocol lets the holder of a lease leave its token out: then its lease starts again. */
  readonly holder?: string | undefined;
  readonly idempotency?: Idempotency | undefined;
}

/** A packet after a change. */
export interface Changed extends PacketText {
  /** Whether this repeats the answer to an earlier request with the same idempotency key. */
  readonly replayed: boolean;
  /** 201 for a new question. */
  readonly status: number;
  /** The question that a request to ask is about. */
  readonly asked?: Decision['asked'];
}

type ChangedText = PacketText & Pick<Changed, 'asked'>;

/** How many bytes a packet may exceed its tier's body size by, for the fields that the service adds. */
const ownBytes = 4096;

/** The answer to a change that was stored under the same idempotency key; undefined: the request has no key, or a new one. */
export function repeatedChange({ idempotency: answers }: Transaction, idempotency: Idempotency | undefined): Changed | undefined {
  const again = answers.repeated(idempotency);
  return again && { packet: again.body, revision: Number(again.etag!.slice(1, -1)), status: again.status, replayed: true };
}

/** The answer to a change of a packet, stored under its idempotency key. */
export function keptAnswer(
  { idempotency: answers }: Transaction,
  idempotency: Idempotency | undefined,
  id: string,
  changed: ChangedText,
  { now }: Provenance,
): Changed {
  const status = changed.asked?.isRepeated === false ? 201 : 200;
  // What a question's key repeats, it repeats again.
  if (idempotency !== undefined && changed.asked?.isRepeated !== true)
    answers.remember(idempotency, { status, body: changed.packet, etag: entityTagOf(changed.revision) }, now, [id]);
  return { ...changed, status, replayed: false };
}

/**
 * Changes a stored packet by a command: read locked, decide, save or remove, append its events. Nothing else changes one, except the
 * execution of an approved action (`carryOut` in `executions.ts`). Returns the packet after the change.
 * @throws ServiceError 403 when the question excludes the key, which is its source
 */
export function changeIn(
  transaction: Transaction,
  id: string,
  command: Command,
  at: Acting,
  {
    ifMatch,
    maxBytes = Number.POSITIVE_INFINITY,
    facts,
  }: { ifMatch?: string | undefined; maxBytes?: number; facts?: Facts | undefined } = {},
): ChangedText {
  const { packets, questions, trail, counters } = transaction;
  const before = needsWhole(command) ? packets.whole(id) : packets.get(id);
  if (before === undefined) throw notFound('packet');
  requireMatch(ifMatch, entityTagOf(before.revision), 'packet');
  const { family } = at;
  const sources = packets.sources(id);
  const action = family && restrictedAction(before, command, packets.kept(id));
  if (action !== undefined) requireNoSource(sources, family!, action);
  const stored = { kept: packets.kept(id), earlier: asksPerson(command) ? questions.earlier(id) : [], facts, sources, family };
  const {
    packet,
    events,
    searchable,
    isRemoved,
    isErased,
    lease,
    ended = [],
    kept,
    asked,
    counts = [],
    remembered,
  } = decide(before, command, at.now, packets.lease(id), stored);
  const text = packets.text(id);
  if (packet === before && !isRemoved) return { packet: text, revision: before.revision, asked };
  if (isRemoved) packets.remove(id, at.now);
  else if (isErased) packets.erase(packet as Packet);
  else packets.save(packet, { searchable, lease, kept, source: events.some(makesSource) ? at.family : null });
  for (const question of ended) questions.insert(id, question, at.now);
  for (const name of counts) counters.add(name, 1);
  if (remembered !== undefined) letStand(transaction, id, remembered, at);
  const changed = isRemoved ? '' : packets.text(id);
  requireSize(text, changed, maxBytes);
  trail.append(packet, events, at);
  const token = command.kind === 'claim' ? command.terms?.token : undefined;
  return { packet: token === undefined ? changed : withToken(changed, token), revision: packet.revision, asked };
}

/** Stores an approval that a person lets stand. @throws ServiceError 409 when the tenant has too many */
function letStand({ documents, trail }: Transaction, packet_id: string, { id, ...remembered }: Remembered, at: Acting): void {
  if (documents.published('standing') >= maxStanding)
    throw conflict(`The tenant has ${maxStanding} standing approvals, the maximum; revoke one first.`);
  const now = at.now.toISOString();
  const document = JSON.stringify({ ...remembered, packet_id, origin: at.family!.origin });
  documents.publish({ kind: 'standing', name: id, version: 1, document, created_at: now, updated_at: now, removed_at: null });
  const { person, agent_id, tool, scope, expires_at } = remembered;
  const details = { standing_id: id, packet_id, person, agent_id, tool, scope, expires_at };
  trail.audit({ event_type: 'created', resource: 'standing approval', actor: `human:${person}`, details }, at);
}

function requireSize(before: string, after: string, limit: number): void {
  if (limit === Number.POSITIVE_INFINITY) return;
  const size = Buffer.byteLength(after);
  if (size > limit + ownBytes && size > Buffer.byteLength(before)) {
    throw new ServiceError('PAYLOAD_TOO_LARGE', `The packet would exceed the ${limit} bytes that this tenant's tier allows.`);
  }
}
