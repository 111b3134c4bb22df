import { ServiceError } from '../../kit/errors.ts';
import type { Packet } from '../model/packet.ts';
import type { AnyPacket, Decision } from './packet.ts';
import { allows, move, touched } from './packet-life.ts';

/** Requires a packet that was not erased. @throws ServiceError 410 */
export function requireKept({ erased }: Pick<AnyPacket, 'erased'>): void {
  if (erased === true) throw new ServiceError('GONE', 'The packet has been erased.');
}

/** What is left of a packet whose content is erased: its ids, its agents' ids, its status and its times. An open one has expired. */
function erasedPacket(packet: AnyPacket, now: Date): Packet {
  const { source_agent, target_agent, priority, created_at } = packet.metadata;
  const { status, revision, updated_at } = allows(packet, 'erase') ? move(packet, 'erase', now) : touched(packet, now);
  const { id, version, parent_packet_id, not_before, due_at, overdue, claimed_by, claimed_at, _links } = packet;
  return {
    ...{ id, version, parent_packet_id, status, revision, lease: null },
    metadata: {
      source_agent: { id: source_agent.id, name: source_agent.id, framework: '' },
      target_agent: { id: target_agent.id, name: target_agent.id },
      ...{ priority, tags: [], created_at },
    },
    hitl: null,
    ...(not_before === undefined ? {} : { not_before }),
    ...(due_at === undefined ? {} : { due_at }),
    ...(overdue === undefined ? {} : { overdue }),
    ...{ erased: true, erased_at: now.toISOString() },
    claimed_by: claimed_by === null ? null : { agent_id: claimed_by.agent_id, agent_name: claimed_by.agent_id, framework: null },
    ...{ claimed_at, created_at: packet.created_at, updated_at, _links },
    context: { summary: '', conversation_state: [], artifacts: [], custom: {} },
    decisions: [],
    actions: { pending: [], completed: [], failed: [] },
    dependencies: [],
  };
}

/** The erasure of a packet. One by retention has no event: a round of retention has one entry for all of its packets. */
export function erase<P extends AnyPacket>(
  packet: P,
  { actor, erasureId }: { actor: string; erasureId: string | null },
  now: Date,
): Decision<P> {
  if (packet.erased === true) return { packet, events: [], searchable: false };
  const type = allows(packet, 'erase') ? 'packet.expired' : 'packet.updated';
  const events = erasureId === null ? [] : [{ event_type: 'erased' as const, type, actor, details: { erasure_id: erasureId } } as const];
  return { packet: erasedPacket(packet, now) as P, events, searchable: false, isErased: true };
}
