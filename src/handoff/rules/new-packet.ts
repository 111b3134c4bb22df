import { type ChainRequest, type Packet, packetVersion } from '../model/packet.ts';
import type { Decision, PacketEvent } from './packet.ts';
import { claimableStatus } from './packet-life.ts';
import { draftOf } from './question.ts';
import { withTimes } from './times.ts';
import { type KeptTrace, withoutOwn } from './trace.ts';

interface NewPacketOptions {
  readonly id: string;
  readonly now: Date;
  readonly agentId: string | undefined;
  readonly contractVersion?: number | undefined;
  /** The trace of the request. */
  readonly trace?: KeptTrace | undefined;
  /** The schedule that makes it, and the time for which. */
  readonly schedule?: Packet['metadata']['schedule'];
}

/** A new packet and its `packet.created` event. */
export function newPacket(
  request: ChainRequest & { parent_packet_id?: string | undefined },
  { id, now, agentId, contractVersion, trace, schedule }: NewPacketOptions,
): Decision {
  const at = now.toISOString();
  const { context, actions, hitl } = request;
  const metadata = withoutOwn(request.metadata);
  const made: Packet = {
    id,
    version: packetVersion,
    parent_packet_id: request.parent_packet_id ?? null,
    status: claimableStatus,
    revision: 1,
    lease: null,
    metadata: {
      ...(trace === undefined ? {} : { trace }),
      ...(schedule === undefined ? {} : { schedule }),
      ...metadata,
      priority: metadata.priority ?? 'normal',
      tags: metadata.tags ?? [],
      created_at: at,
    },
    hitl: hitl === undefined ? null : draftOf(hitl),
    claimed_by: null,
    claimed_at: null,
    created_at: at,
    updated_at: at,
    _links: { self: `/api/v1/packets/${id}`, claim: `/api/v1/packets/${id}/claim`, history: `/api/v1/packets/${id}/history` },
    context: {
      ...context,
      conversation_state: context.conversation_state ?? [],
      artifacts: context.artifacts ?? [],
      custom: context.custom ?? {},
    },
    decisions: request.decisions ?? [],
    actions: { ...actions, pending: actions?.pending ?? [], completed: actions?.completed ?? [], failed: actions?.failed ?? [] },
    dependencies: request.dependencies ?? [],
  };
  const packet = withTimes(made, request, now);
  const actor = `agent:${agentId ?? metadata.source_agent.id}`;
  const details = {
    ...(packet.parent_packet_id === null ? {} : { parent_packet_id: packet.parent_packet_id }),
    ...(contractVersion === undefined ? {} : { contract_version: contractVersion }),
  };
  return { packet, events: [{ event_type: 'created', type: 'packet.created', actor, details }], searchable: true };
}

/** The event in a parent's history when a child is created. The parent itself does not change. */
export function chained(child: Packet, agentId: string | undefined): PacketEvent {
  const actor = `agent:${agentId ?? child.metadata.source_agent.id}`;
  return { event_type: 'chained', type: null, actor, details: { child_packet_id: child.id } };
}
