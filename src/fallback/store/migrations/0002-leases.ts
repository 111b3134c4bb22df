import type { Migration } from '../../../kit/sql/migrate.ts';

/** Running results have a lease of the instance that runs them, and a flag by which any instance asks it to cancel. */
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
