-- Written by `npm run fix` from a database it has migrated. The service creates this schema itself.

CREATE TABLE "migrations" (name text primary key, applied_at text not null);

CREATE TABLE tenants (
  number integer primary key autoincrement, id text not null unique, name text not null, tier text not null,
  handoffs_per_day integer, requests_per_hour integer, retention_days integer, max_api_keys integer not null, max_api_keys_set integer not null default 0,
  created_at text not null, updated_at text not null, deleted_at text);

CREATE TABLE api_keys (
  id text primary key, tenant_id text not null references tenants (id), name text not null, tier text not null,
  admin integer not null, scopes text, agents text, responder text, queues text, lineage text, rotated_from text,
  prefix text not null, hash text not null unique,
  created_at text not null, expires_at text, revoked_at text);

CREATE INDEX api_keys_by_tenant on api_keys (tenant_id, id);

CREATE INDEX api_keys_by_origin on api_keys (rotated_from);

CREATE TABLE people (
  tenant integer not null, name_key text not null, name text not null, subject text, issuer text,
  groups text not null, last_seen_at text, suspended_at text, left_at text, links_end_at text,
  primary key (tenant, name_key)) without rowid;

CREATE INDEX people_by_subject on people (subject) where subject is not null;

CREATE TABLE sessions (
  tenant integer not null, id text not null, token_hash text not null, name_key text not null, name text not null,
  subject text not null, issuer text not null, provider_session text, groups text not null,
  created_at text not null, last_seen_at text not null, expires_at text not null, checked_at text not null,
  checking_until text, sealed text, ended_at text, primary key (tenant, id)) without rowid;

CREATE INDEX sessions_by_token on sessions (tenant, token_hash);

CREATE INDEX sessions_of_person on sessions (tenant, name_key) where ended_at is null;

CREATE INDEX sessions_by_subject on sessions (subject) where ended_at is null;

CREATE INDEX sessions_of_provider on sessions (provider_session) where ended_at is null;

CREATE INDEX sessions_by_expiry on sessions (expires_at);

CREATE TABLE secrets (name text primary key, value text not null);

CREATE TABLE versions (name text primary key, value bigint not null);

CREATE TABLE packets (
  seq integer primary key autoincrement, tenant integer not null, id text not null, status text not null, revision integer not null,
  source_agent text not null, target_agent text not null, priority text not null, hitl_required integer not null,
  claimed_by text, parent text, root text, depth integer not null, due_at text, asked_at text, updated_at text not null,
  state text not null, digest text not null, lease text, followers text, sources text, kept text,
  open_source text, scheduled_at text, available_at text, deadline text, overdue integer, ended_at text);

CREATE UNIQUE INDEX packets_by_id on packets (tenant, id);

CREATE INDEX packets_by_status on packets (tenant, status, id);

CREATE INDEX packets_by_source on packets (tenant, source_agent, id);

CREATE INDEX packets_by_target on packets (tenant, target_agent, id);

CREATE INDEX packets_by_priority on packets (tenant, priority, id);

CREATE INDEX packets_by_claimant on packets (tenant, claimed_by, id) where claimed_by is not null;

CREATE INDEX packets_by_parent on packets (tenant, parent, id) where parent is not null;

CREATE INDEX packets_by_root on packets (tenant, root, id) where root is not null;

CREATE INDEX packets_hitl on packets (tenant, id) where hitl_required = 1;

CREATE INDEX packets_asked on packets (tenant, asked_at) where asked_at is not null;

CREATE INDEX packets_due on packets (due_at, id) where due_at is not null;

CREATE INDEX packets_waiting_for on packets (tenant, target_agent, priority, id) where status = 'created' and scheduled_at is null;

CREATE INDEX packets_waiting on packets (tenant, priority, id) where status = 'created' and scheduled_at is null;

CREATE INDEX packets_waiting_due_for on packets (tenant, target_agent, priority, deadline, id)
  where status = 'created' and scheduled_at is null and deadline is not null;

CREATE INDEX packets_waiting_due on packets (tenant, priority, deadline, id)
  where status = 'created' and scheduled_at is null and deadline is not null;

CREATE INDEX packets_scheduled on packets (tenant, id) where scheduled_at is not null;

CREATE INDEX packets_available on packets (tenant, available_at, id) where available_at is not null;

CREATE INDEX packets_by_deadline on packets (tenant, deadline, id) where deadline is not null;

CREATE INDEX packets_overdue on packets (tenant, id) where overdue = 1;

CREATE INDEX packets_ended on packets (tenant, ended_at) where ended_at is not null;

CREATE INDEX packets_open on packets (tenant, open_source) where open_source is not null;

CREATE INDEX packets_held on packets (tenant, claimed_by)
  where (status = 'claimed' or status = 'in_progress' or status = 'awaiting_human');

CREATE TABLE contents (packet integer primary key, tenant integer not null, content text not null);

CREATE TABLE questions (
  seq integer primary key autoincrement, tenant integer not null, packet_id text not null, question_id text not null, key text, state text not null,
  record text not null, shown text, replaced_by text, ended_at text not null, decided integer not null);

CREATE INDEX questions_of_packet on questions (tenant, packet_id);

CREATE INDEX questions_decided on questions (tenant, ended_at) where decided = 1;

CREATE TABLE packet_tags (tenant integer not null, tag text not null, packet_id text not null,
  primary key (tenant, tag, packet_id)) without rowid;

CREATE TABLE packet_subjects (tenant integer not null, subject_digest text not null, packet_id text not null,
  primary key (tenant, subject_digest, packet_id)) without rowid;

CREATE TABLE events (
  tenant integer not null, position bigint not null, id text not null, packet_id text,
  event_type text not null, actor text not null, key_id text, resource text not null, details text,
  timestamp text not null, person text, salt text, details_digest text not null, digest text not null,
  type text, status text, source_agent text, target_agent text, claimant text, payload text,
  primary key (tenant, position));

CREATE INDEX events_by_packet on events (tenant, packet_id, position);

CREATE INDEX events_by_time on events (tenant, timestamp, position);

CREATE INDEX events_by_actor on events (tenant, actor, timestamp, position, event_type);

CREATE INDEX events_of_people on events (tenant, timestamp, position) where person is not null;

CREATE INDEX events_by_action on events (tenant, event_type, timestamp, position);

CREATE TABLE heads (tenant integer not null primary key, position bigint not null, digest text not null, at text not null);

CREATE TABLE counters (tenant integer not null, name text not null, value bigint not null, primary key (tenant, name)) without rowid;

CREATE INDEX counters_of_days on counters (name) where name >= 'created:' and name < 'created;';

CREATE INDEX counters_of_hours on counters (name) where name >= 'hour:' and name < 'hour;';

CREATE TABLE idempotency (
  tenant integer not null, key text not null, fingerprint text not null, status integer not null,
  body text, etag text, created_at text not null, primary key (tenant, key));

CREATE INDEX idempotency_by_age on idempotency (created_at);

CREATE TABLE idempotency_packets (tenant integer not null, packet_id text not null, key text not null,
  primary key (tenant, packet_id, key)) without rowid;

CREATE INDEX idempotency_packets_by_key on idempotency_packets (tenant, key);

CREATE TABLE agents (tenant integer not null, agent_id text not null, last_seen_at text not null,
  primary key (tenant, agent_id)) without rowid;

CREATE INDEX agents_by_sight on agents (tenant, last_seen_at, agent_id);

CREATE INDEX agents_by_age on agents (last_seen_at);

CREATE TABLE schedules (
  tenant integer not null, name text not null, version integer not null, key_origin text not null,
  source_agent text not null, target_agent text not null, due_at text, last_at text, last_packet_id text,
  last_error text, disabled_reason text, primary key (tenant, name)) without rowid;

CREATE INDEX schedules_due on schedules (due_at, tenant, name) where due_at is not null;

CREATE TABLE documents (
  tenant integer not null, kind text not null, name text not null, version integer not null, document text not null,
  created_at text not null, updated_at text not null, removed_at text, primary key (tenant, kind, name));

CREATE INDEX documents_of_tenant on documents (tenant, kind, name) where removed_at is null;

CREATE TABLE executions (
  tenant integer not null, packet_id text not null, question_id text not null, id text not null, status text not null,
  arguments_digest text not null, started_at text not null, agent_id text not null, key_id text, family text not null,
  ended_at text, result text not null, primary key (tenant, packet_id, question_id));

CREATE TABLE calls (
  tenant integer not null, agent_id text not null, call_id text not null, packet_id text not null, tool text not null,
  arguments_digest text not null, primary key (tenant, agent_id, call_id));

CREATE INDEX calls_by_packet on calls (tenant, packet_id);

CREATE TABLE erasures (
  tenant integer not null, id text not null, status text not null, reason text not null, actor text not null, key_id text,
  subject_digest text, remaining text not null, packets integer not null, not_found text not null, progress text not null,
  created_at text not null, done_at text, primary key (tenant, id));

CREATE INDEX erasures_open on erasures (created_at) where done_at is null;

CREATE TABLE webhooks (
  seq integer primary key autoincrement, tenant integer not null, id text not null, kind text not null, for_packet text,
  url text not null, name text, events text not null, responder text, sign_in integer not null, authentication text,
  secret text not null, old_secret text, old_secret_until text, key_id text, key_origin text, origin text,
  active integer not null, disabled_reason text, failing_since text, subscription text, position bigint, expires_at text,
  created_at text not null, updated_at text not null, removed_at text, unique (tenant, id));

CREATE INDEX webhooks_of_tenant on webhooks (tenant, removed_at) where for_packet is null;

CREATE INDEX webhooks_of_packet on webhooks (tenant, for_packet) where for_packet is not null;

CREATE INDEX webhooks_following on webhooks (expires_at) where subscription is not null and removed_at is null;

CREATE INDEX webhooks_removed on webhooks (tenant, seq) where removed_at is not null and url <> '';

CREATE UNIQUE INDEX webhooks_named on webhooks (tenant, for_packet, name) where for_packet is not null and removed_at is null;

CREATE TABLE messages (tenant integer not null, event_id text not null, body text not null, traceparent text,
  primary key (tenant, event_id));

CREATE TABLE deliveries (
  seq integer primary key autoincrement, tenant integer not null, id text not null, webhook integer not null, packet_id text,
  event_id text not null, event_type text not null, status text not null, attempts integer not null,
  last_error text, last_status_code integer, next_retry_at text, delivered_at text,
  created_at text not null, updated_at text not null, due_at text, position integer, unique (tenant, id));

CREATE INDEX deliveries_by_webhook on deliveries (webhook);

CREATE INDEX deliveries_by_packet on deliveries (tenant, packet_id);

CREATE INDEX deliveries_due on deliveries (webhook, due_at) where due_at is not null;

CREATE INDEX deliveries_pending on deliveries (webhook, position) where position is not null and due_at is not null;

CREATE INDEX deliveries_failed on deliveries (tenant, status) where next_retry_at is not null;

CREATE INDEX deliveries_ended on deliveries (updated_at) where status in ('delivered', 'cancelled');

CREATE INDEX deliveries_dead on deliveries (updated_at) where status = 'dead_letter';

CREATE TABLE answer_links (
  seq integer primary key autoincrement, tenant integer not null, id text not null, packet_id text not null,
  question text not null, first_question text not null, asked_of text, token_hash text not null,
  responder text, verified integer not null, sign_in integer not null, channel text, key_id text,
  key_origin text not null, created_at text not null, expires_at text not null, answered_at text, revoked_at text,
  unique (tenant, id));

CREATE INDEX answer_links_by_token on answer_links (token_hash);

CREATE INDEX answer_links_by_packet on answer_links (tenant, packet_id);

CREATE INDEX answer_links_by_expiry on answer_links (expires_at);

CREATE TABLE search_queue (tenant integer not null, packet integer not null, revision integer not null,
  primary key (tenant, packet)) without rowid;

CREATE VIRTUAL TABLE search_index using fts5(words, content = '', contentless_delete = 1, tokenize = "ascii tokenchars '_'");
