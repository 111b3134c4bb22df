import type { Migration } from '../../../kit/sql/migrate.ts';

/** An index for removing old dead letters. */
export const retention: Migration = {
  name: '0014-retention',
  up: () => [`create index deliveries_dead on deliveries (updated_at) where status = 'dead_letter'`],
};
