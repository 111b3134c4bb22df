import type { Migration } from '../../../kit/sql/migrate.ts';

/** The index of the packets that wait for an agent, with an order that no other index has (`FreeSearch.nullsFirst`). */
export const waiting: Migration = {
  name: '0016-waiting',
  up: (database) =>
    database === 'sqlite'
      ? []
      : [
          'drop index packets_waiting_for',
          `create index packets_waiting_for on packets (tenant, target_agent, priority, id nulls first) where status = 'created'`,
        ],
};
