-- Written by `node scripts/docs.ts` from the migrations. The service makes all this by itself,
-- and the table migrations (name, applied_at) in which it notes what it has made.

-- 0001-packets-in-parts

create table tenants (
  number bigint generated always as identity primary key, id text collate "C" not null unique, name text not null, tier text not null,
  handoffs_per_day integer, max_api_keys integer not null,
  created_at text collate "C" not null, updated_at text collate "C" not null, deleted_at text collate "C");

create table api_keys (
  id text collate "C" primary key, tenant_id text collate "C" not null references tenants (id), name text not null, tier text not null,
  admin integer not null, prefix text not null, hash text collate "C" not null unique,
  created_at text collate "C" not null, revoked_at text collate "C");

create index api_keys_by_tenant on api_keys (tenant_id, id);

create table versions (name text collate "C" primary key, value bigint not null);

insert into versions (name, value) values ('access', 1);

create table packets (
  seq bigint generated always as identity primary key, tenant_id text collate "C" not null, id text collate "C" not null, status text collate "C" not null, revision integer not null,
  source_agent text collate "C" not null, target_agent text collate "C" not null, priority text collate "C" not null, hitl_required integer not null,
  due_at text collate "C", state text not null, digest text not null);

create unique index packets_by_id on packets (tenant_id, id);

create index packets_by_status on packets (tenant_id, status, id);

create index packets_by_source on packets (tenant_id, source_agent, id);

create index packets_by_target on packets (tenant_id, target_agent, id);

create index packets_by_priority on packets (tenant_id, priority, id);

create index packets_hitl on packets (tenant_id, id) where hitl_required = 1;

create index packets_due on packets (due_at) where due_at is not null;

create table contents (tenant_id text collate "C" not null, packet_id text collate "C" not null, content text not null,
  primary key (tenant_id, packet_id));

create table packet_tags (tenant_id text collate "C" not null, tag text collate "C" not null, packet_id text collate "C" not null,
  primary key (tenant_id, tag, packet_id));

create table events (
  seq bigint generated always as identity primary key, id text collate "C" not null, tenant_id text collate "C" not null, packet_id text collate "C", event_type text collate "C" not null,
  actor text collate "C" not null, resource text not null, details text not null, timestamp text collate "C" not null);

create index events_by_tenant on events (tenant_id, seq);

create index events_by_packet on events (tenant_id, packet_id, seq);

create table counters (tenant_id text collate "C" not null, name text collate "C" not null, value bigint not null, primary key (tenant_id, name));

create table idempotency (
  tenant_id text collate "C" not null, key text collate "C" not null, fingerprint text not null, status integer not null,
  body text, etag text, created_at text collate "C" not null, primary key (tenant_id, key));

create index idempotency_by_age on idempotency (created_at);

create table idempotency_packets (tenant_id text collate "C" not null, packet_id text collate "C" not null, key text collate "C" not null,
  primary key (tenant_id, packet_id));

create index idempotency_packets_by_key on idempotency_packets (tenant_id, key);

create table search_queue (tenant_id text collate "C" not null, packet_id text collate "C" not null, revision integer not null,
  primary key (tenant_id, packet_id));

create table search_index (rowid bigint primary key, words tsvector not null);

create index search_index_words on search_index using gin (words);
