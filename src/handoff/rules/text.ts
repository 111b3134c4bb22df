import type { Packet } from '../model/packet.ts';
import type { AnyPacket } from './packet.ts';

/**
 * A packet as JSON text, in the parts in which it is kept: one beginning and two ends, so that the packet and its summary
 * are put together, and taken apart again, without reading them.
 */
export interface PacketParts {
  /** The beginning: what the packet's life changes, all but its content. From the opening brace to the comma at the seam. */
  readonly state: string;
  /** The end in lists: the content's summary, and how many there are of each of its items. With the closing brace. */
  readonly digest: string;
  /** The end of the whole packet: context, decisions, actions and dependencies. With the closing brace. */
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
    digest: endOf({ context: { summary: context.summary }, counts }),
    content: endOf({ context, decisions, actions, dependencies }),
  };
}

/** The part of a packet that its life changes. */
export function stateOf(packet: AnyPacket): string {
  const { id, version, parent_packet_id, status, revision, lease, metadata, hitl, claimed_by, claimed_at, created_at, updated_at, _links } =
    packet;
  const moving = {
    id,
    version,
    parent_packet_id,
    status,
    revision,
    lease,
    metadata,
    hitl,
    claimed_by,
    claimed_at,
    created_at,
    updated_at,
    _links,
  };
  return `${JSON.stringify(moving).slice(0, -1)},`;
}

function endOf(members: object): string {
  return JSON.stringify(members).slice(1);
}

/** The packet as it goes out, as JSON text. */
export function packetText({ state, content }: Pick<PacketParts, 'state' | 'content'>): string {
  return state + content;
}

/** The packet as lists show it, as JSON text. */
export function summaryText({ state, digest }: Pick<PacketParts, 'state' | 'digest'>): string {
  return state + digest;
}

/**
 * The text of a packet that was just leased, with the lease's token: it is in the answer to the claim alone. What stands
 * before the lease in the text is the service's own, so the first place that looks like a lease is the lease.
 */
export function withToken(text: string, token: string): string {
  return text.replace('"lease":{', () => `"lease":{"token":${JSON.stringify(token)},`);
}
