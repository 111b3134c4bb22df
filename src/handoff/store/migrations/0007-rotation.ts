import type { Migration } from '../../../kit/sql/migrate.ts';

/** Keys that took the place of others count against the same limit. */
export const rotation: Migration = {
  name: '0007-rotation',
  up: (database) => [`alter table api_keys add column rotated_from ${database === 'sqlite' ? 'text' : 'text collate "C"'}`],
};
