import type { Migration } from '../../../kit/sql/migrate.ts';

/** Webhooks for one packet: the push notification configurations of A2A. */
export const pushes: Migration = {
  name: '0015-pushes',
  up(database) {
    const text = database === 'sqlite' ? 'text' : 'text collate "C"';
    const ordered = database === 'sqlite' ? '' : ', seq';
    return [
      // The packet that it is for; null: all packets.
      `alter table webhooks add column for_packet ${text}`,
      // The HTTP authentication scheme and the credentials that it sends, as JSON.
      'alter table webhooks add column authentication text',
      // A tenant may have one for each of its packets, which reads of all others pass over.
      `create index webhooks_of_tenant on webhooks (tenant, removed_at${ordered}) where for_packet is null`,
      `create index webhooks_of_packet on webhooks (tenant, for_packet${ordered}) where for_packet is not null`,
      // The numbers of the webhooks that are for this packet, as a JSON array; null: none.
      'alter table packets add column followers text',
    ];
  },
};
