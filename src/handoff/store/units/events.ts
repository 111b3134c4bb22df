import type { NewId } from '../../../kit/id.ts';
import type { Row } from '../../../kit/sql/dialect.ts';
import type { AnyPacket, PacketEvent } from '../../rules/packet.ts';
import { column } from './column.ts';
import type { CounterTransaction } from './counters.ts';
import type { DeliveryTransaction } from './deliveries.ts';
import type { Journal } from './journal.ts';
import type { PacketTransaction } from './packets.ts';
import type { Group, Kind } from './transaction.ts';

/** An entry of the audit log that is not about a packet. */
export interface AuditNote {
  readonly event_type: string;
  readonly resource: 'api_key' | 'tenant' | 'webhook';
  readonly actor: string;
  readonly details: Record<string, unknown>;
}

/** When something happened, and the key that caused it; null: the service itself. */
export interface Circumstances {
  readonly now: Date;
  readonly keyId: string | null;
}

/** An event as streams send it. A stream sends `payload` byte for byte. */
export interface StreamEvent {
  /** The event's id, a UUID, which is also the `webhook-id` of its deliveries. */
  readonly id: string;
  /** The event's position among the tenant's events. Positions rise in commit order. */
  readonly position: number;
  /** For example `packet.created`. */
  readonly type: string;
  readonly packet_id: string;
  /** The packet's status after the event; null when it was deleted permanently. */
  readonly status: string | null;
  readonly source_agent: string;
  readonly target_agent: string;
  /** The agent that has claimed the packet. */
  readonly claimant: string | null;
  /** The envelope `{type, packet_id, data, timestamp}` as JSON text; `data` is the packet as lists show it. */
  readonly payload: string;
  readonly timestamp: string;
}

/** What a group appended to one tenant's trail: all positions from first to last, and those events that streams send. */
export interface CommittedEvents {
  /** The tenant's number. */
  readonly tenant: number;
  readonly first: number;
  readonly last: number;
  readonly events: readonly StreamEvent[];
}

/** An event without a position yet. */
type Draft = Row & { packet_id: string | null; type: string | null };

/** The counter that holds a tenant's last position. */
export const positionCounter = 'position';

/** The counter that holds the highest position whose stream event was removed by retention. */
export const removedCounter = 'removed';

interface EventParts {
  readonly journal: Journal;
  readonly newId: NewId;
  readonly packets: PacketTransaction;
  readonly counters: CounterTransaction;
  readonly deliveries: DeliveryTransaction;
}

/** A tenant's trail, as units append to it. */
export class EventTransaction {
  readonly tenant: number;
  appended: Draft[] = [];
  readonly #journal: Journal;
  readonly #newId: NewId;
  readonly #packets: PacketTransaction;
  readonly #counters: CounterTransaction;
  readonly #deliveries: DeliveryTransaction;

  constructor(tenant: number, { journal, newId, packets, counters, deliveries }: EventParts) {
    this.tenant = tenant;
    this.#journal = journal;
    this.#newId = newId;
    this.#packets = packets;
    this.#counters = counters;
    this.#deliveries = deliveries;
  }

  /** Appends the events of a packet that has already been saved, inserted or removed. */
  append(packet: AnyPacket, events: readonly PacketEvent[], at: Circumstances): void {
    for (const { event_type, type, actor, details } of events) {
      const entry = this.#entry({ event_type, resource: 'packet', actor, details }, at);
      this.#push({ ...entry, packet_id: packet.id, ...this.#streamColumns(packet, type, entry.timestamp) });
      if (type !== null && type !== 'packet.deleted') this.#announce(packet.id, type, entry);
    }
  }

  /** Appends an entry that is not about a packet. */
  note(note: AuditNote, at: Circumstances): void {
    this.#push({ ...this.#entry(note, at), packet_id: null, ...noStreamEvent });
  }

  /** Adds webhook deliveries with the whole packet. */
  #announce(packet_id: string, type: string, { id, timestamp }: { id: string; timestamp: string }): void {
    const body = () => envelope(type, packet_id, this.#packets.text(packet_id), timestamp);
    this.#deliveries.announce({ id, type, packet_id, timestamp, body });
  }

  #push(draft: Draft): void {
    this.#journal.push(this.appended, draft);
    this.#counters.add('events', 1);
  }

  #entry({ event_type, resource, actor, details }: Omit<AuditNote, 'resource'> & { resource: string }, { now, keyId }: Circumstances) {
    return {
      id: this.#newId(now),
      tenant: this.tenant,
      event_type,
      actor: column(actor),
      key_id: keyId,
      resource,
      details: JSON.stringify(details),
      timestamp: now.toISOString(),
    };
  }

  /** The stream event's columns for an event of this type. */
  #streamColumns(packet: AnyPacket, type: string | null, timestamp: string) {
    if (type === null) return noStreamEvent;
    const { id, status, metadata, claimed_by } = packet;
    const isRemoved = type === 'packet.deleted';
    const data = isRemoved ? 'null' : this.#packets.summary(id);
    return {
      type,
      status: isRemoved ? null : status,
      source_agent: column(metadata.source_agent.id),
      target_agent: column(metadata.target_agent.id),
      claimant: claimed_by === null ? null : column(claimed_by.agent_id),
      payload: envelope(type, id, data, timestamp),
    };
  }
}

/** The envelope of an event, with its data as JSON text. */
function envelope(type: string, packetId: string, data: string, timestamp: string): string {
  return `{"type":"${type}","packet_id":"${packetId}","data":${data},"timestamp":"${timestamp}"}`;
}

/** The stream event's columns for an event that streams don't send. */
const noStreamEvent = { type: null, status: null, source_agent: null, target_agent: null, claimant: null, payload: null };

/** The trail: the history of packets, the audit log and the stream events are the same rows. */
export const events: Kind = {
  async erase(session, group, removed) {
    const keys = removed.map(({ tenant, stored }) => ({ tenant, packet_id: stored.packet.id }));
    for (const [tenant] of await session.find('events', ['tenant'], keys)) group.of(tenant as number).counters.add('events', -1);
    for (const { tenant, stored } of removed) {
      const { events: trail, counters } = group.of(tenant);
      const kept = trail.appended.filter(({ packet_id, type }) => packet_id !== stored.packet.id || type === 'packet.deleted');
      counters.add('events', kept.length - trail.appended.length);
      trail.appended = kept;
    }
    await session.remove('events', keys);
  },

  flush(session, group) {
    const numbering = { column: 'position', owner: 'tenant', counters: 'counters', name: positionCounter };
    return session.insertNumbered(
      'events',
      group.each(({ events: { appended } }) => appended),
      numbering,
      group.lastPositions,
    );
  },
};

/** The events that the group appended, with their positions. Call it after the commit. */
export function committedEvents(group: Group): CommittedEvents[] {
  return group.each(({ tenant, events: { appended } }) => {
    if (appended.length === 0) return [];
    const last = group.lastPositions.get(tenant)!;
    const first = last - appended.length + 1;
    const streamed = appended.flatMap((draft, index) => (draft.type === null ? [] : [streamEvent(draft, first + index)]));
    return [{ tenant, first, last, events: streamed }];
  });
}

function streamEvent(draft: Draft, position: number): StreamEvent {
  const { id, type, packet_id, status, source_agent, target_agent, claimant, payload, timestamp } = draft;
  return { id, position, type, packet_id, status, source_agent, target_agent, claimant, payload, timestamp } as StreamEvent;
}
