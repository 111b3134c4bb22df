import type { Migration } from '../../../kit/sql/migrate.ts';

/** What keys may do. Null is everything, so earlier keys keep what they could do. */
export const rights: Migration = {
  name: '0009-rights',
  up: () => [
    // JSON arrays.
    'alter table api_keys add column scopes text',
    'alter table api_keys add column agents text',
    'alter table api_keys add column responder text',
    // A key and the keys that replaced it.
    'create index api_keys_by_origin on api_keys (rotated_from)',
  ],
};
