import type { Migration } from '../../../kit/sql/migrate.ts';

/** The schema the service began with. */
export const packets: Migration = {
  name: '0001-packets-in-parts',
  up(database) {
    const sqlite = database === 'sqlite';
    const serial = sqlite ? 'integer primary key autoincrement' : 'bigint generated always as identity primary key';
    // Byte order is time order and costs nothing; a locale's order is neither.
    const text = sqlite ? 'text' : 'text collate "C"';
    const keyed = sqlite ? ' without rowid' : '';
    return [
      `create table tenants (
        number ${serial}, id ${text} not null unique, name text not null, tier text not null,
        handoffs_per_day integer, max_api_keys integer not null,
        created_at ${text} not null, updated_at ${text} not null, deleted_at ${text})`,

      `create table api_keys (
        id ${text} primary key, tenant_id ${text} not null references tenants (id), name text not null, tier text not null,
        admin integer not null, prefix text not null, hash ${text} not null unique,
        created_at ${text} not null, revoked_at ${text})`,
      `create index api_keys_by_tenant on api_keys (tenant_id, id)`,

      `create table versions (name ${text} primary key, value bigint not null)`,
      `insert into versions (name, value) values ('access', 1)`,

      `create table packets (
        seq ${serial}, tenant_id ${text} not null, id ${text} not null, status ${text} not null, revision integer not null,
        source_agent ${text} not null, target_agent ${text} not null, priority ${text} not null, hitl_required integer not null,
        due_at ${text}, state text not null, digest text not null)`,
      `create unique index packets_by_id on packets (tenant_id, id)`,
      `create index packets_by_status on packets (tenant_id, status, id)`,
      `create index packets_by_source on packets (tenant_id, source_agent, id)`,
      `create index packets_by_target on packets (tenant_id, target_agent, id)`,
      `create index packets_by_priority on packets (tenant_id, priority, id)`,
      `create index packets_hitl on packets (tenant_id, id) where hitl_required = 1`,
      `create index packets_due on packets (due_at) where due_at is not null`,

      `create table contents (tenant_id ${text} not null, packet_id ${text} not null, content text not null,
        primary key (tenant_id, packet_id))`,

      `create table packet_tags (tenant_id ${text} not null, tag ${text} not null, packet_id ${text} not null,
        primary key (tenant_id, tag, packet_id))${keyed}`,

      `create table events (
        seq ${serial}, id ${text} not null, tenant_id ${text} not null, packet_id ${text}, event_type ${text} not null,
        actor ${text} not null, resource text not null, details text not null, timestamp ${text} not null)`,
      `create index events_by_tenant on events (tenant_id, seq)`,
      `create index events_by_packet on events (tenant_id, packet_id, seq)`,

      `create table counters (tenant_id ${text} not null, name ${text} not null, value bigint not null, primary key (tenant_id, name))${keyed}`,

      `create table idempotency (
        tenant_id ${text} not null, key ${text} not null, fingerprint text not null, status integer not null,
        body text, etag text, created_at ${text} not null, primary key (tenant_id, key))`,
      `create index idempotency_by_age on idempotency (created_at)`,
      `create table idempotency_packets (tenant_id ${text} not null, packet_id ${text} not null, key ${text} not null,
        primary key (tenant_id, packet_id))${keyed}`,
      `create index idempotency_packets_by_key on idempotency_packets (tenant_id, key)`,

      `create table search_queue (tenant_id ${text} not null, packet_id ${text} not null, revision integer not null,
        primary key (tenant_id, packet_id))${keyed}`,
      ...(sqlite
        ? // The words come from the program, lower case and without accents: ascii splits them at spaces and nowhere else.
          [
            `create virtual table search_index using fts5(words, content = '', contentless_delete = 1, tokenize = "ascii tokenchars '_'")`,
            // Fewer merges for each packet, each of more pieces: a sixth less work, and no slower a search.
            `insert into search_index (search_index, rank) values ('automerge', 8)`,
          ]
        : [
            `create table search_index (rowid bigint primary key, words tsvector not null)`,
            `create index search_index_words on search_index using gin (words)`,
          ]),
    ];
  },
};
