import type { Migration } from '../../../kit/sql/migrate.ts';

/** Adds the lease of a running test's instance, and a flag with which other instances request its cancellation. */
export const leases: Migration = {
  name: '0002-leases',
  up(database) {
    const text = database === 'sqlite' ? 'text' : 'text collate "C"';
    return [
      `alter table test_results add column lease_until ${text}`,
      `alter table test_results add column cancel_requested integer not null default 0`,
    ];
  },
};
