import type { Generated, Selectable } from 'kysely';
import type { ChannelKind } from '../model/channel.ts';
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
  /** The content of packets, separate from the state, so that a claim neither writes nor parses the long part. */
  contents: { tenant: number; packet: number; content: string };
  packet_tags: { tenant: number; tag: string; packet_id: string };
  events: EventTable;
  webhooks: WebhookTable;
  answer_links: AnswerLinkTable;
  /** The bodies of deliveries, one per event. */
  messages: { tenant: number; event_id: string; body: string; traceparent: string | null };
  deliveries: DeliveryTable;
  agents: AgentTable;
  contracts: ContractTable;
  counters: { tenant: number; name: string; value: number };
  idempotency: {
    tenant: number;
    key: string;
    /** Method, path and body of the request. */
    fingerprint: string;
    status: number;
    /** Null where the answer must not be repeated (it has a secret in plain text, or its packet was deleted permanently). */
    body: string | null;
    etag: string | null;
    created_at: string;
  };
  /** Which packets the stored answers contain: when a packet is deleted permanently, so are its answers. */
  idempotency_packets: { tenant: number; packet_id: string; key: string };
  search_queue: { tenant: number; packet: number; revision: number };
  /** The full-text index: on PostgreSQL a tsvector column; on SQLite an FTS5 table without the tenant. `rowid` is the packet's `seq`. */
  search_index: { tenant: number; rowid: number; words: string };
  /** Which tenants will have work for a job, and when, on a cluster (`DueTenants`). Only PostgreSQL has it. */
  due: { job: 'sweep' | 'expire' | 'deliver' | 'index'; due_at: string; tenant_number: number };
}

/** A row of a table as it is read. */
export type RowOf<Name extends keyof Tables> = Readonly<Selectable<Tables[Name]>>;

interface TenantTable {
  id: string;
  /** The tenant's key in the other tables and in the search index. */
  number: Generated<number>;
  name: string;
  tier: Tier;
  handoffs_per_day: number | null;
  max_api_keys: number;
  /** Whether `max_api_keys` was set explicitly, 1 or 0; until then it follows the tier. */
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
  /** When it expires, after a rotation; null: never. */
  expires_at: string | null;
  /** The first key of its chain of rotations; null: it replaced no key. */
  rotated_from: string | null;
  /** What it may do, as JSON arrays and a name; null: everything. */
  scopes: string | null;
  agents: string | null;
  responder: string | null;
  /** The first keys of the chains of rotations of the keys through which it was created, as a JSON array; null: none. */
  lineage: string | null;
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
  /** When a background job must next examine it; null: never. */
  due_at: string | null;
  /** When its open question was asked; null: none is open. */
  asked_at: string | null;
  /** Two of the three parts of its JSON text; the third is in `contents`. */
  state: string;
  digest: string;
  /** The id of its parent packet. */
  parent: string | null;
  /** The id of the root of its chain; null: it is the root itself. */
  root: string | null;
  /** Its depth in its chain: 1 for the root. */
  depth: number;
  /** The agent that holds it or held it last. */
  claimed_by: string | null;
  updated_at: string;
  /** Its lease state as JSON; null: it was never leased. */
  lease: string | null;
  /** The numbers of the webhooks that are for it alone, as a JSON array; null: none. */
  followers: string | null;
  /** The keys that are sources of its question (`withSource`), as a JSON array; null: none. */
  sources: string | null;
  /**
   * The source agent while the packet is open; null: it is finished. Open packets are counted by it: an index with a condition
   * on the status would be written whenever the status changes.
   */
  open_source: string | null;
}

/** An agent that requests of a tenant have named. */
interface AgentTable {
  tenant: number;
  agent_id: string;
  last_seen_at: string;
}

/** What packets for an agent must contain. */
interface ContractTable {
  tenant: number;
  agent_id: string;
  version: number;
  /** The schema, the description and the examples as JSON; empty once it is removed. */
  document: string;
  created_at: string;
  updated_at: string;
  removed_at: string | null;
}

interface EventTable {
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
}

/** Webhooks and channels: what deliveries are sent to. */
interface WebhookTable {
  seq: Generated<number>;
  /** `push`: for one packet, a push notification configuration of A2A. */
  kind: 'webhook' | 'push' | ChannelKind;
  id: string;
  tenant: number;
  /** The URL, or the mail address. */
  url: string;
  /** A JSON array of the event types that it subscribes to. */
  events: string;
  secret: string;
  /** The previous secret, and until when deliveries are also signed with it. */
  old_secret: string | null;
  old_secret_until: string | null;
  active: number;
  disabled_reason: DisabledReason | null;
  /** Since when all of its deliveries have failed; null: the last one succeeded, or there was none. */
  failing_since: string | null;
  created_at: string;
  updated_at: string;
  removed_at: string | null;
  /** The packet that a push notification configuration is for, and what it sends as JSON. */
  for_packet: string | null;
  authentication: string | null;
  /** The name of a channel, or the id that the client gave a push notification configuration. The rest belongs to channels. */
  name: string | null;
  /** The person whose questions it gets; null: all questions. */
  responder: string | null;
  /** The key that set the target, and the first key of its chain of rotations: the maker of the channel's answer links. */
  key_id: string | null;
  key_origin: string | null;
  /** The origin of that request, with which answer links begin. */
  origin: string | null;
}

interface AnswerLinkTable {
  seq: Generated<number>;
  id: string;
  tenant: number;
  packet_id: string;
  /** The question that it is for. */
  question: string;
  token_hash: string;
  responder: string | null;
  /** The key that made it, and the first key of that key's chain of rotations. */
  key_id: string;
  key_origin: string;
  created_at: string;
  expires_at: string;
  answered_at: string | null;
  revoked_at: string | null;
  /** The id of the channel that it was made for; null: a caller made it. */
  channel: string | null;
}

interface DeliveryTable {
  seq: Generated<number>;
  id: string;
  tenant: number;
  /** The `seq` of its webhook or channel. */
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
  /** When the next attempt may start, or the end of the current lease; null: no attempt is scheduled. */
  due_at: string | null;
}
