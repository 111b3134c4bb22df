import type { Migration } from '../../../kit/sql/migrate.ts';

/** Indexes for counting the packets that an agent holds, and for pruning agents that were not seen for long. */
export const agents: Migration = {
  name: '0010-agents',
  up: () => [
    `create index packets_held on packets (tenant, claimed_by) where status in ('claimed', 'in_progress', 'awaiting_human')`,
    'create index agents_by_age on agents (last_seen_at)',
  ],
};
