import { ServiceError } from '../../kit/errors.ts';
import { entityTagOf } from '../../kit/etag.ts';
import type { ApprovalRequest } from '../model/approval.ts';
import { errors } from '../model/errors.ts';
import type { CreateRequest } from '../model/packet.ts';
import { subjectOf, withSoundAction } from '../rules/action.ts';
import type { Facts } from '../rules/action-case.ts';
import { newPacket } from '../rules/new-packet.ts';
import { requireAgent } from '../rules/rights.ts';
import { type FactSources, withFacts } from './action-facts.ts';
import type { Caller } from './authentication.ts';
import { actingFor } from './change.ts';
import {
  type CreateAnswer,
  type CreateOptions,
  type CreationDependencies,
  createIn,
  createUnder,
  dryRunCounts,
  refusalOf,
  unknownParent,
} from './create.ts';

/** Thrown in a unit of work when the agent asked about the call before, so that nothing is written. */
class KnownCall extends Error {
  readonly packetId: string;

  constructor(packetId: string) {
    super('The agent asked about the call before.');
    this.packetId = packetId;
  }
}

/** Asks about actions in one call. */
export function createApprovalService(parts: CreationDependencies & FactSources) {
  const { store, newId } = parts;

  /** Makes a packet that asks about an action. @throws KnownCall, ServiceError 409 CALL_CHANGED */
  async function make(caller: Caller, request: ApprovalRequest, options: CreateOptions): Promise<CreateAnswer> {
    requireAgent(caller, request.agent.id);
    const { question, create } = partsOf(request);
    const { tool, arguments_digest, call_id } = question.action;
    const callOf = call_id === undefined ? undefined : { agent_id: request.agent.id, call_id };
    const claimant = claimantOf(request);
    const prepare = (facts: Facts) => {
      if (question.action.schema !== undefined) facts.faultsOf(question.action.schema, question.action.arguments);
      facts.judge(
        subjectOf(
          { ...newPacket(create, { id: '', now: parts.clock(), agentId: undefined }).packet, claimed_by: claimant },
          question.action,
          question.action.arguments,
          request.agent.id,
        ),
      );
      facts.people();
    };
    return withFacts(parts, { tenant: caller.tenant_number, caller, prepare }, (facts) =>
      createUnder(parts, caller, { ...options, callOf }, [create], 1, (transaction, countCreate, now) => {
        const known = callOf && transaction.executions.call(callOf);
        if (known !== undefined && (known.tool !== tool || known.arguments_digest !== arguments_digest))
          throw new ServiceError(errors.CALL_CHANGED, `${request.agent.id} asked about this call with another tool or other arguments.`, {
            extra: { packet_id: known.packet_id },
          });
        if (known !== undefined) throw new KnownCall(known.packet_id);
        const asking = { claimant, question, questionId: newId(now), facts };
        const making = { request: create, verdict: undefined, asking, trial: options.trial };
        const packet = createIn(parts, transaction, countCreate, making, options, actingFor(caller, now), unknownParent);
        if (callOf !== undefined)
          transaction.executions.insertCall({ ...callOf, packet_id: packet.id, tool, arguments_digest: arguments_digest! });
        return { status: 201, body: transaction.packets.text(packet.id), etag: entityTagOf(packet.revision), packetIds: [packet.id] };
      }),
    );
  }

  return {
    /** Makes a packet that asks about an action, or finds the one that the agent made for the call. @throws ServiceError 409 CALL_CHANGED */
    async ask(caller: Caller, request: ApprovalRequest, options: CreateOptions = {}): Promise<CreateAnswer> {
      try {
        return await make(caller, request, options);
      } catch (error) {
        if (!(error instanceof KnownCall)) throw error;
        const found = await store.of(caller).packets.find(error.packetId);
        if (found === undefined) throw new ServiceError('CONFLICT', 'The packet of this call was just deleted; ask again.');
        return { text: found.packet, status: 200, etag: entityTagOf(found.revision), replayed: false };
      }
    },

    /** Checks whether an action could be asked about, without a write, a count or an event: see `tryCreate`. */
    async tryAsk(caller: Caller, request: ApprovalRequest, { agentId }: CreateOptions = {}): Promise<ServiceError | undefined> {
      const trial = await dryRunCounts(parts, caller, request.agent.id);
      try {
        return await refusalOf(() => make(caller, request, { agentId, trial }));
      } catch (error) {
        // The packet of the call would be the answer.
        if (error instanceof KnownCall) return undefined;
        throw error;
      }
    },
  };
}

export type ApprovalService = ReturnType<typeof createApprovalService>;

const claimantOf = ({ agent }: ApprovalRequest) => ({
  ...{ agent_id: agent.id, agent_name: agent.name ?? agent.id, framework: agent.framework ?? null },
});

/** The question and the packet that a request asks with. */
function partsOf({
  agent,
  action,
  reason = '',
  summary,
  context = {},
  tags,
  subjects,
  priority,
  exclude_source = true,
  parent_packet_id,
  ...more
}: ApprovalRequest) {
  const question = withSoundAction({ action, reason, exclude_source, ...more }, '') as ReturnType<typeof withSoundAction> & {
    action: NonNullable<ApprovalRequest['action']>;
  };
  const named = { id: agent.id, name: agent.name ?? agent.id };
  const create: CreateRequest = {
    metadata: {
      source_agent: { ...named, framework: agent.framework ?? '' },
      target_agent: named,
      ...(tags === undefined ? {} : { tags }),
      ...(subjects === undefined ? {} : { subjects }),
      ...(priority === undefined ? {} : { priority }),
    },
    context: { ...context, summary: summary ?? question.question! },
    ...(parent_packet_id === undefined ? {} : { parent_packet_id }),
  };
  return { question, create };
}
