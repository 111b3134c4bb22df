import type { Packet } from '../model/packet.ts';
import type { AnyPacket } from './packet.ts';

/**
 * A packet as JSON text, in the parts in which it is stored. The state followed by the end of the summary is the summary; the state
 * followed by the content is the packet. Neither needs parsing to be joined.
 */
export interface PacketParts {
  /** Everything but the content: from the opening brace to the comma before the next part. */
  readonly state: string;
  /** The end of the packet in lists: the summary, and the counts of the other content. With the closing brace. */
  readonly summaryEnd: string;
  /** The end of the whole packet: context, decisions, actions and dependencies. With the closing brace. */
  readonly content: string;
}

/** Splits a whole packet into its parts. */
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
    summaryEnd: endOf({ context: { summary: context.summary }, counts }),
    content: endOf({ context, decisions, actions, dependencies }),
  };
}

/** The `state` part of a packet. */
export function stateOf(packet: AnyPacket): string {
  const state = {
    id: packet.id,
    version: packet.version,
    parent_packet_id: packet.parent_packet_id,
    status: packet.status,
    revision: packet.revision,
    lease: packet.lease,
    metadata: packet.metadata,
    hitl: packet.hitl,
    not_before: packet.not_before,
    due_at: packet.due_at,
    overdue: packet.overdue,
    erased: packet.erased,
    erased_at: packet.erased_at,
    claimed_by: packet.claimed_by,
    claimed_at: packet.claimed_at,
    created_at: packet.created_at,
    updated_at: packet.updated_at,
    _links: packet._links,
  };
  return `${JSON.stringify(state).slice(0, -1)},`;
}

function endOf(members: object): string {
  return JSON.stringify(members).slice(1);
}

/** The packet as the API shows it, as JSON text. */
export function packetText({ state, content }: Pick<PacketParts, 'state' | 'content'>): string {
  return state + content;
}

/** The packet as lists show it, as JSON text. */
export function summaryText({ state, summaryEnd }: Pick<PacketParts, 'state' | 'summaryEnd'>): string {
  return state + summaryEnd;
}

/** A lease in the text of a packet, with its token and its end. */
const leasePattern = /"lease":\{(?:"token":"([^"]*)",)?"generation":\d+,"expires_at":(?:"([^"]*)"|null)/y;

/** Where the lease is in the text of a packet. Callers can't write any of the fields before it. Undefined without a lease. */
function leaseIn(text: string): RegExpExecArray | undefined {
  leasePattern.lastIndex = text.indexOf('"lease":');
  return leasePattern.exec(text) ?? undefined;
}

/** The text of a packet that was just leased with the token, or with another token: only the answer to the claim contains it. */
export function withToken(text: string, token: string): string {
  const lease = leaseIn(text)!;
  const shown = lease[0].replace(/\{(?:"token":"[^"]*",)?/, () => `{"token":${JSON.stringify(token)},`);
  return text.slice(0, lease.index) + shown + text.slice(lease.index + lease[0].length);
}

/** The token in the answer to a claim; undefined when it has none. */
export const tokenIn = (text: string): string | undefined => leaseIn(text)?.[1];

/** When the lease in the text of a packet ends, which a renewal changes without a new revision; undefined when it does not end, or there is none. */
export const leaseEndIn = (text: string): string | undefined => leaseIn(text)?.[2];
