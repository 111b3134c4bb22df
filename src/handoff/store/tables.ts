import type { Generated } from 'kysely';

import type { Tier } from '../model/common.ts';
import type { DeliveryError, DeliveryStatus, DisabledReason } from '../model/webhook.ts';

/**
 * Times are ISO 8601 UTC with milliseconds, as text; ids are UUIDs version 7, so that text order is time order.
 * `tenant` is a tenant's `number`, and `packet` a packet's `seq`.
 */
export interface Tables {
  tenants: TenantTable;
  api_keys: ApiKeyTable;
  versions: { name: string; value: number };
  packets: PacketTable;
  /**
   * The content of packets, apart from what their life changes: a claim does not write the long part, nor parse it. Whose
   * it is its packet tells, by way of which alone it is reached.
   */
  contents: { packet: number; content: string };
  packet_tags: { tenant: number; tag: string; packet_id: string };
  events: EventTable;
  webhooks: WebhookTable;
  /** The bodies of deliveries, by their events. */
  messages: { event_id: string; body: string };
  deliveries: DeliveryTable;
  agents: AgentTable;
  counters: { tenant: number; name: string; value: number };
  idempotency: {
    tenant: number;
    key: string;
    fingerprint: string;
    status: number;
    body: string | null;
    etag: string | null;
    created_at: string;
  };
  /** Which packets are in the answers that are kept: when one is removed for good, its answers go. */
  idempotency_packets: { tenant: number; packet_id: string; key: string };
  search_queue: { tenant: number; packet: number; revision: number };
  /** The full-text index: an FTS5 table on SQLite, a tsvector column on PostgreSQL. `rowid` is the packet's `seq`. */
  search_index: { rowid: number; words: string };
}

interface TenantTable {
  id: string;
  /** Stands for the tenant in the other tables and in the search index. */
  number: Generated<number>;
  name: string;
  tier: Tier;
  handoffs_per_day: number | null;
  max_api_keys: number;
  /** Whether somebody has set `max_api_keys`, 1 or 0: until then it follows the tier. */
  max_api_keys_set: Generated<number>;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

interface ApiKeyTable {
  id: string;
  tenant_id: string;
  name: string;
  tier: Tier;
  admin: number;
  prefix: string;
  hash: string;
  created_at: string;
  /** When it ends, since another has taken its place; null: never. */
  expires_at: string | null;
  /** The first of the keys whose place it took, one after the other; null: it took none's. */
  rotated_from: string | null;
  revoked_at: string | null;
}

interface PacketTable {
  seq: Generated<number>;
  tenant: number;
  id: string;
  status: string;
  revision: number;
  source_agent: string;
  target_agent: string;
  priority: string;
  hitl_required: number;
  /** When a sweeper must look at it; null: never. */
  due_at: string | null;
  /** The parts of its JSON text; the third is in `contents`. */
  state: string;
  digest: string;
  /** The packet that it continues. */
  parent: string | null;
  /** How many packets there are from the root of its chain to it, itself included. */
  depth: number;
  /** The agent that holds or held it. */
  claimed_by: string | null;
  updated_at: string;
  /** What is stored of its leases, as JSON; null: it was never leased. */
  lease: string | null;
}

/** An agent that a tenant's requests have named. */
interface AgentTable {
  tenant: number;
  agent_id: string;
  last_seen_at: string;
}

interface EventTable {
  seq: Generated<number>;
  id: string;
  tenant: number;
  packet_id: string | null;
  event_type: string;
  actor: string;
  resource: string;
  details: string;
  timestamp: string;
  /** The key that acted; null: the service itself. */
  key_id: string | null;
  /** Its place among the tenant's events: in the order of commits, from 1. */
  position: Generated<number>;
  /** What streams tell of it, and to whom; null where they tell nothing. */
  type: string | null;
  status: string | null;
  source_agent: string | null;
  target_agent: string | null;
  claimant: string | null;
  /** The stream event's text; null once it is too old to be told again. */
  payload: string | null;
}

interface WebhookTable {
  seq: Generated<number>;
  id: string;
  tenant: number;
  url: string;
  /** A JSON array of the event types it is told of. */
  events: string;
  secret: string;
  old_secret: string | null;
  old_secret_until: string | null;
  active: number;
  disabled_reason: DisabledReason | null;
  failing_since: string | null;
  created_at: string;
  updated_at: string;
  removed_at: string | null;
}

interface DeliveryTable {
  seq: Generated<number>;
  id: string;
  tenant: number;
  /** The number of its webhook. */
  webhook: number;
  packet_id: string | null;
  event_id: string;
  event_type: string;
  status: DeliveryStatus;
  attempts: number;
  last_error: DeliveryError | null;
  last_status_code: number | null;
  next_retry_at: string | null;
  delivered_at: string | null;
  created_at: string;
  updated_at: string;
  /** From when it may be taken for an attempt, or until when it is in hand; null: never. */
  due_at: string | null;
}
