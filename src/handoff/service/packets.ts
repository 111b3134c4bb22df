import type { Clock } from '../../kit/clock.ts';
import { invalid, LimitReached, notFound, ServiceError } from '../../kit/errors.ts';
import { isId, type NewId, type RandomSource } from '../../kit/id.ts';
import type { Tier } from '../model/common.ts';
import type { ChainRequest, Claimant, CreateRequest, Packet, PatchRequest, RespondRequest } from '../model/packet.ts';
import type { LeaseTerms } from '../rules/lease.ts';
import { type AnsweredVia, asksPerson, type Command, chained, changesContent, entityTag, needsWhole, newPacket } from '../rules/packet.ts';
import { actingAgent, requireAgent, requireResponder } from '../rules/rights.ts';
import { dailyCap, dayOf, secondsToMidnight, type TierLimits } from '../rules/tiers.ts';
import type { ClaimFilter } from '../store/claim-queue.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { OpenPacketCounts } from '../store/open-packets.ts';
import type { Store } from '../store/store.ts';
import type { Circumstances } from '../store/trail.ts';
import type { Transaction } from '../store/units.ts';
import type { Caller } from './authentication.ts';
import { type Changed, type ChangeOptions, changeIn, idempotently } from './change.ts';
import { respond } from './respond.ts';

export interface PacketServiceParts {
  store: Store;
  clock: Clock;
  newId: NewId;
  random: RandomSource;
  limits: Record<Tier, TierLimits>;
  guards: Guards;
  /** Called with each agent that a request of the tenant names: before a claim, after the commit of a create. */
  onSeen(tenant: number, agentId: string): void;
  /** Called after a commit with the number of packets that a tenant created. */
  onCreated(tenantId: string, count: number): void;
}

/** Limits that stop runaway agents; 0: off. */
export interface Guards {
  /** The most packets from the root of a chain to its end. */
  readonly chainDepthMax: number;
  /** The most packets of one source agent that are not completed, failed or expired. */
  readonly openPacketsPerAgent: number;
}

/** A requested claim. */
export interface RequestedClaim {
  readonly claimant: Claimant;
  readonly leaseSeconds?: number | undefined;
}

/** The parameters of a create request beyond its body. */
export interface CreateOptions {
  readonly agentId?: string | undefined;
  readonly idempotency?: Idempotency | undefined;
  /** The size of the request, in bytes. */
  readonly size?: number | undefined;
}

/** The answer to a create request, new or replayed. */
export interface CreateAnswer {
  readonly text: string;
  readonly status: number;
  readonly etag: string | null;
  readonly replayed: boolean;
}

/** An item of a batch: a valid request, or the error of an invalid one. */
export type BatchItem = { request: CreateRequest } | { error: ServiceError };

/** The error of a refused item of a batch. */
type ItemFault = Record<string, unknown> & { error: string; code: string };

/** How many random bytes a lease token has. */
const tokenBytes = 32;

/** The size in characters from which a batch answer takes no more packets, since the whole answer is held in memory. */
const maxAnswerLength = 16 * 1024 * 1024;

/** The operations on packets, one unit of work each. */
export function createPacketService({ store, clock, newId, random, limits, guards, onSeen, onCreated }: PacketServiceParts) {
  const capOf = (caller: Caller) => dailyCap(caller.handoffs_per_day, limits[caller.tenant_tier]);

  /** Creates packets and returns the answer, or repeats the answer stored under the same idempotency key. */
  async function createUnder(
    caller: Caller,
    { idempotency, size = 0 }: CreateOptions,
    requests: readonly CreateRequest[],
    count: number,
    make: (transaction: Transaction, countCreate: () => void, now: Date) => Created,
  ): Promise<CreateAnswer> {
    const now = clock();
    const today = createdOn(dayOf(now));
    const cap = capOf(caller);
    const capped = Number.isFinite(cap);
    let created = 0;
    return store.of(caller.tenant_number).commit<CreateAnswer>({
      packets: requests.flatMap(({ parent_packet_id }) => parent_packet_id?.toLowerCase() ?? []),
      creates: count,
      announces: true,
      ...(guards.openPacketsPerAgent === 0 ? {} : { openPacketsOf: requests.map(({ metadata }) => metadata.source_agent.id) }),
      size,
      idempotencyKey: idempotency?.key,
      ...(capped ? { counters: [today] } : {}),
      work(transaction) {
        const { idempotency: answers, counters } = transaction;
        created = 0;
        const again = answers.repeated(idempotency);
        if (again !== undefined) return { text: again.body, status: again.status, etag: again.etag, replayed: true };
        const countCreate = () => {
          if (capped && counters.value(today) >= cap) throw capReached(cap, now);
          counters.add(today, 1);
          created += 1;
        };
        const { status, body, etag, packetIds } = make(transaction, countCreate, now);
        if (idempotency !== undefined) answers.remember(idempotency, { status, body, etag }, now, packetIds);
        return { text: body, status, etag, replayed: false };
      },
      committed() {
        onCreated(caller.tenant_id, created);
        if (created > 0) for (const { metadata } of requests) onSeen(caller.tenant_number, metadata.source_agent.id);
      },
    });
  }

  /** Creates one packet. `refuseParent` makes the error for a parent that the tenant doesn't have. */
  function createIn(
    { packets, openPacketCounts, trail }: Transaction,
    countCreate: () => void,
    request: CreateRequest,
    agentId: string | undefined,
    at: Circumstances,
    refuseParent: () => ServiceError,
  ): Packet {
    const parentId = request.parent_packet_id?.toLowerCase();
    const parent = parentId === undefined ? undefined : packets.get(parentId);
    if (parentId !== undefined && parent === undefined) throw refuseParent();
    const depth = parent === undefined ? 1 : packets.depth(parent.id) + 1;
    requireDepth(depth, guards.chainDepthMax);
    requireFewOpen(openPacketCounts, request.metadata.source_agent.id, guards.openPacketsPerAgent);
    countCreate();
    if (guards.openPacketsPerAgent > 0) openPacketCounts.add(request.metadata.source_agent.id);
    const { packet, events } = newPacket({ ...request, parent_packet_id: parentId }, { id: newId(at.now), now: at.now, agentId });
    packets.insert(packet, depth);
    trail.append(packet, events, at);
    if (parent !== undefined) trail.append(parent, [chained(packet, agentId)], at);
    return packet;
  }

  async function createOne(
    caller: Caller,
    request: CreateRequest,
    options: CreateOptions,
    refuseParent: () => ServiceError,
  ): Promise<CreateAnswer> {
    requireAgent(caller, request.metadata.source_agent.id);
    return createUnder(caller, options, [request], 1, (transaction, countCreate, now) => {
      const packet = createIn(transaction, countCreate, request, options.agentId, { now, keyId: caller.key_id }, refuseParent);
      return { status: 201, body: transaction.packets.text(packet.id), etag: entityTag(packet), packetIds: [packet.id] };
    });
  }

  /** The terms of a lease with a new token; undefined when no lease is requested. */
  function termsOf(seconds: number | undefined): LeaseTerms | undefined {
    if (seconds === undefined) return undefined;
    const bytes = Buffer.alloc(tokenBytes);
    random(bytes);
    return { seconds, token: `lease_${bytes.toString('base64url')}` };
  }

  async function change(
    caller: Caller,
    id: string,
    command: Command,
    { ifMatch, idempotency }: Pick<ChangeOptions, 'ifMatch' | 'idempotency'> = {},
  ): Promise<Changed> {
    if (!isId(id)) throw notFound('packet');
    const at = { now: clock(), keyId: caller.key_id };
    // Only new content can exceed the size limit: a packet of any size can still be claimed, answered and moved.
    const whole = needsWhole(command);
    const maxBytes = changesContent(command) ? limits[caller.tenant_tier].packetBytes : Number.POSITIVE_INFINITY;
    if (command.kind === 'claim') requireAgent(caller, command.claimant.agent_id);
    if (command.kind === 'claim') onSeen(caller.tenant_number, command.claimant.agent_id);
    return store.of(caller.tenant_number).commit({
      packets: [id],
      announces: true,
      whole,
      idempotencyKey: idempotency?.key,
      work: (transaction) =>
        idempotently<never>(transaction, idempotency, at, () => ({
          id,
          changed: changeIn(transaction, id, command, at, { ifMatch, maxBytes }),
        })),
    });
  }

  /** Changes many packets in one unit of work. A refused packet is reported and does not affect the others. */
  async function changeEach(
    caller: Caller,
    ids: readonly string[],
    commandFor: (id: string) => Command,
  ): Promise<{ changed: string[]; errors: ItemFault[] }> {
    const at = { now: clock(), keyId: caller.key_id };
    const known = ids.map((id) => id.toLowerCase()).filter(isId);
    return store.of(caller.tenant_number).commit({
      packets: known,
      announces: true,
      work(transaction) {
        const changed: string[] = [];
        const errors: ItemFault[] = [];
        let length = 0;
        for (const id of ids) {
          try {
            if (length > maxAnswerLength) throw answerFull();
            // An invalid id was not read above, so this throws 404.
            const { packet } = changeIn(transaction, id.toLowerCase(), commandFor(id.toLowerCase()), at);
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

    async chain(caller: Caller, parentId: string, request: ChainRequest, options: CreateOptions = {}): Promise<CreateAnswer> {
      if (!isId(parentId)) throw notFound('packet');
      return createOne(caller, { ...request, parent_packet_id: parentId }, options, () => notFound('packet'));
    },

    /** Creates the valid packets. When every packet is refused, so is the batch, with the error of each packet. */
    createBatch(caller: Caller, items: readonly BatchItem[], options: CreateOptions = {}): Promise<CreateAnswer> {
      const requests = items.flatMap((item) => ('request' in item ? [item.request] : []));
      return createUnder(caller, options, requests, items.length, (transaction, countCreate, now) => {
        const at = { now, keyId: caller.key_id };
        const created: Packet[] = [];
        const errors: ItemFault[] = [];
        const refusals: ServiceError[] = [];
        for (const [index, item] of items.entries()) {
          try {
            if ('error' in item) throw item.error;
            requireAgent(caller, item.request.metadata.source_agent.id);
            created.push(createIn(transaction, countCreate, item.request, options.agentId, at, unknownParent));
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

    claim: (caller: Caller, id: string, { claimant, leaseSeconds }: RequestedClaim, options: ChangeOptions = {}) =>
      change(caller, id, { kind: 'claim', claimant, terms: termsOf(leaseSeconds) }, options),
    async respond(
      caller: Caller,
      id: string,
      answer: RespondRequest,
      options: ChangeOptions & { via?: AnsweredVia } = {},
    ): Promise<Changed> {
      requireResponder(caller, answer.responded_by);
      return respond(
        store,
        caller,
        id,
        { kind: 'respond', answer, via: options.via ?? 'api' },
        { now: clock(), keyId: caller.key_id },
        options,
      );
    },
    patch: (caller: Caller, id: string, patch: PatchRequest, { agentId, token, ...options }: ChangeOptions = {}) =>
      change(
        caller,
        id,
        {
          kind: 'patch',
          patch,
          agentId: actingAgent(caller, agentId),
          token,
          ...(asksPerson(patch) ? { questionId: newId(clock()) } : {}),
        },
        options,
      ),
    /** Withdraws the open question of a packet. Like an answer, that needs no lease token. */
    withdraw: (caller: Caller, id: string, { agentId, ifMatch }: ChangeOptions = {}) =>
      change(caller, id, { kind: 'withdraw', agentId: actingAgent(caller, agentId) }, { ifMatch }),
    expire: (caller: Caller, id: string, { agentId, token, ...options }: ChangeOptions = {}) =>
      change(caller, id, { kind: 'delete', agentId: actingAgent(caller, agentId), token, byAdmin: caller.admin }, options),
    /** Returns a claimed packet to `created`. */
    release: (caller: Caller, id: string, { agentId, token, ...options }: ChangeOptions = {}) =>
      change(caller, id, { kind: 'release', agentId: actingAgent(caller, agentId), token, byAdmin: caller.admin }, options),
    /** Renews the lease of a packet, without an event or a new revision. */
    renew: (caller: Caller, id: string, seconds: number | undefined, { token }: ChangeOptions = {}) =>
      change(caller, id, { kind: 'renew', token, seconds }),
    /** Ends the lease of a packet and returns it to `created`. */
    endLease: (caller: Caller, id: string, { agentId, token }: ChangeOptions = {}) =>
      change(caller, id, { kind: 'end_lease', agentId: actingAgent(caller, agentId), token }),
    async claimEach(caller: Caller, ids: readonly string[], { claimant, leaseSeconds }: RequestedClaim) {
      requireAgent(caller, claimant.agent_id);
      onSeen(caller.tenant_number, claimant.agent_id);
      return changeEach(caller, ids, () => ({ kind: 'claim', claimant, terms: termsOf(leaseSeconds) }));
    },
    async completeEach(caller: Caller, ids: readonly string[], agentId: string | undefined, tokens: Readonly<Record<string, string>> = {}) {
      const tokenOf = new Map(Object.entries(tokens).map(([id, token]) => [id.toLowerCase(), token]));
      const acting = actingAgent(caller, agentId);
      return changeEach(caller, ids, (id) => ({ kind: 'complete', agentId: acting, token: tokenOf.get(id) }));
    },

    /**
     * Claims the available packet with the highest priority, the oldest of them first. Returns null when none is
     * available, undefined when others claimed the candidates first and the caller should retry.
     */
    async claimNext(
      caller: Caller,
      filter: ClaimFilter,
      { claimant, leaseSeconds }: RequestedClaim,
      { idempotency, isOpen = () => true }: { idempotency?: Idempotency | undefined; isOpen?: () => boolean } = {},
    ): Promise<Changed | null | undefined> {
      requireAgent(caller, claimant.agent_id);
      const at = { now: clock(), keyId: caller.key_id };
      const terms = termsOf(leaseSeconds);
      onSeen(caller.tenant_number, claimant.agent_id);
      return store.of(caller.tenant_number).commit<Changed | null | undefined>({
        announces: true,
        claims: filter,
        idempotencyKey: idempotency?.key,
        work: (transaction) =>
          idempotently<null | undefined>(transaction, idempotency, at, () => {
            // The client has disconnected, so the packet must stay available.
            if (!isOpen()) return null;
            const id = transaction.claimQueue.take(filter);
            if (id === null || id === undefined) return id;
            return { id, changed: changeIn(transaction, id, { kind: 'claim', claimant, terms }, at) };
          }),
      });
    },

    /** Removes a packet permanently, with its content and trail; one audit entry remains. */
    async remove(
      caller: Caller,
      id: string,
      { agentId, ifMatch }: { agentId?: string | undefined; ifMatch?: string | undefined } = {},
    ): Promise<void> {
      if (!caller.admin) throw new ServiceError('FORBIDDEN', 'Removing a packet permanently needs an admin key.');
      const actor = agentId === undefined ? `key:${caller.key_id}` : `agent:${agentId}`;
      await change(caller, id, { kind: 'remove', actor }, { ifMatch });
    },

    /** Applies a change that time causes to a packet of any tenant; does nothing when it is no longer due. */
    async sweep(tenant: number, id: string, command: Command & { kind: 'time_out' | 'expire_unclaimed' }): Promise<void> {
      const at = { now: clock(), keyId: null };
      await store.of(tenant).commit({
        packets: [id],
        announces: true,
        work: (transaction) => transaction.packets.get(id) && changeIn(transaction, id, command, at),
      });
    },

    /** The error that another packet would get from the daily cap; undefined while the cap is not reached. */
    async refusalByCap(caller: Caller): Promise<LimitReached | undefined> {
      const cap = capOf(caller);
      if (!Number.isFinite(cap)) return undefined;
      const now = clock();
      return (await store.of(caller.tenant_number).usedOn(dayOf(now))) >= cap ? capReached(cap, now) : undefined;
    },
  };
}

export type PacketService = ReturnType<typeof createPacketService>;

/** The answer of a unit that creates packets, and the ids of those packets. */
interface Created {
  readonly status: number;
  readonly body: string;
  readonly etag: string | null;
  readonly packetIds: readonly string[];
}

/** The name of the counter of packets created on a day. */
const createdOn = (day: string) => `created:${day}`;

/** @throws ServiceError 409 LOOP_GUARD when the chain would be too deep */
function requireDepth(depth: number, max: number): void {
  if (max === 0 || depth <= max) return;
  throw new ServiceError('LOOP_GUARD', `The chain would have ${depth} packets from its root; at most ${max} are allowed.`);
}

/** @throws ServiceError 409 LOOP_GUARD when the source agent has too many open packets */
function requireFewOpen(open: OpenPacketCounts, sourceAgent: string, max: number): void {
  if (max === 0) return;
  const count = open.count(sourceAgent);
  if (count < max) return;
  throw new ServiceError('LOOP_GUARD', `${sourceAgent} has ${count} open packets; a source agent may have at most ${max}.`);
}

const unknownParent = () => invalid('parent_packet_id', 'parent_packet_id must be the id of a packet of this tenant.');

const answerFull = () => new ServiceError('PAYLOAD_TOO_LARGE', 'The answer to this batch is full: send this packet in another batch.');

function capReached(cap: number, now: Date): LimitReached {
  const seconds = secondsToMidnight(now);
  const sentence =
    cap === 0
      ? "The tenant's daily cap is 0 packets; an admin can raise it."
      : `The tenant has created the ${cap} packets it may create per day; the next UTC day begins in ${seconds} seconds.`;
  return new LimitReached(sentence, { name: 'day', max: cap }, seconds);
}

function itemFault(error: unknown): ItemFault {
  if (!(error instanceof ServiceError)) throw error;
  return { error: error.message, code: error.code, ...error.extra };
}

/** The error of a batch without any valid packet: 429 when the daily cap was the only reason, else 400. */
function allRefused(refusals: readonly ServiceError[], errors: readonly ItemFault[]): ServiceError {
  const [first] = refusals;
  const extra = { created: [], errors };
  if (first !== undefined && refusals.every(({ code }) => code === 'RATE_LIMITED')) {
    return new ServiceError('RATE_LIMITED', first.message, { extra: { ...first.extra, ...extra }, headers: first.headers });
  }
  return new ServiceError('VALIDATION_ERROR', 'None of the packets could be created; see errors.', { field: 'packets', extra });
}
