import type { Migration } from '../../../kit/sql/migrate.ts';

/** The origin of rotated keys, so that a key and its replacements share one rate limit. */
export const rotation: Migration = {
  name: '0007-rotation',
  up: (database) => [`alter table api_keys add column rotated_from ${database === 'sqlite' ? 'text' : 'text collate "C"'}`],
};
