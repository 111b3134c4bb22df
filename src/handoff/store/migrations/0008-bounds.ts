import type { Migration } from '../../../kit/sql/migrate.ts';

/** Indexes for counting open packets and for pruning, and the removal of counters that nobody reads any more. */
export const bounds: Migration = {
  name: '0008-bounds',
  up: () => [
    // The lock of each source agent and the place of the pruner.
    `delete from counters where name >= 'open:' and name < 'open;'`,
    `delete from counters where tenant = 0 and name = 'deliveries:forgotten'`,
    `create index packets_open on packets (tenant, source_agent)
      where status in ('created', 'claimed', 'in_progress', 'awaiting_human')`,
    // The counters of past days.
    `create index counters_of_days on counters (name) where name >= 'created:' and name < 'created;'`,
    // Deliveries that need no further attempt, by the time of their end.
    `create index deliveries_ended on deliveries (updated_at) where status in ('delivered', 'cancelled')`,
  ],
};
