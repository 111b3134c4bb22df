import type { Migration } from '../../../kit/sql/migrate.ts';

/** Allows a packet in several idempotency answers: those of its creation, its claim and its question. */
export const repeats: Migration = {
  name: '0006-repeats',
  up(database) {
    const sqlite = database === 'sqlite';
    const text = sqlite ? 'text' : 'text collate "C"';
    return [
      `alter table idempotency_packets rename to idempotency_packets_before`,
      `create table idempotency_packets (tenant ${sqlite ? 'integer' : 'bigint'} not null, packet_id ${text} not null, key ${text} not null,
        primary key (tenant, packet_id, key))${sqlite ? ' without rowid' : ''}`,
      `insert into idempotency_packets select tenant, packet_id, key from idempotency_packets_before`,
      `drop table idempotency_packets_before`,
      `create index idempotency_packets_by_key on idempotency_packets (tenant, key)`,
    ];
  },
};
