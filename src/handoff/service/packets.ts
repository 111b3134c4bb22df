import { invalid, notFound, ServiceError } from '../../kit/errors.ts';
import type { RandomSource } from '../../kit/id.ts';
import { isId } from '../../kit/uuid.ts';
import type { ItemFault } from '../model/batch-routes.ts';
import type { AskRequest } from '../model/hitl.ts';
import type { Claimant, ClaimRequest, PatchRequest, RespondRequest } from '../model/packet.ts';
import type { Facts } from '../rules/action-case.ts';
import type { AnsweredVia } from '../rules/answer.ts';
import { asksPerson, type Command, changesContent, needsFacts, needsWhole } from '../rules/command.ts';
import type { LeaseTerms } from '../rules/lease.ts';
import { actingAgent, requireAgent, requireQueue, requireResponder } from '../rules/rights.ts';
import type { ClaimFilter } from '../store/claim-queue.ts';
import type { Idempotency } from '../store/idempotency.ts';
import { answerFacts, type FactSources, withFacts } from './action-facts.ts';
import { actorOf, answeredBy, type Caller } from './authentication.ts';
import { actingFor, type Changed, type ChangeOptions, changeIn, keptAnswer, repeatedChange } from './change.ts';
import { type CreationDependencies, createPacketCreation } from './create.ts';
import { itemFault } from './item-fault.ts';
import { requireSignIn, type SignInUse } from './sign-in.ts';

interface PacketServiceDependencies extends CreationDependencies, FactSources {
  signIn: SignInUse;
  random: RandomSource;
}

/** A requested claim. */
export interface RequestedClaim {
  readonly claimant: Claimant;
  readonly leaseSeconds?: number | undefined;
}

/** The claim in a request body. */
export function claimOf({ agent_id, agent_name, framework, lease_seconds }: ClaimRequest): RequestedClaim {
  return { claimant: { agent_id, agent_name: agent_name ?? agent_id, framework: framework ?? null }, leaseSeconds: lease_seconds };
}

/** How many random bytes a lease token has. */
const tokenBytes = 32;

/** The size in characters from which a batch answer takes no more packets, since the whole answer is held in memory. */
const maxAnswerLength = 16 * 1024 * 1024;

/** The operations on packets, one unit of work each. */
export function createPacketService(parts: PacketServiceDependencies) {
  return { ...createPacketCreation(parts), ...createChanges(parts), ...createClaims(parts) };
}

/** The operations on one packet that is named, and on several that are completed. */
function createChanges(parts: PacketServiceDependencies) {
  const { store, clock, newId } = parts;
  return {
    async respond(
      caller: Caller,
      id: string,
      { responded_by = caller.responder || undefined, ...given }: Partial<RespondRequest>,
      options: ChangeOptions & { via?: AnsweredVia } = {},
    ) {
      const { via = 'api' } = options;
      if (responded_by === undefined) throw invalid('responded_by', 'responded_by is required: the key is for nobody.');
      const answer: RespondRequest = { ...given, responded_by };
      requireSignIn(caller, via, parts.signIn);
      requireResponder(caller, answer.responded_by, 'responded_by');
      // Over A2A an agent answers, unless the key is a person's.
      const actor = via === 'a2a' && !caller.responder ? `agent:${caller.name}` : undefined;
      const by = answeredBy(caller, answer.responded_by);
      // A token is a program's: it counts for no policy.
      const decider = { verified: by.verified && by.method !== 'token', method: by.method, key_id: caller.key_id };
      const standingId = answer.remember && newId(clock());
      return change(parts, caller, id, { kind: 'respond', answer, via, by, actor, decider, standingId }, options);
    },
    patch: (caller: Caller, id: string, patch: PatchRequest, { agentId, token, holder, ...options }: ChangeOptions = {}) =>
      change(
        parts,
        caller,
        id,
        {
          kind: 'patch',
          patch,
          agentId: actingAgent(caller, agentId),
          ...{ token, holder, questionId: newId(clock()) },
        },
        options,
      ),
    /** Asks a question, or finds the one that its key names. */
    ask: (caller: Caller, id: string, question: AskRequest, { agentId, token, holder, ...options }: ChangeOptions = {}) => {
      const asker = { agentId: actingAgent(caller, agentId), token, holder };
      return change(parts, caller, id, { kind: 'ask', question, ...asker, questionId: newId(clock()) }, options);
    },
    /** Withdraws the open question of a packet. Like an answer, that needs no lease token. */
    withdraw: (caller: Caller, id: string, { agentId, ifMatch }: ChangeOptions = {}) =>
      change(parts, caller, id, { kind: 'withdraw', agentId: actingAgent(caller, agentId) }, { ifMatch }),
    expire: (caller: Caller, id: string, { agentId, token, ...options }: ChangeOptions = {}) =>
      change(parts, caller, id, { kind: 'delete', agentId: actingAgent(caller, agentId), token, byAdmin: caller.admin }, options),
    /** Returns a claimed packet to `created`. */
    release: (caller: Caller, id: string, { agentId, token, holder, ...options }: ChangeOptions = {}) =>
      change(parts, caller, id, { kind: 'release', agentId: actingAgent(caller, agentId), token, holder, byAdmin: caller.admin }, options),
    /** Renews the lease of a packet, without an event or a new revision. */
    renew: (caller: Caller, id: string, seconds: number | undefined, { token, holder }: ChangeOptions = {}) =>
      change(parts, caller, id, { kind: 'renew', token, holder, seconds }),
    /** Ends the lease of a packet and returns it to `created`. */
    endLease: (caller: Caller, id: string, { agentId, token }: ChangeOptions = {}) =>
      change(parts, caller, id, { kind: 'end_lease', agentId: actingAgent(caller, agentId), token }),
    async completeEach(caller: Caller, ids: readonly string[], agentId: string | undefined, tokens: Readonly<Record<string, string>> = {}) {
      const tokenOf = new Map(Object.entries(tokens).map(([id, token]) => [id.toLowerCase(), token]));
      const acting = actingAgent(caller, agentId);
      return changeEach(parts, caller, ids, (id) => ({ kind: 'complete', agentId: acting, token: tokenOf.get(id) }));
    },

    /** Removes a packet permanently, with its content and trail; one audit entry remains. */
    async remove(caller: Caller, id: string, { agentId, ifMatch }: ChangeOptions = {}): Promise<void> {
      if (!caller.admin) throw new ServiceError('FORBIDDEN', 'Removing a packet permanently needs an admin key.');
      const actor = agentId === undefined ? actorOf(caller) : `agent:${agentId}`;
      await change(parts, caller, id, { kind: 'remove', actor }, { ifMatch });
    },

    /** Applies a change that time causes to a packet of any tenant; does nothing when it is no longer due. */
    async sweep(tenant: number, id: string, command: Command & { kind: 'time_out' | 'expire_unclaimed' }): Promise<void> {
      const at = { now: clock(), keyId: null };
      await withFacts(parts, { tenant }, (facts) =>
        store.whole(tenant).commit({
          packets: [id],
          notifies: true,
          work: (transaction) => transaction.packets.get(id) && changeIn(transaction, id, command, at, { facts }),
        }),
      );
    },
  };
}

/** The operations that claim packets. */
function createClaims(parts: PacketServiceDependencies) {
  const { store, clock, random, onSeen } = parts;
  /** The terms of a lease with a new token; undefined when no lease is requested. */
  function termsOf(seconds: number | undefined): LeaseTerms | undefined {
    if (seconds === undefined) return undefined;
    const bytes = Buffer.alloc(tokenBytes);
    random(bytes);
    return { seconds, token: `lease_${bytes.toString('base64url')}` };
  }

  return {
    claim: (caller: Caller, id: string, { claimant, leaseSeconds }: RequestedClaim, options: ChangeOptions = {}) =>
      change(parts, caller, id, { kind: 'claim', claimant, terms: termsOf(leaseSeconds) }, options),
    async claimEach(caller: Caller, ids: readonly string[], { claimant, leaseSeconds }: RequestedClaim) {
      requireAgent(caller, claimant.agent_id);
      onSeen(caller.tenant_number, claimant.agent_id);
      return changeEach(parts, caller, ids, () => ({ kind: 'claim', claimant, terms: termsOf(leaseSeconds) }));
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
      requireQueue(caller, filter.target_agent);
      const at = actingFor(caller, clock());
      const terms = termsOf(leaseSeconds);
      onSeen(caller.tenant_number, claimant.agent_id);
      return store.of(caller).commit<Changed | null | undefined>({
        notifies: true,
        claims: filter,
        idempotencyKey: idempotency?.key,
        work(transaction) {
          const again = repeatedChange(transaction, idempotency);
          if (again !== undefined) return again;
          // The client has disconnected, so the packet must stay available.
          if (!isOpen()) return null;
          const id = transaction.claimQueue.take(filter);
          if (id === null || id === undefined) return id;
          return keptAnswer(transaction, idempotency, id, changeIn(transaction, id, { kind: 'claim', claimant, terms }, at), at);
        },
      });
    },
  };
}

/** The key of the question that a command asks; undefined if the draft of the packet may have one. */
function keyOf(command: Command): string | undefined {
  if (command.kind === 'ask') return command.question.key;
  return command.kind === 'patch' ? command.patch.hitl?.key : undefined;
}

/** The document of the approval that an answer lets stand. */
const standingOf = (command: Command) =>
  command.kind === 'respond' && command.standingId !== undefined ? { kind: 'standing' as const, name: command.standingId } : undefined;

async function change(
  parts: PacketServiceDependencies,
  caller: Caller,
  id: string,
  command: Command,
  { ifMatch, idempotency }: Pick<ChangeOptions, 'ifMatch' | 'idempotency'> = {},
): Promise<Changed> {
  const { store, clock, limits, onSeen } = parts;
  if (!isId(id)) throw notFound('packet');
  const at = actingFor(caller, clock());
  // Only new content can exceed the size limit: a packet of any size can still be claimed, answered and moved.
  const whole = needsWhole(command);
  const maxBytes = changesContent(command) ? limits[caller.tenant_tier].packetBytes : Number.POSITIVE_INFINITY;
  if (command.kind === 'claim') requireAgent(caller, command.claimant.agent_id);
  if (command.kind === 'claim') onSeen(caller.tenant_number, command.claimant.agent_id);
  const commit = (facts?: Facts) =>
    store.of(caller).commit({
      packets: [id],
      notifies: true,
      whole,
      documentsOf: standingOf(command),
      questionsOf: asksPerson(command) ? { packetId: id, key: keyOf(command) } : undefined,
      idempotencyKey: idempotency?.key,
      work: (transaction) =>
        repeatedChange(transaction, idempotency) ??
        keptAnswer(transaction, idempotency, id, changeIn(transaction, id, command, at, { ifMatch, maxBytes, facts }), at),
    });
  if (!needsFacts(command)) return commit();
  const prepare = command.kind === 'respond' ? answerFacts : undefined;
  return withFacts(parts, { tenant: caller.tenant_number, caller, prepare }, commit);
}

/** Changes many packets in one unit of work. A refused packet is reported and does not affect the others. */
async function changeEach(
  { store, clock }: PacketServiceDependencies,
  caller: Caller,
  ids: readonly string[],
  commandFor: (id: string) => Command,
): Promise<{ changed: string[]; errors: ItemFault[] }> {
  const at = actingFor(caller, clock());
  const known = ids.map((id) => id.toLowerCase()).filter(isId);
  return store.of(caller).commit({
    packets: known,
    notifies: true,
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

const answerFull = () => new ServiceError('PAYLOAD_TOO_LARGE', 'The answer to this batch is full: send this packet in another batch.');

export type PacketService = ReturnType<typeof createPacketService>;
