declare module './tables.ts' {
  interface Tables {
    /** The last entry of each tenant's trail. Its row is locked while entries are appended. */
    heads: { tenant: number; position: number; digest: string; at: string };
    events: {
      id: string;
      tenant: number;
      packet_id: string | null;
      event_type: string;
      actor: string;
      resource: string;
      /** Canonical JSON (RFC 8785); null once erased. */
      details: string | null;
      timestamp: string;
      /** The key that acted; null: the service itself. */
      key_id: string | null;
      /** The person who signed in and acted, as JSON. */
      person: string | null;
      /** What the chain of digests has of the entry: see `rules/chain.ts`. The salt is null once its details are erased. */
      salt: string | null;
      details_digest: string;
      digest: string;
      /** Its position among the tenant's events, in commit order from 1. */
      position: number;
      /** The stream event's type and what subscriptions filter by; null where there is no stream event. */
      type: string | null;
      status: string | null;
      source_agent: string | null;
      target_agent: string | null;
      claimant: string | null;
      /** The stream event's text; null once retention has removed it. */
      payload: string | null;
    };
  }
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
