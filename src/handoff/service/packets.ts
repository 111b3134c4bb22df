import type { Clock } from '../../kit/clock.ts';
import { invalid, LimitReached, notFound, ServiceError } from '../../kit/errors.ts';
import { requireMatch } from '../../kit/etag.ts';
import { isId, type NewId } from '../../kit/id.ts';
import type { Tier } from '../model/common.ts';
import type { ChainRequest, Claimant, CreateRequest, Packet, PatchRequest, RespondRequest } from '../model/packet.ts';
import { type Command, chained, decide, entityTag, needsWhole, newPacket } from '../rules/packet.ts';
import { dailyCap, dayOf, secondsToMidnight, type TierLimits } from '../rules/tiers.ts';
import type { PacketText } from '../store/packets.ts';
import type { Store } from '../store/store.ts';
import type { Idempotency } from '../store/units/answers.ts';
import type { Circumstances } from '../store/units/events.ts';
import type { Transaction } from '../store/units/transaction.ts';
import type { Caller } from './access.ts';

export interface PacketServiceParts {
  store: Store;
  clock: Clock;
  newId: NewId;
  limits: Record<Tier, TierLimits>;
  /** Told, after the commit, how many packets a tenant created. */
  onCreated(tenantId: string, count: number): void;
}

/** What a creating request may say besides its body. */
export interface CreateOptions {
  readonly agentId?: string | undefined;
  readonly idempotency?: Idempotency | undefined;
  /** The size of the request, in bytes. */
  readonly size?: number | undefined;
}

/** The answer to a creating request: new, or the same as the first time. */
export interface Made {
  readonly text: string;
  readonly status: number;
  readonly etag: string | null;
  readonly replayed: boolean;
}

/** An item of a batch: a request that may be carried out, or why it can't be. */
export type BatchItem = { request: CreateRequest } | { error: ServiceError };

/** An item of a batch that was refused. */
type ItemFault = Record<string, unknown> & { error: string; code: string };

/** How far a packet may outgrow its tier's body size by what the service itself adds to it, in bytes. */
const ownBytes = 4096;

/** Once an answer to a batch has so many characters, no more packets are taken into it: they would all be in memory. */
const maxAnswerLength = 16 * 1024 * 1024;

/** What a caller may ask for of packets: one unit of work each. */
export function createPacketService({ store, clock, newId, limits, onCreated }: PacketServiceParts) {
  const capOf = (caller: Caller) => dailyCap(caller.handoffs_per_day, limits[caller.tenant_tier]);

  /** Creates packets and says what to answer, or repeats what was answered under the same idempotency key. */
  async function createUnder(
    caller: Caller,
    { idempotency, size = 0 }: CreateOptions,
    parents: readonly string[],
    count: number,
    make: (transaction: Transaction, take: () => void, now: Date) => Created,
  ): Promise<Made> {
    const now = clock();
    const today = createdOn(dayOf(now));
    const cap = capOf(caller);
    const capped = Number.isFinite(cap);
    let taken = 0;
    const made = await store.of(caller.tenant_number).commit<Made>({
      packets: parents,
      creates: count,
      size,
      idempotencyKey: idempotency?.key,
      ...(capped ? { counters: [today] } : {}),
      work(transaction) {
        const { answers, counters } = transaction;
        taken = 0;
        const again = answers.repeated(idempotency);
        if (again !== undefined) return { text: again.body, status: again.status, etag: again.etag, replayed: true };
        const take = () => {
          if (capped && counters.value(today) >= cap) throw capReached(cap, now);
          counters.add(today, 1);
          taken += 1;
        };
        const { status, body, etag, packetIds } = make(transaction, take, now);
        if (idempotency !== undefined) answers.remember(idempotency, { status, body, etag }, now, packetIds);
        return { text: body, status, etag, replayed: false };
      },
    });
    onCreated(caller.tenant_id, taken);
    return made;
  }

  /** Creates one packet. `refuseParent` is thrown when the named parent is unknown to the tenant. */
  function createIn(
    { packets, events: trail }: Transaction,
    take: () => void,
    request: CreateRequest,
    agentId: string | undefined,
    at: Circumstances,
    refuseParent: () => ServiceError,
  ): Packet {
    const parentId = request.parent_packet_id?.toLowerCase();
    const parent = parentId === undefined ? undefined : packets.get(parentId);
    if (parentId !== undefined && parent === undefined) throw refuseParent();
    take();
    const { packet, events } = newPacket({ ...request, parent_packet_id: parentId }, { id: newId(at.now), now: at.now, agentId });
    packets.insert(packet);
    trail.append(packet, events, at);
    if (parent !== undefined) trail.append(parent, [chained(packet, agentId)], at);
    return packet;
  }

  function createOne(caller: Caller, request: CreateRequest, options: CreateOptions, refuseParent: () => ServiceError): Promise<Made> {
    const parents = request.parent_packet_id === undefined ? [] : [request.parent_packet_id.toLowerCase()];
    return createUnder(caller, options, parents, 1, (transaction, take, now) => {
      const packet = createIn(transaction, take, request, options.agentId, { now, keyId: caller.key_id }, refuseParent);
      return { status: 201, body: transaction.packets.text(packet.id), etag: entityTag(packet), packetIds: [packet.id] };
    });
  }

  async function change(caller: Caller, id: string, command: Command, ifMatch?: string): Promise<PacketText> {
    if (!isId(id)) throw notFound('packet');
    const at = { now: clock(), keyId: caller.key_id };
    // Only content that is brought can be too much: a packet of any size can be claimed, answered and moved on.
    const whole = needsWhole(command);
    const maxBytes = whole ? limits[caller.tenant_tier].packetBytes : Number.POSITIVE_INFINITY;
    return store.of(caller.tenant_number).commit({
      packets: [id],
      whole,
      work: (transaction) => changeIn(transaction, id, command, at, { ifMatch, maxBytes }),
    });
  }

  /** Changes many packets in one unit; each that is refused is reported and leaves the others alone. */
  async function changeEach(caller: Caller, ids: readonly string[], command: Command): Promise<{ changed: string[]; errors: ItemFault[] }> {
    const at = { now: clock(), keyId: caller.key_id };
    const known = ids.map((id) => id.toLowerCase()).filter(isId);
    return store.of(caller.tenant_number).commit({
      packets: known,
      work(transaction) {
        const changed: string[] = [];
        const errors: ItemFault[] = [];
        let length = 0;
        for (const id of ids) {
          try {
            if (length > maxAnswerLength) throw answerFull();
            // An id that is none was not looked up, and is not found.
            const { packet } = changeIn(transaction, id.toLowerCase(), command, at);
            changed.push(packet);
            length += packet.length;
          } catch (error) {
            errors.push({ packet_id: id, ...itemFault(error) });
          }
        }
        return { changed, errors };
      },
    });
  }

  return {
    create: (caller: Caller, request: CreateRequest, options: CreateOptions = {}) => createOne(caller, request, options, unknownParent),

    async chain(caller: Caller, parentId: string, request: ChainRequest, options: CreateOptions = {}): Promise<Made> {
      if (!isId(parentId)) throw notFound('packet');
      return createOne(caller, { ...request, parent_packet_id: parentId }, options, () => notFound('packet'));
    },

    /** Creates what can be created. When nothing can, the whole batch is refused with the items' faults beside it. */
    createBatch(caller: Caller, items: readonly BatchItem[], options: CreateOptions = {}): Promise<Made> {
      const parents = items.flatMap((item) =>
        'request' in item && item.request.parent_packet_id !== undefined ? [item.request.parent_packet_id.toLowerCase()] : [],
      );
      return createUnder(caller, options, parents, items.length, (transaction, take, now) => {
        const at = { now, keyId: caller.key_id };
        const created: Packet[] = [];
        const errors: ItemFault[] = [];
        const refusals: ServiceError[] = [];
        for (const [index, item] of items.entries()) {
          try {
            if ('error' in item) throw item.error;
            created.push(createIn(transaction, take, item.request, options.agentId, at, unknownParent));
          } catch (error) {
            const fault = itemFault(error);
            errors.push({ index, ...fault, field: (error as ServiceError).field });
            refusals.push(error as ServiceError);
          }
        }
        if (created.length === 0) throw allRefused(refusals, errors);
        const packetIds = created.map(({ id }) => id);
        const texts = packetIds.map((id) => transaction.packets.text(id));
        return { status: 201, body: `{"created":[${texts.join(',')}],"errors":${JSON.stringify(errors)}}`, etag: null, packetIds };
      });
    },

    claim: (caller: Caller, id: string, claimant: Claimant, ifMatch?: string) => change(caller, id, { kind: 'claim', claimant }, ifMatch),
    respond: (caller: Caller, id: string, answer: RespondRequest, ifMatch?: string) =>
      change(caller, id, { kind: 'respond', answer }, ifMatch),
    patch: (
      caller: Caller,
      id: string,
      patch: PatchRequest,
      { agentId, ifMatch }: { agentId?: string | undefined; ifMatch?: string | undefined } = {},
    ) => change(caller, id, { kind: 'patch', patch, agentId }, ifMatch),
    expire: (caller: Caller, id: string, { agentId, ifMatch }: { agentId?: string | undefined; ifMatch?: string | undefined } = {}) =>
      change(caller, id, { kind: 'delete', agentId }, ifMatch),
    claimEach: (caller: Caller, ids: readonly string[], claimant: Claimant) => changeEach(caller, ids, { kind: 'claim', claimant }),
    completeEach: (caller: Caller, ids: readonly string[], agentId: string | undefined) =>
      changeEach(caller, ids, { kind: 'complete', agentId }),

    /** Removes a packet for good: its content and its trail go, one entry that says so stays. */
    async remove(
      caller: Caller,
      id: string,
      { agentId, ifMatch }: { agentId?: string | undefined; ifMatch?: string | undefined } = {},
    ): Promise<void> {
      if (!caller.admin) throw new ServiceError('FORBIDDEN', 'Removing a packet for good needs an admin key.');
      const actor = agentId === undefined ? `key:${caller.key_id}` : `agent:${agentId}`;
      await change(caller, id, { kind: 'remove', actor }, ifMatch);
    },

    /** What time alone does to a packet of any tenant; nothing where it is not due any more. */
    async sweep(tenant: number, id: string, command: Command & { kind: 'time_out' | 'expire_unclaimed' }): Promise<void> {
      const at = { now: clock(), keyId: null };
      await store.of(tenant).commit({
        packets: [id],
        work: (transaction) => transaction.packets.get(id) && changeIn(transaction, id, command, at),
      });
    },

    /** The refusal by the daily cap, which another packet would meet now; undefined while there is room. */
    async refusalByCap(caller: Caller): Promise<LimitReached | undefined> {
      const cap = capOf(caller);
      if (!Number.isFinite(cap)) return undefined;
      const now = clock();
      return (await store.of(caller.tenant_number).usedOn(dayOf(now))) >= cap ? capReached(cap, now) : undefined;
    },
  };
}

export type PacketService = ReturnType<typeof createPacketService>;

/** What a creating unit answers, and the packets that are in the answer. */
interface Created {
  readonly status: number;
  readonly body: string;
  readonly etag: string | null;
  readonly packetIds: readonly string[];
}

/** The counter of a day's new packets. */
const createdOn = (day: string) => `created:${day}`;

/** The one way a stored packet changes: found locked, decided, saved or removed, told of. Gives it as it is afterwards. */
function changeIn(
  { packets, events: trail }: Transaction,
  id: string,
  command: Command,
  at: Circumstances,
  { ifMatch, maxBytes = Number.POSITIVE_INFINITY }: { ifMatch?: string | undefined; maxBytes?: number } = {},
): PacketText {
  const before = needsWhole(command) ? packets.whole(id) : packets.get(id);
  if (before === undefined) throw notFound('packet');
  requireMatch(ifMatch, entityTag(before), 'packet');
  const { packet, events, searchable, isRemoved } = decide(before, command, at.now);
  const text = packets.text(id);
  if (events.length === 0) return { packet: text, revision: before.revision };
  if (isRemoved) packets.remove(id);
  else packets.save(packet, { searchable });
  const changed = isRemoved ? '' : packets.text(id);
  requireSize(text, changed, maxBytes);
  trail.append(packet, events, at);
  return { packet: changed, revision: packet.revision };
}

const unknownParent = () => invalid('parent_packet_id', 'parent_packet_id names no packet of this tenant.');

const answerFull = () => new ServiceError('PAYLOAD_TOO_LARGE', 'The answer to this batch is full: name this packet in another one.');

function capReached(cap: number, now: Date): LimitReached {
  const seconds = secondsToMidnight(now);
  const sentence =
    cap === 0
      ? "The tenant's daily cap is 0 packets; an admin can raise it."
      : `The tenant may create ${cap} packets a day and has; the next UTC day begins in ${seconds} seconds.`;
  return new LimitReached(sentence, { name: 'day', max: cap }, seconds);
}

function requireSize(before: string, after: string, limit: number): void {
  if (limit === Number.POSITIVE_INFINITY) return;
  const size = Buffer.byteLength(after);
  if (size > limit + ownBytes && size > Buffer.byteLength(before)) {
    throw new ServiceError('PAYLOAD_TOO_LARGE', `The packet would grow over the ${limit} bytes that this tenant's tier allows.`);
  }
}

function itemFault(error: unknown): ItemFault {
  if (!(error instanceof ServiceError)) throw error;
  return { error: error.message, code: error.code, ...error.extra };
}

/** Why a batch failed as a whole: 429 when the daily cap alone was the reason, else 400. */
function allRefused(refusals: readonly ServiceError[], errors: readonly ItemFault[]): ServiceError {
  const [first] = refusals;
  const extra = { created: [], errors };
  if (first !== undefined && refusals.every(({ code }) => code === 'RATE_LIMITED')) {
    return new ServiceError('RATE_LIMITED', first.message, { extra: { ...first.extra, ...extra }, headers: first.headers });
  }
  return new ServiceError('VALIDATION_ERROR', 'None of the packets could be created; errors says why.', { field: 'packets', extra });
}
