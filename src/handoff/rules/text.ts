import type { Packet } from '../model/packet.ts';
import type { AnyPacket } from './packet.ts';

/**
 * A packet as JSON text, in the parts in which it is kept. Each is a run of members without the braces around them, so
 * that the packet and its summary are put together, and taken apart again, without reading them.
 */
export interface PacketParts {
  /** What the packet's life changes: all but its content. */
  readonly state: string;
  /** What a list says of the content: its summary, and how many there are of each of its items. */
  readonly digest: string;
  /** The content: context, decisions, actions and dependencies. */
  readonly content: string;
}

/** A whole packet in parts. */
export function partsOf(packet: Packet): PacketParts {
  const { context, decisions, actions, dependencies } = packet;
  const counts = {
    decisions: decisions.length,
    pending: actions.pending.length,
    completed: actions.completed.length,
    failed: actions.failed.length,
    dependencies: dependencies.length,
    turns: context.conversation_state.length,
    artifacts: context.artifacts.length,
  };
  return {
    state: stateOf(packet),
    digest: membersOf({ context: { summary: context.summary }, counts }),
    content: membersOf({ context, decisions, actions, dependencies }),
  };
}

/** The part of a packet that its life changes. */
export function stateOf(packet: AnyPacket): string {
  const { id, version, parent_packet_id, status, revision, metadata, hitl, claimed_by, claimed_at, created_at, updated_at, _links } =
    packet;
  const moving = {
    id,
    version,
    parent_packet_id,
    status,
    revision,
    metadata,
    hitl,
    claimed_by,
    claimed_at,
    created_at,
    updated_at,
    _links,
  };
  return membersOf(moving);
}

function membersOf(value: object): string {
  return JSON.stringify(value).slice(1, -1);
}

/** The packet as it goes out, as JSON text. */
export function packetText({ state, content }: Pick<PacketParts, 'state' | 'content'>): string {
  return `{${state},${content}}`;
}

/** The packet as lists show it, as JSON text. */
export function summaryText({ state, digest }: Pick<PacketParts, 'state' | 'digest'>): string {
  return `{${state},${digest}}`;
}
