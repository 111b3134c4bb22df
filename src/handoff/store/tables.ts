import type { Generated } from 'kysely';

import type { Tier } from '../model/common.ts';

/** Times are ISO 8601 UTC with milliseconds, as text; ids are UUIDs version 7, so that text order is time order. */
export interface Tables {
  tenants: TenantTable;
  api_keys: ApiKeyTable;
  versions: { name: string; value: number };
  packets: PacketTable;
  /** The content of packets, apart from what their life changes: a claim does not write the long part, nor parse it. */
  contents: { tenant_id: string; packet_id: string; content: string };
  packet_tags: { tenant_id: string; tag: string; packet_id: string };
  events: EventTable;
  counters: { tenant_id: string; name: string; value: number };
  idempotency: {
    tenant_id: string;
    key: string;
    fingerprint: string;
    status: number;
    body: string | null;
    etag: string | null;
    created_at: string;
  };
  /** Which packets are in the answers that are kept: when one is removed for good, its answers go. */
  idempotency_packets: { tenant_id: string; packet_id: string; key: string };
  search_queue: { tenant_id: string; packet_id: string; revision: number };
  /** The full-text index: an FTS5 table on SQLite, a tsvector column on PostgreSQL. `rowid` is the packet's `seq`. */
  search_index: { rowid: number; words: string };
}

interface TenantTable {
  id: string;
  /** A small number that stands for the tenant in the search index. */
  number: Generated<number>;
  name: string;
  tier: Tier;
  handoffs_per_day: number | null;
  max_api_keys: number;
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
  revoked_at: string | null;
}

interface PacketTable {
  seq: Generated<number>;
  tenant_id: string;
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
}

interface EventTable {
  seq: Generated<number>;
  id: string;
  tenant_id: string;
  packet_id: string | null;
  event_type: string;
  actor: string;
  resource: string;
  details: string;
  timestamp: string;
}
