import { invalid, LimitReached, notFound, ServiceError } from '../../kit/errors.ts';
import { entityTagOf } from '../../kit/etag.ts';
import { isId } from '../../kit/uuid.ts';
import type { ItemFault } from '../model/batch-routes.ts';
import { type Tier, trialCodes } from '../model/common.ts';
import { errors } from '../model/errors.ts';
import type { ChainRequest, Claimant, CreateRequest, Packet } from '../model/packet.ts';
import type { Facts } from '../rules/action-case.ts';
import { requireKept } from '../rules/erasure.ts';
import { chained, newPacket } from '../rules/new-packet.ts';
import { type AnyPacket, type Decision, decide } from '../rules/packet.ts';
import type { GivenQuestion } from '../rules/question.ts';
import { requireAgent } from '../rules/rights.ts';
import { dayOf, secondsToMidnight, type TierLimits } from '../rules/tiers.ts';
import type { KeptTrace } from '../rules/trace.ts';
import { createdOn } from '../store/counters.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { Transaction } from '../store/transaction.ts';
import type { Caller } from './authentication.ts';
import { type Acting, actingFor } from './change.ts';
import type { ContractService, Verdict } from './contracts.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { itemFault } from './item-fault.ts';

/** What creating packets needs. */
export interface CreationDependencies extends ServiceDependencies {
  limits: Record<Tier, TierLimits>;
  quotas: AgentQuotas;
  contracts: ContractService;
  /** Called with each agent that a request of the tenant names: before a claim, after the commit of a create. */
  onSeen: (tenant: number, agentId: string) => void;
  /** Called after a commit with the number of packets that a tenant created. */
  onCreated: (tenantId: string, count: number) => void;
}

/** Limits that stop runaway agents; 0: off. */
interface AgentQuotas {
  /** The most packets from the root of a chain to its end. */
  readonly chainDepthMax: number;
  /** The most packets of one source agent that are not completed, failed or expired. */
  readonly openPacketsPerAgent: number;
}

/** The parameters of a create request beyond its body. */
export interface CreateOptions {
  readonly agentId?: string | undefined;
  readonly idempotency?: Idempotency | undefined;
  /** The trace of the request, which its packets keep. */
  readonly trace?: KeptTrace | undefined;
  /** The size of the request, in bytes. */
  readonly size?: number | undefined;
  /** The call that the packet asks about. */
  readonly callOf?: { readonly agent_id: string; readonly call_id: string } | undefined;
  /** The schedule that makes the packet, and the time for which. */
  readonly schedule?: Packet['metadata']['schedule'];
  /** The names of schedules that the unit changes. */
  readonly schedulesOf?: readonly string[] | undefined;
  /** Left out: the packet is created. */
  readonly trial?: DryRunCounts | undefined;
}

/** The counts that a request which only tries is checked against. A unit that locks counters may have to insert them. */
interface DryRunCounts {
  /** How many packets the tenant has created today. */
  readonly created: number;
  /** How many open packets the source agent has. */
  readonly open: number;
}

/** Thrown where a request that only tries would be committed, so that nothing of it is written. */
class DryRunDone extends Error {}

/** The codes with which a valid request may be refused. */
const refusalCodes: ReadonlySet<string> = new Set(trialCodes);

/** The answer to a create request, new or replayed. */
export interface CreateAnswer {
  readonly text: string;
  readonly status: number;
  readonly etag: string | null;
  readonly replayed: boolean;
}

/** An item of a batch: a valid request, or the error of an invalid one. */
export type BatchItem = { request: CreateRequest } | { error: ServiceError };

/** The answer of a unit that creates packets, and the ids of those packets. */
interface Created {
  readonly status: number;
  readonly body: string;
  readonly etag: string | null;
  readonly packetIds: readonly string[];
}

/** The operations that create packets, one unit of work each. */
export function createPacketCreation(parts: CreationDependencies) {
  const { store, clock, contracts } = parts;
  return {
    create: (caller: Caller, request: CreateRequest, options: CreateOptions = {}) =>
      createOne(parts, caller, request, options, unknownParent),

    async chain(caller: Caller, parentId: string, request: ChainRequest, options: CreateOptions = {}): Promise<CreateAnswer> {
      if (!isId(parentId)) throw notFound('packet');
      return createOne(parts, caller, { ...request, parent_packet_id: parentId }, options, () => notFound('packet'));
    },

    /**
     * Checks whether a packet could be created, without a write, a count or an event. Returns why it would be refused; undefined if it would not.
     * @throws ServiceError if the caller may not create it, or that can't be found out
     */
    async tryCreate(caller: Caller, request: CreateRequest, { agentId }: CreateOptions = {}): Promise<ServiceError | undefined> {
      const trial = await dryRunCounts(parts, caller, request.metadata.source_agent.id);
      return refusalOf(() => createOne(parts, caller, request, { agentId, trial }, unknownParent));
    },

    /** Creates the valid packets. When every packet is refused, so is the batch, with the error of each packet. */
    async createBatch(caller: Caller, items: readonly BatchItem[], options: CreateOptions = {}): Promise<CreateAnswer> {
      const requests = items.flatMap((item) => ('request' in item ? [item.request] : []));
      const verdicts = await contracts.judge(caller, requests);
      return createUnder(parts, caller, options, requests, items.length, (transaction, countCreate, now) => {
        const at = actingFor(caller, now);
        const created: Packet[] = [];
        const errors: ItemFault[] = [];
        const refusals: ServiceError[] = [];
        for (const [index, item] of items.entries()) {
          try {
            if ('error' in item) throw item.error;
            requireAgent(caller, item.request.metadata.source_agent.id);
            const verdict = verdicts.get(item.request);
            created.push(createIn(parts, transaction, countCreate, { ...item, verdict }, options, at, unknownParent));
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

    /** The error that another packet would get from the daily quota; undefined while the quota is not reached. */
    async refusalByQuota(caller: Caller): Promise<LimitReached | undefined> {
      const quota = dailyQuotaOf(parts, caller);
      if (!Number.isFinite(quota)) return undefined;
      const now = clock();
      return (await store.of(caller).counters.usedOn(dayOf(now))) >= quota ? quotaReached(quota, now) : undefined;
    },
  };
}

/** Why a request that only tries would be refused; undefined if it would not. @throws ServiceError as `tryCreate` */
export async function refusalOf(trying: () => Promise<unknown>): Promise<ServiceError | undefined> {
  try {
    await trying();
  } catch (error) {
    if (error instanceof DryRunDone) return undefined;
    if (error instanceof ServiceError && refusalCodes.has(error.code)) return error;
    throw error;
  }
  throw new Error('A request that only tries has created a packet.');
}

export async function dryRunCounts(parts: CreationDependencies, caller: Caller, sourceAgent: string): Promise<DryRunCounts> {
  const { counters, openPacketCounts } = parts.store.of(caller);
  const created = await counters.usedOn(dayOf(parts.clock()));
  return { created, open: parts.quotas.openPacketsPerAgent === 0 ? 0 : await openPacketCounts.count(sourceAgent) };
}

const dailyQuotaOf = ({ limits }: CreationDependencies, caller: Caller) =>
  caller.handoffs_per_day ?? limits[caller.tenant_tier].handoffsPerDay;

/** Creates packets and returns the answer, or repeats the answer stored under the same idempotency key. */
export function createUnder(
  parts: CreationDependencies,
  caller: Caller,
  { idempotency, size = 0, trial, callOf, schedulesOf }: CreateOptions,
  requests: readonly CreateRequest[],
  count: number,
  make: (transaction: Transaction, countCreate: () => void, now: Date) => Created,
): Promise<CreateAnswer> {
  const { store, clock, quotas, onCreated, onSeen } = parts;
  const now = clock();
  const today = createdOn(dayOf(now));
  const quota = dailyQuotaOf(parts, caller);
  const hasQuota = Number.isFinite(quota);
  let created = 0;
  return store.of(caller).commit<CreateAnswer>({
    packets: requests.flatMap(({ parent_packet_id }) => parent_packet_id?.toLowerCase() ?? []),
    // A packet reserves its number.
    ...(trial === undefined ? { creates: count } : {}),
    notifies: true,
    callOf,
    schedulesOf,
    ...(quotas.openPacketsPerAgent === 0 || trial !== undefined
      ? {}
      : { openPacketsOf: requests.map(({ metadata }) => metadata.source_agent.id) }),
    size,
    idempotencyKey: idempotency?.key,
    ...(hasQuota && trial === undefined ? { counters: [today] } : {}),
    work(transaction) {
      const { idempotency: answers, counters } = transaction;
      created = 0;
      const again = answers.repeated(idempotency);
      if (again !== undefined) return { text: again.body, status: again.status, etag: again.etag, replayed: true };
      const countCreate = () => {
        if (hasQuota && (trial?.created ?? counters.value(today)) >= quota) throw quotaReached(quota, now);
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
export function createIn(
  { newId, quotas }: CreationDependencies,
  { packets, questions, openPacketCounts, trail, counters }: Transaction,
  countCreate: () => void,
  {
    request,
    verdict,
    trial,
    asking,
  }: { request: CreateRequest; verdict: Verdict | undefined; trial?: DryRunCounts | undefined; asking?: Asking },
  { agentId, trace, schedule }: CreateOptions,
  at: Acting,
  refuseParent: () => ServiceError,
): Packet {
  const parentId = request.parent_packet_id?.toLowerCase();
  const parent = parentId === undefined ? undefined : packets.get(parentId);
  // First, since what can't be made is not counted.
  const { packet, events } = newPacket(
    { ...request, parent_packet_id: parentId, metadata: withSubjectsOf(parent, request.metadata) },
    { id: newId(at.now), now: at.now, agentId, contractVersion: verdict?.version, trace, schedule },
  );
  if (parentId !== undefined && parent === undefined) throw refuseParent();
  if (parent !== undefined) requireKept(parent);
  if (parent !== undefined) requireDepth(packets.depth(parent.id) + 1, quotas.chainDepthMax);
  const open = trial?.open ?? openPacketCounts.count(request.metadata.source_agent.id);
  requireFewOpen(open, request.metadata.source_agent.id, quotas.openPacketsPerAgent);
  if (verdict?.refusal !== undefined) throw verdict.refusal;
  const asked = asking && askIn(packet, asking, at);
  countCreate();
  if (trial !== undefined) throw new DryRunDone();
  if (quotas.openPacketsPerAgent > 0) openPacketCounts.add(request.metadata.source_agent.id);
  const made = asked?.at(-1)?.packet ?? packet;
  const insertion = { ...(parent === undefined ? {} : { parent: parent.id }), kept: asked?.at(-1)?.kept };
  packets.insert(made, { ...insertion, source: at.family ?? null });
  trail.append(packet, events, at);
  for (const decision of asked ?? []) {
    trail.append(decision.packet, decision.events, at);
    for (const question of decision.ended ?? []) questions.insert(packet.id, question, at.now);
    for (const name of decision.counts ?? []) counters.add(name, 1);
  }
  if (parent !== undefined) trail.append(parent, [chained(packet, agentId)], at);
  return made;
}

/** The metadata of a new packet, which is about the people that its parent is about unless it names its own. */
const withSubjectsOf = (parent: AnyPacket | undefined, metadata: CreateRequest['metadata']): CreateRequest['metadata'] =>
  metadata.subjects !== undefined || parent?.metadata.subjects === undefined
    ? metadata
    : { ...metadata, subjects: parent.metadata.subjects };

/** The question of a packet that is made to ask about an action. */
interface Asking {
  readonly claimant: Claimant;
  readonly question: GivenQuestion;
  readonly questionId: string;
  readonly facts: Facts;
}

/** The claim of a new packet by the agent that asks, and its question, which may be decided at once. */
function askIn(packet: Packet, { claimant, question, questionId, facts }: Asking, { now, family }: Acting): Decision[] {
  const claimed = decide(packet, { kind: 'claim', claimant }, now);
  const kept = { own: 'waiting' as const };
  const ask = { kind: 'ask' as const, question, questionId, agentId: claimant.agent_id, token: undefined };
  return [claimed, decide(claimed.packet, ask, now, null, { kept, earlier: [], facts, family })];
}

async function createOne(
  parts: CreationDependencies,
  caller: Caller,
  request: CreateRequest,
  options: CreateOptions,
  refuseParent: () => ServiceError,
): Promise<CreateAnswer> {
  requireAgent(caller, request.metadata.source_agent.id);
  const verdict = (await parts.contracts.judge(caller, [request])).get(request);
  return createUnder(parts, caller, options, [request], 1, (transaction, countCreate, now) => {
    const at = actingFor(caller, now);
    const packet = createIn(parts, transaction, countCreate, { request, verdict, trial: options.trial }, options, at, refuseParent);
    return { status: 201, body: transaction.packets.text(packet.id), etag: entityTagOf(packet.revision), packetIds: [packet.id] };
  });
}

/** @throws ServiceError 409 LOOP_GUARD when the chain would be too deep */
function requireDepth(depth: number, max: number): void {
  if (max === 0 || depth <= max) return;
  throw new ServiceError(errors.LOOP_GUARD, `The chain would have ${depth} packets from its root; at most ${max} are allowed.`);
}

/** @throws ServiceError 409 LOOP_GUARD when the source agent has too many open packets */
function requireFewOpen(count: number, sourceAgent: string, max: number): void {
  if (max === 0 || count < max) return;
  throw new ServiceError(errors.LOOP_GUARD, `${sourceAgent} has ${count} open packets; a source agent may have at most ${max}.`);
}

export const unknownParent = () => invalid('parent_packet_id', 'parent_packet_id must be the id of a packet of this tenant.');

function quotaReached(quota: number, now: Date): LimitReached {
  const seconds = secondsToMidnight(now);
  const sentence =
    quota === 0
      ? "The tenant's daily quota is 0 packets; an admin can raise it."
      : `The tenant has created the ${quota} packets it may create per day; the next UTC day begins in ${seconds} seconds.`;
  return new LimitReached(sentence, { name: 'day', max: quota }, seconds);
}

/** The error of a batch without any valid packet: 429 when the daily quota was the only reason, else 400. */
function allRefused(refusals: readonly ServiceError[], errors: readonly ItemFault[]): ServiceError {
  const [first] = refusals;
  const extra = { created: [], errors };
  if (first !== undefined && refusals.every(({ code }) => code === 'RATE_LIMITED')) {
    return new ServiceError('RATE_LIMITED', first.message, { extra: { ...first.extra, ...extra }, headers: first.headers });
  }
  return new ServiceError('VALIDATION_ERROR', 'None of the packets could be created; see errors.', { field: 'packets', extra });
}
